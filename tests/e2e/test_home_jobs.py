"""What runs of a Job at `local` is what is charged: what a real API server with the webhooks and controllers does."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift_kube.deciding.errors import ApiError
from gatelift_kube.values.resources import JOB, POD, WORKLOAD
from gatelift_sandbox.behaviour import Behaviour
from support.e2e.world import MODULE_SECONDS, TRANSITION_SECONDS, Json, World

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(MODULE_SECONDS)]
LONG = Behaviour(run_seconds=3600)


async def waiting(world: World, name: str) -> None:
    """Make a Job that its local queue never has room for, and wait until it says so."""
    await world.create(world.job(name, pods=5, queue="at-home", cpu="64", does=LONG))
    await world.condition(name, "QuotaReserved", kind="Job", status="False")


async def pods_of(world: World, name: str, cluster: str = "mgmt") -> list[Json]:
    """Return the pods that the Job controller has made for a Job."""
    every = await world.every(cluster, POD)
    return [one for one in every if one["metadata"].get("labels", {}).get("batch.kubernetes.io/job-name") == name]


async def suspended(world: World, name: str) -> Any:
    """Return whether a Job is suspended."""
    found = await world.get("mgmt", JOB, name)
    return found is not None and found["spec"]["suspend"]


async def test_hd_1_a_waiting_job_that_its_user_starts_stays_suspended_and_no_pod_is_made(world: World) -> None:
    name = world.name("started-by-hand")
    await waiting(world, name)
    version = (await world.get("mgmt", JOB, name) or {})["metadata"]["generation"]
    for _ in range(3):
        await world.patch(JOB, name, {"spec": {"suspend": False}})
    found = await world.get("mgmt", JOB, name)
    assert found is not None
    assert found["spec"]["suspend"] is True
    assert found["metadata"]["generation"] == version, "the change never reached the store"
    assert await pods_of(world, name) == []
    await world.remove(JOB, name)


async def test_hd_1_what_starts_while_the_webhooks_do_not_hold_it_is_suspended_again(world: World) -> None:
    name = world.name("running-before")
    job = world.job(name, pods=2, queue="at-home", cpu="64", does=LONG)
    del job["metadata"]["labels"]
    await world.create(job)
    assert not await suspended(world, name)
    with pytest.raises(ApiError, match="suspend it first"):
        await world.patch(JOB, name, {"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "at-home"}}})
    await world.remove(JOB, name)


async def test_hd_198_pods_that_the_job_controller_makes_are_the_jobs(world: World) -> None:
    name = world.name("makes-its-pods")
    await world.create(world.job(name, pods=2, queue="at-home", cpu="10m", does=LONG))
    await world.until(lambda: _running(world, name, 2), "its pods run, held back by nothing but it")
    assert not any(one["spec"].get("schedulingGates") for one in await pods_of(world, name))
    await world.remove(JOB, name)


async def test_hd_2_growth_of_a_running_job_is_refused_and_a_suspended_one_is_queued_with_its_new_size(
    world: World,
) -> None:
    name = world.name("grows")
    job = world.job(name, pods=1, queue="at-home", cpu="100m", does=LONG)
    job["spec"]["completions"] = 4
    await world.create(job)
    await world.condition(name, "Admitted", kind="Job")
    await world.until(lambda: _running(world, name, 1), "its pod is there")
    with pytest.raises(ApiError, match="suspend it first"):
        await world.patch(JOB, name, {"spec": {"parallelism": 2}})
    await world.patch(JOB, name, {"spec": {"suspend": True, "parallelism": 2}})
    await world.showed(name, _evicted_for("Suspended"), "it is evicted", kind="Job")
    await world.until(lambda: _running(world, name, 2), "it was queued again and runs with its new size")
    await world.remove(JOB, name)


async def test_hd_5_counts_of_a_reserved_workload_cannot_be_raised(world: World) -> None:
    name = world.name("counted")
    await world.create(world.job(name, pods=1, queue="at-home", cpu="100m", does=LONG))
    workload = await world.condition(name, "Admitted", kind="Job")
    raised = [{**one, "count": 9} for one in workload["spec"]["podSets"]]
    with pytest.raises(ApiError, match="immutable while quota is reserved"):
        await world.patch(WORKLOAD, workload["metadata"]["name"], {"spec": {"podSets": raised}})
    await world.remove(JOB, name)


async def test_hd_199_a_manifest_with_tolerations_is_applied_again_while_its_job_runs(world: World) -> None:
    name = world.name("applied-again")
    mine = [{"key": "a", "operator": "Exists"}]
    job = world.job(name, pods=1, queue="at-home", cpu="10m", does=LONG)
    job["spec"]["template"]["spec"]["tolerations"] = mine
    await world.create(job)
    await world.until(lambda: _running(world, name, 1), "it runs")
    runs = (await world.get("mgmt", JOB, name) or {})["spec"]["template"]
    await world.patch(JOB, name, {"spec": {"template": {"spec": {"tolerations": mine}}}})
    found = await world.get("mgmt", JOB, name)
    assert found is not None
    assert found["spec"]["template"] == runs
    assert len(runs["spec"]["tolerations"]) > len(mine)
    with pytest.raises(ApiError, match=r"immutable|placed-as"):
        await world.patch(JOB, name, {"spec": {"template": {"spec": {"tolerations": [{"key": "b"}]}}}})
    await world.remove(JOB, name)


async def test_hd_222_a_manifest_that_says_suspend_is_applied_again_while_its_job_runs(world: World) -> None:
    name = world.name("suspend-applied-again")
    mine: Json = {"tolerations": [{"key": "a", "operator": "Exists"}]}
    job = world.job(name, pods=1, queue="at-home", cpu="10m", does=LONG)
    job["spec"]["template"]["spec"] |= mine
    job["spec"]["suspend"] = True
    await world.create(job)
    await world.until(lambda: _running(world, name, 1), "it runs")
    again = {"spec": {"suspend": True, "template": {"spec": mine}}}
    await world.patch(JOB, name, again)
    found = await world.get("mgmt", JOB, name)
    assert found is not None
    assert found["spec"]["suspend"]
    await world.patch(JOB, name, again)
    await world.showed(name, _evicted_for("Suspended"), "it is evicted", kind="Job")
    await world.patch(JOB, name, again)
    await world.until(lambda: _running(world, name, 1), "it was queued again, and runs")
    runs = await world.get("mgmt", JOB, name)
    assert runs is not None
    assert runs["spec"]["template"]["spec"]["tolerations"][0] == mine["tolerations"][0]
    await world.remove(JOB, name)


async def test_hd_212_a_manifest_is_applied_again_while_its_job_runs_with_fewer_pods(world: World) -> None:
    name = world.name("fewer-applied-again")
    job = world.job(name, pods=6, queue="at-home", cpu="1", does=LONG)
    job["metadata"]["annotations"] = {"kueue.x-k8s.io/job-min-parallelism": "1"}
    await world.create(job)
    await world.until(lambda: _let_go(world, name), "it is let go")
    runs = await world.get("mgmt", JOB, name)
    assert runs is not None
    assert runs["spec"]["parallelism"] < 6
    await world.patch(JOB, name, {"spec": {"parallelism": 6}})
    found = await world.get("mgmt", JOB, name)
    assert found is not None
    assert found["spec"] == runs["spec"]
    with pytest.raises(ApiError, match="is immutable while a partially admitted Job runs") as refused:
        await world.patch(JOB, name, {"spec": {"parallelism": 5}})
    assert "cannot grow" not in str(refused.value), "said once"
    await world.remove(JOB, name)


NO_QUEUE: Json = {"metadata": {"labels": {"kueue.x-k8s.io/queue-name": None}}}


async def test_hd_106_a_job_of_the_job_controller_is_not_taken_where_work_is_sent_away(world: World) -> None:
    job = world.job(world.name("home-only"), pods=2, cpu="10m", does=LONG)
    job["spec"]["managedBy"] = "kubernetes.io/job-controller"
    with pytest.raises(ApiError, match=r"where LocalQueue .* sends work to other clusters"):
        await world.create(job)


@pytest.mark.parametrize("queue", ["at-home", ""], ids=["at home", "elsewhere"])
async def test_hd_107_a_job_that_runs_keeps_its_queue_also_with_a_suspension_in_the_same_change(
    world: World, queue: str
) -> None:
    name = world.name("keeps-its-queue")
    await world.create(world.job(name, pods=1, cpu="10m", does=LONG, **({"queue": queue} if queue else {})))
    await world.until(lambda: _let_go(world, name), "it is let go")
    with pytest.raises(ApiError, match="queue-name"):
        await world.patch(JOB, name, NO_QUEUE)
    with pytest.raises(ApiError, match="queue-name"):
        await world.patch(JOB, name, {**NO_QUEUE, "spec": {"suspend": True}})
    await world.remove(JOB, name)


async def test_hd_109_the_queue_of_a_pod_that_runs_elsewhere_is_not_changed(world: World) -> None:
    name = world.name("keeps-its-queue")
    await world.create(world.pod(name, cpu="10m", does=LONG))
    await world.condition(name, "Admitted")
    for queue in (None, "at-home"):
        with pytest.raises(ApiError, match=r"is immutable while its Workload .* holds quota"):
            await world.patch(POD, name, {"metadata": {"labels": {"kueue.x-k8s.io/queue-name": queue}}})
    await world.remove(POD, name)


@pytest.mark.parametrize(
    "change",
    [{"activeDeadlineSeconds": 900}, {"tolerations": [{"key": "a", "operator": "Exists"}]}],
    ids=["a deadline", "a toleration"],
)
async def test_hd_203_what_a_run_elsewhere_takes_no_notice_of_is_not_taken(world: World, change: Json) -> None:
    name = world.name("fixed")
    await world.create(world.pod(name, cpu="10m", does=LONG))
    await world.condition(name, "Admitted")
    found = await world.get("mgmt", POD, name)
    assert found is not None
    change = {
        key: [*found["spec"].get(key, []), *value] if isinstance(value, list) else value
        for key, value in change.items()
    }
    with pytest.raises(ApiError, match="is not passed on to the cluster where the pod runs"):
        await world.patch(POD, name, {"spec": change})
    await world.remove(POD, name)


async def test_hd_203_what_runs_at_home_its_kubelet_acts_on(world: World) -> None:
    name = world.name("acted-on")
    await world.create(world.pod(name, queue="at-home", cpu="10m", does=LONG))
    await world.condition(name, "Admitted")

    async def let_go() -> bool:
        found = await world.get("mgmt", POD, name)
        return found is not None and not found["spec"].get("schedulingGates")

    await world.until(let_go, "it is let go")
    await world.patch(POD, name, {"spec": {"activeDeadlineSeconds": 900}})
    await world.remove(POD, name)


async def test_hd_109_what_waits_may_change_its_queue(world: World) -> None:
    name = world.name("waits")
    await waiting(world, name)
    await world.patch(JOB, name, NO_QUEUE)
    await world.until(lambda: _forgotten(world, name), "its Workload is gone")
    assert await suspended(world, name) is True
    await world.remove(JOB, name)


@pytest.mark.parametrize("queue", ["at-home", "multi"], ids=["at home", "elsewhere"])
async def test_hd_132_a_deleted_pod_of_a_job_is_replaced_when_it_has_stopped(world: World, queue: str) -> None:
    name = world.name("replaced")
    job = world.job(name, pods=2, queue=queue, cpu="10m", does=Behaviour(run_seconds=3600, stop_seconds=45))
    job["spec"] |= {"backoffLimit": 20, "podReplacementPolicy": "TerminatingOrFailed"}
    job["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 60  # longer than the Job controller's own pause
    await world.create(job)
    cluster = await world.until(lambda: _where_both_run(world, name), "both its pods run")
    first = {one["metadata"]["name"] for one in await pods_of(world, name, cluster)}
    await world.patch(JOB, name, {"spec": {"podReplacementPolicy": "TerminatingOrFailed"}})
    kept = await world.get(cluster, JOB, name)
    assert kept is not None
    assert kept["spec"]["podReplacementPolicy"] == "Failed"
    for pod in first:
        await world.delete(POD, pod, cluster)
    most = 0

    async def anew() -> bool:
        nonlocal most
        running = {one["metadata"]["name"] for one in await pods_of(world, name, cluster) if not _over(one)}
        most = max(most, len(running))
        return len(running - first) == 2 and not running & first

    # They stop for 45 s, and the Job controller pauses after each that failed.
    await world.until(anew, "both were replaced", 2 * TRANSITION_SECONDS)
    assert most == 2, "no more at once than is charged"
    await world.remove(JOB, name)


async def _where_both_run(world: World, name: str) -> str | None:
    for cluster in world.clusters:
        running = [one for one in await pods_of(world, name, cluster) if one["status"].get("phase") == "Running"]
        if len(running) == 2:
            return cluster
    return None


def _over(pod: Json) -> bool:
    return pod["status"].get("phase") in {"Succeeded", "Failed"}


async def _let_go(world: World, name: str) -> bool:
    return await suspended(world, name) is False


async def _forgotten(world: World, name: str) -> bool:
    every = await world.every("mgmt", WORKLOAD)
    owners = [own["name"] for one in every for own in one["metadata"].get("ownerReferences", [])]
    return name not in owners


async def _running(world: World, name: str, count: int) -> bool:
    live = [one for one in await pods_of(world, name) if not one["metadata"].get("deletionTimestamp")]
    return len(live) == count and not await suspended(world, name)


def _evicted_for(reason: str) -> Any:
    def said(workload: Json) -> bool:
        evictions = (workload.get("status", {}).get("schedulingStats") or {}).get("evictions", [])
        return any(one["reason"] == reason for one in evictions)

    return said
