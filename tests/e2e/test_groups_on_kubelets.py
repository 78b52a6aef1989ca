"""Groups, reclaim and release on real kubelets: containers that take their time, and the real controllers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from gatelift_kube.values.resources import JOB, NODE, POD
from gatelift_sandbox import applying
from gatelift_sandbox.behaviour import Behaviour
from support.e2e import group_story
from support.e2e.admission import HIGH, LOW, queue, said, set_up
from support.e2e.driven import Driven, adopting
from support.e2e.group_story import declared
from support.e2e.groups import FOR_EVER, Group, K
from support.e2e.world import GPU, MODULE_SECONDS, WORKERS, Json, World

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(MODULE_SECONDS)]

CPU = "20m"
"""A kind node has what this machine has, and its own pods want most of two cores."""
PAIR = "40m"
"""Of two of them."""
HOME, AWAY = "kub-home", "kub-away"
RETRIED = {f"kub-{policy.lower()}-{place}": policy for policy in ("Never", "OnFailure") for place in ("home", "away")}
"""Queues of the Jobs that fail, each with room for one of them, by the restart policy of its pods."""
PLACES = pytest.mark.parametrize("place", [HOME, AWAY])
SOON = Behaviour(run_seconds=2.0)
FAILS = Behaviour(run_seconds=1.0, exit_code=1)
SLOW_TO_STOP = Behaviour(stop_seconds=15.0)


@pytest_asyncio.fixture(scope="module", loop_scope="session", autouse=True)
async def _queues(world: World) -> None:
    """Make queues, and have each node say that it has the story's resource."""
    by_class = {"withinClusterQueue": "LowerPriority"}
    retried = [queue(name, PAIR, checks=() if name.endswith("-home") else ("workers",)) for name in RETRIED]
    away = [pair for pair in retried if pair[0]["metadata"]["name"].endswith("-away")]
    await set_up(world, [queue(AWAY, PAIR, **by_class), *away])
    for pair in (queue(HOME, PAIR, checks=(), **by_class), *[pair for pair in retried if pair not in away]):
        await applying.apply(world.clients["mgmt"], pair)
    for cluster in ("mgmt", *WORKERS):
        for node in await world.every(cluster, NODE):
            body = {"status": {"capacity": {GPU: "2"}}}
            await world.patch(NODE, node["metadata"]["name"], body, cluster=cluster, subresource="status")


@pytest_asyncio.fixture(loop_scope="session")
async def _adopting(world: World) -> AsyncIterator[None]:
    async with adopting(world):
        yield


async def low(world: World, base: str, place: str, does: Behaviour) -> Group:
    """Let a group of two of the lower class fill a queue."""
    group = Group(world, base, place, total=2)
    await group.make("ab", does, cpu=CPU, labels={f"{K}priority-class": LOW}, terminationGracePeriodSeconds=60)
    await group.run("ab")
    return group


async def preempt(world: World, place: str) -> str:
    """Make a pod of the higher class that wants all of a queue."""
    name = world.name("high")
    pod = world.pod(name, queue=place, cpu=PAIR, does=FOR_EVER)
    pod["metadata"]["labels"][f"{K}priority-class"] = HIGH
    await world.create(pod)
    return name


@pytest.mark.parametrize("at", ["home", "away"])
async def test_pg_1_2_the_documents_manifests_run_as_one_in_real_containers(world: World, at: str) -> None:
    """PG-1 at home, PG-2 at a worker."""
    names = dict(zip(("home", "away"), await group_story.queues(world, "kub-story"), strict=True))
    async with group_story.user_queue(world, names[at]):
        await group_story.told(world, names[at])


@PLACES
async def test_pg_7_a_container_that_failed_is_replaced_and_pg_11_then_all_succeed(world: World, place: str) -> None:
    """PG-7: under the same Workload and quota, and its finalizer goes then. PG-11."""
    group = Group(world, "replaced", place, total=2)
    await group.make("a", FAILS, cpu=CPU)
    await group.make("b", Behaviour(run_seconds=15.0), cpu=CPU)
    await group.are_shown("a", "Failed")
    before = await group.says("WaitingForReplacementPods", "True", "PodsFailed")
    await group.are_held("ab")
    await group.make("c", SOON, cpu=CPU)
    after = await group.says("WaitingForReplacementPods", "False")
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["status"]["admission"] == before["status"]["admission"]
    await group.says("Finished", "True", "Succeeded", "Pods succeeded: 2/2")
    await group.are_held("")
    await group.are_shown("bc", "Succeeded")
    await group.remove()


@PLACES
async def test_pg_16_qr_1_who_preempts_a_group_runs_while_its_containers_end_in_peace(world: World, place: str) -> None:
    """PG-16, PG-17: the group runs again once there is room. QR-1, story 1: grace 60 s, and nobody waits for it."""
    group = await low(world, "preempted", place, SLOW_TO_STOP)
    high = await preempt(world, place)
    await world.until(lambda: is_admitted(world, high), f"{high} is admitted", seconds=10)
    assert await group.seen_running() == "ab", "they end in their own time"
    await world.phase(high, "Running")
    await group.run("")
    await world.remove(POD, high)
    if place == HOME:  # its pods have failed, and others take their place
        await group.are_shown("ab", "Failed")
        await group.make("cd", cpu=CPU, labels={f"{K}priority-class": LOW})
        await group.run("cd")
    else:
        await group.run("ab")
    await group.remove()


async def is_admitted(world: World, name: str) -> bool:
    workload = await world.workload_of(name)
    return workload is not None and (said(workload, "QuotaReserved") or ("",))[0] == "True"


async def test_dw_1_a_driver_and_ten_workers_run_in_real_containers(world: World) -> None:
    group = Group(world, "driver", total=None)
    await group.make("a", cpu=CPU, notes={f"{K}pod-group-sets": declared(10, "10m")})
    await group.run("a")
    await group.make("bcdefghijk", cpu="10m", labels={f"{K}pod-group-role": "workers"})
    await group.run("abcdefghijk")
    await group.remove()


@pytest.mark.usefixtures("_adopting")
async def test_dw_6_what_a_driver_makes_at_a_worker_runs_there_and_ends_with_it(world: World) -> None:
    group = Driven(world, "driven", cpu=CPU)
    where = await group.drive(Behaviour(run_seconds=20.0))
    await group.makes(where, "ab", Behaviour(run_seconds=10.0))
    await group.run("abd")
    assert await group.names() == "d", "home has no pod of theirs"
    await group.says("Finished", "True", "Succeeded", "Pods succeeded: 3/3")
    await group.remove()


async def test_re_6_7_a_job_whose_containers_fail_gives_nothing_back_before_it_has_failed(world: World) -> None:
    """RE-6: pods are made again, up to `backoffLimit`. RE-7: containers are restarted in their pods. At both places."""
    async with asyncio.TaskGroup() as tasks:
        for name, policy in RETRIED.items():
            tasks.create_task(_fails(world, name, policy))


async def _fails(world: World, place: str, policy: str) -> None:
    name, waiting = world.name("retried"), world.name("waits")
    job = world.job(name, pods=2, queue=place, cpu=CPU, does=FAILS)
    job["spec"] |= {"backoffLimit": 2}
    job["spec"]["template"]["spec"]["restartPolicy"] = policy
    await world.create(job)
    await world.condition(name, "Admitted", kind="Job")
    await world.create(world.pod(waiting, queue=place, cpu=CPU, does=FOR_EVER))
    await world.condition(waiting, "QuotaReserved", status="False")
    admitted = await world.condition(waiting, "Admitted")
    assert (
        world.history.first("Job", name, lambda one: bool(one.get("status", {}).get("reclaimablePods")), None) is None
    )
    failed = await world.get("mgmt", JOB, name)
    assert failed is not None
    over = [one for one in failed["status"]["conditions"] if one["type"] == "Failed"]
    assert [one["reason"] for one in over] == ["BackoffLimitExceeded"]
    assert over[0]["lastTransitionTime"] <= _since(admitted, "QuotaReserved")
    await world.remove(POD, waiting)
    await world.remove(JOB, name)


def _gives_back(workload: Json) -> bool:
    return bool(workload.get("status", {}).get("reclaimablePods"))


def _since(workload: Json, type_: str) -> str:
    return next(str(one["lastTransitionTime"]) for one in workload["status"]["conditions"] if one["type"] == type_)
