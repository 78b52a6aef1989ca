"""How members of a group ended is told before their placement is over, and is known after a restart."""

from __future__ import annotations

import pytest

from gatelift_kube.deciding.writes import WriteError
from gatelift_kube.values.resources import CONFIG_MAP, POD
from gatelift_wire.values import messages as m
from support.agent.group_stage import GroupStage
from support.agent.values import KEY, POD_SPEC, UNSEEN_SECONDS


def running(*names: str) -> GroupStage:
    stage = GroupStage()
    stage.start()
    stage.group(*names)
    for name in names:
        stage.run(name)
    return stage


def told(stage: GroupStage) -> dict[str, bytes]:
    """Return the status that was told last of each user's pod."""
    return {each.owner_uid: each.status for each in stage.peer.of(m.ObjectReport)}


def evicted() -> GroupStage:
    """Return a stage on which one of two has its requests raised by somebody else, and the other one succeeds then."""
    stage = running("a", "b")
    containers = [{**POD_SPEC["containers"][0], "resources": {"requests": {"cpu": "4"}}}]
    stage.change(POD, "b", {"spec": {"containers": containers}}, "resize")
    stage.settle()
    assert stage.state() == "Draining"
    stage.finish("a", "Succeeded")
    assert b"Succeeded" not in told(stage)["home-a"]
    stage.finish("b", "Failed")
    return stage


def last_words(stage: GroupStage) -> list[m.ObjectReport | m.Evicted]:
    return [each for each in stage.peer.heard if isinstance(each, m.ObjectReport | m.Evicted)]


def test_hd_366_who_succeeded_as_all_were_evicted_is_told_before_the_last_word_of_them() -> None:
    stage = evicted()
    assert b"Succeeded" in told(stage)["home-a"]
    said = last_words(stage)
    assert [type(each) for each in said[-2:]] == [m.ObjectReport, m.Evicted]


def test_hd_366_it_is_told_again_in_a_session_that_knows_nothing_of_it() -> None:
    stage = evicted()
    stage.new_session()
    said = last_words(stage)
    ends = {each.owner_uid: each.status for each in said if isinstance(each, m.ObjectReport)}
    assert b"Succeeded" in ends["home-a"]
    assert isinstance(said[-1], m.Evicted)


def drained(*names: str) -> GroupStage:
    """Return a stage on which `a` succeeds and goes with its node while nobody hears of it, then the agent dies."""
    stage = running(*names)
    stage.cut_stream()
    stage.finish("a", "Succeeded")
    stage.remove(POD, "a", grace=30)
    stage.pass_seconds(59.0)
    assert "a" in stage.there()
    stage.pass_seconds(5.0)
    assert "a" not in stage.there()
    comes_back(stage)
    return stage


def comes_back(stage: GroupStage) -> None:
    """Let another agent begin, whose manager can be reached."""
    stage.crash()
    stage.cut = False
    stage.start()
    stage.number = 0


def gone(stage: GroupStage) -> dict[str, bytes]:
    return {each.owner_uid: each.status for each in stage.peer.of(m.ObjectReport) if each.gone}


@pytest.mark.parametrize("named", [("a", "b", "c"), ("b", "c")], ids=["named", "not named"])
def test_hd_368_who_succeeded_and_is_gone_is_told_so_after_a_restart_and_keeps_its_slot(named: tuple[str, ...]) -> None:
    stage = drained("a", "b", "c")
    stage.again(*named, count=3)
    stage.pass_seconds(2.0)
    assert {uid: b"Succeeded" in status for uid, status in gone(stage).items()} == {"home-a": True}
    stage.say(join=["d"])
    stage.pass_seconds(2 * UNSEEN_SECONDS)
    assert "a" not in stage.there()
    assert stage.may_run() == ["b", "c"]
    assert {uid: b"Succeeded" in status for uid, status in gone(stage).items()} == {"home-a": True}


def test_hd_368_also_where_nothing_else_of_its_placement_is_left() -> None:
    stage = drained("a")
    assert [each.key for each in stage.peer.inventories[-1]] == [KEY]
    stage.again("a", count=1)
    stage.pass_seconds(2 * UNSEEN_SECONDS)
    assert b"Succeeded" in gone(stage)["home-a"]
    assert stage.there() == {}
    stage.send(m.Stop(key=KEY, reason="Evicted"))
    [stopped] = stage.peer.of(m.Stopped)
    assert [(each.owner_uid, b"Succeeded" in each.status) for each in stopped.objects] == [("home-a", True)]


def kept(stage: GroupStage) -> list[str]:
    """Return the records that are kept."""
    found = [
        stage.document(CONFIG_MAP, each.name, each.namespace)
        for each in stage.store.all(("", "configmaps"))
        if "records" in each.name
    ]
    return [name for each in found if each is not None for name in each.get("data", {})]


def test_hd_368_nothing_of_it_is_kept_once_all_is_forgotten() -> None:
    stage = drained("a", "b")
    stage.again("a", "b", count=2)
    assert len(kept(stage)) == 1
    stage.send(m.Stop(key=KEY, reason="Evicted"))
    stage.finish("b", "Failed")
    stage.send(m.Forget(key=KEY))
    stage.pass_seconds(10.0)
    assert kept(stage) == []
    assert stage.there() == {}


def test_hd_368_who_is_removed_by_force_is_kept_as_well() -> None:
    stage = running("a", "b")
    stage.finish("a", "Succeeded")
    stage.edit("a", {"metadata": {"finalizers": []}})
    stage.remove(POD, "a", grace=0)
    stage.pass_seconds(5.0)
    stage.crash()
    stage.start()
    stage.again("a", "b", count=2)
    stage.pass_seconds(2 * UNSEEN_SECONDS)
    assert b"Succeeded" in gone(stage)["home-a"]


def test_hd_368_a_node_waits_a_minute_for_a_record_that_cannot_be_written() -> None:
    stage = running("a", "b")
    stage.fail = lambda write: WriteError.FORBIDDEN if "records" in write.ref.key.name else None
    stage.finish("a", "Succeeded")
    stage.remove(POD, "a", grace=30)
    stage.pass_seconds(55.0)
    assert "a" in stage.there()
    stage.pass_seconds(10.0)
    assert "a" not in stage.there()


def test_hd_368_what_is_recorded_of_a_placement_that_ended_names_the_users_pods() -> None:
    stage = running("a", "b")
    stage.send(m.Stop(key=KEY, reason="Evicted"))
    stage.cut_stream()
    stage.finish("a", "Succeeded")
    stage.finish("b", "Failed")
    for name in "ab":
        stage.remove(POD, name, grace=30)
    stage.pass_seconds(70.0)
    assert stage.there() == {}
    comes_back(stage)
    stage.send(m.Stop(key=KEY, reason="Evicted"))
    stopped = stage.peer.of(m.Stopped)[-1]
    ends = {each.owner_uid: b"Succeeded" in each.status for each in stopped.objects}
    assert ends == {"home-a": True, "home-b": False}
