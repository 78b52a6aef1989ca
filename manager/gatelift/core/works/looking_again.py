"""What is looked at again of a work of several objects, or beside it. Neighbour: `gathered` asks in its pass."""

from __future__ import annotations

from gatelift.core.api.agenda import Key
from gatelift.core.dispatching import placing, several
from gatelift.core.records.attempt_states import AttemptState
from gatelift.core.records.attempts import Attempt
from gatelift.core.records.knowledge import key_of
from gatelift.core.records.work import Work
from gatelift.core.state.core import Core
from gatelift_kinds.shared.gathered import Gathered
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.values.resources import ObjectKey

LISTS_SECONDS = 5.0
"""How often it is looked whether the cluster of a placement has said what it has."""


def is_unheard(core: Core, attempt: Attempt, look: Key, now: float) -> bool:
    """Say whether a placement is live whose cluster has yet to say what it has; then it is looked there again."""
    is_open = placing.open_view(core, attempt.cluster) is not None and attempt.state is not AttemptState.LOST
    if not attempt.live or is_open:
        return False
    core.agenda.wake(look, now + LISTS_SECONDS)
    return True


def reads_anew(core: Core, work: Work, gathered: Gathered) -> bool:
    """Read some of the objects anew; False where none is to be: what follows is seen from all of them alone."""
    unread = gathered.unread
    if not unread:
        return False
    for called in gathered.read_anew(unread):
        owner = several.named(core, work, called.name, called.uid)
        if owner is not None:
            core.mark_owner_alone(owner)
    core.agenda.mark(work.look)  # the rest, and what follows from all of them
    return True


def is_placed(workload: Workload) -> bool:
    """Say whether a Workload shows that it may run somewhere: then its attempt says where, before its objects go."""
    return bool(workload.status.cluster_name) or workload.status.admission is not None


def at_each(core: Core, work: Work) -> None:
    """Look at each object of a work of several by itself: it was left alone while no attempt said where it runs."""
    for owner in work.objects if work.gathered is not None else ():
        core.mark_owner_alone(owner)


def settle_anew(core: Core, key: ObjectKey) -> None:
    """Have it looked at whether one that nobody owns has a turn now: it has none while they wait for it."""
    there = core.knowledge.workloads.get(key)
    attempt = core.attempts.get(there.metadata.uid) if there is not None else None
    if attempt is not None and attempt.state is AttemptState.PENDING:
        core.mark_workload(key)


def look_once_more(core: Core, work: Work, attempt: Attempt) -> None:
    """Look at each object once in each later epoch: what ran shows that it waits (HD-394)."""
    if attempt.state is AttemptState.PENDING and attempt.epoch > 1 and work.lets_go(f"{attempt.uid} {attempt.epoch}"):
        at_each(core, work)


def at_objects(core: Core, seen: Workload) -> None:
    """Look at the objects of a Workload, and at each that came to another work with it."""
    core.mark_work(core.knowledge.work_of(seen))
    core.mark_gathered_at(key_of(seen.metadata))
    for owner in core.knowledge.take_moved():
        core.mark_owner(owner)
        for key in core.knowledge.workloads_of(owner.name):
            core.mark_workload(key)
