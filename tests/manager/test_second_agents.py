"""Who speaks for a cluster: one agent, and another one only once that is lost and it has listed everything since."""

from __future__ import annotations

from gatelift.core.api import events
from gatelift.core.api.speaking import BESIDE_SECONDS
from gatelift.core.clusters.link_values import LinkLost
from gatelift_kube.deciding.writes import ObjectSeen
from gatelift_kube.objects import conditions
from gatelift_kube.objects.meta import Condition
from gatelift_kube.values.resources import WORKER_CLUSTER
from gatelift_wire.sessions.session_agent import AgentSession
from gatelift_wire.values import limits
from gatelift_wire.values.refusals import CloseReason
from gatelift_wire.values.speakers import Speaker
from support.manager.links_bench import Manager
from support.manager.worker_cluster_api import Api

LOST = limits.LOST_SECONDS + 20.0


def agent(name: str, lease: str, *, last: int = 0, ticket: str = "", uid: str = "u1") -> AgentSession:
    session = AgentSession(instance=name, last_session=last, last_term=1 if last else 0)
    session.offered_ticket = ticket
    session.identify(uid, 0, lease)
    return session


def served(api: Api | None = None) -> Manager:
    """Return links that serve the agent of Lease x/one on stream 1."""
    manager = Manager(api or Api())
    manager.dial(1, agent=agent("first", "x/one"))
    manager.pass_time(3, agents=True)
    assert session_of(manager) == 1
    return manager


def session_of(manager: Manager) -> int:
    view = manager.links.state("w1")
    return view.session if view is not None and view.open else 0


def greets(manager: Manager, stream: int, session: AgentSession) -> CloseReason | None:
    manager.dial(stream, agent=session)
    manager.pass_time(3, agents=True)
    return manager.closed.get(stream)


def condition(manager: Manager, type_: str) -> Condition:
    found = conditions.find(manager.api.get("w1").status.conditions, type_)
    return found or Condition(type=type_, status="", reason="", message="")


def lost() -> Manager:
    manager = served()
    manager.event(events.AgentStreamClosed(stream_id=1, text="gone"))
    del manager.agents[1]
    manager.pass_time(LOST)
    return manager


def test_who_is_another() -> None:
    one = Speaker("u1", "x/one")
    assert one.is_another(Speaker("u1", "x/two"))
    assert one.is_another(Speaker("u2", "x/one"))
    assert not one.is_another(Speaker("u1", "x/one"))
    assert not one.is_another(Speaker("", "")), "an agent of before says neither"


def test_hd_60_another_agent_is_turned_away_and_ends_no_session() -> None:
    manager = served()
    assert greets(manager, 2, agent("second", "x/two")) is CloseReason.ANOTHER_AGENT
    assert session_of(manager) == 1
    assert 1 not in manager.closed
    told = condition(manager, "SecondAgent")
    assert (told.status, told.reason) == ("True", "TurnedAway")
    assert "second (Lease x/two in cluster u1)" in told.message


def test_hd_60_another_cluster_is_turned_away_as_well() -> None:
    manager = served()
    assert greets(manager, 2, agent("second", "x/one", uid="u2")) is CloseReason.ANOTHER_AGENT
    assert session_of(manager) == 1
    assert "in cluster u2" in condition(manager, "SecondAgent").message


def test_a_replica_of_the_agent_that_is_served_takes_over_at_once() -> None:
    manager = served()
    assert greets(manager, 2, agent("replica", "x/one", last=1)) is None
    assert session_of(manager) == 2


def test_hd_60_between_two_sessions_of_the_first_the_second_is_turned_away_without_a_ticket() -> None:
    """HD-60: its right to start goes on while nobody is connected."""
    manager = served()
    manager.event(events.AgentStreamClosed(stream_id=1, text="gone"))
    del manager.agents[1]
    second = agent("second", "x/two")
    assert greets(manager, 2, second) is CloseReason.ANOTHER_AGENT
    assert second.offered_ticket == ""
    assert condition(manager, "SecondAgent").status == "True"


def test_hd_60_once_the_cluster_is_lost_it_comes_in_with_the_ticket_that_it_was_given() -> None:
    manager = lost()
    second = agent("second", "x/two")
    assert greets(manager, 2, second) is CloseReason.ANOTHER_AGENT
    assert second.offered_ticket
    assert greets(manager, 3, agent("second", "x/two", ticket="m1/0")) is CloseReason.ANOTHER_AGENT, "of another time"
    assert greets(manager, 4, agent("second", "x/two", ticket=second.offered_ticket)) is None
    assert session_of(manager) == 2
    assert manager.api.get("w1").status.agent_lease == "x/two"
    assert condition(manager, "TakenOver").reason == "Settled", "nothing is charged that it does not list"


def test_hd_60_what_it_does_not_list_is_in_doubt() -> None:
    manager = lost()
    second = agent("second", "x/two")
    greets(manager, 2, second)
    manager.unexplained = 1
    greets(manager, 3, agent("second", "x/two", last=9, ticket=second.offered_ticket))
    told = condition(manager, "TakenOver")
    assert (told.status, told.reason) == ("True", "AnotherLease")
    assert "gatelift cluster fenced w1" in told.message
    view = manager.links.state("w1")
    assert view is not None
    assert (view.unproven, view.cordoned) == (True, True)


def test_hd_60_a_ticket_counts_no_more_once_somebody_was_served() -> None:
    """R8: who was served may have made something that is not in the lists of the other one."""
    manager = lost()
    second = agent("second", "x/two")
    greets(manager, 2, second)
    assert greets(manager, 3, agent("first", "x/one", last=1)) is None
    manager.event(events.AgentStreamClosed(stream_id=3, text="gone"))
    manager.agents.clear()
    manager.pass_time(LOST)
    assert greets(manager, 4, agent("second", "x/two", ticket=second.offered_ticket)) is CloseReason.ANOTHER_AGENT
    assert session_of(manager) == 0


def test_hd_60_the_next_leader_asks_for_lists_of_its_own_time() -> None:
    manager = lost()
    second = agent("second", "x/two")
    greets(manager, 2, second)
    successor = Manager(manager.api, term=2, instance="m2")
    away = agent("second", "x/two", ticket=second.offered_ticket)
    assert greets(successor, 1, away) is CloseReason.ANOTHER_AGENT
    assert away.offered_ticket not in {"", second.offered_ticket}


def test_hd_60_a_leader_that_has_an_old_object_lets_nobody_in_by_it() -> None:
    """R2: who serves is judged again by the object that the session's write is conditional on."""
    manager = lost()
    old = Manager(manager.api, term=2, instance="m2")
    old.hold_writes = True  # it has not written in its own term: what an earlier leader wrote is believed
    second = agent("second", "x/two")
    old.dial(1, agent=second)
    old.held.clear()
    old.dial(2, agent=agent("second", "x/two", ticket=second.offered_ticket))
    manager.dial(1, agent=agent("first", "x/one", last=1))
    manager.pass_time(2, agents=True)
    assert session_of(manager) == 2
    (write,) = old.held
    old.hold_writes = False
    old.event(manager.api.write(write))  # a conflict
    old.event(ObjectSeen(WORKER_CLUSTER, manager.api.get("w1"), b""))
    old.pass_time(3, agents=True)
    assert session_of(old) == 0
    assert manager.api.get("w1").status.agent_lease == "x/one"


def test_hd_60_the_condition_outlives_leaders_and_ends_when_nobody_greets_any_more() -> None:
    manager = served()
    greets(manager, 2, agent("second", "x/two"))
    successor = Manager(manager.api, term=2, instance="m2")
    assert greets(successor, 1, agent("first", "x/one", last=1)) is None
    assert condition(successor, "SecondAgent").status == "True"
    successor.pass_time(BESIDE_SECONDS + 5.0, agents=True)
    told = condition(successor, "SecondAgent")
    assert (told.status, told.reason) == ("False", "Gone")


def test_an_agent_of_before_is_served_and_its_absence_proves_nothing() -> None:
    manager = served()
    manager.unexplained = 1
    assert greets(manager, 2, agent("old", "", last=1)) is None
    assert condition(manager, "TakenOver").status == "True"
    assert manager.api.get("w1").status.agent_lease == "x/one"


def test_hd_64_a_session_that_was_written_for_an_agent_that_is_gone_by_then_is_lost_again() -> None:
    """HD-64: else nobody could ever say of it that it is fenced, and no other agent could take over."""
    manager = lost()
    losses = manager.kinds().count(LinkLost.__name__)
    manager.hold_writes = True
    manager.dial(2, agent=agent("first", "x/one", last=1))
    manager.event(events.AgentStreamClosed(stream_id=2, text="gone"))
    manager.agents.clear()
    (write,) = manager.held
    manager.held.clear()
    manager.hold_writes = False
    manager.event(manager.api.write(write))
    assert condition(manager, "Connected").reason != "Lost"
    manager.pass_time(LOST)
    assert condition(manager, "Connected").reason == "Lost"
    assert manager.kinds().count(LinkLost.__name__) == losses + 1
