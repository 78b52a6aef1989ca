"""Searches for victims within the budget of a call: what they cost counts, and what happens meanwhile is heeded."""

from __future__ import annotations

from gatelift_admission.engine import Engine
from gatelift_admission.values.model import Preempt
from gatelift_kube.objects.kueue import Preemption
from support.twin.admission_objects import cluster_queue, flavor, group, local_queue, pod_set, reserved, rest, workload

OWNERS = tuple(f"owner{number}" for number in range(10))
BORROWED = tuple(f"borrower-{number:03}" for number in range(100))
RECLAIMS = Preemption(reclaim_within_cohort="Any")


def where_all_is_lent(*wanting: str) -> Engine:
    """Return an engine where a queue without quota has borrowed ten queues' 100 cpu, and owners want theirs back."""
    engine = Engine()
    engine.namespace_changed("ns", {})
    engine.flavor_changed(flavor("default"))
    for name, cpu in (*((owner, "10") for owner in OWNERS), ("borrower", "0")):
        quota = group(default={"cpu": cpu})
        engine.cluster_queue_changed(cluster_queue(name, quota, cohort_name="all", preemption=RECLAIMS))
        engine.local_queue_changed(local_queue(name, name))
    for name in BORROWED:
        engine.workload_changed(workload(name, pod_set(requests={"cpu": "1"}), queue="borrower"), 0.0)
    assert reserved(rest(engine)) == list(BORROWED)
    for name in wanting or OWNERS:
        engine.workload_changed(workload(f"{name}-wants", pod_set(requests={"cpu": "10"}), queue=name), 1.0)
    return engine


def test_the_parts_of_a_search_count_as_steps() -> None:
    engine = where_all_is_lent()
    while not (result := engine.cycle(1.0, 3)).nominations:
        assert result.more
    assert result.more
    assert 1 <= result.nominations < 3, "ten victims are more than a step"


def test_decisions_do_not_depend_on_where_searches_are_cut() -> None:
    whole = [one for one in rest(where_all_is_lent(), 1.0, 10_000) if isinstance(one, Preempt)]
    assert len(whole) == 100
    assert [one for one in rest(where_all_is_lent(), 1.0, 1) if isinstance(one, Preempt)] == whole


def test_nobody_is_preempted_for_room_that_came_free_while_the_round_was_cut() -> None:
    engine = where_all_is_lent("owner0", "owner1", "owner2")
    while not (result := engine.cycle(1.0, 1)).nominations:
        assert result.more
    assert result.decisions == ()
    for name in BORROWED[50:]:  # those that are not looked at first
        engine.release(name)
    decisions = rest(engine, 2.0)
    assert not [one for one in decisions if isinstance(one, Preempt)]
    assert reserved(decisions) == ["owner0-wants", "owner1-wants", "owner2-wants"]
