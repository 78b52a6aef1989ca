"""Reviews of pods of a group, by webhooks that serve groups: over TLS, with the Workload that is theirs."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest

from gatelift.webhooks.app import Daemon
from gatelift_kinds.registry import WITH_GROUPS
from gatelift_kinds.shared.names import workload_name
from gatelift_kube.api.client import Client
from gatelift_kube.values.resources import WORKLOAD
from support.manager.webhook_requests import Json, K, operations, queued
from support.servers.fake_apiserver import FakeApiServer
from support.until import until

from .conftest import SETTINGS, Asking

GATE = {"name": f"{K}admission"}
NOW = "2026-01-01T00:00:00Z"


@pytest.fixture
async def daemon(client: Client) -> AsyncIterator[Daemon]:
    made = Daemon(client, SETTINGS, kinds=WITH_GROUPS)
    await made.start()
    await until(lambda: not made.missing(), "the daemon is ready")
    yield made
    await made.stop()


def a_member(total: str | None = "3", queue: str = "near", **notes: str) -> Json:
    pod = queued(queue, name="p", uid="uid-p")
    pod["metadata"]["labels"] |= {f"{K}pod-group-name": "g", f"{K}managed": "true"}
    size = {} if total is None else {f"{K}pod-group-total-count": total}
    pod["metadata"]["annotations"] = {**size, **{K + key: value for key, value in notes.items()}}
    pod["spec"]["schedulingGates"] = [GATE]
    return pod


def holds_quota(server: FakeApiServer, name: str, cluster: str | None = None) -> None:
    reserved = {"type": "QuotaReserved", "status": "True", "reason": "x", "message": "", "lastTransitionTime": NOW}
    server.put(WORKLOAD, name, "team", status={"conditions": [reserved], "clusterName": cluster})


async def test_pw_015_a_pod_of_a_group_is_taken_over(asking: Asking) -> None:
    pod = queued()
    pod["metadata"]["labels"][f"{K}pod-group-name"] = "g"
    pod["metadata"]["annotations"] = {f"{K}pod-group-total-count": "3"}
    response = await asking.review("/mutate-pod", "Pod", pod)
    assert operations(response)["/spec/schedulingGates"] == [GATE]
    assert (await asking.review("/validate-pod", "Pod", a_member()))["allowed"]


async def test_bg_1_a_group_without_its_size_is_refused(asking: Asking) -> None:
    response = await asking.review("/validate-pod", "Pod", a_member(None))
    said = "Required value: has to be given together with the group's name"
    assert response["status"]["message"] == f"metadata.annotations[{K}pod-group-total-count]: {said}"


async def test_bg_6_a_label_beside_another_annotation_is_warned_of(asking: Asking) -> None:
    response = await asking.review("/validate-pod", "Pod", a_member(**{"pod-group-name": "other"}))
    assert response["allowed"]
    (line,) = response["warnings"]
    assert "is not read: the annotation of that name counts" in line


@pytest.mark.parametrize(
    ("name", "allowed"),
    [
        pytest.param("g", False, id="BG-8 the group's Workload holds quota"),
        pytest.param(workload_name("Pod", "", "p", "uid-p"), True, id="one that is named as a single pod's"),
    ],
)
async def test_hd_337_the_workload_of_a_member_is_the_groups(
    asking: Asking, server: FakeApiServer, name: str, *, allowed: bool
) -> None:
    holds_quota(server, name)
    for changed in (a_member("4"), a_member(queue="far")):
        response = await asking.review("/validate-pod", "Pod", changed, a_member())
        assert response["allowed"] is allowed
        assert allowed or "holds quota" in response["status"]["message"]


async def test_what_a_run_elsewhere_takes_no_notice_of_is_refused_for_a_member_too(
    asking: Asking, server: FakeApiServer
) -> None:
    holds_quota(server, "g", "w1")
    debug = a_member()
    debug["spec"]["ephemeralContainers"] = [{"name": "debugger"}]
    response = await asking.review("/validate-pod", "Pod", debug, a_member())
    assert "in worker cluster w1" in response["status"]["message"]


async def test_a_change_that_depends_on_no_quota_reads_no_workload(asking: Asking, server: FakeApiServer) -> None:
    changed = a_member(**{"retriable-in-group": "false"})
    assert (await asking.review("/validate-pod", "Pod", changed, a_member()))["allowed"]
    assert not server.asked("GET", "/workloads/")


async def test_bg_5_a_name_that_no_workload_can_have_keeps_nobody_from_mending_its_pod(asking: Asking) -> None:
    wrong, mended = a_member("3"), a_member("4")
    for each in (wrong, mended):
        each["metadata"]["labels"][f"{K}pod-group-name"] = "a/b"
    assert (await asking.review("/validate-pod", "Pod", mended, wrong))["allowed"]


async def test_hd_336_a_queued_pod_joins_no_group(asking: Asking) -> None:
    alone = a_member()
    del alone["metadata"]["labels"][f"{K}pod-group-name"], alone["metadata"]["annotations"]
    response = await asking.review("/validate-pod", "Pod", a_member(), alone)
    assert "cannot be given to a pod that was queued by itself" in response["status"]["message"]


async def test_a_pod_that_cannot_be_read_is_refused_with_the_field_and_the_daemon_lives(asking: Asking) -> None:
    response = await asking.review("/validate-pod", "Pod", {**a_member(), "spec": {"tolerations": 5}})
    assert not response["allowed"]
    assert "$.spec.tolerations" in json.dumps(response["status"])
    assert (await asking.review("/validate-pod", "Pod", a_member()))["allowed"]
