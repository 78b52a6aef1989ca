"""The manager as a daemon on an embedded API server, with the rights of `deploy/`: ports, readiness, standby, lead."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import msgspec
import pytest
import structlog

from gatelift import config
from gatelift.adapters.kueue_beside import KUEUE_LEASE
from gatelift.app import Manager, StartRefusedError
from gatelift.core.state.recovery_values import (
    ANNOTATION_RECOVER,
    ANNOTATION_RECOVERY,
    COUNTER_JUMP,
    Finding,
    RecoverWord,
    RecoveryStage,
    Told,
)
from gatelift_agent.core.beginning import rebuilding
from gatelift_agent.core.state.world import World
from gatelift_kube.api.client import Client
from gatelift_kube.api.config import ClusterConfig
from gatelift_kube.deciding.election import counter_of, tenures_of
from gatelift_kube.objects.core import Lease
from gatelift_kube.process.tasks import spawn
from gatelift_kube.serving.status_server import ListenError
from gatelift_kube.values.resources import LEASE, WORKER_CLUSTER, ObjectKey, ObjectRef, Resource
from gatelift_sandbox import applying
from gatelift_sandbox.installation import SYSTEM, Installation
from support.until import until

pytestmark = pytest.mark.timeout(300)

LIMIT_SECONDS = 120.0
"""A start takes about two seconds; a loaded machine gets a minute."""
POLL_SECONDS = 0.05
ROLE = Resource("rbac.authorization.k8s.io", "v1", "Role", "roles")
CLUSTER_ROLE = Resource("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", namespaced=False)

# The lease is given back, never waited for: its length is for a machine that stands still.
CONFIGURATION = """
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
health: {healthProbeBindAddress: "127.0.0.1:0"}
metrics: {bindAddress: "127.0.0.1:0"}
leaderElection: {leaseDuration: 60s, renewDeadline: 45s, retryPeriod: 200ms}
gatelift: {listen: "127.0.0.1:0", enrolListen: "127.0.0.1:0", debugInvariants: true}
"""


LOCAL = ObjectRef(WORKER_CLUSTER, ObjectKey("", "local"))


@asynccontextmanager
async def running(reached: ClusterConfig, folder: Path, text: str = CONFIGURATION) -> AsyncIterator[Manager]:
    """Start a manager that listens, and end it."""
    path = folder / "config.yaml"
    path.write_text(text)
    listens = asyncio.Event()
    manager = Manager(config=config.load(path), cluster=reached, on_listening=lambda _manager: listens.set())
    task = spawn("manager", manager.run())
    try:
        async with asyncio.timeout(LIMIT_SECONDS):
            await asyncio.wait({task, spawn("listens", listens.wait())}, return_when=asyncio.FIRST_COMPLETED)
        assert listens.is_set(), task.exception() if task.done() else ""
        yield manager
    finally:
        manager.stop.set()
        await task


async def get(address: str, path: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(f"http://{address}{path}") as response:
        return response.status, await response.text()


async def term(manager: Manager) -> int:
    _, text = await get(manager.metrics_address, "/metrics")
    [line] = [each for each in text.splitlines() if each.startswith("gatelift_leader_term ")]
    return int(float(line.split()[1]))


async def leader_of(*managers: Manager) -> tuple[Manager, int]:
    """Wait until one of them leads; return it with its term."""
    async with asyncio.timeout(LIMIT_SECONDS):
        while True:
            for manager in managers:
                if found := await term(manager):
                    return manager, found
            await asyncio.sleep(POLL_SECONDS)


async def ready(manager: Manager) -> None:
    """Wait until it says that it is ready: a standby is, too, but each of the two lists in its own time."""
    async with asyncio.timeout(LIMIT_SECONDS):
        while (answer := await get(manager.status_address, "/readyz")) != (200, "ok\n"):
            assert answer[0] == 503, answer
            assert answer[1].startswith("not listed yet: "), answer
            await asyncio.sleep(POLL_SECONDS)


async def clusters_of(installation: Installation) -> list[str]:
    """Wait until there is a WorkerCluster; return the names of all."""
    async with await installation.admin(installation.management) as client, asyncio.timeout(LIMIT_SECONDS):
        while not (page := await client.list_page(WORKER_CLUSTER, limit=10)).items:  # noqa: ASYNC110 - asked by HTTP
            await asyncio.sleep(POLL_SECONDS)
    return [served.object.metadata.name for served in page.items]


async def test_a_manager_leads_says_so_on_both_ports_and_hands_over_to_its_standby(
    cluster: tuple[Installation, ClusterConfig], tmp_path: Path
) -> None:
    installation, reached = cluster
    async with running(reached, tmp_path) as one, running(reached, tmp_path) as other:
        leader, before = await leader_of(one, other)
        follower = other if leader is one else one
        assert await get(leader.status_address, "/healthz") == (200, "ok\n")
        for manager in (leader, follower):
            await ready(manager)
        for address in (leader.status_address, leader.metrics_address):
            assert "gatelift_handle_seconds_count" in (await get(address, "/metrics"))[1]
        assert await term(follower) == 0
        leader.stop.set()
        _, after = await leader_of(follower)
        assert after > before, "terms grow with each change of leader"
        assert await clusters_of(installation) == ["local"], "made by the manager itself"


async def test_a_port_that_is_taken_ends_the_start_and_leaves_nothing_running(
    cluster: tuple[Installation, ClusterConfig], tmp_path: Path
) -> None:
    _, reached = cluster
    async with running(reached, tmp_path) as manager:
        path = tmp_path / "second.yaml"
        path.write_text(
            CONFIGURATION.replace(
                'metrics: {bindAddress: "127.0.0.1:0"', f'metrics: {{bindAddress: "{manager.metrics_address}"'
            )
        )
        said = f"^health and metrics: {manager.metrics_address} cannot be listened on .*in use.*; choose another$"
        with pytest.raises(ListenError, match=said):
            await Manager(config=config.load(path), cluster=reached).run()
        taken = f"127.0.0.1:{manager.agents_port}"
        path.write_text(CONFIGURATION.replace('{listen: "127.0.0.1:0"', f'{{listen: "{taken}"'))
        with pytest.raises(ListenError, match=f"^gatelift.listen: {taken} cannot be listened on; is it taken"):
            await Manager(config=config.load(path), cluster=reached).run()


RIGHTS_OF_A_KUEUE = [
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "kueue-manager-role"},
        "rules": [{"apiGroups": ["kueue.x-k8s.io"], "resources": ["workloads/status"], "verbs": ["update"]}],
    },
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "kueue-manager-rolebinding"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "kueue-manager-role"},
        "subjects": [{"kind": "ServiceAccount", "name": "kueue-controller-manager", "namespace": "queueing"}],
    },
]


async def kueue_runs(installation: Installation, namespace: str, *rights: dict[str, object], age: int = 0) -> None:
    """Let somebody have renewed a Lease of Kueue's name in a namespace, so many seconds ago, and have these rights."""
    renewed = datetime.now(UTC) - timedelta(seconds=age)
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": KUEUE_LEASE, "namespace": namespace},
        "spec": {"holderIdentity": "kueue-0", "renewTime": f"{renewed:%Y-%m-%dT%H:%M:%S.%fZ}"},
    }
    home = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    async with await installation.admin(installation.management) as client:
        await applying.apply(client, [home, lease, *rights])


@pytest.mark.parametrize(
    ("age", "rights", "refused"),
    [(0, RIGHTS_OF_A_KUEUE, True), (3600, RIGHTS_OF_A_KUEUE, False), (0, [], False)],
    ids=["renewed just now", "renewed long ago", "by a tenant"],
)
async def test_a_manager_starts_only_where_no_kueue_controller_runs(
    cluster: tuple[Installation, ClusterConfig],
    tmp_path: Path,
    age: int,
    rights: list[dict[str, object]],
    refused: bool,
) -> None:
    """IS-44: in whatever namespace it is. IS-55: what a tenant names so is none."""
    installation, reached = cluster
    await kueue_runs(installation, "queueing", *rights, age=age)
    if not refused:
        async with running(reached, tmp_path) as manager:
            await leader_of(manager)
        return
    path = tmp_path / "config.yaml"
    path.write_text(CONFIGURATION)
    with pytest.raises(StartRefusedError, match=r"held by kueue-0.*scale it to 0 first"):
        await Manager(config=config.load(path), cluster=reached).run()


async def test_hd_43_the_managers_readiness_covers_its_local_agent(
    cluster: tuple[Installation, ClusterConfig], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HD-43, IS-5: the core of `local` ended for good, and `/readyz` said ok."""
    raised = asyncio.Event()

    def broken(_world: World, _now: float) -> None:
        raised.set()
        raise LookupError("a defect")

    monkeypatch.setattr(rebuilding, "rebuild", broken)
    _, reached = cluster
    async with running(reached, tmp_path) as manager:
        async with asyncio.timeout(LIMIT_SECONDS):
            await raised.wait()
            while True:
                status, text = await get(manager.status_address, "/readyz")
                if not text.startswith("not listed yet"):
                    break
                await asyncio.sleep(POLL_SECONDS)
        assert status == 503
        assert text == "the agent of local has ended (core of local: LookupError: a defect); restart the manager\n"
        assert (await get(manager.status_address, "/healthz"))[0] == 200, "all other clusters are served"


async def test_is_5_a_kind_that_the_manager_cannot_list_is_named_by_its_readiness(
    cluster: tuple[Installation, ClusterConfig], tmp_path: Path
) -> None:
    installation, reached = cluster
    async with await installation.admin(installation.management) as client:
        role = ObjectRef(CLUSTER_ROLE, ObjectKey("", "gatelift-manager"))
        at_start = {
            "apiGroups": ["*"],
            "resources": ["namespaces", "workerclusters"],
            "verbs": ["get", "list", "watch"],
        }
        await client.patch(role, json.dumps({"rules": [at_start]}).encode())
    async with running(reached, tmp_path) as manager:
        status, text = await get(manager.status_address, "/readyz")
        assert status == 503
        assert text.startswith("not listed yet: ")
        first = text.splitlines()[0]
        assert {"workloads", "resourceflavors", "pods"} < {*first.removeprefix("not listed yet: ").split(", ")}


def annotated(name: str, value: object) -> bytes:
    return msgspec.json.encode({"metadata": {"annotations": {name: msgspec.json.encode(value).decode()}}})


async def go_on_after(
    finding: Finding, client: Client, reached: ClusterConfig, folder: Path, taken: list[Lease]
) -> None:
    """Let a person say the word while two managers run, and note the Lease as the standby has it; the leader ends."""
    async with running(reached, folder) as first, running(reached, folder) as second:
        leader, _ = await leader_of(first, second)
        follower = second if leader is first else first
        await ready(leader)
        await ready(follower)
        said = RecoverWord(since=finding.since, epochs=1000, who="a person")
        await client.patch(LOCAL, annotated(ANNOTATION_RECOVER, said))
        await leader_of(follower)
        served = await client.get(ObjectRef(LEASE, ObjectKey(SYSTEM, "gatelift-manager")))
        assert isinstance(served.object, Lease)
        taken.append(served.object)


async def test_hd_182_the_standby_that_takes_over_at_a_word_to_go_on_counts_above_all_that_was_shown(
    cluster: tuple[Installation, ClusterConfig], tmp_path: Path
) -> None:
    """HD-182: it knew what stood there as it became a candidate, so old numbers proved the restore once more."""
    installation, reached = cluster
    finding = Finding(why="restored", since="2026-01-01T00:00:00Z", counter=5000, term=40)
    async with running(reached, tmp_path) as one:
        await leader_of(one)
        await clusters_of(installation)
    taken: list[Lease] = []
    async with await installation.admin(installation.management) as client:
        await client.patch(LOCAL, annotated(ANNOTATION_RECOVERY, Told(stage=RecoveryStage.HALTED, finding=finding)))
        with pytest.raises(RuntimeError, match="a person said recover: whoever leads next raises term and counter"):
            await go_on_after(finding, client, reached, tmp_path, taken)
    (lease,) = taken
    assert lease.spec.lease_transitions == finding.term + 1, "it leads at the first try"
    assert counter_of(lease) > finding.counter + COUNTER_JUMP
    assert [each.found for each in tenures_of(lease)] == [finding.counter + COUNTER_JUMP]


STOCK = """
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
health:
  healthProbeBindAddress: :8081
metrics:
  bindAddress: :8443
webhook:
  port: 9443
leaderElection:
  leaderElect: true
  resourceName: c1f6bfd2.kueue.x-k8s.io
controller:
  groupKindConcurrency:
    Job.batch: 5
    Pod: 5
    Workload.kueue.x-k8s.io: 5
    LocalQueue.kueue.x-k8s.io: 1
    ClusterQueue.kueue.x-k8s.io: 1
    ResourceFlavor.kueue.x-k8s.io: 1
clientConnection:
  qps: 50
  burst: 100
internalCertManagement:
  enable: true
managedJobsNamespaceSelector:
  matchExpressions:
    - key: kubernetes.io/metadata.name
      operator: NotIn
      values: [kube-system, kueue-system]
integrations:
  frameworks:
    - batch/job
    - kubeflow.org/mpijob
    - ray.io/rayjob
    - ray.io/raycluster
    - jobset.x-k8s.io/jobset
    - kubeflow.org/paddlejob
    - kubeflow.org/pytorchjob
    - kubeflow.org/tfjob
    - kubeflow.org/xgboostjob
    - kubeflow.org/jaxjob
    - workload.codeflare.dev/appwrapper
    - trainer.kubeflow.org/trainjob
    - pod
    - deployment
    - statefulset
    - leaderworkerset.x-k8s.io/leaderworkerset
"""
"""What a user of Kueue has in the ConfigMap of its controller, as it comes."""
STOCK_HERE = STOCK.replace(" :8081", ' "127.0.0.1:0"').replace(" :8443", ' "127.0.0.1:0"') + (
    'gatelift: {listen: "127.0.0.1:0", enrolListen: "127.0.0.1:0"}\n'
)


async def test_is_6_a_manager_with_kueues_stock_configuration_leads(
    cluster: tuple[Installation, ClusterConfig], tmp_path: Path
) -> None:
    """IS-6: it made a Lease of the name that stands there, which its role may not renew, and never led."""
    _, reached = cluster
    async with running(reached, tmp_path, STOCK_HERE) as manager:
        await leader_of(manager)
        await ready(manager)
        assert "leaderElection.resourceName" in " ".join(manager.config.without_effect())


async def test_is_44_kueues_stock_configuration_does_not_make_a_kueues_lease_the_managers_own(
    cluster: tuple[Installation, ClusterConfig], tmp_path: Path
) -> None:
    """The file names Kueue's Lease; with its namespace that of a Kueue that ran was taken for ours, and both ran."""
    installation, reached = cluster
    await kueue_runs(installation, "kueue-system")
    path = tmp_path / "config.yaml"
    path.write_text(
        STOCK_HERE.replace("  leaderElect: true\n", "  leaderElect: true\n  resourceNamespace: kueue-system\n")
    )
    ends = Manager(config=config.load(path), cluster=reached, on_listening=lambda manager: manager.stop.set())
    with pytest.raises(StartRefusedError, match=r"Lease kueue-system/.*scale it to 0 first"):
        await ends.run()


async def test_is_6_a_manager_whose_role_lacks_the_lease_says_so_in_its_readiness(
    cluster: tuple[Installation, ClusterConfig], tmp_path: Path
) -> None:
    installation, reached = cluster
    role = ObjectRef(ROLE, ObjectKey("gatelift-system", "gatelift-manager"))
    async with await installation.admin(installation.management) as client:
        rule = {"apiGroups": [""], "resources": ["secrets", "configmaps"], "verbs": ["get", "create", "patch"]}
        await client.patch(role, json.dumps({"rules": [rule]}).encode())
    hurried = CONFIGURATION.replace("retryPeriod: 200ms", "retryPeriod: 50ms")
    with structlog.testing.capture_logs() as logs:
        async with running(reached, tmp_path, hurried) as manager:
            await until(lambda: any(one["event"] == "not elected" for one in logs), "the log says so")
            status, text = await get(manager.status_address, "/readyz")
    assert status == 503
    assert text.startswith("leader election by Lease gatelift-system/gatelift-manager")
    assert "its ServiceAccount needs the Role that deploy/ gives it" in text
    said = [one["problem"] for one in logs if one["event"] == "not elected"]
    assert text.splitlines()[0] in said
    assert len(said) == len({*said}), "each once a minute"
