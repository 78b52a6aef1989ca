"""The words of a preemption: who leaves for whom, why, and where both stand in the tree. Neighbour: `outcomes`."""

from __future__ import annotations

from typing import Final

from gatelift_admission import texts
from gatelift_admission.entries.entry import Entry
from gatelift_admission.preemption.candidates import Reason, Target
from gatelift_admission.quota.nodes import TreeNode
from gatelift_admission.values.model import Preempt

JOB_UID_LABEL: Final = "kueue.x-k8s.io/job-uid"
WHY: Final = {
    Reason.IN_QUEUE: "prioritization in the ClusterQueue",
    Reason.RECLAIM: "reclamation within the cohort",
    Reason.FAIR_SHARING: "Fair Sharing within the cohort",
    Reason.RECLAIM_WHILE_BORROWING: "reclamation within the cohort while borrowing",
}


def decision(preemptor: Entry, node: TreeNode, target: Target) -> Preempt:
    """Return the decision that `target` has to leave for `preemptor`, which waits in the queue of `node`."""
    victim = target.entry
    message = texts.preempted(_identity(preemptor), WHY[target.reason], (path(node), path(target.node)))
    priorities = texts.priorities(_priority(preemptor), _priority(victim))
    return Preempt(
        uid=victim.uid,
        key=victim.key,
        reason=target.reason.value,
        message=message,
        event=texts.preempted_event(message, priorities),
        preemptor_uid=preemptor.uid,
        preemptor=preemptor.key,
        preemptor_message=texts.preempts(str(victim.key), victim.uid, target.node.name, priorities),
    )


def path(node: TreeNode) -> str:
    """Return where a queue stands: `/root/.../queue`."""
    names = []
    at: TreeNode | None = node
    while at is not None:
        names.append(at.name)
        at = at.parent
    return "/" + "/".join(reversed(names))


def _priority(entry: Entry) -> tuple[int, int]:
    return entry.priority, entry.workload.spec.priority or 0


def _identity(entry: Entry) -> str:
    return texts.identity(entry.uid, entry.workload.metadata.labels.get(JOB_UID_LABEL, ""))
