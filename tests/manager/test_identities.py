"""Who greets under a name: compared with what is recorded, as values and through the links."""

from __future__ import annotations

import pytest

from gatelift.core.clusters.cluster_facts import Facts
from gatelift.core.clusters.fencing import ANNOTATION_FENCED_AFTER, ANNOTATION_FENCED_BY, ANNOTATION_FENCED_THROUGH
from gatelift.core.clusters.identity import SESSION_JUMP_MAX, Doubt, doubt_of
from gatelift.core.clusters.link_values import LinkOpened, PlaceCounts, PlacementsInventoried
from gatelift_kube.deciding.writes import ObjectSeen
from gatelift_kube.objects import conditions
from gatelift_kube.objects.gatelift import WorkerCluster, WorkerClusterStatus
from gatelift_kube.values.resources import WORKER_CLUSTER
from gatelift_wire.sessions.session_agent import AgentSession
from gatelift_wire.values.messages import Hello
from gatelift_wire.values.refusals import CloseReason
from support.manager.links_bench import Manager
from support.manager.worker_cluster_api import Api

RECORDED = WorkerClusterStatus(cluster_uid="u1", opened_session=5, session=6, mark=100, agent_instance="a1")


@pytest.mark.parametrize(
    ("hello", "doubt"),
    [
        (Hello(instance="a2", cluster_uid="u1", last_session=5, mark=100), None),
        (Hello(instance="a2", cluster_uid="u2", last_session=9, mark=900), Doubt.REPLACED),
        (Hello(instance="a2", cluster_uid="", last_session=9, mark=900), Doubt.REPLACED),
        (Hello(instance="a2", cluster_uid="u1", last_session=4, mark=900), Doubt.RESTORED),
        (Hello(instance="a2", cluster_uid="u1", last_session=0, mark=900), Doubt.RESTORED),
        (Hello(instance="a1", cluster_uid="u1", last_session=4, mark=900), None),
        (Hello(instance="a2", cluster_uid="u1", last_session=9, mark=99), Doubt.RESTORED),
        (Hello(instance="a1", cluster_uid="u1", last_session=9, mark=99), Doubt.RESTORED),
    ],
    ids=[
        "HD-20 the same",
        "HD-20 another cluster",
        "HD-20 one that does not say which",
        "HD-20 a session forgotten",
        "HD-20 no memory",
        "HD-20 the same process cannot have forgotten",
        "HD-22 a lower mark",
        "HD-22 a lower mark of the same process",
    ],
)
def test_a_greeting_is_compared_with_what_is_recorded(hello: Hello, doubt: Doubt | None) -> None:
    assert doubt_of(WorkerCluster(status=RECORDED), Facts(), hello) is doubt


def test_hd_22_a_mark_that_was_heard_and_not_written_yet_counts() -> None:
    hello = Hello(instance="a2", cluster_uid="u1", last_session=5, mark=150)
    assert doubt_of(WorkerCluster(status=RECORDED), Facts(mark=151), hello) is Doubt.RESTORED


def test_hd_60_a_session_that_was_answered_and_is_not_written_yet_counts() -> None:
    hello = Hello(instance="a2", cluster_uid="u1", last_session=5, mark=100)
    assert doubt_of(WorkerCluster(status=RECORDED), Facts(opened_session=6), hello) is Doubt.RESTORED


def test_hd_20_a_first_uid_is_no_doubt() -> None:
    hello = Hello(instance="a2", cluster_uid="u1", last_session=5)
    assert doubt_of(WorkerCluster(status=WorkerClusterStatus(opened_session=5)), Facts(), hello) is None


def agent(name: str, uid: str, *, last: int = 0, mark: int = 0) -> AgentSession:
    session = AgentSession(instance=name, last_session=last, last_term=1 if last else 0)
    session.identify(uid, mark)
    return session


def served(manager: Manager, stream: int, session: AgentSession) -> PlacementsInventoried:
    manager.dial(stream, agent=session)
    manager.pass_time(3, agents=True)
    return [each for each in manager.upcalls if isinstance(each, PlacementsInventoried)][-1]


def taken_in(manager: Manager, stream: int, name: str, uid: str) -> PlacementsInventoried:
    """Serve another agent than before: it is turned away once, lists all anew and comes back with its ticket."""
    turned_away = agent(name, uid)
    manager.dial(stream, agent=turned_away)
    assert manager.closed[stream] is CloseReason.ANOTHER_AGENT
    again = agent(name, uid)
    again.offered_ticket = turned_away.offered_ticket
    again.identify(uid, 0)
    return served(manager, stream + 100, again)


def replaced() -> Manager:
    """Return links whose cluster was lost in session 1, and another one served under its name since, in session 2."""
    manager = Manager(Api())
    served(manager, 1, agent("first", "u1"))
    manager.pass_time(80)
    manager.unexplained = 2
    inventoried = taken_in(manager, 2, "second", "u2")
    assert (inventoried.unproven, inventoried.unproven_through) == (True, 1)
    return manager


def says_fenced(manager: Manager, through: int, *, after: str = "") -> None:
    said = {ANNOTATION_FENCED_THROUGH: str(through), ANNOTATION_FENCED_BY: "ada", ANNOTATION_FENCED_AFTER: after}
    manager.api.annotate("w1", said)
    manager.event(ObjectSeen(WORKER_CLUSTER, manager.api.get("w1"), b""))
    manager.pass_time(3, agents=True)


def is_shown(manager: Manager, type_: str) -> str:
    found = conditions.find(manager.api.get("w1").status.conditions, type_)
    return found.status if found is not None else ""


def test_hd_20_another_cluster_is_recorded_and_shown_and_gets_no_new_work() -> None:
    manager = replaced()
    status = manager.api.get("w1").status
    assert (status.cluster_uid, status.replaced_session, status.unexplained) == ("u2", 2, 2)
    assert is_shown(manager, "Replaced") == "True"
    view = manager.links.state("w1")
    assert view is not None
    assert view.cordoned


def test_hd_20_the_doubt_outlives_sessions_that_the_new_cluster_remembers_well() -> None:
    manager = replaced()
    inventoried = served(manager, 3, agent("third", "u2", last=2))
    assert (inventoried.unproven, inventoried.unproven_through) == (True, 1)


def test_hd_20_the_doubt_outlives_leaders() -> None:
    successor = Manager(replaced().api, term=2, instance="m2")
    successor.unexplained = 2
    inventoried = served(successor, 1, agent("third", "u2", last=2))
    assert (inventoried.unproven, inventoried.unproven_through) == (True, 1)


def test_hd_20_the_word_about_the_former_clusters_sessions_is_taken_while_the_new_one_is_connected() -> None:
    manager = replaced()
    says_fenced(manager, 1)
    status = manager.api.get("w1").status
    assert (status.fenced_through_session, status.settled_session) == (1, 2)
    view = manager.links.state("w1")
    assert view is not None
    assert (view.fenced_through, view.unproven, view.cordoned, view.open) == (1, False, False, True)
    assert is_shown(manager, "Replaced") == "False"
    assert "FencedByPerson" in manager.kinds()


def test_hd_20_a_word_about_the_present_session_is_refused_while_it_is_served() -> None:
    manager = replaced()
    says_fenced(manager, 2)
    assert manager.api.get("w1").status.fenced_through_session == 0
    assert is_shown(manager, "Replaced") == "True"


def test_hd_11_a_word_about_a_former_cluster_is_no_word_about_a_later_loss() -> None:
    manager = replaced()
    says_fenced(manager, 1)
    manager.pass_time(80)
    view = manager.links.state("w1")
    assert view is not None
    assert (view.state.value, view.fenced_through) == ("Lost", 0)


def test_hd_20_the_doubt_is_over_when_nothing_is_left_that_is_not_listed() -> None:
    manager = replaced()
    manager.explain(0)
    manager.pass_time(3, agents=True)
    assert manager.api.get("w1").status.settled_session == 2
    assert is_shown(manager, "Replaced") == "False"
    view = manager.links.state("w1")
    assert view is not None
    assert not view.cordoned


def test_hd_168_a_doubt_that_is_over_by_itself_has_no_persons_word_about_what_the_record_may_have_lost() -> None:
    manager = replaced()
    manager.explain(0)
    manager.pass_time(3, agents=True)
    view = manager.links.state("w1")
    assert view is not None
    assert (view.unproven, view.vouching.unvouched_through("s")) == (False, 1)
    successor = Manager(manager.api, term=2, instance="m2")
    served(successor, 1, agent("third", "u2", last=2))
    view = successor.links.state("w1")
    assert view is not None
    assert view.vouching.unvouched_through("s") == 1


def test_hd_168_a_word_about_that_is_taken_and_ends_nothing() -> None:
    manager = replaced()
    manager.explain(0)
    manager.pass_time(3, agents=True)
    says_fenced(manager, 1, after="s")
    status = manager.api.get("w1").status
    assert (status.fenced_through_session, status.settled_session) == (1, 2)
    view = manager.links.state("w1")
    assert view is not None
    assert (view.vouching.unvouched_through("s"), view.fenced_through) == (0, 0)
    assert view.vouching.unvouched_through("a later finding") == 1, "HD-180: that one asks anew"
    assert "FencedByPerson" not in manager.kinds()


def test_hd_20_what_was_placed_by_way_of_an_earlier_object_has_a_session_that_a_word_can_name() -> None:
    manager = Manager(Api())
    manager.unexplained = 2
    manager.dial(1, agent=agent("first", "u1"))
    manager.pass_time(3, agents=True)
    assert manager.closed[1] is CloseReason.SHUTTING_DOWN, "it greets anew, since no word can name session 0"
    inventoried = served(manager, 2, agent("first", "u1", last=1))
    assert (inventoried.session, inventoried.unproven_through) == (2, 1)
    assert is_shown(manager, "Replaced") == "True"


def test_hd_21_the_next_session_is_above_what_is_recorded_and_what_the_agent_remembers() -> None:
    manager = Manager(Api())
    assert served(manager, 1, agent("first", "u1", last=28)).session == 29
    assert served(manager, 2, agent("second", "u1", last=29)).session == 30


def test_hd_21_a_session_that_nobody_can_have_had_is_refused() -> None:
    manager = Manager(Api())
    manager.dial(1, agent=agent("first", "u1", last=SESSION_JUMP_MAX + 1))
    assert manager.closed.get(1) is CloseReason.SESSION_TOO_HIGH
    assert any("Hello.last_session: must be at most" in note for note in manager.notes)
    assert manager.api.get("w1").status.session == 0


def test_hd_22_the_mark_is_written_with_what_is_written_anyway() -> None:
    manager = Manager(Api())
    session = agent("first", "u1", mark=7)
    served(manager, 1, session)
    before = manager.writes
    session.set_mark(40)
    manager.pass_time(30, agents=True)
    assert manager.writes == before
    manager.links.place_counts("w1", PlaceCounts(placements=1, offers=0, unexplained=0))
    manager.pass_time(3, agents=True)
    assert manager.writes == before + 1
    assert manager.api.get("w1").status.mark == 40


def test_hd_22_a_restored_worker_counts_on_from_what_it_has() -> None:
    manager = Manager(Api())
    first = agent("first", "u1", mark=100)
    served(manager, 1, first)
    first.set_mark(120)
    manager.pass_time(10, agents=True)
    served(manager, 2, agent("second", "u1", last=1, mark=50))
    assert manager.api.get("w1").status.restored_session == 2
    served(manager, 3, agent("third", "u1", last=2, mark=60))
    assert manager.api.get("w1").status.restored_session == 2


@pytest.mark.parametrize("compares", [True, False])
def test_hd_89_a_session_is_resumed_only_when_its_inventory_has_been_compared(compares: bool) -> None:
    manager = Manager(Api())
    manager.compares = compares
    served(manager, 1, agent("first", "u1"))
    manager.dial_again(1, 2)
    manager.pass_time(3, agents=True)
    opened = [each.resumed for each in manager.upcalls if isinstance(each, LinkOpened)]
    assert opened == [False, compares]
    assert sum(isinstance(each, PlacementsInventoried) for each in manager.upcalls) == (1 if compares else 2)
