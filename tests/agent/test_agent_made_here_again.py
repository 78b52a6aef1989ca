"""A driver's workers at a worker cluster over starts of its agent: found again, none let go twice (DW-8)."""

from __future__ import annotations

from dataclasses import replace

from gatelift_agent.core.advancing.adopting import BEYOND_SECONDS
from gatelift_kube.deciding.writes import Patch
from gatelift_kube.values.resources import POD
from gatelift_wire.values import messages as m
from support.agent.driver_stage import DriverStage, driven
from support.agent.group_stage import MARKS, SPEC, blob
from support.agent.values import KEY, UNSEEN_SECONDS, CrashError


def test_dw_8_a_start_finds_them_again_and_lets_none_go_twice() -> None:
    stage = driven(workers=2)
    stage.makes("w1")
    stage.run("w1")
    stage.makes("w2")
    stage.restart()
    stage.again("a")
    stage.makes("w3")
    assert stage.let_go() == ["a", "w1", "w2"]
    stage.pass_seconds(BEYOND_SECONDS + 2.0)
    assert "w3" not in stage.there()
    assert stage.counts().active == 2
    assert stage.state() == "Running"


def test_dw_8_after_a_start_a_free_slot_waits_until_nothing_unheard_can_run() -> None:
    """One that ran and was removed by force while no agent watched, nobody can name."""
    stage = driven(workers=1)
    stage.makes("w1")
    stage.run("w1")
    stage.edit("w1", {"metadata": {"finalizers": []}})
    stage.crash()
    stage.remove(POD, "w1", grace=0)
    stage.start()
    stage.again("a")
    stage.makes("w2")
    stage.pass_seconds(UNSEEN_SECONDS - 1.0)
    assert stage.let_go() == ["a"]
    stage.pass_seconds(2.0)
    assert stage.let_go() == ["a", "w2"]


def test_dw_8_what_came_while_no_agent_watched_is_taken_in_by_the_next_one() -> None:
    stage = driven(workers=1)
    stage.crash()
    stage.makes("w1")
    stage.start()
    assert stage.let_go() == ["a"]
    stage.again("a")
    stage.pass_seconds(UNSEEN_SECONDS + 2.0)
    assert stage.let_go() == ["a", "w1"]


def test_a_commit_that_is_said_again_says_nothing_of_them() -> None:
    stage = driven(workers=2)
    stage.hold = lambda write: isinstance(write, Patch) and b"schedulingGates" in write.body
    stage.makes("w1")
    stage.held.clear()
    stage.hold = lambda _write: False
    stage.restart()
    stage.again("a")
    stage.pass_seconds(UNSEEN_SECONDS + 2.0)
    assert stage.let_go() == ["a", "w1"]


def test_what_is_declared_is_taken_from_the_commit_that_was_said_last() -> None:
    """A manager of before does not say it."""
    stage = DriverStage()
    stage.start()
    said = stage.order("a")
    bare = replace(said, pod_sets=tuple(replace(one, shape="") for one in said.pod_sets))
    stage.send(
        m.Offer(key=KEY, kind="PodGroup", namespace="team-a", name="crew", queue="queue", pod_sets=bare.pod_sets)
    )
    stage.send(blob(SPEC), blob(MARKS), bare)
    stage.run("a")
    stage.makes("w1")
    assert stage.waiting() == ["w1"]
    stage.cut_stream()
    stage.mend(resume=False)
    stage.again("a")
    stage.pass_seconds(2.0)
    assert stage.let_go() == ["a", "w1"]


def test_where_the_driver_is_gone_after_a_start_the_placement_bears_its_groups_name() -> None:
    """The manager knows it by that: another name would be another's."""
    stage = driven(workers=1)
    stage.makes("w1")
    stage.run("w1")
    stage.edit("a", {"metadata": {"finalizers": []}})
    stage.crash()
    stage.remove(POD, "a", grace=0)
    stage.start()
    (entry,) = stage.peer.inventories[-1]
    assert (entry.name, entry.lifted) == ("crew", True)


def life(crash_before: int | None) -> tuple[DriverStage, int]:
    """Have a driver make three workers for two slots, one of which goes; kill the agent before its nth command."""
    stage = driven(workers=2)
    begun = stage.performed
    stage.crash_before = begun + crash_before if crash_before is not None else None
    steps = 0
    try:
        _made(stage)
        steps = stage.performed - begun
        stage.crash_before = None
    except CrashError:
        stage.crash_before = None
        stage.restart()
        stage.again("a")
        _made(stage)
    for _ in range(10):
        stage.pass_seconds(30.0)
        assert len(stage.may_run()) <= 3, "more run than were granted"
    return stage, steps


def _made(stage: DriverStage) -> None:
    for name in ("w1", "w2", "w3"):
        if name not in stage.there():
            stage.makes(name)
    stage.pass_seconds(BEYOND_SECONDS + 1.0)
    if "w1" in stage.let_go() and stage.pod("w1").get("status", {}).get("phase") != "Failed":
        stage.run("w1")
        stage.remove(POD, "w1", grace=30)
        stage.finish("w1", "Failed")
        stage.makes("w4")


def test_dw_8_an_agent_killed_at_each_step_never_lets_more_go_than_were_granted() -> None:
    """Y13."""
    _, steps = life(None)
    assert steps > 10
    for step in range(1, steps + 1):
        stage, _ = life(step)
        assert len([name for name in stage.may_run() if name.startswith("w")]) == 2, step
        assert stage.waiting() == [], step
