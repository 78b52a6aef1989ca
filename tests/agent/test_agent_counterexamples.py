"""The shortest counterexamples that concern the agent, replayed against its machine (docs: protocol, H1 to H13)."""

from __future__ import annotations

from gatelift_agent.core.values import events
from gatelift_kube.deciding.writes import ApiWrite, Create, Delete, Patch
from gatelift_kube.values.resources import POD
from gatelift_wire.values import messages as m
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.refusals import Refusal
from support.agent.stage import Stage
from support.agent.values import KEY, commit_messages


def _started() -> Stage:
    stage = Stage()
    stage.start()
    return stage


def _holding(stage: Stage, kind: type[ApiWrite]) -> None:
    """Keep writes of one type to pods from landing."""
    stage.hold = lambda write: isinstance(write, kind) and write.ref.resource == POD


def _is_lifted(stage: Stage) -> bool:
    found = stage.document(POD, "p")
    return found is not None and not found["spec"].get("schedulingGates")


def test_h2_a_cut_off_agent_creates_and_lifts_nothing() -> None:
    stage = _started()
    stage.peer.grants = False
    stage.offer()
    # The commit is accepted while the lease is valid; then the cable is cut before anything was made.
    stage.fail = lambda _write: None
    _holding(stage, Create)
    stage.commit()
    assert len(stage.held) == 1
    stage.cut_stream()
    stage.land()
    stage.pass_seconds(120.0)
    assert stage.state() == "Gated"
    assert not _is_lifted(stage)


def test_h3_after_a_reconnect_nothing_is_lifted_before_the_manager_confirms() -> None:
    stage = _started()
    _holding(stage, Create)
    stage.place()
    stage.cut_stream()
    stage.land()
    stage.hold = lambda _write: False
    stage.mend(resume=False)
    stage.pass_seconds(5.0)
    assert [entry.key for entry in stage.peer.inventories[-1]] == [KEY]
    assert not _is_lifted(stage)
    stage.send(m.Stop(key=KEY, reason="Fenced"))
    assert stage.peer.of(m.Stopped)[-1].key == KEY
    assert not _is_lifted(stage)
    assert stage.written(Patch) == []


def test_h3_a_resumed_session_confirms_nothing_by_itself() -> None:
    stage = _started()
    _holding(stage, Create)
    stage.place()
    stage.cut_stream()
    stage.land()
    stage.hold = lambda _write: False
    stage.mend(resume=True)
    stage.pass_seconds(5.0)
    assert not _is_lifted(stage)
    stage.confirm()
    assert _is_lifted(stage)


def test_h7_an_epoch_that_was_refused_is_refused_for_ever() -> None:
    stage = _started()
    stage.commit()
    assert stage.peer.of(m.Refused)[-1].refusal is Refusal.HOLD_EXPIRED
    stage.offer()
    assert stage.peer.of(m.Bid)[-1].refusal is Refusal.EPOCH_STALE
    stage.commit()
    assert stage.peer.of(m.Refused)[-1].refusal is Refusal.EPOCH_STALE
    assert stage.written(Create) == []


def test_h7_an_epoch_that_was_stopped_before_it_was_seen_is_used_up() -> None:
    stage = _started()
    stage.send(m.Stop(key=KEY, reason="Evicted"))
    assert stage.peer.of(m.Stopped)[-1].key == KEY
    stage.offer()
    assert stage.peer.of(m.Bid)[-1].refusal is Refusal.EPOCH_STALE


def test_h7_an_epoch_that_finished_and_was_forgotten_is_used_up() -> None:
    stage = _started()
    stage.place()
    stage.run()
    stage.finish()
    stage.send(m.Forget(key=KEY))
    stage.offer()
    assert stage.peer.of(m.Bid)[-1].refusal is Refusal.EPOCH_STALE
    stage.send(*commit_messages())
    assert stage.peer.of(m.Refused)[-1].refusal is Refusal.EPOCH_STALE
    assert len(stage.written(Create)) == 1


def test_h7_a_held_epoch_that_is_stopped_is_used_up() -> None:
    stage = _started()
    stage.offer()
    stage.send(m.Stop(key=KEY, reason="Evicted"))
    stage.commit()
    assert stage.peer.of(m.Refused)[-1].refusal is Refusal.EPOCH_STALE
    assert stage.written(Create) == []


def test_h9_stopped_is_said_only_when_the_gated_pod_was_written_to_and_no_lift_is_under_way() -> None:
    stage = _started()
    _holding(stage, Patch)
    stage.place()
    lift = stage.held[0].command
    stage.send(m.Stop(key=KEY, reason="Evicted"))
    assert stage.peer.of(m.Stopped) == []
    assert stage.written(Delete) == []
    # Nobody knows what became of the lift: the pod is deleted, which defeats it, and only then the word is given.
    stage.hold = lambda _write: False
    stage.lose()
    stage.pass_seconds(1.0)
    assert len(stage.written(Delete)) == 1
    assert stage.peer.of(m.Stopped)[-1].key == KEY
    assert not _is_lifted(stage)
    version = stage.store.version
    stage._write(lift)
    assert stage.store.version == version, "the late lift must not land"


def test_h9_a_lift_that_lands_late_makes_the_stop_wait_for_the_kubelet() -> None:
    stage = _started()
    _holding(stage, Patch)
    stage.place()
    stage.send(m.Stop(key=KEY, reason="Evicted"))
    stage.hold = lambda _write: False
    stage.land()
    assert len(stage.written(Delete)) == 1
    # Let go, not bound yet, being deleted: it can never be bound, so it has stopped.
    assert stage.peer.of(m.Stopped)[-1].key == KEY


def test_h10_a_replica_that_lost_its_lease_lifts_nothing_it_created() -> None:
    stage = _started()
    _holding(stage, Create)
    stage.place()
    stage.machine.world.leadership.valid_until = stage.now  # the own Lease was not renewed while the create was slow
    stage.hold = lambda _write: False
    stage.land()
    stage.pass_seconds(3.0)
    assert stage.state() == "Gated"
    assert not _is_lifted(stage)
    stage.lead()
    assert _is_lifted(stage)


def test_h10_a_new_replica_lists_only_after_its_predecessors_writes_have_landed() -> None:
    stage = _started()
    _holding(stage, Create)
    stage.place()
    stage.crash()
    stage.hold = lambda _write: False
    stage.post(events.AgentLeadershipGained(term=2, settle_seconds=10.0))
    stage.lead()
    stage.pass_seconds(9.0)
    assert not stage.watching
    assert not stage.peer.open
    stage.land_unanswered()  # at the last moment
    stage.pass_seconds(3.0)
    assert [entry.key for entry in stage.peer.inventories[-1]] == [KEY]
    assert not _is_lifted(stage)


def test_h10_a_new_replica_speaks_to_nobody_before_all_its_lists_are_there() -> None:
    """R8, R4: an inventory from half a list would say that a run is gone."""
    stage = _started()
    stage.place()
    stage.crash()
    stage.listing = False
    stage.post(events.AgentLeadershipGained(term=2, settle_seconds=10.0))
    stage.lead()
    stage.pass_seconds(60.0)
    assert not stage.peer.open
    stage.list_late()
    stage.pass_seconds(3.0)
    assert [entry.key for entry in stage.peer.inventories[-1]] == [KEY]


def test_h11_a_refusal_waits_until_no_create_is_in_flight() -> None:
    stage = _started()
    _holding(stage, Create)
    stage.place()
    stage.send(m.Stop(key=KEY, reason="Evicted"))
    assert stage.peer.of(m.Stopped) == []
    create = stage.held[0].command
    stage.hold = lambda _write: False
    stage.lose()
    stage.pass_seconds(5.0)
    assert stage.peer.of(m.Stopped) == [], "the create may still land"
    stage._write(create, answered=False)
    stage.settle()
    stage.pass_seconds(6.0)
    assert stage.peer.of(m.Stopped)[-1].key == KEY
    assert len(stage.written(Delete)) == 1
    assert not _is_lifted(stage)


def test_h11_a_create_that_never_landed_is_found_out_by_a_probe() -> None:
    stage = _started()
    _holding(stage, Create)
    stage.place()
    stage.send(m.Stop(key=KEY, reason="Evicted"))
    stage.hold = lambda _write: False
    stage.lose()
    stage.pass_seconds(11.0)
    assert stage.peer.of(m.Stopped)[-1].key == KEY
    assert len(stage.written(Patch)) == 1
    assert stage.document(POD, "p") is None


def test_h11_an_unknown_create_of_a_live_placement_is_not_made_twice() -> None:
    stage = _started()
    _holding(stage, Create)
    stage.place()
    create = stage.held[0].command
    stage.hold = lambda _write: False
    stage._write(create, answered=False)
    stage.lose()
    stage.pass_seconds(12.0)
    assert _is_lifted(stage)
    assert len(stage.written(Create)) == 1


def test_h12_a_commit_is_refused_when_the_lease_has_run_out() -> None:
    stage = _started()
    stage.peer.grants = False
    stage.offer(hold_seconds=300.0)
    # Nothing is granted any more. The manager would call the cluster lost a little later.
    stage.pass_seconds(50.0)
    stage.commit()
    assert stage.peer.of(m.Refused)[-1].refusal is Refusal.LEASE_NOT_VALID
    assert stage.written(Create) == []


def test_h12_a_lease_that_ran_out_stops_starting_and_not_what_runs() -> None:
    stage = _started()
    stage.place()
    stage.run()
    stage.peer.grants = False
    stage.pass_seconds(50.0)
    assert stage.state() == "Running"
    assert stage.written(Delete) == []
    stage.offer(PlacementKey("w-2", 1), name="q")
    assert stage.peer.of(m.Bid)[-1].refusal is Refusal.LEASE_NOT_VALID


def test_h13_an_end_deletes_gated_pods_as_well_so_a_late_lift_fails() -> None:
    stage = _started()
    _holding(stage, Patch)
    stage.place()
    lift = stage.held[0].command
    stage.crash()  # the lift is under way when the agent dies
    stage.held.clear()
    stage.hold = lambda _write: False
    stage.start()
    stage.send(m.Stop(key=KEY, reason="Evicted"))
    assert stage.peer.of(m.Stopped)[-1].key == KEY
    version = stage.store.version
    stage._write(lift, answered=False)
    assert stage.store.version == version


def test_h8_commands_of_a_session_that_ended_change_nothing() -> None:
    stage = _started()
    stage.offer()
    stage.cut_stream()
    old_stream = 1
    frame = m.Frame(session=1, term=1, sequence=3, messages=commit_messages())
    stage.mend(resume=False)
    stage.post(events.ManagerFrameArrived(stream_id=old_stream, frame=frame))
    assert stage.written(Create) == []
    assert stage.state() == "Held"
