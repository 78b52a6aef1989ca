"""The agent as a process runs it: real HTTP to a cluster, real gRPC to a manager; and the agent of `local`."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
import pytest_asyncio

from gatelift.adapters.local_stream import LocalStream
from gatelift.core.api import commands as manager_commands
from gatelift.core.api import events as manager_events
from gatelift.core.clusters.link_values import PlaceCounts, Reported
from gatelift_agent.adapters import health as health_adapter
from gatelift_agent.adapters import leadership
from gatelift_agent.app import Agent
from gatelift_agent.config import AgentConfiguration
from gatelift_agent.core.values.events import AgentLeadershipGained
from gatelift_agent.local_agent import start_local_agent
from gatelift_kube.api.client import Client, Selection
from gatelift_kube.api.config import ClusterConfig, from_kubeconfig
from gatelift_kube.api.reflector import Reflector
from gatelift_kube.deciding.election import ElectionTimes
from gatelift_kube.deciding.writes import WRITE_SECONDS_MAX, ApiEvent, ObjectSeen
from gatelift_kube.objects import conditions
from gatelift_kube.process.clock import monotonic
from gatelift_kube.process.tasks import Supervisor, spawn
from gatelift_kube.values.resources import JOB, LEASE, NAMESPACE, POD, ObjectKey, ObjectRef, Resource
from gatelift_sandbox.embedded.cluster import EmbeddedCluster
from gatelift_sandbox.faults import FaultAction, PlannedFault
from gatelift_wire.values import inventory, tokens
from gatelift_wire.values import messages as m
from gatelift_wire.values.keys import PlacementKey
from support.until import until
from support.wire.edge import HOST, Edge

SYSTEM, TEAM = "gatelift-system", "team-a"
KEY = PlacementKey("w-1", 1)
SPEC = msgspec.json.encode({"containers": [{"name": "main", "image": "app"}]})


async def _cluster(name: str, tmp_path: Path) -> tuple[EmbeddedCluster, ClusterConfig]:
    cluster = EmbeddedCluster(name)
    await cluster.start()
    path = tmp_path / f"{name}.kubeconfig"
    path.write_text(cluster.kubeconfig())
    config = await from_kubeconfig(str(path))
    async with Client.connect(config) as client:
        for namespace, labels in ((SYSTEM, {}), (TEAM, {"gatelift.dev/accept": "true"})):
            document = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": labels}}
            await client.create(NAMESPACE, "", msgspec.json.encode(document))
        free = {"metadata": {"name": "gatelift-agent", "namespace": SYSTEM}, "spec": {}}
        await client.create(LEASE, SYSTEM, msgspec.json.encode(free))
    return cluster, config


@dataclass
class Running:
    """An agent's process, and what is around it."""

    edge: Edge
    cluster: EmbeddedCluster
    config: ClusterConfig
    folder: Path
    agents: list[Agent] = field(default_factory=list)
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    async def start(self, **settings: Any) -> Agent:
        ready = asyncio.Event()
        identity = self.edge.identities["w1"]
        self.folder.mkdir(exist_ok=True)
        for name, content in (
            ("tls.key", identity.key.pem),
            ("tls.crt", identity.certificate),
            ("ca.crt", identity.bundle),
        ):
            (self.folder / name).write_bytes(content)
        document = {
            "cluster": "w1",
            "manager": f"{HOST}:{self.edge.server.port}",
            "identity_directory": str(self.folder),
            "health": f"{HOST}:0",
            **settings,
        }
        agent = Agent(
            config=AgentConfiguration(**document), cluster=self.config, on_listening=lambda _agent: ready.set()
        )
        self.agents.append(agent)
        self.tasks.append(spawn("agent", agent.run()))
        async with asyncio.timeout(60):
            await ready.wait()
        return agent

    async def stop(self, agent: Agent) -> None:
        agent.stop.set()
        async with asyncio.timeout(60):
            await self.tasks[self.agents.index(agent)]

    def reports(self, kind: type[Any]) -> list[Any]:
        return [each.message for each in self.edge.told(Reported) if isinstance(each.message, kind)]


@pytest_asyncio.fixture
async def running(tmp_path: Path) -> AsyncIterator[Running]:
    edge = Edge("w1")
    await edge.start()
    cluster, config = await _cluster("w1", tmp_path)
    made = Running(edge, cluster, config, tmp_path / "identity")
    yield made
    for agent, task in zip(made.agents, made.tasks, strict=True):
        agent.stop.set()
        await asyncio.wait({task}, timeout=60)
    await edge.stop()
    await cluster.stop()


def _place(edge: Edge) -> None:
    digest = hashlib.sha256(SPEC).hexdigest()
    template = m.ObjectTemplate(name="p", pod_set="main", template=digest)
    edge.send("w1", m.Offer(key=KEY, kind="Pod", namespace=TEAM, name="p", queue="q"))
    edge.send("w1", m.TemplateBlob(hash=digest, content=SPEC))
    edge.send("w1", m.Commit(key=KEY, kind="Pod", namespace=TEAM, name="p", queue="q", objects=(template,)))


async def _get(agent: Agent, path: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(f"http://{agent.status_address}{path}") as response:
        return response.status, await response.text()


async def test_a_pod_is_made_let_go_and_reported_by_the_running_process(running: Running) -> None:
    agent = await running.start()
    await until(lambda: running.edge.is_open("w1"), "the session opens")
    _place(running.edge)
    await until(lambda: running.reports(m.GatesLifted), "it is let go")
    found = running.cluster.store.look(("", "pods"), TEAM, "p")
    assert found is not None
    assert not found["spec"].get("schedulingGates")
    assert (await _get(agent, "/readyz"))[0] == 200
    status, text = await _get(agent, "/metrics")
    assert status == 200
    assert 'gatelift_agent_placements{state="Running"} 1.0' in text
    assert "gatelift_agent_lift_seconds_count 1.0" in text
    assert "gatelift_agent_connected 1.0" in text


async def test_hd_60_a_second_agent_with_the_same_certificate_is_turned_away_and_stands_by(running: Running) -> None:
    """HD-60: installed twice, with another name of its Lease; over real gRPC the first one's session goes on."""
    await running.start()
    await until(lambda: running.edge.is_open("w1"), "the session opens")
    running.edge.links.place_counts("w1", PlaceCounts(placements=0, offers=0, unexplained=0))
    session = running.edge.cluster("w1").status.session
    async with Client.connect(running.config) as client:
        free = {"metadata": {"name": "another", "namespace": SYSTEM}, "spec": {}}
        await client.create(LEASE, SYSTEM, msgspec.json.encode(free))
    second = await running.start(leader_election={"name": "another"})

    def shown() -> str:
        found = conditions.find(running.edge.cluster("w1").status.conditions, "SecondAgent")
        return found.message if found is not None and found.status == "True" else ""

    await until(shown, "it is shown")
    assert f"{SYSTEM}/another" in shown()
    assert (await _get(second, "/readyz"))[0] == 200, "a rollout that gives the Lease another name goes on"
    assert running.edge.is_open("w1")
    assert running.edge.cluster("w1").status.session == session
    assert running.edge.cluster("w1").status.agent_lease == f"{SYSTEM}/gatelift-agent"


async def test_hd_44_a_lease_that_somebody_deleted_is_waited_for_and_then_the_predecessors_writes(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HD-44, R8: a replica that never saw the Lease does not take its absence for *nobody ever held it*."""
    times = {"lease_seconds": 3.0, "renew_seconds": 2.0, "retry_seconds": 0.5}
    async with Client.connect(running.config) as client:
        found = running.cluster.store.look(("coordination.k8s.io", "leases"), SYSTEM, "gatelift-agent")
        assert found is not None
        await client.delete(ObjectRef(LEASE, ObjectKey(SYSTEM, "gatelift-agent")), uid=found["metadata"]["uid"])
        assert await leadership.vacant_term(client, SYSTEM, "gatelift-agent") == leadership.UNKNOWN_TERM
    gained: list[tuple[float, AgentLeadershipGained]] = []
    usual = leadership.gained

    def noted(term: int, free_term: int, its: ElectionTimes, mark: int) -> AgentLeadershipGained:
        event = usual(term, free_term, its, mark)
        gained.append((monotonic(), event))
        return event

    monkeypatch.setattr(leadership, "gained", noted)
    began = monotonic()
    await running.start(leader_election=times)
    await until(lambda: gained, "it leads")
    [(at, event)] = gained
    assert at - began >= times["lease_seconds"]
    assert event.settle_seconds == leadership.settle_seconds(ElectionTimes(**times))
    assert event.settle_seconds >= times["renew_seconds"] + WRITE_SECONDS_MAX - times["lease_seconds"]


async def test_a_clean_stop_gives_the_lease_back_and_the_next_process_goes_on_at_once(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await running.start()
    await until(lambda: running.edge.is_open("w1"), "the session opens")
    _place(running.edge)
    await until(lambda: running.reports(m.GatesLifted), "it is let go")
    await running.stop(first)
    lease = running.cluster.store.look(("coordination.k8s.io", "leases"), SYSTEM, "gatelift-agent")
    assert lease is not None
    assert not lease["spec"].get("holderIdentity")
    await until(lambda: not running.edge.is_open("w1"), "the session ends")
    gained: list[float] = []
    usual = leadership.gained

    marks: list[int] = []

    def noted(term: int, free_term: int, times: ElectionTimes, mark: int) -> AgentLeadershipGained:
        event = usual(term, free_term, times, mark)
        gained.append(event.settle_seconds)
        marks.append(event.mark)
        return event

    monkeypatch.setattr(leadership, "gained", noted)
    await running.start()
    await until(lambda: running.edge.is_open("w1"), "the second session opens")
    assert gained == [0.0], "nothing of the first process is under way, so nothing is waited for"
    counted = int(lease["metadata"]["annotations"]["gatelift.dev/lease-counter"])
    assert marks == [counted], "HD-22: what the Lease counted when the first process gave it back"
    assert counted > 0
    found = running.cluster.store.look(("", "pods"), TEAM, "p")
    assert found is not None
    assert not found["metadata"].get("deletionTimestamp")


async def test_hd_300_a_namespace_that_may_not_be_listed_is_named_by_the_readiness_of_who_serves_the_others(
    running: Running,
) -> None:
    document = {"metadata": {"name": "shut", "labels": {"gatelift.dev/accept": "true"}}}
    async with Client.connect(running.config) as client:
        await client.create(NAMESPACE, "", msgspec.json.encode({"apiVersion": "v1", "kind": "Namespace", **document}))
    shut = PlannedFault(action=FaultAction.REFUSE, resource="jobs", namespace="shut", code=403, count=100_000)
    running.cluster.faults.add(shut)
    agent = await running.start()
    await until(lambda: running.edge.is_open("w1"), "the session opens")
    status, text = await _get(agent, "/readyz")
    assert status == 200
    assert "namespace shut: accepts work, and the agent may not list it" in text
    assert "kubectl -n shut apply -k deploy/agent/namespace" in text
    _place(running.edge)
    await until(lambda: running.reports(m.GatesLifted), "the other namespace is served")
    running.cluster.faults.clear()
    async with asyncio.timeout(60):
        while (await _get(agent, "/readyz"))[1] != "ok\n":  # noqa: ASYNC110 - asked by HTTP
            await asyncio.sleep(0.05)


async def test_a_second_replica_stands_by(running: Running) -> None:
    first = await running.start()
    await until(lambda: running.edge.is_open("w1"), "the session opens")
    second = await running.start()
    status, text = await _get(second, "/readyz")
    assert (status, text) == (200, "ok\n")
    assert "gatelift_agent_leader 0.0" in (await _get(second, "/metrics"))[1]
    await running.stop(first)
    await until(lambda: len(running.edge.opened_streams()) == 2, "it takes over")
    streams = [
        each
        for each in running.edge.events
        if isinstance(each, manager_events.AgentStreamOpened | manager_events.AgentStreamClosed)
    ]
    opened, closed = manager_events.AgentStreamOpened, manager_events.AgentStreamClosed
    assert [type(each) for each in streams[:3]] == [opened, closed, opened], "never both at a time"


async def test_a_cluster_that_goes_away_is_said_and_its_return_too(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health_adapter, "PROBE_SECONDS", 0.05)
    monkeypatch.setattr(health_adapter, "PROBE_LIMIT_SECONDS", 0.2)
    agent = await running.start()
    await until(lambda: running.edge.is_open("w1"), "the session opens")
    await running.cluster.suspend()

    def reachable() -> bool:
        view = running.edge.links.state("w1")
        return view is not None and view.api_reachable

    await until(lambda: not reachable(), "the manager is told")
    async with asyncio.timeout(60):  # what the manager was told may be of a slow answer before, the next of a quick one
        while "gatelift_agent_api_reachable 0.0" not in (await _get(agent, "/metrics"))[1]:  # noqa: ASYNC110 - asked by HTTP
            await asyncio.sleep(0.05)
    await running.cluster.resume()
    await until(reachable, "the manager is told of the return")


async def test_an_agent_without_identity_says_what_it_waits_for(running: Running, tmp_path: Path) -> None:
    agent = Agent(
        config=AgentConfiguration(
            cluster="w1",
            manager=f"{HOST}:{running.edge.server.port}",
            identity_directory=str(tmp_path / "empty"),
            health=f"{HOST}:0",
        ),
        cluster=running.config,
    )
    running.agents.append(agent)
    running.tasks.append(spawn("agent", agent.run()))
    await until(lambda: agent.status_address, "it listens")

    async def text() -> str:
        return (await _get(agent, "/readyz"))[1]

    found = ""
    async with asyncio.timeout(60):
        while "set enrol: host:port" not in found:
            found = await text()
            await asyncio.sleep(0.05)
    assert found.startswith("not enrolled: ")


async def test_an_agent_that_was_revoked_and_added_again_enrols_anew_with_the_new_token(running: Running) -> None:
    edge = running.edge
    agent = await running.start()
    await until(lambda: edge.is_open("w1"), "the session opens")
    edge.put("w1", spec={"revoked": True}, status={})
    await until(lambda: not edge.is_open("w1"), "its session ends")
    await running.stop(agent)
    token = tokens.compose("w1", bytes(24), edge.state.bundle)
    edge.put("w1", spec={"tokenDigest": tokens.digest(token), "tokenExpiresAt": "2999-01-01T00:00:00Z"}, status={})
    await running.start(token=token, enrol=f"{HOST}:{edge.enrol.port}")
    await until(lambda: edge.cluster("w1").status.enrolment, "it asks with a new key")
    asked = edge.cluster("w1").status.enrolment
    assert asked is not None
    assert asked.key_digest != edge.identities["w1"].key.digest
    edge.patch_spec("w1", approvedRequest=asked.key_digest)
    await until(lambda: edge.is_open("w1"), "the session opens with the new key")


# --- local -------------------------------------------------------------------------------------------------------


SHARED = (
    (NAMESPACE, ""),
    (JOB, "kueue.x-k8s.io/queue-name"),
    (POD, "kueue.x-k8s.io/managed=true"),
)
"""What the manager's process mirrors as well."""


@pytest.mark.parametrize("shared", [SHARED, ()], ids=["the process's watches", "watches of its own"])
async def test_the_agent_of_local_lets_the_users_own_pod_go(
    tmp_path: Path, shared: tuple[tuple[Resource, str], ...]
) -> None:
    cluster, config = await _cluster("management", tmp_path)
    posted: list[manager_events.Event] = []
    stream = LocalStream(posted.append)
    async with Client.connect(config) as client:
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "namespace": TEAM, "labels": {"kueue.x-k8s.io/managed": "true"}},
            "spec": {**msgspec.json.decode(SPEC), "schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]},
        }
        admitted = await client.create(POD, TEAM, msgspec.json.encode(pod))
        mirrored: list[tuple[Resource, ApiEvent]] = []
        reflectors = [
            Reflector(client, resource, _keep(mirrored, resource), selection=Selection(labels=labels), followed=True)
            for resource, labels in shared
        ]
        mirrors = Supervisor(lambda task, error: pytest.fail(f"{task}: {error}"))
        for each in reflectors:
            mirrors.spawn(f"watch {each.resource.plural}", each.run())
        agent = await start_local_agent(
            client,
            stream,
            instance="local-1",
            term=1,
            leads_until=lambda: monotonic() + 10.0,
            settle_seconds=0.0,
            shared=reflectors,
        )
        links = _links(posted, stream)
        await until(links, "the local session opens")
        stream_id = next(each.stream_id for each in posted if isinstance(each, manager_events.AgentStreamOpened))
        template = m.ObjectTemplate(name="p", pod_set="main", template=admitted.object.metadata.uid)
        frame = m.Frame(
            session=1,
            term=1,
            sequence=1,
            messages=(
                m.Offer(key=KEY, kind="Pod", namespace=TEAM, name="p", queue="q"),
                m.Commit(key=KEY, kind="Pod", namespace=TEAM, name="p", queue="q", objects=(template,)),
            ),
        )
        stream.send(manager_commands.SendToAgent(stream_id=stream_id, frame=frame))

        def let_go() -> bool:
            found = cluster.store.look(("", "pods"), TEAM, "p")
            return found is not None and not found["spec"].get("schedulingGates")

        await until(let_go, "the pod is let go")
        served = await client.get(ObjectRef(POD, ObjectKey(TEAM, "p")))
        assert served.object.metadata.labels["gatelift.dev/workload-uid"] == "w-1"
        if shared:

            def kept_once() -> bool:
                [held] = agent.machine.world.objects.own()
                told = (event for resource, event in mirrored if resource == POD and isinstance(event, ObjectSeen))
                return any(held.raw is event.raw for event in told)

            await until(kept_once, "what its own write brought it has come by the watch too, and is kept once")
        await agent.stop()
        await mirrors.stop()
        assert not agent.failure
    await cluster.stop()


def _keep(mirrored: list[tuple[Resource, ApiEvent]], resource: Resource) -> Callable[[ApiEvent], None]:
    return lambda event: mirrored.append((resource, event))


def _links(posted: list[manager_events.Event], stream: LocalStream) -> Callable[[], bool]:
    """Play the manager: welcome, grant, ask for the inventory; return what says that it was answered."""
    seen = 0

    def turn() -> bool:
        nonlocal seen
        opened = [each for each in posted if isinstance(each, manager_events.AgentStreamOpened)]
        frames = [each.frame for each in posted if isinstance(each, manager_events.AgentFrameArrived)]
        while opened and seen < len(frames):
            frame = frames[seen]
            seen += 1
            for control in frame.control:
                answer = _answer(control)
                if answer is not None:
                    reply = m.Frame(session=1, term=1, sequence=1, control=(answer,))
                    stream.send(manager_commands.SendToAgent(stream_id=opened[-1].stream_id, frame=reply))
        return any(isinstance(each, inventory.InventoryChunk) for frame in frames for each in frame.control)

    return turn


def _answer(control: m.Control) -> m.Control | None:
    match control:
        case m.Hello():
            return m.Welcome(session=1, instance="manager", version=1, resume=False, origin="origin")
        case m.LeaseRenew(sent_at=sent_at):
            return m.LeaseGranted(sent_at=sent_at, seconds=45.0)
        case m.CreditGrant():
            return inventory.InventoryRequest(request=1)
        case _:
            return None
