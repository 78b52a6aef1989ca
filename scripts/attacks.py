"""Holds the pages of docs/ and the tests together: each id of a page is shown by a test, each in a test has a page.

An id is written `HD-12` in the page, in a test's docstring or in a parameter's id, and `hd_12` in a test's name. Most
stand in docs/attacks.md, those of the documents and of the reference's scenarios in docs/keps.md; a row may stand in
whichever page is about it, in one only. Neighbour: `acceptance` runs those of docs/keps.md.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

PAGES = Path("docs")
TESTS = Path("tests")
ROW = re.compile(r"^\| \*{0,2}([A-Z]{2}-\d+[a-e]?)\*{0,2} \|(?P<rest>.*)\|\s*$")
REFERENCE = re.compile(r"`(tests/[\w/]+\.(?:py|txt))(?:::(\w+))?`")
FAMILIES = ("EJ", "HD", "IS", "QR", "RE", "RP", "SL", "UG", "WS")
"""Families of ids; another one is added here."""
_OR = "|".join(FAMILIES)
ID = re.compile(rf"(?<![A-Za-z])({_OR})-(\d+[a-e]?)(?![0-9a-z])|(?<![a-z])({_OR.lower()})_(\d+[a-e]?)(?![0-9a-z])")


@dataclass(frozen=True, slots=True)
class Row:
    """One history of a page: where its tests are, as (file, name of the test or "")."""

    id: str
    page: Path
    line: int
    tests: tuple[tuple[str, str], ...]


def rows(page: Path) -> list[Row]:
    """Return the rows of all tables of a page."""
    found = []
    for number, line in enumerate(page.read_text().splitlines(), start=1):
        match = ROW.match(line)
        if match is not None:
            cells = match["rest"].split("|")
            found.append(Row(match[1], page, number, tuple(REFERENCE.findall(cells[-1]))))
    return found


def ids_in(texts: Iterable[str]) -> set[str]:
    """Return the ids that stand in texts, spelled as in the page."""
    return {
        f"{(family or small).upper()}-{number or digits}"
        for text in texts
        for family, number, small, digits in ID.findall(text)
    }


def shown(path: Path) -> tuple[set[str], set[str]]:
    """Return the ids that the tests of a file show, and the names of its test functions.

    Comments do not count: an id stands in a name, a parameter's id, a docstring, or in the head of a transcript.
    """
    if path.suffix == ".txt":
        return ids_in(line for line in path.read_text().splitlines() if line.startswith("#")), set()
    texts, names = [], set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if node.name.startswith("test_"):
                names.add(node.name)
                texts += [node.name, ast.get_docstring(node) or ""]
        elif isinstance(node, ast.keyword) and node.arg in {"id", "ids"}:
            texts += [
                one.value
                for one in ast.walk(node.value)
                if isinstance(one, ast.Constant) and isinstance(one.value, str)
            ]
    return ids_in(texts), names


def listed_in(pages: Path) -> list[Row]:
    """Return the rows of all pages of a folder."""
    return [row for page in sorted(pages.rglob("*.md")) for row in rows(page)]


def problems(pages: Path, tests: Path) -> list[str]:
    """Return what does not agree, one line each."""
    by_file = {path.as_posix(): shown(path) for path in sorted([*tests.rglob("test_*.py"), *tests.rglob("*.txt")])}
    listed = listed_in(pages)
    found = []
    for row in listed:
        where = f"{row.page}:{row.line}: {row.id}"
        if not row.tests:
            found.append(f"{where}: its last column names no test: `tests/.../test_x.py::test_y`")
        for file, name in row.tests:
            ids, names = by_file.get(file, (set(), set()))
            if file not in by_file:
                found.append(f"{where}: {file} is no test file")
            elif row.id not in ids:
                found.append(f"{where}: no test of {file} has it in its name, parameter id or docstring")
            elif name and name not in names:
                found.append(f"{where}: {file} has no test {name}")
    known = [row.id for row in listed]
    found += [f"{pages}: {one} has {known.count(one)} rows" for one in sorted({*known}) if known.count(one) > 1]
    for file, (ids, _) in by_file.items():
        found += [f"{file}: shows {one}, of which {pages} has no row" for one in sorted(ids - {*known})]
    return found


def main() -> int:
    """Compare the pages with the tests of this tree."""
    found = problems(PAGES, TESTS)
    print("\n".join(found) or f"{len(listed_in(PAGES))} histories of {PAGES}, each shown by a test")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
