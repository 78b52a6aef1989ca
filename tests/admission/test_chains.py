"""Slices of elastic workloads (KEP-77): a chain is one holder of quota, whichever of its slices holds it.

What a later slice asks for are table cases (cases/slices.yaml).
"""

from __future__ import annotations

import pytest

from gatelift_admission.engine import Engine
from gatelift_admission.rounds import reservation
from gatelift_admission.values.model import ElasticSlice, Evict, Inadmissible, Preempt, Reserve
from gatelift_kube.objects.kueue import Preemption, ReclaimablePod, Workload, WorkloadStatus
from gatelift_kube.objects.meta import Condition
from support.twin.admission_objects import (
    cluster_queue,
    flavor,
    group,
    local_queue,
    pod_set,
    reserved,
    reserved_status,
    rest,
    simple_engine,
    workload,
)

CPU = ("default", "cpu")
FINISHED = WorkloadStatus(conditions=(Condition("Finished", "True", "WorkloadSliceReplaced"),))


def jobs(uid: str, count: int, **fields: object) -> Workload:
    """Return a workload of `count` pods of one cpu each."""
    return workload(uid, pod_set(count=count, requests={"cpu": 1}), **fields)  # type: ignore[arg-type]  # by name


def feed(engine: Engine, one: Workload, number: int = 0, **fields: object) -> None:
    """Feed a slice of the chain `c`; with number 0 an ordinary workload."""
    if number:
        said = ElasticSlice(chain="c", number=number, **fields)  # type: ignore[arg-type]  # fields by name
        engine.set_slice(one.metadata.uid, said)
    engine.workload_changed(one, 0.0)


def chain(engine: Engine, count: int) -> Reserve:
    """Admit a chain of 2 pods, written, and let it grow to `count`; return that reservation, which is not written."""
    feed(engine, jobs("a", 2), 1)
    first = next(one for one in rest(engine) if isinstance(one, Reserve))
    feed(engine, jobs("a", 2, version=2, status=reserved_status(first.admission)), 1)
    feed(engine, jobs("b", count, created=1), 2)
    return next(one for one in rest(engine) if isinstance(one, Reserve))


def used(engine: Engine) -> int:
    """Return how much cpu is used in the queue `cq`."""
    return engine.state.ledger.queue("cq").reserved_usage.get(CPU, 0) // 1000


def test_sl_12_the_charge_goes_over_with_the_reservation_whose_decision_names_the_slice_before() -> None:
    engine = simple_engine()
    decided = chain(engine, 5)
    assert decided.replaces == "a"
    assert (engine.charged("a"), engine.charged("b"), used(engine)) == ({}, {CPU: 5000}, 5)
    assert engine.record_of("c") == "b"
    counts = engine.state.ledger.queue("cq")
    assert (counts.reserving, counts.admitted) == (1, 0)


def test_sl_12_a_reservation_that_could_not_be_written_gives_the_charge_back_as_it_was() -> None:
    engine = simple_engine()
    chain(engine, 5)
    engine.forget("b")
    assert (engine.charged("a"), engine.charged("b"), used(engine)) == ({CPU: 2000}, {}, 2)
    again = [one for one in rest(engine) if isinstance(one, Reserve)]
    assert [(one.uid, one.replaces) for one in again] == [("b", "a")]


@pytest.mark.parametrize("order", ["ab", "ba"])
@pytest.mark.parametrize("said_first", [True, False])
def test_sl_12_after_a_restart_two_reserved_slices_are_charged_as_the_later_one(
    order: str, *, said_first: bool
) -> None:
    before = simple_engine()
    grown = chain(before, 5)
    first = before.state.entries["a"].workload
    objects = {"a": first, "b": jobs("b", 5, created=1, version=2, status=reserved_status(grown.admission))}
    engine = simple_engine()
    for uid in order:
        if said_first:
            engine.set_slice(uid, ElasticSlice(chain="c", number=" ab".index(uid)))
        engine.workload_changed(objects[uid], 0.0)
    for uid in order:
        engine.set_slice(uid, ElasticSlice(chain="c", number=" ab".index(uid)))
    assert (engine.charged("a"), engine.charged("b"), used(engine)) == ({}, {CPU: 5000}, 5)
    engine.workload_changed(jobs("a", 2, version=9, status=FINISHED), 0.0)
    assert (rest(engine), used(engine)) == ([], 5)


def test_sl_12_what_is_past_may_go_before_or_after_the_later_slice_is_written() -> None:
    engine = simple_engine()
    decided = chain(engine, 5)
    engine.workload_removed("a")
    assert used(engine) == 5
    engine.workload_changed(jobs("b", 5, created=1, version=2, status=reserved_status(decided.admission)), 0.0)
    assert (used(engine), engine.record_of("c")) == (5, "b")
    engine.workload_removed("b")
    assert (used(engine), engine.record_of("c")) == (0, "")
    assert engine.state.chains.members == {}
    assert engine.state.chains.said == {}


def test_sl_12_the_later_slice_going_leaves_the_one_before_charged() -> None:
    engine = simple_engine()
    chain(engine, 5)
    engine.workload_removed("b")
    assert (engine.charged("a"), used(engine)) == ({CPU: 2000}, 2)


def test_sl_12_two_reserved_slices_of_one_number_are_both_charged() -> None:
    engine = simple_engine()
    decided = chain(engine, 5)
    engine.workload_changed(jobs("b", 5, created=1, version=2, status=reserved_status(decided.admission)), 0.0)
    engine.set_slice("a", ElasticSlice(chain="c", number=2))
    assert used(engine) == 7


def test_sl_12_that_a_charge_goes_over_wakes_nobody() -> None:
    engine = simple_engine(cpu="5")
    feed(engine, jobs("a", 2), 1)
    first = next(one for one in rest(engine) if isinstance(one, Reserve))
    feed(engine, jobs("a", 2, version=2, status=reserved_status(first.admission)), 1)
    feed(engine, jobs("waits", 4, created=1))
    rest(engine)
    feed(engine, jobs("b", 5, created=2), 2)
    before = engine.state.releases.copy()
    assert reserved(rest(engine)) == ["b"]
    assert engine.state.releases == before
    engine.forget("b")
    assert engine.state.releases != before


def test_sl_31_what_a_chain_is_charged_follows_the_ledger_until_it_grows() -> None:
    engine = simple_engine(cpu="6")
    feed(engine, jobs("a", 4), 1)
    first = next(one for one in rest(engine) if isinstance(one, Reserve))
    feed(engine, jobs("a", 1, version=2, status=reserved_status(first.admission)), 1)
    assert used(engine) == 4, "a lower count frees nothing"
    engine.set_usage("a", {"main": 1})
    feed(engine, jobs("b", 6, created=1), 2)
    decided = next(one for one in rest(engine) if isinstance(one, Reserve))
    assert [(one.count, one.resource_usage) for one in decided.admission.pod_set_assignments] == [(6, {"cpu": "6"})]
    assert used(engine) == 6


def test_sl_31_a_growth_within_what_is_charged_still_is_granted_all_of_it() -> None:
    engine = simple_engine(cpu="4")
    feed(engine, jobs("a", 4), 1)
    first = next(one for one in rest(engine) if isinstance(one, Reserve))
    feed(engine, jobs("a", 1, version=2, status=reserved_status(first.admission)), 2)
    feed(engine, jobs("b", 3, created=1), 3)
    decided = next(one for one in rest(engine) if isinstance(one, Reserve))
    assert [one.count for one in decided.admission.pod_set_assignments] == [4]
    assert used(engine) == 4
    engine.set_usage("b", {"main": 3})
    assert used(engine) == 3


def test_sl_31_pods_that_are_done_are_asked_for_again_where_they_are_wanted_again() -> None:
    engine = simple_engine(cpu="6")
    feed(engine, jobs("a", 4), 1)
    first = next(one for one in rest(engine) if isinstance(one, Reserve))
    done = reserved_status(first.admission, reclaimable_pods=(ReclaimablePod("main", 3),))
    feed(engine, jobs("a", 4, version=2, status=done), 1)
    assert used(engine) == 1
    feed(engine, jobs("b", 5, created=1), 2)
    rest(engine)
    assert used(engine) == 5


@pytest.mark.parametrize(
    ("sets", "held", "asked"),
    [
        pytest.param({"main": 2}, None, {"main": "2"}, id="EJ-029a"),
        pytest.param({"main": 3}, {"main": 1}, {"main": "2"}, id="EJ-029c"),
        pytest.param({"c": 3, "w": 2}, {"c": 1, "w": 2}, {"c": "2", "w": "0"}, id="EJ-029d"),
    ],
)
def test_what_a_slice_is_considered_for_is_what_its_chain_lacks(
    sets: dict[str, int], held: dict[str, int] | None, asked: dict[str, str]
) -> None:
    engine = simple_engine()
    if held is not None:
        first = workload("a", *(pod_set(name, count, {"cpu": 1}) for name, count in held.items()))
        feed(engine, first, 1)
        rest(engine)
    later = workload("b", *(pod_set(name, count, {"cpu": 1}) for name, count in sets.items()), created=2)
    feed(engine, later, 2 if held is not None else 0)
    engine.block("b")
    rest(engine)
    assert {one.name: one.resources["cpu"] for one in engine.requests("b")} == asked


def test_ej_029b_one_of_two_pods_is_charged_for_one() -> None:
    engine = simple_engine(cpu="1")
    engine.workload_changed(workload("a", pod_set(count=2, requests={"cpu": 1}, min_count=1)), 0.0)
    assert reserved(rest(engine)) == ["a"]
    assert used(engine) == 1


def test_sl_32_one_that_took_the_place_of_its_chain_is_no_victim_before_that_is_written() -> None:
    engine = simple_engine(cpu="5", preemption=Preemption(within_cluster_queue="LowerPriority"))
    decided = chain(engine, 5)
    feed(engine, jobs("high", 1, priority=5, created=2))
    assert [one for one in rest(engine) if isinstance(one, Preempt)] == []
    feed(engine, jobs("b", 5, created=1, version=2, status=reserved_status(decided.admission)), 2)
    assert [one.uid for one in rest(engine) if isinstance(one, Preempt)] == ["b"]


def test_sl_34_as_a_victim_a_chain_is_no_younger_for_having_grown() -> None:
    engine = simple_engine(cpu="6", preemption=Preemption(within_cluster_queue="LowerPriority"))
    decided = chain(engine, 5)
    since = engine.state.holders.holds["b"].key
    engine.workload_changed(jobs("b", 5, created=1, version=2, status=reserved_status(decided.admission)), 0.0)
    assert since[1] == -engine.state.entries["a"].reserved_at
    engine.set_slice("b", ElasticSlice(chain="c", number=2, since=5.0))
    assert engine.state.holders.holds["b"].timestamp == 5.0


def test_sl_34_a_chain_that_cannot_be_stopped_cannot_be_stopped_in_its_new_size() -> None:
    engine = simple_engine(cpu="5", preemption=Preemption(within_cluster_queue="LowerPriority"))
    feed(engine, jobs("a", 2), 1)
    first = next(one for one in rest(engine) if isinstance(one, Reserve))
    feed(engine, jobs("a", 2, version=2, status=reserved_status(first.admission)), 1)
    engine.set_unreachable("a", unreachable=True)
    feed(engine, jobs("b", 5, created=1), 2)
    grown = next(one for one in rest(engine) if isinstance(one, Reserve))
    feed(engine, jobs("b", 5, created=1, version=2, status=reserved_status(grown.admission)), 2)
    feed(engine, jobs("high", 1, priority=5, created=2))
    assert [one for one in rest(engine) if isinstance(one, Preempt)] == []


def test_sl_34_what_is_past_is_not_asked_to_stop() -> None:
    engine = simple_engine()
    decided = chain(engine, 5)
    feed(engine, jobs("b", 5, created=1, version=2, status=reserved_status(decided.admission)), 2)
    queue = cluster_queue("cq", group(default={"cpu": "10"}), stop_policy="HoldAndDrain")
    engine.cluster_queue_changed(queue)
    for uid in "ab":
        engine.state.review[uid] = engine.state.entries[uid]
    assert [one.uid for one in rest(engine) if isinstance(one, Evict)] == ["b"]


def test_sl_34_a_chain_that_is_told_to_leave_in_a_round_does_not_grow_in_it() -> None:
    policy = Preemption(within_cluster_queue="LowerPriority", reclaim_within_cohort="Any")
    borrower = cluster_queue("cq", group(default={"cpu": "0"}), cohort_name="team", preemption=policy)
    owner = cluster_queue("own", group(default={"cpu": "4"}), cohort_name="team", preemption=policy)
    engine = Engine()
    engine.namespace_changed("ns", {})
    engine.flavor_changed(flavor("default"))
    for queue in (borrower, owner):
        engine.cluster_queue_changed(queue)
    engine.local_queue_changed(local_queue("lq", "cq"))
    engine.local_queue_changed(local_queue("own", "own"))
    feed(engine, jobs("a", 2), 1)
    first = next(one for one in rest(engine) if isinstance(one, Reserve))
    feed(engine, jobs("a", 2, version=2, status=reserved_status(first.admission)), 1)
    feed(engine, jobs("b", 3, created=2), 2)
    feed(engine, jobs("wants", 4, queue="own", created=1))
    decided = rest(engine)
    assert [one.uid for one in decided if isinstance(one, Preempt)] == ["a"]
    assert reserved(decided) == []
    said = {one.uid: one.message for one in decided if isinstance(one, Inadmissible)}
    assert said.get("b", "").startswith("Waits for another slice")


def test_sl_34_a_slice_of_another_queue_does_not_grow_its_chain() -> None:
    other = cluster_queue("other", group(default={"cpu": "9"}))
    engine = simple_engine(other, local_queue("there", "other"))
    feed(engine, jobs("a", 2), 1)
    first = next(one for one in rest(engine) if isinstance(one, Reserve))
    feed(engine, jobs("a", 2, version=2, status=reserved_status(first.admission)), 1)
    feed(engine, jobs("b", 3, created=2, queue="there"), 2)
    assert reserved(rest(engine)) == []
    assert used(engine) == 2


def test_sl_34_a_chain_whose_quota_was_given_back_does_not_grow() -> None:
    engine = simple_engine()
    feed(engine, jobs("a", 2), 1)
    first = next(one for one in rest(engine) if isinstance(one, Reserve))
    feed(engine, jobs("a", 2, version=2, status=reserved_status(first.admission)), 1)
    engine.release("a")
    feed(engine, jobs("b", 3, created=2), 2)
    assert reserved(rest(engine)) == []
    assert used(engine) == 0


def test_sl_31_a_slice_of_other_pod_sets_does_not_grow_its_chain() -> None:
    engine = simple_engine()
    feed(engine, jobs("a", 2), 1)
    first = next(one for one in rest(engine) if isinstance(one, Reserve))
    feed(engine, jobs("a", 2, version=2, status=reserved_status(first.admission)), 1)
    feed(engine, workload("b", pod_set("other", 3, {"cpu": 1}), created=1), 2)
    said = [(one.reason, one.message) for one in rest(engine) if isinstance(one, Inadmissible)]
    assert said == [("Misconfigured", "the pod sets are not those of the slice that it replaces")]


def test_sl_32_a_growth_of_a_slice_that_is_past_is_never_granted() -> None:
    engine = simple_engine()
    chain(engine, 5)
    feed(engine, jobs("late", 7, created=3), 1)
    assert reserved(rest(engine)) == []
    assert used(engine) == 5


def test_sl_31_from_no_pods_all_of_a_growth_is_asked_for() -> None:
    engine = simple_engine(cpu="3")
    feed(engine, jobs("a", 0), 1)
    first = next(one for one in rest(engine) if isinstance(one, Reserve))
    feed(engine, jobs("a", 0, version=2, status=reserved_status(first.admission)), 1)
    feed(engine, jobs("b", 3, created=1), 2)
    assert reserved(rest(engine)) == ["b"]
    assert used(engine) == 3


@pytest.mark.interpreted
def test_sl_12_an_exception_while_the_charge_goes_over_leaves_it_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = simple_engine()
    feed(engine, jobs("a", 2), 1)
    first = next(one for one in rest(engine) if isinstance(one, Reserve))
    feed(engine, jobs("a", 2, version=2, status=reserved_status(first.admission)), 1)
    feed(engine, jobs("b", 5, created=1), 2)

    def broken(*_: object) -> None:
        raise RuntimeError("a mistake")

    monkeypatch.setattr(reservation, "decision", broken)
    result = engine.cycle(0.0)
    assert [one.uid for one in result.faults] == ["b"]
    rest(engine)
    assert (engine.charged("a"), engine.charged("b"), used(engine)) == ({CPU: 2000}, {}, 2)


def test_without_a_word_of_slices_nothing_is_kept_of_any() -> None:
    engine = simple_engine()
    feed(engine, jobs("a", 2))
    rest(engine)
    engine.set_slice("gone", None)
    assert (engine.state.chains.said, engine.state.chains.members) == ({}, {})
