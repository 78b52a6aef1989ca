"""A class name stands for one idea, in the whole product."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("admission", "kinds", "kube", "manager", "protos", "sandbox", "worker_agent")


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


def test_rm_5_no_two_modules_of_the_product_share_a_class_name() -> None:
    paths = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    written = [path for path in paths if "_pb2" not in path.name]  # the rest the schema's compiler writes
    assert len(written) > 400
    assert shared((path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")) for path in written) == {}
