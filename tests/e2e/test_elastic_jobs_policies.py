"""SL-06: who may touch gates and sizes of elastic Jobs, on real API servers with the real Job controller.

With `deploy/components/elastic-jobs` beside what is installed at home and on a worker; no overlay has it yet.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
import yaml

from gatelift.cli.manifests import MANAGEMENT, WORKER, InstallPart, agent_binding, deploy_folder, load_manifests
from gatelift_sandbox.provider import Cluster
from support.e2e.rules import AS_GATELIFT, GATELIFT, control_plane, refused
from support.e2e.sandbox_kubectl import POLL_SECONDS, WAIT_SECONDS, Kubectl

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

Json = dict[str, Any]
AS_AGENT = ("--as=system:serviceaccount:gatelift-system:gatelift-agent", *GATELIFT, "--as-group=system:masters")
GATELIFT_MANAGER = (
    "--as=system:serviceaccount:gatelift-system:gatelift-manager",
    *GATELIFT,
    "--as-group=system:masters",
)
OWNER = "gatelift.dev/owner"
GATE = "kueue.x-k8s.io/elastic-job"
SIZE = "gatelift.dev/size"
RUN = {"gatelift.dev/origin": "home", "gatelift.dev/workload-uid": "w-1", "gatelift.dev/epoch": "1"}
PLACED_AS = {"gatelift.dev/placed-as": "home/w-1/1"}
MARK = json.dumps({"number": 1, "counts": {"main": 2}, "tied": False})
CONTAINERS = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "10m"}}}]
GATE_STAYS = "removed by Gatelift only, pod by pod as they are granted: ask for more with the Job's spec.parallelism"
SLOT_STAYS = "say which slot of its Job a pod fills: leave them as they are"
SLICE_STAYS = "say of which chain a slice is, and what runs is known by them: leave them to Gatelift"
SIZE_STAYS = "says to which size the Job was set: leave it to Gatelift"


def component() -> list[Json]:
    text = (deploy_folder() / "components" / "elastic-jobs" / "policies.yaml").read_text(encoding="utf-8")
    return list(yaml.safe_load_all(text))


@pytest.fixture(scope="module", params=["home", "worker"])
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Bring a control plane up with all of home but the webhooks' configuration, or with all of a worker."""
    home = [part for part in MANAGEMENT if part is not InstallPart.WEBHOOK_CONFIGURATION]
    parts = load_manifests(*(home if request.param == "home" else WORKER))
    bound = [agent_binding("default")] if request.param == "worker" else []
    yield from control_plane(tmp_path_factory.mktemp(request.param), [*parts, *bound, *component()])


@pytest.fixture
def kubectl(cluster: Cluster) -> Kubectl:
    return Kubectl(cluster)


def a_job(name: str, *, run: bool = True, mark: str = "") -> Json:
    """Return an elastic Job: as it was placed, or one of a user that nobody placed."""
    labels = RUN if run else {}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": CONTAINERS, "restartPolicy": "Never", "schedulingGates": [{"name": GATE}]},
    }
    notes = {**(PLACED_AS if run else {}), **({SIZE: mark} if mark else {})}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": labels, "annotations": notes},
        "spec": {"parallelism": 2, "completions": 9, "suspend": False, "template": template},
    }


def a_slice(name: str, notes: Json) -> Json:
    """Return a Workload of one pod set with these annotations."""
    pod_set = {"name": "main", "count": 2, "template": {"spec": {"containers": CONTAINERS, "restartPolicy": "Never"}}}
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {"name": name, "annotations": notes},
        "spec": {"queueName": "q", "podSets": [pod_set]},
    }


def patch(**document: Any) -> tuple[str, ...]:
    return ("--type=merge", "-p", json.dumps(document))


def size(value: str | None) -> tuple[str, ...]:
    return patch(metadata={"annotations": {SIZE: value}})


def without_gate(pod: Json, *others: str) -> tuple[str, ...]:
    """Return the words that take the gate off a pod, and leave others."""
    gates = [{"name": name} for name in others]
    operations = [
        {"op": "test", "path": "/metadata/uid", "value": pod["metadata"]["uid"]},
        {"op": "replace", "path": "/spec/schedulingGates", "value": gates},
    ]
    return ("--type=json", "-p", json.dumps(operations))


async def pods_of(kubectl: Kubectl, job: str, count: int) -> list[Json]:
    """Return the pods of a Job, once its controller has made so many."""
    async with asyncio.timeout(WAIT_SECONDS):
        while True:
            said = await kubectl("get", "pods", "-l", f"batch.kubernetes.io/job-name={job}", "-o", "json")
            found: list[Json] = json.loads(said)["items"]
            if len(found) == count:
                return found
            await asyncio.sleep(POLL_SECONDS)


async def placed(kubectl: Kubectl, name: str) -> list[Json]:
    """Have a Job as the agent makes it, with the mark of its size; return its pods."""
    await kubectl("create", "-f", "-", *AS_AGENT, manifest=a_job(name, mark=MARK))
    return await pods_of(kubectl, name, 2)


async def gone(kubectl: Kubectl, name: str) -> None:
    await kubectl("delete", "job", name, "--wait=false", "--cascade=background", *AS_GATELIFT)


async def test_sl_06_the_pods_of_a_run_come_gated_and_nobody_but_gatelift_lets_one_go(kubectl: Kubectl) -> None:
    """SL-06: the Job controller's own pods are let through as they come, and its own writes of them."""
    first, second = await placed(kubectl, "gated")
    for pod in (first, second):
        assert [gate["name"] for gate in pod["spec"]["schedulingGates"]] == [GATE]
        assert pod["metadata"]["labels"]["gatelift.dev/origin"] == "home"
    name = first["metadata"]["name"]
    await refused(kubectl, GATE_STAYS, "patch", "pod", name, *without_gate(first))
    await kubectl("patch", "pod", name, *without_gate(first), *AS_AGENT)
    after = await kubectl.get("pod", name)
    assert after is not None
    assert not after["spec"].get("schedulingGates")
    other = await kubectl.get("pod", second["metadata"]["name"])
    assert other is not None
    assert other["spec"]["schedulingGates"] == [{"name": GATE}]
    await kubectl("patch", "job", "gated", *patch(spec={"parallelism": 1}), *AS_AGENT)
    (left,) = await pods_of(kubectl, "gated", 1)
    assert left["metadata"]["name"] == name, "its controller ends the one that waits first"
    await gone(kubectl, "gated")


async def test_sl_06_which_slot_a_pod_of_a_run_fills_stays_as_it_was_made(kubectl: Kubectl) -> None:
    pod, _ = await placed(kubectl, "slots")
    name = pod["metadata"]["name"]
    for key in ("kueue.x-k8s.io/podset", "batch.kubernetes.io/job-completion-index"):
        await refused(kubectl, SLOT_STAYS, "patch", "pod", name, *patch(metadata={"labels": {key: "other"}}))
    await gone(kubectl, "slots")


async def test_sl_06_a_gate_of_that_name_on_a_pod_of_nobodys_run_is_its_users_own(kubectl: Kubectl) -> None:
    await kubectl("create", "-f", "-", manifest=a_job("own", run=False))
    pod, _ = await pods_of(kubectl, "own", 2)
    await kubectl("patch", "pod", pod["metadata"]["name"], *without_gate(pod))
    await kubectl("delete", "job", "own", "--wait=false", "--cascade=background")


async def test_sl_06_the_mark_of_a_size_is_gatelifts_from_a_jobs_creation_on(kubectl: Kubectl) -> None:
    await refused(kubectl, SIZE_STAYS, "create", "-f", "-", manifest=a_job("marked", run=False, mark=MARK))
    await placed(kubectl, "sized")
    higher = json.dumps({"number": 2, "counts": {"main": 9}, "tied": False})
    for value in (higher, "", None):
        await refused(kubectl, SIZE_STAYS, "patch", "job", "sized", *size(value))
    await refused(kubectl, SIZE_STAYS, "patch", "job", "sized", "--subresource=status", *size(higher))
    await kubectl("patch", "job", "sized", *size(higher), *AS_AGENT)
    found = await kubectl.get("job", "sized")
    assert found is not None
    assert found["metadata"]["annotations"][SIZE] == higher
    assert found["status"]["active"] == 2, "its controller writes the status of a Job with a mark"
    await gone(kubectl, "sized")


async def test_sl_06_a_job_without_a_mark_gets_none_from_anybody_else_and_is_left_alone(kubectl: Kubectl) -> None:
    await kubectl("create", "-f", "-", manifest=a_job("plain", run=False))
    await refused(kubectl, SIZE_STAYS, "patch", "job", "plain", *size(MARK))
    await kubectl("patch", "job", "plain", *patch(spec={"parallelism": 3}))
    await pods_of(kubectl, "plain", 3)
    await kubectl("delete", "job", "plain", "--wait=false", "--cascade=background")


@pytest.mark.parametrize("cluster", ["home"], indirect=True)
async def test_hd_707_of_which_chain_a_slice_is_nobody_but_gatelift_changes(kubectl: Kubectl) -> None:
    """SL-49, SL-75: by these marks a manager that starts anew knows what runs; a Workload of others is its maker's."""
    marks = {
        "gatelift.dev/chain": "uid-1",
        SIZE: "2",
        GATE: "true",
        "kueue.x-k8s.io/workload-slice-name": "first",
        "kueue.x-k8s.io/workload-slice-replacement-for": "default/first",
    }
    await kubectl("create", "-f", "-", *GATELIFT_MANAGER, manifest=a_slice("ours", {OWNER: "{}", **marks}))
    await kubectl("create", "-f", "-", *GATELIFT_MANAGER, manifest=a_slice("plain", {OWNER: "{}"}))
    await kubectl("create", "-f", "-", manifest=a_slice("theirs", marks))
    for name, key, value in [
        *product(["ours"], marks, ["another", None]),
        *product(["plain"], marks, ["another"]),
    ]:
        await refused(kubectl, SLICE_STAYS, "patch", "workload", name, *patch(metadata={"annotations": {key: value}}))
    await kubectl("patch", "workload", "theirs", *size("3"))
    await kubectl("patch", "workload", "ours", *patch(metadata={"annotations": {"team": "a"}}, spec={"active": False}))
    await kubectl("patch", "workload", "ours", *size("3"), *GATELIFT_MANAGER)
    await kubectl("patch", "workload", "ours", *size("spoilt"), *GATELIFT_MANAGER)
    await kubectl("patch", "workload", "ours", *size("3"))
    for name in ("ours", "plain", "theirs"):
        await kubectl("delete", "workload", name, "--wait=false")
