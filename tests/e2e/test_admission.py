"""Who gets quota, who has to leave for whom, and what kubectl says of it: queues of their own on running clusters.

Texts are compared in full, since people and their scripts know them from Kueue; the records of the kubelets say what
really ran when.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from gatelift_kube.values.resources import CLUSTER_QUEUE, EVENT, JOB, LOCAL_QUEUE, NODE, POD
from gatelift_kube.values.timestamps import to_seconds
from gatelift_sandbox.behaviour import Behaviour
from support.e2e.admission import (
    BUDGET,
    HIGH,
    LOW,
    answer,
    check_state,
    lacks,
    manager_with,
    on_workers,
    preemption_text,
    queue,
    queue_says,
    runs,
    runs_again,
    said,
    said_once,
    says,
    set_up,
)
from support.e2e.sandbox_kubectl import Kubectl
from support.e2e.world import MODULE_SECONDS, NAMESPACE, WORKERS, Json, World

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(MODULE_SECONDS)]

FOR_EVER = Behaviour()
SLOW_TO_STOP = Behaviour(stop_seconds=5.0)
"""Long enough for a busy manager to say what others wait for before it has ended."""
BACK_SECONDS = 8
"""After a Retry: longer than what ran takes to stop."""
READY_SECONDS, BACKOFF_SECONDS = 8, 5
"""Longer than a pod takes to run where it can; and until it may try again, which leaves time to make that so."""
COHORT, FAIR, LEAVING = "adm-cohort", "adm-fair", "adm-leaving"
NO_RESERVATION = ("False", "NoReservation", "The workload has no reservation")
ADMITTED = ("True", "Admitted", "The workload is admitted")
BYPASSED = "Bypassed scheduling evaluation because an equivalent workload recently failed"
QUEUES = [
    queue("adm-lends", "1", COHORT, reclaimWithinCohort="Any"),
    queue("adm-borrows", "1", COHORT),
    queue("adm-ranked", "1", withinClusterQueue="LowerPriority"),
    queue("adm-checked", "2", checks=("workers", BUDGET)),
    queue("adm-held", "1"),
    queue("adm-partial", "1"),
    queue("adm-late", "1"),
    queue("adm-fair-a", "1", FAIR, reclaimWithinCohort="Any"),
    queue("adm-fair-b", "1", FAIR, reclaimWithinCohort="Any"),
    queue("adm-fair-idle", "2", FAIR),
    queue("adm-gives", "1", LEAVING),
    queue("adm-takes", "0", LEAVING),
]


@pytest_asyncio.fixture(scope="module", loop_scope="session", autouse=True)
async def queues(world: World) -> AsyncIterator[None]:
    await set_up(world, QUEUES)
    yield
    assert world.overlaps() == [], "no two epochs of a workload ran at the same time"


def a_pod(world: World, name: str, queue_name: str, cpu: str = "1", does: Behaviour = FOR_EVER, rank: str = "") -> Json:
    pod = world.pod(name, queue=queue_name, cpu=cpu, does=does)
    if rank:
        pod["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = rank
    return pod


async def left_for(world: World, victim: str, preemptor: str, reason: str, text: str) -> None:
    """Check all that two pods say of a preemption that is over; the victim may have stopped after the other began."""
    await says(world, preemptor, "Admitted", ADMITTED)
    await world.running_on(preemptor)
    await says(world, victim, "Evicted", ("True", "Preempted", text))
    await says(world, victim, "Preempted", ("True", reason, text))
    await says(world, victim, "Requeued", ("True", "Preempted", text))
    await says(world, victim, "Admitted", NO_RESERVATION)
    workload = await says(world, victim, "QuotaReserved", ("False", "WaitingForQuota", lacks("1")))
    [before], [_] = runs(world, victim), runs(world, preemptor)
    assert before.stopped is not None, "its quota was free before that (KEP-6143), and it says so once it is over"
    assert workload["status"]["schedulingStats"]["evictions"] == [
        {"reason": "Preempted", "underlyingCause": "", "count": 1}
    ]


async def came_back(world: World, victim: str, queue_name: str, reason: str, text: str) -> None:
    """Check that a victim runs in a new epoch, and still says why it had left."""
    await runs_again(world, victim)
    await says(
        world, victim, "QuotaReserved", ("True", "QuotaReserved", f"Quota reserved in ClusterQueue {queue_name}")
    )
    workload = await says(world, victim, "Evicted", ("False", "QuotaReserved", f"Previously: {text}"))
    assert said(workload, "Preempted") == ("False", "QuotaReserved", f"Previously: {text}")
    assert [run.epoch for run in runs(world, victim)] == [1, 2]


async def reserves(world: World, name: str, total: str, borrowed: str) -> None:
    """Wait until a ClusterQueue shows this reservation of cpu."""

    async def shown() -> bool:
        found = await world.get("mgmt", CLUSTER_QUEUE, name)
        flavors = (found or {}).get("status", {}).get("flavorsReservation") or []
        figures = [each for flavor in flavors for each in flavor["resources"]]
        return [(each["total"], each.get("borrowed", "0")) for each in figures] == [(total, borrowed)]

    await world.until(shown, f"ClusterQueue {name} reserves {total} cpu, {borrowed} borrowed")


async def test_a_queue_takes_back_what_another_of_its_cohort_has_borrowed(world: World) -> None:
    keeps, borrows, reclaims = world.name("keeps"), world.name("borrows"), world.name("reclaims")
    await world.create(a_pod(world, keeps, "adm-borrows", rank=HIGH))
    await world.create(a_pod(world, borrows, "adm-borrows", does=SLOW_TO_STOP, rank=LOW))
    await world.running_on(keeps)
    await world.running_on(borrows)
    await reserves(world, "adm-borrows", "2", "1")
    await world.create(a_pod(world, reclaims, "adm-lends", rank=LOW))
    waits = f"{lacks('1')}. Pending the preemption of 1 workload(s)"
    await said_once(world, reclaims, "QuotaReserved", ("False", "WaitingForPreemptedWorkloads", waits))
    text = await preemption_text(
        world, reclaims, "reclamation within the cohort", (f"/{COHORT}/adm-lends", f"/{COHORT}/adm-borrows")
    )
    await left_for(world, borrows, reclaims, "InCohortReclamation", text)
    await reserves(world, "adm-borrows", "1", "0")
    assert [run.epoch for run in runs(world, keeps)] == [1], "what stays within its own quota is left alone"
    await world.remove(POD, reclaims)
    await came_back(world, borrows, "adm-borrows", "InCohortReclamation", text)
    await world.remove(POD, keeps, borrows)


async def test_a_workload_of_higher_priority_takes_the_place_of_a_lower_one(world: World) -> None:
    low, high = world.name("low"), world.name("high")
    await world.create(a_pod(world, low, "adm-ranked", does=SLOW_TO_STOP, rank=LOW))
    await world.running_on(low)
    await world.create(a_pod(world, high, "adm-ranked", rank=HIGH))
    waits = f"{lacks('1')}. Pending the preemption of 1 workload(s)"
    await said_once(world, high, "QuotaReserved", ("False", "WaitingForPreemptedWorkloads", waits))
    text = await preemption_text(world, high, "prioritization in the ClusterQueue", ("/adm-ranked", "/adm-ranked"))
    await left_for(world, low, high, "InClusterQueue", text)
    await world.remove(POD, high)
    await came_back(world, low, "adm-ranked", "InClusterQueue", text)
    await world.remove(POD, low)


async def test_what_another_controllers_check_retries_stops_and_runs_again_when_the_check_is_ready(
    world: World,
) -> None:
    name = world.name("retried")
    await world.create(a_pod(world, name, "adm-checked", does=SLOW_TO_STOP))
    reserved = ("True", "QuotaReserved", "Quota reserved in ClusterQueue adm-checked")
    workload = await says(world, name, "QuotaReserved", reserved)
    assert check_state(workload)["state"] == "Pending"
    assert said(workload, "Admitted") is None
    assert await on_workers(world, name) == [], "nothing is placed before all checks are ready"
    await answer(world, name, "Ready", "within the budget")
    await says(world, name, "Admitted", ADMITTED)
    await world.running_on(name)
    asked = await answer(world, name, "Retry", "the budget is spent", requeueAfterSeconds=BACK_SECONDS)
    text = f'Evicted due to AdmissionCheck in Retry state: "{BUDGET}" (the budget is spent)'
    await said_once(world, name, "Evicted", ("True", "AdmissionCheck", text))
    freed = await said_once(world, name, "Requeued", ("False", "AdmissionCheck", text))
    [run] = runs(world, name)
    assert run.stopped is not None, "the quota goes when nothing runs any more"
    back = to_seconds(freed["status"]["requeueState"]["requeueAt"])
    assert back == max(to_seconds(asked) + BACK_SECONDS, since(freed, "Requeued"))
    assert said(freed, "QuotaReserved") == ("False", "PendingEvaluation", text)
    assert said(freed, "Admitted") == NO_RESERVATION
    reset = check_state(freed)
    assert (reset["state"], reset["retryCount"]) == ("Pending", 1)
    assert reset["message"] == "Reset to Pending after eviction. Previously: Retry"
    finished = ("True", "BackoffFinished", "The workload backoff was finished")
    requeued = await said_once(world, name, "Requeued", finished, after=freed)
    assert since(requeued, "Requeued") >= back
    await answer(world, name, "Ready", "within the budget again")
    await runs_again(world, name)
    await says(world, name, "Evicted", ("False", "QuotaReserved", f"Previously: {text}"))
    await world.remove(POD, name)


async def test_what_another_controllers_check_rejects_stops_and_is_deactivated(world: World) -> None:
    name = world.name("rejected")
    await world.create(a_pod(world, name, "adm-checked"))
    await answer(world, name, "Ready", "within the budget")
    await world.running_on(name)
    await answer(world, name, "Rejected", "no budget at all")
    cause = f'AdmissionCheck in Rejected state: "{BUDGET}" (no budget at all)'
    evicted = ("DeactivatedDueToAdmissionCheck", f"The workload is deactivated due to {cause}")
    await says(world, name, "Evicted", ("True", *evicted))
    await says(world, name, "Requeued", ("False", *evicted))
    workload = await says(world, name, "QuotaReserved", ("False", "Deactivated", "The workload is deactivated"))
    await world.nothing_left(name)
    assert workload["spec"]["active"] is False
    assert workload["status"]["schedulingStats"]["evictions"] == [
        {"reason": "Deactivated", "underlyingCause": "AdmissionCheck", "count": 1}
    ]
    assert check_state(workload)["message"] == "Reset to Pending after eviction. Previously: Rejected"
    assert [run.epoch for run in runs(world, name)] == [1]
    await world.remove(POD, name)


async def test_a_queue_on_hold_takes_nothing_new_and_a_drained_one_lets_go_of_what_runs(world: World) -> None:
    first, second = world.name("before-hold"), world.name("while-held")
    await world.create(a_pod(world, first, "adm-held", cpu="500m"))
    worker = await world.running_on(first)
    before = await world.get(worker, POD, first)
    await world.patch(CLUSTER_QUEUE, "adm-held", {"spec": {"stopPolicy": "Hold"}})
    await queue_says(world, CLUSTER_QUEUE, "adm-held", ("False", "Stopped", "Can't admit new workloads: is stopped."))
    inactive = ("False", "ClusterQueueIsInactive", "Can't submit new workloads to clusterQueue")
    await queue_says(world, LOCAL_QUEUE, "adm-held", inactive)
    await world.create(a_pod(world, second, "adm-held", cpu="500m"))
    suspended = ("False", "Suspended", "ClusterQueue adm-held is inactive")
    await says(world, second, "QuotaReserved", suspended)
    workload = await says(world, first, "Admitted", ADMITTED)
    assert said(workload, "Evicted") is None
    after = await world.get(worker, POD, first)
    assert before is not None
    assert after is not None
    assert (after["metadata"]["uid"], after["status"]["phase"]) == (before["metadata"]["uid"], "Running")
    await world.patch(CLUSTER_QUEUE, "adm-held", {"spec": {"stopPolicy": "HoldAndDrain"}})
    stopped = ("ClusterQueueStopped", "The ClusterQueue is stopped")
    await says(world, first, "Evicted", ("True", *stopped))
    await world.nothing_left(first, second)
    await says(world, first, "Requeued", ("False", *stopped))
    await says(world, first, "Admitted", NO_RESERVATION)
    await says(world, first, "QuotaReserved", suspended)
    await world.patch(CLUSTER_QUEUE, "adm-held", {"spec": {"stopPolicy": "None"}})
    await queue_says(world, CLUSTER_QUEUE, "adm-held", ("True", "Ready", "Can admit new workloads"))
    restarted = ("True", "ClusterQueueRestarted", "The ClusterQueue was restarted after being stopped")
    await said_once(world, first, "Requeued", restarted)
    await runs_again(world, first)
    await world.running_on(second)
    await world.remove(POD, first, second)


async def test_hd_163_a_queue_that_is_deleted_stays_charged_until_its_work_has_ended(world: World) -> None:
    borrows, waits = world.name("borrows"), world.name("waits")
    await world.create(a_pod(world, borrows, "adm-takes"))
    await world.running_on(borrows)
    await world.delete(CLUSTER_QUEUE, "adm-takes")
    terminating = ("False", "Terminating", "Can't admit new workloads; clusterQueue is terminating")
    await queue_says(world, CLUSTER_QUEUE, "adm-takes", terminating)
    inactive = ("False", "ClusterQueueIsInactive", "Can't submit new workloads to clusterQueue")
    await queue_says(world, LOCAL_QUEUE, "adm-takes", inactive)
    await world.create(a_pod(world, waits, "adm-gives"))
    await says(world, waits, "QuotaReserved", ("False", "WaitingForQuota", lacks("1")))
    await says(world, borrows, "Admitted", ADMITTED)
    await world.remove(POD, borrows)
    await world.gone("mgmt", CLUSTER_QUEUE, "adm-takes")
    await world.running_on(waits)
    await world.remove(POD, waits)


async def test_a_job_that_can_do_with_fewer_pods_runs_with_as_many_as_fit(world: World) -> None:
    name, too_many = world.name("fewer"), world.name("too-many")
    job = world.job(name, pods=5, queue="adm-partial", cpu="250m", does=Behaviour(run_seconds=1.0))
    job["metadata"]["annotations"] = {"kueue.x-k8s.io/job-min-parallelism": "2"}
    await world.create(job)
    workload = await says(world, name, "Admitted", ADMITTED, kind="Job")
    [assigned] = workload["status"]["admission"]["podSetAssignments"]
    assert (assigned["count"], assigned["resourceUsage"]) == (4, {"cpu": "1"})

    async def complete() -> Json | None:
        found = await world.get("mgmt", JOB, name)
        done = said(found or {}, "Complete")
        return found if done is not None and done[0] == "True" else None

    done = await world.until(complete, f"Job {name} is Complete")
    assert (done["status"]["succeeded"], done["spec"]["parallelism"]) == (5, 4)
    ran = runs(world, name)
    assert len(ran) == 5
    assert all(sum(other.started <= run.started < ended(other) for other in ran) <= 4 for run in ran)
    job = world.job(too_many, pods=6, queue="adm-partial", cpu="500m")
    job["metadata"]["annotations"] = {"kueue.x-k8s.io/job-min-parallelism": "3"}
    await world.create(job)
    exceeds = (
        "couldn't assign flavors to pod set main: insufficient quota for cpu in flavor default-flavor, previously "
        "considered podsets requests (0) + current podset request (3) > maximum capacity (1)"
    )
    await says(world, too_many, "QuotaReserved", ("False", "ExceedsMaxQuota", exceeds), kind="Job")
    await world.remove(JOB, name, too_many)


def since(workload: Json, type_: str) -> float:
    """Return since when a condition is as it is, in seconds since 1970."""
    found = next(each for each in workload["status"]["conditions"] if each["type"] == type_)
    return to_seconds(found["lastTransitionTime"])


def ended(run: Any) -> float:
    assert run.stopped is not None
    return float(run.stopped)


async def test_what_the_first_flavor_has_no_quota_for_runs_on_the_second_and_the_rest_lacks_both(world: World) -> None:
    first, second, third = world.name("flavor-a"), world.name("flavor-b"), world.name("flavor-c")
    for name, flavor in ((first, "small-flavor"), (second, "default-flavor")):
        await world.create(a_pod(world, name, "two-flavors"))
        workload = await says(world, name, "Admitted", ADMITTED)
        [assigned] = workload["status"]["admission"]["podSetAssignments"]
        assert (assigned["flavors"], assigned["resourceUsage"]) == ({"cpu": flavor}, {"cpu": "1"})
        await world.running_on(name)
    told = await event_of(world, second, "QuotaReserved")
    assert told.startswith("Quota reserved in ClusterQueue two-flavors, wait time since queued was ")
    assert told.endswith(
        "s; Flavors considered: main: small-flavor(preemptionMode=NoCandidates;insufficient unused quota for cpu in "
        "flavor small-flavor, 1 more needed), default-flavor(Fit)"
    )
    await world.create(a_pod(world, third, "two-flavors", cpu="3500m"))
    waits = (
        "couldn't assign flavors to pod set main: insufficient quota for cpu in flavor small-flavor, previously "
        "considered podsets requests (0) + current podset request (3500m) > maximum capacity (1), "
        "insufficient unused quota for cpu in flavor default-flavor, 500m more needed"
    )
    await says(world, third, "QuotaReserved", ("False", "WaitingForQuota", waits))
    await kubectl_shows(world, second, third, waits)
    await world.remove(POD, first, second, third)


COLUMNS = {
    "clusterqueues": ["NAME", "COHORT", "STRATEGY", "PENDING WORKLOADS", "ADMITTED WORKLOADS"],
    "localqueues": ["NAME", "CLUSTERQUEUE", "PENDING WORKLOADS", "ADMITTED WORKLOADS"],
    "workloads": ["NAME", "QUEUE", "RESERVED IN", "CLUSTER", "ADMITTED", "FINISHED", "AGE"],
    "workloadpriorityclasses": ["NAME", "VALUE"],
    "multikueueclusters": ["NAME", "CONNECTED", "AGE"],
    "resourceflavors": ["NAME", "AGE"],
    "admissionchecks": ["NAME", "AGE"],
    "cohorts": ["NAME", "AGE"],
    "multikueueconfigs": ["NAME", "AGE"],
}


async def kubectl_shows(world: World, runs: str, waits: str, why: str) -> None:
    """Check what a person sees with kubectl: Kueue's columns with one for the cluster, and the condition as it is."""
    kubectl = Kubectl(world.clusters["mgmt"])
    for plural, columns in COLUMNS.items():
        shown = (await kubectl("get", plural, "-A", "-o", "wide")).splitlines()
        if shown:  # without objects kubectl prints nothing
            found = [each for each in re.split(r"\s{2,}", shown[0].strip()) if each != "NAMESPACE"]
            assert found == columns, plural
    names = {}
    for name in (runs, waits):
        workload = await world.workload_of(name)
        assert workload is not None
        names[name] = workload["metadata"]["name"]
    rows = {line.split()[0]: line.split()[1:] for line in (await kubectl("get", "kwl", "-n", NAMESPACE)).splitlines()}
    assert rows[names[runs]][:2] == ["two-flavors", "two-flavors"]
    assert "True" in rows[names[runs]]
    assert rows[names[waits]][:1] == ["two-flavors"]
    described = await kubectl("describe", "workload", names[waits], "-n", NAMESPACE)
    assert re.search(rf"Message: +{re.escape(why)}\n", described)
    assert re.search(r"Reason: +WaitingForQuota\n", described)


async def event_of(world: World, name: str, reason: str) -> str:
    """Wait for an event of the Workload of a pod; return its text."""
    workload = await world.workload_of(name)
    assert workload is not None

    async def look() -> str:
        for each in await world.every("mgmt", EVENT):
            if each["reason"] == reason and each["regarding"]["name"] == workload["metadata"]["name"]:
                return str(each["note"])
        return ""

    found: str = await world.until(look, f"event {reason} of the Workload of pod {name}")
    return found


async def test_fair_sharing_takes_from_the_queue_that_has_more_until_both_have_the_same(world: World) -> None:
    async with manager_with(world, {"fairSharing": {}}):
        greedy = [world.name("greedy") for _ in range(4)]
        for name in greedy:
            await world.create(a_pod(world, name, "adm-fair-a"))
        for name in greedy:
            await world.running_on(name)
        await reserves(world, "adm-fair-a", "4", "3")
        fair, more = world.name("fair"), world.name("more")
        await world.create(a_pod(world, fair, "adm-fair-b", cpu="2"))
        await says(world, fair, "Admitted", ADMITTED)
        await world.running_on(fair)
        text = await preemption_text(
            world, fair, "Fair Sharing within the cohort", (f"/{FAIR}/adm-fair-b", f"/{FAIR}/adm-fair-a")
        )
        victims = [name for name in greedy if said(await world.workload_of(name) or {}, "Preempted") is not None]
        assert len(victims) == 2
        for name in victims:
            await says(world, name, "Evicted", ("True", "Preempted", text))
            await says(world, name, "Preempted", ("True", "InCohortFairSharing", text))
            [before], [after] = runs(world, name), runs(world, fair)
            assert ended(before) <= after.started
        await equals_wait(world, victims)
        await world.create(a_pod(world, more, "adm-fair-b"))
        await says(world, more, "QuotaReserved", ("False", "WaitingForQuota", lacks("1")))
        for name in ("adm-fair-a", "adm-fair-b"):
            await reserves(world, name, "2", "1")
            await shares(world, name, 250)
        for name in set(greedy) - set(victims):
            assert [run.epoch for run in runs(world, name)] == [1]
        await world.remove(POD, *greedy, fair, more)


async def equals_wait(world: World, names: list[str]) -> None:
    """Wait until one of several that ask for the same says what it lacks; others may say that they were passed over."""
    texts = {("False", "WaitingForQuota", lacks("1")), ("False", "WaitingForQuota", BYPASSED)}

    async def told() -> bool:
        shown = {said(await world.workload_of(name) or {}, "QuotaReserved") for name in names}
        return shown <= texts and ("False", "WaitingForQuota", lacks("1")) in shown

    await world.until(told, f"{', '.join(names)} wait for quota")


async def shares(world: World, name: str, share: int) -> None:
    """Wait until a ClusterQueue shows this weighted share."""

    async def shown() -> bool:
        found = await world.get("mgmt", CLUSTER_QUEUE, name)
        return bool(((found or {}).get("status", {}).get("fairSharing") or {}).get("weightedShare") == share)

    await world.until(shown, f"ClusterQueue {name} has a weighted share of {share}")


async def test_pods_that_do_not_get_ready_in_time_lose_their_quota_and_come_back_after_a_pause(world: World) -> None:
    name, label = world.name("late"), "gatelift.test/late"
    strategy = {"backoffBaseSeconds": BACKOFF_SECONDS}
    wait = {"enable": True, "timeout": f"{READY_SECONDS}s", "requeuingStrategy": strategy}
    async with manager_with(world, {"waitForPodsReady": wait}):
        pod = a_pod(world, name, "adm-late")
        pod["spec"]["nodeSelector"] = {label: "yes"}
        await world.create(pod)
        waiting = ("False", "WaitForStart", "Not all pods are ready or succeeded")
        workload = await said_once(world, name, "PodsReady", waiting)
        text = f"Exceeded the PodsReady timeout {NAMESPACE}/{workload['metadata']['name']}"
        await said_once(world, name, "Evicted", ("True", "PodsReadyTimeout", text))
        freed = await said_once(world, name, "Requeued", ("False", "PodsReadyTimeout", text))
        assert freed["status"]["requeueState"]["count"] == 1
        assert freed["status"]["schedulingStats"]["evictions"] == [
            {"reason": "PodsReadyTimeout", "underlyingCause": "WaitForStart", "count": 1}
        ]
        assert said(freed, "QuotaReserved") == ("False", "PendingEvaluation", text)
        assert runs(world, name) == []
        nodes = [(worker, each["metadata"]["name"]) for worker in WORKERS for each in await world.every(worker, NODE)]
        for worker, node in nodes:
            await world.patch(NODE, node, {"metadata": {"labels": {label: "yes"}}}, cluster=worker)
        finished = ("True", "BackoffFinished", "The workload backoff was finished")
        await said_once(world, name, "Requeued", finished, after=freed)
        await world.running_on(name)
        ready = ("True", "Started", "All pods reached readiness and the workload is running")
        workload = await says(world, name, "PodsReady", ready)
        assert said(workload, "Evicted") == ("False", "QuotaReserved", f"Previously: {text}")
        await world.remove(POD, name)
        for worker, node in nodes:
            await world.patch(NODE, node, {"metadata": {"labels": {label: None}}}, cluster=worker)
