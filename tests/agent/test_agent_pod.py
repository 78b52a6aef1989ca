"""The way of a single pod through the agent's machine."""

from __future__ import annotations

from gatelift_kube.deciding.writes import Create, Delete, Patch
from gatelift_kube.values.resources import POD
from gatelift_wire.values import messages as m
from support.agent.stage import Stage
from support.agent.values import KEY


def test_a_pod_is_offered_held_made_gated_let_go_finished_and_forgotten() -> None:
    stage = Stage()
    stage.start()
    stage.offer()
    assert [bid.kind for bid in stage.peer.of(m.Bid)] == [m.BidKind.HELD]
    assert stage.state() == "Held"
    stage.commit()
    assert stage.state() == "Running"
    assert [type(each) for each in stage.peer.heard if not isinstance(each, m.Capacity)][1:] == [
        m.Applied,
        m.GatesLifted,
    ]
    assert stage.pod()["spec"].get("schedulingGates", []) == []
    assert stage.pod()["metadata"]["labels"]["gatelift.dev/epoch"] == "1"
    stage.run()
    stage.finish()
    finished = stage.peer.of(m.Finished)
    assert [(each.key, each.succeeded) for each in finished] == [(KEY, True)]
    assert b'"Succeeded"' in finished[0].objects[0].status
    assert stage.state() == "Reported"
    stage.send(m.Forget(key=KEY))
    assert stage.document(POD, "p") is None
    assert stage.state() == "none"


def test_a_pod_costs_four_writes_of_ours() -> None:
    stage = Stage()
    stage.start()
    stage.place()
    stage.run()
    stage.finish()
    stage.send(m.Forget(key=KEY))
    assert [type(write) for write in stage.written(object)] == [Create, Patch, Patch, Delete]
