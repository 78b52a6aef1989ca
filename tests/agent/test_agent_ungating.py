"""Gates of elastic work are lifted by count: Kueue's own scenarios of its ungater, and what of EJ is about it.

What is *admitted for n* there is a size of n that is confirmed here; *evicted*, *finished* and *not admitted* are words
that the agent is not told, as it is told a Stop or nothing.
"""

from __future__ import annotations

from typing import Any

import pytest

from gatelift_agent.core.admission.backend import GRANTED
from gatelift_agent.core.placement.sizes import SizeState
from gatelift_kinds.shared import sized_pods
from gatelift_kube.values.resources import JOB, POD
from gatelift_wire.values import messages as m
from gatelift_wire.values.sizes import Resize
from support.agent.scripted_backend import NOT_YET, REFUSED, Script
from support.agent.size_stage import GATE, SizeStage, TrainingStage, a_job, gated, sets
from support.agent.values import KEY


def a_stage(granted: int, *, spec: dict[str, Any] | None = None) -> SizeStage:
    """Return a stage with a Job that is let go and granted so many pods, and has none yet."""
    stage = SizeStage()
    stage.begin(granted, spec=spec or a_job(granted), reacts=False)
    return stage


def test_ug_001_one_gated_pod_and_one_granted() -> None:
    stage = a_stage(1)
    name = stage.make_pod()
    assert stage.lifted() == [name]


def test_reserved_and_not_told_yet_lets_nothing_go() -> None:
    """UG-002, UG-013, UG-024: what home has not granted in full is no size that was said here."""
    stage = SizeStage()
    stage.start()
    stage.offer(KEY, "Job", "j")
    assert stage.state() == "Held"
    assert stage.document(JOB, "j") is None


def test_ug_003_an_older_size_holds_while_a_newer_one_was_never_said() -> None:
    stage = a_stage(1)
    first, second = stage.make_pod(), stage.make_pod()
    assert (stage.lifted(), stage.waiting()) == ([first], [second])


def test_ug_004_three_of_three() -> None:
    stage = a_stage(3)
    names = [stage.make_pod() for _ in range(3)]
    assert stage.lifted() == names


def test_ug_005_each_pod_set_has_its_own_count() -> None:
    stage = TrainingStage()
    stage.begin_sets(1, 2)
    stage.make_of("leader")
    stage.make_of("workers")
    assert (len(stage.lifted("leader")), len(stage.lifted("workers"))) == (1, 2)
    assert (len(stage.waiting("leader")), len(stage.waiting("workers"))) == (1, 1)


def test_ug_006_a_full_pod_set_keeps_none_of_another_waiting() -> None:
    stage = TrainingStage()
    stage.begin_sets(1, 1)
    stage.resize(2, leader=1, workers=2)
    stage.make_of("leader")
    stage.make_of("workers")
    assert (len(stage.lifted("leader")), len(stage.lifted("workers"))) == (1, 2)


def test_ug_007_who_succeeded_frees_its_slot_in_its_own_pod_set() -> None:
    stage = TrainingStage()
    stage.begin_sets(1, 2)
    stage.run_all()
    stage.finish(stage.lifted("leader")[0])
    stage.make_of("leader")
    stage.make_of("workers")
    assert (len(stage.lifted("leader")), len(stage.waiting("leader"))) == (1, 0)
    assert (len(stage.lifted("workers")), len(stage.waiting("workers"))) == (2, 1)


def test_ug_008_a_pod_of_no_pod_set_is_never_let_go() -> None:
    """UG-008, SL-46."""
    stage = a_stage(2)
    stage.make_pod(pod_set=None)
    assert stage.ungates() == []
    assert gated(stage.pods("")[0])


def test_ug_009_one_of_two_is_let_go_and_the_other_one_is_too() -> None:
    stage = a_stage(2)
    names = [stage.make_pod(), stage.make_pod()]
    assert stage.lifted() == names


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_who_ended_frees_its_slot(phase: str) -> None:
    """UG-010, UG-011, EJ-010."""
    stage = a_stage(1)
    first = stage.make_pod()
    stage.run(first)
    stage.finish(first, phase)
    second = stage.make_pod()
    assert stage.lifted() == [second]


def test_ug_012_who_runs_keeps_its_slot() -> None:
    """UG-012, EJ-011."""
    stage = a_stage(1)
    first = stage.make_pod()
    stage.run(first)
    second = stage.make_pod()
    assert (stage.lifted(), stage.waiting()) == ([first], [second])


def test_ug_014_what_was_committed_without_a_size_is_let_go_by_none() -> None:
    """UG-014, UG-026: its gate is its user's."""
    stage = SizeStage()
    stage.start()
    stage.place(kind="Job", name="j", spec=a_job(1))
    stage.make_pod()
    assert (stage.ungates(), len(stage.waiting())) == ([], 1)


def test_ug_015_a_size_of_what_is_not_here_is_an_answer_and_no_error() -> None:
    stage = SizeStage()
    stage.start()
    stage.send(Resize(key=KEY, number=2, pod_sets=sets({"main": 1})))
    assert [one.number for one in stage.refusals] == [2]


def test_ug_016_while_a_lift_is_under_way_no_other_pod_has_its_slot() -> None:
    stage = a_stage(1)
    stage.hold_ungates()
    first = stage.make_pod()
    stage.make_pod()
    assert [one.ref.key.name for one in stage.ungates()] == [first]
    stage.release_writes()
    stage.land()
    assert stage.lifted() == [first]


def test_ug_017_a_later_size_brings_what_is_added_to_its_pods() -> None:
    """UG-017, SL-33: annotations and selectors go to the new pods, also over those that the template has."""
    stage = a_stage(1)
    first = stage.make_pod()
    added = b'{"annotations": {"provisioned-by": "two"}, "labels": {"wave": "2"}, "nodeSelector": {"zone": "b"}}'
    stage.send(Resize(key=KEY, number=2, pod_sets=sets({"main": 2}, additions=added)))
    second = stage.make_pod()
    grown = stage.pod(second)
    assert stage.lifted() == [first, second]
    assert grown["metadata"]["annotations"]["provisioned-by"] == "two"
    assert grown["metadata"]["labels"]["wave"] == "2"
    assert grown["spec"]["nodeSelector"]["zone"] == "b"
    assert "provisioned-by" not in stage.pod(first)["metadata"].get("annotations", {})


def test_ug_017_a_pod_that_contradicts_what_is_added_waits_and_others_have_their_turn() -> None:
    stage = a_stage(1)
    first = stage.make_pod()
    added = b'{"nodeSelector": {"zone": "b"}}'
    stage.send(Resize(key=KEY, number=2, pod_sets=sets({"main": 2}, additions=added)))
    contrary = stage.make_pod(nodeSelector={"zone": "a"})
    assert stage.lifted() == [first]
    other = stage.make_pod()
    assert (stage.lifted(), stage.waiting()) == ([first, other], [contrary])
    assert any(f"{contrary} is not let go" in note.text for note in stage.notes)


def test_ug_018_only_its_own_gate_is_taken_off() -> None:
    stage = a_stage(1)
    name = stage.make_pod(schedulingGates=[{"name": "topology"}, GATE])
    assert stage.pod(name)["spec"]["schedulingGates"] == [{"name": "topology"}]
    stage.pass_seconds(60.0)
    assert len(stage.ungates()) == 1


def test_ug_019_surplus_stays_gated() -> None:
    """UG-019, EJ-009: exactly as many, and it stays so."""
    stage = a_stage(2)
    for _ in range(5):
        stage.make_pod()
    stage.pass_seconds(300.0)
    assert (len(stage.lifted()), len(stage.waiting())) == (2, 3)
    assert len(stage.ungates()) == 2


def test_what_has_ended_lets_nothing_go() -> None:
    """UG-020, UG-025."""
    stage = a_stage(2)
    stage.send(m.Stop(key=KEY, reason="Evicted"))
    stage.make_pod()
    stage.pass_seconds(30.0)
    assert stage.ungates() == []


def test_ug_021_a_later_size_lets_the_surplus_go() -> None:
    stage = a_stage(1)
    for _ in range(3):
        stage.make_pod()
    stage.resize(2, main=3)
    assert len(stage.lifted()) == 3


def test_ug_022_pods_of_an_earlier_slice_are_of_the_size_that_there_is() -> None:
    """UG-022, UG-028, UG-029, EJ-012: a pod is its Job's; what slice it names says nothing, and the cap holds."""
    stage = a_stage(1)
    first = stage.make_pod()
    stage.resize(2, main=2)
    named = {"kueue.x-k8s.io/workload-slice-name": "origin", "kueue.x-k8s.io/workload": "another"}
    second, third = stage.make_pod(notes=named), stage.make_pod(notes=named)
    assert (stage.lifted(), stage.waiting()) == ([first, second], [third])


def test_ug_023_a_size_that_is_confirmed_lets_go() -> None:
    stage = a_stage(2)
    stage.make_pod()
    assert (len(stage.ungates()), stage.size_state) == (1, SizeState.ANSWERED)


def test_sl_46_indexed_pods_go_by_lowest_index_and_others_oldest_first() -> None:
    stage = a_stage(0)
    names = {index: stage.make_pod(notes={sized_pods.INDEX: str(index)}) for index in (10, 9, 2)}
    stage.resize(2, main=2)
    assert stage.lifted() == sorted([names[2], names[9]])
    plain = a_stage(0)
    young, old = plain.make_pod(), plain.make_pod()
    plain.change(POD, young, {"metadata": {"annotations": {"touched": "true"}}})
    plain.resize(2, main=1)
    assert (plain.lifted(), plain.waiting()) == ([young], [old]), "made in one second: by name, as they were made"


def test_sl_46_who_terminates_keeps_its_slot_until_it_has_stopped() -> None:
    stage = a_stage(1)
    first = stage.make_pod()
    stage.run(first)
    stage.remove(POD, first)
    second = stage.make_pod()
    stage.pass_seconds(20.0)
    assert stage.waiting() == [second]
    stage.finish(first, "Failed")
    assert stage.lifted() == [second]


def test_many_pods_are_let_go_in_parts_and_each_once() -> None:
    stage = a_stage(200)
    stage.react()
    stage.pass_seconds(1.0)
    assert len(stage.lifted()) == 200
    assert len(stage.ungates()) == 200


def test_sl_50_a_growth_waits_for_the_remote_admission() -> None:
    """And what the backend refuses is told, once, and takes nothing back."""
    script = Script(said={KEY: GRANTED})
    stage = SizeStage(backend=script.backend)
    stage.begin(1)
    script.said[KEY] = NOT_YET
    stage.resize(2, main=2)
    stage.react()
    assert (len(stage.lifted()), len(stage.waiting())) == (1, 1)
    script.say(stage, REFUSED)
    script.say(stage, REFUSED)
    assert [one.text for one in stage.refusals] == [REFUSED.text]
    script.say(stage, GRANTED)
    assert len(stage.lifted()) == 2


def test_a_slot_that_is_open_is_filled_again_whatever_the_remote_admission_says_of_a_growth() -> None:
    script = Script(said={KEY: GRANTED})
    stage = SizeStage(backend=script.backend)
    stage.begin(2)
    stage.run_all()
    script.said[KEY] = NOT_YET
    stage.resize(2, main=3)
    stage.finish("j-0001", "Failed")
    stage.react()
    assert (len(stage.lifted()), len(stage.waiting())) == (2, 1)
