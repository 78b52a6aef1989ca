"""The README says what is needed for what it, and the first page that it sends people to, have them type."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```\n(.*?)^```", re.MULTILINE | re.DOTALL)
SHELL = {"source", "export", "cd"}
OURS = {"gatelift"}


def programs(page: str) -> set[str]:
    """Return the programs that lines of code in a page begin with, those of the shell and our own aside."""
    text = (ROOT / page).read_text()
    lines = [line for block in FENCE.findall(text) for line in block.splitlines()]
    commands = {line.split()[0] for line in lines if re.match(r"[a-z][a-z0-9-]* ", line)}
    return commands - SHELL - OURS


def test_is_53_what_people_type_is_named_as_needed() -> None:
    needs = (ROOT / "README.md").read_text().partition("## Two commands")[2].partition("```")[0]
    typed = programs("README.md") | programs("docs/getting-started.md")
    assert {"make", "kubectl"} <= typed
    assert [one for one in sorted(typed) if f"`{one}`" not in needs] == []
    assert "Python 3.11" in needs
    assert "Linux" in needs
