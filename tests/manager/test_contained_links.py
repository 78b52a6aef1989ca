"""An exception about one cluster ends its sessions, typed, and no other cluster's (IS-4)."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift.core.api import events
from gatelift.core.api.commands import EnrolmentVerdict
from gatelift.core.api.counter import Counter
from gatelift.core.clusters.cluster_facts import Facts
from gatelift.core.clusters.conversation import Conversation
from gatelift.core.clusters.enrolment import Enrolments
from gatelift.core.clusters.link import Link
from gatelift.core.clusters.link_values import LinkLost, LinkState
from gatelift_kube.deciding.contained import Contained
from gatelift_kube.deciding.writes import ObjectSeen
from gatelift_kube.values.resources import WORKER_CLUSTER
from gatelift_wire.values.refusals import CloseReason
from support.manager.links_bench import Manager
from support.manager.worker_cluster_api import Api
from support.on_purpose import OnPurposeError


@pytest.fixture(autouse=True)
def _contained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Contained, "surfaces", False)


@pytest.fixture
def manager() -> Manager:
    api = Api()
    api.put("w2", spec={}, status={"keyDigest": "k"})
    made = Manager(api)
    made.dial(1, cluster="w1")
    made.dial(2, cluster="w2")
    made.pass_time(3, agents=True)
    return made


def break_link(monkeypatch: pytest.MonkeyPatch, name: str, *, cluster: str = "w1", times: int = 10_000) -> list[str]:
    """Let a step of one cluster's link raise, so many times; return what has raised, as it grows."""
    part: type[Link | Conversation] = Link if hasattr(Link, name) else Conversation
    function = getattr(part, name)
    raised: list[str] = []

    def faulty(link: Link | Conversation, *args: Any, **named: Any) -> Any:
        if link.name == cluster and len(raised) < times:
            raised.append(name)
            raise OnPurposeError("on purpose")
        return function(link, *args, **named)

    monkeypatch.setattr(part, name, faulty)
    return raised


@pytest.mark.parametrize("name", ["tick", "stream"])
def test_is_4_what_raises_about_one_cluster_ends_its_session_and_no_others(
    manager: Manager, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    with monkeypatch.context() as broken:
        break_link(broken, name)
        manager.pass_time(120, agents=True)
        assert manager.closed.get(1) is CloseReason.SHUTTING_DOWN
        assert 2 not in manager.closed
        assert manager.agents[2].live
    manager.dial(3, cluster="w1")
    manager.pass_time(3, agents=True)
    assert manager.agents[3].live, "its next session begins"


def test_is_4_a_link_that_cannot_even_break_off_is_closed(manager: Manager, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as broken:
        break_link(broken, "tick")
        break_link(broken, "break_off")
        manager.pass_time(40, agents=True)
    assert manager.closed.get(1) is CloseReason.SHUTTING_DOWN
    assert manager.agents[2].live


def test_is_4_what_raises_in_leadership_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Manager(Api())

    def raises(*_: Any) -> Any:
        raise OnPurposeError("on purpose")

    monkeypatch.setattr(Counter, "of", raises)
    with pytest.raises(OnPurposeError):
        made.event(events.LeadershipGained(term=9))


def drop(manager: Manager, stream: int) -> None:
    """Cut an agent off."""
    del manager.agents[stream]
    manager.event(events.AgentStreamClosed(stream_id=stream, text="the stream broke"))


def greets_anew(manager: Manager, stream: int) -> None:
    """Let the agent of w1 dial again, which it does at once."""
    manager.dial(stream, cluster="w1")
    manager.pass_time(5, agents=True)


def is_shown(manager: Manager, condition: str) -> bool:
    found = manager.api.get("w1").status.conditions
    return any(each.type == condition and each.status == "True" for each in found)


@pytest.mark.parametrize("name", ["wrote", "opened", "welcome", "_greeted", "_take_effect", "_pump"])
@pytest.mark.parametrize("times", [1, 2])
def test_is_4_a_cluster_whose_link_raises_as_its_agent_greets_is_served_by_the_next_greeting(
    manager: Manager, monkeypatch: pytest.MonkeyPatch, name: str, times: int
) -> None:
    """safety-11: the answer to one write of its status raised, and it was neither served nor lost, for good."""
    raised = break_link(monkeypatch, name, times=times)
    drop(manager, 1)
    for stream in range(3, 9):
        greets_anew(manager, stream)
        if manager.agents[stream].live:
            break
        assert manager.closed.get(stream) is CloseReason.SHUTTING_DOWN, "typed"
    assert len(raised) == times
    assert manager.agents[stream].live
    assert is_shown(manager, "Connected")
    assert 2 not in manager.closed


@pytest.mark.parametrize("name", ["wrote", "closed", "_take_effect", "_turn"])
def test_is_4_a_cluster_whose_link_raises_as_it_is_cut_off_is_lost_as_ever(
    manager: Manager, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    raised = break_link(monkeypatch, name, times=1)
    drop(manager, 1)
    manager.pass_time(150, agents=True)
    assert raised
    assert manager.links.state("w1").state is LinkState.LOST  # type: ignore[union-attr]
    assert any(isinstance(each, LinkLost) and each.cluster == "w1" for each in manager.upcalls), "and told so"


@pytest.mark.parametrize("name", ["lead", "seen"])
def test_is_4_what_a_link_was_to_hear_once_is_said_again(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    api = Api()
    api.put("w2", spec={}, status={"keyDigest": "k"})
    raised = break_link(monkeypatch, name, times=3)
    made = Manager(api)
    made.pass_time(20, agents=True)
    assert len(raised) == 3
    made.dial(1, cluster="w1")
    made.dial(2, cluster="w2")
    made.pass_time(3, agents=True)
    assert made.agents[1].live
    assert made.agents[2].live


def test_is_4_what_a_link_could_not_take_of_its_object_is_taken_again(
    manager: Manager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key that was revoked is refused, though that raised as it came in."""
    raised = break_link(monkeypatch, "_evict", times=1)
    manager.api.put("w1", spec={"revoked": True}, status=manager.api.objects["w1"].get("status", {}))
    manager.event(ObjectSeen(WORKER_CLUSTER, manager.api.get("w1"), b""))
    manager.pass_time(5, agents=True)
    assert raised
    manager.dial(3, cluster="w1")
    manager.pass_time(3, agents=True)
    assert not manager.agents[3].live
    assert manager.closed.get(3) is CloseReason.REVOKED


def test_is_4_a_link_that_cannot_say_its_deadline_keeps_no_other_from_its_leases(
    manager: Manager, monkeypatch: pytest.MonkeyPatch
) -> None:
    raised = break_link(monkeypatch, "next_deadline")
    ended = None
    try:
        manager.pass_time(120, agents=True)
        manager.links.next_deadline()
    except OnPurposeError as error:
        ended = error
    assert raised
    assert ended is None
    assert manager.agents[2].live


def test_is_4_a_request_to_enrol_that_raises_is_answered(manager: Manager, monkeypatch: pytest.MonkeyPatch) -> None:
    def raises(*_: Any) -> Any:
        raise OnPurposeError("on purpose")

    monkeypatch.setattr(Enrolments, "_by_token", raises)
    monkeypatch.setattr(Enrolments, "_renewal", raises)
    asked = events.EnrolmentAsked(request_id=7, cluster="w1", key_digest="k", request=b"csr", token="")
    manager.event(asked)
    assert [(each.request_id, each.verdict) for each in manager.answers] == [(7, EnrolmentVerdict.PENDING)]


def test_is_4_a_version_of_another_object_that_raised_is_news_when_it_is_taken_again(
    manager: Manager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cluster that is lost, and whose WorkerCluster is made anew: that it is lost is written into the new one."""
    drop(manager, 1)
    manager.pass_time(150, agents=True)
    raised: list[object] = []
    adopt = Facts.adopt

    def faulty(facts: Facts, found: Any) -> None:
        if not raised:
            raised.append(found)
            raise OnPurposeError("on purpose")
        adopt(facts, found)

    monkeypatch.setattr(Facts, "adopt", faulty)
    manager.api.objects["w1"]["metadata"]["uid"] = "another"  # type: ignore[index]
    manager.api.put("w1", status={"keyDigest": "k"})
    manager.event(ObjectSeen(WORKER_CLUSTER, manager.api.get("w1"), b""))
    manager.pass_time(10, agents=True)
    assert raised
    assert [each.reason for each in manager.api.get("w1").status.conditions] == ["Lost"]
