"""HD-300: a namespace that accepts work and that nobody lets the agent list keeps no other one from being served.

What is there cannot be read, so nothing is concluded of it, nor taken in there; once it is listed it is told of.
"""

from __future__ import annotations

from typing import Any

import pytest

from gatelift_agent.core.seeing import unlisted
from gatelift_agent.core.values import events
from gatelift_kube.deciding.writes import Create
from gatelift_kube.values.resources import NAMESPACE, POD
from gatelift_wire.values import messages as m
from gatelift_wire.values.keys import LABEL_ACCEPT, PlacementKey
from gatelift_wire.values.refusals import Refusal
from support.agent.namespaces import running_pod
from support.agent.stage import Stage
from support.agent.values import KEY, NAMESPACE_NAME

SHUT = "shut"
OTHER = PlacementKey("w-2", 1)


def _with_shut() -> Stage:
    """Return a stage whose cluster has one more namespace, without the agent's RoleBinding."""
    stage = Stage()
    stage.create(NAMESPACE, {"metadata": {"name": SHUT, "labels": {LABEL_ACCEPT: "true"}}})
    stage.refused = {SHUT}
    return stage


def _restarted() -> Stage:
    """Return a stage on which a pod runs in a namespace that its agent, which begins anew, may not list any more."""
    stage = running_pod()
    stage.create(NAMESPACE, {"metadata": {"name": "beside", "labels": {LABEL_ACCEPT: "true"}}})
    stage.refused = {NAMESPACE_NAME}
    stage.restart()
    return stage


def _bids(stage: Stage) -> list[m.Bid]:
    return stage.peer.of(m.Bid)


def _accepting(stage: Stage) -> tuple[str, ...]:
    stage.pass_seconds(2.0)
    said: list[m.Capacity] = stage.peer.of(m.Capacity)
    return said[-1].namespaces


def test_hd_300_the_other_namespaces_are_served_and_the_way_out_is_named() -> None:
    stage = _with_shut()
    stage.start()
    stage.place()
    assert len(stage.written(Create)) == 1
    assert _accepting(stage) == (NAMESPACE_NAME,)
    said = [note.text for note in stage.notes if f"namespace {SHUT}" in note.text]
    assert len(said) == 1, "once"
    for text in (said[0], unlisted.summary(stage.machine.world)):
        assert f"kubectl -n {SHUT} apply -k deploy/agent/namespace" in text


def test_hd_300_it_is_served_as_soon_as_it_may_be_listed() -> None:
    stage = _with_shut()
    stage.start()
    stage.let_list(SHUT)
    stage.settle()
    assert _accepting(stage) == (SHUT, NAMESPACE_NAME)
    assert unlisted.summary(stage.machine.world) == ""


def test_hd_300_nothing_is_taken_in_there() -> None:
    stage = _with_shut()
    stage.start()
    stage.send(m.Offer(key=OTHER, kind="Pod", namespace=SHUT, name="p", queue="queue"))
    bid = _bids(stage)[-1]
    assert (bid.kind, bid.refusal) == (m.BidKind.REFUSED, Refusal.NAMESPACE_NOT_ALLOWED)
    assert f"kubectl -n {SHUT} apply -k deploy/agent/namespace" in bid.text
    assert "jobs.batch is forbidden" in bid.text


def test_hd_300_what_runs_there_is_not_called_absent_and_is_told_of_once_it_is_listed() -> None:
    stage = _restarted()
    assert stage.peer.inventories[-1] == ()
    assert stage.peer.unheard[-1], "absence proves nothing"
    stage.pass_seconds(900.0)
    assert stage.machine.world.unheard, "whatever the time"
    stage.let_list(NAMESPACE_NAME)
    stage.settle()
    assert stage.state() == "Running"
    assert stage.peer.of(m.GatesLifted)[-1].key == KEY


@pytest.mark.parametrize("found", [True, False], ids=["it runs", "it is not there"])
def test_hd_300_a_stop_of_what_may_run_there_is_answered_by_what_the_list_shows(found: bool) -> None:
    stage = _restarted()
    stage.send(m.Stop(key=KEY, reason="Deleted"))
    stage.pass_seconds(900.0)
    assert stage.peer.of(m.Stopped) == []
    if not found:
        stage.change(POD, "p", {"metadata": {"finalizers": None}})
        stage.remove(POD, "p", grace=0)
    stage.let_list(NAMESPACE_NAME)
    stage.settle()
    assert bool(stage.peer.of(m.Stopped)) is not found
    if found:
        assert stage.pod()["metadata"]["deletionTimestamp"]


@pytest.mark.parametrize("found", [True, False], ids=["it runs", "it is not there"])
def test_hd_300_a_commit_of_what_may_run_there_is_refused_only_when_it_does_not(found: bool) -> None:
    """Of what it was told long ago the manager may have heard nothing: *Refused* says that nothing runs (R7)."""
    stage = _restarted()
    stage.commit()
    stage.pass_seconds(900.0)
    assert stage.peer.of(m.Refused) == []
    if not found:
        stage.change(POD, "p", {"metadata": {"finalizers": None}})
        stage.remove(POD, "p", grace=0)
    stage.let_list(NAMESPACE_NAME)
    stage.settle()
    assert bool(stage.peer.of(m.Refused)) is not found
    assert stage.state() == ("Running" if found else "none")


def test_hd_300_a_commit_of_an_earlier_session_is_not_obeyed_late() -> None:
    stage = _restarted()
    stage.commit()
    stage.cut_stream()
    stage.mend(resume=False)
    stage.change(POD, "p", {"metadata": {"finalizers": None}})
    stage.remove(POD, "p", grace=0)
    stage.let_list(NAMESPACE_NAME)
    stage.settle()
    assert stage.peer.of(m.Refused) == []


def test_hd_300_without_its_label_it_is_waited_for_no_more() -> None:
    stage = _with_shut()
    stage.start()
    assert stage.machine.world.unlisted == {SHUT}
    kind = stage.store.kinds.of(NAMESPACE)
    bare = b'{"metadata":{"labels":null}}'
    stage.store.patch(kind, "", SHUT, bare, "application/merge-patch+json", stage.now)
    stage.settle()
    assert stage.machine.world.unlisted == set()
    assert unlisted.summary(stage.machine.world) == ""


def test_hd_300_a_namespace_with_placements_is_waited_for_also_without_its_label() -> None:
    stage = _restarted()
    kind = stage.store.kinds.of(NAMESPACE)
    bare = b'{"metadata":{"labels":null}}'
    stage.store.patch(kind, "", NAMESPACE_NAME, bare, "application/merge-patch+json", stage.now)
    stage.settle()
    assert stage.machine.world.unlisted == {NAMESPACE_NAME}
    assert stage.machine.world.unheard


def test_hd_300_what_the_record_names_is_waited_for_also_without_its_label() -> None:
    stage = _with_shut()
    stage.peer.namespaces = (SHUT,)
    stage.start()
    kind = stage.store.kinds.of(NAMESPACE)
    bare = b'{"metadata":{"labels":null}}'
    stage.store.patch(kind, "", SHUT, bare, "application/merge-patch+json", stage.now)
    stage.settle()
    assert stage.machine.world.unlisted == {SHUT}


def test_hd_300_a_list_that_is_only_late_is_waited_for() -> None:
    """What nobody refuses comes: a start that did not wait would call what it has not read unknown."""
    stage = _with_shut()
    stage.listing = False
    stage.post(events.AgentLeadershipGained(term=1, settle_seconds=0.0))
    stage.lead()
    stage.pass_seconds(60.0)
    assert not stage.peer.open


def _summary_of(names: list[str]) -> Any:
    stage = Stage()
    stage.refused = set(names)
    for name in names:
        stage.create(NAMESPACE, {"metadata": {"name": name, "labels": {LABEL_ACCEPT: "true"}}})
    stage.start()
    return unlisted.summary(stage.machine.world)


def test_hd_300_of_many_the_first_are_named() -> None:
    said = _summary_of([f"n{number}" for number in range(5)])
    assert "namespace n2:" in said
    assert said.endswith("; and 2 more")
