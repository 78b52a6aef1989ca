"""Pods that somebody takes off a placed Job, on real API servers with the real Job controller and garbage collector."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gatelift_kube.values.resources import EVENT, JOB, POD, WORKLOAD
from gatelift_sandbox.behaviour import Behaviour
from support.e2e.rules import GATELIFT
from support.e2e.sandbox_kubectl import Kubectl, KubectlError
from support.e2e.world import MODULE_SECONDS, WORKERS, Json, World, is_of

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(MODULE_SECONDS)]
LONG = Behaviour(run_seconds=3600)
SLOW_TO_STOP = Behaviour(run_seconds=3600, stop_seconds=4.0)
"""What was taken off is seen to run beside the others for this much longer, and a run that were over too soon, too."""
AROUND = ("--as=system:serviceaccount:gatelift-system:gatelift-agent", *GATELIFT, "--as-group=system:masters")
"""Who is let through by the policies: what they hold off has to be seen without them as well."""
NAMES_OF_A_JOB = ("controller-uid", "batch.kubernetes.io/controller-uid", "job-name", "batch.kubernetes.io/job-name")
TAKEN_OFF = json.dumps({"metadata": {"ownerReferences": None, "labels": dict.fromkeys(NAMES_OF_A_JOB)}})
QUEUES = pytest.mark.parametrize(("queue", "places"), [("multi", WORKERS), ("at-home", ("mgmt",))])


async def pods_of(world: World, cluster: str, name: str) -> list[Json]:
    """Return the pods of a Job that run, by their names: labels and owners are what is taken off."""
    every = await world.every(cluster, POD)
    return [each for each in every if is_of(each["metadata"]["name"], name) and each["status"]["phase"] == "Running"]


async def placed(world: World, name: str, queue: str, places: tuple[str, ...], does: Behaviour = LONG) -> str:
    """Make a Job of two pods, and return where both run."""
    await world.create(world.job(name, pods=2, queue=queue, cpu="100m", does=does))

    async def look() -> str | None:
        for cluster in places:
            if len(await pods_of(world, cluster, name)) == 2:
                return cluster
        return None

    found: str = await world.until(look, f"{name} runs")
    return found


async def take_off(world: World, cluster: str, name: str) -> set[str]:
    """Take both pods off their Job, around the policies; wait until it has made others, and return the former."""
    kubectl = Kubectl(world.clusters[cluster])
    former = await pods_of(world, cluster, name)
    for pod in former:
        where = ("-n", pod["metadata"]["namespace"], pod["metadata"]["name"])
        await kubectl("patch", "pod", *where, "--type=merge", "-p", TAKEN_OFF, *AROUND)

    async def more() -> bool:
        return len(await pods_of(world, cluster, name)) == 4

    await world.until(more, f"the Job controller made other pods for {name}")
    return {pod["metadata"]["uid"] for pod in former}


@QUEUES
async def test_hd_84_pods_of_a_placed_job_are_not_taken_off_it(
    world: World, queue: str, places: tuple[str, ...]
) -> None:
    name = world.name("kept")
    cluster = await placed(world, name, queue, places)
    kubectl = Kubectl(world.clusters[cluster])
    pod, *_ = await pods_of(world, cluster, name)
    patch = ("patch", "pod", "-n", pod["metadata"]["namespace"], pod["metadata"]["name"])
    refused: list[tuple[Any, str]] = [({"ownerReferences": None}, "quota was given for the pods of this Job")]
    refused += [({"labels": {key: None}}, "say what made a pod") for key in NAMES_OF_A_JOB]
    for change, text in refused:
        with pytest.raises(KubectlError, match=text):
            await kubectl(*patch, "--type=merge", "-p", json.dumps({"metadata": change}))
    mark = {"key": "x.placed-as.gatelift.dev/j", "value": "w.1"}
    forged = [{"op": "add", "path": "/spec/tolerations/-", "value": mark}]
    with pytest.raises(KubectlError, match="say for whose run"):
        await kubectl(*patch, "--type=json", "-p", json.dumps(forged))
    await kubectl(*patch, "--type=merge", "-p", json.dumps({"metadata": {"labels": {"mine": "yes"}}}))
    await world.remove(JOB, name)


@QUEUES
async def test_hd_85_nobody_takes_the_mark_off_a_pod(world: World, queue: str, places: tuple[str, ...]) -> None:
    name = world.name("marked")
    cluster = await placed(world, name, queue, places)
    pod, *_ = await pods_of(world, cluster, name)
    marks = [each for each in pod["spec"]["tolerations"] if ".placed-as.gatelift.dev/" in each.get("key", "")]
    assert len(marks) == 1
    index = pod["spec"]["tolerations"].index(marks[0])
    patch = ("patch", "pod", "-n", pod["metadata"]["namespace"], pod["metadata"]["name"], "--type=json")
    changes = [
        {"op": "remove", "path": f"/spec/tolerations/{index}"},
        {"op": "replace", "path": f"/spec/tolerations/{index}/value", "value": "w.1"},
    ]
    for change in changes:
        with pytest.raises(KubectlError, match="existing toleration can not be modified"):
            await Kubectl(world.clusters[cluster])(*patch, "-p", json.dumps([change]), *AROUND)
    await world.remove(JOB, name)


async def placed_and_taken_off(
    world: World, title: str, queue: str, places: tuple[str, ...]
) -> tuple[str, str, set[str]]:
    """Return the name of a placed Job, its cluster, and the UIDs of the pods that were taken off it."""
    name = world.name(title)
    cluster = await placed(world, name, queue, places, SLOW_TO_STOP)
    return name, cluster, await take_off(world, cluster, name)


@QUEUES
async def test_hd_84_what_was_taken_off_a_placed_job_is_ended_and_told(
    world: World, queue: str, places: tuple[str, ...]
) -> None:
    name, cluster, former = await placed_and_taken_off(world, "beside", queue, places)

    async def ended() -> bool:
        left = await pods_of(world, cluster, name)
        return len(left) == 2 and not former & {pod["metadata"]["uid"] for pod in left}

    await world.until(ended, f"what was taken off {name} is ended")

    async def told() -> bool:
        found = await world.every(cluster, EVENT)
        return any(each.get("reason") == "PodTakenOffJob" and name in json.dumps(each) for each in found)

    await world.until(told, "it is told as an event")
    await world.remove(JOB, name)


@QUEUES
async def test_hd_84_the_run_is_not_over_before_what_was_taken_off_has_ended_though_the_agent_begins_anew(
    world: World, queue: str, places: tuple[str, ...]
) -> None:
    name, cluster, former = await placed_and_taken_off(world, "two-epochs", queue, places)
    daemon = world.installation.daemons["manager" if cluster == "mgmt" else f"agent-{cluster}"]
    # in its turn: a manager that gave up its lead may be started at this moment
    await world.installation.restart(daemon)
    workload = await world.workload_of(name, "Job")
    assert workload is not None
    await world.patch(WORKLOAD, workload["metadata"]["name"], {"spec": {"active": False}})

    async def released() -> bool:
        found = await world.workload_of(name, "Job")
        conditions = (found or {}).get("status", {}).get("conditions", [])
        return any(each["type"] == "QuotaReserved" and each["status"] == "False" for each in conditions)

    await world.until(released, f"the quota of {name} is free")
    # What runs is looked at when its quota is known to be free: looked at before, it may have ended in between.
    assert await pods_of(world, cluster, name) == [], f"it still ran, {len(former)} were taken off"
    await world.patch(WORKLOAD, workload["metadata"]["name"], {"spec": {"active": True}})
    await world.condition(name, "Admitted", kind="Job")
    assert world.overlaps() == []
    await world.remove(JOB, name)
