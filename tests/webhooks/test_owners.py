"""What is owned: a pod of a queued Job is that Job's business, all else waits for its own quota."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from gatelift.config import Configuration
from gatelift.webhooks import judge, owners
from gatelift.webhooks.app import Daemon, settings_of
from gatelift_kinds.shared import markers
from gatelift_kinds.shared.names import workload_name
from gatelift_kube.api.client import Client
from gatelift_kube.values.resources import JOB, LOCAL_QUEUE, WORKLOAD
from support.manager.webhook_requests import Json, K, operations, owned, queued
from support.servers.fake_apiserver import FakeApiServer
from support.until import until

from .conftest import SETTINGS, Asking

NOW = "2026-01-01T00:00:00Z"
MANIFESTS = Path(__file__).parents[2] / "deploy" / "policies"
BY_CONTROLLER: Json = {"username": "system:serviceaccount:kube-system:job-controller"}
STRANGERS = [
    pytest.param({"username": "a-tenant"}, id="a tenant"),
    pytest.param({"username": "system:serviceaccount:team:job-controller"}, id="an account of that name of his own"),
    pytest.param({"username": "system:serviceaccount:kube-system:replicaset-controller"}, id="another controller"),
    pytest.param({"username": "system:node:n"}, id="a kubelet"),
    pytest.param({}, id="nobody named"),
]


@pytest.mark.parametrize(
    ("labels", "taken"),
    [
        pytest.param({f"{K}queue-name": "near"}, False, id="a queued Job: the pod is the Job's business"),
        pytest.param({}, True, id="a Job without a queue"),
    ],
)
async def test_a_pod_is_taken_over_under(asking: Asking, server: FakeApiServer, labels: Json, taken: bool) -> None:
    """PI-W5, PI-008, PC-106."""
    server.put(JOB, "j", "team", metadata={"labels": labels})
    pod = queued(ownerReferences=owned("j", "uid-j"))
    assert bool(operations(await asking.review("/mutate-pod", "Pod", pod, userInfo=BY_CONTROLLER))) is taken


@pytest.mark.parametrize("path", ["/mutate-pod", "/validate-pod"])
@pytest.mark.parametrize("username", sorted(judge.CONTROLLERS))
async def test_hd_198_a_pod_of_a_queued_job_is_made_by_the_controller_of_jobs(
    asking: Asking, server: FakeApiServer, username: str, path: str
) -> None:
    server.put(JOB, "j", "team", metadata={"labels": {f"{K}queue-name": "near"}})
    pod = queued(ownerReferences=owned("j", "uid-j"))
    response = await asking.review(path, "Pod", pod, userInfo={"username": username})
    assert response["allowed"]
    assert not operations(response)


@pytest.mark.parametrize("user", STRANGERS)
async def test_hd_198_one_that_somebody_else_makes_waits_for_its_own_quota(
    asking: Asking, server: FakeApiServer, user: Json
) -> None:
    """The Job may wait for ever, and its controller takes such an owner off: it would run on, charged to nobody."""
    server.put(JOB, "j", "team", metadata={"labels": {f"{K}queue-name": "near"}})
    pod = queued(ownerReferences=owned("j", "uid-j"))
    changes = operations(await asking.review("/mutate-pod", "Pod", pod, userInfo=user))
    assert changes["/spec/schedulingGates"] == [{"name": f"{K}admission"}]
    gated = {**pod, "spec": {**pod["spec"], "schedulingGates": changes["/spec/schedulingGates"]}}
    assert (await asking.review("/validate-pod", "Pod", gated, userInfo=user))["allowed"]


async def test_hd_198_so_does_one_without_a_queue_where_a_default_queues_every_pod(
    client: Client, server: FakeApiServer
) -> None:
    server.put(LOCAL_QUEUE, "default", "team", spec={"clusterQueue": "near"})
    server.put(JOB, "j", "team", metadata={"labels": {f"{K}queue-name": "near"}})
    pod: Json = {"metadata": {"ownerReferences": owned("j", "uid-j")}, "spec": {"containers": []}}
    daemon = Daemon(client, SETTINGS)
    await daemon.start()
    try:
        await until(lambda: not daemon.missing(), "the daemon is ready")
        asking = Asking(server, daemon)
        assert not operations(await asking.review("/mutate-pod", "Pod", pod, userInfo=BY_CONTROLLER))
        changes = operations(await asking.review("/mutate-pod", "Pod", pod, userInfo={"username": "a-tenant"}))
        assert changes["/spec/schedulingGates"] == [{"name": f"{K}admission"}]
    finally:
        await daemon.stop()


@pytest.mark.parametrize("user", STRANGERS)
async def test_hd_198_one_that_nothing_holds_back_is_refused_with_the_way_out(
    asking: Asking, server: FakeApiServer, user: Json
) -> None:
    server.put(JOB, "j", "team", metadata={"labels": {f"{K}queue-name": "near"}})
    pod: Json = {"metadata": {"labels": {f"{K}managed": "true"}, "ownerReferences": owned("j", "uid-j")}, "spec": {}}
    response = await asking.review("/validate-pod", "Pod", pod, userInfo=user)
    assert not response["allowed"]
    text = response["status"]["message"]
    assert text.startswith("metadata.ownerReferences: Forbidden: names a queued Job as its controller")
    assert "leave the owner out" in text


async def test_hd_198_what_was_found_for_somebody_else_is_not_kept_for_the_controller(
    asking: Asking, server: FakeApiServer
) -> None:
    """A Job that waits may be given a queue, or lose it, until its controller makes the first pod."""
    server.put(JOB, "j", "team", metadata={"labels": {}})
    pod = queued(ownerReferences=owned("j", "uid-j"))
    await asking.review("/mutate-pod", "Pod", pod)
    server.put(JOB, "j", "team", metadata={"labels": {f"{K}queue-name": "near"}})
    assert not operations(await asking.review("/mutate-pod", "Pod", pod, userInfo=BY_CONTROLLER))


async def test_hd_198_of_a_change_nobody_asks_whose_the_pod_is(asking: Asking, server: FakeApiServer) -> None:
    server.put(JOB, "j", "team", metadata={"labels": {f"{K}queue-name": "near"}})
    pod = queued(ownerReferences=owned("j", "uid-j"))
    assert (await asking.review("/validate-pod", "Pod", pod, pod))["allowed"]
    assert not server.asked("GET", "/jobs/j")


def test_hd_198_the_policies_and_the_webhooks_know_one_list_of_controllers_of_jobs() -> None:
    for cluster in ("management", "worker"):
        text = (MANIFESTS / cluster / "policies.yaml").read_text()
        policies = [each for each in yaml.safe_load_all(text) if each["kind"] == "ValidatingAdmissionPolicy"]
        variables = [each for policy in policies for each in policy["spec"].get("variables", [])]
        (made,) = [each["expression"] for each in variables if each["name"] == "madeForAJob"]
        assert set(re.findall(r"'(system:[^']+)'", made)) == judge.CONTROLLERS


@pytest.mark.parametrize("kind", ["Job", "CronJob", "JobSet"])
async def test_hd_156_a_job_waits_for_its_own_quota_whoever_owns_it(
    asking: Asking, server: FakeApiServer, kind: str
) -> None:
    """A Job's controller makes pods, never Jobs; CronJobs and JobSets are not queued here."""
    server.put(JOB, "j", "team", metadata={"labels": {f"{K}queue-name": "near"}})
    owner = [{**owned("j", "uid-j")[0], "kind": kind}]
    job = {**queued(ownerReferences=owner), "spec": {"template": {}}}
    patch = operations(await asking.review("/mutate-job", "Job", job))
    assert "/spec/suspend" in patch
    assert not server.asked("GET", "/jobs/j"), "nobody need know whose it is"


@pytest.mark.parametrize("kind", ["Deployment", "CronJob", "DaemonSet", "JobSet"])
async def test_hd_158_a_queues_name_on_what_makes_pods_is_refused_with_the_way_out(asking: Asking, kind: str) -> None:
    response = await asking.review("/validate-unserved", kind, queued())
    assert f"kind {kind} is not queued by this version" in response["status"]["message"]


@pytest.mark.parametrize(
    ("username", "api_version", "kind", "allowed"),
    [
        ("mallory", "v1", "ConfigMap", False),
        ("mallory", "ray.io/v1", "RayJob", False),
        ("system:serviceaccount:ops:operator", "example.com/v1", "Database", False),
        ("system:serviceaccount:ray-system:kuberay-operator", "ray.io/v1", "RayJob", True),
    ],
)
async def test_is_41_what_an_operator_makes_of_a_resource_that_was_judged_is_warned_of_and_nothing_else_let_through(
    asking: Asking, username: str, api_version: str, kind: str, *, allowed: bool
) -> None:
    owner = [{**owned("o", "u")[0], "apiVersion": api_version, "kind": kind}]
    made = queued(ownerReferences=owner)
    response = await asking.review("/validate-unserved", "Deployment", made, userInfo={"username": username})
    assert response["allowed"] is allowed
    said = response.get("warnings", [""])[0] if allowed else response["status"]["message"]
    assert "kind Deployment is not queued by this version" in said


@pytest.mark.parametrize(
    ("namespace", "kind", "allowed"),
    [("team", "JobSet", False), ("team", "MPIJob", True), ("kube-system", "JobSet", True)],
)
async def test_is_41_in_managed_namespaces_unless_another_controller_queues_that_kind(
    client: Client, server: FakeApiServer, namespace: str, kind: str, allowed: bool
) -> None:
    integrations = {"externalFrameworks": ["MPIJob.v2beta1.kubeflow.org"]}
    file = Configuration.model_validate({"integrations": integrations})
    external = settings_of(file).external_frameworks
    daemon = Daemon(client, dataclasses.replace(SETTINGS, external_frameworks=external))
    await daemon.start()
    try:
        await until(lambda: not daemon.missing(), "the daemon is ready")
        response = await Asking(server, daemon).review("/validate-unserved", kind, queued(), namespace=namespace)
        assert response["allowed"] is allowed
    finally:
        await daemon.stop()


async def test_an_owner_is_read_once_for_all_its_pods(asking: Asking, server: FakeApiServer) -> None:
    server.put(JOB, "j", "team", metadata={"labels": {}})
    for _ in range(3):
        pod = queued(ownerReferences=owned("j", "uid-j"))
        await asking.review("/mutate-pod", "Pod", pod, userInfo=BY_CONTROLLER)
    assert len(server.asked("GET", "/jobs/j")) == 1


async def test_another_job_of_the_same_name_is_not_the_owner(asking: Asking, server: FakeApiServer) -> None:
    """PI-W4."""
    server.put(JOB, "j", "team", metadata={"labels": {f"{K}queue-name": "near"}})
    pod = queued(ownerReferences=owned("j", "uid-of-an-earlier-one"))
    assert operations(await asking.review("/mutate-pod", "Pod", pod, userInfo=BY_CONTROLLER))


async def test_a_pod_whose_owner_is_missing_is_refused_with_the_way_out(asking: Asking) -> None:
    response = await asking.review("/mutate-pod", "Pod", queued(ownerReferences=owned("gone", "u")))
    assert not response["allowed"]
    assert "Job gone, is not there: make the pod without that owner" in response["status"]["message"]


@pytest.mark.parametrize("name", ["..", "a/b", "a%2fb"])
async def test_hd_148_so_is_one_whose_owner_no_job_can_be(asking: Asking, server: FakeApiServer, name: str) -> None:
    response = await asking.review("/mutate-pod", "Pod", queued(ownerReferences=owned(name, "u")))
    assert not response["allowed"]
    assert f"Job {name}, is not there: make the pod without that owner" in response["status"]["message"]
    assert not server.asked("GET", "/jobs")


async def test_a_change_of_a_pod_does_not_depend_on_its_owner(asking: Asking) -> None:
    pod = queued(ownerReferences=owned("gone", "u"))
    assert (await asking.review("/validate-pod", "Pod", pod, pod))["allowed"]


async def test_owners_of_other_kinds_are_nobody_we_queue(asking: Asking, server: FakeApiServer) -> None:
    owner = [{**owned("x", "u")[0], "apiVersion": "apps/v1", "kind": "ReplicaSet"}]
    assert operations(await asking.review("/mutate-pod", "Pod", queued(ownerReferences=owner)))
    assert not server.asked("GET", "/replicasets/")


async def test_hd_143_a_pod_with_a_queue_below_another_owner_of_a_queued_job_is_held_back_and_charged_by_itself(
    asking: Asking, server: FakeApiServer
) -> None:
    """Job, ReplicaSet, pod: Kueue walks up to the Job and lets the pod run on its charge, which does not count it."""
    server.put(JOB, "j", "team", metadata={"labels": {f"{K}queue-name": "near"}})
    between = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": "between",
        "uid": "uid-between",
        "controller": True,
    }
    changes = operations(await asking.review("/mutate-pod", "Pod", queued(ownerReferences=[between])))
    written = str(changes)
    assert f"{K}admission" in written
    assert "managed" in written


async def test_the_memory_of_owners_is_bounded(client: Client, server: FakeApiServer, monkeypatch: Any) -> None:
    monkeypatch.setattr(owners, "KEPT_MAX", 2)
    known = owners.Owners(client)
    for name in ("a", "b", "c"):
        server.put(JOB, name, "team")
        await known.managed("team", queued(ownerReferences=owned(name, f"uid-{name}")), by_controller=True)
    assert len(known._kept) == 2


@pytest.mark.parametrize(("reserved", "told"), [("True", 1), ("False", 0)])
async def test_hd_170_what_is_changed_while_a_run_may_be_starting_is_warned_of(
    asking: Asking, server: FakeApiServer, reserved: str, told: int
) -> None:
    name = workload_name("Job", "batch", "j", "uid-j")
    condition = {"type": "QuotaReserved", "status": reserved, "reason": "x", "message": "", "lastTransitionTime": NOW}
    server.put(WORKLOAD, name, "team", status={"conditions": [condition]})
    metadata: Json = {"name": "j", "uid": "uid-j", "labels": {f"{K}queue-name": "near"}}
    old: Json = {
        "metadata": metadata,
        "spec": {"suspend": True, "managedBy": markers.MULTIKUEUE_MANAGER, "template": {}},
    }
    new = {**old, "spec": {**old["spec"], "activeDeadlineSeconds": 9}}
    response = await asking.review("/validate-job", "Job", new, old)
    assert response["allowed"]
    warnings = response.get("warnings", [])
    assert len(warnings) == told
    assert all(f"spec.activeDeadlineSeconds: its Workload {name} holds quota" in each for each in warnings)
    same = await asking.review(
        "/validate-job", "Job", {**old, "metadata": {**metadata, "annotations": {"a": "b"}}}, old
    )
    assert same["allowed"]
    assert len(server.asked("GET", f"/workloads/{name}")) == 1, "it is read for such a change alone"


@pytest.mark.parametrize(
    ("cluster", "reserved", "allowed", "told"),
    [
        pytest.param("w1", "True", False, 0, id="it runs on a worker"),
        pytest.param(None, "True", True, 1, id="no cluster is chosen yet"),
        pytest.param("local", "True", True, 1, id="it is let go here"),
        pytest.param("w1", "False", True, 0, id="it waits again"),
    ],
)
async def test_hd_203_hd_213_what_is_changed_of_a_pod_depends_on_where_its_workload_is(
    asking: Asking, server: FakeApiServer, cluster: str | None, reserved: str, allowed: bool, told: int
) -> None:
    name = workload_name("Pod", "", "p", "uid-p")
    condition = {"type": "QuotaReserved", "status": reserved, "reason": "x", "message": "", "lastTransitionTime": NOW}
    server.put(WORKLOAD, name, "team", status={"conditions": [condition], "clusterName": cluster})
    old = queued("far", name="p", uid="uid-p")
    old["spec"]["schedulingGates"] = [{"name": f"{K}admission"}]
    new = {**old, "spec": {**old["spec"], "activeDeadlineSeconds": 9}}
    response = await asking.review("/validate-pod", "Pod", new, old)
    assert response["allowed"] is allowed
    assert len(response.get("warnings", [])) == told
    if not allowed:
        assert "spec.activeDeadlineSeconds" in response["status"]["message"]
        debug = {**old, "spec": {**old["spec"], "ephemeralContainers": [{"name": "debugger"}]}}
        response = await asking.review("/validate-pod", "Pod", debug, old)
        assert "in worker cluster w1" in response["status"]["message"], "HD-213"
    assert (await asking.review("/validate-pod", "Pod", old, old))["allowed"]
    assert len(server.asked("GET", f"/workloads/{name}")) == 1 + (not allowed), "it is read for such a change alone"
