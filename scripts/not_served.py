"""Generates the tables of `docs/not-served.md` from what the webhooks answer with. `--check` writes nothing.

python -m scripts.not_served [--check]
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from gatelift_kinds.shared import unserved
from gatelift_kinds.shared.asked_for import shown
from gatelift_kinds.shared.not_served import TABLE, NotServedRow, Treatment

PAGE = Path(__file__).parent.parent / "docs" / "not-served.md"
BEGIN = "<!-- Made by scripts/not_served.py from gatelift_kinds.shared.not_served. Do not edit up to the end. -->"
END = "<!-- The end of what is made. -->"
TITLES = (
    (Treatment.REFUSED, "Hard constraints: refused"),
    (Treatment.WARNED, "Wishes: taken, with a warning"),
    (Treatment.LEFT, "Left as it is"),
)
SAID = {
    Treatment.REFUSED: "The object is not taken; the message is what stands here.",
    Treatment.WARNED: "The object is taken, and the API's warning, which `kubectl` shows, is what stands here.",
    Treatment.LEFT: "Nothing is said: controllers of Kueue write it for each other, or it means nothing by itself.",
}


def table() -> str:
    """Return what belongs between the marks of the page."""
    parts = [BEGIN]
    for answer, title in TITLES:
        parts += ["", f"## {title}", "", SAID[answer], "", *_rows(entry for entry in TABLE if entry.answer is answer)]
    parts += ["", "## Kinds on which a queue's name is refused", ""]
    parts += ["| kind | group | the way out |", "|---|---|---|"]
    parts += [f"| {one.kind} | {one.group or 'core'} | {unserved.way_out(one)} |" for one in unserved.MAKERS]
    return "\n".join([*parts, "", END])


def _rows(entries: Iterable[NotServedRow]) -> Iterator[str]:
    yield from ("| kind | where | asked for by | what is so |", "|---|---|---|---|")
    for entry in entries:
        values = " or ".join(f"`{str(value).lower() if value is True else value}`" for value in entry.values)
        yield f"| {', '.join(entry.kinds)} | `{shown(entry.path)}` | {values or 'any value'} | {entry.text} |"


def content(page: str) -> str:
    """Return the page with its tables as they should be. ValueError: its marks are gone."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"{PAGE.name} has lost the marks between which its tables stand")
    return before + table() + after


def main() -> int:
    """Write the page, or check it."""
    page = PAGE.read_text()
    if "--check" in sys.argv[1:]:
        current = page == content(page)
        print(
            f"{len(TABLE)} rows of {PAGE.name}"
            if current
            else f"{PAGE} is out of date: run `python -m scripts.not_served`"
        )
        return 0 if current else 1
    PAGE.write_text(content(page))
    print(PAGE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
