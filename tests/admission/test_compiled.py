"""The engine as compiled code: it is used where it was asked for, and decides and shows what its sources do.

Instances are those of the twin, GATELIFT_COMPILED_RUNS of them (default 1,000) from GATELIFT_TWIN_SEED on. All else of
these tests runs on the compiled engine, too (`make test ENGINE=compiled`), but for what looks inside it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gatelift_admission.engine import is_compiled

ROOT = Path(__file__).resolve().parent.parent.parent
COMPILED = ROOT / ".compiled"
RUNS = int(os.environ.get("GATELIFT_COMPILED_RUNS", "1000"))
FIRST = int(os.environ.get("GATELIFT_TWIN_SEED", "1"))
PARTS = 4
SECONDS = max(300.0, RUNS / 4)


def start(first: int, count: int, *arguments: str, compiled: bool) -> subprocess.Popen[str]:
    """Start to play instances in a process of its own, on one of the two builds."""
    others = [one for one in os.environ.get("PYTHONPATH", "").split(os.pathsep) if one and Path(one) != COMPILED]
    paths = [str(COMPILED)] * compiled + [str(ROOT), str(ROOT / "tests"), *others]
    command = [sys.executable, "-m", "support.twin.engine_trace", str(first), str(count), *arguments]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)  # noqa: S603 (our own program)


def both(first: int, count: int, *arguments: str) -> tuple[list[str], list[str]]:
    """Return what the compiled engine and the interpreted one say of the same instances."""
    runs = [start(first, count, *arguments, compiled=compiled) for compiled in (True, False)]
    try:
        said = [run.communicate(timeout=SECONDS)[0].splitlines() for run in runs]
    finally:
        for run in runs:
            run.kill()  # nothing to one that has ended
    assert [run.returncode for run in runs] == [0, 0]
    assert [lines.pop(0) for lines in said] == ["True", "False"]
    return said[0], said[1]


def explained(seed: int) -> str:
    """Return the first line in which one instance differs."""
    compiled, interpreted = both(seed, 1, "--whole")
    differ = (f"compiled:    {one}\ninterpreted: {other}" for one, other in zip(compiled, interpreted) if one != other)  # noqa: B905 - one may have said less
    return f"seed {seed}: {len(compiled)} and {len(interpreted)} lines\n{next(differ, '')}"


def test_the_engine_is_the_one_that_was_asked_for() -> None:
    assert is_compiled() is (os.environ.get("GATELIFT_EXPECTED_ENGINE") == "compiled")


@pytest.mark.compiled
@pytest.mark.timeout(int(SECONDS * 2))
@pytest.mark.parametrize("part", range(PARTS))
def test_what_is_compiled_decides_and_shows_what_its_sources_do(part: int) -> None:
    """RM-9."""
    count = -(-RUNS // PARTS)
    compiled, interpreted = both(FIRST + part * count, count)
    assert len(interpreted) == count
    for one, other in zip(compiled, interpreted, strict=True):
        if one != other:
            pytest.fail(explained(int(other.split()[0])), pytrace=False)
