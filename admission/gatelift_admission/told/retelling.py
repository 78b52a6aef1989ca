"""Brings texts of what waits up to date, in batches: nobody is woken by it, and nothing is decided.

A workload is looked at as a fresh cycle would look at it, from its first flavor on, and is told what that finds.
Neighbours: `stale` says whose turn it is, `nomination` looks, `engine` calls this when nothing is left to decide.
"""

from __future__ import annotations

from gatelift_admission import texts
from gatelift_admission.entries.entry import Entry, Phase
from gatelift_admission.entries.standings import INADMISSIBLE
from gatelift_admission.feed import faults
from gatelift_admission.flavors.assignment import Mode
from gatelift_admission.preemption.plan import Plan
from gatelift_admission.queues.models import QueueModel
from gatelift_admission.queues.stale import grows_old
from gatelift_admission.rounds.nomination import nominate
from gatelift_admission.state.known import State

BATCH = 20
"""Evaluations in one call, about a millisecond; a search for victims counts for more."""
PAUSE = 0.1
"""Seconds between two batches: 200 evaluations a second are one percent of a core, and at most as many writes."""
SIMULATED_PER_STEP = 20
"""Changes of usage in searches for victims that count as one more evaluation, as in a cycle."""
_PASSING = frozenset({texts.LOST_TO_ANOTHER, texts.OVERLAPPING, texts.DEFERRED})
"""True as long as there would be room but for what others keep or ask for."""


def retell(state: State) -> None:
    """Look at the next batch of those whose texts may have grown old."""
    stale, rest = state.stale, state.settings.text_refresh
    if rest <= 0:
        return
    stale.begin(state.now, rest)
    if not stale.line or state.now < stale.pause_until:
        return
    tree, done = state.ensure(), 0
    begun = tree.simulated // SIMULATED_PER_STEP
    while stale.line and done + tree.simulated // SIMULATED_PER_STEP - begun < BATCH:
        entry = stale.line.popleft()
        done += 1
        try:
            _retell(state, entry)
        except Exception as error:  # noqa: BLE001 (containment: one workload keeps nobody else's text from being true)
            faults.set_aside(state, entry, error)
            break
    stale.pause_until = state.now + PAUSE


def _retell(state: State, entry: Entry) -> None:
    """Tell a workload what a fresh evaluation says, if it waits for one and says something that may be old."""
    queue, said = state.queues.get(entry.queue), entry.want or entry.told
    if queue is None or said is None or entry.phase is not Phase.PENDING or not grows_old(said):
        return
    if entry.on_hold or entry.standing is INADMISSIBLE or not queue.admits:
        return  # no evaluation waits for it: who keeps it out says why
    state.tell(entry, _words(entry, queue, nominate(state, entry, queue), said))


def _words(entry: Entry, queue: QueueModel, plan: Plan, said: tuple[str, str]) -> tuple[str, str]:
    """Return what has to be said of `entry` by `plan`, where it says `said`."""
    assignment = plan.assignment
    if plan.possible and said[1] in _PASSING:
        return said
    waits = queue.pending.blocked is entry and said[0] == texts.WAITING_FOR_PREEMPTED
    if assignment.mode is Mode.FIT:
        if waits:
            return said
        if queue.pending.strict and queue.pending.blocked is not entry:
            return texts.PENDING_EVALUATION, texts.WAITING  # it waits for its turn, and for nothing else
        return texts.WAITING_FOR_QUOTA, texts.LOST_TO_ANOTHER
    if waits and plan.targets:
        return said[0], texts.pending_preemption(assignment.message, len(plan.targets))
    return assignment.reason, assignment.message
