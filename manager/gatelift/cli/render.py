"""Tables by default, JSON and YAML on request. Renders, decides nothing."""

from __future__ import annotations

import datetime as dt
import enum
import json
from collections.abc import Sequence
from typing import Any

import yaml
from rich.console import Console
from rich.table import Table

from gatelift_kube import timestamps


class Output(enum.StrEnum):
    """How results are printed."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


def show(columns: Sequence[str], rows: Sequence[Sequence[object]], output: Output, *, nothing: str) -> None:
    """Print rows. JSON and YAML are lists of objects with the column names as keys, lower case, `_` for space."""
    if output is Output.TABLE:
        if not rows:
            Console().print(nothing, highlight=False)
            return
        Console().print(table(columns, rows))
        return
    keys = [column.lower().replace(" ", "_") for column in columns]
    dump([dict(zip(keys, row, strict=True)) for row in rows], output)


def table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> Table:
    """Return a plain table in kubectl's manner: no lines, upper-case headers."""
    made = Table(box=None, pad_edge=False, show_edge=False, header_style="bold")
    for column in columns:
        made.add_column(column.upper(), no_wrap=column in {"Name", "Namespace", "Age", "Epoch"}, overflow="fold")
    for row in rows:
        made.add_row(*("" if cell is None else str(cell) for cell in row))
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
    seconds = max(0, int(now.timestamp() - timestamps.to_seconds(timestamp)))
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds >= 2 * size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"
