"""Tables by default, JSON and YAML on request. Renders, decides nothing."""

from __future__ import annotations

import datetime as dt
import enum
import json
import math
from collections.abc import Sequence
from typing import Any

import yaml
from rich.cells import cell_len, set_cell_size
from rich.console import Console

from gatelift.cli.sentences import CHARS_MAX
from gatelift_kube import timestamps
from gatelift_kube.plain_text import plain

GAP = "  "
"""Between columns."""


class Output(enum.StrEnum):
    """How results are printed."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


def show(columns: Sequence[str], rows: Sequence[Sequence[object]], output: Output, *, nothing: str) -> None:
    """Print rows. JSON and YAML are lists of objects with the column names as keys, lower case, `_` for space."""
    if output is not Output.TABLE:
        keys = [column.lower().replace(" ", "_") for column in columns]
        dump([dict(zip(keys, row, strict=True)) for row in rows], output)
        return
    console = Console(highlight=False, markup=False)
    width = console.width if console.is_terminal else None
    for line in lines(columns, rows, width) if rows else [nothing]:
        console.print(line, soft_wrap=True)


def lines(columns: Sequence[str], rows: Sequence[Sequence[object]], width: int | None = None) -> list[str]:
    """Return a table in kubectl's manner: no rules, upper-case headers, one line a row.

    The last column may be long. `width`: cut lines there, with an ellipsis (a terminal); None cuts nothing (a pipe).
    """
    cells = [[column.upper() for column in columns]] + [
        ["" if cell is None else plain(" ".join(str(cell).split()), CHARS_MAX) for cell in row] for row in rows
    ]
    widths = [max(cell_len(line[index]) for line in cells) for index in range(len(columns))]
    made = []
    for line in cells:
        padded = [set_cell_size(cell, size) for cell, size in zip(line[:-1], widths[:-1], strict=True)]
        text = GAP.join([*padded, line[-1]]).rstrip()
        made.append(text if width is None or cell_len(text) <= width else set_cell_size(text, width - 1) + "…")
    return made


def dump(document: Any, output: Output) -> None:
    """Print a document as JSON or YAML."""
    if output is Output.YAML:
        print(yaml.safe_dump(document, sort_keys=False), end="")  # noqa: T201  # what the verb is for
    else:
        print(json.dumps(document, indent=2, default=str))  # noqa: T201  # what the verb is for


def age(timestamp: str | None, now: dt.datetime) -> str:
    """Return `5s`, `12m`, `3h`, `8d` since an RFC 3339 time, "" when there is none."""
    if not timestamp:
        return ""
    seconds = max(0, math.trunc(now.timestamp() - timestamps.to_seconds(timestamp)))
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds >= 2 * size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"
