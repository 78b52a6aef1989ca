"""What the manager's core holds is changed by the class that holds it, and by nobody else."""

from __future__ import annotations

import ast
import dataclasses
import typing
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from gatelift.core.state.core import Core

CORE = Path(__file__).parents[2] / "manager" / "gatelift" / "core"
BARE = (dict, list, set, deque)
PROBE = "def f(core):\n    core.term = 1\n    core.attempts[1] = 2\n    del core.attempts[1]\n    core.budget.x = 3\n"


def assigned(tree: ast.AST) -> Iterator[str]:
    """Yield the fields of `core` that are assigned, replaced or deleted somewhere, also inside."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
            target: ast.AST = node
            while isinstance(target, ast.Subscript):
                target = target.value
            if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "core":
                yield target.attr


def test_rm_5_a_probe_that_writes_fields_of_the_core_is_seen() -> None:
    assert sorted(assigned(ast.parse(PROBE))) == ["attempts", "attempts", "term"]


def test_rm_5_no_field_of_the_core_is_a_bare_container_that_anybody_could_change() -> None:
    hints = typing.get_type_hints(Core)
    fields = [field.name for field in dataclasses.fields(Core) if not field.name.startswith("_")]
    public = {name: typing.get_origin(hints[name]) or hints[name] for name in fields}
    assert {name for name, kind in public.items() if kind in BARE} == set()


def test_rm_5_only_the_machine_assigns_fields_of_the_core() -> None:
    found = {
        (path.relative_to(CORE).as_posix(), name)
        for path in sorted(CORE.rglob("*.py"))
        for name in assigned(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert {path for path, _ in found} <= {"machine.py"}, found
