"""RM-10: the table of everyday changes in ARCHITECTURE.md names files that are there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "ARCHITECTURE.md"
HEADING = "## Where to change what"
LINES_MAX = 150


def rows() -> list[tuple[str, list[str]]]:
    """Return each question with its files; one without a folder is beside the one before it."""
    found = []
    for line in PAGE.read_text().partition(HEADING)[2].splitlines():
        cells = re.fullmatch(r"\| (.+) \| (.+) \|", line)
        if cells is None or cells[1] == "question":
            continue
        folder, files = Path(), []
        for name in re.findall(r"`([^`]+)`", cells[2]):
            path = Path(name) if "/" in name else folder / name
            folder = path.parent
            files.append(str(path))
        found.append((cells[1], files))
    return found


def test_rm_10_twelve_everyday_changes_have_a_file_each_and_it_is_there() -> None:
    assert len(rows()) >= 12
    for question, files in rows():
        assert files, question
        assert [name for name in files if not (ROOT / name).is_file()] == [], question


def test_the_page_can_be_read_in_one_sitting() -> None:
    assert len(PAGE.read_text().splitlines()) < LINES_MAX
