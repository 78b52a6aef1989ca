"""The table of rules in `docs/protocol.md`: each file that it names is there and says which rule it holds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("manager", "worker_agent", "protos")
_ROW = re.compile(r"^\| ((?:R|P)\d+) \|.*\| ([^|]+) \|$", re.MULTILINE)


def rows() -> list[tuple[str, str]]:
    """Return (rule, file), a file without folder being beside the one before it."""
    found = []
    for rule, cell in _ROW.findall((ROOT / "docs/protocol.md").read_text()):
        folder = Path()
        for name in re.findall(r"`([^`]+)`", cell):
            path = Path(name) if "/" in name else folder / name
            folder = path.parent
            found.append((rule, str(path)))
    return found


def test_every_rule_that_is_built_has_a_place() -> None:
    built = {*(f"R{number}" for number in range(1, 9)), "P1", "P2", "P3", "P4", "P6", "P7", "P8", "P10"}
    assert {rule for rule, _ in rows()} == built


@pytest.mark.parametrize(("rule", "name"), rows())
def test_a_file_that_holds_a_rule_is_there_and_names_it(rule: str, name: str) -> None:
    files = [ROOT / room / name for room in ROOMS if (ROOT / room / name).is_file()]
    assert len(files) == 1, name
    assert re.search(rf"\b{rule}\b", files[0].read_text()), f"{name} does not say {rule}"
