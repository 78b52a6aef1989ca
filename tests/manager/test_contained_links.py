"""An exception about one cluster ends its sessions, typed, and no other cluster's (IS-4)."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift.core.api import events
from gatelift.core.api.counter import Counter
from gatelift.core.clusters.link import Link
from gatelift_kube.deciding.contained import Contained
from gatelift_wire.values.refusals import CloseReason
from support.manager.links_bench import Manager
from support.manager.worker_cluster_api import Api


class OnPurposeError(Exception):
    """What a mistake of ours would raise."""


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


def break_link(monkeypatch: pytest.MonkeyPatch, name: str, *, cluster: str = "w1") -> None:
    """Let a step of one cluster's link raise."""
    function = getattr(Link, name)

    def faulty(link: Link, *args: Any, **named: Any) -> Any:
        if link.name == cluster:
            raise OnPurposeError("on purpose")
        return function(link, *args, **named)

    monkeypatch.setattr(Link, name, faulty)


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
