"""Which Workload of a work is its current one, which is to take its place, and which are too many. Pure.

One work is admitted and placed once, or it would run twice. All is found by look-ups: a tenant can make thousands of
Workloads that name one object. Neighbours: `owners` looks after the current one, `leaving` stops and deletes what
is too many, each in a pass of its own; whose a Workload is says `records.work`.
"""

from __future__ import annotations

from gatelift.core.records.chain import Chain, Role
from gatelift.core.records.knowledge import key_of
from gatelift.core.records.work import Work
from gatelift.core.state.core import Core
from gatelift_kube.objects.kueue import Workload


def current_of(core: Core, work: Work) -> Workload | None:
    """Return the Workload of the name that the objects of a work give it, else one that is placed.

    One that is neither named so nor placed never is: the one of that name is made.
    """
    if not work.objects:
        return None
    chain = chain_of(core, work)
    if chain is not None:
        return core.knowledge.workload_of(chain.current.uid) if chain.current is not None else None
    named = core.knowledge.workloads.get(work.objects[0].workload)
    if named is not None and not is_foreign(work, named) and core.knowledge.work_of(named) is work:
        return named
    for key in sorted(work.placed) if work.placed else ():
        known = core.knowledge.workloads[key]
        if _is_placed(core, known) and not is_foreign(work, known) and core.knowledge.work_of(known) is work:
            return known
    return None


def is_foreign(work: Work, known: Workload) -> bool:
    """Say whether what has the name of a work's Workload is somebody else's, though it names objects of the work.

    It has no turn for quota, and is never adopted, changed or deleted.
    """
    if work.gathered is None or work.objects[0].workload != key_of(known.metadata):
        return False
    return bool(work.gathered.conflict(known))


def target_of(core: Core, work: Work) -> Workload | None:
    """Return which is to take the place of the current one: the newest of those that do, as the kind says."""
    current = current_of(core, work)
    if current is None:
        return None
    chain = chain_of(core, work)
    if chain is not None:
        return core.knowledge.workload_of(chain.target.uid) if chain.target is not None else None
    others = (core.knowledge.workloads[key] for key in work.in_order())
    targets = [each for each in others if _replaces(core, work, each, current)]
    return max(targets, key=lambda each: each.metadata.creation_timestamp or "", default=None)


def is_surplus(core: Core, work: Work, known: Workload) -> bool:
    """Say whether a Workload of a work is one too many."""
    current = current_of(core, work)
    if current is known or not work.objects:
        return False
    role = role_of(core, work, known)
    if role is not None:
        return role is Role.SURPLUS
    if current is None or not _replaces(core, work, known, current):
        return True
    return target_of(core, work) is not known


def placed_surplus(core: Core, work: Work) -> list[Workload]:
    """Return which of those that are placed are too many, and are not being deleted yet."""
    placed = (core.knowledge.workloads[key] for key in work.placed)
    standing = (each for each in placed if each.metadata.deletion_timestamp is None)
    return [each for each in standing if core.knowledge.work_of(each) is work and is_surplus(core, work, each)]


def chain_of(core: Core, work: Work) -> Chain | None:
    """Return the one chain of a work that counts: what is placed, else has quota, else has the highest number.

    None where it has no slices. One that the end of its record has left without a next one comes last.
    """
    if work.gathered is not None or not work.objects or not work.objects[0].kind.sliced:
        return None
    return core.knowledge.slices.chosen(work.id)


def role_of(core: Core, work: Work, known: Workload) -> Role | None:
    """Return what a Workload is among the slices of its work, None where it is none."""
    own = core.knowledge.slices.of(known.metadata.uid)
    if own is None:
        return None
    chosen = chain_of(core, work)
    if chosen is None or chosen.uid == own.uid:
        return own.role_of(known.metadata.uid)
    one = core.knowledge.slices.slice_of(known.metadata.uid)
    if one is None or one.finished:
        return Role.PAST
    return Role.SURPLUS if one.reserved else Role.OUT_OF_SYNC


def is_past(core: Core, known: Workload) -> bool:
    """Say whether a Workload is a slice that is no more what runs, nor next to."""
    if core.knowledge.slices.slice_of(known.metadata.uid) is None:
        return False
    return role_of(core, core.knowledge.work_of(known), known) in NOT_CURRENT


NOT_CURRENT = frozenset({Role.SUPERSEDED, Role.OUT_OF_SYNC, Role.PAST})


def _replaces(core: Core, work: Work, known: Workload, current: Workload) -> bool:
    is_other = known is not current and core.knowledge.work_of(known) is work
    return is_other and work.objects[0].kind.replaces(known, current)


def _is_placed(core: Core, known: Workload) -> bool:
    attempt = core.attempts.get(known.metadata.uid)
    return attempt is not None and attempt.live
