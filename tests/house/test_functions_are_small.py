"""Functions of the cores take few parameters and few branches: what belongs together is a value with a name (RM-8)."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MANAGER = ROOT / "manager/gatelift/core"
AGENT = ROOT / "worker_agent/gatelift_agent/core"
ENGINE = ROOT / "admission/gatelift_admission"
PARAMETERS_MAX = 5
COMPLEXITY_MAX = 14
OF_A_CASE = frozenset({"core", "known", "workload", "rec", "attempt", "kind", "owner", "now"})
OF_A_CASE_MAX = 3
"""What one pass knows goes down as a `Case` from here on."""


def functions(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each function of a module, and what it takes; of a method without `self`."""
    tree = ast.parse(text)
    methods = {each for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for each in node.body}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            arguments = node.args
            taken = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
            taken += [each for each in (arguments.vararg, arguments.kwarg) if each is not None]
            names = [each.arg for each in taken]
            own = node in methods and names[:1] in (["self"], ["cls"])
            yield getattr(node, "name", "lambda"), names[1:] if own else names


def too_many(text: str) -> list[str]:
    """Return the functions that take more than is allowed."""
    return [name for name, taken in functions(text) if len(taken) > PARAMETERS_MAX]


def without_case(text: str) -> list[str]:
    """Return the functions that take the parts of a case one by one."""
    return [name for name, taken in functions(text) if len(OF_A_CASE.intersection(taken)) > OF_A_CASE_MAX]


def complex_ones(*paths: Path) -> subprocess.CompletedProcess[str]:
    """Look for functions with more branches than is allowed, whatever comments say."""
    ruff = Path(sys.executable).with_name("ruff")
    limit = f"lint.mccabe.max-complexity={COMPLEXITY_MAX}"
    command: list[str | Path] = [
        ruff,
        "check",
        "--isolated",
        "--ignore-noqa",
        "--no-cache",
        "--select",
        "C901",
        "--config",
        limit,
    ]
    command += paths
    return subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - the linter of this checkout


def test_rm_8_probes_are_seen(tmp_path: Path) -> None:
    assert too_many("class A:\n    def f(self, a, b, /, c, *d, e, **g): ...") == ["f"]
    assert too_many("def f(a, b, c, *, d, e): ...") == []
    assert too_many("class A:\n    def f(self, a, b, c, d, e): ...") == []
    assert too_many("def f(self, a, b, c, d, e): ...") == ["f"], "beside the classes nobody is `self`"
    assert without_case("def f(core, *, known, attempt, now): ...") == ["f"]
    assert without_case("def f(case, owner, asked, names): ...") == []
    probe = tmp_path / "probe.py"
    probe.write_text("def f(a):  # noqa: C901\n" + "    if a: return 1\n" * (COMPLEXITY_MAX + 1))
    assert complex_ones(probe).returncode == 1
    probe.write_text("def f(a):\n" + "    if a: return 1\n" * (COMPLEXITY_MAX - 1))
    assert complex_ones(probe).returncode == 0


@pytest.mark.parametrize("core", [MANAGER, AGENT, ENGINE], ids=["manager", "agent", "engine"])
def test_rm_8_no_function_of_a_core_takes_more_than_five_parameters(core: Path) -> None:
    paths = sorted(core.rglob("*.py"))
    found = {path.relative_to(core).as_posix(): too_many(path.read_text(encoding="utf-8")) for path in paths}
    assert {path: names for path, names in found.items() if names} == {}


def test_rm_8_no_function_of_the_managers_core_takes_the_parts_of_a_case_one_by_one() -> None:
    paths = sorted(MANAGER.rglob("*.py"))
    found = {path.relative_to(MANAGER).as_posix(): without_case(path.read_text(encoding="utf-8")) for path in paths}
    assert {path: names for path, names in found.items() if names} == {}


def test_rm_8_no_function_of_the_cores_has_fifteen_branches() -> None:
    found = complex_ones(MANAGER, AGENT, ENGINE)
    assert found.returncode == 0, found.stdout + found.stderr
