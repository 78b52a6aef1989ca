"""Constants of the engine are Final: compiled code reads such a one at once, and looks for any other by its name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import gatelift_admission

SOURCES = Path(gatelift_admission.__file__).parent
SET_BY_TESTS = {"entries/reading.py KNOWN_MAX"}


def not_final(text: str) -> Iterator[str]:
    """Yield the names in capitals that a module gives a value at its top and that may get another one later."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign):
            names = [one.id for target in node.targets for one in ast.walk(target) if isinstance(one, ast.Name)]
        elif isinstance(node, ast.AnnAssign) and not ast.unparse(node.annotation).startswith("Final"):
            names = [ast.unparse(node.target)]
        else:
            continue
        yield from (one for one in names if one.isupper() and len(one.strip("_")) > 1)


def test_every_constant_of_the_engine_is_final() -> None:
    assert list(not_final("A_B = 1\nC_D: int = 2\nE_F, GH = 3, 4\nI_J: Final = 5\nK_L: Final[int] = 6\nMn = 7")) == [
        "A_B",
        "C_D",
        "E_F",
        "GH",
    ]
    found = {
        f"{path.relative_to(SOURCES)} {name}"
        for path in sorted(SOURCES.rglob("*.py"))
        for name in not_final(path.read_text())
    }
    assert found == SET_BY_TESTS
