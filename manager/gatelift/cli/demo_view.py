"""What the demo shows: one row for each piece of work, one line for each promise. Pure: objects in, rows and text out.

Neighbours: `demo` reads the objects and keeps the promises; `listing` names a workload's state.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from gatelift.cli.listing import placement_of, situation_of
from gatelift.core import texts
from gatelift_admission.texts import BYPASSED
from gatelift_kinds.shared.made_for import owners_of
from gatelift_kube.objects.kueue import Workload

Json = Mapping[str, Any]

DELETED = "deleted"
QUEUED = "queued"
WAITS = "waits"
RUNS = "runs"
ADMITTED = "admitted"
FINISHED = "finished"
FAILED = "failed"
_STYLES = {WAITS: "yellow", QUEUED: "yellow", ADMITTED: "cyan", RUNS: "cyan", FINISHED: "green", DELETED: "dim"}
LIKE_ANOTHER = "one like it was tried just before and did not fit"
"""What Kueue's words for it (`BYPASSED`) mean, for who reads them for the first time."""
HEADINGS = ("WORK", "STATE", "CLUSTER", "WHY")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One piece of work as a person sees it in the management cluster."""

    kind: str
    name: str
    state: str
    cluster: str = ""
    why: str = ""

    @property
    def phase(self) -> str:
        """The state without figures: how many pods of a Job run changes with each of them."""
        return RUNS if self.state.startswith(RUNS) else self.state

    def __str__(self) -> str:
        where = f" on {self.cluster}" if self.cluster else ""
        return f"{self.kind} {self.name}: {self.state}{where}{f' ({self.why})' if self.why else ''}"


class StateMark(enum.Enum):
    """How far a promise is."""

    OPEN = " "
    DOING = ">"
    KEPT = "+"
    BROKEN = "x"


_MARK_STYLES = {StateMark.OPEN: "dim", StateMark.DOING: "bold", StateMark.KEPT: "green", StateMark.BROKEN: "red"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """One thing that the demo shows to be true."""

    text: str
    meanwhile: str = ""  # what one waits for while it is not kept yet, where that takes long
    mark: StateMark = StateMark.OPEN
    detail: str = ""

    def __str__(self) -> str:
        waited = f" ({self.meanwhile})" if self.meanwhile and self.mark is StateMark.DOING else ""
        return f"[{self.mark.value}] {self.text}{f': {self.detail}' if self.detail else ''}{waited}"


@dataclass(slots=True, kw_only=True)
class Board:
    """All that is shown at one moment."""

    promises: list[Promise] = field(default_factory=list)
    rows: dict[tuple[str, str], Row] = field(default_factory=dict)

    def mark(self, index: int, mark: StateMark, detail: str = "") -> Promise:
        """Change a promise and return it."""
        self.promises[index] = replace(self.promises[index], mark=mark, detail=detail)
        return self.promises[index]

    def update(self, rows: Iterable[Row]) -> list[Row]:
        """Take the rows of now and return those worth a line. A row that is there no more was deleted."""
        now = {(row.kind, row.name): row for row in rows}
        for key, old in self.rows.items():
            if key not in now:
                now[key] = replace(old, state=DELETED, why="") if old.state != DELETED else old
        news = [row for key, row in sorted(now.items()) if _is_news(self.rows.get(key), row)]
        self.rows = now
        return news

    def state(self, name: str) -> str:
        """Return the state of the work of this name, "" before it was seen."""
        return next((row.state for row in self.rows.values() if row.name == name), "")

    def row(self, name: str) -> Row | None:
        """Return the row of this name."""
        return next((row for row in self.rows.values() if row.name == name), None)

    def render(self, seconds: float) -> RenderableType:
        """Return the whole picture for a terminal."""
        lines = [
            Text(str(promise), style=_MARK_STYLES[promise.mark], no_wrap=True, overflow="ellipsis")
            for promise in self.promises
        ]
        return Group(Text(f"{seconds:4.0f} s"), *lines, Text(""), *table(sorted(self.rows.values(), key=_order)))


def _is_news(old: Row | None, row: Row) -> bool:
    """Say whether a row tells something new: another state or cluster, or for the first time why it waits.

    Work is in a queue for a moment before it is known whether it has to wait; and the figures in a reason change with
    all that happens beside it. Neither is worth a line.
    """
    if row.state in (QUEUED, WAITS):
        return bool(row.why) and (old is None or not old.why)
    return old is None or (old.phase, old.cluster) != (row.phase, row.cluster)


def _order(row: Row) -> tuple[str, str]:
    return row.kind, row.name


def table(rows: Sequence[Row]) -> list[Text]:
    """Return the rows as lines of equal columns; what is too wide for a terminal is cut there, never folded."""
    cells = [(f"{row.kind} {row.name}", row.state, row.cluster, row.why) for row in rows]
    widths = [
        max(len(heading), *(len(cell[index]) for cell in cells), 0) for index, heading in enumerate(HEADINGS[:-1])
    ]
    found = [_line(cell, widths, "", _STYLES.get(cell[1].split()[0], "red")) for cell in cells]
    return [_line(HEADINGS, widths, "bold", "bold"), *found]


def _line(cells: Sequence[str], widths: Sequence[int], style: str, state_style: str) -> Text:
    work, state, cluster = (f"{cell:<{width}}  " for cell, width in zip(cells[:-1], widths, strict=True))
    parts = (work, style), (state, state_style), (cluster + cells[-1], style)
    return Text.assemble(*parts, no_wrap=True, overflow="ellipsis")


def rows_of(pods: Iterable[Json], jobs: Iterable[Json], workloads: Iterable[Workload]) -> list[Row]:
    """Return a row for each pod and Job of the user, from these and from the Workloads made for them."""
    by_owner = {owner.uid: each for each in workloads for owner in owners_of(each)}
    rows = []
    for kind, objects in (("pod", pods), ("job", jobs)):
        for found in objects:
            metadata = found["metadata"]
            if any(owner.get("kind") == "Job" for owner in metadata.get("ownerReferences", ())):
                continue
            rows.append(_row(kind, found, by_owner.get(metadata["uid"])))
    return rows


def _row(kind: str, found: Json, workload: Workload | None) -> Row:
    name: str = found["metadata"]["name"]
    if workload is None:
        return Row(kind=kind, name=name, state=QUEUED)
    situation = situation_of(workload)
    cluster = placement_of(workload).cluster
    if found["metadata"].get("deletionTimestamp"):
        return Row(kind=kind, name=name, state="stopping", cluster=cluster)
    match situation.state:
        case texts.FINISHED:
            ended = FINISHED if situation.reason == "Succeeded" else f"{FAILED} ({situation.reason})"
            return Row(kind=kind, name=name, state=ended, cluster=cluster)
        case texts.ADMITTED:
            return Row(kind=kind, name=name, state=_running(kind, found), cluster=cluster)
        case texts.QUOTA_RESERVED:
            return Row(kind=kind, name=name, state="offered")
    why = LIKE_ANOTHER if situation.message == BYPASSED else situation.message
    return Row(kind=kind, name=name, state=WAITS, why=why)


def _running(kind: str, found: Json) -> str:
    """Return the state of admitted work: `runs` as soon as one pod does, with a count where there are several."""
    status = found.get("status", {})
    if kind == "pod":
        return RUNS if status.get("phase", "Pending") != "Pending" else ADMITTED  # a Workload finishes after its pod
    ready, ended = status.get("ready") or 0, status.get("succeeded") or 0
    return f"{RUNS} {ready} of {found['spec'].get('parallelism', 1)}" if ready or ended else ADMITTED


def finished_by_cluster(rows: Iterable[Row]) -> dict[str, int]:
    """Return how many pieces of work finished on each cluster."""
    counts: dict[str, int] = {}
    for row in rows:
        if row.state == FINISHED:
            counts[row.cluster] = counts.get(row.cluster, 0) + 1
    return dict(sorted(counts.items()))
