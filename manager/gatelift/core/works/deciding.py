"""Takes over what the admission engine decides: reservations, evictions, preemptions, and why others wait.

Neighbours: `machine` asks when something is due.
"""

from __future__ import annotations

from gatelift.core import texts
from gatelift.core.api.agenda import Key, Look
from gatelift.core.api.asks import WriteAsk
from gatelift.core.api.purposes import Purpose
from gatelift.core.records.attempt_states import AttemptState, Internal
from gatelift.core.records.attempts import Ending
from gatelift.core.rules import containment, deactivation, readiness
from gatelift.core.rules.containment import Boundary
from gatelift.core.state.core import Core
from gatelift.core.told import slice_moments, telling
from gatelift_admission.values.model import Decision, Evict, Fault, Inadmissible, Preempt, Reserve, Unreserve
from gatelift_kube.objects.conditions import FALSE, find

_NOT_TOLD = frozenset({AttemptState.PENDING, AttemptState.RESERVED})
HEADS_PER_CALL = 100
"""Steps of the engine in one call: nominations, decisions and parts of searches, at about 20 us each."""


def decide(core: Core, now: float) -> bool:
    """Let the admission engine decide, and take its decisions over; return whether it was cut short."""
    result = core.ledger.engine.cycle(now, HEADS_PER_CALL)
    for fault in result.faults:
        containment.undecided(core, fault, now)
    for decision in result.decisions:
        with Boundary(_not_taken, core, decision, now=now):
            core.mark_workload(decision.key)
            _take(core, decision, now)
            if core.contained.resting:
                core.contained.well(Key(Look.UNDECIDED, decision.key))
    return result.more


def _take(core: Core, decision: Decision, now: float) -> None:
    match decision:
        case Reserve():
            _reserve(core, decision, now)
        case Inadmissible():
            _waits(core, decision)
        case Evict() | Unreserve():
            attempt = core.attempts.get(decision.uid)
            if attempt is not None and attempt.state is not AttemptState.ENDED:
                attempt.end_for(_ending(core, decision))
        case Preempt():
            _preempt(core, decision)


def _not_taken(core: Core, decision: Decision, error: Exception, now: float) -> None:
    """Take that one decision could not be taken over: it is as if that Workload had not been decided on yet.

    The decisions beside it stand. What nobody has been told of is undone, so that it is not charged for what never
    starts.
    """
    attempt = core.attempts.get(decision.uid)
    if isinstance(decision, Reserve):
        if attempt is None or attempt.state in _NOT_TOLD:  # None: its create is not answered yet
            core.ledger.undo(decision.uid)
        else:
            core.ledger.engine.forget(decision.uid)  # what its attempt is charged stands
        if attempt is not None and attempt.state is AttemptState.RESERVED:
            attempt.follow(Internal.UNRESERVE)
        core.ledger.engine.set_aside(decision.uid, error)
    elif isinstance(decision, Evict | Unreserve) and attempt is not None and attempt.state is not AttemptState.ENDED:
        attempt.end_for(_in_its_words(decision))  # the engine says so once: a stop is obeyed whatever else failed
    containment.undecided(core, Fault(uid=decision.uid, key=decision.key, error=error), now)


def _waits(core: Core, decision: Inadmissible) -> None:
    """Note what a workload that waits has to say; people are told once, though it may be written more than once."""
    said = decision.reason, slice_moments.waits(core, decision.uid, decision.message)
    again = not core.waiting_reasons.say(decision.uid, said)
    silent = again or decision.numbers_only or decision.reason == texts.PENDING_EVALUATION
    silent = silent or _shows(core, decision.uid, said)
    if not silent:
        telling.waits(core, decision._replace(message=said[1]))


def _shows(core: Core, uid: str, said: tuple[str, str]) -> bool:
    """Say whether a slice shows this already: a write of its chain has the engine say again what it waits for."""
    known = core.knowledge.workload_of(uid) if core.knowledge.slices.slice_of(uid) is not None else None
    shown = find(known.status.conditions, texts.QUOTA_RESERVED) if known is not None else None
    return shown is not None and (shown.status, shown.reason, shown.message) == (FALSE, *said)


def _ending(core: Core, decision: Evict | Unreserve) -> Ending:
    """Return why the engine wants an attempt to end; what is behind a deactivation is on the Workload."""
    known = core.knowledge.workloads.get(decision.key)
    if decision.reason == texts.DEACTIVATED and known is not None:
        return deactivation.ending(known)
    return _in_its_words(decision)


def _in_its_words(decision: Evict | Unreserve) -> Ending:
    return Ending(reason=decision.reason, message=decision.message, evict=isinstance(decision, Evict))


def _preempt(core: Core, decision: Preempt) -> None:
    """Let an attempt end for another workload, unless it ends already."""
    attempt = core.attempts.get(decision.uid)
    if attempt is None or attempt.state is AttemptState.ENDED or attempt.ending is not None:
        return
    attempt.end_for(Ending(reason=texts.PREEMPTED, message=decision.message, preempted=decision.reason))
    telling.preempted(core, decision, attempt)


def _reserve(core: Core, decision: Reserve, now: float) -> None:
    attempt = core.attempts.get(decision.uid)
    if attempt is None or attempt.state is not AttemptState.PENDING:
        core.ledger.block(decision.uid)  # until its next pass, which knows better
        core.ledger.engine.forget(decision.uid)  # what its attempt is charged stands
        return
    if readiness.hold_back(core, decision.uid):
        return
    attempt.follow(Internal.RESERVE)
    known = core.knowledge.workloads.get(decision.key)  # what the engine has just looked at
    attempt.take_reserve(decision, known.spec.pod_sets if known is not None else None, now)
    core.waiting_reasons.said(decision.uid)
    core.budget.leave(WriteAsk(Key(Look.WORKLOAD, decision.key), Purpose.WHY_WAITING))
    if not decision.replaces:  # else it is the charge of its chain, which moves once that is written
        core.ledger.charge(decision.uid, attempt.epoch, now)
