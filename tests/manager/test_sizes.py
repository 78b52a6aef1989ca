"""The user's object against its chain (KEP-77): what is written of slices while an elastic Job is resized.

What its cluster is told and answers comes with its dispatch: an answer is put into the attempt here.
"""

from __future__ import annotations

from typing import Any

import pytest

from gatelift_kube.deciding.writes import Create, Delete, Patch, WriteError
from gatelift_kube.values.resources import WORKLOAD
from gatelift_wire.values.keys import ANNOTATION_CHAIN, ANNOTATION_EPOCH, ANNOTATION_SIZE
from gatelift_wire.values.messages import Offer, Stop
from support.manager.builders import Doc
from support.manager.slice_world import (
    QUEUE,
    THE_JOB,
    a_running_chain,
    a_slice_world,
    all_slices,
    an_elastic_job,
    charged,
    count,
    finished,
    resize,
    seen,
    the_attempt,
    used,
)
from support.manager.world import World

HOME = pytest.mark.parametrize("clusters", [(), ("a", "b")], ids=["at home", "at a worker"])


def answer(world: World, of: int | None = None, *, session: int | None = None) -> bool:
    """Let the cluster say of a size (the present one) that no more can run, in a session (the present one)."""
    attempt = the_attempt(world)
    given = attempt.size.answer(
        attempt.size.number if of is None else of, world.sessions[attempt.cluster] if session is None else session
    )
    world.machine.core.mark_attempt(attempt)
    world.advance(2.0)
    return given


def of_slices(world: World) -> list[tuple[str, str]]:
    """Return what was written to Workloads, and to the Job, in order."""
    kinds = {"Workload", "Job"}
    return [(verb, ref.resource.kind) for verb, ref, _ in world.api.writes if ref.resource.kind in kinds]


# --- growing -------------------------------------------------------------------------------------------------------


@HOME
def test_sl_10_more_pods_are_a_slice_that_becomes_the_record_and_nothing_is_started_anew(clusters: Any) -> None:
    """SL-10, SL-11: KEP-77, scale-up, points 1 to 5; WS-036, WS-039, MK-001 as far as records go."""
    world = a_running_chain(clusters=clusters)
    assert seen(world) == [(1, 3, 3, "")]
    runs = list(world.runs)
    offers = [(cluster, one.size) for cluster, one in world.messages(Offer)]
    home = the_attempt(world).cluster
    resize(world, 5)
    world.advance(5.0)
    asked = [(cluster, one.size) for cluster, one in world.messages(Offer)]
    assert asked == [*offers, (home, 2)], "only where it runs is asked, for what it grows by"
    assert world.messages(Offer)[-1][1].pod_sets[0].count == 2
    assert seen(world) == [(1, 3, 3, "WorkloadSliceReplaced"), (2, 5, 5, "")]
    assert (world.runs, list(world.running)) == (runs, runs)
    assert not world.messages(Stop)
    assert used(world) == 5


@HOME
def test_sl_11_the_next_slice_says_whose_place_it_takes_and_has_the_same_template_and_owner(clusters: Any) -> None:
    world = a_running_chain(clusters=clusters)
    resize(world, 5)
    world.advance(5.0)
    first, second = all_slices(world)
    before, after = first["metadata"], second["metadata"]
    marks = after["annotations"]
    assert marks["kueue.x-k8s.io/workload-slice-name"] == before["name"]
    assert marks["kueue.x-k8s.io/workload-slice-replacement-for"] == f"team/{before['name']}"
    assert before["annotations"]["kueue.x-k8s.io/workload-slice-name"] == before["name"]
    assert (marks[ANNOTATION_CHAIN], marks[ANNOTATION_SIZE]) == (before["uid"], "2")
    assert after["labels"]["kueue.x-k8s.io/job-uid"] == before["labels"]["kueue.x-k8s.io/job-uid"]
    assert after["ownerReferences"] == before["ownerReferences"]
    assert second["spec"]["podSets"][0]["template"] == first["spec"]["podSets"][0]["template"]
    assert before["name"] != after["name"]


def test_sl_10_one_growth_is_a_create_an_admission_and_a_finish_and_nothing_else() -> None:
    world = a_running_chain()
    before = len(of_slices(world))
    resize(world, 5)
    world.advance(5.0)
    assert of_slices(world)[before:] == [
        ("create", "Workload"),
        ("replace status", "Workload"),
        ("replace status", "Workload"),
    ]


def test_sl_40_the_record_moves_with_winner_epoch_term_and_policy_in_one_write() -> None:
    world = a_running_chain()
    resize(world, 5)
    world.advance(5.0)
    first, second = (one["status"] for one in all_slices(world))
    assert second["clusterName"] == first["clusterName"]
    assert second["admissionChecks"] == first["admissionChecks"]
    times = [{one["type"]: one["lastTransitionTime"] for one in status["conditions"]} for status in (first, second)]
    for type_ in ("QuotaReserved", "Admitted"):
        assert times[0][type_] == times[1][type_], "what runs is no younger for having grown"


def test_sl_40_a_new_leader_writes_the_record_of_a_growth_in_its_own_term() -> None:
    world = a_running_chain(cpu=4)
    resize(world, 5)
    world.advance(5.0)
    world.restart()
    world.api.edit(QUEUE, _with_cpu(8))
    world.advance(10.0)
    second = all_slices(world)[1]
    (mark,) = second["status"]["admissionChecks"][0]["podSetUpdates"]
    assert mark["annotations"]["gatelift.dev/term"] == "2"
    assert mark["annotations"][ANNOTATION_EPOCH] == "1"


def _with_cpu(cpu: int) -> Any:
    def change(queue: Doc) -> None:
        queue["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["nominalQuota"] = str(cpu)

    return change


def test_kueues_words_are_said_of_a_slice_whose_place_is_taken() -> None:
    world = a_running_chain()
    resize(world, 5)
    world.advance(5.0)
    first, second = all_slices(world)
    job = world.find("Job")["metadata"]["uid"]
    text = (
        f"Replaced to accommodate a workload (UID: {second['metadata']['uid']}, JobUID: {job}) "
        "due to workload slice aggregation"
    )
    assert world.condition(first, "Finished")["message"] == text
    said = [one for one in world.emitted if one.reason == "WorkloadSliceReplaced" and one.ref.resource == WORKLOAD]
    assert [(one.ref.key.name, one.message) for one in said] == [(first["metadata"]["name"], text)]


def test_ej_018_the_new_one_is_seen_admitted_before_the_old_one_is_finished() -> None:
    """EJ-018, SL-12: and the engine charges one of both at any moment; of what grows while its cluster is asked."""
    world = a_running_chain()
    resize(world, 5)
    happened: list[tuple[int | None, str, int]] = []
    while world.step():
        first, *later = all_slices(world)
        state = (charged(later[0]) if later else None, finished(world, first), used(world))
        if state not in happened:
            happened.append(state)
    replaced = "WorkloadSliceReplaced"
    assert happened == [(None, "", 3), (None, "", 5), (5, "", 5), (5, replaced, 5)]


def test_sl_12_the_books_have_one_charge_of_a_chain_and_it_is_the_records() -> None:
    world = a_running_chain()
    resize(world, 5)
    world.advance(5.0)
    ledger = world.machine.core.ledger
    first, second = (one["metadata"]["uid"] for one in all_slices(world))
    assert (ledger.holds(first), ledger.holds(second)) == (False, True)
    assert (ledger.reserved, ledger.released) == (1, 0)


# --- in place ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wanted", [pytest.param(25, id="WS-043"), pytest.param(11, id="WS-044")])
def test_what_waits_is_changed_in_place_and_keeps_its_place(wanted: int) -> None:
    world = a_slice_world(cpu=10)
    world.api.apply(an_elastic_job(parallelism=20))
    world.advance(3.0)
    (before,) = all_slices(world)
    resize(world, wanted)
    world.advance(3.0)
    (after,) = all_slices(world)
    assert seen(world) == [(2, wanted, None, "")]
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["metadata"]["creationTimestamp"] == before["metadata"]["creationTimestamp"]


def test_ws_038_ws_051_the_same_size_writes_nothing() -> None:
    world = a_running_chain(cpu=4)
    resize(world, 5)
    world.advance(5.0)
    before = of_slices(world)
    world.api.edit(THE_JOB, lambda job: job["metadata"]["labels"].update(team="green"))
    world.advance(5.0)
    assert of_slices(world) == before


def test_ws_052_ws_053_a_slice_that_waits_is_edited_and_gets_a_number_that_none_had() -> None:
    world = a_running_chain(cpu=4)
    for wanted in (6, 9, 5):
        resize(world, wanted)
        world.advance(3.0)
    assert seen(world) == [(1, 3, 3, ""), (4, 5, None, "")]
    assert used(world) == 3


def test_a_growth_is_admitted_at_the_size_that_is_wanted_then() -> None:
    world = a_running_chain(cpu=4)
    resize(world, 6)
    world.advance(3.0)
    resize(world, 4)
    world.advance(3.0)
    assert seen(world) == [(1, 3, 3, "WorkloadSliceReplaced"), (3, 4, 4, "")]


@pytest.mark.parametrize("wanted", [3, 2], ids=["as it is", "below"])
def test_a_slice_that_nobody_wants_any_more_ends_out_of_sync_and_the_record_is_lowered(wanted: int) -> None:
    world = a_running_chain(cpu=4)
    resize(world, 6)
    world.advance(3.0)
    resize(world, wanted)
    world.advance(3.0)
    record, target = (
        next(one for one in all_slices(world) if bool(finished(world, one)) is over) for over in (False, True)
    )
    assert finished(world, target) == "OutOfSync"
    assert (count(record), charged(record)) == (wanted, 3)
    assert "EvictedDueToPreempted" not in {one.reason for one in world.emitted}
    assert not world.condition(target, "Preempted")


def test_another_template_is_queued_anew_as_ever() -> None:
    """WS-037, WS-048: another shape ends what runs; what waited for the old one is out of sync."""
    world = a_running_chain(cpu=4)
    resize(world, 6)
    world.advance(3.0)

    def change(job: Doc) -> None:
        job["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "2"
        job["spec"]["parallelism"] = 1
        job["metadata"]["generation"] += 1

    world.api.edit(THE_JOB, change)
    world.advance(30.0)
    last = [one for one in all_slices(world) if not finished(world, one)]
    assert [(count(one), charged(one)) for one in last] == [(1, 1)]
    assert {finished(world, one) for one in all_slices(world)} == {"", "OutOfSync"}
    assert len(world.runs) == 2
    assert used(world) == 2


def test_ws_045_ws_054_a_write_that_fails_is_tried_again() -> None:
    world = a_running_chain()
    refused: list[int] = []

    def fail(command: Create | Patch | Delete) -> WriteError | None:
        is_size = isinstance(command, Patch) and b'"gatelift.dev/size"' in command.body
        if is_size and len(refused) < 2:
            refused.append(1)
            return WriteError.NOT_DONE
        return None

    world.fail = fail
    resize(world, 1)
    world.advance(60.0)
    assert len(refused) == 2
    assert seen(world) == [(2, 1, 3, "")]


# --- shrinking -----------------------------------------------------------------------------------------------------


@HOME
def test_sl_20_fewer_pods_lower_the_same_workload_and_free_nothing_by_themselves(clusters: Any) -> None:
    """SL-20, SL-41, WS-041: KEP-77, scale-down; with nobody's answer the charge stays for as long as that lasts."""
    world = a_running_chain(clusters=clusters)
    before = len(of_slices(world))
    resize(world, 1)
    world.advance(600.0)
    assert seen(world) == [(2, 1, 3, "")]
    assert used(world) == 3
    assert [each for each in of_slices(world)[before:] if each[1] == "Workload"] == [("patch", "Workload")]
    assert len(world.runs) == 1


@HOME
def test_sl_20_after_the_answer_the_record_is_charged_for_what_it_asks(clusters: Any) -> None:
    world = a_running_chain(clusters=clusters)
    resize(world, 1)
    world.advance(3.0)
    assert answer(world)
    assert seen(world) == [(2, 1, 1, "")]
    assert used(world) == 1
    assert "RecordPutBack" not in {one.reason for one in world.emitted}


def test_sl_20_what_was_lowered_is_not_taken_for_a_strangers_write() -> None:
    """It is written once, and not put back."""
    world = a_running_chain()
    resize(world, 1)
    world.advance(3.0)
    attempt = the_attempt(world)
    attempt.size.answer(2, world.sessions["a"])
    world.machine.core.mark_attempt(attempt)
    before = len(of_slices(world))
    for _ in range(40):
        world.step()
    assert [each for each in of_slices(world)[before:] if each[1] == "Workload"] == [("replace status", "Workload")]
    assert seen(world) == [(2, 1, 1, "")]


def test_sl_22_who_waits_gets_what_is_given_back() -> None:
    """SL-22, EJ-013."""
    world = a_running_chain(cpu=4)
    world.api.apply(an_elastic_job("next", parallelism=2))
    world.advance(3.0)
    resize(world, 1)
    world.advance(30.0)
    assert used(world) == 3
    answer(world)
    world.advance(3.0)
    assert used(world) == 3
    assert sorted(charged(one) or 0 for one in all_slices(world)) == [1, 2]


def test_sl_44_an_answer_about_another_size_gives_nothing_back() -> None:
    world = a_running_chain()
    resize(world, 2)
    world.advance(3.0)
    assert not answer(world, of=1)
    assert not answer(world, of=3)
    assert (seen(world), used(world)) == ([(2, 2, 3, "")], 3)


def test_sl_41_an_answer_of_a_session_before_gives_nothing_back() -> None:
    world = a_running_chain()
    resize(world, 2)
    world.advance(3.0)
    present = world.sessions["a"]
    world.cut("a")
    the_attempt(world).size.answer(2, present)
    world.advance(3.0)
    assert (seen(world), used(world)) == ([(2, 2, 3, "")], 3)
    world.connect("a")
    world.advance(3.0)
    assert (seen(world), used(world)) == ([(2, 2, 3, "")], 3)
    assert answer(world)
    assert (seen(world), used(world)) == ([(2, 2, 2, "")], 2)


def test_sl_41_a_new_leader_lowers_nothing_before_it_was_answered_itself() -> None:
    world = a_running_chain()
    resize(world, 2)
    world.advance(3.0)
    world.restart()
    world.advance(30.0)
    assert (seen(world), used(world)) == ([(2, 2, 3, "")], 3)
    assert answer(world)
    assert (seen(world), used(world)) == ([(2, 2, 2, "")], 2)


def test_sl_42_a_growth_after_a_shrink_is_charged_for_the_higher_of_both() -> None:
    """SL-42, EJ-002: what was once granted is taken back by a later size and its answer alone."""
    world = a_running_chain(parallelism=3)
    resize(world, 1)
    world.advance(3.0)
    resize(world, 2)
    world.advance(3.0)
    assert seen(world) == [(2, 1, 3, "WorkloadSliceReplaced"), (3, 2, 3, "")]
    assert used(world) == 3
    assert answer(world)
    assert (seen(world)[1], used(world)) == ((3, 2, 2, ""), 2)


def test_ej_002_down_after_an_answer_then_up_is_a_new_slice_and_two_objects() -> None:
    world = a_running_chain(parallelism=3)
    resize(world, 1)
    world.advance(3.0)
    answer(world)
    assert used(world) == 1
    resize(world, 2)
    world.advance(3.0)
    assert seen(world) == [(2, 1, 1, "WorkloadSliceReplaced"), (3, 2, 2, "")]
    assert used(world) == 2


def test_sl_23_to_zero_and_up_again() -> None:
    world = a_running_chain()
    resize(world, 0)
    world.advance(3.0)
    assert (seen(world), used(world)) == ([(2, 0, 3, "")], 3)
    answer(world)
    assert (seen(world), used(world)) == ([(2, 0, 0, "")], 0)
    resize(world, 4)
    world.advance(3.0)
    assert seen(world) == [(2, 0, 0, "WorkloadSliceReplaced"), (3, 4, 4, "")]
    assert (used(world), len(world.runs)) == (4, 1)
