"""A person's word that nothing runs any more on a worker cluster: when it counts, and how it is answered (R2)."""

from __future__ import annotations

import pytest

from gatelift.core.clusters.fencing import (
    ANNOTATION_FENCE_REFUSED,
    ANNOTATION_FENCED_AFTER,
    ANNOTATION_FENCED_BY,
    ANNOTATION_FENCED_THROUGH,
)
from gatelift.core.clusters.link_values import FencedByPerson, LinkState
from gatelift_kube.deciding.writes import ObjectSeen
from gatelift_kube.objects import conditions
from gatelift_kube.values.resources import WORKER_CLUSTER
from gatelift_wire.sessions.session_agent import AgentSession
from support.manager.links_bench import Manager
from support.manager.worker_cluster_api import Api


def says_fenced(manager: Manager, through: str, who: str = "ada", **more: str) -> None:
    manager.api.annotate("w1", {ANNOTATION_FENCED_THROUGH: through, ANNOTATION_FENCED_BY: who, **more})
    manager.event(ObjectSeen(WORKER_CLUSTER, manager.api.get("w1"), b""))


def refused(manager: Manager) -> str:
    """Return what stands in the annotations and in the condition after a refused word; the word itself is gone."""
    found = manager.api.get("w1")
    assert ANNOTATION_FENCED_THROUGH not in found.metadata.annotations
    shown = conditions.find(found.status.conditions, "Fenced")
    assert shown is not None
    assert (shown.status, shown.reason) == ("False", "Refused")
    assert shown.message == found.metadata.annotations[ANNOTATION_FENCE_REFUSED]
    return shown.message


def test_a_persons_word_counts_for_the_session_a_cluster_is_lost_in_and_is_recorded_with_who_said_it() -> None:
    manager = Manager(Api())
    manager.dial()
    manager.pass_time(80)
    says_fenced(manager, "1")
    manager.pass_time(3)
    (fenced,) = [each for each in manager.upcalls if isinstance(each, FencedByPerson)]
    assert (fenced.through_session, fenced.who) == (1, "ada")
    found = manager.api.get("w1")
    assert (found.status.fenced_through_session, found.status.fenced_by) == (1, "ada")
    assert not found.metadata.annotations, "what was taken is taken away"
    shown = conditions.find(found.status.conditions, "Fenced")
    assert shown is not None
    assert (shown.status, shown.reason) == ("True", "SaidByPerson")
    view = manager.links.state("w1")
    assert view is not None
    assert (view.fenced_through, view.fenced_by) == (1, "ada")


def test_hd_11_a_word_about_a_connected_cluster_is_refused_and_does_not_count_when_it_is_lost_later() -> None:
    manager = Manager(Api())
    manager.dial()
    manager.pass_time(3, agents=True)
    says_fenced(manager, "1")
    manager.pass_time(3, agents=True)
    assert "not lost" in refused(manager)
    manager.pass_time(80)
    assert manager.kinds()[-1] == "LinkLost"
    assert "FencedByPerson" not in manager.kinds()


def test_hd_11_a_word_said_while_the_agent_greets_is_refused_and_never_fires() -> None:
    manager = Manager(Api())
    manager.dial()
    manager.pass_time(80)
    manager.hold_writes = True
    manager.dial(2, agent=AgentSession(instance="agent-2", last_session=1, last_term=1))
    says_fenced(manager, "1")
    manager.hold_writes = False
    (write,) = manager.held
    manager.event(manager.api.write(write))  # a conflict: the word was there first
    manager.pass_time(5, agents=True)
    assert manager.agents[2].session == 2
    assert "not lost" in refused(manager)
    manager.pass_time(80)
    assert manager.kinds()[-1] == "LinkLost"
    manager.pass_time(200)
    assert "FencedByPerson" not in manager.kinds()
    assert manager.api.get("w1").status.fenced_through_session == 0


@pytest.mark.parametrize("text", ["99", "0", "-1", "one", "9" * 19, ""])
def test_hd_11_a_word_about_another_session_than_the_one_it_is_lost_in_is_refused(text: str) -> None:
    manager = Manager(Api())
    manager.dial()
    manager.pass_time(80)
    says_fenced(manager, text)
    manager.pass_time(5)
    assert "gatelift cluster fenced w1" in refused(manager)
    assert "FencedByPerson" not in manager.kinds()


def test_hd_11_a_word_that_lay_there_before_the_loss_is_answered_before_the_loss_is_written() -> None:
    api = Api()
    manager = Manager(api)
    manager.dial()
    manager.pass_time(3, agents=True)
    manager.hold_writes = True
    says_fenced(manager, "1")
    manager.pass_time(80)
    manager.hold_writes = False
    manager.event(api.write(manager.held[0]))
    manager.pass_time(5)
    assert "LinkLost" in manager.kinds()
    assert "FencedByPerson" not in manager.kinds()


def test_hd_12_each_leader_comes_again_to_what_a_person_said_while_the_cluster_is_lost_in_that_session() -> None:
    """HD-54, at its end: a person's word is dropped when the cluster returns."""
    api = Api()
    first = Manager(api)
    first.dial()
    first.pass_time(80)
    says_fenced(first, "1")
    second = Manager(api, term=2, instance="m2")
    view = second.links.state("w1")
    assert view is not None
    assert view.fenced_through == 0, "it may be behind until it has written itself"
    second.pass_time(80)
    (fenced,) = [each for each in second.upcalls if isinstance(each, FencedByPerson)]
    assert (fenced.through_session, fenced.who) == (1, "ada")
    second.dial(1, agent=AgentSession(instance="agent-2", last_session=1, last_term=1))
    second.pass_time(3, agents=True)
    view = second.links.state("w1")
    assert view is not None
    assert view.fenced_through == 0, "inventories decide from here on"
    second.pass_time(80)
    view = second.links.state("w1")
    assert view is not None
    assert (view.state, view.fenced_through) == (LinkState.LOST, 0)


def test_hd_13_a_word_ends_nothing_before_it_is_written_and_nothing_when_its_write_conflicts() -> None:
    """HD-54: a person's word only after its conditional write."""
    manager = Manager(Api())
    manager.dial()
    manager.pass_time(80)
    manager.hold_writes = True
    says_fenced(manager, "1")
    (write,) = manager.held
    assert not said(manager), "it is not written yet"
    manager.api.put("w1", spec={"weight": 2})  # somebody else was first
    manager.event(manager.api.write(write))
    assert not said(manager), "a conflict ends nothing"
    assert manager.api.get("w1").status.fenced_through_session == 0
    manager.event(ObjectSeen(WORKER_CLUSTER, manager.api.get("w1"), b""))
    manager.held.clear()
    manager.pass_time(3)
    manager.event(manager.api.write(manager.held[0]))
    assert [(word.through_session, word.who) for word in said(manager)] == [(1, "ada")]


def said(manager: Manager) -> list[FencedByPerson]:
    return [each for each in manager.upcalls if isinstance(each, FencedByPerson)]


def says_after(manager: Manager, through: str, after: str) -> None:
    says_fenced(manager, through, "bob", **{ANNOTATION_FENCED_AFTER: after})
    manager.pass_time(3)


def test_hd_180_after_a_restore_the_same_word_is_taken_once_more_and_names_what_was_found() -> None:
    """HD-180: said in the restored record already; it was answered without being written."""
    manager = Manager(Api())
    manager.dial()
    manager.pass_time(80)
    says_fenced(manager, "1")
    manager.pass_time(3)
    assert manager.api.get("w1").status.fenced_after == ""
    for after in ("s1", "s2"):
        says_after(manager, "1", after)
        found = manager.api.get("w1")
        said = found.status
        assert (said.fenced_through_session, said.fenced_by) == (1, "bob")
        assert (said.fenced_after, said.fenced_after_through) == (after, 1)
        assert not found.metadata.annotations
    before = manager.writes
    says_after(manager, "1", "s2")
    assert manager.writes == before + 1, "said again after that it is answered, and not written again"
    says_fenced(manager, "1")
    manager.pass_time(3)
    assert manager.api.get("w1").status.fenced_after == "s2", "a word that knows of no restore leaves it"


def test_hd_180_a_word_after_a_restore_about_a_cluster_that_is_back_is_refused() -> None:
    """HD-180: that cluster answers itself."""
    manager = Manager(Api())
    manager.dial()
    manager.pass_time(80)
    says_fenced(manager, "1")
    manager.pass_time(3)
    manager.dial(2, agent=AgentSession(instance="agent-2", last_session=1, last_term=1))
    manager.pass_time(3, agents=True)
    says_fenced(manager, "1", **{ANNOTATION_FENCED_AFTER: "s1"})
    manager.pass_time(3, agents=True)
    assert "not lost" in refused(manager)
    assert manager.api.get("w1").status.fenced_after == ""
