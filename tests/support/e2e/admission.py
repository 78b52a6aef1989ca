"""Queues of their own for the end-to-end scenarios of admission, and what kubectl shows of them and of Workloads."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from gatelift_kube.deciding.errors import ConflictError
from gatelift_kube.values.resources import ADMISSION_CHECK, CLUSTER_QUEUE, LOCAL_QUEUE, POD, WORKLOAD, Resource
from gatelift_kube.values.timestamps import to_text
from gatelift_sandbox import applying, records
from gatelift_sandbox.installation import MANAGER
from gatelift_sandbox.records import RunRecord
from support.e2e.world import NAMESPACE, WORKERS, Json, World, is_of

FLAVOR = "default-flavor"
BUDGET = "adm-budget"
"""A check of a controller that is not ours; the tests write what it would say."""
KUEUE = "kueue.x-k8s.io"
ACTIVE = "Active"
LOW, HIGH = "adm-low", "adm-high"
"""Classes of priority."""

Said = tuple[str, str, str]
"""Status, reason and message of a condition; see `said`."""


def queue(name: str, cpu: str, cohort: str = "", checks: Iterable[str] = ("workers",), **preemption: str) -> list[Json]:
    """Return a ClusterQueue with this quota, and a LocalQueue of its name."""
    spec: Json = {
        "namespaceSelector": {},
        "preemption": preemption,
        "resourceGroups": [
            {
                "coveredResources": ["cpu"],
                "flavors": [{"name": FLAVOR, "resources": [{"name": "cpu", "nominalQuota": cpu}]}],
            }
        ],
    }
    asked = [{"name": check} for check in checks]
    if asked:  # without any its work runs at home
        spec["admissionChecksStrategy"] = {"admissionChecks": asked}
    if cohort:
        spec["cohortName"] = cohort
    local = {"metadata": {"name": name, "namespace": NAMESPACE}, "spec": {"clusterQueue": name}}
    return [_kueue("ClusterQueue", {"metadata": {"name": name}, "spec": spec}), _kueue("LocalQueue", local)]


async def set_up(world: World, queues: Iterable[list[Json]]) -> None:
    """Apply priority classes, the foreign check and queues, and wait until all of these admit."""
    classes = [
        _kueue("WorkloadPriorityClass", {"metadata": {"name": name}, "value": value})
        for name, value in ((LOW, 10), (HIGH, 1000))
    ]
    check = _kueue("AdmissionCheck", {"metadata": {"name": BUDGET}, "spec": {"controllerName": "example.com/budget"}})
    await applying.apply(world.clients["mgmt"], [*classes, check])
    works = {"type": ACTIVE, "status": "True", "reason": ACTIVE, "message": "On", "lastTransitionTime": _now()}
    await world.patch(ADMISSION_CHECK, BUDGET, {"status": {"conditions": [works]}}, subresource="status")
    for pair in queues:
        await applying.apply(world.clients["mgmt"], pair)
        name = pair[0]["metadata"]["name"]
        await queue_says(world, CLUSTER_QUEUE, name, ("True", "Ready", "Can admit new workloads"))
        await queue_says(world, LOCAL_QUEUE, name, ("True", "Ready", "Can submit new workloads to localQueue"))
        await world.sends_elsewhere(name)


@contextlib.asynccontextmanager
async def manager_with(world: World, settings: Mapping[str, Any]) -> AsyncIterator[None]:
    """Run the manager with further settings meanwhile; it is restarted for that, and again at the end."""
    usual = world.installation.manager_settings
    try:
        await _restart(world, {**usual, **settings})
        yield
    finally:
        await _restart(world, usual)


async def _restart(world: World, settings: Mapping[str, Any]) -> None:
    installation = world.installation
    world.keeper.left.add(MANAGER)  # it ends and starts by our word now
    if MANAGER in installation.daemons:  # else the start before this one failed
        await installation.end(MANAGER)  # in its turn: one that gave up its lead may be started at this moment
    installation.manager_settings = settings
    await installation.start_manager()
    world.keeper.left.discard(MANAGER)
    await installation.wait_connected(*WORKERS)


# --- what is shown ---------------------------------------------------------------------------------------------------


def said(document: Json, type_: str) -> Said | None:
    """Return what an object's condition says, None when it has none of the type."""
    for each in document.get("status", {}).get("conditions", []):
        if each["type"] == type_:
            return each["status"], each.get("reason", ""), each.get("message", "")
    return None


async def says(world: World, name: str, type_: str, what: Said, kind: str = "Pod") -> Json:
    """Wait until the Workload of an object says exactly this; return the Workload.

    For what it goes on saying until the test does something. What its own next step overwrites: `said_once`.
    """

    async def look() -> Json | None:
        workload = await world.workload_of(name, kind)
        return workload if workload is not None and said(workload, type_) == what else None

    found: Json = await world.until(look, f"the Workload of {kind} {name} says {type_}={' '.join(what)}")
    return found


async def said_once(
    world: World, name: str, type_: str, what: Said, kind: str = "Pod", after: Json | None = None
) -> Json:
    """Wait until the Workload of an object says exactly this, or did for a moment; return its first such version.

    `after`: a version of it; only what was written later counts.
    """
    text = f"the Workload of {kind} {name} says {type_}={' '.join(what)}, if only for a moment"
    return await world.showed(name, lambda workload: said(workload, type_) == what, text, kind, after)


async def queue_says(world: World, resource: Resource, name: str, what: Said) -> None:
    """Wait until a queue's condition Active says exactly this."""

    async def look() -> bool:
        found = await world.get("mgmt", resource, name)
        return found is not None and said(found, ACTIVE) == what

    await world.until(look, f"{resource.kind} {name} says {ACTIVE}={' '.join(what)}")


async def preemption_text(world: World, preemptor: str, why: str, paths: tuple[str, str]) -> str:
    """Return what a victim says that has to leave for the Workload of pod `preemptor`."""
    workload = await world.workload_of(preemptor)
    assert workload is not None
    meta = workload["metadata"]
    ids = f"UID: {meta['uid']}, JobUID: {meta['labels'][f'{KUEUE}/job-uid']}"
    return (
        f"Preempted to accommodate a workload ({ids}) due to {why}; preemptor path: {paths[0]}; "
        f"preemptee path: {paths[1]}"
    )


def lacks(more: str) -> str:
    """Return what a workload says that has not this much cpu."""
    unused = f"insufficient unused quota for cpu in flavor {FLAVOR}, {more} more needed"
    return f"couldn't assign flavors to pod set main: {unused}"


def check_state(workload: Json) -> Json:
    """Return what a Workload shows of the foreign check; empty when it is not there."""
    return _of_budget(_checks(workload))


async def answer(world: World, name: str, state: str, message: str, **more: int) -> str:
    """Say this of a pod's Workload that holds quota, as the foreign check's controller does; return the time it says.

    A write that was done and whose answer was lost is not done again.
    """

    async def written() -> str:
        workload = await world.workload_of(name)
        shown = _checks(workload)
        budget = _of_budget(shown)
        if workload is None or not budget or (said(workload, "QuotaReserved") or ("",))[0] != "True":
            return ""
        if (budget["state"], budget.get("message")) == (state, message):
            return str(budget["lastTransitionTime"])
        now = _now()
        new = {"state": state, "message": message, "lastTransitionTime": now, **more}
        checks = [{**each, **new} if each["name"] == BUDGET else each for each in shown]
        meta = workload["metadata"]
        body = {"metadata": {"resourceVersion": meta["resourceVersion"]}, "status": {"admissionChecks": checks}}
        try:
            await world.patch(WORKLOAD, meta["name"], body, subresource="status")
        except ConflictError:
            return ""
        return now

    at: str = await world.until(written, f"{BUDGET} says {state} of pod {name}")
    return at


def _checks(workload: Json | None) -> list[Json]:
    found: list[Json] = (workload or {}).get("status", {}).get("admissionChecks", [])
    return found


def _of_budget(checks: list[Json]) -> Json:
    return next((each for each in checks if each["name"] == BUDGET), {})


# --- what runs -------------------------------------------------------------------------------------------------------


def runs(world: World, name: str) -> list[RunRecord]:
    """Return the runs of a pod, or of a Job's pods, in order of start, by the kubelets' records.

    A start is in the records before the pod says Running, an end before it says so or goes.
    """
    paths = [cluster.record for cluster in world.clusters.values() if cluster.record is not None]
    return [run for run in records.runs(records.read(*paths)) if is_of(run.name, name)]


async def runs_again(world: World, name: str) -> None:
    """Wait until a pod runs in its second epoch."""

    async def look() -> bool:
        for worker in WORKERS:
            pod = await world.get(worker, POD, name)
            if pod is not None and pod["metadata"].get("labels", {}).get("gatelift.dev/epoch") == "2":
                return bool(pod["status"].get("phase") == "Running")
        return False

    await world.until(look, f"pod {name} runs in epoch 2")
    workload = await world.workload_of(name)
    assert workload is not None
    assert workload["metadata"]["annotations"]["gatelift.dev/epoch"] == "2"


async def on_workers(world: World, name: str) -> list[str]:
    """Return the workers that have a pod of this name."""
    return [worker for worker in WORKERS if await world.get(worker, POD, name) is not None]


def _kueue(kind: str, body: Json) -> Json:
    return {"apiVersion": f"{KUEUE}/v1beta2", "kind": kind, **body}


def _now() -> str:
    return to_text(datetime.now(UTC).timestamp())
