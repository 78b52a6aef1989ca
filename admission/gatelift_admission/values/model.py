"""The values of the engine: what waits, what was granted, and what a cycle decides. No behaviour beyond arithmetic.

`entry.Entry` is the engine's record of a Workload; here are the immutable parts it is made of and the decisions that
leave the engine. Amounts are ints as `amounts` defines them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final, NamedTuple

from gatelift_admission.values.transformations import Transformation
from gatelift_kube.objects.core import Toleration
from gatelift_kube.objects.kueue import Admission
from gatelift_kube.values.resources import ObjectKey

Cell = tuple[str, str]
"""(flavor, resource): the unit in which quota is counted."""
CELLS_MAX: Final = 4096
"""Cells that are one object each: more than a management cluster has flavors times resources."""
Amounts = dict[str, int]
"""Resource name to amount."""
Usage = dict[Cell, int]


@lru_cache(maxsize=CELLS_MAX)
def cell_of(flavor: str, resource: str) -> Cell:
    """Return a cell, the same object each time: a dict finds that without comparing names."""
    return flavor, resource


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSetDemand:
    """One pod set as it waits: its effective count and what one pod requests, defaults and overhead included."""

    name: str
    count: int
    min_count: int | None
    per_pod: Amounts
    node_selector: dict[str, str]
    affinity: dict[str, Any] | None
    tolerations: tuple[Toleration, ...]
    group: str = ""
    """Pod sets of one group get their flavors together; "": it is by itself."""

    def reduced(self, count: int) -> PodSetDemand:
        """Return the same pod set with fewer pods."""
        return replace(self, count=count)

    def totals(self) -> Amounts:
        """Return what all pods request together, saturating."""
        return {name: min(amount * self.count, 2**63 - 1) for name, amount in self.per_pod.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class ElasticSlice:
    """Which slice of which chain a workload is: all Workloads of one elastic object in a row (KEP-77, decision 106)."""

    chain: str
    """What all of a chain have in common: the UID of its first slice."""
    number: int
    """Of the size, which only grows: of two slices that hold quota the one with the higher number is charged."""
    by_parts: bool = False
    """Any size between what is granted and what is wanted will do, else all that is wanted or nothing."""
    since: float = 0.0
    """Unix time of the chain's beginning, by which it is newer or older than others as a victim; 0: of this slice."""


class Reserve(NamedTuple):
    """Quota is reserved, and already charged inside the engine: write it, or call `Engine.forget`.

    `checks` are the AdmissionChecks that the assigned flavors require, in name order; when it is empty the caller
    writes Admitted=True in the same patch. `message` is the text of QuotaReserved=True, `event` that of the event. It
    is a tuple, unlike most decisions, because each admission makes one.
    """

    uid: str
    key: ObjectKey
    admission: Admission
    checks: tuple[str, ...]
    wait_seconds: float
    flavors_considered: str
    message: str
    event: str
    replaces: str = ""
    """UID of the slice whose place it takes in its chain: its charge has gone over, and goes back if this is forgotten.
    `admission` is all that the chain is charged from now on, which may be more than this slice asks for."""


class Inadmissible(NamedTuple):
    """QuotaReserved=False with this reason and message; sent only when one of both differs from what was told last.

    `numbers_only`: just figures inside the message changed, so the write may wait and be merged with the next. A tuple,
    too: nearly each that waits is told so.
    """

    uid: str
    key: ObjectKey
    reason: str
    message: str
    numbers_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Evict:
    """A workload with quota has to stop: its queue drains, or it was deactivated. Its charge stays until released."""

    uid: str
    key: ObjectKey
    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreserve:
    """A reserved, not yet admitted workload loses its quota: QuotaReserved=False with this reason and message."""

    uid: str
    key: ObjectKey
    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Preempt:
    """A workload with quota has to stop for another one: Evicted=True (Preempted) and Preempted=True with `reason`.

    Decided once per reservation of the victim, whose charge stays until it is released. `message` is that of both
    conditions, `event` that of the victim's event Preempted, `preemptor_message` that of the preemptor's event
    PreemptedWorkload.
    """

    uid: str
    key: ObjectKey
    reason: str
    message: str
    event: str
    preemptor_uid: str
    preemptor: ObjectKey
    preemptor_message: str


Decision = Reserve | Inadmissible | Evict | Unreserve | Preempt


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A workload that raised an exception as it was looked at, and is set aside (`faults`)."""

    uid: str
    key: ObjectKey
    error: Any
    """The Exception: mypyc finds no such name in a dataclass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleResult:
    """What one call of `Engine.cycle` decided; `more`: work is left that needs no further event, call again."""

    decisions: tuple[Decision, ...] = ()
    faults: tuple[Fault, ...] = ()
    more: bool = False
    nominations: int = 0


WAKE_PERIOD: Final = 0.05
"""Recommended seconds of collecting wake-ups; the curve is in docs/decisions."""
WAKE_PERIOD_MAX: Final = 1.0
"""Recommended limit of their growth: Kueue's fixed period."""
PREEMPTION_PATIENCE: Final = 1.0
"""Recommended seconds for which what is about to end by itself is not preempted."""
TEXT_REFRESH: Final = 2.0
"""Recommended seconds of rest before texts are brought up to date: an end and what follows from it are one change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings:
    """Process-wide choices of the engine.

    `pending_text_after`: seconds a workload waits unevaluated before its condition says so (one write fewer for all
    that are admitted sooner). `excluded_prefixes`: resources whose name starts so are not counted.
    """

    pending_text_after: float = 1.0
    excluded_prefixes: tuple[str, ...] = ()
    transformations: tuple[Transformation, ...] = ()
    """How the rest is counted in other resources."""
    ignore_undeclared: bool = False
    priority_boost: bool = False
    """The annotation `kueue.x-k8s.io/priority-boost` adds to the priority (Kueue's gate PriorityBoost)."""
    reclaimable_pods: bool = True
    """Pods that are done need quota no longer while others run (KEP-78, Kueue's gate ReclaimablePods)."""
    by_creation: bool = False
    """Whose pods were not ready in time keeps its place in the queue (`requeuingStrategy.timestamp: Creation`)."""
    wake_period: float = 0.0
    """Seconds for which what comes free in a cohort tree is collected before what was inadmissible is woken by it.

    Kueue takes 1 s. Who heads a queue waiting for just that, and whatever arrives, is looked at without delay. Longer
    periods leave quota idle; shorter ones let low priorities in that are preempted soon (docs/decisions)."""
    wake_period_max: float = 0.0
    """Up to so many seconds the period of a tree grows while those who were let in are preempted soon after; no more
    than `wake_period`: it stays as it is."""
    preemption_patience: float = 0.0
    """Seconds for which a preemptor waits before anybody is asked to leave for it, where something of what it lacks has
    come free by itself within as long; 0: never, as in Kueue."""
    text_refresh: float = 0.0
    """Seconds for which nothing has happened in a cohort tree before the figures in its texts are brought up to date;
    0: never, as in Kueue."""
    fair_sharing: tuple[str, ...] = ()
    """Preemption strategies of fair sharing in order (KEP-1714); empty: classical order and preemption."""
    kept_out: tuple[tuple[str, str], ...] = ()
    """Reasons, with how their messages begin, that the caller gives for what it keeps out (`Engine.block`): over for
    what it lets queue again, whoever wrote them."""


@dataclass(slots=True, kw_only=True)
class Counts:
    """Workloads of a queue by class of life, and their usage; `reserved` includes the admitted ones."""

    pending: int = 0
    reserving: int = 0
    admitted: int = 0
    reserved_usage: Usage = field(default_factory=dict)
    admitted_usage: Usage = field(default_factory=dict)
