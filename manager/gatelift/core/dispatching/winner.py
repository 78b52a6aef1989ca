"""The winner is written before it is told: one write has reservation, admission, check and cluster.

Neighbour: `dispatch` chooses. What is written is told by the pass that finds it in the record.
"""

from __future__ import annotations

from gatelift.core import texts
from gatelift.core.api.purposes import Purpose
from gatelift.core.records import admission_writes, record
from gatelift.core.records.knowledge import ref_of
from gatelift.core.records.work import Owner
from gatelift.core.rules import readiness, targets
from gatelift.core.state import api_requests
from gatelift.core.state.case import Case
from gatelift.core.state.core import Core
from gatelift_wire.values.keys import ANNOTATION_DISCONNECT
from gatelift_wire.values.messages import DisconnectPolicy


def choose(case: Case, owner: Owner, cluster: str) -> None:
    """Write the winner: one status patch with reservation, admission, check and cluster.

    Of a cluster in doubt that gets work by a person's word it says in which session that was chosen: what was placed
    before is in doubt, and this is not, whoever leads (`unexplained`).
    Every placement gets the policy `wait`, the one that is acted on, and the record says so (P2): another policy there
    would be read as the promise that the agent stops the work by itself, which no agent does yet. Who asked is told.
    """
    core, workload, attempt = case.core, case.known, case.attempt
    reserve = attempt.reserve
    if reserve is None:
        return
    policy = DisconnectPolicy.WAIT
    asked_for = policy_asked_for(core, owner, cluster, reserve.admission.cluster_queue)
    if asked_for is not policy:
        text = texts.policy_not_served(asked_for.value)
        core.event(ref_of(workload), workload.metadata.uid, "DisconnectPolicyNotServed", text, warning=True)
    view = core.view(cluster)
    session = view.session if view is not None else 0
    doubted = view is not None and view.unproven
    choice = admission_writes.Choice(
        cluster=cluster,
        epoch=attempt.epoch,
        term=core.term,
        policy=policy,
        check=targets.multikueue_check(core, reserve.checks),
        placed_in=record.in_session(session, core.caution.recovery.uid_of(cluster)) if doubted else "",
    )
    attempt.choose(cluster, policy, session)
    wall, besides = core.wall.text(case.now), readiness.besides(core, workload)
    body = admission_writes.admission_write(workload, reserve, choice, wall, besides)
    api_requests.patch_workload(core, workload, body, Purpose.WINNER)


def policy_asked_for(core: Core, owner: Owner, cluster: str, queue: str) -> DisconnectPolicy:
    """Return what people ask for: the workload's annotation, else the ClusterQueue's or WorkerCluster's, else wait."""
    known = core.knowledge.cluster_queues.get(queue)
    view = core.view(cluster)
    return (
        record.policy_of(owner.object.metadata.annotations.get(ANNOTATION_DISCONNECT, ""))
        or (record.policy_of(known.metadata.annotations.get(ANNOTATION_DISCONNECT, "")) if known is not None else None)
        or (view.policy if view is not None else None)
        or DisconnectPolicy.WAIT
    )
