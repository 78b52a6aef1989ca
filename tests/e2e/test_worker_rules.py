"""The worker's policies on a real API server: what is placed there is the agent's to change."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from gatelift.cli.manifests import ACCEPTING, WORKER, agent_binding, deploy_folder, load_manifests
from gatelift_kube.api.client import Client
from gatelift_kube.api.config import from_kubeconfig
from gatelift_kube.serving.metrics_access import Access, MetricsAccess
from gatelift_sandbox.provider import Cluster
from support.baseline import AT_HOME, BEYOND_BASELINE, Case
from support.e2e.rules import GATELIFT, control_plane, refused
from support.e2e.sandbox_kubectl import POLL_SECONDS, WAIT_SECONDS, Kubectl, KubectlError

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

Json = dict[str, Any]
AS_AGENT = ("--as=system:serviceaccount:gatelift-system:gatelift-agent", *GATELIFT)
RUN = {"gatelift.dev/origin": "home", "gatelift.dev/workload-uid": "w-1", "gatelift.dev/epoch": "1"}
MARK = {"key": "home.placed-as.gatelift.dev/kept", "operator": "Equal", "value": "w-1.1", "effect": "NoSchedule"}
OF_A_JOB = ("controller-uid", "batch.kubernetes.io/controller-uid", "job-name", "batch.kubernetes.io/job-name")
PLACED_AS = {"gatelift.dev/placed-as": "home/w-1/1"}
POD_SPEC = {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "10m"}}}]}
WHOSE = "say whose run"
ENDED = {
    "name": "c",
    "image": "i",
    "imageID": "",
    "ready": False,
    "restartCount": 0,
    "state": {"terminated": {"exitCode": 0, "reason": "Completed"}},
}
NODE_SELECTOR = {"template": {"spec": {"nodeSelector": {"pool": "other"}}}}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    yield from control_plane(tmp_path_factory.mktemp("home"), [*load_manifests(*WORKER), agent_binding("default")])


@pytest.fixture
def kubectl(cluster: Cluster) -> Kubectl:
    return Kubectl(cluster)


def a_pod(name: str, **metadata: Any) -> Json:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **metadata}, "spec": POD_SPEC}


def a_job(name: str, labels: Json, template_labels: Json, **spec: Any) -> Json:
    template = {"metadata": {"labels": template_labels}, "spec": {**POD_SPEC, "restartPolicy": "Never"}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": labels, "annotations": PLACED_AS if labels else {}},
        "spec": {"suspend": True, "template": template, **spec},
    }


def merge(**document: Any) -> tuple[str, ...]:
    return ("--type=merge", "-p", json.dumps(document))


@pytest.fixture
async def job(kubectl: Kubectl) -> AsyncIterator[str]:
    """Make a Job as the agent does; its name. It is gone after the test, whatever has become of it."""
    indexed = {"parallelism": 2, "completions": 2, "completionMode": "Indexed", "podReplacementPolicy": "Failed"}
    await kubectl("create", "-f", "-", *AS_AGENT, manifest=a_job("placed", RUN, RUN, **indexed))
    yield "placed"
    await kubectl("delete", "job", "placed", "--ignore-not-found")


@pytest.fixture
async def confined(kubectl: Kubectl) -> str:
    """Make a namespace as the printed commands label it; its name."""
    await kubectl.apply(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "confined", "labels": ACCEPTING}},
        agent_binding("confined"),
    )
    async with asyncio.timeout(WAIT_SECONDS):
        while await kubectl.get("serviceaccount", "default", "confined") is None:  # noqa: ASYNC110 - it may be starting
            await asyncio.sleep(POLL_SECONDS)
    return "confined"


def judged(name: str, case: Case) -> Json:
    spec = {**case.spec, "schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]}
    metadata = {"name": name, "labels": RUN, "annotations": {**PLACED_AS, **case.annotations}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


async def said(kubectl: Kubectl, manifest: Json, words: tuple[str, ...]) -> str:
    """Return with what words something is refused, "" where it is taken."""
    try:
        await kubectl(*words, manifest=manifest)
    except KubectlError as error:
        return str(error)
    return ""


async def test_is_20_the_api_server_holds_the_agent_to_baseline_as_its_own_policy_does(
    kubectl: Kubectl, confined: str
) -> None:
    """Each of these the policy refuses by itself (`tests/agent/test_agent_policy.py`), so the two say the same."""
    dry = ("create", "-f", "-", "-n", confined, "--dry-run=server", *AS_AGENT)
    for number, (name, case) in enumerate(BEYOND_BASELINE.items()):
        assert 'violates PodSecurity "baseline' in await said(kubectl, judged(f"beyond-{number}", case), dry), name
    for number, case in enumerate(AT_HOME.values()):
        await kubectl(*dry, manifest=judged(f"home-{number}", case))
    for case in BEYOND_BASELINE.values():
        await kubectl(*dry[:3], "--dry-run=server", *AS_AGENT, manifest=judged("unlabelled", case))


COMPONENT = deploy_folder() / "components/metrics-authentication/worker"


async def test_is_26_metrics_are_for_who_may_get_their_path(kubectl: Kubectl, cluster: Cluster) -> None:
    access = list(yaml.safe_load_all((COMPONENT / "access.yaml").read_text()))
    await kubectl.apply(*access)
    for name in ("scraper", "stranger"):
        await kubectl("create", "serviceaccount", name)
    role = ("--clusterrole=gatelift-metrics-reader", "--serviceaccount=default:scraper")
    await kubectl("create", "clusterrolebinding", "scrapes", *role)
    for review in ("tokenreviews.authentication.k8s.io", "subjectaccessreviews.authorization.k8s.io"):
        assert "yes" in await kubectl("auth", "can-i", "create", review, AS_AGENT[0])
    tokens = {name: (await kubectl("create", "token", name)).strip() for name in ("scraper", "stranger")}
    async with Client.connect(await from_kubeconfig(str(cluster.kubeconfig))) as client:
        asked = MetricsAccess(client)
        assert await asked.judge(f"Bearer {tokens['scraper']}") is Access.ALLOWED
        assert await asked.judge(f"Bearer {tokens['stranger']}") is Access.DENIED
        assert await asked.judge("Bearer eyJhbGciOiJub25lIn0.e30.") is Access.UNKNOWN


@pytest.mark.parametrize("side", ["management", "worker"])
async def test_is_26_an_overlay_that_asks_for_it_guards_its_metrics(
    kubectl: Kubectl, tmp_path: Path, side: str
) -> None:
    shutil.copytree(deploy_folder(), tmp_path / "deploy")
    overlay = tmp_path / "deploy/overlays" / side / "kustomization.yaml"
    overlay.write_text(
        overlay.read_text().replace("# components:", "components:").replace("#   - ../../c", "  - ../../c")
    )
    made = list(yaml.safe_load_all(await kubectl("kustomize", str(overlay.parent))))
    guarded = {
        one["metadata"]["name"]
        for one in made
        if one["kind"] == "Deployment" and "METRICS_AUTHENTICATION" in json.dumps(one["spec"])
    }
    assert guarded == {one["metadata"]["name"] for one in made if one["kind"] == "Deployment"}


EDITS = [
    pytest.param({"parallelism": 6}, "spec.parallelism", id="HD-3 parallelism"),
    pytest.param({"parallelism": 6, "completions": 6}, "spec.parallelism", id="HD-3 completions"),
    pytest.param({"podReplacementPolicy": "TerminatingOrFailed"}, "replaced when it has ended", id="HD-132"),
    pytest.param(NODE_SELECTOR, "spec.template: is as it was placed", id="HD-3 template"),
    pytest.param({"suspend": False}, "let go by the agent only", id="HD-3 suspend"),
]


async def test_hd_3_what_a_placed_job_is_charged_for_is_the_agents_to_change(kubectl: Kubectl, job: str) -> None:
    for spec, text in (each.values for each in EDITS):
        assert isinstance(text, str)
        await refused(kubectl, text, "patch", "job", job, *merge(spec=spec))
        await kubectl("patch", "job", job, *merge(spec=spec), *AS_AGENT, "--dry-run=server")
    await kubectl("patch", "job", job, *merge(spec={"backoffLimit": 3}))
    await kubectl("label", "job", job, "mine=yes")
    await kubectl("delete", "job", job)


async def test_hd_3_a_placed_job_may_be_suspended_and_deleted_by_a_person(kubectl: Kubectl, job: str) -> None:
    await kubectl("patch", "job", job, *merge(spec={"suspend": False}), *AS_AGENT)
    await kubectl("patch", "job", job, *merge(spec={"suspend": True}))
    await kubectl("delete", "job", job)


async def test_hd_267_a_placed_pod_is_deleted_with_a_grace_of_a_day_at_most(kubectl: Kubectl) -> None:
    placed = a_pod("slow", labels=RUN)
    placed["spec"] = {**POD_SPEC, "nodeName": "n"}  # what no node has goes without a grace
    await kubectl("create", "-f", "-", *AS_AGENT, manifest=placed)
    await refused(kubectl, "delete it with at most 86400, a day", "delete", "pod", "slow", "--grace-period=86401")
    await kubectl("delete", "pod", "slow", "--dry-run=server", "--grace-period=86400")


async def test_hd_3_requests_of_a_placed_pod_are_not_raised_in_place(kubectl: Kubectl) -> None:
    placed = a_pod("resized", labels=RUN)
    placed["spec"] = {**POD_SPEC, "schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]}
    await kubectl("create", "-f", "-", *AS_AGENT, manifest=placed)
    more = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "4"}}}]}
    resize = ("patch", "pod", "resized", "--subresource=resize", "--type=strategic", "-p", json.dumps({"spec": more}))
    await refused(kubectl, "quota was given for what the pod asked for", *resize)


@pytest.mark.parametrize("subresource", [(), ("--subresource=status",)], ids=["itself", "status"])
@pytest.mark.parametrize("kind", ["pod", "job"])
async def test_hd_40_labels_and_marks_of_what_is_placed_are_the_agents(
    kubectl: Kubectl, kind: str, subresource: tuple[str, ...]
) -> None:
    name = f"marked-{len(subresource)}"
    document = a_job(name, RUN, RUN) if kind == "job" else a_pod(name, labels=RUN, annotations=PLACED_AS)
    await kubectl("create", "-f", "-", *AS_AGENT, manifest=document)
    edits: list[tuple[Json, str]] = [({"labels": {key: None}}, WHOSE) for key in RUN]
    edits += [({"labels": {"gatelift.dev/epoch": "2"}}, WHOSE)]
    edits += [({"annotations": {"gatelift.dev/placed-as": "home/w-1/2"}}, "say what was placed")]
    for change, text in edits:
        patch = ("patch", kind, name, *subresource, *merge(metadata=change))
        await refused(kubectl, text, *patch)
        await kubectl(*patch, *AS_AGENT, "--dry-run=server") if not subresource else None
    await kubectl("delete", kind, name, "--grace-period=0", "--force")


async def test_hd_40_nobody_makes_what_looks_placed(kubectl: Kubectl) -> None:
    forged = [a_pod("forged", labels=RUN), a_job("forged", RUN, {}), a_job("forged", {}, RUN)]
    for document in forged:
        await refused(kubectl, WHOSE, "create", "-f", "-", manifest=document)
    marked = a_pod("forged", annotations=PLACED_AS)
    await refused(kubectl, "say what was placed", "create", "-f", "-", manifest=marked)
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "placed", "uid": "u", "controller": True}
    await refused(kubectl, WHOSE, "create", "-f", "-", manifest=a_pod("forged", labels=RUN, ownerReferences=[owner]))


GUARDED = {
    "gatelift.dev/user-uid": "u-1",
    "gatelift.dev/kind": "PodGroup",
    "gatelift.dev/joined": "true",
    "gatelift.dev/pod-set": "main",
    "gatelift.dev/objects": "3",
}
"""What else a start believes of what is placed, most of it of members of a group."""


@pytest.mark.parametrize("subresource", [(), ("--subresource=status",)], ids=["itself", "status"])
async def test_hd_365_what_a_member_says_of_itself_at_a_worker_is_the_agents(
    kubectl: Kubectl, subresource: tuple[str, ...]
) -> None:
    name = f"member-{len(subresource)}"
    said = "say what was placed, and for whom"
    await kubectl("create", "-f", "-", *AS_AGENT, manifest=a_pod(name, labels=RUN, annotations=PLACED_AS | GUARDED))
    await kubectl("create", "-f", "-", *AS_AGENT, manifest=a_pod(f"{name}-bare", labels=RUN, annotations=PLACED_AS))
    for key, value in GUARDED.items():
        for change in (None, f"{value}1"):
            patch = ("patch", "pod", name, *subresource, *merge(metadata={"annotations": {key: change}}))
            await refused(kubectl, said, *patch)
            await kubectl(*patch, *AS_AGENT, "--dry-run=server") if not subresource else None
        added = merge(metadata={"annotations": {key: value}})
        await refused(kubectl, said, "patch", "pod", f"{name}-bare", *subresource, *added)
        await refused(kubectl, said, "create", "-f", "-", manifest=a_pod("forged", annotations={key: value}))
    await kubectl("annotate", "pod", name, "mine=yes")
    await kubectl("delete", "pod", name, f"{name}-bare", "--grace-period=0", "--force")


async def test_hd_40_the_job_controller_makes_the_pods_of_a_placed_job(kubectl: Kubectl) -> None:
    await refused(kubectl, WHOSE, "create", "-f", "-", manifest=a_pod("forged", labels=RUN))
    await kubectl("create", "-f", "-", *AS_AGENT, manifest=a_job("runs", RUN, RUN, suspend=False))
    chosen = ("get", "pods", "-l", "job-name=runs,gatelift.dev/epoch=1", "-o", "name")
    async with asyncio.timeout(WAIT_SECONDS):
        while not await kubectl(*chosen):  # noqa: ASYNC110 - the controller does not tell when it has
            await asyncio.sleep(POLL_SECONDS)
    await kubectl("delete", "job", "runs")


async def test_hd_84_what_tells_a_placed_jobs_pod_is_its_controllers_and_the_collectors(kubectl: Kubectl) -> None:
    document = a_job("kept", RUN, RUN, suspend=False)
    document["spec"]["template"]["spec"] |= {"tolerations": [MARK]}
    await kubectl("create", "-f", "-", *AS_AGENT, manifest=document)
    chosen = ("get", "pods", "-l", "job-name=kept", "-o", "name")
    async with asyncio.timeout(WAIT_SECONDS):
        while not (pod := (await kubectl(*chosen)).strip()):  # noqa: ASYNC110 - the controller does not tell when it has
            await asyncio.sleep(POLL_SECONDS)
    edits: list[tuple[Json, str]] = [({"ownerReferences": None}, "quota was given for the pods of this Job")]
    edits += [({"labels": {key: None}}, "say what made a pod") for key in OF_A_JOB]
    edits += [({"labels": {"kueue.x-k8s.io/managed": "true"}}, "say what made a pod")]
    for change, text in edits:
        await refused(kubectl, text, "patch", pod, *merge(metadata=change))
        await kubectl("patch", pod, *merge(metadata=change), *AS_AGENT, "--dry-run=server")
    await refused(kubectl, "say what made a pod", "patch", pod, "--subresource=status", *merge(metadata=edits[1][0]))
    await kubectl("label", pod, "mine=yes")
    await kubectl("delete", "job", "kept", "--cascade=orphan")
    owners = ("get", pod, "-o", "jsonpath={.metadata.ownerReferences}")
    async with asyncio.timeout(WAIT_SECONDS):
        while await kubectl(*owners):  # noqa: ASYNC110 - nor does the collector
            await asyncio.sleep(POLL_SECONDS)
    await kubectl("delete", pod, "--grace-period=0", "--force")


async def test_hd_85_nobody_marks_a_pod_or_a_template_but_the_agent(kubectl: Kubectl) -> None:
    pod, job = a_pod("forged"), a_job("forged", {}, {})
    pod["spec"] = {**POD_SPEC, "tolerations": [MARK]}
    job["spec"]["template"]["spec"] |= {"tolerations": [MARK]}
    await refused(kubectl, "say for whose run a pod was made", "create", "-f", "-", manifest=pod)
    await refused(kubectl, "say whose run a pod is", "create", "-f", "-", manifest=job)
    await kubectl("create", "-f", "-", manifest=a_pod("plain"))
    added = json.dumps([{"op": "add", "path": "/spec/tolerations/-", "value": MARK}])
    await refused(kubectl, "say for whose run a pod was made", "patch", "pod", "plain", "--type=json", "-p", added)
    await kubectl("delete", "pod", "plain", "--grace-period=0", "--force")


async def test_what_nobody_placed_is_nobodys_business(kubectl: Kubectl) -> None:
    await refused(kubectl, WHOSE, "create", "-f", "-", manifest=a_pod("forged", labels=RUN))
    await kubectl("create", "-f", "-", manifest=a_job("own", {}, {"app": "x"}, parallelism=1))
    await kubectl("patch", "job", "own", *merge(spec={"parallelism": 3}))
    await kubectl("patch", "job", "own", *merge(spec=NODE_SELECTOR))
    await kubectl("delete", "job", "own")
    with pytest.raises(KubectlError):
        await kubectl("get", "job", "own")


ENDS = [
    pytest.param({"phase": "Succeeded"}, "status.phase", id="HD-137 succeeded"),
    pytest.param({"phase": "Failed"}, "status.phase", id="HD-137 failed"),
    pytest.param({"containerStatuses": [ENDED]}, "status.containerStatuses", id="HD-137 containers"),
]


@pytest.mark.parametrize(("status", "text"), ENDS)
async def test_how_a_placed_pod_has_ended_its_kubelet_says(kubectl: Kubectl, status: Json, text: str) -> None:
    await kubectl("create", "-f", "-", *AS_AGENT, manifest=a_pod("ends", labels=RUN))
    try:
        patch = ("patch", "pod", "ends", "--subresource=status", *merge(status=status))
        await refused(kubectl, text, *patch)
        await kubectl("patch", "pod", "ends", "--subresource=status", *merge(status={"conditions": []}))
        await kubectl(*patch, "--as=system:node:n", "--as-group=system:nodes", "--as-group=system:masters")
    finally:
        await kubectl("delete", "pod", "ends", "--grace-period=0", "--force")
