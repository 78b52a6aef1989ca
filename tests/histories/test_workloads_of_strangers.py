"""Scripted histories (HD-310, HD-312, HD-314 to HD-316): a Workload that names what is not its own.

Whoever may make Workloads in one namespace writes in it whatever owner references he likes. UIDs are no secret.
"""

from __future__ import annotations

import copy

import pytest

from gatelift_kinds.shared.names import workload_name
from gatelift_kube.values.resources import JOB, LOCAL_QUEUE, NAMESPACE, POD, SERVICE_ACCOUNT, WORKLOAD, Resource
from support.manager.builders import a_job, a_pod
from support.sim.cluster import ELSEWHERE, TEAM, Doc
from support.sim.history import History

CLASS = "kueue.x-k8s.io/priority-class"
KEPT = ["example.com/keep"]
"""A finalizer of the stranger's own: what is deleted stays."""


def a_history() -> History:
    """Return one in which a second namespace has a queue, and may run work on every worker."""
    history = History(shown=False)
    (spec,) = [one["spec"] for one in history.home.all(LOCAL_QUEUE) if one["metadata"]["name"] == "travels"]
    history.home.create(LOCAL_QUEUE, {"metadata": {"name": "theirs", "namespace": ELSEWHERE}, "spec": spec})
    for worker in history.workers.values():
        worker.change(NAMESPACE, ELSEWHERE, {"metadata": {"labels": {"gatelift.dev/accept": "true"}}})
    history.passes(5)
    return history


def there(history: History, resource: Resource, name: str, namespace: str = TEAM) -> Doc:
    found = history.home.look(resource, name, namespace)
    assert found is not None
    return found


def a_queued_pod(history: History, name: str, cpu: str, **labels: str) -> Doc:
    document = a_pod(name).asking(cpu=cpu).document()
    own = {"kueue.x-k8s.io/queue-name": "travels", "kueue.x-k8s.io/managed": "true", **labels}
    document["metadata"] |= {"namespace": TEAM, "labels": document["metadata"]["labels"] | own}
    del document["status"]
    history.home.create(POD, document)
    history.passes(5)
    return there(history, POD, name)


def a_plain_job(
    history: History, name: str, labels: dict[str, str], managed_by: str = "", *, runs: bool = False
) -> Doc:
    document = a_job(name, parallelism=1, cpu="500m")
    document["metadata"] |= {"namespace": TEAM, "labels": labels}
    document["spec"] |= {"managedBy": managed_by or None, "suspend": not runs}
    document.pop("status", None)
    history.home.create(JOB, document)
    return there(history, JOB, name)


def reference(resource: Resource, obj: Doc, **other: str) -> Doc:
    meta = obj["metadata"]
    named = {"apiVersion": resource.api_version, "kind": resource.kind, "name": meta["name"], "uid": meta["uid"]}
    return named | other


def own_name(resource: Resource, obj: Doc) -> str:
    """Return what its Workload is called, which everybody can work out."""
    return workload_name(resource.kind, resource.group, obj["metadata"]["name"], obj["metadata"]["uid"])


def a_workload(
    name: str, owners: list[Doc], pod_spec: Doc, *, namespace: str = ELSEWHERE, queue: str = "theirs"
) -> Doc:
    spec = copy.deepcopy(pod_spec)
    for each in spec["containers"]:
        each["resources"] = {"requests": {"cpu": "500m"}}
    pod_set = {"name": "main", "count": 1, "template": {"spec": spec}}
    metadata = {"name": name, "namespace": namespace, "ownerReferences": owners}
    return {"metadata": metadata, "spec": {"queueName": queue, "priority": 0, "active": True, "podSets": [pod_set]}}


def at_workers(history: History) -> list[str]:
    found = [pod["metadata"] for worker in history.workers.values() for pod in worker.all(POD)]
    return [f"{each['namespace']}/{each['name']}" for each in found]


# --- HD-310 -----------------------------------------------------------------------------------------------------------


def test_hd_310_a_workload_of_another_namespace_is_not_the_one_of_an_object_whose_own_was_deleted() -> None:
    history = a_history()
    a_queued_pod(history, "filler", "3")
    pod = a_queued_pod(history, "v", "500m")
    theirs = a_workload("mine", [reference(POD, pod)], pod["spec"])
    theirs["metadata"]["finalizers"] = KEPT
    history.home.create(WORKLOAD, theirs)
    history.passes(5)
    history.edit("home", WORKLOAD, own_name(POD, pod), {"metadata": {"finalizers": None}})  # else it ends with it
    history.delete("home", WORKLOAD, own_name(POD, pod))
    history.delete("home", POD, "filler")
    history.until_runs("v")


@pytest.mark.parametrize("kind", ["Pod", "Foo"])
def test_hd_310_nor_of_one_that_has_none_yet(kind: str) -> None:
    history = a_history()
    pod = a_queued_pod(history, "v", "500m", **{CLASS: "later"})
    owner = reference(POD, pod, kind=kind, apiVersion="v1" if kind == "Pod" else "example.com/v1")
    history.home.create(WORKLOAD, a_workload("mine", [owner], pod["spec"]))
    history.passes(5)
    history.edit("home", POD, "v", {"metadata": {"labels": {CLASS: None}}})
    history.until_runs("v")


# --- HD-312 -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("called", ["zzz", "v"])
def test_hd_312_a_workload_that_calls_an_object_by_another_name_is_not_placed(called: str) -> None:
    """HD-312: what was made anew under the true name would not wait for it."""
    history = a_history()
    pod = a_queued_pod(history, "v", "500m", **{CLASS: "later"})
    stays = reference(SERVICE_ACCOUNT, there(history, SERVICE_ACCOUNT, "default"))
    owners = [reference(POD, pod, name=called), stays]
    history.home.create(WORKLOAD, a_workload(own_name(POD, pod), owners, pod["spec"], namespace=TEAM, queue="travels"))
    history.passes(30)
    assert at_workers(history) == ([] if called != "v" else ["team/v"]), "only the true one is"


def test_hd_312_an_object_runs_in_no_other_namespace_by_a_workload_that_names_it_there() -> None:
    history = a_history()
    pod = a_queued_pod(history, "v", "500m", **{CLASS: "later"})
    stays = reference(SERVICE_ACCOUNT, there(history, SERVICE_ACCOUNT, "default", ELSEWHERE))
    history.home.create(WORKLOAD, a_workload("mine", [reference(POD, pod), stays], pod["spec"]))
    history.passes(40)
    assert at_workers(history) == []
    history.edit("home", POD, "v", {"metadata": {"labels": {CLASS: None}}})
    history.until_runs("v")
    assert at_workers(history) == ["team/v"]


# --- HD-314 -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("namespace", [ELSEWHERE, TEAM])
@pytest.mark.parametrize(
    ("labels", "managed_by"),
    [
        ({"kueue.x-k8s.io/queue-name": "stays"}, "example.com/other"),
        ({CLASS: "x"}, ""),
        ({}, ""),
    ],
    ids=["another-controllers", "in-no-queue", "without-a-mark"],
)
def test_hd_314_a_job_that_is_none_of_ours_is_not_suspended_since_a_workload_names_it(
    labels: dict[str, str], managed_by: str, namespace: str
) -> None:
    history = a_history()
    job = a_plain_job(history, "plain", labels, managed_by, runs=True)
    history.passes(5)
    queue = "theirs" if namespace == ELSEWHERE else "stays"
    spec = job["spec"]["template"]["spec"]
    named = a_workload(own_name(JOB, job), [reference(JOB, job)], spec, namespace=namespace, queue=queue)
    named["metadata"]["finalizers"] = KEPT
    before = there(history, JOB, "plain")["spec"]
    history.home.create(WORKLOAD, named)
    for _ in range(30):
        history.passes(1)
        assert there(history, JOB, "plain")["spec"] == before


# --- HD-315 -----------------------------------------------------------------------------------------------------------


def poisoned(history: History, name: str) -> None:
    """Name the UID of somebody's Workload as that of a pod which is not there."""
    workload = history.workload(name)
    assert workload is not None
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "nope", "uid": workload["metadata"]["uid"]}
    history.home.create(WORKLOAD, a_workload("mine", [owner], {"containers": [{"name": "c", "image": "x"}]}))
    history.passes(5)


def running(seconds: float = 0.0) -> History:
    history = a_history()
    history.pod("v", "travels", "500m", seconds=seconds)
    history.until_runs("v")
    history.passes(5)
    poisoned(history, "v")
    return history


def test_hd_315_a_workload_whose_uid_an_owner_reference_names_is_stopped_when_it_is_deactivated() -> None:
    history = running()
    workload = history.workload("v")
    assert workload is not None
    history.edit("home", WORKLOAD, workload["metadata"]["name"], {"spec": {"active": False}})
    history.until("it has stopped", lambda: not (history.containers("v") or history.leader.charges("travels")), 120.0)


def test_hd_315_it_gives_its_quota_back_when_it_ends() -> None:
    history = running(60.0)
    history.until("its quota is free", lambda: not history.leader.charges("travels"), 200.0)


def test_hd_315_it_goes_with_its_object() -> None:
    history = running()
    history.delete("home", POD, "v")
    history.until("its Workload is gone", lambda: history.workload("v") is None, 200.0)


def test_hd_315_its_quota_is_given_to_nobody_else() -> None:
    history = a_history()
    history.pod("filler", "travels", "3")
    history.until_runs("filler")
    history.pod("v", "travels", "2")
    history.passes(10)
    poisoned(history, "v")
    history.pod("second", "travels", "2")
    history.passes(10)
    history.delete("home", POD, "filler")
    history.passes(300)
    assert (history.containers("v"), history.containers("second")) == (1, 0)
    assert history.leader.charges("travels") == 2000


# --- HD-316 -----------------------------------------------------------------------------------------------------------


def test_hd_316_the_second_object_that_a_workload_names_is_held_back_as_one_without() -> None:
    history = a_history()
    labels = {"kueue.x-k8s.io/queue-name": "stays", CLASS: "nope"}
    jobs = [a_plain_job(history, name, labels) for name in ("first", "second")]
    owners = [reference(JOB, job) for job in jobs]
    spec = jobs[0]["spec"]["template"]["spec"]
    history.home.create(WORKLOAD, a_workload(own_name(JOB, jobs[0]), owners, spec, namespace=TEAM, queue="stays"))
    history.until("the first one runs", lambda: history.leader.charges("stays") == 500, 60.0)
    history.passes(10)
    history.edit("home", JOB, "second", {"spec": {"suspend": False}})
    for _ in range(10):
        history.passes(10)
        assert there(history, JOB, "second")["spec"]["suspend"]
        assert not there(history, JOB, "first")["spec"]["suspend"]
        assert history.leader.charges("stays") == 500
