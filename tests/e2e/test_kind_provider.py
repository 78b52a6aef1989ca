"""Provider `kind`: real kubelets do what a behaviour says, and clusters end with their owner."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gatelift_sandbox.behaviour import Behaviour, shape
from gatelift_sandbox.kind import KindProvider, pod_image
from gatelift_sandbox.provider import ApiServerAction, Cluster, ProviderSettings
from gatelift_sandbox.state import SandboxState
from support.e2e.sandbox_kubectl import Kubectl, KubectlError

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

GONE_SECONDS = 300.0


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> KindProvider:
    home = tmp_path_factory.mktemp("home")
    return KindProvider(ProviderSettings(home=home, kubeconfigs=home / "kubeconfigs"))


@pytest.fixture(scope="module")
def cluster(provider: KindProvider) -> Iterator[Cluster]:
    yield asyncio.run(provider.up(["one"]))[0]
    asyncio.run(provider.down())


@pytest.fixture
def kubectl(cluster: Cluster) -> Kubectl:
    return Kubectl(cluster)


def a_pod(name: str, behaviour: Behaviour) -> dict[str, Any]:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"restartPolicy": "Never"}}
    return shape(pod, behaviour, real_kubelet=True, image=pod_image())


def in_phase(phase: str) -> Any:
    return lambda pod: pod is not None and pod.get("status", {}).get("phase") == phase


def end_of(pod: dict[str, Any] | None) -> tuple[str, int]:
    assert pod is not None
    terminated = pod["status"]["containerStatuses"][0]["state"]["terminated"]
    return terminated["reason"], terminated["exitCode"]


def test_the_kubeconfig_is_readable_by_its_owner_only(cluster: Cluster) -> None:
    assert cluster.kubeconfig.stat().st_mode & 0o777 == 0o600


async def test_a_real_container_ends_with_the_exit_code_it_was_told(kubectl: Kubectl) -> None:
    await kubectl.apply(a_pod("good", Behaviour(run_seconds=1)), a_pod("bad", Behaviour(run_seconds=1, exit_code=3)))
    assert end_of(await kubectl.until("pod", "good", in_phase("Succeeded"))) == ("Completed", 0)
    assert end_of(await kubectl.until("pod", "bad", in_phase("Failed"))) == ("Error", 3)


async def test_a_real_container_is_killed_for_memory(kubectl: Kubectl) -> None:
    await kubectl.apply(a_pod("greedy", Behaviour(exceed_memory=True)))
    assert end_of(await kubectl.until("pod", "greedy", in_phase("Failed"))) == ("OOMKilled", 137)


async def test_a_real_container_takes_as_long_to_stop_as_it_was_told(kubectl: Kubectl) -> None:
    pod = a_pod("slow", Behaviour(stop_seconds=3, stop_exit_code=7))
    pod["metadata"]["finalizers"] = ["example.com/report"]  # so that its end can be read
    await kubectl.apply(pod)
    await kubectl.until("pod", "slow", in_phase("Running"))
    started = time.monotonic()
    await kubectl("delete", "pod", "slow", "--wait=false")
    ended = await kubectl.until("pod", "slow", in_phase("Failed"))
    assert end_of(ended) == ("Error", 7)
    assert time.monotonic() - started >= 3
    await kubectl("patch", "pod", "slow", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    await kubectl.until("pod", "slow", lambda pod: pod is None)


async def test_a_stopped_api_server_comes_back_at_its_address(provider: KindProvider, kubectl: Kubectl) -> None:
    await kubectl("create", "configmap", "before")
    try:
        await provider.api_server("one", ApiServerAction.KILL)
        with pytest.raises(KubectlError):
            await kubectl("get", "configmap", "before")
    finally:
        await provider.api_server("one", ApiServerAction.START)
    assert await kubectl.get("configmap", "before") is not None


OWNER = """
import asyncio, sys
from pathlib import Path
from gatelift_sandbox.kind import KindProvider
from gatelift_sandbox.provider import ProviderSettings
home = Path(sys.argv[1])
async def main():
    await KindProvider(ProviderSettings(home=home, kubeconfigs=home / "kubeconfigs")).up(["orphan"])
    print("ready", flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""


async def test_the_cluster_of_a_killed_owner_is_deleted(tmp_path: Path) -> None:
    command = [sys.executable, "-c", OWNER, str(tmp_path)]
    owner = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert owner.stdout is not None
    assert await owner.stdout.readline() == b"ready\n"
    owner.kill()
    await owner.communicate()
    provider = KindProvider(ProviderSettings(home=tmp_path, kubeconfigs=tmp_path / "kubeconfigs"))
    async with asyncio.timeout(GONE_SECONDS):
        while await provider.running():  # noqa: ASYNC110 (asks Docker)
            await asyncio.sleep(0.2)
    assert [entry.name for entry in SandboxState(tmp_path).left_over("kind")] == ["orphan"]
    assert await provider.down() == ["orphan"]
