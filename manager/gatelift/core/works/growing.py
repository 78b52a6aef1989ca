"""The way of a slice that waits to grow what runs: its turn, and the one write by which it becomes the record (SL-10).

It is placed where the record is, in the same attempt: nothing is chosen, but that cluster is asked for the room first,
and holds it (`growth_offers`). What is placed goes over to it once that write
is seen, and the slice before is finished then. Neighbours: `following` asks whether it has a turn, `admitting` has it
admitted.
"""

from __future__ import annotations

from gatelift.core import texts
from gatelift.core.api.purposes import Purpose
from gatelift.core.conclusions import sized
from gatelift.core.dispatching import endings, fit, growth_offers
from gatelift.core.records import size_writes
from gatelift.core.records.attempt_states import AttemptState
from gatelift.core.records.attempts import Attempt
from gatelift.core.records.chain import Chain, Role
from gatelift.core.records.record import granted as granted_to
from gatelift.core.rules import sizes_ready, targets
from gatelift.core.state import api_requests
from gatelift.core.state.case import Case
from gatelift.core.state.core import Core
from gatelift.core.works import awaited_checks, choosing, growth_parts
from gatelift_admission.values.model import Reserve
from gatelift_kinds.shared.sizes import counts_of
from gatelift_kube.objects.kueue import Workload

NO_EPOCH = 0
"""Of a reservation that is to grow what runs: it is of the epoch of that."""
_MAY_GROW = frozenset({AttemptState.CHOSEN, AttemptState.PLACED, AttemptState.RUNNING})


def is_target(case: Case) -> bool:
    """Say whether a Workload waits to grow what runs."""
    return choosing.role_of(case.core, case.work, case.known) is Role.TARGET


def has_no_turn(case: Case) -> bool:
    """Say whether a slice gets no quota now: it is past, nothing runs that it could grow, or that may not grow."""
    core, role = case.core, choosing.role_of(case.core, case.work, case.known)
    if role is None:
        return False
    chain = choosing.chain_of(core, case.work)
    if chain is None or chain.is_held:
        return True
    if role is Role.TARGET:
        return _record_of(case, chain) is None
    return role is not Role.CURRENT


def look_behind(case: Case) -> None:
    """Look at the slice that waits behind a record with each look at that: what kept it from its turn may be over."""
    chain = case.core.knowledge.slices.of(case.rec.uid)
    if chain is not None and chain.target is not None and chain.target.uid != case.rec.uid:
        case.core.mark_workload(chain.target.key)


def _record_of(case: Case, chain: Chain) -> tuple[Workload, Attempt] | None:
    """Return the record that a slice may grow now and its attempt; None where that leaves, or is about to change.

    What is written of the record comes first: a slice that is in some pod set below it waits until that is lowered.
    """
    core, owner = case.core, case.work.only_object
    if owner is None or not owner.kind.resizes(owner.object):
        return None  # sizes stay as they are
    if chain.record is None or core.inflight.busy(core.knowledge.readings[chain.record.key][1].ref):
        return None
    known, attempt = core.knowledge.workloads[chain.record.key], core.attempts.get(chain.record.uid)
    if attempt is None or attempt.state not in _MAY_GROW or attempt.ending is not None:
        return None
    if attempt.epoch != case.attempt.epoch or not known.spec.active or known.metadata.deletion_timestamp is not None:
        return None
    above = counts_of(case.known)
    below = any(above.get(name, 0) < count for name, count in counts_of(known).items())
    if below or core.caution.holds(attempt.key.uid):
        return None
    if not sizes_ready.may_grow(core, attempt, above, case.now):
        return None
    return (known, attempt) if not _unfit(core, attempt, chain.record.number) else None


def _unfit(core: Core, placed: Attempt, number: int) -> str:
    """Return why the cluster of a record is not asked for more now, "" where it may be: by what is known of it here."""
    view = core.view(placed.cluster)
    if view is None:
        return "no WorkerCluster of that name"
    if placed.size.is_ahead(number):
        return sized.why_held(core, placed)
    return fit.unusable(view) or fit.too_old(view)


def is_kept_waiting(core: Core, target: Workload) -> bool:
    """Say whether the cluster of its chain keeps a slice from growing what runs, by what is known of it here."""
    chain = core.knowledge.slices.of(target.metadata.uid)
    placed = core.attempts.get(chain.record.uid) if chain is not None and chain.record is not None else None
    if chain is None or chain.record is None or placed is None or not placed.live:
        return False
    return bool(_unfit(core, placed, chain.record.number))


def why_not(case: Case) -> tuple[str, str] | None:
    """Return reason and message of what keeps a slice from growing what runs: its cluster is away, or knows no sizes.

    None where nothing of that does, or it is no such slice.
    """
    core = case.core
    chain = choosing.chain_of(core, case.work) if is_target(case) else None
    if chain is None or chain.record is None:
        return None
    placed = core.attempts.get(chain.record.uid)
    if placed is None or not placed.live or placed.ending is not None:
        return None
    why = _unfit(core, placed, chain.record.number)
    return (texts.GROWTH_WAITS, texts.growth_waits(placed.cluster, why)) if why else None


def _is_being_written(core: Core, chain: Chain | None) -> bool:
    """Say whether a write of the record of a chain is out."""
    record = chain.record if chain is not None else None
    return record is not None and core.inflight.busy(core.knowledge.readings[record.key][1].ref)


def _covers(case: Case) -> bool:
    """Say whether what is reserved is for as many pods as a slice asks for: somebody may have raised these since."""
    granted = granted_to(case.known)
    return all(granted.get(name, 0) >= count for name, count in counts_of(case.known).items())


def admit(case: Case, reserve: Reserve) -> None:
    """Write that a slice is the record from now on, or give its reservation back where nothing may grow any more.

    Checks of other controllers speak first: they may take longer than its cluster holds the room.
    """
    core, attempt = case.core, case.attempt
    chain = choosing.chain_of(core, case.work)
    if case.rec.reserved and _is_being_written(core, chain):
        return  # what is asked about a growth is not given up for a moment; its answer looks here again
    found = _record_of(case, chain) if chain is not None and not chain.is_held else None
    if found is None or (case.rec.reserved and not _covers(case)):
        endings.end_before_placement(case)
        return
    others = targets.others(core, reserve.checks)
    if others and (growth_parts.lowers(case, reserve) or not awaited_checks.are_ready(case, others, NO_EPOCH)):
        return
    if core.caution.halted:
        attempt.used_nowhere({"": core.caution.halted})
        return
    owner = case.work.only_object
    if owner is None or not growth_offers.is_held(case, owner, found):
        return  # its cluster is asked, or the reservation goes back
    if growth_parts.lowers(case, reserve):
        return
    body = size_writes.growth_write(case.known, found[0], reserve, core.term, core.wall.text(case.now))
    api_requests.patch_workload(core, case.known, body, Purpose.GROW)
