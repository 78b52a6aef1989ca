"""How members of a group ended is told before their placement is over, and is known after a restart."""

from __future__ import annotations

from gatelift_kube.values.resources import POD
from gatelift_wire.values import messages as m
from support.agent.group_stage import GroupStage
from support.agent.values import POD_SPEC


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
