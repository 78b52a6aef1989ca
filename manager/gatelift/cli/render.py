"""Tables by default, JSON and YAML on request. Renders, decides nothing."""

from __future__ import annotations

import datetime as dt
import enum
import json
import math
from collections.abc import Sequence
from typing import Any, Self

import yaml
from rich.cells import cell_len, set_cell_size
from rich.console import Console

from gatelift.cli.sentences import CHARS_MAX
from gatelift_kube.values import timestamps
from gatelift_kube.values.plain_text import plain

GAP = "  "
"""Between columns."""
ESSENTIAL = frozenset({"STATE", "CLUSTER"})
"""Columns that a narrow terminal shows: what people look for. Names before them are shortened in their middle."""
SHORTENED_MIN = 9
"""Of a name that is shortened: its beginning says what it is, its end tells it from others."""
KEYS = {"age": "created_at", "certificate": "certificate_issued_at"}
"""Keys of columns that show people how long ago something was, and programs when."""
NUMBERS = frozenset({"session", "term"})
"""Columns of numbers that may be missing: an empty cell is null for programs."""
LISTS = frozenset({"notes"})
"""Columns of several words for people: a list for programs."""


class Typed(str):
    """A text for people that is `document` for programs: JSON and YAML show that."""

    __slots__ = ("document",)
    document: Any

    def __new__(cls, text: str, document: Any) -> Self:
        """Return the text with what it stands for."""
        made = super().__new__(cls, text)
        made.document = document
        return made

    def __deepcopy__(self, _memo: dict[int, Any]) -> Typed:
        """Return itself: nobody changes it."""
        return self


class Output(enum.StrEnum):
    """How results are printed."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


def show(columns: Sequence[str], rows: Sequence[Sequence[object]], output: Output, *, nothing: str) -> None:
    """Print rows. JSON and YAML are lists of objects with the column names as keys, lower case, `_` for space.

    Programs get moments, numbers and lists where people get ages and words (`Typed`, `KEYS`, `NUMBERS`, `LISTS`).
    """
    if output is not Output.TABLE:
        keys = [column.lower().replace(" ", "_") for column in columns]
        dump([dict(_entry(*pair) for pair in zip(keys, row, strict=True)) for row in rows], output)
        return
    console = Console(highlight=False, markup=False)
    width = console.width if console.is_terminal else None
    for line in lines(columns, rows, width) if rows else [nothing]:
        console.print(line, soft_wrap=True)


def _entry(key: str, cell: object) -> tuple[str, object]:
    if key in NUMBERS and cell == "":
        return key, None
    if key in LISTS:
        return key, str(cell).split(", ") if cell else []
    return KEYS.get(key, key), cell


def typed(value: Any) -> Any:
    """Return a document with what its texts stand for, where they stand for more."""
    if isinstance(value, Typed):
        return typed(value.document)
    if isinstance(value, dict):
        return {key: typed(one) for key, one in value.items()}
    return [typed(one) for one in value] if isinstance(value, list | tuple) else value


def lines(columns: Sequence[str], rows: Sequence[Sequence[object]], width: int | None = None) -> list[str]:
    """Return a table in kubectl's manner: no rules, upper-case headers, one line a row.

    The last column may be long. `width`: cut lines there, with an ellipsis (a terminal); None cuts nothing (a pipe).
    """
    cells = [[column.upper() for column in columns]] + [
        ["" if cell is None else plain(" ".join(str(cell).split()), CHARS_MAX) for cell in row] for row in rows
    ]
    widths = [max(cell_len(line[index]) for line in cells) for index in range(len(columns))]
    if width is not None:
        widths = _narrowed(cells[0], widths, width)
        cells = [[_shortened(cell, size) for cell, size in zip(line, widths, strict=True)] for line in cells]
    made = []
    for line in cells:
        padded = [set_cell_size(cell, size) for cell, size in zip(line[:-1], widths[:-1], strict=True)]
        text = GAP.join([*padded, line[-1]]).rstrip()
        made.append(text if width is None or cell_len(text) <= width else set_cell_size(text, width - 1) + "…")
    return made


def _narrowed(header: Sequence[str], widths: list[int], width: int) -> list[int]:
    """Return widths with which all essential columns are inside; others are left, as they are cut at the end."""
    wanted = [index for index, name in enumerate(header) if name in ESSENTIAL]
    if not wanted:
        return widths
    made, last = list(widths), max(wanted)
    while sum(made[: last + 1]) + len(GAP) * last >= width:  # one is for the ellipsis of what is cut behind them
        able = [index for index in range(last) if header[index] not in ESSENTIAL and made[index] > SHORTENED_MIN]
        if not able:
            break
        made[max(able, key=made.__getitem__)] -= 1
    return made


def _shortened(cell: str, size: int) -> str:
    """Return a cell that fits: what it says at its beginning and at its end."""
    if cell_len(cell) <= size:
        return cell
    end = (size - 1) // 2
    return set_cell_size(cell, size - 1 - end).rstrip() + "…" + cell[len(cell) - end :]


def dump(document: Any, output: Output) -> None:
    """Print a document as JSON or YAML."""
    document = typed(document)
    if output is Output.YAML:
        print(yaml.safe_dump(document, sort_keys=False), end="")  # noqa: T201  # what the verb is for
    else:
        print(json.dumps(document, indent=2, default=str))  # noqa: T201  # what the verb is for


def age(timestamp: str | None, now: dt.datetime) -> str:
    """Return `5s`, `12m`, `3h`, `8d` since an RFC 3339 time, "" when there is none; for programs it is that time."""
    return Typed(_age(timestamp, now), timestamp or None)


def _age(timestamp: str | None, now: dt.datetime) -> str:
    if not timestamp:
        return ""
    seconds = max(0, math.trunc(now.timestamp() - timestamps.to_seconds(timestamp)))
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds >= 2 * size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"
