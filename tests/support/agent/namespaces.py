"""What becomes of a namespace in an agent's stage: it is deleted, goes, takes rights along; and a node is heard of."""

from __future__ import annotations

import msgspec

from gatelift_kube.deciding.writes import WriteError
from gatelift_kube.values.resources import JOB, NAMESPACE, NODE, POD
from gatelift_sandbox.embedded.drafts import Deletion
from support.agent.stage import Stage
from support.agent.values import NAMESPACE_NAME


def node_heard(stage: Stage, minute: int) -> None:
    """Let the kubelet of node-1 be heard of."""
    if stage.store.find(("", "nodes"), "", "node-1") is None:
        stage.create(NODE, {"metadata": {"name": "node-1"}})
    ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": f"2026-01-01T00:{minute:02}:00Z"}
    body = msgspec.json.encode({"status": {"conditions": [ready]}})
    kind = stage.store.kinds.of(NODE)
    stage.store.patch(kind, "", "node-1", body, "application/merge-patch+json", stage.now, subresource="status")
    stage.settle()


def all_go_unseen(stage: Stage) -> None:
    """Remove all pods and Jobs by force; the watches of them tell nothing of it."""
    stage.watched = set()
    for resource in (POD, JOB):
        kind = stage.store.kinds.of(resource)
        for document in stage.store.look_all((resource.group, resource.plural)):
            name = document["metadata"]["name"]
            bare = msgspec.json.encode({"metadata": {"finalizers": None}})
            stage.store.patch(kind, NAMESPACE_NAME, name, bare, "application/merge-patch+json", stage.now)
            if stage.store.look((resource.group, resource.plural), NAMESPACE_NAME, name) is not None:
                removal = Deletion(grace_seconds=0, propagation="Background")
                stage.store.delete(kind, NAMESPACE_NAME, name, removal, stage.now)


def writes_refused(stage: Stage) -> None:
    """Take away the rights that the RoleBinding of the namespace gave."""
    stage.fail = lambda write: WriteError.FORBIDDEN if write.ref.resource in {POD, JOB} else None


def rights_go(stage: Stage) -> None:
    """Take away these rights, and that to list pods."""
    writes_refused(stage)
    stage.allowed = False


def condemn(stage: Stage) -> None:
    """Begin to delete the namespace; its controller has not come by yet."""
    stage.store.delete(stage.store.kinds.of(NAMESPACE), "", NAMESPACE_NAME, Deletion(), stage.now)
    stage.settle()


def pod_names(stage: Stage) -> list[str]:
    return [each["metadata"]["name"] for each in stage.store.look_all(("", "pods"))]


def make_unseen(stage: Stage, *, labelled: bool = True) -> None:
    """Make one more pod of Job j that no watch shows."""
    first = stage.pod(pod_names(stage)[0])
    owned = {key: first["metadata"][key] for key in ("labels", "ownerReferences") if labelled or key != "labels"}
    stage.watched = set()
    stage.create(POD, {"metadata": {"name": "late", "namespace": NAMESPACE_NAME, **owned}, "spec": first["spec"]})
    stage.watched = {NAMESPACE_NAME}


def job_pods_end(stage: Stage) -> None:
    """Delete the pods of Job j as the namespace's controller does; their kubelet and the Job's controller follow."""
    for name in set(pod_names(stage)) - {"late"}:
        stage.remove(POD, name)
        stage.finish(name, "Failed")
    stage.change(JOB, "j", {"status": {"active": 0, "terminating": 0, "failed": 2}}, "status")


def job_goes(stage: Stage) -> None:
    """Let all of the Job's pods end, and then delete it, as the namespace's controller does."""
    job_pods_end(stage)
    stage.remove(JOB, "j")


def running_pod(stage: Stage | None = None) -> Stage:
    """Return a stage on which a pod runs."""
    stage = stage or Stage()
    stage.start()
    stage.place()
    stage.run()
    return stage
