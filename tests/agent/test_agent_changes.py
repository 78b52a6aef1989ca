"""Objects join and leave a live placement at a worker: in no history two pods run in one slot."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gatelift_agent.core.placement.calm import Calm
from gatelift_agent.core.values.events import ManagerFrameArrived
from gatelift_kube.deciding.writes import Create, Delete, Patch, WriteError
from gatelift_kube.values.resources import POD
from gatelift_wire.values import messages as m
from gatelift_wire.values.refusals import Refusal
from gatelift_wire.values.single import Leaver
from support.agent.group_stage import MARKS, SPEC, GroupStage, blob, granted, member
from support.agent.namespaces import node_heard
from support.agent.values import KEY, UNSEEN_SECONDS, CrashError
from support.on_purpose import Broken, OnPurposeError

HEIR = member("b", "home-b-again")


def placed(*names: str, count: int | None = None) -> GroupStage:
    stage = GroupStage()
    stage.start()
    stage.group(*names, count=count)
    return stage


def running(*names: str, count: int | None = None) -> GroupStage:
    stage = placed(*names, count=count)
    for name in names:
        stage.run(name)
    return stage


def heard_again(stage: GroupStage) -> None:
    """Let the kubelet of the only node be heard of after each grace and margin."""
    for minute in (5, 6):
        stage.pass_seconds(2 * UNSEEN_SECONDS)
        node_heard(stage, minute)


def test_who_joins_waits_at_its_gate_until_one_that_leaves_has_stopped() -> None:
    """PG-9: an early replacement."""
    stage = running("a", "b", "c")
    stage.say(join=["d"], leave=["b"])
    assert stage.there()["d"] == "home-d"
    assert stage.let_go() == ["a", "b", "c"]
    assert stage.gone() == []
    stage.finish("b", "Failed")
    stage.pass_seconds(1.0)
    assert "b" not in stage.there()
    assert stage.gone() == ["home-b"]
    assert stage.let_go() == ["a", "c", "d"]
    assert stage.state() == "Running"


def test_mc_4_one_member_deleted_at_home_ends_here_and_the_rest_runs_on() -> None:
    stage = running("a", "b", "c")
    stage.say(leave=[Leaver(name="b", uid="home-b", grace_seconds=7.0)])
    assert [each.grace_seconds for each in stage.written(Delete, POD)] == [7]
    assert stage.gone() == []
    stage.finish("b", "Failed")
    assert stage.gone() == ["home-b"]
    assert stage.may_run() == ["a", "c"]
    assert stage.state() == "Running"
    assert stage.peer.of(m.Stopped) == stage.peer.of(m.Evicted) == stage.peer.of(m.Finished) == []


def test_who_failed_gives_its_slot_to_who_joins_and_who_succeeded_keeps_it() -> None:
    """PG-7, PG-6."""
    stage = running("a", "b", "c")
    stage.finish("a", "Failed")
    stage.finish("b", "Succeeded")
    stage.say(join=["d", "e"])
    assert stage.may_run() == ["c", "d"]
    assert "e" in stage.there()
    assert "e" not in stage.let_go()


def test_of_two_that_wait_one_gets_the_slot_that_gets_free() -> None:
    stage = running("a", "b")
    stage.say(join=["d", "e"])
    stage.finish("b", "Failed")
    assert stage.may_run() == ["a", "d"]


def test_who_succeeded_keeps_its_slot_also_when_it_is_gone_from_the_worker() -> None:
    stage = running("a", "b")
    stage.finish("a", "Succeeded")
    stage.remove(POD, "a")
    assert "a" not in stage.there()
    stage.say(join=["d"])
    stage.pass_seconds(UNSEEN_SECONDS)
    assert stage.may_run() == ["b"]


def test_a_lift_of_which_nobody_knows_what_became_keeps_its_slot() -> None:
    stage = GroupStage()
    stage.start()
    stage.hold = lambda write: isinstance(write, Patch) and write.ref.key.name == "a"
    stage.group("a", "b", count=2)
    stage.finish("b", "Failed")
    stage.say(join=["d", "e"])
    assert len(stage.let_go()) <= 2
    stage.lose()
    stage.hold = lambda _write: False
    stage.pass_seconds(60.0)
    assert len(stage.may_run()) <= 2


def test_who_vanished_while_its_node_may_run_it_keeps_its_slot() -> None:
    """P10: what was removed by force stops when its node says so, or is gone."""
    stage = running("a", "b")
    node_heard(stage, 1)
    stage.edit("a", {"metadata": {"finalizers": []}})
    stage.remove(POD, "a", grace=0)
    assert "a" not in stage.there()
    stage.say(join=["d"])
    stage.pass_seconds(2 * UNSEEN_SECONDS)
    assert "d" in stage.there()
    assert stage.let_go() == ["b"]
    assert stage.gone() == []
    heard_again(stage)
    assert stage.let_go() == ["b", "d"]
    assert stage.gone() == ["home-a"]


def test_more_than_were_granted_are_not_committed() -> None:
    stage = placed("a", "b", "c", count=2)
    assert [each.refusal for each in stage.peer.of(m.Refused)] == [Refusal.INVALID]
    assert stage.there() == {}


@pytest.mark.parametrize("count", [3, 2**31 - 1])
def test_a_change_never_raises_a_grant(count: int) -> None:
    stage = running("a", "b")
    stage.say(join=["c"], pod_sets=(granted(count),))
    stage.pass_seconds(60.0)
    assert stage.let_go() == ["a", "b"]


def test_a_change_may_lower_a_grant_and_who_runs_runs_on() -> None:
    stage = running("a", "b")
    stage.say(pod_sets=(granted(1),))
    stage.say(join=["c"], leave=["b"])
    stage.finish("b", "Failed")
    assert stage.may_run() == ["a"]


def test_mc_8_a_replacement_of_the_same_name_is_made_when_the_old_one_has_stopped() -> None:
    stage = running("a", "b")
    stage.say(join=[HEIR], leave=["b"])
    assert stage.there()["b"] == "home-b"
    stage.finish("b", "Failed")
    stage.pass_seconds(1.0)
    assert stage.there()["b"] == "home-b-again"
    assert stage.let_go() == ["a", "b"]
    assert stage.gone() == ["home-b"]


def test_mc_8_also_where_only_the_join_is_said_and_the_old_one_is_in_doubt() -> None:
    stage = running("a", "b")
    node_heard(stage, 1)
    stage.edit("b", {"metadata": {"finalizers": []}})
    stage.remove(POD, "b", grace=0)
    stage.say(join=[HEIR])
    stage.pass_seconds(2 * UNSEEN_SECONDS)
    assert stage.there() == {"a": "home-a"}
    heard_again(stage)
    assert stage.let_go() == ["a", "b"]


def test_mc_9_a_late_or_doubled_change_changes_nothing() -> None:
    stage = running("a", "b", "c")
    first = stage.say(join=["d"], leave=["b"])
    stage.finish("b", "Failed")
    stage.say(leave=["d"])
    stage.pass_seconds(1.0)
    seen = stage.there(), stage.let_go(), len(stage.written(Delete, POD))
    for said in (first, m.Change(key=KEY, number=1, leave=(Leaver(name="a", uid="home-a"),))):
        stage.send(said)
        stage.pass_seconds(60.0)
        assert (stage.there(), stage.let_go(), len(stage.written(Delete, POD))) == seen


def test_mc_9_who_has_left_is_not_made_again_under_any_number() -> None:
    stage = running("a", "b")
    stage.say(leave=["b"])
    stage.finish("b", "Failed")
    stage.pass_seconds(1.0)
    stage.say(join=["b"])
    stage.pass_seconds(60.0)
    assert stage.there() == {"a": "home-a"}
    assert stage.gone() == ["home-b", "home-b"]


def test_mc_9_numbers_begin_anew_in_a_session_that_is_not_resumed_and_go_on_in_one_that_is() -> None:
    stage = running("a", "b")
    stage.say(leave=["b"], number=7)
    stage.finish("b", "Failed")
    stage.cut_stream()
    stage.mend(resume=True)
    stage.confirm()
    stage.say(join=["c"], number=7)
    assert "c" not in stage.there()
    stage.new_session()
    stage.again("a", count=2)
    stage.say(join=["d"], number=1)
    assert stage.let_go() == ["a", "d"]


def test_mc_10_a_change_of_a_leader_that_does_not_lead_any_more_changes_nothing() -> None:
    """R6: a frame of the session before is dropped, whatever its number says."""
    stage = running("a", "b")
    old = stage.peer.number
    stage.new_session()
    stage.again("a", "b", count=2)
    said = m.Change(key=KEY, number=99, join=(member("c"),), leave=(Leaver(name="a", uid="home-a"),))
    assert stage.stream is not None
    frame = m.Frame(session=old, term=1, sequence=50, messages=(said,))
    stage.post(ManagerFrameArrived(stream_id=stage.stream, frame=frame))
    stage.pass_seconds(30.0)
    assert stage.may_run() == ["a", "b"]
    assert sorted(stage.there()) == ["a", "b"]


def test_r1_membership_is_recorded_and_nothing_starts_before_it_is_confirmed() -> None:
    stage = running("a", "b")
    stage.finish("b", "Failed")
    stage.new_session()
    stage.say(join=["c"])
    stage.pass_seconds(5.0)
    assert "c" not in stage.there()
    stage.confirm()
    assert stage.let_go() == ["a", "b", "c"]


def test_r1_who_waits_for_a_slot_is_not_let_go_in_a_session_that_has_not_confirmed_it() -> None:
    stage = running("a", "b")
    stage.say(join=["c"])
    stage.new_session()
    stage.finish("b", "Failed")
    stage.pass_seconds(5.0)
    assert stage.let_go() == ["a", "b"]
    stage.confirm()
    assert stage.may_run() == ["a", "c"]


def test_a_commit_said_again_forgets_nothing_that_runs() -> None:
    """R7: else *stopped* would be said of a placement of which something runs."""
    stage = running("a", "b", "c")
    stage.new_session()
    stage.again("a", count=3)
    assert stage.may_run() == ["a", "b", "c"]
    assert stage.written(Delete, POD) == []
    stage.say(join=["d"])
    assert stage.may_run() == ["a", "b", "c"]
    stage.send(m.Stop(key=KEY, reason="Evicted"))
    stage.finish("a", "Failed")
    assert stage.peer.of(m.Stopped) == []
    stage.finish("b", "Failed")
    stage.finish("c", "Failed")
    assert len(stage.peer.of(m.Stopped)) == 1


def test_who_joins_and_cannot_be_made_does_not_end_the_others() -> None:
    stage = running("a", "b")
    stage.finish("b", "Failed")
    stage.fail = lambda write: WriteError.DENIED if isinstance(write, Create) and write.ref.key.name == "c" else None
    stage.say(join=["c"])
    assert stage.gone() == ["home-c"]
    assert b"Denied" in stage.peer.of(m.ObjectReport)[-1].status
    assert stage.may_run() == ["a"]
    stage.say(join=["d"])
    assert stage.may_run() == ["a", "d"]


def test_who_joins_under_a_name_that_is_anothers_is_told_and_the_rest_runs_on() -> None:
    stage = running("a", "b")
    stage.create(
        POD, {"metadata": {"name": "c", "namespace": "team-a"}, "spec": {"containers": [{"name": "m", "image": "i"}]}}
    )
    stage.settle()
    stage.finish("b", "Failed")
    stage.say(join=["c"])
    stage.pass_seconds(60.0)
    assert stage.gone() == ["home-c"]
    assert stage.state() == "Running"


def test_who_is_let_go_by_somebody_else_before_there_was_room_is_ended() -> None:
    stage = running("a", "b")
    stage.say(join=["c"])
    stage.edit("c", {"spec": {"schedulingGates": None}})
    stage.pass_seconds(1.0)
    assert stage.may_run() == ["a", "b"]
    assert stage.gone() == ["home-c"]


def test_mc_5_a_member_removed_at_the_worker_is_told_and_the_rest_runs_on() -> None:
    stage = running("a", "b", "c")
    stage.remove(POD, "b", grace=30)
    assert stage.state() == "Running"
    stage.finish("b", "Failed")
    assert "b" not in stage.there()
    assert stage.gone() == ["home-b"]
    assert stage.may_run() == ["a", "c"]


def test_mc_6_a_drained_node_waits_sixty_seconds_for_a_manager_that_is_away() -> None:
    stage = running("a", "b")
    stage.cut_stream()
    stage.remove(POD, "b", grace=30)
    stage.finish("b", "Failed")
    stage.pass_seconds(59.0)
    assert "b" in stage.there()
    stage.pass_seconds(2.0)
    assert "b" not in stage.there()
    assert stage.may_run() == ["a"]
    stage.mend(resume=False)
    stage.again("a", "b", count=2)
    assert stage.gone() == ["home-b"]
    assert stage.may_run() == ["a"]


def test_what_was_removed_is_never_made_again_by_a_commit() -> None:
    stage = running("a", "b")
    stage.edit("b", {"metadata": {"finalizers": []}})
    stage.crash()
    stage.remove(POD, "b", grace=0)
    stage.start()
    stage.again("a", "b", count=2)
    stage.pass_seconds(UNSEEN_SECONDS - 1.0)
    assert stage.gone() == []
    stage.pass_seconds(2.0)
    assert stage.there() == {"a": "home-a"}
    assert stage.gone() == ["home-b"]


def test_after_a_start_free_slots_wait_until_nothing_unheard_can_run() -> None:
    """What joined, ran, and was removed by force while no agent watched, nobody here can name."""
    stage = running("a", "b")
    stage.finish("b", "Failed")
    stage.say(join=["c"])
    stage.run("c")
    stage.edit("c", {"metadata": {"finalizers": []}})
    stage.crash()
    stage.remove(POD, "c", grace=0)
    stage.start()
    stage.number = 0
    stage.again("a", "b", count=2)
    stage.say(join=["d"])
    stage.pass_seconds(UNSEEN_SECONDS - 1.0)
    assert "d" in stage.there()
    assert "d" not in stage.let_go()
    stage.pass_seconds(2.0)
    assert stage.may_run() == ["a", "d"]


def test_after_a_start_who_has_a_slot_since_the_commit_does_not_wait() -> None:
    stage = GroupStage()
    stage.start()
    stage.hold = lambda write: isinstance(write, Patch) and write.ref.key.name == "b"
    stage.group("a", "b")
    stage.crash()
    stage.held.clear()
    stage.hold = lambda _write: False
    stage.start()
    stage.again("a", "b", count=2)
    assert stage.let_go() == ["a", "b"]
    assert stage.state() == "Running"


def test_who_left_was_never_here_is_said_to_be_gone_at_once() -> None:
    stage = running("a")
    stage.say(leave=["z"])
    assert stage.gone() == ["home-z"]


def test_who_left_and_a_start_did_not_find_is_said_to_be_gone_when_nothing_of_it_can_run() -> None:
    stage = running("a", "b")
    stage.edit("b", {"metadata": {"finalizers": []}})
    stage.crash()
    stage.remove(POD, "b", grace=0)
    stage.start()
    stage.number = 0
    stage.again("a", count=2)
    stage.say(leave=["b"])
    stage.pass_seconds(UNSEEN_SECONDS - 1.0)
    assert stage.gone() == []
    stage.pass_seconds(2.0)
    assert stage.gone() == ["home-b"]


def life(crash_before: int | None) -> tuple[GroupStage, int]:
    """Replace one of three that run; kill the agent before its nth command; then the manager says all again."""
    stage = running("a", "b", "c")
    begun = stage.performed
    stage.crash_before = begun + crash_before if crash_before is not None else None
    try:
        stage.say(join=["d", HEIR], leave=["b"])
        stage.finish("b", "Failed")
        steps = stage.performed - begun
        stage.crash_before = None
    except CrashError:
        steps, stage.crash_before = 0, None
        stage.restart()
        stage.number = 0
        stage.again("a", "b", "c", "d", count=3)
        stage.say(join=["d", HEIR], leave=["b"])
        found = stage.there().get("b")
        if found == "home-b" and "b" in stage.may_run():
            stage.finish("b", "Failed")
    for _ in range(10):
        stage.pass_seconds(30.0)
        assert len(stage.may_run()) <= 3, "more run than were granted"
    return stage, steps


def test_mc_2_an_agent_killed_at_each_step_of_a_replacement_never_runs_two_in_one_slot() -> None:
    """Y13: it is replaced, or the replacement is told of as gone; who ran runs on."""
    _, steps = life(None)
    for step in range(1, steps + 1):
        stage, _ = life(step)
        assert {"a", "c"} <= set(stage.may_run()), step
        assert "home-b" in stage.gone(), step
        joined = set(stage.may_run()) - {"a", "c"}
        assert joined or {"home-d", "home-b-again"} & set(stage.gone()), step


def test_hd_410_a_placement_may_begin_with_nobody_and_is_as_large_as_was_granted() -> None:
    """All of it is over or gone at home: who comes in their place joins."""
    stage = placed(count=2)
    assert stage.state() == "Running"
    stage.say(join=["a", "b", "c"])
    assert stage.let_go() == ["a", "b"]


def test_hd_535_a_commit_said_again_of_a_kind_that_is_not_served_changes_nothing_of_a_group() -> None:
    """It was believed, so each later look at the group raised, and it obeyed no stop in full."""
    stage = GroupStage()
    stage.start()
    stage.group("a", "b")
    stage.confirm()
    stage.send(blob(SPEC), blob(MARKS), replace(stage.order("a", count=1), kind="PodTroupe"))
    placement = stage.placement()
    assert placement is not None
    assert placement.kind == "PodGroup"
    assert sorted(stage.there()) == ["a", "b"]
    stage.send(m.Stop(key=KEY, reason="x"))
    assert stage.state() == "Reported"


def test_hd_540_an_object_that_was_forgotten_by_half_is_so_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where something raised on the way each word about it raised for ever, and no stop of its group came to an end."""
    stage = running("a", "b")
    world, placement = stage.machine.world, stage.placement()
    assert placement is not None
    tracked = placement.objects["b"]
    Broken(monkeypatch, (Calm, "forget"), lambda *_: True, times=1)
    with pytest.raises(OnPurposeError):
        world.untrack(placement, tracked)
    assert "b" in placement.objects, "it is looked at, and goes, once more"
    world.untrack(placement, tracked)
    assert not world.placements_at(tracked.ref)
    assert sorted(placement.objects) == ["a"]
    assert not placement.to_look_at
