"""Whole numbers in texts of others are read by `gatelift_kube.values.numbers` alone (IS-1).

Python's own `int` takes spaces, underscores and other scripts' digits, and raises above 4,300 digits; `isdigit` takes
what `int` then refuses.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

TREE = Path(__file__).parents[2]
PRODUCT = ("admission", "kinds", "kube", "manager", "protos", "worker_agent")
READS_NUMBERS = {
    "kube/gatelift_kube/values/numbers.py": "the parser itself",
    "admission/gatelift_admission/values/amounts.py": "quantities: a pattern of at most 128 ASCII digits",
}
ASKS_FOR_DIGITS = frozenset({"isdigit", "isdecimal", "isnumeric"})


def bare_in(text: str) -> list[int]:
    """Return the lines of a source that turn something into a whole number, or ask whether a text is one."""
    return sorted(
        node.lineno
        for node in ast.walk(ast.parse(text))
        if (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "int")
        or (isinstance(node, ast.Attribute) and node.attr in ASKS_FOR_DIGITS)
    )


def test_is_1_no_text_of_others_is_read_by_int_or_isdigit() -> None:
    found = [
        f"{path.relative_to(TREE)}:{line}: read texts with gatelift_kube.values.numbers, cut fractions with math.trunc"
        for package in PRODUCT
        for path in sorted((TREE / package).rglob("*.py"))
        if path.relative_to(TREE).as_posix() not in READS_NUMBERS and not path.name.endswith(("_pb2.py", "_grpc.py"))
        for line in bare_in(path.read_text())
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("file", READS_NUMBERS)
def test_is_1_what_is_excepted_needs_it(file: str) -> None:
    assert bare_in((TREE / file).read_text())


@pytest.mark.parametrize("line", ["int(text)", "x = int(a.b)", "text.isdigit()", "map(str.isdecimal, texts)"])
def test_is_1_the_rule_finds_what_it_is_for(line: str) -> None:
    assert bare_in(line) == [1]
