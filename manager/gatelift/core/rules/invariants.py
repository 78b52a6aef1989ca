"""What must hold after each step. Run in the tests and, if asked for, in the daemon. Changes nothing."""

from __future__ import annotations

from gatelift.core.api.agenda import Key, Look
from gatelift.core.records import epochs
from gatelift.core.records.attempt_states import LIVE, AttemptState
from gatelift.core.records.attempts import Attempt
from gatelift.core.records.knowledge import ref_of
from gatelift.core.rules import seeking
from gatelift.core.state.core import Core


class InvariantBroken(Exception):  # noqa: N818 - the name says what happened
    """One or more invariants do not hold; the text names each with its workload."""


def check(core: Core, now: float) -> None:
    """Raise InvariantBroken if any invariant is broken."""
    problems = [*charges(core), *numbers(core), *single(core), *progress(core, now), *writes(core)]
    if problems:
        raise InvariantBroken("; ".join(problems))


def charges(core: Core) -> list[str]:
    """Check charges: what may run is charged, and nothing was released more often than charged."""
    problems = []
    if core.ledger.released > core.ledger.reserved:
        problems.append(f"{core.ledger.released} releases for {core.ledger.reserved} charges")
    for uid, attempt in core.attempts.items():
        charge = core.ledger.charges.get(uid)
        if attempt.state in LIVE and (charge is None or (charge.released_at is not None and not charge.early)):
            problems.append(f"{attempt.key} is {attempt.state.value} and not charged")
        if attempt.state is AttemptState.PENDING and charge is not None and charge.released_at is None:
            problems.append(f"{attempt.key} is pending and charged")
    return problems


def numbers(core: Core) -> list[str]:
    """Check that no attempt has an epoch above its record's."""
    problems = []
    for uid, attempt in core.attempts.items():
        if attempt.epoch <= epochs.FIRST:
            continue  # no record names an earlier one
        known = core.knowledge.workload_of(uid)
        if known is not None and epochs.of(known) < attempt.epoch:
            problems.append(f"{attempt.key} has an epoch above the record's {epochs.of(known)}")
    return problems


def single(core: Core) -> list[str]:
    """Check that a workload is on one cluster's list at most, that of its record."""
    problems = []
    listed: set[str] = set()
    doubled: set[str] = set()
    for cluster in sorted(core.placements.clusters()):
        uids = core.placements.at(cluster)
        doubled |= listed & uids
        listed |= uids
        for uid in uids:
            attempt = core.attempts.get(uid)
            if attempt is not None and attempt.live and attempt.cluster != cluster:
                problems.append(f"{attempt.key} is listed on {cluster} and placed on {attempt.cluster}")
    for uid in sorted(doubled):
        count = sum(uid in core.placements.at(each) for each in core.placements.clusters())
        problems.append(f"workload {uid} is listed on {count} clusters")
    return problems


def progress(core: Core, now: float) -> list[str]:
    """Check that every reserved workload is placed, being placed or ending, and that something can wake it."""
    problems = []
    for uid, attempt in core.attempts.items():
        if attempt.state in {AttemptState.RESERVED, AttemptState.OFFERED} and not _can_wake(core, uid, attempt, now):
            problems.append(f"{attempt.key} is {attempt.state.value} and nothing can wake it")
    return problems


def _can_wake(core: Core, uid: str, attempt: Attempt, now: float) -> bool:
    known = core.knowledge.workloads.get(attempt.workload)
    if known is None or not core.leads(now):
        return True
    ref = ref_of(known)
    return (
        core.agenda.waits(attempt.look)
        or core.agenda.waits(Key(Look.UNTAKEN, ref.key, ref.resource))  # looked at as soon as that can be done
        or core.inflight.busy(ref)
        or ref in core.unsent
        or core.cluster_waiters.waits_for_room(uid)
        or seeking.is_sought(core, known)
        or bool(core.caution.halted)
        or bool(known.status.admission_checks)  # another controller's check: its event wakes
        or _is_behind_a_write(core, uid)
        or core.is_marked_later(uid)  # dispatch goes on just now: all are looked at, some in each call
    )


def _is_behind_a_write(core: Core, uid: str) -> bool:
    """Say whether a slice waits for the answer to a write of what it is to grow, which looks at it again."""
    chain = core.knowledge.slices.of(uid)
    ahead = chain.current if chain is not None else None
    return ahead is not None and ahead.uid != uid and core.inflight.busy(core.knowledge.readings[ahead.key][1].ref)


def writes(core: Core) -> list[str]:
    """Check that never two requests are in flight for one object."""
    if len(core.inflight.by_id) != len(core.inflight.by_ref):
        return [f"{len(core.inflight.by_id)} requests in flight for {len(core.inflight.by_ref)} objects"]
    return []
