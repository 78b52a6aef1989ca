"""A leader begins from the WorkerCluster as it is then, whatever it saw of it as a standby."""

from __future__ import annotations

from gatelift.core.api import events
from gatelift.core.clusters.link_values import LinkState
from gatelift_kube.deciding.writes import ObjectSeen
from gatelift_kube.objects import conditions
from gatelift_kube.objects.gatelift import WorkerCluster, WorkerClusterStatus
from gatelift_kube.values.resources import WORKER_CLUSTER
from gatelift_wire.sessions.session_agent import AgentSession
from support.manager.links_bench import Manager
from support.manager.worker_cluster_api import Api

NEVER_LOWERED = (
    "term",
    "session",
    "opened_session",
    "restored_session",
    "fenced_through_session",
    "lease_seconds",
    "certificate_issued_at",
    "cluster_uid",
    "mark",
)


def leads(manager: Manager, term: int) -> None:
    manager.event(events.LeadershipExtended(valid_until=1e9))
    manager.event(events.LeadershipGained(term=term))


def sees(manager: Manager, found: WorkerCluster | None = None) -> None:
    manager.event(ObjectSeen(WORKER_CLUSTER, found or manager.api.get("w1"), b""))


def reason(found: WorkerCluster) -> str:
    connected = conditions.find(found.status.conditions, "Connected")
    return connected.reason if connected is not None else ""


def lowered(before: WorkerClusterStatus, after: WorkerClusterStatus) -> list[str]:
    """Return the fields of `after` that say less than `before` did."""
    fields = [name for name in NEVER_LOWERED if hasattr(before, name)]
    return [name for name in fields if (getattr(after, name) or 0) < (getattr(before, name) or 0)]


def session_of(first: Manager, stream: int) -> None:
    last = first.api.get("w1").status.session
    first.dial(stream, agent=AgentSession(instance=f"agent-{stream}", last_session=last, last_term=1))
    first.pass_time(3, agents=True)


def test_hd_10_a_standby_that_saw_a_cluster_lost_does_not_write_that_back_when_it_leads() -> None:
    api = Api()
    first = Manager(api)
    session_of(first, 1)
    first.pass_time(80)
    assert reason(api.get("w1")) == "Lost"
    standby = Manager(api, term=0, instance="m2")
    session_of(first, 2)
    session_of(first, 3)
    before = api.get("w1").status
    assert (before.session, before.opened_session) == (3, 3)
    sees(standby)
    leads(standby, 2)
    standby.pass_time(3)
    assert reason(api.get("w1")) != "Lost", "it is connected, and its lease counts as renewed by the new leader"
    assert lowered(before, api.get("w1").status) == []
    view = standby.links.state("w1")
    assert view is not None
    assert view.state is not LinkState.LOST


def test_hd_10_what_a_leader_had_not_seen_when_it_took_over_is_not_lowered_either() -> None:
    api = Api()
    first = Manager(api)
    session_of(first, 1)
    early = api.get("w1")
    first.pass_time(80)
    session_of(first, 2)
    before = api.get("w1").status
    late = Manager(api, term=0, instance="m2")
    late.links = Manager(Api(), term=0, instance="m2").links  # as a watch that lies behind: it has seen `early` only
    sees(late, early)
    leads(late, 2)
    late.dial(1, agent=AgentSession(instance="agent-2", last_session=2, last_term=1))
    late.pass_time(2, agents=True)
    sees(late)
    late.pass_time(5, agents=True)
    after = api.get("w1").status
    assert after.session == 3
    assert lowered(before, after) == []


def test_hd_10_a_worker_is_compared_with_what_is_recorded_when_its_session_is_written() -> None:
    api = Api()
    first = Manager(api)
    session_of(first, 1)
    early = api.get("w1")
    session_of(first, 2)
    late = Manager(api, term=0, instance="m2")
    late.links = Manager(Api(), term=0, instance="m2").links
    sees(late, early)
    leads(late, 2)
    late.dial(1, agent=AgentSession(instance="restored", last_session=1, last_term=1))
    sees(late)
    late.pass_time(3, agents=True)
    assert api.get("w1").status.restored_session == api.get("w1").status.session
