"""SL-02, SL-05, SL-07: what the webhook sets on elastic Jobs and refuses of them, asked by a real API server.

The daemon runs in this process with the kind that the product does not serve yet; the Job controller is the real one.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio

from gatelift.cli.manifests import MANAGEMENT, load_manifests
from gatelift.webhooks.app import Daemon, WebhookSettings
from gatelift_kinds.registry import WITH_SLICES
from gatelift_kube.api.client import Client
from gatelift_kube.api.config import from_kubeconfig
from gatelift_sandbox.provider import Cluster
from support.e2e.rules import GATELIFT, MANAGER, control_plane, refused
from support.e2e.sandbox_kubectl import POLL_SECONDS, WAIT_SECONDS, Kubectl
from support.until import until

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(600)]

Json = dict[str, Any]
K = "kueue.x-k8s.io/"
GATE = {"name": f"{K}elastic-job"}
ASKS = {f"{K}elastic-job": "true"}
QUEUED = {f"{K}queue-name": "main"}
AS_US = (f"--as={MANAGER}", *GATELIFT, "--as-group=system:masters")
HOST = "127.0.0.1"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    yield from control_plane(tmp_path_factory.mktemp("home"), load_manifests(*MANAGEMENT))


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        port: int = taken.getsockname()[1]
    return port


@pytest_asyncio.fixture(scope="module", loop_scope="module", autouse=True)
async def daemon(cluster: Cluster) -> AsyncIterator[Daemon]:
    """Have the API server ask a daemon that serves elastic Jobs."""
    settings = replace(WebhookSettings(host=HOST, names=(HOST,)), port=free_port())
    settings = replace(settings, url=f"https://{HOST}:{settings.port}")
    async with Client.connect(await from_kubeconfig(str(cluster.kubeconfig))) as client:
        made = Daemon(client, settings, kinds=WITH_SLICES)
        await made.start()
        try:
            await until(lambda: not made.missing(), "the webhooks are ready", seconds=WAIT_SECONDS)
            yield made
        finally:
            await made.stop()


@pytest.fixture
def kubectl(cluster: Cluster) -> Kubectl:
    return Kubectl(cluster)


def a_job(
    name: str, *, notes: Json | None = None, labels: Json | None = None, template: Json | None = None, **spec: Any
) -> Json:
    pods = {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": QUEUED if labels is None else labels,
            "annotations": ASKS if notes is None else notes,
        },
        "spec": {"parallelism": 2, "completions": 9, "template": {"spec": pods, **(template or {})}, **spec},
    }


def patch(**document: Any) -> tuple[str, ...]:
    return ("--type=merge", "-p", json.dumps(document))


async def pods_of(kubectl: Kubectl, job: str, count: int) -> list[Json]:
    async with asyncio.timeout(WAIT_SECONDS):
        while True:
            said = await kubectl("get", "pods", "-l", f"batch.kubernetes.io/job-name={job}", "-o", "json")
            found: list[Json] = json.loads(said)["items"]
            if len(found) == count:
                return found
            await asyncio.sleep(POLL_SECONDS)


async def made(kubectl: Kubectl, document: Json) -> Json:
    """Have a user make a Job; return what became of it. The first one waits until the API server asks."""
    name = document["metadata"]["name"]
    await refused(kubectl, "may only be", "create", "-f", "-", manifest=a_job("never", notes={f"{K}elastic-job": "no"}))
    await kubectl("create", "-f", "-", manifest=document)
    found = await kubectl.get("job", name)
    assert found is not None
    return found


TOPOLOGY = {"metadata": {"annotations": {f"{K}podset-preferred-topology": "rack"}}}
REQUIRED = {"metadata": {"annotations": {f"{K}podset-required-topology": "rack"}}}
REFUSED: dict[str, tuple[Json, str]] = {
    "SL-02 another value": (
        a_job("r", notes={f"{K}elastic-job": "True"}),
        r'elastic-job\]: Invalid value: "True": may',
    ),
    "SL-02 no value": (a_job("r", notes={f"{K}elastic-job": ""}), r'elastic-job\]: Invalid value: "": may only be'),
    "SL-07 in part": (
        a_job("r", notes={**ASKS, f"{K}job-min-parallelism": "1"}),
        r"job-min-parallelism\]: .*cannot be combined with kueue.x-k8s.io/elastic-job: drop one of them",
    ),
    "SL-07 in part, by the word of KEP-77": (
        a_job("r", notes={f"{K}dynamically-sized-job": "true", f"{K}job-min-parallelism": "1"}),
        r"job-min-parallelism\]: .*cannot be combined with kueue.x-k8s.io/dynamically-sized-job: drop one of them",
    ),
    "SL-07 near each other": (a_job("r", template=TOPOLOGY), r"preferred-topology\]: .*drop one of them"),
    "SL-07 near each other, or not at all": (a_job("r", template=REQUIRED), r"required-topology\]: "),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_sl_02_sl_07_what_does_not_go_together_is_refused_with_the_way_out(kubectl: Kubectl, case: str) -> None:
    document, text = REFUSED[case]
    await refused(kubectl, text, "create", "-f", "-", manifest=document)


async def test_sl_02_a_kind_that_cannot_is_refused(kubectl: Kubectl) -> None:
    """SL-02: EJ-080."""
    metadata = {"name": "p", "namespace": "default", "labels": QUEUED, "annotations": ASKS}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    text = r"elastic-job\]: Forbidden: is not supported for pods: use it on a Job"
    await refused(kubectl, text, "create", "-f", "-", manifest=pod)


async def test_sl_05_a_job_that_asks_is_suspended_and_gets_the_gate_once(kubectl: Kubectl) -> None:
    for name, gates in (("none", None), ("there", [GATE]), ("own", [{"name": "team.io/wait"}])):
        document = a_job(name)
        if gates is not None:
            document["spec"]["template"]["spec"]["schedulingGates"] = gates
        found = await made(kubectl, document)
        assert found["spec"]["suspend"] is True
        others = [gate for gate in gates or () if gate != GATE]
        assert found["spec"]["template"]["spec"]["schedulingGates"] == [*others, GATE]
        await kubectl("apply", "-f", "-", manifest={**document, "metadata": {**document["metadata"], "name": name}})
        await kubectl("delete", "job", name, "--wait=false", "--cascade=background")


@pytest.mark.parametrize("value", [None, "false"])
async def test_sl_02_who_is_elastic_stays_so_and_who_is_not_does_not_become_it(
    kubectl: Kubectl, value: str | None
) -> None:
    await made(kubectl, a_job("fixed"))
    await kubectl("create", "-f", "-", manifest=a_job("plain", notes={}))
    text = "elastic-job is immutable: make a new object|may only be"
    change = patch(metadata={"annotations": {f"{K}elastic-job": value}})
    await refused(kubectl, text, "patch", "job", "fixed", *change)
    await refused(kubectl, text, "patch", "job", "plain", *patch(metadata={"annotations": ASKS}))
    await kubectl("delete", "job", "fixed", "plain", "--wait=false", "--cascade=background")


async def test_sl_01_sl_05_one_that_runs_takes_another_size_and_its_new_pods_come_gated(kubectl: Kubectl) -> None:
    await made(kubectl, a_job("sized"))
    await kubectl("patch", "job", "sized", *patch(spec={"suspend": False}), *AS_US)
    await pods_of(kubectl, "sized", 2)
    said = await kubectl("patch", "job", "sized", *patch(spec={"parallelism": 4}))
    assert said.strip() == "job.batch/sized patched", "no warning"
    for pod in await pods_of(kubectl, "sized", 4):
        assert pod["spec"]["schedulingGates"] == [GATE]
    await kubectl("patch", "job", "sized", *patch(spec={"parallelism": 1}))
    await pods_of(kubectl, "sized", 1)
    await kubectl("delete", "job", "sized", "--wait=false", "--cascade=background")


async def test_sl_25_completions_of_an_indexed_job_go_with_its_pods_or_are_refused(kubectl: Kubectl) -> None:
    indexed: Json = {"parallelism": 2, "completions": 2, "completionMode": "Indexed"}
    await made(kubectl, a_job("indexed", **indexed))
    await kubectl("patch", "job", "indexed", *patch(spec={"suspend": False}), *AS_US)
    await pods_of(kubectl, "indexed", 2)
    text = r"spec.completions: .*: must be 3, as parallelism: .*; change both in one update"
    await refused(kubectl, text, "patch", "job", "indexed", *patch(spec={"parallelism": 3}))
    await kubectl("patch", "job", "indexed", *patch(spec={"parallelism": 3, "completions": 3}))
    await pods_of(kubectl, "indexed", 3)
    await kubectl("delete", "job", "indexed", "--wait=false", "--cascade=background")
