"""Pods of a group on real API servers, at home and at a worker: they wait, run as one, and end with a result."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
import yaml

from gatelift_kube.values.resources import LOCAL_QUEUE, POD
from gatelift_sandbox import applying
from gatelift_sandbox.behaviour import Behaviour
from support.e2e.admission import queue as a_queue
from support.e2e.groups import PLACES, RETRIABLE, Group, K
from support.e2e.world import GPU, MODULE_SECONDS, Json, World

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(MODULE_SECONDS)]

STORY = """
apiVersion: v1
kind: Pod
metadata:
  name: job-driver
  labels:
    kueue.x-k8s.io/queue-name: user-queue
    kueue.x-k8s.io/pod-group-name: pod-group
  annotations:
    kueue.x-k8s.io/pod-group-total-count: "3"
spec:
  containers:
  - name: job
    image: driver
    resources:
      requests:
        cpu: 1m
---
apiVersion: v1
kind: Pod
metadata:
  name: job-worker-0
  labels:
    kueue.x-k8s.io/queue-name: user-queue
    kueue.x-k8s.io/pod-group-name: pod-group
  annotations:
    kueue.x-k8s.io/pod-group-total-count: "3"
spec:
  containers:
  - name: job
    image: worker
    args: ["--index", "0"]
    resources:
      requests:
        cpu: 1m
        vendor.com/gpu: 1
---
apiVersion: v1
kind: Pod
metadata:
  name: job-worker-1
  labels:
    kueue.x-k8s.io/queue-name: user-queue
    kueue.x-k8s.io/pod-group-name: pod-group
  annotations:
    kueue.x-k8s.io/pod-group-total-count: "3"
spec:
  containers:
  - name: job
    image: worker
    args: ["--index", "1"]
    resources:
      requests:
        cpu: 1m
        vendor.com/gpu: 1
"""
"""KEP-976's story 2, but for `limits`, which a real API server wants of an extended resource as well."""
SOON = Behaviour(run_seconds=0.5)
FAILS = Behaviour(run_seconds=0.5, exit_code=1)


def with_gpu(pair: list[Json]) -> Json:
    """Return the ClusterQueue of a pair, with quota of the story's resource."""
    [group] = pair[0]["spec"]["resourceGroups"]
    group["coveredResources"].append(GPU)
    group["flavors"][0]["resources"].append({"name": GPU, "nominalQuota": "2"})
    return pair[0]


@pytest_asyncio.fixture(scope="module", loop_scope="session", autouse=True)
async def story_queues(world: World) -> AsyncIterator[None]:
    pairs = (a_queue("story-home", "1", checks=()), a_queue("story-away", "1"))
    await applying.apply(world.clients["mgmt"], [with_gpu(pair) for pair in pairs])
    yield
    assert world.overlaps() == [], "no two epochs of a workload ran at the same time"


@pytest_asyncio.fixture(loop_scope="session")
async def user_queue(world: World, request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """Make the LocalQueue of the stories; yield the ClusterQueue that it belongs to."""
    name = str(request.param)
    local: Json = {"apiVersion": f"{K}v1beta2", "kind": "LocalQueue", "metadata": {"name": "user-queue"}}
    await world.create(local | {"spec": {"clusterQueue": name}})
    if name != "story-home":
        await world.sends_elsewhere("user-queue")
    yield name
    await world.delete(LOCAL_QUEUE, "user-queue")
    await world.gone("mgmt", LOCAL_QUEUE, "user-queue")


@pytest.mark.parametrize("user_queue", ["story-home", "story-away"], indirect=True)
async def test_pg_1_2_the_documents_manifests_run_as_one_under_one_quota(world: World, user_queue: str) -> None:
    """PG-1 at home, PG-2 at a worker; B1, B2 and B5 of what MultiKueue does: gated as a whole, let go as a whole."""
    group = Group(world, "story", user_queue)
    group.name = "pod-group"
    names = ["job-driver", "job-worker-0", "job-worker-1"]
    documents: list[dict[str, Any]] = [each for each in yaml.safe_load_all(STORY) if each]
    for document in documents:
        resources = document["spec"]["containers"][0]["resources"]
        if GPU in resources["requests"]:
            resources["limits"] = {GPU: resources["requests"][GPU]}
        await world.create(document)
    there = "mgmt"
    admitted = await group.says("Admitted", "True")
    if user_queue != "story-home":
        there = admitted["status"]["clusterName"]
    for name in names:
        await world.phase(name, "Running", cluster=there)
        await world.phase(name, "Running")
    assigned = admitted["status"]["admission"]["podSetAssignments"]
    assert sorted(each["resourceUsage"].get(GPU, "0") for each in assigned) == ["0", "2"]
    assert [each["name"] for each in admitted["metadata"]["ownerReferences"]] == names
    for name in names:
        await world.delete(POD, name)
    await group.nobody_is_left()


@PLACES
async def test_pg_11_3_all_succeed_and_the_group_is_done(world: World, queue: str) -> None:
    """PG-11, PG-3: two roles, one Workload; its pods stay, without our finalizer."""
    group = Group(world, "done", queue)
    await group.make("a", SOON, cpu="200m")
    await group.make("bc", SOON)
    done = await group.says("Finished", "True", "Succeeded", "Pods succeeded: 3/3")
    assert sorted(each["count"] for each in done["spec"]["podSets"]) == [1, 2]
    await group.are_held("")
    await group.are_shown("abc", "Succeeded")
    assert {run.cluster for run in group.all_runs()} == {done["status"].get("clusterName", "mgmt")}
    await group.remove()


async def test_pg_3_a_group_of_one(world: World) -> None:
    group = Group(world, "one", total=1)
    await group.make("a", SOON)
    await group.says("Finished", "True", "Succeeded", "Pods succeeded: 1/1")
    await group.remove()


@PLACES
async def test_pg_4_an_incomplete_group_is_told_and_runs_once_it_is_complete(world: World, queue: str) -> None:
    group = Group(world, "partly", queue)
    await group.make("ab")
    assert await group.warned("a", "ErrWorkloadCompose") == "1 of 3 pods of the group is not there yet"
    assert await group.workload() is None
    assert group.all_runs() == []
    await group.make("c")
    await group.run("abc")
    await group.remove()


async def test_pg_5_who_is_too_many_while_the_group_waits_is_deleted_and_told(world: World) -> None:
    group = Group(world, "excess", total=2)
    await group.make("ab", cpu="64")
    await group.says("QuotaReserved", "False")
    await group.make("c", cpu="64")
    await group.exist("ab")
    assert await group.warned("c", "ExcessPodDeleted")
    await group.remove()


@PLACES
async def test_pg_6_who_is_too_many_of_its_role_in_a_group_that_runs_is_deleted(world: World, queue: str) -> None:
    group = Group(world, "beyond", queue, total=2)
    await group.make("a", cpu="200m")
    await group.make("b")
    await group.run("ab")
    await group.make("c")
    assert await group.warned("c", "ExcessPodDeleted")
    await group.exist("ab")
    assert group.running() == "ab"
    assert not group.runs_of("c")
    await group.remove()


@PLACES
async def test_pg_14_12_a_group_of_which_some_failed_for_good_is_failed_with_numbers(world: World, queue: str) -> None:
    """PG-14; PG-12: said from the start."""
    group = Group(world, "failed", queue)
    never = {RETRIABLE: "false"}
    await group.make("a", SOON, notes=never)
    await group.make("bc", FAILS, notes=never)
    await group.says("Finished", "True", "Failed", "Pods succeeded: 1/3, failed: 2")
    await group.are_held("")
    await group.remove()


@PLACES
async def test_pg_13_nobody_is_to_be_replaced_once_that_is_said_of_one_that_has_failed(
    world: World, queue: str
) -> None:
    group = Group(world, "later", queue, total=2)
    await group.make("a", FAILS)
    await group.make("b", SOON)
    await group.says("WaitingForReplacementPods", "True", "PodsFailed")
    await group.are_shown("b", "Succeeded")
    await world.patch(POD, f"{group.name}-a", {"metadata": {"annotations": {RETRIABLE: "false"}}})
    await group.says("Finished", "True", "Failed", "Pods succeeded: 1/2, failed: 1")
    await group.are_held("")
    await group.remove()


async def test_pg_20_with_fast_admission_the_first_pod_has_quota_reserved_for_all(world: World) -> None:
    group = Group(world, "fast")
    await group.make("a", notes={f"{K}pod-group-fast-admission": "true"})
    admitted = await group.says("Admitted", "True")
    assert [each["count"] for each in admitted["spec"]["podSets"]] == [3]
    await group.run("a")
    await group.make("bc", notes={f"{K}pod-group-fast-admission": "true"})
    await group.run("abc")
    await group.remove()


@PLACES
async def test_pg_21_a_serving_group_goes_on_when_all_its_pods_have_ended(world: World, queue: str) -> None:
    group = Group(world, "serving", queue, total=2)
    await group.make("a", SOON, notes={f"{K}pod-group-serving": "true"})
    await group.make("b", notes={f"{K}pod-group-serving": "true"})
    await group.are_shown("a", "Succeeded")
    await group.run("b")
    found = await group.workload()
    assert found is not None
    assert found["status"].get("reclaimablePods", []) == []
    await group.are_held("ab")
    await group.remove()


@PLACES
async def test_pg_25_hd_395_a_member_with_a_gate_of_its_users_counts_and_runs_once_that_is_off(
    world: World, queue: str
) -> None:
    group = Group(world, "gated", queue, total=2)
    await group.make("a")
    await group.make("b", schedulingGates=[{"name": "example.com/wait"}])
    await group.says("Admitted", "True")
    await group.run("a")
    pod = await world.get("mgmt", POD, f"{group.name}-b")
    assert pod is not None
    left = [each for each in pod["spec"]["schedulingGates"] if each["name"] != "example.com/wait"]
    await world.patch(POD, f"{group.name}-b", {"spec": {"schedulingGates": left}})
    await group.run("ab")
    await group.remove()
