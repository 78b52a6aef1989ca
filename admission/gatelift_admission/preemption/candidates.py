"""Candidates for preemption and their order: policies and streams of candidates, nothing decided yet.

A stream yields what one ClusterQueue holds, already in order, so that a search stops reading as soon as it has
enough. Neighbours: `holders` keeps the order, `classical` and `fair` choose among what streams yield.
"""

from __future__ import annotations

import enum
import heapq
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from gatelift_admission.charges.holders import Holders, VictimKey
from gatelift_admission.entries.entry import Entry, Phase
from gatelift_admission.entries.standings import FAULTY
from gatelift_admission.quota.nodes import TreeNode
from gatelift_admission.quota.tree import Tree
from gatelift_admission.values.model import Cell, Usage
from gatelift_kube.objects.kueue import Preemption

NEVER: Final = "Never"
ANY: Final = "Any"
LOWER_OR_NEWER: Final = "LowerOrNewerEqualPriority"


class Reason(enum.Enum):
    """Why a workload is preempted: `value` is the reason of the condition Preempted."""

    IN_QUEUE = "InClusterQueue"
    RECLAIM = "InCohortReclamation"
    FAIR_SHARING = "InCohortFairSharing"
    RECLAIM_WHILE_BORROWING = "InCohortReclaimWhileBorrowing"


class Target(NamedTuple):
    """A workload that has to leave, where it holds quota, and why."""

    entry: Entry
    node: TreeNode
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Seeker:
    """The workload that needs room: its queue's node and policy, its place in the order, and what it would use."""

    node: TreeNode
    policy: Preemption
    priority: int
    timestamp: float
    usage: Usage
    needs: frozenset[Cell]
    """Cells in which a victim is needed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """Where victims are looked for. `claimed`: UIDs that count as gone already.

    `closed`: inactive queues; Kueue's snapshot leaves them out, so what they hold counts and is never taken.
    `unreachable`: UIDs that cannot be stopped now; what they hold counts, too, and asking them would bring nothing.
    """

    tree: Tree
    holders: Holders
    claimed: frozenset[str] = field(default_factory=frozenset)
    closed: Collection[str] = frozenset()
    unreachable: Collection[str] = frozenset()
    spared: tuple[tuple[dict[str, int], int], ...] = ()
    """Workloads that the seeker does not preempt (`Entry.spares`): UIDs with a number below the one beside them."""
    outside: tuple[int, int] | None = None
    """What has happened from outside by now: a workload that was preempted since is not preempted again."""
    chain: str = ""
    """That of which the seeker is a slice, "" for none: nobody of it leaves for the seeker."""


@dataclass(frozen=True, slots=True)
class CandidateStream:
    """What one queue offers. `lca`: the lowest cohort above both queues; None for the seeker's own queue."""

    node: TreeNode
    policy: str
    lca: TreeNode | None = None
    advantage: bool = False
    """The seeker's side stays within its own quota below `lca` (hierarchical advantage)."""


class Candidate(NamedTuple):
    """One workload of a stream. Candidates compare by their keys, no two of which are equal."""

    key: VictimKey
    entry: Entry
    stream: CandidateStream


def allows(policy: str, seeker: Seeker, priority: int, timestamp: float) -> bool:
    """Return whether `policy` lets the seeker preempt a workload of this priority and queue timestamp."""
    if policy == ANY:
        return True
    if policy == NEVER:
        return False
    if seeker.priority > priority:
        return True
    return policy == LOWER_OR_NEWER and seeker.priority == priority and seeker.timestamp < timestamp


def read(scene: Scene, seeker: Seeker, stream: CandidateStream, *, leaving: bool) -> Iterator[Candidate]:
    """Yield the candidates of one stream in order: lower priority, later reservation, UID."""
    known = scene.holders.of(stream.node.name)
    if stream.policy == NEVER or stream.node.name in scene.closed:
        return
    everybody, holds, unreachable = stream.policy == ANY, scene.holders.holds, scene.unreachable
    for key in known.leaving if leaving else known.running:
        priority, _, uid = key
        if priority > seeker.priority and not everybody:
            return
        hold = holds[uid]
        if uid in scene.claimed or uid in unreachable or seeker.needs.isdisjoint(hold.cells):
            continue
        entry = known.entries[uid]
        if (scene.spared and spares(scene, uid)) or (entry.preempted_of is not None and again(scene, entry)):
            continue
        if entry.of_chain is not None and (entry.of_chain.chain == scene.chain or entry.phase is Phase.ASSUMED):
            continue  # its own; or one that took its chain's place just now, of which nothing is written yet
        if entry.standing is FAULTY:
            continue  # it is not known whether it could be stopped
        if priority < seeker.priority or allows(stream.policy, seeker, priority, hold.timestamp):
            yield Candidate(key, entry, stream)


def spares(scene: Scene, uid: str) -> bool:
    """Return whether the seeker has lost to this workload."""
    for admitted, before in scene.spared:  # noqa: SIM110 - a generator costs more than what it asks
        if admitted.get(uid, before) < before:
            return True
    return False


def again(scene: Scene, entry: Entry) -> bool:
    """Return whether an entry was preempted and admitted again, and nothing has happened from outside since."""
    return entry.preempted_of == scene.outside and not scene.holders.holds[entry.uid].evicted


def merged(scene: Scene, seeker: Seeker, streams: Iterable[CandidateStream], *, leaving: bool) -> Iterator[Candidate]:
    """Yield the candidates of several streams as one ordered stream."""
    listed = []
    for stream in streams:
        known = scene.holders.of(stream.node.name)
        if known.leaving if leaving else known.running:
            listed.append(read(scene, seeker, stream, leaving=leaving))
    return listed[0] if len(listed) == 1 else heapq.merge(*listed)


def any_of(scene: Scene, seeker: Seeker, streams: Iterable[CandidateStream]) -> bool:
    """Return whether at least one of the streams has a candidate."""
    for stream in streams:
        for leaving in (False, True):
            for _ in read(scene, seeker, stream, leaving=leaving):
                return True
    return False


def enough(scene: Scene, seeker: Seeker, streams: Iterable[CandidateStream]) -> bool:
    """Return False if the seeker would not fit even with all candidates of `streams` gone, by sums alone.

    What is freed anywhere raises what is available by at most as much, so a sum that is too small ends the search.
    """
    listed = list(streams)
    for cell, amount in seeker.usage.items():
        missing = amount - scene.tree.available(seeker.node, cell)
        if amount <= 0 or missing <= 0:
            continue
        for stream in listed:
            if missing <= 0:
                break
            missing -= obtainable(scene.holders, stream, cell, seeker.priority)
        if missing > 0:
            return False
    return True


def obtainable(holders: Holders, stream: CandidateStream, cell: Cell, priority: int) -> int:
    """Return how much of `cell` the candidates of a stream hold, or somewhat more."""
    known = holders.of(stream.node.name)
    if stream.policy == ANY:
        return known.total(cell)
    if stream.policy == NEVER:
        return 0
    return known.below(cell, priority, equal=stream.policy == LOWER_OR_NEWER)
