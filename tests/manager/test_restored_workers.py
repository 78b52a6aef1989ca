"""Workers that came back from a backup, and leases that are longer than the default: what stands in WorkerCluster."""

from __future__ import annotations

import pytest

from gatelift.core.clusters.identity import ANNOTATION_RESTORED_ACCEPTED
from gatelift.core.clusters.link_values import LinkState
from gatelift_kube.deciding.writes import ObjectSeen
from gatelift_kube.objects import conditions
from gatelift_kube.values.resources import WORKER_CLUSTER
from gatelift_wire.sessions.leases import start_right_seconds
from gatelift_wire.sessions.session_agent import AgentSession
from support.manager.links_bench import Manager
from support.manager.worker_cluster_api import Api

LONG = 600.0
"""A configured `lostAfter`; its right to start is 450 s."""


def restored_world() -> Manager:
    manager = Manager(Api())
    manager.dial(1)
    manager.dial(2)
    manager.pass_time(3, agents=True)
    manager.unexplained = 1
    manager.dial(3, agent=AgentSession(instance="restored", last_session=1, last_term=1))
    manager.pass_time(3, agents=True)
    return manager


def cordoned(manager: Manager) -> bool:
    view = manager.links.state("w1")
    assert view is not None
    return view.cordoned


def said(api: Api) -> str:
    found = conditions.find(api.get("w1").status.conditions, "Restored")
    return found.status if found is not None else ""


def test_a_restored_worker_stays_cordoned_over_its_next_greetings() -> None:
    manager = restored_world()
    assert cordoned(manager)
    assert said(manager.api) == "True"
    manager.dial(4, agent=AgentSession(instance="restored", last_session=3, last_term=1))
    manager.pass_time(3, agents=True)
    assert manager.agents[4].live
    assert cordoned(manager), "it remembers its sessions again, and nobody has looked at what runs there"


def test_a_restored_worker_stays_cordoned_under_the_next_leader() -> None:
    api = restored_world().api
    successor = Manager(api, term=2, instance="m2")
    successor.unexplained = 1
    successor.dial(1, agent=AgentSession(instance="restored", last_session=3, last_term=1))
    successor.pass_time(3, agents=True)
    assert cordoned(successor)
    assert said(api) == "True"


def test_a_person_lifts_the_cordon_of_a_restored_worker_until_it_is_restored_again() -> None:
    manager = restored_world()
    restored = manager.api.get("w1").status.restored_session
    assert restored == 3
    manager.api.annotate("w1", {ANNOTATION_RESTORED_ACCEPTED: str(restored)})
    manager.event(ObjectSeen(WORKER_CLUSTER, manager.api.get("w1"), b""))
    manager.pass_time(3, agents=True)
    assert not cordoned(manager)
    assert said(manager.api) == "True", "what it does not list stays charged"
    manager.dial(4, agent=AgentSession(instance="older", last_session=2, last_term=1))
    manager.pass_time(3, agents=True)
    assert cordoned(manager)
    assert said(manager.api) == "True"


def test_a_worker_that_was_never_restored_says_nothing_about_it() -> None:
    manager = Manager(Api())
    manager.dial()
    manager.pass_time(3, agents=True)
    assert said(manager.api) == ""
    assert not cordoned(manager)


def granted_until(manager: Manager, stream: int = 1) -> float:
    agent = manager.agents[stream]
    assert agent.lease_acknowledged_at is not None
    limit = manager.now + 10_000
    while agent.lease_valid(limit):
        limit += 10_000
    low = manager.now
    while limit - low > 0.5:
        middle = (low + limit) / 2
        low, limit = (middle, limit) if agent.lease_valid(middle) else (low, middle)
    return low


def test_a_longer_grant_stands_in_the_status_before_it_is_given() -> None:
    manager = Manager(Api(), lost=LONG)
    manager.hold_writes = True
    manager.dial()
    assert not manager.agents[1].lease_valid(manager.now)
    manager.hold_writes = False
    (write,) = manager.held
    manager.event(manager.api.write(write))
    assert manager.api.get("w1").status.lease_seconds == 450
    manager.pass_time(20, agents=True)
    assert granted_until(manager) == pytest.approx(manager.now + 450, abs=15)


def test_the_default_grant_needs_no_record() -> None:
    manager = Manager(Api())
    manager.dial()
    manager.pass_time(20, agents=True)
    assert manager.api.get("w1").status.lease_seconds == 0


def test_a_leader_with_shorter_times_waits_for_the_grants_of_its_predecessor() -> None:
    api = Api()
    first = Manager(api, lost=LONG)
    first.dial()
    first.pass_time(20, agents=True)
    second = Manager(api, term=2, instance="m2")
    second.now = first.now
    second.pass_time(440)
    view = second.links.state("w1")
    assert view is not None
    assert view.state is not LinkState.LOST, "its agent may still start what it was allowed to"
    assert api.get("w1").status.lease_seconds == 450, "the next leader has to know of it, too"
    assert not api.get("w1").status.conditions or not _lost(api)
    second.pass_time(start_right_seconds(450) - 440 + 2)
    assert _lost(api)
    assert api.get("w1").status.lease_seconds == 0, "no grant that long counts any more"


def test_a_record_that_comes_late_still_counts() -> None:
    api = Api()
    second = Manager(api, term=2, instance="m2")
    second.pass_time(30)
    status = {"keyDigest": "k", "leaseSeconds": 450, "term": 1, "session": 1, "connected": True}
    api.put("w1", status=status)
    second.event(ObjectSeen(WORKER_CLUSTER, api.get("w1"), b""))
    second.pass_time(400)
    assert not _lost(api)
    second.pass_time(60)
    assert _lost(api)


def test_a_record_that_comes_when_silence_was_counted_already_still_counts() -> None:
    """The write of *lost* conflicts with the record that was not seen; it waits for the grant that the record tells."""
    api = Api()
    second = Manager(api, term=2, instance="m2")
    status = {"keyDigest": "k", "leaseSeconds": 450, "term": 1, "session": 1, "connected": True}
    api.put("w1", status=status)
    second.pass_time(70)
    second.event(ObjectSeen(WORKER_CLUSTER, api.get("w1"), b""))
    second.pass_time(360)
    assert not _lost(api)
    second.pass_time(60)
    assert _lost(api)


def _lost(api: Api) -> bool:
    found = conditions.find(api.get("w1").status.conditions, "Connected")
    return found is not None and found.reason == "Lost"


def test_an_agent_waits_for_the_answers_of_a_manager_with_longer_times() -> None:
    manager = Manager(Api(), lost=LONG)
    manager.dial()
    manager.pass_time(20, agents=True)
    agent = manager.agents[1]
    manager.now += 120.0
    agent.tick(manager.now)
    assert agent.live
    manager.now += LONG
    agent.tick(manager.now)
    assert not agent.live
