"""HD-418: of a group an inventory says whether anything that was let go may run; that alone ends nothing."""

from __future__ import annotations

from gatelift_kube.deciding.writes import Patch
from gatelift_kube.values.resources import POD
from gatelift_wire.values.inventory import InventoryEntry
from support.agent.group_stage import GroupStage
from support.agent.namespaces import node_heard


def running(*names: str) -> GroupStage:
    stage = GroupStage()
    stage.start()
    stage.group(*names)
    for name in names:
        stage.run(name)
    return stage


def listed(stage: GroupStage) -> InventoryEntry:
    """Return what the next session's inventory lists."""
    stage.new_session()
    (entry,) = stage.peer.inventories[-1]
    return entry


def test_hd_418_a_group_is_all_over_once_none_of_it_runs_and_it_goes_on_nonetheless() -> None:
    stage = running("a", "b")
    stage.finish("a", "Succeeded")
    assert not listed(stage).all_over
    stage.finish("b", "Failed")
    entry = listed(stage)
    assert entry.all_over
    assert (entry.state, entry.lifted) == ("Running", True)
    stage.again("a", "b", count=2)
    stage.say(join=["c"], leave=["b"])
    stage.settle()
    assert stage.may_run() == ["c"]
    assert not listed(stage).all_over


def test_hd_418_who_waits_at_its_gate_runs_no_more_than_who_is_over() -> None:
    stage = running("a", "b")
    for name in ("a", "b"):
        stage.finish(name, "Succeeded")
    stage.say(join=["c"])
    stage.settle()
    assert stage.may_run() == []
    assert listed(stage).all_over


def test_hd_418_who_vanished_may_run_until_its_node_was_heard_of() -> None:
    stage = running("a", "b")
    node_heard(stage, 1)
    stage.finish("a", "Succeeded")
    stage.edit("b", {"metadata": {"finalizers": []}})
    stage.remove(POD, "b", grace=0)
    assert not listed(stage).all_over


def test_hd_418_another_agent_says_so_when_it_has_heard_of_each_node() -> None:
    stage = running("a")
    stage.finish("a", "Succeeded")
    stage.crash()
    stage.start()
    assert not listed(stage).all_over
    stage.pass_seconds(600.0)
    assert listed(stage).all_over


def test_hd_418_what_never_was_let_go_is_not_over() -> None:
    stage = GroupStage()
    stage.start()
    stage.hold = lambda write: isinstance(write, Patch) and write.ref.resource == POD
    stage.group("a")
    entry = listed(stage)
    assert (entry.lifted, entry.all_over) == (False, False)
