"""Sizes of elastic work at the agent: state table, what becomes of the object, answers, a start (decision 106).

The histories that break a rule where it is taken out are the transcripts of `test_agent_size_transcripts.py`.
"""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest

from gatelift_agent.core.placement.sizes import TABLE, WRITTEN_MAX, SizeMove, SizeState, Sizing
from gatelift_agent.core.values.settings import AgentMode, NominalCapacity
from gatelift_kinds.shared.sizes import SizeMark
from gatelift_kube.deciding.writes import Patch, WriteError, WriteFailed
from gatelift_kube.values.resources import JOB, NODE, POD
from gatelift_sandbox.embedded.drafts import Deletion
from gatelift_wire.sessions.session_manager import ManagerSession
from gatelift_wire.values import messages as m
from gatelift_wire.values.keys import ANNOTATION_SIZE
from gatelift_wire.values.sizes import SizeRefused, SliceFinished
from support.agent.size_stage import SizeStage, TrainingStage, a_job, deleting, is_size
from support.agent.stage import Stage
from support.agent.values import KEY, UNSEEN_SECONDS

GATE = "kueue.x-k8s.io/elastic-job"


def grown(*, count: int = 2, **settings: Any) -> SizeStage:
    """Return a stage on which so many pods of an elastic Job run."""
    stage = SizeStage(**settings)
    stage.begin(count)
    stage.run_all()
    assert len(stage.lifted()) == count
    return stage


def heard_of(stage: SizeStage) -> None:
    """Start the agent anew, and let it hear that nothing runs which vanished before."""
    stage.restart()
    stage.pass_seconds(UNSEEN_SECONDS + 1)


def end_surplus(stage: SizeStage) -> None:
    """Let what was deleted stop."""
    for pod in stage.store.look_all(("", "pods")):
        if deleting(pod):
            stage.finish(pod["metadata"]["name"], "Failed")


# --- the table -----------------------------------------------------------------------------------------------------


def test_the_table_of_sizes_has_an_entry_for_each_move_in_each_state() -> None:
    """P8: total, and what ends takes no size."""
    assert {(state, move) for state in TABLE for move in TABLE[state]} == set(product(SizeState, SizeMove))
    assert TABLE[SizeState.STOPPING][SizeMove.TAKE] is SizeState.STOPPING
    assert TABLE[SizeState.UNCONFIRMED][SizeMove.LANDED] is SizeState.UNCONFIRMED


@pytest.mark.parametrize(
    ("state", "move", "becomes"),
    [
        (SizeState.UNCONFIRMED, SizeMove.TAKE, SizeState.SETTING),
        (SizeState.UNCONFIRMED, SizeMove.CONFIRM, SizeState.SETTING),
        (SizeState.SETTING, SizeMove.LANDED, SizeState.SET),
        (SizeState.SETTING, SizeMove.TAKE, SizeState.SETTING),
        (SizeState.SET, SizeMove.ANSWERED, SizeState.ANSWERED),
        (SizeState.SET, SizeMove.TAKE, SizeState.SETTING),
        (SizeState.SETTING, SizeMove.ANSWERED, SizeState.SETTING),
        (SizeState.ANSWERED, SizeMove.CONFIRM, SizeState.ANSWERED),
        (SizeState.ANSWERED, SizeMove.TAKE, SizeState.SETTING),
        (SizeState.ANSWERED, SizeMove.NEW_SESSION, SizeState.UNCONFIRMED),
        (SizeState.SET, SizeMove.STOP, SizeState.STOPPING),
        (SizeState.STOPPING, SizeMove.CONFIRM, SizeState.STOPPING),
        (SizeState.STOPPING, SizeMove.GO_ON, SizeState.UNCONFIRMED),
    ],
)
def test_a_size_goes_its_way(state: SizeState, move: SizeMove, becomes: SizeState) -> None:
    assert TABLE[state][move] is becomes


def test_a_mark_is_ours_that_landed_or_that_was_asked_for() -> None:
    """The answer to the patch of one size may come when the next one is known already."""
    sizing = Sizing(number=1, counts={"main": 2})
    assert sizing.sees(SizeMark(number=1, counts={"main": 2}))
    sizing.take(2, {"main": 4})
    sizing.writes()
    sizing.take(3, {"main": 1})
    assert not sizing.sees(SizeMark(number=2, counts={"main": 9}))
    assert not sizing.sees(SizeMark(number=7, counts={"main": 1}))
    assert sizing.sees(SizeMark(number=2, counts={"main": 4}))
    assert sizing.sees(SizeMark(number=2, counts={"main": 4}, tied=False)), "again"
    assert not sizing.sees(SizeMark(number=1, counts={"main": 2})), "it was that before"
    assert sizing.landed == SizeMark(number=2, counts={"main": 4})


def test_sizes_that_were_asked_for_and_never_landed_are_bounded() -> None:
    sizing = Sizing(number=1, counts={"main": 1})
    for number in range(2, 200):
        sizing.take(number, {"main": number})
        sizing.writes()
    assert len(sizing.written) == WRITTEN_MAX
    assert sizing.sees(SizeMark(number=199, counts={"main": 199}))
    assert sizing.written == {}


# --- switched off --------------------------------------------------------------------------------------------------


def test_sl_03_without_a_size_an_elastic_kind_is_placed_as_ever() -> None:
    """A manager that says no sizes gets the same writes and words of an agent that knows them, byte for byte."""
    said = []
    for stage in (Stage(), SizeStage()):
        stage.start()
        stage.place(kind="Job", name="j")
        stage.send(m.Stop(key=KEY, reason="Evicted"))
        stage.pass_seconds(5.0)
        said.append((stage.writes, stage.peer.heard, stage.peer.inventories))
        found = stage.placement()
        assert found is None or found.sizing is None
    assert said[0] == said[1]


def test_sl_03_nothing_of_sizes_is_said_to_a_manager_of_an_older_version() -> None:
    """It would end the session for a report that it does not know."""
    stage = grown()
    stage.crash()
    stage.peer.session = ManagerSession(instance="manager-1", versions=(1, 2))
    stage.peer.session.lead(2, stage.now)
    heard = len(stage.peer.heard)
    stage.start()
    stage.confirm()
    stage.finish(stage.lifted()[0], "Failed")
    stage.react()
    stage.change(JOB, "j", {"metadata": {"annotations": {ANNOTATION_SIZE: "spoilt"}}})
    stage.pass_seconds(60.0)
    assert len(stage.lifted()) == 2, "a slot that was open is filled again"
    said = stage.peer.heard[heard:]
    assert not any(isinstance(one, SliceFinished | SizeRefused) for one in said)
    assert (stage.peer.open, len(stage.peer.greetings)) == (True, 2)


# --- setting -------------------------------------------------------------------------------------------------------


def test_a_growth_is_one_patch_of_the_job_and_one_of_each_gate() -> None:
    """The figure of section 10: at the worker 1 + n requests."""
    stage = grown()
    before = len(stage.writes)
    stage.resize(2, main=5)
    stage.react()
    written = stage.writes[before:]
    assert [is_size(one) for one in written] == [True, False, False, False]
    assert [one.ref.key.name for one in written[1:]] == ["j-0003", "j-0004", "j-0005"]
    body = json.loads(written[0].body) if isinstance(written[0], Patch) else []
    assert [one["path"] for one in body if one["op"] == "test"] == ["/metadata/uid", "/metadata/resourceVersion"]
    assert (stage.job()["spec"]["parallelism"], stage.mark()["number"]) == (5, 2)


def test_a_shrink_is_one_patch() -> None:
    stage = grown(count=3)
    before = len(stage.writes)
    stage.resize(2, main=1)
    stage.react()
    end_surplus(stage)
    assert list(map(is_size, stage.writes[before:])) == [True]
    assert stage.answers == [1, 2]
    assert stage.lifted() == ["j-0001"]


def test_sl_45_a_size_that_changes_no_pod_is_marked_all_the_same() -> None:
    stage = grown()
    stage.hold_sizes()
    stage.resize(2, main=2)
    assert (stage.answers, len(stage.held)) == ([1], 1)
    stage.land()
    assert (stage.answers, stage.mark()["number"]) == ([1, 2], 2)


def test_sl_25_completions_that_are_tied_go_with_the_pods() -> None:
    stage = SizeStage()
    stage.begin(2, spec=a_job(2, 2, completionMode="Indexed"))
    stage.resize(2, main=4)
    assert (stage.job()["spec"]["parallelism"], stage.job()["spec"]["completions"]) == (4, 4)
    assert stage.mark()["tied"] is True


def test_a_size_that_came_before_the_object_was_made_is_set_once_it_is() -> None:
    stage = SizeStage()
    stage.start()
    stage.offer(KEY, "Job", "j")
    stage.hold = lambda write: write.ref.resource == JOB
    stage.commit_size(2, 1)
    stage.resize(2, main=1)
    stage.release_writes()
    stage.land()
    stage.react()
    assert (stage.mark()["number"], stage.job()["spec"]["parallelism"], len(stage.lifted())) == (2, 1, 1)
    assert stage.answers[-1] == 2


def test_local_the_mark_alone_is_set_and_the_users_wish_stays() -> None:
    stage = SizeStage(mode=AgentMode.LOCAL)
    stage.begin(2, spec=a_job(4))
    assert (len(stage.lifted()), len(stage.waiting())) == (2, 2)
    stage.resize(2, main=3)
    assert (stage.mark()["counts"], stage.job()["spec"]["parallelism"]) == ({"main": 3}, 4)
    assert (len(stage.lifted()), len(stage.waiting())) == (3, 1)


def test_hd_709_pods_that_wait_for_a_size_that_is_not_granted_are_no_trouble_and_others_are() -> None:
    """HD-709: nobody is to take that gate off. A gate of others beside it is told, as of any Job."""
    stage = SizeStage(mode=AgentMode.LOCAL)
    stage.begin(2, spec=a_job(4))
    assert (len(stage.lifted()), len(stage.waiting())) == (2, 2)
    stage.pass_seconds(60.0)
    assert {one for report in stage.peer.of(m.CountsReport) for one in report.troubles} == set()
    stage.make_pod(schedulingGates=[{"name": GATE}, {"name": "example.com/quarantine"}])
    stage.pass_seconds(60.0)
    (told,) = {one for report in stage.peer.of(m.CountsReport) for one in report.troubles}
    assert "example.com/quarantine" in told.text


def test_ten_sizes_in_a_row_end_with_the_last_one() -> None:
    """By number, whatever came between."""
    stage = grown()
    for number in range(2, 12):
        stage.resize(number, main=1 + number % 3)
    stage.react()
    end_surplus(stage)
    assert (stage.mark()["number"], len(stage.lifted()), stage.answers[-1]) == (11, 3, 11)


# --- answers -------------------------------------------------------------------------------------------------------


def test_sl_51_an_answer_says_how_many_pods_ended_at_its_size() -> None:
    stage = grown(count=3)
    stage.finish("j-0001")
    stage.resize(2, main=2)
    assert stage.peer.of(SliceFinished)[-1] == SliceFinished(
        key=KEY, number=2, ended=(m.PodSetCounts(name="main", succeeded=0, failed=0),)
    )
    stage.resize(3, main=1)
    stage.finish("j-0002", "Failed")
    assert stage.peer.of(SliceFinished)[-1].ended == (m.PodSetCounts(name="main", failed=1),)


@pytest.mark.parametrize(
    ("release", "holds", "said_at_once"),
    [
        ("OnTerminating", False, True),
        ("OnTerminating", True, False),
        ("OnTerminal", False, False),
        ("AfterGrace", False, False),
    ],
)
def test_sl_21_what_is_in_the_way_follows_the_release_rule(release: str, holds: bool, said_at_once: bool) -> None:
    stage = grown(count=3, release=release, holds_quota=holds)
    stage.resize(2, main=1)
    assert stage.answers == [1], "the Job's controller has not ended anything yet"
    stage.react()
    assert (stage.answers == [1, 2]) is said_at_once
    end_surplus(stage)
    assert stage.answers == [1, 2]


def test_sl_21_gated_pods_are_in_nobodys_way() -> None:
    stage = grown()
    stage.hold_ungates()
    stage.cut_stream()
    stage.mend(resume=False)
    stage.resize(2, main=5)
    stage.confirm()
    stage.hold = is_size
    stage.resize(3, main=2)
    stage.release_writes()
    stage.land()
    assert stage.answers[-1] == 3


def test_sl_45_a_pod_that_vanished_and_may_run_is_in_the_way() -> None:
    """P10: removed by force, its node may run it on."""
    stage = grown()
    stage.create(NODE, {"metadata": {"name": "node-1"}})
    stage.settle()
    stage.remove(POD, "j-0002", grace=0)
    stage.resize(2, main=1)
    stage.pass_seconds(200.0)
    assert stage.answers == [1]
    stage.store.delete(stage.store.kinds.of(NODE), "", "node-1", Deletion(), stage.now)
    stage.settle()
    stage.pass_seconds(1.0)
    assert stage.answers == [1, 2]


def test_sl_23_to_zero_and_up_again() -> None:
    stage = grown()
    stage.resize(2, main=0)
    stage.react()
    end_surplus(stage)
    assert (stage.lifted(), stage.answers) == ([], [1, 2])
    stage.resize(3, main=2)
    stage.react()
    assert (len(stage.lifted()), stage.answers) == (2, [1, 2, 3])


def test_sl_22_room_at_the_worker_is_free_with_the_answer_and_not_before() -> None:
    capacity = (NominalCapacity(flavor="default", resource="cpu", nominal=10_000),)

    def used(stage: SizeStage) -> int:
        return next(one.used for one in stage.machine.world.admission.entries() if one.resource == "cpu")

    stage = grown(count=3, capacity=capacity)
    assert used(stage) == 3000
    stage.resize(2, main=1)
    stage.react()
    assert used(stage) == 3000, "they stop, and hold what they have"
    end_surplus(stage)
    assert used(stage) == 1000
    stage.resize(3, main=5)
    assert used(stage) == 5000


# --- a start -------------------------------------------------------------------------------------------------------


def test_the_inventory_says_number_counts_and_what_may_run() -> None:
    stage = TrainingStage()
    stage.begin_sets(1, 3)
    stage.run_all()
    stage.resize(2, leader=1, workers=2)
    stage.restart()
    [entry] = stage.peer.inventories[-1]
    assert (entry.size, entry.granted) == (2, (("leader", 1), ("workers", 2)))
    assert entry.running == (("leader", 1), ("workers", 3))


def test_sl_48_after_a_start_nothing_is_opened_before_its_number_is_said() -> None:
    stage = grown()
    stage.resize(2, main=4)
    heard_of(stage)
    stage.react()
    stage.confirm()
    stage.confirm_size(1)
    assert len(stage.lifted()) == 2
    assert any(isinstance(one, m.Applied) and one.waits for one in stage.peer.heard), "it asks for the word"
    stage.confirm_size(2)
    assert (len(stage.lifted()), stage.answers[-1]) == (4, 2)


@pytest.mark.parametrize("said", ["Resize", "Commit", "Confirm"])
def test_sl_56_each_word_of_the_manager_about_its_number_confirms_it(said: str) -> None:
    stage = grown()
    stage.resize(2, main=3)
    heard_of(stage)
    stage.react()
    stage.confirm()
    words = {"Resize": lambda: stage.resize(2, main=3), "Commit": lambda: stage.commit_size(3, 2)}
    words.get(said, lambda: stage.confirm_size(2))()
    assert (len(stage.lifted()), stage.size_state) == (3, SizeState.ANSWERED)


def test_sl_56_a_commit_that_is_said_again_with_a_higher_size_is_a_resize() -> None:
    stage = grown()
    stage.restart()
    stage.commit_size(4, 2)
    stage.react()
    assert (len(stage.lifted()), stage.mark()["number"]) == (4, 2)


def test_a_mark_that_cannot_be_read_is_not_none() -> None:
    """Nothing is set or let go by it, what runs goes on and is listed, and each size is refused."""
    stage = grown()
    stage.crash()
    stage.change(JOB, "j", {"metadata": {"annotations": {ANNOTATION_SIZE: "3"}}})
    stage.start()
    stage.confirm()
    [entry] = stage.peer.inventories[-1]
    assert (entry.size, entry.granted, entry.lifted) == (0, (), True)
    stage.finish("j-0001", "Failed")
    stage.react()
    stage.resize(2, main=4)
    stage.pass_seconds(60.0)
    assert stage.lifted() == ["j-0002"]
    assert stage.refusals[-1].text.startswith("the size that it has cannot be read")
    assert not [note for note in stage.notes if "cannot be sent" in note.text]
    assert stage.state() == "Running"


def test_a_mark_that_is_spoilt_while_it_runs_is_told_once_and_nothing_is_set_by_it() -> None:
    stage = grown()
    stage.change(JOB, "j", {"metadata": {"annotations": {ANNOTATION_SIZE: "spoilt"}}})
    stage.pass_seconds(120.0)
    assert [(one.number, one.refusal.value) for one in stage.refusals] == [(1, "Invalid")]
    assert (stage.state(), len(stage.lifted())) == ("Running", 2)
    assert not [note for note in stage.notes if "cannot be sent" in note.text]


# --- edits ---------------------------------------------------------------------------------------------------------


def test_an_edit_of_the_count_is_put_back_to_the_mark() -> None:
    stage = grown()
    stage.resize(2, main=3)
    stage.react()
    stage.change(JOB, "j", {"spec": {"parallelism": 9}})
    stage.react()
    stage.pass_seconds(30.0)
    assert (stage.job()["spec"]["parallelism"], stage.state()) == (3, "Running")
    assert len(stage.lifted()) == 3


def test_an_edit_that_was_made_while_no_agent_ran_is_put_back_to_the_mark() -> None:
    stage = grown()
    stage.resize(2, main=3)
    stage.react()
    stage.crash()
    stage.change(JOB, "j", {"spec": {"parallelism": 1}})
    stage.start()
    stage.confirm()
    stage.confirm_size(2)
    stage.pass_seconds(5.0)
    assert (stage.job()["spec"]["parallelism"], stage.state()) == (3, "Running")


def test_a_mark_that_somebody_else_wrote_is_written_over_and_nothing_follows_it() -> None:
    stage = grown()
    forged = json.dumps({"number": 9, "counts": {"main": 9}})
    stage.change(JOB, "j", {"metadata": {"annotations": {ANNOTATION_SIZE: forged}}, "spec": {"parallelism": 9}})
    stage.react()
    stage.pass_seconds(60.0)
    assert (stage.mark()["number"], stage.job()["spec"]["parallelism"]) == (1, 2)
    assert len(stage.lifted()) == 2
    assert stage.state() == "Running"


def test_our_own_patch_is_no_edit_when_its_answer_is_lost_and_the_next_size_is_known() -> None:
    stage = grown()
    stage.hold_sizes()
    stage.resize(2, main=4)
    stage.resize(3, main=3)
    stage.release_writes()
    stage.land_unanswered()
    stage.pass_seconds(1.0)
    [asked] = [write for write in stage.writes if is_size(write) and b'"number\\":2' in getattr(write, "body", b"")]
    stage.post(WriteFailed(write_id=asked.write_id, error=WriteError.UNKNOWN, message="timeout"))
    stage.pass_seconds(30.0)
    assert (stage.mark()["number"], stage.job()["spec"]["parallelism"], stage.state()) == (3, 3, "Running")
    assert not stage.told, "nobody is told of an edit"


# --- stops ---------------------------------------------------------------------------------------------------------


def test_a_stop_while_it_is_resized_takes_no_size_and_waits_for_the_lift_that_is_under_way() -> None:
    stage = grown(count=1)
    stage.hold_ungates()
    stage.resize(2, main=2)
    stage.react()
    stage.send(m.Stop(key=KEY, reason="Evicted"))
    stage.resize(3, main=5)
    assert (stage.sizing.number, stage.size_state) == (2, SizeState.STOPPING)
    assert stage.sizing.lifts, "until its answer it may land"
    stage.release_writes()
    stage.land()
    assert not stage.sizing.lifts
    assert not any(is_size(one) and b"5" in getattr(one, "body", b"") for one in stage.writes)
    assert not stage.refusals, "its end is said"


def test_hd_563_what_may_run_unseen_after_a_start_opens_no_slot() -> None:
    """Size 9: its slots are doubted, and nobody has opened them; they stay closed when the doubt ends during a cut."""
    stage = SizeStage()
    stage.begin(0)
    stage.resize(2, main=2)
    stage.restart()
    stage.confirm()
    stage.resize(3, main=4)
    stage.react()
    assert (len(stage.lifted()), len(stage.waiting())) == (2, 2), "two that vanished may run"
    stage.cut_stream()
    stage.pass_seconds(UNSEEN_SECONDS + 60.0)
    assert (len(stage.lifted()), stage.sizing.opened) == (2, {"main": 2})
    stage.mend(resume=False)
    stage.confirm()
    stage.confirm_size(3)
    assert len(stage.lifted()) == 4
