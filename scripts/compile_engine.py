"""Compiles the admission engine to native code, into a folder that goes before its sources on Python's path.

The image ships the engine so, and the benchmarks measure it so (`ENGINE=compiled` for other targets of the Makefile).
mypyc compiles the sources as they are; what it makes belongs to the interpreter that runs this script. The folder is
replaced as a whole once all of it is there. Exit code 2: there is no C compiler, or mypyc refuses the sources.

Run: `python scripts/compile_engine.py FOLDER`
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "gatelift_admission"
TYPES = ROOT / "kube"
"""Where mypy finds the types of objects that the engine is given; they stay as they are."""
SECONDS = 1200.0
"""Within which it is done: a dozen times what two cores take."""
C_COMPILER = {"MYPYC_OPT_LEVEL": "1", "MYPYC_DEBUG_LEVEL": "0"}
"""More optimisation by the C compiler takes a third longer and gained nothing that could be measured."""


def lacking() -> str:
    """Return what cannot be done without, in one sentence that says what to do; empty if all is there."""
    if importlib.util.find_spec("mypyc") is None:
        return f"{sys.executable} has no mypyc; install requirements/build.txt"
    compiler = shlex.split(os.environ.get("CC") or str(sysconfig.get_config_var("CC") or "cc"))[0]
    if shutil.which(compiler) is None:
        return (
            f"there is no C compiler {compiler!r}; install one (Debian: gcc libc6-dev), name another in CC, "
            "or do without (make ENGINE=interpreted)"
        )
    header = Path(sysconfig.get_paths()["include"], "Python.h")
    return "" if header.exists() else f"there is no {header}; install the headers of this Python (Debian: python3-dev)"


def build(folder: Path) -> str:
    """Compile into `folder`; returns what went wrong, empty for nothing."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "mypyc", "--config-file", str(ROOT / "pyproject.toml"), "-p", PACKAGE]
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as temporary:
        made = Path(temporary, "made")
        shutil.copytree(ROOT / "admission" / PACKAGE, made / PACKAGE, ignore=shutil.ignore_patterns("__pycache__"))
        environment = {**os.environ, **C_COMPILER, "MYPYPATH": str(TYPES)}
        try:
            done = subprocess.run(
                command, cwd=made, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            return f"mypyc was not done after {SECONDS:.0f} s"
        if done.returncode:
            return f"mypyc refuses the sources:\n{done.stdout[-4000:]}{done.stderr[-4000:]}"
        for rest in ("build", ".mypy_cache"):
            shutil.rmtree(made / rest, ignore_errors=True)
        if folder.exists():
            folder.rename(Path(temporary, "before"))
        made.rename(folder)
    return ""


def main(arguments: list[str]) -> int:
    """Compile into the folder that is named; returns the exit code."""
    if len(arguments) != 1:
        print("usage: compile_engine.py FOLDER", file=sys.stderr)
        return 2
    wrong = lacking() or build(Path(arguments[0]).absolute())
    if wrong:
        print(f"compile_engine: {wrong}", file=sys.stderr)
    return 2 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
