"""Who leaves a live placement is removed once the manager has acknowledged its end, and said to be gone before that."""

from __future__ import annotations

from gatelift_kube.deciding.writes import Delete
from gatelift_kube.values.resources import POD
from gatelift_wire.values import messages as m
from support.agent.group_stage import GroupStage, member
from support.agent.values import KEY


def running(*names: str) -> GroupStage:
    stage = GroupStage()
    stage.start()
    stage.group(*names)
    for name in names:
        stage.run(name)
    return stage


def test_hd_431_who_has_stopped_is_there_until_the_manager_has_heard_of_that() -> None:
    stage = running("a", "b")
    stage.say(leave=["b"])
    stage.finish("b", "Failed")
    assert (stage.gone(), sorted(stage.there())) == (["home-b"], ["a", "b"])
    stage.pass_seconds(1.0)
    assert (stage.gone(), sorted(stage.there())) == (["home-b"], ["a"])


def test_hd_431_nothing_is_told_of_who_was_said_to_be_gone() -> None:
    """A later word about its object would have home take it for one that runs."""
    stage = running("a", "b")
    stage.say(leave=["b"])
    stage.finish("b", "Failed")
    said = len(stage.peer.of(m.ObjectReport))
    stage.edit("b", {"metadata": {"annotations": {"example.com/touched": "1"}}})
    stage.pass_seconds(5.0)
    assert len(stage.peer.of(m.ObjectReport)) == said


def test_hd_431_another_session_hears_of_it_once_more() -> None:
    stage = running("a", "b")
    stage.say(leave=["b"])
    stage.cut_stream()
    stage.finish("b", "Failed")
    stage.pass_seconds(30.0)
    assert (stage.gone(), sorted(stage.there())) == ([], ["a", "b"])
    stage.mend(resume=False)
    assert stage.gone() == ["home-b"]
    stage.pass_seconds(1.0)
    assert sorted(stage.there()) == ["a"]


def test_hd_431_mc_6_without_a_manager_it_goes_after_a_minute() -> None:
    stage = running("a", "b")
    stage.say(leave=["b"])
    stage.cut_stream()
    stage.finish("b", "Failed")
    stage.pass_seconds(59.0)
    assert sorted(stage.there()) == ["a", "b"]
    stage.pass_seconds(2.0)
    assert sorted(stage.there()) == ["a"]


def test_hd_431_the_next_agent_finds_who_was_not_heard_of() -> None:
    """It need not doubt it: of what it did not find it would say nothing for as long as a node may be silent."""
    stage = running("a", "b")
    stage.say(leave=["b"])
    stage.finish("b", "Failed")
    said = len(stage.gone())
    stage.crash()
    stage.start()
    stage.again("a", "b", count=2)
    stage.say(leave=["b"], number=1)
    stage.pass_seconds(2.0)
    assert ({*stage.gone()[said:]}, sorted(stage.there())) == ({"home-b"}, ["a"])


def test_hd_436_who_runs_stays_of_the_set_that_it_was_let_go_as() -> None:
    stage = running("a", "b")
    placement = stage.machine.world.placements[KEY]
    assert {each.pod_set for each in placement.objects.values()} == {"main"}
    other = [member("a"), member("b", pod_set="other")]
    stage.new_session()
    stage.again(*other, count=2)
    assert {each.pod_set for each in placement.objects.values()} == {"main"}
    assert stage.written(Delete, POD) == []
