"""Provider `local` on real control planes: what a cluster can do, and that it ends with its owner."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from gatelift_sandbox import children, records
from gatelift_sandbox.behaviour import LOST, Behaviour, shape
from gatelift_sandbox.errors import SandboxError, UnknownClusterError
from gatelift_sandbox.kubelet.loop import cut_off
from gatelift_sandbox.processes import LocalProvider
from gatelift_sandbox.provider import ApiServerAction, Cluster, NodeShape, ProviderSettings
from gatelift_sandbox.state import SandboxState
from support.e2e.rules import refused
from support.e2e.sandbox_kubectl import Kubectl, KubectlError
from support.until import until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

START_SECONDS = 300.0


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def provider(home: Path) -> LocalProvider:
    nodes = NodeShape(cpu="4", memory="16Gi", extended={"nvidia.com/gpu": "2"})
    return LocalProvider(ProviderSettings(home=home, kubeconfigs=home / "kubeconfigs", nodes=nodes, audit=True))


@pytest.fixture(scope="module")
def cluster(provider: LocalProvider) -> Iterator[Cluster]:
    yield asyncio.run(provider.up(["one"]))[0]
    asyncio.run(provider.down())


@pytest.fixture
def kubectl(cluster: Cluster) -> Kubectl:
    return Kubectl(cluster)


def a_pod(name: str, behaviour: Behaviour | None = None, **spec: Any) -> dict[str, Any]:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "labels": {"gatelift.dev/workload-uid": f"uid-of-{name}", "gatelift.dev/epoch": "3"},
        },
        "spec": {"restartPolicy": "Never", **spec},
    }
    return shape(pod, behaviour or Behaviour(), real_kubelet=False, image="stand-in")


def in_phase(phase: str) -> Any:
    return lambda pod: pod is not None and pod.get("status", {}).get("phase") == phase


def test_the_kubeconfig_is_readable_by_its_owner_only(cluster: Cluster) -> None:
    assert cluster.kubeconfig.stat().st_mode & 0o777 == 0o600


async def test_plain_kubectl_sees_a_ready_node_with_the_capacity_that_was_asked_for(kubectl: Kubectl) -> None:
    assert " Ready " in await kubectl("get", "nodes")
    node = await kubectl.get("node", "one-node-0")
    assert node is not None
    assert node["status"]["allocatable"] == {"cpu": "4", "memory": "16Gi", "pods": "110", "nvidia.com/gpu": "2"}


async def test_a_pod_is_bound_by_the_scheduler_runs_and_ends_as_told(cluster: Cluster, kubectl: Kubectl) -> None:
    await kubectl.apply(a_pod("short", Behaviour(run_seconds=0.5, exit_code=0)))
    pod = await kubectl.until("pod", "short", in_phase("Succeeded"))
    assert pod is not None
    assert pod["spec"]["nodeName"] == "one-node-0"
    assert pod["status"]["containerStatuses"][0]["state"]["terminated"]["reason"] == "Completed"
    assert {"PodScheduled", "Ready", "Initialized"} <= {c["type"] for c in pod["status"]["conditions"]}
    assert cluster.record is not None
    (run,) = [r for r in records.runs(records.read(cluster.record)) if r.name == "short"]
    assert (run.workload_uid, run.epoch, run.cluster, run.exit_code) == ("uid-of-short", 3, "one", 0)
    assert run.stopped is not None
    assert run.stopped - run.started == pytest.approx(0.5)


async def test_a_pod_that_exceeds_its_memory_is_reported_as_a_kubelet_does(kubectl: Kubectl) -> None:
    await kubectl.apply(a_pod("greedy", Behaviour(exceed_memory=True)))
    pod = await kubectl.until("pod", "greedy", in_phase("Failed"))
    assert pod is not None
    terminated = pod["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (terminated["reason"], terminated["exitCode"]) == ("OOMKilled", 137)


async def test_a_deleted_pod_stays_until_its_containers_have_stopped(cluster: Cluster, kubectl: Kubectl) -> None:
    await kubectl.apply(a_pod("slow", Behaviour(stop_seconds=10.0)))  # for two looks by kubectl on a busy machine
    await kubectl.until("pod", "slow", in_phase("Running"))
    await kubectl("delete", "pod", "slow", "--wait=false")
    stopping = await kubectl.get("pod", "slow")
    assert stopping is not None
    assert in_phase("Running")(stopping)
    await kubectl.until("pod", "slow", lambda pod: pod is None)
    assert cluster.record is not None
    (run,) = [r for r in records.runs(records.read(cluster.record)) if r.name == "slow"]
    assert run.exit_code == 143


async def test_a_finalizer_keeps_a_stopped_pod_in_its_terminal_phase(kubectl: Kubectl) -> None:
    pod = a_pod("kept")
    pod["metadata"]["finalizers"] = ["example.com/report"]
    await kubectl.apply(pod)
    await kubectl.until("pod", "kept", in_phase("Running"))
    await kubectl("delete", "pod", "kept", "--wait=false")
    await kubectl.until("pod", "kept", in_phase("Failed"))
    await kubectl("patch", "pod", "kept", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    await kubectl.until("pod", "kept", lambda pod: pod is None)


async def test_the_job_controller_runs_a_job_to_its_end(kubectl: Kubectl) -> None:
    template = shape(
        {"spec": {"restartPolicy": "Never"}}, Behaviour(run_seconds=0.2), real_kubelet=False, image="stand-in"
    )
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "five"}}
    await kubectl.apply({**job, "spec": {"completions": 5, "parallelism": 5, "template": template}})
    done = await kubectl.until("job", "five", lambda job: job is not None and job["status"].get("succeeded") == 5)
    assert done is not None


async def test_quota_and_rbac_are_enforced(kubectl: Kubectl) -> None:
    await kubectl("create", "namespace", "tight")
    await kubectl("create", "quota", "none", "--hard=pods=0", "-n", "tight")
    await kubectl.until("quota", "none", lambda q: q is not None and "hard" in q.get("status", {}), namespace="tight")
    await kubectl.until("serviceaccount", "default", lambda account: account is not None, namespace="tight")

    # Admission hears of the quota, and of its status, a little later than who has waited for it here.
    await refused(kubectl, "exceeded quota", "create", "-n", "tight", "-f", "-", manifest=a_pod("refused"))
    with pytest.raises(KubectlError, match=r"[Ff]orbidden"):
        await kubectl("get", "secrets", "--as=system:serviceaccount:default:default")


async def test_a_lost_node_starts_nothing_until_it_is_back(cluster: Cluster, kubectl: Kubectl) -> None:
    assert cluster.logs is not None
    log = cluster.logs / "kubelet.log"
    try:
        await kubectl("annotate", "node", "one-node-0", f"{LOST}=true")
        # Its watches of nodes and pods are not ordered.
        await until(lambda: cut_off(["one-node-0"]) in log.read_text(), "the kubelet has heard that its node is lost")
        await kubectl.apply(a_pod("waiting"))
        bound = await kubectl.until("pod", "waiting", lambda pod: pod is not None and "nodeName" in pod["spec"])
        assert bound is not None
        assert bound["status"]["phase"] == "Pending"
        back = time.monotonic()
    finally:
        await kubectl("annotate", "node", "one-node-0", f"{LOST}-")
    await kubectl.until("pod", "waiting", in_phase("Running"))
    assert cluster.record is not None
    (run,) = [r for r in records.runs(records.read(cluster.record)) if r.name == "waiting"]
    assert run.started >= back


async def test_a_restarted_api_server_has_its_address_and_its_data(provider: LocalProvider, kubectl: Kubectl) -> None:
    await kubectl("create", "configmap", "before")
    try:
        await provider.api_server("one", ApiServerAction.KILL)
        with pytest.raises(KubectlError, match="refused"):
            await kubectl("get", "configmap", "before")
    finally:
        await provider.api_server("one", ApiServerAction.START)
    assert await kubectl.get("configmap", "before") is not None
    await kubectl.apply(a_pod("after", Behaviour(run_seconds=0.1)))
    await kubectl.until("pod", "after", in_phase("Succeeded"))


async def test_a_paused_api_server_answers_nobody_until_it_is_woken(provider: LocalProvider, kubectl: Kubectl) -> None:
    try:
        await provider.api_server("one", ApiServerAction.PAUSE)
        with pytest.raises(KubectlError, match=r"[Tt]imeout|deadline"):
            await kubectl("get", "nodes", "--request-timeout=1s")
    finally:
        await provider.api_server("one", ApiServerAction.RESUME)
    assert "one-node-0" in await kubectl("get", "nodes")


async def test_the_audit_log_names_who_asked_for_what(cluster: Cluster, kubectl: Kubectl) -> None:
    await kubectl("get", "configmaps", "-n", "kube-public")
    assert cluster.logs is not None
    log = cluster.logs / "audit.log"

    def mentioned() -> bool:
        lines = [json.loads(line) for line in log.read_bytes().split(b"\n")[:-1]]  # the last may be half written
        return any(
            line["user"]["username"] == "kubernetes-admin"
            and line["requestURI"].startswith("/api/v1/namespaces/kube-public")
            for line in lines
        )

    await until(mentioned, "the request is in the audit log")


async def test_a_name_that_is_taken_is_refused_and_the_cluster_lives_on(
    provider: LocalProvider, kubectl: Kubectl
) -> None:
    with pytest.raises(SandboxError, match="cluster one of provider local is there already"):
        await provider.up(["one"])
    assert "one-node-0" in await kubectl("get", "nodes")


async def test_an_unknown_cluster_is_said_to_be_unknown(provider: LocalProvider) -> None:
    with pytest.raises(UnknownClusterError, match="no cluster two of provider local"):
        await provider.api_server("two", ApiServerAction.STOP)


OWNER = """
import asyncio, sys
from pathlib import Path
from gatelift_sandbox.processes import LocalProvider
from gatelift_sandbox.provider import ProviderSettings
home, detached = Path(sys.argv[1]), sys.argv[2] == "detached"
settings = ProviderSettings(home=home, kubeconfigs=home / "kubeconfigs", detached=detached)
async def main():
    await LocalProvider(settings).up(["orphan"])
    print("ready", flush=True)
    if not detached:
        await asyncio.Event().wait()
asyncio.run(main())
"""


@contextmanager
def start_owner(home: Path, mode: str) -> Iterator[subprocess.Popen[str]]:
    """Start a process that makes a cluster; it does not outlive the test, should that fail."""
    command = [sys.executable, "-c", OWNER, str(home), mode]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as owner:  # noqa: S603 (our own interpreter)
        try:
            yield owner
        finally:
            owner.kill()


async def wait_for(owner: subprocess.Popen[str], word: str) -> None:
    assert owner.stdout is not None
    async with asyncio.timeout(START_SECONDS):
        assert (await asyncio.to_thread(owner.stdout.readline)).strip() == word


async def test_nothing_is_left_after_its_owner_was_killed(tmp_path: Path) -> None:
    with start_owner(tmp_path, "owned") as owner:
        await wait_for(owner, "ready")
        entry = SandboxState(tmp_path).entry("orphan")
        assert entry is not None
        assert len(entry.children) == 5
        assert all(map(children.alive, entry.children.values()))
        os.kill(owner.pid, signal.SIGKILL)
    await until(lambda: not any(map(children.alive, entry.children.values())), "all five processes have ended")
    later = LocalProvider(
        ProviderSettings(home=tmp_path, kubeconfigs=tmp_path / "kubeconfigs", nodes=NodeShape(count=0))
    )
    (again,) = await later.up(["orphan"])  # sweeps away the folder that the crash left
    assert again.name == "orphan"
    found = SandboxState(tmp_path).entry("orphan")
    assert found is not None
    assert not {child.pid for child in found.children.values()} & {child.pid for child in entry.children.values()}
    assert await later.down() == ["orphan"]
    assert list((tmp_path / "clusters").iterdir()) == []
    assert list((tmp_path / "kubeconfigs").iterdir()) == []


async def test_a_detached_cluster_outlives_its_starter_and_ends_by_the_word_of_another(tmp_path: Path) -> None:
    other = LocalProvider(ProviderSettings(home=tmp_path, kubeconfigs=tmp_path / "kubeconfigs"))
    try:
        with start_owner(tmp_path, "detached") as owner:
            await wait_for(owner, "ready")
            assert await asyncio.to_thread(owner.wait, START_SECONDS) == 0
        (found,) = await other.running()
        assert "orphan-node-0" in await Kubectl(found)("get", "nodes")
        entry = SandboxState(tmp_path).entry("orphan")
        assert entry is not None
    finally:
        ended = await other.down()
    assert ended == ["orphan"]
    assert not any(map(children.alive, entry.children.values()))
    assert await other.running() == []
