"""Draws the state tables of the code into the documents, between `<!-- diagram: NAME -->` and `<!-- end -->`.

`python scripts/diagrams.py` rewrites the documents; with `--check` it only says which are behind (a test does that).
A table is `dict[state, dict[step, state]]` over enums; a new diagram is one line in `DIAGRAMS` and two markers.
"""

from __future__ import annotations

import enum
import importlib
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagram:
    """One diagram: where it stands and which table it shows. `first` is the state in which all begins."""

    name: str
    document: str
    module: str
    table: str
    first: str


DIAGRAMS = (
    Diagram(
        name="session", document="docs/wire.md", module="gatelift_wire.sessions.session", table="TABLE", first="CLOSED"
    ),
)


def mermaid(table: Mapping[enum.Enum, Mapping[enum.Enum, enum.Enum]], first: str) -> str:
    """Return the table as a mermaid state diagram; steps between the same two states share one arrow."""
    lines = ["```mermaid", "stateDiagram-v2", f"    [*] --> {first}"]
    for state, steps in table.items():
        arrows: dict[str, list[str]] = {}
        for step, following in steps.items():
            arrows.setdefault(following.name, []).append(str(step.value))
        lines += [f"    {state.name} --> {name}: {', '.join(labels)}" for name, labels in arrows.items()]
    return "\n".join([*lines, "```"])


def drawn(diagram: Diagram, text: str) -> str:
    """Return the document with this diagram drawn anew. Raises ValueError when its markers are missing."""
    table = getattr(importlib.import_module(diagram.module), diagram.table)
    start, end = f"<!-- diagram: {diagram.name} -->", "<!-- end -->"
    pattern = re.compile(re.escape(start) + r".*?" + re.escape(end), re.DOTALL)
    if not pattern.search(text):
        raise ValueError(f"{diagram.document}: needs the lines {start} and {end}")
    picture = f"{start}\n{mermaid(table, diagram.first)}\n{end}"
    return pattern.sub(lambda _: picture, text)


def main(arguments: list[str]) -> int:
    """Rewrite, or with --check only compare; returns the exit code."""
    behind = []
    for diagram in DIAGRAMS:
        path = ROOT / diagram.document
        before = path.read_text()
        after = drawn(diagram, before)
        if after == before:
            continue
        behind.append(f"{diagram.document}: the diagram {diagram.name} is behind; run scripts/diagrams.py")
        if "--check" not in arguments:
            path.write_text(after)
            print(f"{diagram.document}: drew {diagram.name}")
    if "--check" in arguments and behind:
        print("\n".join(behind))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
