"""`gatelift demo --keep`: what stays up is there for plain kubectl, to the last command of an uninstall."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest

from gatelift.cli.manifests import deploy_folder
from gatelift_sandbox import children
from gatelift_sandbox.ensemble import is_up
from support.e2e.stranger import DEMO_SECONDS_MAX, DEMO_TEST_SECONDS, Stranger

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(DEMO_TEST_SECONDS)]


DEPLOY = deploy_folder()
FINALIZERS = "jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.finalizers}{'\\n'}{end}"
OURS = "mutatingwebhookconfigurations,validatingwebhookconfigurations,validatingadmissionpolicies,crds,clusterroles"


async def uninstall(stranger: Stranger, kubectl: str, kubeconfig: str) -> None:
    """Do what the operations guide says, and look at what is left."""

    async def at(where: str, *arguments: str) -> str:
        ended = await stranger.runs(kubectl, *arguments, environment={"KUBECONFIG": where})
        assert ended.code == 0, (arguments, ended)
        return ended.out

    running = {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m"}}}]}
    queued = {"name": "late", "namespace": "default", "labels": {"kueue.x-k8s.io/queue-name": "everywhere"}}
    document = {"apiVersion": "v1", "kind": "Pod", "metadata": queued, "spec": running}
    manifest = stranger.directory / "late.json"
    manifest.write_text(json.dumps(document))
    await at(kubeconfig, "apply", "--filename", str(manifest))
    assert "kueue.x-k8s.io/managed" in await at(kubeconfig, "get", "pods", "--output", FINALIZERS)
    workers = [Path(kubeconfig).with_name(f"worker-{number}.yaml") for number in (1, 2)]
    await at(kubeconfig, "delete", "pods,jobs", "--all-namespaces", "--selector", "kueue.x-k8s.io/queue-name")
    await at(kubeconfig, "delete", "workloads", "--all-namespaces", "--all")
    await at(kubeconfig, "delete", "clusterqueues,resourceflavors", "--all")
    for worker in map(str, workers):
        assert await at(worker, "get", "pods,jobs", "--all-namespaces", "--output", "name") == ""
        await at(worker, "--namespace", "default", "delete", "--kustomize", str(DEPLOY / "agent/namespace"))
    whole = [*((str(worker), "worker") for worker in workers), (kubeconfig, "management")]
    kustomize = ("delete", "--ignore-not-found", "--kustomize")
    await asyncio.gather(*(at(where, *kustomize, str(DEPLOY / "overlays" / overlay)) for where, overlay in whole))
    for where in (kubeconfig, *map(str, workers)):
        left = await at(where, "get", OURS, "--output", "name")
        assert [name for name in left.split() if "gatelift" in name or "kueue" in name] == []
    assert "kueue.x-k8s.io" not in await at(kubeconfig, "get", "pods,jobs", "--all-namespaces", "--output", FINALIZERS)


async def test_what_the_demo_leaves_up_is_used_with_plain_kubectl_uninstalled_and_ended_by_down(tmp_path: Path) -> None:
    stranger = Stranger(tmp_path)
    ended = await stranger.gatelift("demo", "--provider", "local", "--keep", seconds=DEMO_SECONDS_MAX)
    try:
        assert (ended.code, ended.problem) == (0, ""), stranger.everything(ended)
        kubeconfig, kubectl = (
            re.findall(pattern, ended.out, re.MULTILINE)
            for pattern in (r"^ +export KUBECONFIG=(\S+)$", r"^ +(\S*kubectl) apply ")
        )
        assert (len(kubeconfig), len(kubectl)) == (1, 1), ended.out
        listing = (kubectl[0], "get", "workloads", "--namespace", "default", "--no-headers")
        listed = await stranger.runs(*listing, environment={"KUBECONFIG": kubeconfig[0]})
        assert (listed.code, listed.problem) == (0, "")
        assert "pod-long" in listed.out, "the demo's own work is still there to be looked at"
        running = stranger.processes()
        assert [child for child in running if not children.alive(child)] == []
        await uninstall(stranger, kubectl[0], kubeconfig[0])
    finally:
        down = await stranger.gatelift("down")
    assert (down.code, down.problem) == (0, "")
    assert [child for child in running if children.alive(child)] == []
    assert not is_up(stranger.home)
    again = await stranger.gatelift("down")
    assert again.code == 0
    assert "nothing is up" in again.out
