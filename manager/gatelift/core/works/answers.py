"""Answers to what was asked of the API, each within its own boundary: what raises counts as an answer not known. Pure.

What is in flight is seen to first, outside of it. The object in an answer is taken like one of the watch (`taking`).
Neighbours: `machine` calls, `inflight` keeps what is asked for, `write_failures` what a write that failed means.
"""

from __future__ import annotations

from gatelift.core.api.events import OutOfSightListed, ReadAllDone, ReadDone, ReadFailed
from gatelift.core.api.inflight import Outstanding
from gatelift.core.conclusions import strays
from gatelift.core.dispatching import refused_reservations
from gatelift.core.rules import containment, seeking
from gatelift.core.rules.containment import Boundary
from gatelift.core.state import api_requests, out_of_sight
from gatelift.core.state.core import DOUBTS, Core
from gatelift.core.told import mirror, telling
from gatelift.core.works import intake, taking, write_failures
from gatelift_kube.deciding.writes import ObjectGone, ObjectSeen, WriteDone, WriteError, WriteFailed
from gatelift_kube.objects.gatelift import WorkerCluster
from gatelift_kube.objects.versions import is_last
from gatelift_kube.values.resources import WORKLOAD


def written(core: Core, event: WriteDone | WriteFailed, now: float) -> None:
    """Take the outcome of a write of ours."""
    outstanding = core.inflight.end(event.write_id)
    if outstanding is None:
        return
    core.budget.ended(informs=outstanding.informs)
    if isinstance(event, WriteFailed) and event.error is WriteError.NOT_SENT:
        api_requests.stand_in_line(core, outstanding.ref, now, charges=outstanding.purpose.charges)
        return
    for ref in core.unsent.next():
        taking.look_at(core, ref, now)
    with Boundary(_not_known, core, outstanding, now=now):
        if isinstance(event, WriteDone):
            _done(core, outstanding, event, now)
        else:
            write_failures.failed(core, outstanding, event, now)
    taking.look_at(core, outstanding.ref, now)


def _done(core: Core, outstanding: Outstanding, event: WriteDone, now: float) -> None:
    ref, found = outstanding.ref, event.object
    core.inflight.succeeded(ref)
    core.resting.succeeded(ref, outstanding.purpose)
    core.budget.earn()
    if found is None:
        return
    mirror.accepted(core, outstanding, found.metadata)
    if found.metadata.uid != outstanding.gone:
        taken = taking.answered(core, ObjectSeen(ref.resource, found, event.raw), now)
        if taken and is_last(found.metadata):
            taken = taking.answered(core, ObjectGone(ref.resource, found), now)
        if not taken:
            _doubt(core, outstanding, now)
    telling.written(core, outstanding)
    refused_reservations.ignored(core, outstanding, found, now)


def _not_known(core: Core, outstanding: Outstanding, error: Exception, now: float) -> None:
    """Take that the answer to a write could not be taken: its object is read before anything is decided on it."""
    containment.answer_failed(core, f"answer about {outstanding.ref}", error, now)
    _doubt(core, outstanding, now)


def _doubt(core: Core, outstanding: Outstanding, now: float) -> None:
    version, until = outstanding.decided_on, outstanding.lands_until
    core.inflight.unsure(outstanding.ref, now, version=version, lands_until=until, informs=outstanding.informs)


def read(core: Core, event: ReadDone | ReadFailed, now: float) -> None:
    """Take the answer to a quorum read."""
    outstanding = core.inflight.end(event.read_id)
    if outstanding is None:
        return
    ref = outstanding.ref
    if isinstance(event, ReadFailed) and not event.asked:
        api_requests.stand_in_line(core, ref, now)
        return
    if isinstance(event, ReadFailed):
        pause = core.inflight.failed(ref, now, read=True) - now
        core.note(f"{outstanding.purpose.value}: {ref}: {event.message}; asked again in {pause:g} s", warning=True)
    else:
        with Boundary(_not_read, core, outstanding, now=now):
            if _went_back(core, outstanding, event):
                return
            _was_read(core, outstanding, event, now)
    taking.look_at(core, ref, now)


def _went_back(core: Core, outstanding: Outstanding, event: ReadDone) -> bool:
    ref = outstanding.ref
    version = event.object.metadata.resource_version if event.object is not None else ""
    before = core.inflight.went_back(ref, version)
    if before:
        core.step_down(f"{ref} has version {version} and had {before}: was the API server restored?")
    return bool(before)


def _was_read(core: Core, asked: Outstanding, answer: ReadDone, now: float) -> None:
    """Take the answer of a quorum read; what came only after the question was asked may be younger than it."""
    ref, found = asked.ref, answer.object
    known = core.known(ref)
    core.inflight.was_read(ref, found.metadata.resource_version if found is not None else "", now)
    name = (ref.resource, ref.key.namespace, ref.key.name, asked.uid)
    seen_to_go = core.knowledge.saw_go(asked.gone) or core.knowledge.saw_object_go((*name[:3], asked.gone))
    if found is not None and found.metadata.uid == asked.gone and not seen_to_go:
        # A watch lost it since the question: neither is the younger word.
        api_requests.read(core, ref, asked.purpose, asked.uid)
        return
    seeking.found_out(core, ref)
    core.out_of_sight.was_read(ref)
    if found is not None:
        if found.metadata.uid != asked.gone:
            taking.answered(core, ObjectSeen(ref.resource, found, answer.raw), now)
    elif known is not None and known.metadata.uid == asked.uid and not isinstance(known, WorkerCluster):
        intake.gone(core, ref.resource, known)  # that a WorkerCluster is gone the watch tells, the links as well
    if ref.resource in core.kinds.travelling and asked.uid and not core.knowledge.works.knows(name):
        core.knowledge.object_has_gone(name)  # it is not there, or nothing of ours any more


def _not_read(core: Core, outstanding: Outstanding, error: Exception, now: float) -> None:
    """Take that the answer to a read could not be taken: it is asked again, later each time in a row."""
    containment.answer_failed(core, f"answer about {outstanding.ref}", error, now)
    core.inflight.failed(outstanding.ref, now, read=True)


def listed(core: Core, event: ReadAllDone, now: float) -> None:
    """Take all Workloads of a namespace, each by itself, and then what follows for what none of them explains."""
    for obj, raw in event.objects:
        taking.answered(core, ObjectSeen(WORKLOAD, obj, raw), now)
    strays.listed(core, event, now)


def out_of_sight_listed(core: Core, event: OutOfSightListed, now: float) -> None:
    """Take which pods no watch shows; what raises counts as a list that failed."""
    with Boundary(_not_listed, core, now=now):
        out_of_sight.listed(core, event)


def _not_listed(core: Core, error: Exception, now: float) -> None:
    containment.answer_failed(core, "pods that nothing shows", error, now)
    out_of_sight.not_taken(core, now)
    core.agenda.mark(DOUBTS)
