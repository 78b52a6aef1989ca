"""What a state of the model holds, and the nine rules of sizes that can be taken out of it. Plain values.

One chain, placed once on one cluster (epoch 1). Pods of a pod set are alike, so they are counts: that is the symmetric
reduction. A write that is late is dropped as soon as another one lands on its object, since it carries the
resourceVersion that it was decided on: so no versions are needed. A message is never used up, and may be delivered
again or never until its session ends (R6). After a release nothing is placed again: what lands or is let go from then
on is what breaks a promise.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

Counts = tuple[int, int]
"""How many of each of the two pod sets."""

NONE: Counts = (0, 0)
POD_SETS = (0, 1)
LET_GO_MAX = 2
"""More pods that were let go are not told apart: no pod set has more slots."""


class SizeRule(StrEnum):
    """A rule of sizes, by its number; of two of them the halves can be taken out alone."""

    ONE_RECORD = "1"
    CHARGE_FOLLOWS_ANSWER = "2"
    NO_DEADLINE = "3"
    SIZES_GO_UP = "4"
    ANSWER_NAMES_SIZE = "5"
    ANSWER_WAITS_FOR_PODS = "6, pods"
    ANSWER_WAITS_FOR_WRITES = "6, writes"
    LIFTS_IN_FLIGHT_COUNT = "7, in flight"
    TERMINATING_COUNTS = "7, terminating"
    REPLICA_WAITS = "8"
    OPENING_IS_CONFIRMED = "9"


Rules = frozenset[SizeRule]
ALL_RULES: Rules = frozenset(SizeRule)


class SliceRecord(NamedTuple):
    """A Workload of the chain: the record while it is reserved, else the target that waits (size 0).

    `asks`: of target; quota is reserved for it, it has no winner, and checks are asked about the growth (SL-33).
    """

    reserved: bool
    size: int
    spec: Counts
    charged: Counts
    epoch: int
    ending: bool
    asks: bool = False


class LateWrite(NamedTuple):
    """A status write that has not landed yet; `mine` while the leader that asked for it leads."""

    place: int
    value: SliceRecord | None
    mine: bool


class Home(NamedTuple):
    """The management cluster: what the user wants, the two Workloads that a chain may have, and a person's word.

    `fenced` stands in the status of the WorkerCluster, where it is written before anything follows from it (R2).
    """

    wish: Counts
    slices: tuple[SliceRecord | None, SliceRecord | None]
    late: LateWrite | None
    fenced: bool


class Command(NamedTuple):
    """What the manager says: a size with its counts; size 0 is *stop*."""

    size: int
    counts: Counts


class Wire(NamedTuple):
    """The present session: each message that was said in it. Answer 0 is *stopped*."""

    is_open: bool
    commands: frozenset[Command]
    answers: frozenset[int]


class Edit(NamedTuple):
    """A write to the worker that has not landed yet: the lift of one pod set's pod, or (pod set -1) the Job's size."""

    pod_set: int
    size: int
    counts: Counts
    mine: bool


class Agent(NamedTuple):
    """What an agent remembers; a replica that begins has it from the Job's mark."""

    is_up: bool
    size: int
    counts: Counts
    confirmed: bool
    stopping: bool


class WorkerJob(NamedTuple):
    """The worker's Job with its mark, which is written in one patch, and its pods.

    `let_go`: how many pods were let go so far, as a restart finds them lifted, running or ended.
    """

    size: int
    counts: Counts
    suspended: bool
    gated: Counts
    lifted: Counts
    terminating: Counts
    let_go: Counts
    edit: Edit | None


class Budget(NamedTuple):
    """How often the user, chance and people may still do something."""

    wishes: int = 2
    evictions: int = 1
    cuts: int = 1
    crashes: int = 1
    takeovers: int = 1
    slow_home: int = 1
    slow_worker: int = 1
    checks: int = 0
    """1: checks of other controllers are asked about each growth."""


class ModelState(NamedTuple):
    """All of it at one moment."""

    home: Home
    wire: Wire
    agent: Agent
    job: WorkerJob
    budget: Budget


Step = tuple[str, ModelState]
Steps = Iterator[Step]
QUIET = Wire(is_open=False, commands=frozenset(), answers=frozenset())


def begin(budget: Budget) -> ModelState:
    """Return a chain of one slice (1,1), committed and let go as a Job, no pod of which has been made."""
    first = SliceRecord(reserved=True, size=1, spec=(1, 1), charged=(1, 1), epoch=1, ending=False)
    return ModelState(
        Home((1, 1), (first, None), None, fenced=False),
        Wire(is_open=True, commands=frozenset(), answers=frozenset()),
        Agent(is_up=True, size=1, counts=(1, 1), confirmed=True, stopping=False),
        WorkerJob(1, (1, 1), False, NONE, NONE, NONE, NONE, None),
        budget,
    )


def changed(counts: Counts, pod_set: int, by: int) -> Counts:
    """Return counts of which one is another."""
    return (counts[0] + by, counts[1]) if pod_set == 0 else (counts[0], counts[1] + by)


def lower_of(one: Counts, other: Counts) -> Counts:
    """Return the smaller of each pod set."""
    return (min(one[0], other[0]), min(one[1], other[1]))


def higher_of(one: Counts, other: Counts) -> Counts:
    """Return the larger of each pod set."""
    return (max(one[0], other[0]), max(one[1], other[1]))


def is_within(one: Counts, other: Counts) -> bool:
    """Say whether no pod set has more than in the other."""
    return one[0] <= other[0] and one[1] <= other[1]


def shown(counts: Counts) -> str:
    """Return counts as a transcript has them."""
    return f"{counts[0]}+{counts[1]}"


def record_of(home: Home) -> tuple[int, SliceRecord] | None:
    """Return the record and which of the two Workloads it is: the reserved one of the higher size."""
    first, second = home.slices
    if second is not None and second.reserved and (first is None or first.size < second.size):
        return 1, second
    return (0, first) if first is not None and first.reserved else None


def charged(home: Home) -> Counts:
    """Return what is charged for the chain: what its record says."""
    found = record_of(home)
    return NONE if found is None else found[1].charged


def running(job: WorkerJob) -> Counts:
    """Return what may run: let go and not stopped, and each lift of which nobody knows whether it has landed."""
    sums = (job.lifted[0] + job.terminating[0], job.lifted[1] + job.terminating[1])
    return sums if job.edit is None or job.edit.pod_set < 0 else changed(sums, job.edit.pod_set, 1)
