"""What an agent makes of words about sizes: each in each state has an entry or is a typed no-op (P8, SL-57, SL-75)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gatelift_agent.core.session import sizes
from gatelift_agent.core.session.sizes import Resized
from gatelift_agent.core.values.settings import AgentMode, NominalCapacity
from gatelift_kinds.registry import SERVED
from gatelift_kube.deciding.writes import Patch
from gatelift_kube.values.resources import JOB, NAMESPACE
from gatelift_wire.values import messages as m
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.refusals import Refusal
from gatelift_wire.values.sizes import PlacementSize, Resize
from support.agent.size_stage import SizeStage, TrainingStage, a_job, sets
from support.agent.values import KEY, NAMESPACE_NAME

TEN_CPU = (NominalCapacity(flavor="default", resource="cpu", nominal=10_000),)
LONG = "s" * 200


def running(count: int = 2, **settings: Any) -> SizeStage:
    stage = SizeStage(**settings)
    stage.begin(count)
    stage.run_all()
    return stage


def said(stage: SizeStage, *pod_sets: m.PodSetRequest, number: int = 2, key: PlacementKey = KEY) -> Resized:
    """Have the agent take a Resize, and return what it came to."""
    world = stage.machine.world
    order = Resize(key=key, number=number, pod_sets=pod_sets or sets({"main": 3}))
    came = sizes.resize(world, order, stage.now)
    stage.pass_seconds(1.0)
    return came


REFUSED: dict[str, tuple[Callable[[], SizeStage], tuple[m.PodSetRequest, ...], Refusal, str]] = {
    "an unknown pod set": (running, sets({"main": 3, "more": 1}), Refusal.INVALID, "pod set more: is none that it has"),
    "a missing pod set": (running, sets({"other": 3}), Refusal.INVALID, "pod set main: is missing"),
    "no pod set": (running, (), Refusal.INVALID, "pod set main: is missing"),
    "additions that are none": (
        running,
        sets({"main": 3}, additions=b'{"labels": 3}'),
        Refusal.INVALID,
        "pod set main: additions.labels: must be of JSON type object",
    ),
    "more than the worker has": (
        lambda: running(capacity=TEN_CPU),
        sets({"main": 11}),
        Refusal.QUOTA_NEVER_FITS,
        "11000 asked for, 10000 in all",
    ),
    "a huge count": (
        lambda: running(capacity=TEN_CPU),
        sets({"main": 2**31 - 1}),
        Refusal.QUOTA_NEVER_FITS,
        "asked for, 10000 in all",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_sl_57_a_size_that_cannot_be_carried_out_is_refused_and_takes_nothing_back(name: str) -> None:
    """SL-57, SL-75: typed, with field, rule and way out; what runs is untouched, and a later size is taken."""
    made, pod_sets, refusal, text = REFUSED[name]
    stage = made()
    world = stage.machine.world
    came = sizes.resize(world, Resize(key=KEY, number=2, pod_sets=pod_sets), stage.now)
    stage.pass_seconds(1.0)
    assert came is Resized.REFUSED
    [no] = stage.refusals
    assert (no.number, no.refusal) == (2, refusal)
    assert text in no.text
    assert (stage.sizing.number, stage.state(), len(stage.lifted())) == (1, "Running", 2)
    stage.resize(3, main=3)
    stage.react()
    assert (stage.sizing.number, len(stage.lifted())) == (3, 3)


def test_sl_57_a_namespace_that_takes_no_work_any_more_takes_no_growth_and_lets_shrink() -> None:
    stage = running()
    kind = stage.store.kinds.of(NAMESPACE)
    body = b'{"metadata": {"labels": {"gatelift.dev/accept": null}}}'
    stage.store.patch(kind, "", NAMESPACE_NAME, body, "application/merge-patch+json", stage.now)
    stage.settle()
    stage.resize(2, main=3)
    assert [one.refusal for one in stage.refusals] == [Refusal.NAMESPACE_NOT_ALLOWED]
    stage.resize(3, main=1)
    assert stage.mark()["number"] == 3


def test_sl_57_a_worker_that_is_full_says_so_and_takes_it_later() -> None:
    other = PlacementKey("w-9", 1)
    stage = running(capacity=TEN_CPU)
    stage.offer(other, "Pod", "p", pod_sets=sets({"main": 8}))
    stage.resize(2, main=3)
    assert [one.refusal for one in stage.refusals] == [Refusal.QUOTA_BUSY]
    stage.send(m.Withdraw(key=other))
    stage.resize(2, main=3)
    stage.react()
    assert len(stage.lifted()) == 3


def test_sl_75_a_size_of_what_is_not_here_is_refused() -> None:
    stage = running()
    stage.send(Resize(key=PlacementKey("other", 1), number=2, pod_sets=sets({"main": 1})))
    [no] = stage.refusals
    assert (no.key.uid, no.refusal) == ("other", Refusal.EPOCH_STALE)
    assert "nothing of it is placed here" in no.text


def test_sl_75_a_size_of_what_is_held_is_refused_and_its_commit_taken() -> None:
    stage = SizeStage()
    stage.start()
    stage.offer(KEY, "Job", "j")
    stage.resize(2, main=3)
    assert "its commit has not come" in stage.refusals[0].text
    stage.commit_size(1, 1)
    assert (stage.state(), stage.sizing.number) == ("Running", 1)


def test_sl_75_a_size_of_what_has_none_is_refused() -> None:
    stage = SizeStage()
    stage.start()
    stage.place(kind="Job", name="j")
    stage.resize(2, main=3)
    assert (stage.refusals[0].refusal, stage.state()) == (Refusal.INVALID, "Running")
    assert "was committed without one" in stage.refusals[0].text


def test_a_size_of_what_was_read_late_is_taken_by_its_mark() -> None:
    """The object of a placement may be taken after a start has made the placement."""
    stage = running()
    stage.resize(2, main=3)
    found = stage.placement()
    assert found is not None
    found.sizing = None
    stage.resize(1, main=9)
    assert (stage.sizing.number, stage.sizing.opened, stage.refusals) == (2, {"main": 2}, [])
    stage.resize(3, main=4)
    stage.react()
    assert len(stage.lifted()) == 4


def test_sl_75_a_size_of_what_ends_is_a_typed_no_op() -> None:
    stage = running()
    stage.send(m.Stop(key=KEY, reason="Evicted"))
    assert said(stage) is Resized.ENDS
    assert (stage.refusals, stage.sizing.number) == ([], 1)


def test_sl_43_a_lower_number_is_a_typed_no_op_and_its_own_a_confirmation() -> None:
    stage = running()
    stage.resize(5, main=1)
    for number in (1, 2, 4):
        assert said(stage, number=number) is Resized.LATE
    assert said(stage, *sets({"main": 1}), number=5) is Resized.CONFIRMED
    assert (stage.sizing.number, stage.sizing.counts, stage.refusals) == (5, {"main": 1}, [])


def test_other_counts_of_its_own_number_are_not_looked_at_and_told() -> None:
    """Decision 106: an equal number is a confirmation with the counts that are known."""
    stage = running()
    stage.resize(2, main=1)
    assert said(stage, *sets({"main": 9}), number=2) is Resized.CONFIRMED
    assert stage.sizing.counts == {"main": 1}
    assert any("was said with other counts" in note.text for note in stage.notes)


def test_a_confirmation_of_another_number_opens_nothing() -> None:
    stage = running(1)
    stage.resize(2, main=2)
    stage.cut_stream()
    stage.mend(resume=False)
    stage.react()
    for number in (1, 3, 2**63 - 1):
        stage.send(m.Confirm(keys=(KEY,), sizes=(PlacementSize(key=KEY, number=number),)))
    stage.send(m.Confirm(keys=(), sizes=(PlacementSize(key=PlacementKey("other", 1), number=1),)))
    assert len(stage.lifted()) == 1
    stage.confirm()
    stage.confirm_size(2)
    assert len(stage.lifted()) == 2


def test_sl_48_its_number_alone_is_not_enough_where_the_placement_was_not_confirmed() -> None:
    stage = running(1)
    stage.resize(2, main=2)
    stage.cut_stream()
    stage.mend(resume=False)
    stage.react()
    stage.send(m.Confirm(keys=(), sizes=(PlacementSize(key=KEY, number=2),)))
    assert len(stage.lifted()) == 1


def test_sl_48_after_a_resume_nothing_is_opened_before_its_number_is_said_again() -> None:
    """What was set stays set, and was answered; a slot needs a word of the present session (R1) all the same."""
    stage = running(1)
    stage.resize(2, main=2)
    stage.cut_stream()
    stage.mend(resume=True)
    stage.confirm()
    stage.react()
    assert (stage.size_state.value, len(stage.lifted())) == ("Answered", 1)
    stage.confirm_size(2)
    assert (len(stage.lifted()), stage.answers) == (2, [1, 2])


def test_a_mark_that_would_be_too_long_is_refused_by_its_size() -> None:
    stage = TrainingStage()
    stage.begin_sets(1, 1)
    long = {f"{LONG}{at}": 1 for at in range(9)}
    stage.sizing.counts = dict(long)
    came = sizes.resize(stage.machine.world, Resize(key=KEY, number=2, pod_sets=sets(long)), stage.now)
    assert came is Resized.REFUSED
    stage.pass_seconds(1.0)
    assert (stage.refusals[0].refusal, stage.sizing.number) == (Refusal.TOO_LARGE, 1)


@pytest.mark.parametrize(
    ("kind", "name", "fields", "text"),
    [
        ("Pod", "p", {"pod_sets": sets({"main": 1})}, "nothing of kind Pod has one"),
        ("Job", "j", {"pod_sets": ()}, "must be at least one, each once"),
        ("Job", "j", {"pod_sets": (*sets({"main": 1}), *sets({"main": 2}))}, "must be at least one, each once"),
    ],
)
def test_sl_75_a_commit_whose_size_says_nonsense_is_refused(kind: str, name: str, fields: Any, text: str) -> None:
    stage = SizeStage()
    stage.start()
    stage.offer(KEY, kind, name)
    stage.commit(KEY, kind, name, size=1, **fields)
    [no] = stage.peer.of(m.Refused)
    assert (no.refusal, stage.placement()) == (Refusal.INVALID, None)
    assert text in no.text


def test_sl_75_a_job_without_the_gate_is_made_with_no_size() -> None:
    spec = a_job(1)
    spec["template"] = {"spec": {**spec["template"]["spec"], "schedulingGates": []}}
    stage = SizeStage()
    stage.start()
    stage.offer(KEY, "Job", "j")
    stage.commit_size(1, 1, spec=spec)
    assert stage.peer.of(m.Refused)[0].refusal is Refusal.INVALID
    assert "is missing" in stage.peer.of(m.Refused)[0].text


def test_sl_75_a_kind_of_which_nothing_is_elastic_is_refused_before_it_starts() -> None:
    """The product's own Jobs: whoever says a size of one is told, and nothing of it runs."""
    stage = SizeStage(registry=SERVED)
    stage.start()
    stage.offer(KEY, "Job", "j")
    stage.commit_size(1, 1)
    stage.pass_seconds(30.0)
    assert "do not wait at the gate of elastic work" in stage.peer.of(m.Refused)[-1].text
    assert stage.document(JOB, "j") is None
    assert not any(b'"/spec/suspend","value":false' in write.body for write in stage.written(Patch, JOB))


# --- offers of what it grows by ------------------------------------------------------------------------------------


def offer(stage: SizeStage, size: int, more: int, **fields: Any) -> m.Bid:
    stage.offer(KEY, "Job", "j", size=size, pod_sets=sets({"main": more}), **fields)
    found: m.Bid = stage.peer.of(m.Bid)[-1]
    return found


def used(stage: SizeStage) -> int:
    return next(one.used for one in stage.machine.world.admission.entries() if one.resource == "cpu")


def test_sl_50_room_for_a_growth_is_held_beside_the_placements_own() -> None:
    stage = running(capacity=TEN_CPU)
    bid = offer(stage, 2, 3)
    assert (bid.kind, bid.size, used(stage)) == (m.BidKind.HELD, 2, 5000)
    stage.resize(2, main=5)
    stage.react()
    assert (used(stage), len(stage.lifted())) == (5000, 5)
    stage.pass_seconds(600.0)
    assert used(stage) == 5000


@pytest.mark.parametrize("how", ["withdrawn", "in time"])
def test_a_hold_of_a_growth_ends(how: str) -> None:
    stage = running(capacity=TEN_CPU)
    offer(stage, 2, 3, hold_seconds=20.0)
    if how == "withdrawn":
        stage.send(m.Withdraw(key=KEY, size=2))
    else:
        stage.pass_seconds(21.0)
    assert (used(stage), stage.state()) == (2000, "Running")


def test_a_hold_of_another_size_is_not_withdrawn() -> None:
    stage = running(capacity=TEN_CPU)
    offer(stage, 3, 3)
    stage.send(m.Withdraw(key=KEY, size=2))
    assert used(stage) == 5000


@pytest.mark.parametrize(
    ("size", "pod_sets", "refusal"),
    [
        (1, sets({"main": 1}), Refusal.EPOCH_STALE),
        (2, sets({"other": 1}), Refusal.INVALID),
        (2, sets({"main": 9}), Refusal.QUOTA_NEVER_FITS),
    ],
)
def test_sl_75_an_offer_of_a_growth_that_cannot_be_is_refused_with_its_size(
    size: int, pod_sets: tuple[m.PodSetRequest, ...], refusal: Refusal
) -> None:
    stage = running(capacity=TEN_CPU)
    stage.offer(KEY, "Job", "j", size=size, pod_sets=pod_sets)
    bid = stage.peer.of(m.Bid)[-1]
    assert (bid.kind, bid.refusal, bid.size) == (m.BidKind.REFUSED, refusal, size)
    assert used(stage) == 2000


def test_sl_75_a_growth_of_what_is_not_here_or_has_no_size_is_refused() -> None:
    stage = running(capacity=TEN_CPU)
    stage.offer(PlacementKey("other", 1), "Job", "j", size=2, pod_sets=sets({"main": 1}))
    assert stage.peer.of(m.Bid)[-1].refusal is Refusal.EPOCH_STALE
    stage.send(m.Cordon(cordoned=True))
    assert offer(stage, 2, 1).refusal is Refusal.CORDONED


def test_local_a_size_is_said_of_the_users_own_job() -> None:
    stage = SizeStage(mode=AgentMode.LOCAL)
    stage.begin(2, spec=a_job(4))
    stage.resize(2, nothing=3)
    assert [one.refusal for one in stage.refusals] == [Refusal.INVALID]
    assert stage.job()["spec"]["parallelism"] == 4
