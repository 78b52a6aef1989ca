"""What the cluster of elastic work is told of its size (KEP-77): once in each session, and from a record alone.

Said is the size of the record, which was written before (Size 2); never what waits to grow it. In a session that was
resumed the number is confirmed; to an agent that has begun anew it is said with its pod sets, by which what it opens
starts with what is added to them (decision 117). What was refused is said again, after pauses: a busy cluster needs no
new number for that. A cluster that has listed a later size than the record's is told none (HD-34). Neighbour:
`placing` commits with a size.
"""

from __future__ import annotations

from gatelift.core.api.purposes import Purpose
from gatelift.core.clusters.link_values import ClusterView
from gatelift.core.dispatching import fit, placing, requests
from gatelift.core.dispatching.unexplained import is_unexplained
from gatelift.core.records import admission_writes
from gatelift.core.records.attempt_states import AttemptState
from gatelift.core.records.attempts import Attempt
from gatelift.core.records.work import Owner
from gatelift.core.state import api_requests
from gatelift.core.state.case import Case
from gatelift.core.state.core import Core
from gatelift_kinds.shared.values import KindError
from gatelift_kube.objects.gatelift import LOCAL_CLUSTER
from gatelift_wire.values.messages import Confirm, Message
from gatelift_wire.values.sizes import PlacementSize, Resize

_TOLD = frozenset({AttemptState.CHOSEN, AttemptState.PLACED, AttemptState.RUNNING})


def tell(case: Case, owner: Owner) -> None:
    """Say the size of a record where its cluster has yet to hear it in the present session."""
    core, attempt, now = case.core, case.attempt, case.now
    view = _view(core, attempt)
    number = requests.number_of(core, attempt.uid)
    if view is None or not number or attempt.size.is_ahead(number):
        return
    refused = attempt.size.refused
    if attempt.size.is_said(number, view.session) and (refused is None or refused.number != number):
        return
    if refused is not None and refused.number == number and now < refused.again_at:
        core.agenda.wake(attempt.look, refused.again_at)
        return
    if core.inflight.busy(case.rec.ref):
        return  # its answer looks here again
    if attempt.cluster != LOCAL_CLUSTER and case.rec.term != core.term:  # R3
        adoption = admission_writes.adoption_write(case.known, core.term)
        api_requests.patch_workload(core, case.known, adoption, Purpose.ADOPT)
        return
    message = _message(case, owner, number)
    if message is not None and (sent := core.send(attempt.cluster, (message,), now)).session:
        told = message.pod_sets if isinstance(message, Resize) else ()
        attempt.size.says(number, sent.session, {one.name: one.count for one in told} or None)


def _view(core: Core, attempt: Attempt) -> ClusterView | None:
    """Return the view of a cluster that is to hear of sizes now: it has the placement, and nothing is in doubt."""
    view = placing.open_view(core, attempt.cluster)
    if view is None or attempt.state not in _TOLD or core.caution.halted or core.caution.holds(attempt.key.uid):
        return None
    if is_unexplained(attempt, view) or fit.too_old(view):
        return None
    is_told = attempt.state is not AttemptState.CHOSEN and not attempt.wants_objects
    return view if is_told or attempt.heard_session == view.session else None


def _message(case: Case, owner: Owner, number: int) -> Message | None:
    core, attempt = case.core, case.attempt
    said, session = attempt.size.said_number, attempt.size.said_session
    if said == number and core.sessions.keeps(attempt.cluster, session) and attempt.size.refused is None:
        return Confirm(keys=(attempt.key,), sizes=(PlacementSize(key=attempt.key, number=number),))
    try:
        pod_sets = requests.said(core, attempt, owner.kind)
    except KindError as error:
        core.note(f"size {number} cannot be said: {error}", attempt, warning=True)
        return None
    return Resize(key=attempt.key, number=number, pod_sets=pod_sets)
