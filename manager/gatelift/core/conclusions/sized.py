"""What clusters say of sizes of elastic work: an answer, how far they are, a refusal; what inventories list of them.

An answer counts for the size that the record has, of a placement that lives and does not end (Size 5). It changes what
is known, the write that lowers a charge follows in a pass (`works.shrinking`). A refusal takes nothing back (Size 3). A
size above the record's holds its workload, and is charged (P7, HD-34): no size is said to it before a person has raised
the number above that. Neighbours: `reports`, `inventories`.
"""

from __future__ import annotations

from gatelift.core import texts
from gatelift.core.clusters.link_values import Reported
from gatelift.core.dispatching import placing, requests, waking
from gatelift.core.dispatching.unexplained import is_unexplained
from gatelift.core.records.attempt_states import AttemptState
from gatelift.core.records.attempts import Attempt
from gatelift.core.records.knowledge import ref_of
from gatelift.core.rules import kept_record
from gatelift.core.state.core import Core
from gatelift.core.told import slice_moments
from gatelift_wire.values.inventory import InventoryEntry
from gatelift_wire.values.sizes import Drained, SizeRefused, SizeWanted, SliceFinished

SizeWord = SliceFinished | Drained | SizeRefused | SizeWanted
_RUNS = frozenset({AttemptState.CHOSEN, AttemptState.PLACED, AttemptState.RUNNING})
SIZE_AHEAD = "SizeAhead"
"""Reason of the event on what a cluster lists with a later size than its record has."""


def take(core: Core, upcall: Reported, message: SizeWord, now: float) -> None:
    """Take one word about a size. What names another size, or nothing that is placed there, changes nothing."""
    view, attempt = core.view(upcall.cluster), core.placed(message.key)
    if view is None or attempt is None or attempt.key != message.key:
        return
    if not placing.is_live_at(attempt, upcall.cluster) or is_unexplained(attempt, view) or attempt.state not in _RUNS:
        return
    if isinstance(message, SizeWanted) or message.number != requests.number_of(core, attempt.uid):
        return
    match message:
        case SliceFinished():
            _answered(core, attempt, message.number, upcall.session, now)
        case SizeRefused():
            _refused(core, attempt, message, now)
        case Drained(remaining=remaining):
            attempt.size.drains(remaining)


def _answered(core: Core, attempt: Attempt, number: int, session: int, now: float) -> None:
    before, known = attempt.size.ahead, core.knowledge.workloads.get(attempt.workload)
    if not attempt.size.answer(number, session):
        return
    waking.made(core, attempt, now)
    if before != attempt.size.ahead and known is not None:
        core.ledger.engine.workload_changed(kept_record.charged(core, known), now)
    core.mark_attempt(attempt)


def _refused(core: Core, attempt: Attempt, said: SizeRefused, now: float) -> None:
    settings = core.settings.dispatch
    is_news = attempt.size.is_refused(said.number, said.refusal.value, now, settings.give_up_max)
    known = core.knowledge.workloads.get(attempt.workload)
    if is_news and known is not None:
        text = refused(attempt.cluster, said)
        slice_moments.refused(core, known, text)
        core.note(text, attempt, warning=True)
        core.mark_said_of(attempt)  # it may be refused for too long
    waking.made(core, attempt, now)  # it is not at work there; said again, it is one of few
    core.mark_attempt(attempt)


def refused(cluster: str, said: SizeRefused) -> str:
    """Return what people are told of a size that is not carried out."""
    return (
        f"Cluster {cluster} does not carry out size {said.number}: {said.refusal.value}: {said.text}. What runs "
        "goes on as it is, and it is tried again"
    )


def listed(core: Core, attempt: Attempt, entry: InventoryEntry, now: float) -> None:
    """Take the size with which an inventory lists a placement."""
    if not requests.is_sized(core, attempt.uid):
        return
    number = requests.number_of(core, attempt.uid)
    before, known = attempt.size.ahead, core.knowledge.workloads.get(attempt.workload)
    attempt.size.lists(entry.size, entry.granted, above=number)
    if known is None or before == attempt.size.ahead:
        return
    core.ledger.engine.workload_changed(kept_record.charged(core, known), now)
    if attempt.size.is_ahead(number):
        text = why_held(core, attempt)
        core.event(ref_of(known), attempt.uid, SIZE_AHEAD, text, warning=True)
        core.note(text, attempt, warning=True)


def is_ahead(core: Core, attempt: Attempt) -> bool:
    """Say whether the cluster of a placement has listed a later size than its record has."""
    return attempt.size.ahead is not None and attempt.size.is_ahead(requests.number_of(core, attempt.uid))


def why_held(core: Core, attempt: Attempt) -> str:
    """Return what people are told of a placement of which its cluster lists a later size than its record has."""
    ahead, number = attempt.size.ahead, requests.number_of(core, attempt.uid)
    return texts.size_ahead(attempt.cluster, ahead.number if ahead is not None else 0, number)
