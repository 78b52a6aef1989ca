"""What ARCHITECTURE gives to read in order stays short enough to be read: five files, 1,000 lines together."""

from __future__ import annotations

import re

from scripts.rooms import ROOT

LINES_MAX = 1_000
ROW = re.compile(r"^\d\. `([\w/]+\.py)`", re.MULTILINE)


def test_the_five_files_to_read_first_have_a_thousand_lines_at_most() -> None:
    lines = {
        name: len((ROOT / name).read_text().splitlines())
        for name in ROW.findall((ROOT / "ARCHITECTURE.md").read_text())
    }
    assert len(lines) == 5
    assert sum(lines.values()) <= LINES_MAX, lines
