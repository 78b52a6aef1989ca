"""The way of a workload on running clusters: from the user's object to a worker and back, and nothing left behind."""

from __future__ import annotations

import pytest

from gatelift_kube.values.resources import CLUSTER_QUEUE, JOB, POD, WORKLOAD
from gatelift_sandbox.behaviour import Behaviour
from support.e2e.admission import runs, says
from support.e2e.world import MODULE_SECONDS, NAMESPACE, WORKERS, World

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(MODULE_SECONDS)]

FOR_EVER = Behaviour()


def condition(document: dict[str, object], type_: str) -> dict[str, str]:
    """Return a condition of an object."""
    status = document["status"]
    assert isinstance(status, dict)
    return next(each for each in status["conditions"] if each["type"] == type_)


async def test_a_single_pod_runs_on_a_worker_and_its_end_is_mirrored(world: World) -> None:
    name = world.name("single")
    await world.create(world.pod(name, does=Behaviour(run_seconds=1.0)))
    pod = await world.phase(name, "Succeeded")
    assert pod["spec"]["schedulingGates"] == [{"name": "kueue.x-k8s.io/admission"}], "the user's pod stays a mirror"
    workload = await world.condition(name, "Finished")
    assert condition(workload, "Finished")["reason"] == "Succeeded"
    assert condition(workload, "Admitted")["message"] == "The workload is admitted"
    assert workload["status"]["clusterName"] in WORKERS
    await world.nothing_left(name)

    async def let_go() -> bool:
        pod = await world.get("mgmt", POD, name)
        return pod is not None and not pod["metadata"].get("finalizers")

    await world.until(let_go, f"pod {name} stays, without our finalizer")


async def test_is_21_a_running_pods_status_is_mirrored_while_it_runs_without_its_address(world: World) -> None:
    name = world.name("mirrored")
    await world.create(world.pod(name, does=FOR_EVER))
    worker = await world.running_on(name)
    pod = await world.phase(name, "Running")
    scheduled = next(each for each in pod["status"]["conditions"] if each["type"] == "PodScheduled")
    assert scheduled["status"] == "True"
    remote = await world.get(worker, POD, name)
    assert remote is not None
    assert remote["status"]["podIP"]
    assert "podIP" not in pod["status"], "no Service here sends traffic to an address there"
    workload = await world.workload_of(name)
    assert workload is not None
    assert remote["metadata"]["labels"]["gatelift.dev/workload-uid"] == workload["metadata"]["uid"]
    assert remote["metadata"]["labels"]["gatelift.dev/epoch"] == "1"
    await world.remove(POD, name)


async def test_is_46_a_pod_that_fails_fails_at_home_and_its_workload_says_what_failed(world: World) -> None:
    name = world.name("failing")
    await world.create(world.pod(name, does=Behaviour(run_seconds=0.5, exit_code=3)))
    await world.phase(name, "Failed")
    workload = await world.condition(name, "Finished")
    finished = condition(workload, "Finished")
    assert finished["reason"] == "Failed"
    assert f"pod {name} on node " in finished["message"]
    assert "ended with exit code 3" in finished["message"]
    await world.remove(POD, name)


async def test_a_job_of_five_pods_runs_on_one_worker_and_completes_at_home(world: World) -> None:
    name = world.name("five")
    await world.create(world.job(name, pods=5, does=Behaviour(run_seconds=2.0)))

    async def complete() -> dict[str, object] | None:
        job = await world.get("mgmt", JOB, name)
        done = job is not None and any(
            each["type"] == "Complete" and each["status"] == "True"
            for each in job.get("status", {}).get("conditions") or []
        )
        return job if done else None

    job = await world.until(complete, f"Job {name} is Complete at home")
    assert job["status"]["succeeded"] == 5
    assert job["spec"]["suspend"] is False
    workload = await world.condition(name, "Finished", kind="Job")
    ran = [run.cluster for run in runs(world, name)]
    assert ran == 5 * [workload["status"]["clusterName"]], "all on one worker, and none elsewhere"
    assert ran[0] in WORKERS
    await world.nothing_left(name)


async def test_a_pod_of_a_queue_without_worker_clusters_runs_at_home(world: World) -> None:
    name = world.name("home")
    await world.create(world.pod(name, queue="at-home", does=Behaviour(run_seconds=1.0)))
    pod = await world.phase(name, "Succeeded")
    assert not pod["spec"].get("schedulingGates")
    workload = await world.condition(name, "Finished")
    assert "clusterName" not in workload["status"]
    for worker in WORKERS:
        assert await world.get(worker, POD, name) is None


async def test_a_job_of_a_queue_without_worker_clusters_runs_at_home(world: World) -> None:
    name = world.name("home-job")
    await world.create(world.job(name, pods=2, queue="at-home", does=Behaviour(run_seconds=1.0)))
    await world.condition(name, "Finished", kind="Job")
    job = await world.get("mgmt", JOB, name)
    assert job is not None
    assert job["status"]["succeeded"] == 2


async def test_the_second_flavor_is_taken_when_the_first_is_full(world: World) -> None:
    first, second = world.name("flavor-a"), world.name("flavor-b")
    await world.create(world.pod(first, queue="two-flavors", cpu="800m", does=FOR_EVER))
    admitted = [await world.condition(first, "Admitted")]
    await world.create(world.pod(second, queue="two-flavors", cpu="800m", does=FOR_EVER))
    admitted.append(await world.condition(second, "Admitted"))
    assigned = [workload["status"]["admission"]["podSetAssignments"][0] for workload in admitted]
    assert [each["flavors"]["cpu"] for each in assigned] == ["small-flavor", "default-flavor"]
    await world.remove(POD, first, second)


async def test_a_workload_that_never_fits_says_why_on_the_object(world: World) -> None:
    name = world.name("giant")
    await world.create(world.pod(name, cpu="500"))
    exceeds = (
        "couldn't assign flavors to pod set main: insufficient quota for cpu in flavor default-flavor, previously "
        "considered podsets requests (0) + current podset request (500) > maximum capacity (12)"
    )
    await says(world, name, "QuotaReserved", ("False", "ExceedsMaxQuota", exceeds))
    await world.remove(POD, name)


async def test_a_user_deletes_a_running_job_and_the_worker_lets_its_pods_end_in_peace(world: World) -> None:
    name = world.name("deleted")
    await world.create(world.job(name, pods=2, does=Behaviour(stop_seconds=2.0)))

    async def mirrored() -> bool:
        job = await world.get("mgmt", JOB, name)
        return job is not None and job.get("status", {}).get("active") == 2

    await world.until(mirrored, f"Job {name} shows two active pods")
    await world.remove(JOB, name)


@pytest.mark.parametrize(("queue", "how"), [("multi", "deleted"), ("at-home", "deactivated")])
async def test_hd_298_a_job_that_is_stopped_while_it_announces_its_end_leaves_nothing_behind(
    world: World, queue: str, how: str
) -> None:
    """The real Job controller ends it, which the real API server refuses of a Job without a start time."""
    name = world.name(f"ends-{how}")
    job = world.job(name, pods=2, queue=queue, does=Behaviour(stop_seconds=8.0))
    job["spec"]["activeDeadlineSeconds"] = 3
    job["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 20
    await world.create(job)

    async def announced() -> bool:
        for cluster in ("mgmt", *WORKERS):
            found = await world.get(cluster, JOB, name)
            if any(each["type"] == "FailureTarget" for each in (found or {}).get("status", {}).get("conditions", [])):
                return True
        return False

    await world.until(announced, f"Job {name} announces its end")
    if how == "deactivated":
        workload = await world.workload_of(name, "Job")
        assert workload is not None
        await world.patch(WORKLOAD, workload["metadata"]["name"], {"spec": {"active": False}})
        await world.condition(name, "QuotaReserved", kind="Job", status="False")
    await world.remove(JOB, name)


async def test_an_evicted_pod_is_dispatched_again_with_a_higher_epoch(world: World) -> None:
    name = world.name("evicted")
    await world.create(world.pod(name, does=FOR_EVER))
    worker = await world.running_on(name)
    before = await world.get(worker, POD, name)
    assert before is not None
    workload = await world.workload_of(name)
    assert workload is not None
    await world.patch(WORKLOAD, workload["metadata"]["name"], {"spec": {"active": False}})
    evicted = await world.condition(name, "Evicted")
    assert condition(evicted, "Evicted")["reason"] == "Deactivated"
    await world.nothing_left(name)
    await world.condition(name, "QuotaReserved", status="False")
    await world.patch(WORKLOAD, workload["metadata"]["name"], {"spec": {"active": True}})

    async def again() -> dict[str, object] | None:
        for each in WORKERS:
            pod = await world.get(each, POD, name)
            if pod is not None and pod["metadata"].get("labels", {}).get("gatelift.dev/epoch") == "2":
                return pod if pod["status"].get("phase") == "Running" else None
        return None

    pod = await world.until(again, f"pod {name} runs in epoch 2")
    assert pod["metadata"]["uid"] != before["metadata"]["uid"]
    workload = await world.workload_of(name)
    assert workload is not None
    assert workload["metadata"]["annotations"]["gatelift.dev/epoch"] == "2"
    await world.remove(POD, name)


async def test_a_stopped_queue_lets_go_of_what_runs_and_takes_it_again(world: World) -> None:
    name = world.name("held")
    await world.create(world.pod(name, queue="two-flavors", cpu="300m", does=FOR_EVER))
    await world.running_on(name)
    await world.patch(CLUSTER_QUEUE, "two-flavors", {"spec": {"stopPolicy": "HoldAndDrain"}})
    try:
        evicted = await world.condition(name, "Evicted")
        assert condition(evicted, "Evicted")["reason"] == "ClusterQueueStopped"
        await world.nothing_left(name)
    finally:
        await world.patch(CLUSTER_QUEUE, "two-flavors", {"spec": {"stopPolicy": "None"}})
    await world.running_on(name)
    await world.remove(POD, name)


async def test_a_bare_workload_is_admitted_and_placed_nowhere(world: World) -> None:
    name = world.name("bare")
    template = {
        "spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}],
        }
    }
    await world.create(
        {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "Workload",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"queueName": "at-home", "podSets": [{"name": "main", "count": 1, "template": template}]},
        }
    )

    async def admitted() -> bool:
        found = await world.get("mgmt", WORKLOAD, name)
        conditions = (found or {}).get("status", {}).get("conditions", [])
        return any(each["type"] == "Admitted" and each["status"] == "True" for each in conditions)

    await world.until(admitted, f"Workload {name} is admitted")
    await world.delete(WORKLOAD, name)
    await world.gone("mgmt", WORKLOAD, name)


async def test_no_two_epochs_of_a_workload_ran_at_the_same_time(world: World) -> None:
    assert world.overlaps() == []
