"""The end of each daemon's log, for whoever reads a failed run and sees nothing else of the machine that it ran on."""

from __future__ import annotations

from pathlib import Path

LINES = 30
"""Of each log: the last half minute or so of a daemon that has something to do."""
LINE_MAX = 600
"""Characters of a line: an object in a message is cut, not the lines after it."""


def tails(folder: Path) -> list[tuple[str, str]]:
    """Return (name, last lines) of each log in a folder, in order of name."""
    found = []
    for log in sorted(folder.glob("*.log")):
        lines = log.read_text(errors="replace").splitlines()[-LINES:]
        found.append((log.name, "\n".join(line[:LINE_MAX] for line in lines)))
    return found


def told(folder: Path) -> str:
    """Return the same as one text."""
    return "\n".join(f"--- end of {name}\n{text}" for name, text in tails(folder))
