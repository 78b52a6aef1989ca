"""HD-136, HD-137 on a real API server: what statuses say of a run at home is Gatelift's and the kubelets' to write."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from gatelift.cli.manifests import MANAGEMENT, InstallPart, load_manifests
from gatelift_sandbox.provider import Cluster
from support.e2e.rules import AS_GATELIFT, RESERVED, a_workload, control_plane, refused, status_of
from support.e2e.sandbox_kubectl import Kubectl
from support.manager.kind_objects import condition

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

Json = dict[str, Any]
ANY_TIME = condition("Any")["lastTransitionTime"]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    parts = [part for part in MANAGEMENT if part is not InstallPart.WEBHOOK_CONFIGURATION]
    yield from control_plane(tmp_path_factory.mktemp("home"), load_manifests(*parts))


@pytest.fixture
def kubectl(cluster: Cluster) -> Kubectl:
    return Kubectl(cluster)


CONTAINERS = [{"name": "c", "image": "i"}]
OWNERS: dict[str, Json | None] = {
    "made for a Pod": {
        "apiVersion": "v1",
        "kind": "Pod",
        "spec": {"containers": CONTAINERS, "schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]},
    },
    "made for a Job": {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "spec": {"suspend": True, "template": {"spec": {"containers": CONTAINERS, "restartPolicy": "Never"}}},
    },
    "of another kind": {"apiVersion": "v1", "kind": "ConfigMap"},
    "by hand": None,
}
"""They are there: the garbage collector takes what is of nobody."""
KUEUES = "immutable|exclude each other"
"""What Kueue's own rules say of some of it, whoever asks."""
PLACEMENT = {"gatelift.dev/term": "3", "gatelift.dev/epoch": "1"}
RECORD: Json = {
    **RESERVED,
    "clusterName": "w2",
    "admissionChecks": [
        {"name": "multikueue", "state": "Ready", "message": "", "lastTransitionTime": ANY_TIME,
         "podSetUpdates": [{"name": "main", "annotations": PLACEMENT}]},
        {"name": "others", "state": "Pending", "message": "", "lastTransitionTime": ANY_TIME},
    ],
}  # fmt: skip


def checks(*, placed: Json, other: Json) -> Json:
    ours, others = RECORD["admissionChecks"]
    return {"admissionChecks": [{**ours, **placed}, {**others, **other}]}


def with_conditions(*more: Json) -> Json:
    return {"conditions": [*RESERVED["conditions"], *more]}


FORGED = [
    pytest.param({"admission": None, "conditions": []}, "leave them to Gatelift", id="all taken off"),
    pytest.param({"admission": None}, "leave them to Gatelift", id="the admission"),
    pytest.param({"clusterName": "w1"}, "leave them to Gatelift", id="the cluster"),
    pytest.param({"clusterName": None}, "leave them to Gatelift", id="the cluster taken off"),
    pytest.param({"nominatedClusterNames": ["w1"]}, "leave them to Gatelift", id="nominated clusters"),
    pytest.param({"requeueState": {"count": 1}}, "leave them to Gatelift", id="how it is queued again"),
    pytest.param({"conditions": []}, "status.conditions: those of Kueue", id="all conditions"),
    pytest.param({"conditions": RESERVED["conditions"][:1]}, "status.conditions: those of Kueue", id="Admitted"),
    pytest.param(with_conditions(condition("Evicted")), "status.conditions: those of Kueue", id="Evicted"),
    pytest.param(checks(placed={"podSetUpdates": []}, other={}), "names the run", id="whose run it is"),
    pytest.param(checks(placed={"state": "Retry"}, other={}), "names the run", id="the placement given up"),
    pytest.param(
        checks(placed={}, other={"podSetUpdates": [{"name": "main", "annotations": PLACEMENT}]}),
        "names the run",
        id="a second placement",
    ),
]
OF_OURS = [
    pytest.param({"reclaimablePods": [{"name": "main", "count": 1}]}, "no longer need", id="reclaimable pods"),
    pytest.param(with_conditions(condition("Finished")), "status.conditions: those of Kueue", id="Finished"),
    pytest.param(with_conditions(condition("PodsReady")), "status.conditions: those of Kueue", id="PodsReady"),
]
ANYBODYS = [
    pytest.param(checks(placed={}, other={"state": "Ready", "message": "provisioned"}), id="another check"),
    pytest.param(with_conditions(condition("example.com/Seen")), id="a condition of others"),
]


@pytest.mark.parametrize("owner", ["made for a Pod", "by hand"])
@pytest.mark.parametrize(("change", "text"), FORGED)
async def test_hd_136_what_runs_where_and_is_charged_is_gatelifts_to_say(
    kubectl: Kubectl, change: Json, text: str, owner: str
) -> None:
    async with recorded(kubectl, owner):
        await refused(kubectl, f"{text}|{KUEUES}", *status_of("recorded"), json.dumps({"status": change}))


@pytest.mark.parametrize("owner", OWNERS)
async def test_hd_136_what_becomes_of_a_workload_is_its_makers_to_say_where_nothing_of_it_is_made_here(
    kubectl: Kubectl, owner: str
) -> None:
    async with recorded(kubectl, owner):
        for change, text in (each.values for each in OF_OURS):
            patch = (*status_of("recorded"), json.dumps({"status": change}))
            if owner.startswith("made"):
                assert isinstance(text, str)
                await refused(kubectl, text, *patch)
            await kubectl(*patch, *(AS_GATELIFT if owner.startswith("made") else ()))


@pytest.mark.parametrize("change", ANYBODYS)
async def test_hd_136_checks_and_conditions_of_others_are_theirs_to_write(kubectl: Kubectl, change: Json) -> None:
    async with recorded(kubectl, "made for a Pod"):
        await kubectl(*status_of("recorded"), json.dumps({"status": change}))


@asynccontextmanager
async def recorded(kubectl: Kubectl, owner: str) -> AsyncIterator[None]:
    """Have a Workload whose status says that it runs on w2."""
    made = a_workload("recorded")
    document = OWNERS[owner]
    if document is not None:
        await kubectl.apply({**document, "metadata": {"name": "whose", "namespace": "default"}})
        found = await kubectl.get(document["kind"].lower(), "whose") or {}
        kind = {name: document[name] for name in ("apiVersion", "kind")}
        made["metadata"]["ownerReferences"] = [{**kind, "name": "whose", "uid": found["metadata"]["uid"]}]
    await kubectl("create", "-f", "-", manifest=made)
    try:
        await kubectl(*status_of("recorded"), json.dumps({"status": RECORD}), *AS_GATELIFT)
        yield
    finally:
        await kubectl("delete", "workload", "recorded")


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
async def test_hd_137_how_a_pod_that_runs_at_home_has_ended_its_kubelet_says(kubectl: Kubectl, phase: str) -> None:
    run = {"gatelift.dev/origin": "home", "gatelift.dev/workload-uid": "w-1", "gatelift.dev/epoch": "1"}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "ends", "labels": run},
        "spec": {"containers": CONTAINERS},
    }
    await kubectl("create", "-f", "-", *AS_GATELIFT, manifest=pod)
    try:
        over = json.dumps({"status": {"phase": phase}})
        patch = ("patch", "pod", "ends", "--subresource=status", "--type=merge", "-p", over)
        await refused(kubectl, "its kubelet says", *patch)
        await kubectl(*patch, "--as=system:node:n", "--as-group=system:nodes", "--as-group=system:masters")
    finally:
        await kubectl("delete", "pod", "ends", "--grace-period=0", "--force")
