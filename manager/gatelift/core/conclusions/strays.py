"""Placements that no cache explains: all Workloads are read before they are answered (R3), and none is forgotten.

With the same look the pods are asked for that no watch shows (`out_of_sight`). Neighbours: `reports` says what was
told, `doubts` remembers it, `placing` tells the cluster.
"""

from __future__ import annotations

from gatelift.core.api.commands import ReadAll
from gatelift.core.api.events import ReadAllDone, ReadFailed
from gatelift.core.conclusions import recovery_lists, reports
from gatelift.core.conclusions.claims import Claim
from gatelift.core.dispatching import placing
from gatelift.core.rules import containment
from gatelift.core.rules.containment import Boundary
from gatelift.core.state import out_of_sight
from gatelift.core.state.core import DOUBTS, Core
from gatelift_kube.values.resources import WORKLOAD, ObjectKey

ANSWERED_PER_LOOK = 100
"""Placements answered in one look, at 10 to 50 us each: one worker may name 10,000 (HD-277)."""


def look(core: Core, _key: ObjectKey, now: float) -> None:
    """Go on with what waits: not while dispatch is halted, nor before what was listed meanwhile has been compared."""
    doubts = core.doubts
    if core.caution.halted or core.sessions.compares_any():
        return
    for (cluster, key), (over, gated) in doubts.resume(ANSWERED_PER_LOOK).items():
        claim = Claim(cluster, key, over=over, gated=gated)
        with Boundary(_not_explained, core, claim, now=now):
            reports.stray(core, claim)
    _answer(core, now)
    if doubts.answerable:
        core.agenda.wake(DOUBTS, now)  # at the next call: one looks at many keys
        return
    asks_at = out_of_sight.ask(core, now)
    if asks_at:
        core.agenda.wake(DOUBTS, asks_at)
    unasked = doubts.unasked()
    if unasked and doubts.asks_again_at > now:
        core.agenda.wake(DOUBTS, doubts.asks_again_at)
        return
    for namespace in unasked:
        read_id = core.ids.take()
        doubts.ask(read_id, namespace, now)
        core.command(ReadAll(read_id=read_id, resource=WORKLOAD, namespace=namespace))


def listed(core: Core, event: ReadAllDone, now: float) -> None:
    """All Workloads of a namespace were read: placements that are still in no record are dropped (R3)."""
    doubts = core.doubts
    namespace = doubts.take_asked(event.read_id)
    if namespace is None:
        return
    doubts.answered(now)
    doubts.were_read(namespace)
    core.agenda.mark(DOUBTS)


def _answer(core: Core, now: float) -> None:
    """Answer some of what waited until all Workloads were read."""
    for (cluster, key), over in core.doubts.take(ANSWERED_PER_LOOK).items():
        claim = Claim(cluster, key, over=over)
        with Boundary(_not_explained, core, claim, now=now):
            _explain(core, claim)


def _explain(core: Core, claim: Claim) -> None:
    """Drop a placement that is in no record; not one whose Workload is there and could not be taken."""
    cluster, key, over = claim.cluster, claim.key, claim.over
    if core.knowledge.slices.holder(key.uid) in core.caution.set_aside:
        pass  # nobody can tell what its record says: it is asked again when somebody can
    elif core.knowledge.placed_workload(key.uid) is None:
        if not recovery_lists.leaves(core, cluster, key):
            placing.drop_stray(core, cluster, key, over=over)
    elif (attempt := core.placed(key)) is not None and attempt.key != key:
        reports.stray(core, claim)  # its Workload is there, and is at another attempt


def _not_explained(core: Core, claim: Claim, error: Exception, now: float) -> None:
    containment.answer_failed(core, f"{claim.key} on cluster {claim.cluster}", error, now)
    core.ask_all(claim.cluster, claim.key, "", over=claim.over)


def not_listed(core: Core, event: ReadFailed, now: float) -> bool:
    """Ask for a list that failed again, later each time in a row; False when it was no list."""
    doubts = core.doubts
    if out_of_sight.not_listed(core, event, now):
        core.agenda.mark(DOUBTS)
        return True
    namespace = doubts.take_asked(event.read_id)
    if namespace is None:
        return False
    doubts.failed(namespace, now)
    core.note(f"Workloads could not be listed: {event.message}; asked again", warning=True)
    core.agenda.mark(DOUBTS)
    return True
