"""A driver makes its workers at the worker cluster: taken in by shape within the room rule, ended with the group."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift_agent.core.advancing.adopting import BEYOND_SECONDS
from gatelift_kube.deciding.writes import Delete, Patch, WriteError
from gatelift_kube.values.resources import NAMESPACE, POD, PRIORITY_CLASS
from gatelift_wire.values import messages as m
from support.agent.driver_stage import DriverStage, asking, driven
from support.agent.group_stage import member
from support.agent.namespaces import node_heard
from support.agent.values import KEY


def test_dw_6_a_worker_that_fits_its_set_is_taken_in_and_let_go() -> None:
    stage = driven()
    stage.makes("w1")
    meta = stage.pod("w1")["metadata"]
    assert stage.let_go() == ["a", "w1"]
    assert (meta["labels"]["gatelift.dev/workload-uid"], meta["labels"]["gatelift.dev/epoch"]) == (KEY.uid, "1")
    assert "gatelift.dev/report" in meta["finalizers"]
    assert stage.counts() == m.PodSetCounts(name="workers", active=1, remaining=1)


def test_they_have_no_pod_at_home_so_no_report_names_them() -> None:
    stage = driven()
    stage.makes("w1")
    stage.run("w1")
    stage.finish("w1", "Succeeded")
    assert "w1" not in {each.name for each in stage.peer.of(m.ObjectReport)}
    stage.send(m.Stop(key=KEY, reason="Preempted"))
    stage.finish("a", "Failed")
    (stopped,) = stage.peer.of(m.Stopped)
    assert {each.name for each in stopped.objects} == {"a"}


def test_dw_2_what_is_beyond_the_count_is_ended_unused_and_counted() -> None:
    stage = driven(workers=2)
    for name in ("w1", "w2", "w3"):
        stage.makes(name)
    assert stage.let_go() == ["a", "w1", "w2"]
    assert stage.waiting() == ["w3"]
    stage.pass_seconds(BEYOND_SECONDS + 2.0)
    assert "w3" not in stage.there()
    assert stage.counts() == m.PodSetCounts(name="workers", active=2, remaining=2, rejected=1)


@pytest.mark.parametrize(
    ("spec", "role", "why"),
    [
        (asking("2"), "workers", "spec.requests.cpu: 2, declared 1"),
        ({**asking("1"), "nodeSelector": {"disk": "ssd"}}, "workers", "spec.nodeSelector"),
        ({**asking("1"), "tolerations": [{"key": "gpu", "operator": "Exists"}]}, "workers", "spec.tolerations"),
        ({**asking("1"), "priorityClassName": "high"}, "workers", "spec.priorityClassName"),
        ({**asking("1"), "runtimeClassName": "kata"}, "workers", "spec.runtimeClassName"),
        (asking("1"), "helpers", "role helpers: the driver declares no set of that name"),
        (asking("1"), "driver", "role driver: the driver declares no set of that name"),
    ],
    ids=["requests", "selector", "tolerations", "priority", "runtime", "no such role", "the driver's own"],
)
def test_dw_3_what_has_another_shape_is_never_let_go_and_is_told_once(
    spec: dict[str, object], role: str, why: str
) -> None:
    stage = driven()
    stage.create(PRIORITY_CLASS, {"metadata": {"name": "high"}, "value": 7})
    stage.makes("w1", role, spec)
    stage.makes("w2")
    stage.pass_seconds(700.0)
    assert stage.let_go() == ["a", "w2"]
    assert "gatelift.dev/origin" not in stage.pod("w1")["metadata"]["labels"]
    told = [each.message for each in stage.told if each.reason == "GroupShapeMismatch"]
    assert len(told) == 1
    assert why in told[0]


@pytest.mark.parametrize(
    "said",
    [{"gated": False}, {"labels": {"gatelift.dev/made-here": "another"}}, {"labels": {"gatelift.dev/made-here": ""}}],
    ids=["without the gate", "marked for another group", "without a mark"],
)
def test_what_the_policy_did_not_gate_is_never_taken(said: dict[str, Any]) -> None:
    """HD-380."""
    stage = driven()
    stage.makes("w1", **said)
    stage.pass_seconds(30.0)
    assert "gatelift.dev/origin" not in stage.pod("w1")["metadata"]["labels"]
    assert [write for write in stage.written(Patch, POD) if write.ref.key.name == "w1"] == []
    assert stage.written(Delete, POD) == []


def test_where_the_setting_is_off_nothing_is_taken() -> None:
    """HD-380."""
    stage = driven(adopts=False)
    stage.adopts = True  # the watch shows it all the same
    stage.makes("w1")
    stage.pass_seconds(30.0)
    assert stage.waiting() == ["w1"]
    assert [each for each in stage.peer.of(m.CountsReport) if each.made_here] == []
    assert not stage.peer.greetings[-1].adopts


def test_in_a_namespace_that_accepts_nothing_any_more_nothing_is_taken() -> None:
    """HD-380."""
    stage = driven()
    body = b'{"metadata":{"labels":{"gatelift.dev/accept":null}}}'
    kind = stage.store.kinds.of(NAMESPACE)
    stage.store.patch(kind, "", "team-a", body, "application/merge-patch+json", stage.now)
    stage.settle()
    stage.makes("w1")
    assert stage.waiting() == ["w1"]


def test_what_names_a_group_that_is_not_placed_here_stays_gated_and_is_ended_after_a_while() -> None:
    """HD-381."""
    stage = driven()
    stage.makes("w1", group="others")
    stage.pass_seconds(590.0)
    assert stage.waiting() == ["w1"]
    stage.pass_seconds(20.0)
    assert stage.there().keys() == {"a"}


def test_while_there_is_no_session_what_waits_for_its_group_is_not_ended() -> None:
    """HD-381: a cut is no reason to end what a new epoch may take in."""
    stage = driven()
    stage.makes("w1", group="others")
    stage.cut_stream()
    stage.pass_seconds(3000.0)
    assert stage.waiting() == ["w1"]


def test_it_waits_until_its_driver_runs() -> None:
    stage = DriverStage()
    stage.start()
    stage.hold = lambda write: isinstance(write, Patch) and write.ref.resource == POD
    stage.group("a")
    stage.makes("w1")
    assert stage.waiting() == ["a", "w1"]
    stage.hold = lambda _write: False
    stage.land()
    assert stage.let_go() == ["a", "w1"]


@pytest.mark.parametrize("cut", ["no session", "not confirmed"])
def test_r1_none_is_taken_in_or_let_go_without_the_managers_word(cut: str) -> None:
    stage = driven()
    if cut == "no session":
        stage.cut_stream()
        stage.pass_seconds(30.0)
    else:
        stage.peer.confirm_all = False
        stage.cut_stream()
        stage.mend(resume=False)
    stage.makes("w1")
    stage.pass_seconds(5.0)
    assert stage.let_go() == ["a"]
    assert "gatelift.dev/origin" not in stage.pod("w1")["metadata"]["labels"]


def test_one_that_was_not_marked_as_the_placements_is_not_let_go() -> None:
    """HD-382: after a restart nobody would know it, and its slot would be another's."""
    stage = driven()
    stage.idle = _takes_in  # a webhook of the cluster undoes it
    stage.makes("w1")
    stage.pass_seconds(30.0)
    assert stage.waiting() == ["w1"]
    stage.idle = lambda _write: False
    stage.pass_seconds(60.0)
    assert stage.let_go() == ["a", "w1"]


def test_homes_own_members_come_first_whether_they_are_made_or_not() -> None:
    """HD-383: what is made here takes no place that home has given to a member."""
    stage = driven(workers=2)
    stage.hold = lambda write: write.ref.key.name in {"b", "c"}
    stage.say(join=[_worker("b"), _worker("c")])
    stage.makes("w1")
    stage.pass_seconds(BEYOND_SECONDS + 1.0)
    assert "w1" not in stage.there()
    stage.hold = lambda _write: False
    stage.land()
    assert stage.let_go() == ["a", "b", "c"]


def test_what_has_the_name_of_homes_own_is_not_taken_for_it_and_gives_way() -> None:
    """HD-383, Y8."""
    stage = driven(workers=2)
    stage.makes("b")
    stage.run("b")
    stage.say(join=[_worker("b")])
    assert stage.gone() == []
    stage.finish("b", "Failed")
    assert stage.there()["b"] == "home-b"
    assert stage.let_go() == ["a", "b"]


def test_one_that_leaves_keeps_its_slot_and_another_waits_for_it() -> None:
    stage = driven(workers=1)
    stage.makes("w1")
    stage.run("w1")
    stage.remove(POD, "w1", grace=30)
    stage.makes("w2")
    assert "w2" not in stage.let_go()
    stage.finish("w1", "Failed")
    assert stage.let_go() == ["a", "w2"]
    assert "w1" not in stage.there()


def test_while_it_is_asked_whether_one_is_there_who_comes_is_not_turned_away() -> None:
    """A watch by label says of what lost its label that it is gone."""
    stage = driven(workers=1)
    stage.makes("w1")
    stage.run("w1")
    stage.edit("w1", {"metadata": {"finalizers": []}})
    stage.hold = lambda write: write.ref.key.name == "w1"
    stage.remove(POD, "w1", grace=0)
    stage.makes("w2")
    stage.pass_seconds(BEYOND_SECONDS + 1.0)
    assert stage.waiting() == ["w2"]
    stage.hold = lambda _write: False
    stage.land()
    assert stage.let_go() == ["a", "w2"]


def test_who_replaces_one_early_is_not_turned_away_where_that_ones_end_is_seen_later() -> None:
    """Another watch shows who leaves: the two have no order."""
    stage = driven(workers=1)
    stage.makes("w1")
    stage.run("w1")
    stage.makes("w2")
    stage.pass_seconds(BEYOND_SECONDS - 1.0)
    stage.remove(POD, "w1", grace=30)
    stage.pass_seconds(20.0)
    assert stage.waiting() == ["w2"]
    stage.finish("w1", "Failed")
    assert stage.let_go() == ["a", "w2"]


def test_who_succeeded_keeps_its_place_and_who_failed_gives_it_away() -> None:
    stage = driven(workers=2)
    for name in ("w1", "w2"):
        stage.makes(name)
        stage.run(name)
    stage.finish("w1", "Succeeded")
    stage.finish("w2", "Failed")
    stage.makes("w3")
    stage.makes("w4")
    stage.pass_seconds(BEYOND_SECONDS + 2.0)
    assert "w3" in stage.let_go()
    assert "w4" not in stage.there()
    counts = stage.counts()
    assert (counts.active, counts.succeeded, counts.failed, counts.rejected) == (1, 1, 1, 1)


def test_many_that_come_and_go_are_not_remembered() -> None:
    """A driver that grows and shrinks makes thousands in its life."""
    stage = driven(workers=2)
    for number in range(20):
        stage.makes(f"w{number}")
        stage.run(f"w{number}")
        stage.remove(POD, f"w{number}", grace=30)
        stage.finish(f"w{number}", "Failed")
    stage.pass_seconds(5.0)
    placement = stage.placement()
    assert placement is not None
    assert list(placement.objects) == ["a"]
    assert stage.counts().remaining == 0


def test_dw_5_its_end_counts_and_what_vanished_may_run_until_its_node_is_heard_of() -> None:
    """P10."""
    stage = driven(workers=1)
    node_heard(stage, 1)
    stage.makes("w1")
    stage.run("w1")
    stage.edit("w1", {"metadata": {"finalizers": []}})
    stage.remove(POD, "w1", grace=0)
    stage.pass_seconds(5.0)
    assert (stage.counts().active, stage.counts().terminating) == (0, 1)
    stage.makes("w2")
    assert "w2" not in stage.let_go()


def test_all_are_stopped_with_the_group_before_that_is_said() -> None:
    stage = driven(workers=2)
    for name in ("w1", "w2"):
        stage.makes(name)
        stage.run(name)
    stage.makes("w3", spec=asking("7"))
    stage.send(m.Stop(key=KEY, reason="Preempted"))
    assert "w3" not in stage.there()
    stage.finish("a", "Failed")
    stage.finish("w1", "Failed")
    assert stage.peer.of(m.Stopped) == []
    stage.finish("w2", "Failed")
    assert len(stage.peer.of(m.Stopped)) == 1
    stage.send(m.Forget(key=KEY))
    assert stage.there() == {}


def test_one_whose_write_is_under_way_as_its_group_is_stopped_is_stopped_too() -> None:
    """R7: it lands after the stop was decided, and is not let go."""
    stage = driven()
    stage.hold = _takes_in
    stage.makes("w1")
    stage.send(m.Stop(key=KEY, reason="Preempted"))
    stage.finish("a", "Failed")
    assert stage.peer.of(m.Stopped) == []
    stage.hold = lambda _write: False
    stage.land()
    stage.pass_seconds(5.0)
    assert "w1" not in stage.let_go()
    assert len(stage.peer.of(m.Stopped)) == 1


def test_what_comes_while_its_group_is_being_ended_is_ended() -> None:
    """HD-381: the next epoch starts from its driver alone."""
    stage = driven()
    stage.send(m.Stop(key=KEY, reason="Preempted"))
    stage.makes("w1")
    assert "w1" not in stage.there()


def test_what_an_earlier_driver_made_is_none_of_the_next_ones() -> None:
    """HD-381."""
    stage = DriverStage()
    stage.start()
    stage.makes("w1")
    stage.pass_seconds(5.0)
    stage.group("a")
    stage.run("a")
    stage.makes("w2")
    assert stage.let_go() == ["a", "w2"]
    assert "w1" not in stage.there()


def test_the_inventory_counts_them() -> None:
    stage = driven(workers=3)
    stage.makes("w1")
    stage.makes("w2")
    stage.cut_stream()
    stage.mend(resume=False)
    (entry,) = stage.peer.inventories[-1]
    assert dict(entry.counts) == {"driver": 1, "workers": 2}
    assert entry.lifted


@pytest.mark.parametrize("error", list(WriteError), ids=lambda each: each.name)
@pytest.mark.parametrize("which", ["taken in", "turned away"])
def test_a_write_that_fails_is_tried_again_with_pauses(which: str, error: WriteError) -> None:
    stage = driven(workers=1 if which == "taken in" else 0)
    stage.fail = lambda write: error if write.ref.key.name == "w1" and isinstance(write, Patch | Delete) else None
    stage.makes("w1")
    stage.pass_seconds(120.0)
    tried = [write for write in stage.writes if write.ref.key.name == "w1"]
    assert 1 <= len(tried) <= 40
    assert "w1" not in stage.let_go()


def _takes_in(write: object) -> bool:
    return isinstance(write, Patch) and b"placed-as" in write.body


def _worker(name: str) -> m.ObjectTemplate:
    return member(name, pod_set="workers")
