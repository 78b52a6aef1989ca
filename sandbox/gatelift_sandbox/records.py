"""What really ran, written by stand-in kubelets, and the outside check that no two placements of a workload overlapped.

A record file has one JSON object a line: one when a pod's containers start, one when they have stopped. Times are
monotonic seconds of this machine, so files of several clusters on it can be compared and no clock jump matters. Pure
but for `read`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from math import inf
from pathlib import Path

import msgspec

WORKLOAD_UID_LABEL = "gatelift.dev/workload-uid"
EPOCH_LABEL = "gatelift.dev/epoch"


class RunRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One run of the containers of one pod. `stopped` None: as far as is known they still run."""

    cluster: str
    node: str
    namespace: str
    name: str
    pod_uid: str
    workload_uid: str = ""
    epoch: int = 0
    started: float
    stopped: float | None = None
    exit_code: int | None = None


@dataclass(frozen=True, slots=True)
class Overlap:
    """Two pods of different placements of one workload that ran at the same time, and for how long (inf: still)."""

    first: RunRecord
    second: RunRecord
    seconds: float

    def __str__(self) -> str:
        one, two = (f"{r.cluster}/{r.namespace}/{r.name} (epoch {r.epoch})" for r in (self.first, self.second))
        return f"workload {self.first.workload_uid}: {one} and {two} ran together for {self.seconds:.3f} s"


_LINE = msgspec.json.Decoder(RunRecord)


def encode(record: RunRecord) -> bytes:
    """Return the record as one line."""
    return msgspec.json.encode(record) + b"\n"


def parse(text: bytes) -> list[RunRecord]:
    """Read lines; ValueError names the first that is none. A last line cut short (a killed writer) is left out."""
    found = []
    lines = text.split(b"\n")
    for number, line in enumerate(lines[:-1], start=1):
        try:
            found.append(_LINE.decode(line))
        except msgspec.DecodeError as problem:
            raise ValueError(f"line {number} is no record: {problem}") from None
    return found


def read(*paths: Path) -> list[RunRecord]:
    """Read record files; one that is not there yet holds nothing."""
    return [record for path in paths if path.exists() for record in parse(path.read_bytes())]


def runs(records: Iterable[RunRecord]) -> list[RunRecord]:
    """Join the lines of each pod into one run: from its first start to its last stop, in order of start.

    A pod whose containers restart, or whose kubelet was restarted, has several lines; in between it counts as running.
    """
    by_pod: dict[tuple[str, str], RunRecord] = {}
    for record in records:
        key = (record.cluster, record.pod_uid)
        known = by_pod.get(key)
        started = record.started if known is None else min(known.started, record.started)
        by_pod[key] = msgspec.structs.replace(record, started=started)
    return sorted(by_pod.values(), key=lambda record: record.started)


def overlaps(records: Iterable[RunRecord]) -> list[Overlap]:
    """Return each pair of pods of one workload that ran at the same time in two placements.

    A placement is (workload, epoch, cluster), so the same epoch in two clusters counts too. Pods without a workload UID
    are nobody's. One that stops in the very moment in which the other starts does not overlap it.
    """
    by_workload: dict[str, list[RunRecord]] = defaultdict(list)
    for run in runs(records):
        if run.workload_uid:
            by_workload[run.workload_uid].append(run)
    found = []
    for members in by_workload.values():
        if len({(run.epoch, run.cluster) for run in members}) > 1:
            found += _overlaps_of_one(members)
    return found


def _overlaps_of_one(members: list[RunRecord]) -> list[Overlap]:
    found = []
    active: list[RunRecord] = []
    for later in members:  # in order of start
        active = [run for run in active if _end(run) > later.started]
        found += [
            Overlap(earlier, later, min(_end(earlier), _end(later)) - later.started)
            for earlier in active
            if (earlier.epoch, earlier.cluster) != (later.epoch, later.cluster)
        ]
        active.append(later)
    return found


def _end(run: RunRecord) -> float:
    return inf if run.stopped is None else run.stopped
