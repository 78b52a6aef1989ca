"""A class name stands for one idea."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

MANAGER = Path(__file__).parents[2] / "manager/gatelift"
CORE = MANAGER / "core"


def shared(texts: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Return the public names of classes that more than one of these modules (name, text) has."""
    found: dict[str, list[str]] = defaultdict(list)
    for module, text in texts:
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(module)
    return {name: modules for name, modules in found.items() if len(modules) > 1}


def test_rm_5_a_probe_of_two_classes_of_one_name_is_seen() -> None:
    probes = [("a", "class One: ..."), ("b", "def f():\n    class One: ..."), ("c", "class Two: ...\nclass _Own: ...")]
    assert shared([*probes, ("d", "class _Own: ...")]) == {"One": ["a", "b"]}


def test_rm_5_no_two_modules_of_the_managers_core_share_a_class_name() -> None:
    paths = sorted(CORE.rglob("*.py"))
    assert shared((path.relative_to(CORE).as_posix(), path.read_text(encoding="utf-8")) for path in paths) == {}


def test_rm_5_no_class_of_the_managers_core_has_the_name_of_one_around_it() -> None:
    paths = sorted(MANAGER.rglob("*.py"))
    found = shared((path.relative_to(MANAGER).as_posix(), path.read_text(encoding="utf-8")) for path in paths)
    assert {name: modules for name, modules in found.items() if any(each.startswith("core/") for each in modules)} == {}
