"""Holds decision 14 and the tests together: each difference from Kueue has a case, each case has a difference.

A row of a table under `HEAD` is a difference; its last column names tests, by file and name. In the sections of these
tables nothing is told besides: a difference without a case cannot hide in a paragraph.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent))

from scripts.attacks import REFERENCE, shown

PAGE = Path("docs", "decisions", "0014-differences-from-kueue.md")
TESTS = Path("tests")
CASES = "admission/test_differences.py"
"""Tests that show a decision beside Kueue's: each is of some row."""
HEAD = "| what | Kueue | here, and why | shown by |"
CELL = re.compile(r"(?<!\\)\|")


@dataclass(frozen=True, slots=True)
class Row:
    """One difference: its cells, or the line itself where it is no row."""

    line: int
    cells: tuple[str, ...]

    @property
    def tests(self) -> list[tuple[str, str]]:
        """Return the tests that the last column names, as (file, name or "")."""
        return REFERENCE.findall(self.cells[-1])


def rows(page: Path) -> list[Row]:
    """Return what stands in the sections of the tables: rows, and with one cell what is no row."""
    found: list[Row] = []
    inside = False
    for number, line in enumerate(page.read_text().splitlines(), start=1):
        if line.startswith("## "):
            inside = False
        elif line == HEAD:
            inside = True
        elif inside and line and not line.startswith("|---"):
            cells = CELL.split(line)[1:-1] if line.startswith("|") else [line]
            found.append(Row(number, tuple(cell.strip() for cell in cells)))
    return found


def problems(page: Path, tests: Path) -> list[str]:
    """Return what does not agree, one line each."""
    found, named = [], set()
    by_file: dict[str, set[str] | None] = {}
    width = len(CELL.split(HEAD)) - 2
    for row in rows(page):
        where = f"{page}:{row.line}"
        if len(row.cells) == 1:
            found.append(f"{where}: stands outside of the table: make it a row, with a test in its last column")
            continue
        if len(row.cells) != width:
            found.append(f"{where}: has {len(row.cells)} columns: {HEAD}")
            continue
        if not any(name for _, name in row.tests):
            found.append(f"{where}: its last column names no test: `tests/.../test_x.py::test_y`")
        for file, name in row.tests:
            if file not in by_file:
                by_file[file] = shown(Path(file))[1] if Path(file).is_file() else None
            names = by_file[file]
            named.add((file, name))
            if names is None:
                found.append(f"{where}: {file} is no test file")
            elif name and name not in names:
                found.append(f"{where}: {file} has no test {name}")
    cases = tests / CASES
    unnamed = sorted(name for name in shown(cases)[1] if (cases.as_posix(), name) not in named)
    return found + [f"{page}: no row names {name} of {cases}" for name in unnamed]


def main() -> int:
    """Compare the page with the tests of this tree."""
    found = problems(PAGE, TESTS)
    print("\n".join(found) or f"{len(rows(PAGE))} differences of {PAGE}, each shown by a test")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
