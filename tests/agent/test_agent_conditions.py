"""Each condition of the agent that nothing else misses when it is gone: HD-54, one test by name for each."""

from __future__ import annotations

import msgspec
import pytest

from gatelift_agent.core.state.world import World
from gatelift_agent.core.values import events
from gatelift_kube.deciding.contained import Contained
from gatelift_kube.deciding.writes import Create, Delete, Patch, WriteError, WriteFailed
from gatelift_kube.values.resources import CONFIG_MAP, NODE, POD
from gatelift_wire.values import limits
from gatelift_wire.values import messages as m
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.refusals import Refusal
from gatelift_wire.values.single import SetUserGates
from support.agent.drivers import Cluster
from support.agent.stage import Stage
from support.agent.values import KEY, POD_SPEC

SECOND = PlacementKey("w-1", 2)


def _started() -> Stage:
    stage = Stage()
    stage.start()
    return stage


def _let_the_lease_run_out(stage: Stage) -> None:
    """Grant nothing until the right to start is over; the session goes on for a quarter of a minute."""
    stage.peer.grants = False
    stage.pass_seconds(stage.machine.world.standing.lease_until - stage.now)
    assert stage.machine.world.standing.open


def _renew(stage: Stage) -> None:
    stage.peer.grants = True
    stage.pass_seconds(limits.RENEW_SECONDS)


# --- the right to start (starting.py) ----------------------------------------------------------------------------


def test_hd_54_the_lease_is_asked_before_lift_in_a_session_that_goes_on() -> None:
    """The last gate of the user's own goes when the lease has run out: ours stays until it is renewed."""
    stage = _started()
    stage.place(spec={**POD_SPEC, "schedulingGates": [{"name": "mine"}]})
    assert stage.state() == "Gated"
    _let_the_lease_run_out(stage)
    stage.send(SetUserGates(key=KEY, name="p", gates=()))
    assert stage.written(Patch) == []
    _renew(stage)
    assert stage.state() == "Running"


def test_hd_54_the_lease_is_asked_before_create_in_a_session_that_goes_on() -> None:
    """The attempt before is over when the lease has run out: nothing is made until it is renewed."""
    stage = _started()
    stage.place()
    stage.run()
    stage.place(SECOND)
    _let_the_lease_run_out(stage)
    stage.finish(phase="Failed")
    assert stage.state() == "none"
    assert stage.document(POD, "p") is None
    assert len(stage.written(Create)) == 1
    _renew(stage)
    assert stage.state(SECOND) == "Running"


def test_hd_54_the_limit_of_a_hold_is_checked_at_commit() -> None:
    """The commit comes in the very event in which the time is over, before any timer was looked at."""
    stage = _started()
    stage.offer(hold_seconds=0.1)
    stage.now += 0.1
    stage.commit()
    assert [refused.refusal for refused in stage.peer.of(m.Refused)] == [Refusal.HOLD_EXPIRED]
    assert stage.written(Create) == []


# --- the inventory -----------------------------------------------------------------------------------------------


def test_hd_54_the_session_is_kept_before_the_inventory_is_answered() -> None:
    """Who takes over and knows a lower number would pass for a worker that was restored from a backup."""
    stage = Stage()
    stage.fail = lambda write: WriteError.NOT_DONE if write.ref.resource == CONFIG_MAP else None
    stage.post(events.AgentLeadershipGained(term=1, settle_seconds=0.0))
    stage.lead()
    stage.pass_seconds(10.0)
    assert stage.machine.world.standing.session == 1
    assert stage.peer.inventories == []
    assert not stage.peer.open
    stage.fail = lambda _write: None
    stage.pass_seconds(10.0)
    assert stage.machine.world.keeper.remembers(1)
    assert stage.peer.inventories == [()]
    assert stage.peer.open


def test_hd_54_a_placement_that_is_committed_and_waits_is_listed_in_the_inventory() -> None:
    """It was accepted, so absence would say that it cannot start any more."""
    stage = _started()
    stage.place()
    stage.run()
    stage.place(SECOND)
    assert stage.state(SECOND) == "Committed"
    stage.cut_stream()
    stage.mend(resume=False)
    assert [(entry.key, entry.state) for entry in stage.peer.inventories[-1]] == [
        (KEY, "Draining"),
        (SECOND, "Committed"),
    ]


# --- objects that vanish or are replaced -------------------------------------------------------------------------


def _node_beats(stage: Stage, heartbeat: str) -> None:
    ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": heartbeat}
    if stage.document(NODE, "node-1", "") is None:
        stage.create(NODE, {"metadata": {"name": "node-1"}})
    kind = stage.store.kinds.of(NODE)
    body = msgspec.json.encode({"status": {"conditions": [ready]}})
    stage.store.patch(kind, "", "node-1", body, "application/merge-patch+json", stage.now, subresource="status")
    stage.settle()


def test_hd_54_vanished_pods_of_a_job_are_waited_for() -> None:
    """Somebody force-deletes a Job's running pod: its containers run on until its kubelet is heard of (P10)."""
    stage = _started()
    _node_beats(stage, "2026-01-01T00:00:00Z")
    stage.place(kind="Job", name="j")
    cluster = Cluster(stage, finishes=False)
    while cluster.react():
        pass
    for pod in stage.store.look_all(("", "pods")):
        stage.change(POD, pod["metadata"]["name"], {"metadata": {"finalizers": None}})
        stage.remove(POD, pod["metadata"]["name"], grace=0)
    stage.send(m.Stop(key=KEY, reason="Evicted"))
    while cluster._jobs():
        pass
    stage.pass_seconds(300.0)
    assert stage.job()["spec"]["suspend"]
    assert stage.peer.of(m.Stopped) == []
    _node_beats(stage, "2026-01-01T00:05:00Z")
    assert stage.peer.of(m.Stopped) == []
    _node_beats(stage, "2026-01-01T00:06:00Z")
    stage.pass_seconds(10.0)
    assert len(stage.peer.of(m.Stopped)) == 1


def test_hd_54_an_object_made_anew_under_the_same_name_and_labels_has_another_uid_and_is_not_ours() -> None:
    stage = _started()
    _node_beats(stage, "2026-01-01T00:00:00Z")
    stage.place()
    stage.run()
    first = stage.pod()["metadata"]["uid"]
    before = stage.pod()["metadata"]
    same = {name: before[name] for name in ("name", "namespace", "labels", "annotations")}
    stage.watching = False  # the watch tells of the newest state only, as it may
    stage.change(POD, "p", {"metadata": {"finalizers": None}})
    stage.remove(POD, "p", grace=0)
    stage.watching = True
    stage.create(POD, {"metadata": same, "spec": POD_SPEC})
    stage.settle()
    assert stage.pod()["metadata"]["uid"] != first
    found = stage.placement()
    assert found is not None
    assert (found.state.value, found.objects["p"].uid) == ("Draining", first)
    assert stage.peer.of(m.Evicted) == [], "what ran may still run on its node"


# --- found by taking out what no test had in view ----------------------------------------------------------------


def _loses_its_lead_and_gains_it_again(stage: Stage) -> None:
    stage.post(events.AgentLeadershipLost())
    stage.post(events.AgentLeadershipGained(term=5, settle_seconds=0.0))
    stage.lead()
    stage.mend(resume=False)


def test_hd_55_an_epoch_is_used_from_its_acceptance_on_though_nothing_of_it_was_made() -> None:
    """Its create may still land: whoever leads again in this process takes the epoch for no second placement."""
    stage = _started()
    stage.hold = lambda write: isinstance(write, Create) and write.ref.resource == POD
    stage.place()
    _loses_its_lead_and_gains_it_again(stage)
    assert stage.placement() is None
    stage.offer()
    assert [bid.refusal for bid in stage.peer.of(m.Bid)] == [None, Refusal.EPOCH_STALE]


def test_hd_55_an_epoch_that_is_found_on_an_object_uses_up_the_lower_ones() -> None:
    stage = _started()
    stage.place(SECOND)
    stage.run()
    stage.restart()
    stage.offer(KEY)
    assert [bid.refusal for bid in stage.peer.of(m.Bid)] == [None, Refusal.EPOCH_STALE]


def test_hd_55_an_answer_to_a_write_of_a_lost_lead_says_nothing_of_the_next_ones_write() -> None:
    """R7: a lift that is in flight would count as answered, and a stop would not wait for it."""
    stage = _started()
    stage.hold = lambda write: isinstance(write, Patch) and write.ref.resource == POD
    stage.place()
    [before] = stage.written(Patch)
    _loses_its_lead_and_gains_it_again(stage)
    stage.confirm()
    assert len(stage.written(Patch)) == 2
    stage.post(WriteFailed(write_id=before.write_id, error=WriteError.NOT_DONE, message="of the time before"))
    stage.pass_seconds(5.0)
    assert len(stage.written(Patch)) == 2


def test_hd_55_an_object_with_our_labels_of_an_epoch_that_was_never_used_here_is_left_alone() -> None:
    stage = _started()
    labels = stage.machine.world.owner_labels
    stage.place()
    found = stage.placement()
    assert found is not None
    stranger = {**labels(found), "gatelift.dev/workload-uid": "w-of-nobody"}
    stage.create(POD, {"metadata": {"name": "q", "namespace": "team-a", "labels": stranger}, "spec": POD_SPEC})
    stage.pass_seconds(120.0)
    assert stage.document(POD, "q") is not None
    assert stage.written(Delete) == []


def test_hd_95_an_object_that_cannot_be_read_is_listed_as_let_go_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Contained, "surfaces", False)
    stage = _started()
    stage.place()
    stage.run()
    stage.cut_stream()

    def unreadable(*_: object) -> bool:
        raise ValueError("on purpose")

    with monkeypatch.context() as broken:
        broken.setattr(World, "runs_as_placed", unreadable)
        stage.mend(resume=False)
    (listed,) = stage.peer.inventories[-1]
    assert listed.lifted
    assert any("on purpose" in note.text for note in stage.notes)
