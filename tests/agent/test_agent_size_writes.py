"""Writes of a size and of a gate, with each answer: none is written again at once, and no slot is used twice."""

from __future__ import annotations

import pytest

from gatelift_kube.deciding.writes import WRITE_SECONDS_MAX, ApiWrite, WriteError
from gatelift_kube.values.resources import JOB, POD
from gatelift_wire.values import messages as m
from support.agent.drivers import Cluster
from support.agent.size_stage import SizeStage, is_size, is_ungate
from support.agent.values import KEY


def running(count: int) -> SizeStage:
    stage = SizeStage()
    stage.begin(count)
    stage.run_all()
    return stage


@pytest.mark.parametrize("error", list(WriteError), ids=lambda error: error.name)
def test_hd_45_a_size_that_fails_is_tried_again_with_pauses_and_answered_once_it_is_set(error: WriteError) -> None:
    stage = running(2)
    failed: list[float] = []

    def fails(write: ApiWrite) -> WriteError | None:
        if is_size(write):
            failed.append(stage.now)
            return error
        return None

    stage.fail = fails
    stage.resize(2, main=1)
    stage.pass_seconds(20.0)
    assert stage.answers == [1]
    assert 2 <= len(failed) <= 12
    assert len(set(failed)) == len(failed), "never twice in a moment"
    is_told = {WriteError.INVALID, WriteError.DENIED, WriteError.FORBIDDEN}
    assert len(stage.refusals) == (error in is_told)
    stage.fail = lambda _write: None
    stage.pass_seconds(60.0)
    assert stage.mark()["number"] == 2
    assert (stage.state(), len(stage.lifted())) == ("Running", 2)


@pytest.mark.parametrize("error", list(WriteError), ids=lambda error: error.name)
def test_hd_45_a_lift_that_fails_is_tried_again_with_pauses_and_no_more_than_granted_go(error: WriteError) -> None:
    stage = running(1)
    failed: list[tuple[str, float]] = []

    def fails(write: ApiWrite) -> WriteError | None:
        if is_ungate(write):
            failed.append((write.ref.key.name, stage.now))
            return error
        return None

    stage.fail = fails
    stage.resize(2, main=2)
    stage.react()
    stage.make_pod()
    stage.pass_seconds(40.0)
    assert failed
    assert len(set(failed)) == len(failed), "none twice in a moment"
    stage.fail = lambda _write: None
    stage.pass_seconds(120.0)
    assert (len(stage.lifted()), len(stage.waiting())) == (2, 1)
    assert stage.answers[-1] == 2


def test_sl_46_who_is_denied_gives_the_slot_to_the_next_and_takes_none_back() -> None:
    stage = running(1)
    stage.fail = lambda write: WriteError.DENIED if is_ungate(write) and write.ref.key.name == "j-0002" else None
    stage.resize(2, main=2)
    stage.react()
    stage.make_pod()
    assert (stage.lifted(), stage.waiting()) == (["j-0001", "j-0003"], ["j-0002"])
    stage.fail = lambda _write: None
    stage.pass_seconds(300.0)
    assert stage.lifted() == ["j-0001", "j-0003"]


def test_sl_46_a_lift_of_unknown_outcome_keeps_its_slot_until_it_can_land_no_more() -> None:
    stage = running(1)
    stage.hold_ungates()
    stage.resize(2, main=2)
    stage.react()
    stage.make_pod()
    stage.lose()
    stage.release_writes()
    stage.pass_seconds(WRITE_SECONDS_MAX - 1)
    assert len(stage.ungates()) == 2, "the first pod's, and the second one's: no other"
    stage.pass_seconds(2.0)
    assert stage.lifted() == ["j-0001", "j-0002"]


def test_sl_46_a_lift_that_landed_unanswered_is_known_by_its_pod() -> None:
    stage = running(1)
    stage.hold_ungates()
    stage.resize(2, main=2)
    stage.react()
    stage.make_pod()
    stage.release_writes()
    stage.land_unanswered()
    stage.pass_seconds(120.0)
    assert (len(stage.lifted()), len(stage.waiting())) == (2, 1)


def test_a_webhook_that_gives_the_gate_back_does_not_make_it_go_round() -> None:
    stage = running(1)
    stage.idle = is_ungate
    stage.resize(2, main=2)
    stage.react()
    stage.pass_seconds(10.0)
    assert 3 <= len(stage.ungates()) <= 9
    stage.idle = lambda _write: False
    stage.pass_seconds(60.0)
    assert len(stage.lifted()) == 2


def test_r7_a_stop_waits_for_a_lift_whose_outcome_nobody_knows() -> None:
    stage = running(1)
    stage.hold_ungates()
    stage.resize(2, main=2)
    stage.react()
    stage.send(m.Stop(key=KEY, reason="Evicted"))
    Cluster(stage, finishes=False).react()  # the Job's controller says that it is suspended
    stage.remove(POD, "j-0001")
    stage.finish("j-0001", "Failed")
    stage.remove(POD, "j-0002")
    stage.pass_seconds(60.0)
    assert (stage.state(), stage.peer.of(m.Stopped)) == ("Draining", [])
    stage.release_writes()
    stage.land()
    stage.pass_seconds(5.0)
    assert [one.key for one in stage.peer.of(m.Stopped)] == [KEY]


def test_r8_who_does_not_lead_sets_nothing_and_lets_nothing_go() -> None:
    stage = running(2)
    stage.machine.world.leadership.valid_until = stage.now
    stage.resize(2, main=4)
    stage.react()
    stage.finish("j-0001", "Failed")
    stage.react()
    stage.pass_seconds(5.0)
    assert (stage.mark()["number"], stage.lifted()) == (1, ["j-0002"])
    stage.lead()
    stage.react()
    assert (stage.mark()["number"], len(stage.lifted())) == (2, 4)


def test_hd_686_a_size_that_a_controllers_write_was_faster_than_is_set_within_a_moment() -> None:
    """The symptom: half a second for the first conflict, longer each time; a controller writes for a second on end."""
    stage = SizeStage()
    stage.begin(3)
    stage.hold_sizes()
    stage.resize(2, main=5)
    stage.change(JOB, "j", {"status": {"active": 3}}, "status")
    stage.release_writes()
    stage.land()
    assert stage.job()["spec"]["parallelism"] == 3, "it named the version before"
    stage.pass_seconds(0.1)
    assert stage.job()["spec"]["parallelism"] == 5
