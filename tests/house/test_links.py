"""Pages lead to files that are there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
PAGES = (
    *sorted((ROOT / "docs").rglob("*.md")),
    *(ROOT / f"{name}.md" for name in ("README", "ARCHITECTURE", "CHANGELOG")),
)


def dead(page: Path) -> list[str]:
    """Return the links of a page to files that are not there."""
    links = LINK.findall(page.read_text(encoding="utf-8"))
    return [link for link in links if "://" not in link and not (page.parent / link).exists()]


def test_no_link_of_a_page_is_dead() -> None:
    assert len(PAGES) > 60
    assert {page.name: found for page in PAGES if (found := dead(page))} == {}
