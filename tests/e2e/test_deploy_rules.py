"""deploy/ on a real API server: CRDs and their rules, static policies, rights."""
# ruff: noqa: E501 - a row of a table is one line

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from gatelift.cli.manifests import MANAGEMENT, WORKER, InstallPart, agent_binding, load_manifests
from gatelift_sandbox.provider import Cluster
from support.e2e.rules import (
    AS_GATELIFT,
    GATELIFT,
    KUEUE,
    MANAGER,
    RESERVED,
    a_workload,
    control_plane,
    refused,
    status_of,
)
from support.e2e.sandbox_kubectl import POLL_SECONDS, WAIT_SECONDS, Kubectl, KubectlError
from support.manager.kind_objects import condition

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

Json = dict[str, Any]
K = "kueue.x-k8s.io/"
AGENT = "system:serviceaccount:gatelift-system:gatelift-agent"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    parts = [part for part in MANAGEMENT if part is not InstallPart.WEBHOOK_CONFIGURATION]
    manifests = [*load_manifests(*parts), *load_manifests(*WORKER)[1:], agent_binding("default")]
    yield from control_plane(tmp_path_factory.mktemp("home"), manifests)


@pytest.fixture
def kubectl(cluster: Cluster) -> Kubectl:
    return Kubectl(cluster)


def a_queue(**spec: Any) -> Json:
    return {"apiVersion": KUEUE, "kind": "ClusterQueue", "metadata": {"name": "cq"}, "spec": spec}


def a_group(**cell: Any) -> Json:
    resources = [{"name": "cpu", "nominalQuota": 5, **cell}]
    return {"coveredResources": ["cpu"], "flavors": [{"name": "f", "resources": resources}]}


BAD = [
    ("a negative quota", a_queue(resourceGroups=[a_group(nominalQuota="-1")]), "nominalQuota"),
    ("a borrowing limit without a cohort", a_queue(resourceGroups=[a_group(borrowingLimit=1)]), "needs a cohort"),
    ("an unknown strategy", a_queue(queueingStrategy="LIFO"), "queueingStrategy"),
    ("a flavor without a quota for each resource", a_queue(resourceGroups=[{**a_group(), "coveredResources": ["cpu", "memory"]}]), "each flavor must have a quota"),
    ("preemption while borrowing without reclaim", a_queue(preemption={"borrowWithinCohort": {"policy": "LowerPriority"}}), "borrowWithinCohort needs"),
    ("a misspelt field", a_queue(cohort="x"), "unknown field"),
    ("a cluster named twice", {"apiVersion": KUEUE, "kind": "MultiKueueConfig", "metadata": {"name": "m"}, "spec": {"clusters": ["a", "a"]}}, "each cluster may be named once"),
    ("no cluster", {"apiVersion": KUEUE, "kind": "MultiKueueConfig", "metadata": {"name": "m"}, "spec": {"clusters": []}}, "clusters"),
    ("a taint with an unknown effect", {"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": {"name": "f"}, "spec": {"nodeTaints": [{"key": "a", "effect": "Sometimes"}]}}, "the effect must be"),
    ("a worker cluster whose name is no label", {"apiVersion": "gatelift.dev/v1alpha1", "kind": "WorkerCluster", "metadata": {"name": "a.b"}, "spec": {}}, "must be a DNS label"),
    ("an unknown disconnect policy", {"apiVersion": "gatelift.dev/v1alpha1", "kind": "WorkerCluster", "metadata": {"name": "a"}, "spec": {"disconnectPolicy": "hope"}}, "disconnectPolicy"),
    ("a workload without pod sets", a_workload(podSets=[]), "podSets"),
    ("a priority class without its value", a_workload(priorityClassRef={"group": "scheduling.k8s.io", "kind": "PriorityClass", "name": "x"}), "needs the priority"),
    ("a class of the wrong group", a_workload(priority=1, priorityClassRef={"group": "scheduling.k8s.io", "kind": "WorkloadPriorityClass", "name": "x"}), "PriorityClass is of the group"),
]  # fmt: skip


@pytest.mark.parametrize(("document", "text"), [pytest.param(*row[1:], id=row[0]) for row in BAD])
async def test_the_api_server_refuses(kubectl: Kubectl, document: Json, text: str) -> None:
    with pytest.raises(KubectlError, match=text):
        await kubectl("create", "--validate=strict", "-f", "-", manifest=document)


async def test_defaults_are_kueues(kubectl: Kubectl) -> None:
    await kubectl.apply(a_queue(namespaceSelector={}, resourceGroups=[a_group()]))
    spec = (await kubectl.get("clusterqueue", "cq") or {})["spec"]
    assert (spec["queueingStrategy"], spec["stopPolicy"]) == ("BestEffortFIFO", "None")
    assert spec["flavorFungibility"] == {"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "TryNextFlavor"}
    assert spec["preemption"]["borrowWithinCohort"] == {"policy": "Never"}


async def test_a_workload_keeps_its_whole_template(kubectl: Kubectl) -> None:
    await kubectl.apply(a_workload("kept"))
    spec = (await kubectl.get("workload", "kept") or {})["spec"]
    assert spec["podSets"][0]["template"]["spec"]["unheardOf"] == {"a": 1}
    assert (spec["active"], spec["podSets"][0]["name"], spec["podSets"][0]["count"]) == (True, "main", 1)


async def test_an_epoch_never_goes_back(kubectl: Kubectl) -> None:
    await kubectl.apply(a_workload("epochs"))
    await kubectl("annotate", "workload", "epochs", "--overwrite", "gatelift.dev/epoch=10")
    for value in ("gatelift.dev/epoch=9", "gatelift.dev/epoch=x", "gatelift.dev/epoch-"):
        await refused(kubectl, r"gatelift\.dev/epoch", "annotate", "workload", "epochs", "--overwrite", value)


def raised(name: str, epoch: str) -> tuple[str, ...]:
    return ("annotate", "workload", name, "--overwrite", f"gatelift.dev/epoch={epoch}")


async def test_hd_30_while_quota_is_reserved_only_the_manager_changes_the_epoch(kubectl: Kubectl) -> None:
    await kubectl.apply(a_workload("reserved-epoch"))
    reserved = json.dumps({"status": {"conditions": [condition("QuotaReserved")]}})
    await kubectl(*status_of("reserved-epoch"), reserved, *AS_GATELIFT)
    await refused(kubectl, "belongs to the run while quota is reserved", *raised("reserved-epoch", "7"))
    await kubectl(*raised("reserved-epoch", "7"), f"--as={MANAGER}", "--as-group=system:serviceaccounts")


async def test_hd_30_people_raise_an_epoch_to_15_digits_and_the_manager_to_18(kubectl: Kubectl) -> None:
    await kubectl.apply(a_workload("raised"))
    await refused(kubectl, "at most 15 digits", *raised("raised", "9" * 16))
    await kubectl(*raised("raised", "9" * 15))
    await kubectl(*raised("raised", "1" + "0" * 15), f"--as={MANAGER}", "--as-group=system:serviceaccounts")
    await kubectl("annotate", "workload", "raised", "example.com/touched=1")  # what stands is no change
    await refused(kubectl, "whole number above 0", *raised("raised", "1" * 19), f"--as={MANAGER}")


async def test_hd_30_a_workload_is_made_with_an_epoch_that_people_may_choose(kubectl: Kubectl) -> None:
    """Policies cover CREATE (IS-1), also of 5,000 digits."""
    made = a_workload("made")
    long = (("9" * 16, "at most 15 digits"), ("9" * 5000, "whole number above 0 of at most 18 digits"))
    for value, text in (("x", "whole number above 0"), ("0", "whole number above 0"), *long):
        made["metadata"]["annotations"]["gatelift.dev/epoch"] = value
        await refused(kubectl, text, "create", "-f", "-", manifest=made)
    made["metadata"]["annotations"]["gatelift.dev/epoch"] = "12"
    await kubectl("create", "-f", "-", manifest=made)


@pytest.mark.parametrize(
    ("name", "key", "text"),
    [
        pytest.param("owned", "owner", "what the Workload was made for", id="HD-90"),
        pytest.param("recovered", "recovered-epoch", "left alone", id="HD-189"),
        pytest.param("ended", "unshown-ends", "do not run again", id="HD-412"),
    ],
)
async def test_what_only_the_manager_says_on_a_workload(kubectl: Kubectl, name: str, key: str, text: str) -> None:
    made = a_workload(name)
    made["metadata"]["annotations"][f"gatelift.dev/{key}"] = "1"
    await refused(kubectl, text, "create", "-f", "-", manifest=made)
    await kubectl("create", "-f", "-", f"--as={MANAGER}", "--as-group=system:serviceaccounts", manifest=made)
    for value in (f"gatelift.dev/{key}=2", f"gatelift.dev/{key}-"):
        await refused(kubectl, text, "annotate", "workload", name, "--overwrite", value)
    await kubectl("annotate", "workload", name, "example.com/touched=1")


def a_class(kind: str, name: str) -> Json:
    group = "scheduling.k8s.io" if kind == "PriorityClass" else "kueue.x-k8s.io"
    return {"priority": 1, "priorityClassRef": {"group": group, "kind": kind, "name": name}}


CHANGES: list[tuple[Json, Json, str]] = [
    ({"queueName": "q"}, {"queueName": "r"}, "queueName is immutable"),
    ({"queueName": "q"}, {"queueName": None}, "queueName is immutable"),
    ({}, {"queueName": "r"}, "queueName is immutable"),
    ({}, {"podSets": [{"count": 2, "template": {}}]}, "podSets are immutable"),
    ({}, {"podSets": [{"name": "other", "template": {}}]}, "podSets are immutable"),
    (a_class("PriorityClass", "x"), a_class("PriorityClass", "y"), "priorityClassRef is immutable"),
    (a_class("WorkloadPriorityClass", "x"), a_class("PriorityClass", "x"), "priorityClassRef is immutable"),
    (a_class("WorkloadPriorityClass", "x"), {"priorityClassRef": None}, "priorityClassRef is immutable"),
    ({}, a_class("WorkloadPriorityClass", "x"), "priorityClassRef is immutable"),
    (
        {"maximumExecutionTimeSeconds": 5},
        {"maximumExecutionTimeSeconds": 6},
        "maximumExecutionTimeSeconds is immutable",
    ),
    ({}, {"maximumExecutionTimeSeconds": 6}, "maximumExecutionTimeSeconds is immutable"),
    (a_class("WorkloadPriorityClass", "x"), a_class("WorkloadPriorityClass", "y"), ""),
    ({"podSets": [{"count": 3, "template": {}}]}, {"podSets": [{"count": 1, "template": {}}]}, ""),
]
"""What a Workload has, what somebody would give it, and what says no while it is reserved and admitted."""


@pytest.mark.parametrize(("has", "wanted", "text"), CHANGES)
async def test_what_was_reserved_cannot_be_changed(kubectl: Kubectl, has: Json, wanted: Json, text: str) -> None:
    async def status(value: Json) -> None:
        patch = json.dumps({"status": value})
        await kubectl(*status_of("reserved"), patch, *AS_GATELIFT)

    async def change(spec: Json) -> None:
        await kubectl("patch", "workload", "reserved", "--type=merge", "-p", json.dumps({"spec": spec}))

    await kubectl.apply(a_workload("reserved", **has))
    try:
        await status(RESERVED)
        if not text:
            await change(wanted)
            return
        with pytest.raises(KubectlError, match=text):
            await change(wanted)
        await status({"conditions": [condition("QuotaReserved", "False"), condition("Admitted", "False")]})
        await change(wanted)
    finally:
        await kubectl("delete", "workload", "reserved")


async def test_hd_41_the_finalizer_of_what_was_reserved_is_gatelifts_to_take_off(kubectl: Kubectl) -> None:
    workload = a_workload("kept-while-reserved")
    workload["metadata"]["finalizers"] = [f"{K}resource-in-use"]
    await kubectl.apply(workload)
    patch = ("patch", "workload", "kept-while-reserved", "--type=merge", "-p")
    without = json.dumps({"metadata": {"finalizers": None}})
    await kubectl(*status_of("kept-while-reserved"), json.dumps({"status": RESERVED}), *AS_GATELIFT)
    await refused(kubectl, "is taken off by Gatelift", *patch, without)
    await kubectl(*patch, without, f"--as={MANAGER}", *GATELIFT)
    await kubectl("delete", "workload", "kept-while-reserved")


async def test_the_templates_of_what_was_reserved_cannot_be_changed(kubectl: Kubectl) -> None:
    await kubectl.apply(a_workload("templates"))
    status = json.dumps({"status": RESERVED})
    await kubectl(*status_of("templates"), status, *AS_GATELIFT)
    other = json.dumps({"spec": {"podSets": [{"template": {"spec": {}}}]}})
    await refused(kubectl, "templates are immutable", "patch", "workload", "templates", "--type=merge", "-p", other)


RECORD = {"term": 3, "session": 7, "openedSession": 7, "settledSession": 5, "fencedThroughSession": 4, "keyDigest": "k"}
FORGED: list[Json] = [
    *({name: 2**62} for name in RECORD if name != "keyDigest"),
    *({name: None} for name in RECORD),
    {"restoredSession": 1},
    {"replacedSession": 1},
    {"takenOverSession": 1},
    {"mark": 1},
    {"placements": 0},
    {"leaseSeconds": 2**31 - 1},
    {"conditions": [condition("Connected", "False")]},
]


@pytest.mark.parametrize("change", FORGED, ids=json.dumps)
async def test_hd_225_the_record_of_a_worker_cluster_is_gatelifts_to_write(kubectl: Kubectl, change: Json) -> None:
    """HD-226 as well. No rule of the CRD keeps Gatelift from lowering what somebody else has written around the policy."""
    made = {"apiVersion": "gatelift.dev/v1alpha1", "kind": "WorkerCluster", "metadata": {"name": "one"}, "spec": {}}
    await kubectl.apply(made)
    patch = ("patch", "workercluster", "one", "--subresource=status", "--type=merge", "-p")
    await kubectl(*patch, json.dumps({"status": dict.fromkeys(RECORD, None) | {"conditions": None}}), *AS_GATELIFT)
    await kubectl(*patch, json.dumps({"status": RECORD}), *AS_GATELIFT)
    await refused(kubectl, "Gatelift", *patch, json.dumps({"status": change}))
    await kubectl(*patch, json.dumps({"status": {"conditions": [condition("example.com/Seen")]}}))
    await kubectl(*patch, json.dumps({"status": change}), *AS_GATELIFT)
    await kubectl(*patch, json.dumps({"status": RECORD}), *AS_GATELIFT)


async def test_a_worker_cluster_with_work_on_it_is_not_deleted(kubectl: Kubectl) -> None:
    made = {"apiVersion": "gatelift.dev/v1alpha1", "kind": "WorkerCluster", "metadata": {"name": "busy"}, "spec": {}}
    await kubectl.apply(made)
    patch = ("patch", "workercluster", "busy", "--subresource=status", "--type=merge", "-p")
    await kubectl(*patch, json.dumps({"status": {"placements": 2}}), *AS_GATELIFT)
    await refused(kubectl, "run 'gatelift cluster fenced'", "delete", "workercluster", "busy")
    await kubectl(*patch, json.dumps({"status": {"placements": 0}}), *AS_GATELIFT)
    await kubectl("delete", "workercluster", "busy")


def a_pod(name: str, **metadata: Any) -> Json:
    spec = {"containers": [{"name": "c", "image": "i"}], "schedulingGates": [{"name": f"{K}admission"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **metadata}, "spec": spec}


UNGATE = ("--type=merge", "-p", json.dumps({"spec": {"schedulingGates": []}}))


async def test_nobody_but_gatelift_removes_the_gate(kubectl: Kubectl) -> None:
    await kubectl.apply(a_pod("gated"))
    await refused(kubectl, "is removed by admission only", "patch", "pod", "gated", *UNGATE)
    await kubectl("patch", "pod", "gated", *UNGATE, f"--as={MANAGER}", *GATELIFT)


async def test_the_managed_label_has_one_value(kubectl: Kubectl) -> None:
    labelled = a_pod("labelled", labels={f"{K}managed": "false"})
    await refused(kubectl, "may only be `true`", "apply", "-f", "-", manifest=labelled)


RUN_LABELS = {"gatelift.dev/origin": "home", "gatelift.dev/workload-uid": "w-1", "gatelift.dev/epoch": "1"}


async def test_ownership_labels_of_a_placed_pod_are_the_agents(kubectl: Kubectl) -> None:
    placed = a_pod("placed", labels={"gatelift.dev/origin": "home", "gatelift.dev/epoch": "1"})
    await kubectl("create", "-f", "-", f"--as={AGENT}", *GATELIFT, manifest=placed)
    relabel = ("label", "pod", "placed", "--overwrite", "gatelift.dev/epoch=2")
    await refused(kubectl, "say whose run this is", *relabel)  # by both policies, that of a worker and that of home
    await kubectl("label", "pod", "placed", "mine=yes")


CHANGED_RUN_LABELS = [
    pytest.param({"gatelift.dev/origin": None}, "say whose run this is", id="origin taken off"),
    pytest.param({"gatelift.dev/workload-uid": "w-2"}, "say whose run this is", id="another workload"),
    pytest.param({"gatelift.dev/epoch": None}, "say whose run this is", id="epoch taken off"),
    # Two policies refuse this one, that of home and that of a worker, and the API server names whichever it asked first.
    pytest.param({f"{K}managed": None}, "is set when the pod is made|say what made a pod", id="managed taken off"),
]


@pytest.mark.parametrize("subresource", [(), ("--subresource=status",)], ids=["pods", "pods/status"])
@pytest.mark.parametrize(("change", "text"), CHANGED_RUN_LABELS)
async def test_hd_6_labels_of_a_running_pod_are_gatelifts_alone(
    kubectl: Kubectl, change: Json, text: str, subresource: tuple[str, ...]
) -> None:
    name = "runs"
    pod = a_pod(name, labels={**RUN_LABELS, f"{K}managed": "true"})
    del pod["spec"]["schedulingGates"]
    await kubectl("create", "-f", "-", f"--as={AGENT}", *GATELIFT, manifest=pod)
    try:
        patch = json.dumps({"metadata": {"labels": change}})
        await refused(kubectl, text, "patch", "pod", name, *subresource, "--type=merge", "-p", patch)
        await kubectl("label", "pod", name, "mine=yes")
        seen = json.dumps({"status": {"conditions": [condition("Initialized")]}})
        await kubectl("patch", "pod", name, "--subresource=status", "--type=merge", "-p", seen)
        again = ("patch", "pod", name, "--type=merge", "-p", json.dumps({"metadata": {"labels": RUN_LABELS}}))
        await kubectl(*again, f"--as={MANAGER}", *GATELIFT)
    finally:
        await kubectl("delete", "pod", name, "--grace-period=0", "--force")


async def test_hd_6_a_pod_with_labels_of_a_run_is_made_for_a_job_by_its_controller_alone(kubectl: Kubectl) -> None:
    await refused(kubectl, "say whose run this is", "create", "-f", "-", manifest=a_pod("forged", labels=RUN_LABELS))
    template = {"metadata": {"labels": RUN_LABELS}, "spec": a_pod("x")["spec"] | {"restartPolicy": "Never"}}
    job: Json = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "made", "labels": RUN_LABELS},
        "spec": {"template": template},
    }
    await kubectl("create", "-f", "-", f"--as={AGENT}", *GATELIFT, manifest=job)

    async def made() -> str:
        return await kubectl("get", "pods", "-l", "job-name=made", "-o", "name")

    async with asyncio.timeout(WAIT_SECONDS):
        while not await made():  # noqa: ASYNC110 - the controller does not tell when it has
            await asyncio.sleep(POLL_SECONDS)
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "made", "uid": "u", "controller": True}
    claimed = a_pod("claimed", labels=RUN_LABELS, ownerReferences=[owner])
    await refused(kubectl, "say whose run this is", "create", "-f", "-", manifest=claimed)
    await kubectl("delete", "job", "made")


async def test_hd_40_labels_of_a_run_on_jobs_and_in_their_templates_are_gatelifts_alone(kubectl: Kubectl) -> None:
    template = {"metadata": {"labels": RUN_LABELS}, "spec": a_pod("x")["spec"] | {"restartPolicy": "Never"}}
    plain = {"metadata": {"labels": {"app": "x"}}, "spec": template["spec"]}

    def job(labels: Json, template: Json) -> Json:
        return {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "labelled-job", "labels": labels},
            "spec": {"suspend": True, "template": template},
        }

    for forged in (job(RUN_LABELS, plain), job({}, template)):
        await refused(kubectl, "say whose run", "create", "-f", "-", manifest=forged)
    await kubectl("create", "-f", "-", f"--as={AGENT}", *GATELIFT, manifest=job(RUN_LABELS, template))
    other = {"gatelift.dev/epoch": "2"}
    in_template = {"spec": {"template": {"metadata": {"labels": other}}}}
    for change in ({"metadata": {"labels": other}}, in_template):
        patch = ("patch", "job", "labelled-job", "--type=merge", "-p", json.dumps(change))
        await refused(kubectl, "say whose run|is as it was placed", *patch)
    status = ("--subresource=status", "--type=merge", "-p", json.dumps({"metadata": {"labels": other}}))
    await refused(kubectl, "say whose run", "patch", "job", "labelled-job", *status)
    await kubectl("label", "job", "labelled-job", "mine=yes")
    await kubectl("delete", "job", "labelled-job")


PLACED = {
    "here": ({}, RUN_LABELS),
    "elsewhere": ({"gatelift.dev/shown": "uid@1"}, {}),
}


@pytest.mark.parametrize("where", sorted(PLACED))
async def test_hd_107_a_placed_job_keeps_its_queue_and_is_started_by_gatelift_alone(
    kubectl: Kubectl, where: str
) -> None:
    notes, marks = PLACED[where]
    name = f"placed-{where}"
    job: Json = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": {f"{K}queue-name": "q", **marks}, "annotations": notes},
        "spec": {
            "suspend": True,
            "template": {
                "metadata": {"labels": marks},
                "spec": a_pod("x")["spec"] | {"restartPolicy": "Never"},
            },
        },
    }
    await kubectl("create", "-f", "-", f"--as={AGENT}", *GATELIFT, manifest=job)
    change = ("patch", "job", name, "--type=merge", "-p")
    for queue in (None, "other"):
        label = {"metadata": {"labels": {f"{K}queue-name": queue}}}
        await refused(kubectl, "stays while the Job is placed", *change, json.dumps(label))
    alone = "is started again when its queue admits it|is let go by the agent only"  # the policies of a worker are here, too
    both = {"metadata": {"labels": {f"{K}queue-name": None}}, "spec": {"suspend": False}}
    await refused(kubectl, f"stays while the Job is placed|{alone}", *change, json.dumps(both))
    started = json.dumps({"spec": {"suspend": False}})
    await refused(kubectl, alone, *change, started)
    shown = json.dumps({"metadata": {"annotations": {"gatelift.dev/shown": None if notes else "uid@2"}}})
    await refused(kubectl, "which run elsewhere the Job shows", *change, shown)
    await kubectl("label", "job", name, "mine=yes")
    await kubectl(*change, started, f"--as={MANAGER}", *GATELIFT)
    await kubectl(*change, json.dumps({"spec": {"suspend": True}}))
    await kubectl("delete", "job", name)


@pytest.mark.parametrize("note", ["gatelift.dev/template-before", "gatelift.dev/parallelism-before"])
async def test_hd_195_what_a_job_is_put_back_to_is_gatelifts_to_say(kubectl: Kubectl, note: str) -> None:
    spec = {"suspend": True, "template": {"spec": a_pod("x")["spec"] | {"restartPolicy": "Never"}}}
    meta: Json = {"name": "noted", "annotations": {note: "{}"}}
    job: Json = {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": spec}
    await refused(kubectl, "say what a Job is put back to", "create", "-f", "-", manifest=job)
    await kubectl("create", "-f", "-", f"--as={AGENT}", *GATELIFT, manifest=job)
    change = ("patch", "job", "noted", "--type=merge", "-p")
    for said in (None, '{"spec":{}}'):
        edit = json.dumps({"metadata": {"annotations": {note: said}}})
        await refused(kubectl, "say what a Job is put back to", *change, edit)
    await kubectl("label", "job", "noted", "mine=yes")
    await kubectl(*change, json.dumps({"metadata": {"annotations": {note: None}}}), f"--as={MANAGER}", *GATELIFT)
    edit = json.dumps({"metadata": {"annotations": {note: "{}"}}})
    await refused(kubectl, "say what a Job is put back to", *change, edit)
    await kubectl("delete", "job", "noted")


async def test_hd_107_a_job_that_waits_may_leave_its_queue(kubectl: Kubectl) -> None:
    spec = {"suspend": True, "template": {"spec": a_pod("x")["spec"] | {"restartPolicy": "Never"}}}
    meta = {"name": "leaves", "labels": {f"{K}queue-name": "q"}}
    await kubectl.apply({"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": spec})
    both = {"metadata": {"labels": {f"{K}queue-name": None}}, "spec": {"suspend": False}}
    await kubectl("patch", "job", "leaves", "--type=merge", "-p", json.dumps(both))
    await kubectl("delete", "job", "leaves")


async def test_hd_3_requests_of_a_managed_pod_are_not_raised_in_place(kubectl: Kubectl) -> None:
    asking = a_pod("resized", labels={f"{K}managed": "true"})
    asking["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "10m"}}
    await kubectl.apply(asking)
    more = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "4"}}}]}
    resize = ("patch", "pod", "resized", "--subresource=resize", "--type=strategic", "-p", json.dumps({"spec": more}))
    await refused(kubectl, "quota was given for what the pod asked for", *resize)
    await kubectl("delete", "pod", "resized", "--grace-period=0", "--force")


async def test_hd_267_a_managed_pod_is_deleted_with_a_grace_of_a_day_at_most(kubectl: Kubectl) -> None:
    bound = {"containers": [{"name": "c", "image": "i"}], "nodeName": "n"}  # what no node has goes without a grace
    await kubectl.apply({**a_pod("slow", labels={f"{K}managed": "true"}), "spec": bound})
    await kubectl.apply({**a_pod("of-nobody"), "spec": bound})
    await refused(kubectl, "delete it with at most 86400, a day", "delete", "pod", "slow", "--grace-period=86401")
    for name in ("slow", "of-nobody"):
        await kubectl("delete", "pod", name, "--dry-run=server", "--grace-period=86400")
        await kubectl("delete", "pod", name, "--dry-run=server")
    await kubectl("delete", "pod", "of-nobody", "--dry-run=server", "--grace-period=86401")
    for name in ("slow", "of-nobody"):
        await kubectl("delete", "pod", name, "--grace-period=0", "--force")


RIGHTS = [
    (MANAGER, "create", ("subjectaccessreviews.authorization.k8s.io",), "", True),
    (MANAGER, "patch", ("pods", "--subresource=status"), "elsewhere", True),
    (MANAGER, "create", ("pods",), "elsewhere", False),
    (MANAGER, "get", ("secrets",), "elsewhere", False),
    (MANAGER, "list", ("multikueueclusters.kueue.x-k8s.io",), "", True),
    (MANAGER, "patch", ("multikueueclusters.kueue.x-k8s.io",), "", False),
    (MANAGER, "get", ("secrets",), "gatelift-system", False),
    (MANAGER, "get", ("secrets/gatelift-ca",), "gatelift-system", True),
    (AGENT, "list", ("namespaces",), "", True),
    (AGENT, "list", ("pods",), "elsewhere", True),
    (AGENT, "get", ("pods",), "elsewhere", False),
    (AGENT, "create", ("pods",), "default", True),
    (AGENT, "patch", ("jobs.batch", "--subresource=status"), "default", True),
    (AGENT, "patch", ("pods", "--subresource=status"), "default", False),
    (AGENT, "get", ("secrets",), "default", False),
    (AGENT, "get", ("secrets",), "gatelift-system", False),
]


@pytest.mark.parametrize(("who", "verb", "what", "where", "may"), RIGHTS)
async def test_rights(kubectl: Kubectl, who: str, verb: str, what: tuple[str, ...], where: str, may: bool) -> None:
    place = ("-n", where) if where else ()

    async def can() -> bool:
        try:
            answer = await kubectl("auth", "can-i", verb, *what, *place, f"--as={who}")
        except KubectlError:  # kubectl ends with status 1 when it says no
            return False
        return answer.strip() == "yes"

    if not may:
        assert not await can()
        return
    async with asyncio.timeout(WAIT_SECONDS):
        while not await can():  # noqa: ASYNC110 - the API server takes up a role a little later
            await asyncio.sleep(POLL_SECONDS)
