"""What a worker says of itself, and what is recorded of its sessions: the one never keeps the other from being written.

`support.manager.worker_cluster_api.Api` holds each status against the CRD that is installed.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from gatelift.core.api import events, informing
from gatelift.core.clusters.fencing import ANNOTATION_FENCED_BY, ANNOTATION_FENCED_THROUGH
from gatelift.core.clusters.link_values import LinkState
from gatelift_kube.deciding.writes import ObjectSeen
from gatelift_kube.objects import conditions
from gatelift_kube.values.resources import WORKER_CLUSTER
from gatelift_wire.values import limits
from gatelift_wire.values.inventory import ForeignRun
from gatelift_wire.values.messages import Capacity, CapacityEntry, Frame, Hello
from support.agent.hostile_words import hostile
from support.calls import calls_of
from support.manager.links_bench import Manager
from support.manager.worker_cluster_api import Api

GOOD = CapacityEntry(flavor="default", resource="cpu", nominal=8000, used=0, largest_fit=8000)
RUN = ForeignRun(origin="o", kind="Pod", namespace="n", name="p", count=1)


def serving(api: Api | None = None) -> Manager:
    manager = Manager(api or Api())
    manager.dial()
    manager.pass_time(3, agents=True)
    return manager


def shown(manager: Manager, type_: str = informing.CONDITION) -> tuple[str, str]:
    found = conditions.find(manager.api.get("w1").status.conditions, type_)
    return (found.status, found.message) if found is not None else ("", "")


def comes_back_and_is_lost(manager: Manager) -> None:
    """Look whether sessions and losses are recorded as if nothing had been said."""
    before = manager.api.get("w1").status.session
    manager.agents.clear()
    manager.dial(2)
    manager.pass_time(3, agents=True)
    assert manager.api.get("w1").status.session == before + 1
    assert manager.agents[2].live
    manager.agents.clear()
    manager.pass_time(80)
    view = manager.links.state("w1")
    assert view is not None
    assert view.state is LinkState.LOST
    assert shown(manager, "Connected")[0] == "False"


@pytest.mark.parametrize("one", hostile(GOOD), ids=repr)
def test_hd_112_no_value_of_a_capacity_keeps_a_session_or_a_loss_from_being_recorded(one: CapacityEntry) -> None:
    manager = serving()
    manager.report(1, Capacity(entries=(one, replace(GOOD, resource="memory"), replace(GOOD, resource="memory"))))
    manager.pass_time(3, agents=True)
    assert "memory" in {each.resource for each in manager.api.get("w1").status.capacity}
    comes_back_and_is_lost(manager)
    assert manager.api.refused == []


@pytest.mark.parametrize("one", hostile(RUN), ids=repr)
def test_hd_112_no_value_of_a_run_of_others_keeps_a_session_or_a_loss_from_being_recorded(one: ForeignRun) -> None:
    manager = serving()
    manager.report(1, Capacity(foreign=(one,) * limits.FOREIGN_MAX))
    manager.pass_time(3, agents=True)
    comes_back_and_is_lost(manager)
    assert manager.api.refused == []


@pytest.mark.parametrize("served", [False, True], ids=["first", "beside who is served"])
@pytest.mark.parametrize("one", hostile(Hello(instance="i")), ids=repr)
def test_hd_112_no_value_of_a_greeting_makes_a_status_that_is_refused(one: Hello, *, served: bool) -> None:
    manager = serving() if served else Manager(Api())
    manager.event(events.AgentStreamOpened(stream_id=5, cluster="w1", key_digest="k"))
    manager.event(events.AgentFrameArrived(stream_id=5, frame=Frame(session=0, control=(one,))))
    manager.pass_time(3, agents=True)
    assert manager.api.refused == []


def test_hd_112_what_a_record_cannot_hold_is_left_out_and_told_until_it_is_gone() -> None:
    manager = serving()
    bad = replace(GOOD, flavor="Default_Flavor")
    manager.report(1, Capacity(entries=(bad, GOOD)))
    manager.pass_time(3, agents=True)
    status, message = shown(manager)
    assert status == "True"
    assert "1 of 2 entries" in message
    assert "capacity[0] flavor must match" in message
    assert "'Default_Flavor'" in message
    assert len([note for note in manager.notes if "not shown" in note]) == 1
    manager.report(1, Capacity(entries=(GOOD,)))
    manager.pass_time(3, agents=True)
    assert shown(manager)[0] == "False"


def test_is_10_a_capacity_is_looked_through_when_it_is_written_and_not_each_time_it_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked_through: list[Capacity] = []
    look_through = informing.shown

    def counted(said: Capacity) -> informing.ShownCapacity:
        looked_through.append(said)
        return look_through(said)

    monkeypatch.setattr(informing, "shown", counted)
    manager = serving()
    for used in range(1, 51):
        manager.report(1, Capacity(entries=(replace(GOOD, used=used),)))
    manager.pass_time(3, agents=True)
    assert len(looked_through) <= 2
    assert manager.api.get("w1").status.capacity[0].used == "50m"


CALLS_AN_ENTRY_MAX = 100


def test_hd_695_the_largest_capacity_is_looked_through_at_some_microseconds_an_entry() -> None:
    """HD-695: asked anew for each entry, what fields a capacity has held everybody for 60 to 100 ms."""
    entries = tuple(replace(GOOD, flavor=f"f-{number}") for number in range(limits.CAPACITY_ENTRIES_MAX))
    calls, found = calls_of(lambda: informing.shown(Capacity(entries=entries)))
    assert len(found.capacity) == len(entries)
    assert calls <= CALLS_AN_ENTRY_MAX * len(entries)


def test_hd_112_more_than_a_record_has_room_for_is_left_out() -> None:
    manager = serving()
    entries = tuple(replace(GOOD, resource=f"{number}-" + "r" * 300) for number in range(limits.CAPACITY_ENTRIES_MAX))
    manager.report(1, Capacity(entries=entries))
    manager.pass_time(3, agents=True)
    assert f"more than {informing.CAPACITY_BYTES_MAX} bytes" in shown(manager)[1]
    comes_back_and_is_lost(manager)
    assert manager.api.refused == []


def test_hd_112_what_the_api_server_refuses_all_the_same_is_left_out_at_once() -> None:
    manager = serving()
    manager.api.refuses = "capacity"
    manager.report(1, Capacity(entries=(GOOD,)))
    manager.pass_time(3, agents=True)
    assert "The API server refused" in shown(manager)[1]
    comes_back_and_is_lost(manager)
    assert len(manager.api.refused) == 1, "nothing of it is tried again for a while"
    manager.api.refuses = ""
    manager.pass_time(informing.AGAIN_SECONDS)
    manager.dial(3)
    manager.pass_time(3, agents=True)
    assert shown(manager)[0] == "False"
    assert manager.api.get("w1").status.capacity


def test_hd_112_a_person_with_a_long_name_says_fenced() -> None:
    manager = serving()
    manager.agents.clear()
    manager.pass_time(80)
    manager.api.annotate("w1", {ANNOTATION_FENCED_THROUGH: "1", ANNOTATION_FENCED_BY: "a" * 1000})
    manager.event(ObjectSeen(WORKER_CLUSTER, manager.api.get("w1"), b""))
    manager.pass_time(3)
    assert manager.api.get("w1").status.fenced_through_session == 1
    assert manager.api.refused == []
