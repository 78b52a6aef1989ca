"""The engine through its door: what is reserved, in which order, and what is said of the rest."""

from __future__ import annotations

import msgspec
import pytest

from gatelift_admission.engine import Engine
from gatelift_admission.state import wakeups
from gatelift_admission.values.model import EngineSettings, Inadmissible, Preempt, Reserve
from gatelift_admission.values.transformations import Transformation
from gatelift_admission.waking.timing import SOON
from gatelift_kube.objects.core import LimitRange, LimitRangeItem, LimitRangeSpec
from gatelift_kube.objects.kueue import Preemption
from gatelift_kube.objects.meta import ObjectMeta
from gatelift_kube.values.resources import ObjectKey
from support.twin.admission_objects import (
    cluster_queue,
    engine_with,
    flavor,
    group,
    local_queue,
    pod_set,
    reserved,
    rest,
    simple_engine,
    workload,
)
from support.twin.cohort_engine import arrive, cohort_engine


def test_a_workload_that_fits_is_reserved_with_canonical_usage() -> None:
    engine = simple_engine(workload("a", pod_set(count=3, requests={"cpu": "500m"})))
    (decision,) = rest(engine)
    assert isinstance(decision, Reserve)
    assert decision.admission.cluster_queue == "cq"
    (granted,) = decision.admission.pod_set_assignments
    assert (granted.flavors, granted.resource_usage, granted.count) == ({"cpu": "default"}, {"cpu": "1500m"}, 3)
    assert decision.message == "Quota reserved in ClusterQueue cq"
    assert engine.charged("a") == {("default", "cpu"): 1500}


def test_a_workload_that_does_not_fit_says_how_much_is_missing() -> None:
    engine = simple_engine(
        workload("a", pod_set(requests={"cpu": "8"}), created=1),
        workload("b", pod_set(requests={"cpu": "5"}), created=2),
    )
    first, second = rest(engine)
    assert first.uid == "a"
    assert isinstance(second, Inadmissible)
    assert second.reason == "WaitingForQuota"
    assert second.message == (
        "couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor default, 3 more needed"
    )
    assert rest(engine) == []


def test_a_release_wakes_what_waits_for_it() -> None:
    engine = simple_engine(
        workload("a", pod_set(requests={"cpu": "8"}), created=1),
        workload("b", pod_set(requests={"cpu": "5"}), created=2),
    )
    rest(engine)
    engine.release("a")
    assert reserved(rest(engine)) == ["b"]
    engine.release("a")
    assert engine.charged("b") == {("default", "cpu"): 5000}
    figures = engine.cluster_queue_status("cq")
    assert figures is not None
    assert figures.flavors_reservation[0].resources[0].total == "5"


def test_a_strict_queue_waits_behind_a_head_outside_its_limit_ranges_and_a_best_effort_queue_does_not() -> None:
    for strategy, first in (("StrictFIFO", []), ("BestEffortFIFO", ["b"])):
        head = workload("a", pod_set(requests={"cpu": "3"}), created=1)
        behind = workload("b", pod_set(requests={"cpu": "1"}), created=2)
        engine = simple_engine(head, behind, queueing_strategy=strategy)
        item = LimitRangeItem("Container", max={"cpu": "2"})
        engine.limit_range_changed(LimitRange(ObjectMeta(name="r", namespace="ns"), LimitRangeSpec((item,))))
        assert reserved(rest(engine)) == first
        engine.limit_range_removed(ObjectKey("ns", "r"))
        assert sorted([*first, *reserved(rest(engine))]) == ["a", "b"]


def test_is_34_a_workload_outside_the_limit_ranges_of_its_namespace_waits_and_says_which_bound_it_breaks() -> None:
    engine = simple_engine(workload("a", pod_set(requests={"cpu": "3"})))
    item = LimitRangeItem("Container", max={"cpu": "2"})
    engine.limit_range_changed(LimitRange(ObjectMeta(name="r", namespace="ns"), LimitRangeSpec((item,))))
    (found,) = rest(engine)
    assert isinstance(found, Inadmissible)
    assert (found.reason, found.message) == (
        "Misconfigured",
        (
            "resources didn't satisfy LimitRange constraints: spec.podSets[0].template.spec.containers[0]: "
            'Invalid value: ["cpu"]: requests must not be above the limitRange max'
        ),
    )
    engine.limit_range_removed(ObjectKey("ns", "r"))
    assert reserved(rest(engine)) == ["a"]


@pytest.mark.parametrize(
    ("resource", "asked", "printed"),
    [("cpu", "9223372036854775807m", "9223372036854775807m"), ("memory", "8Ei", "9223372036854775807")],
)
def test_is_34_a_request_that_no_integer_holds_is_shown_as_a_quantity(resource: str, asked: str, printed: str) -> None:
    """Only of a quota `<unlimited>` says something."""
    queue = cluster_queue("cq", group(default={resource: "5"}))
    asks = workload("a", pod_set(requests={resource: asked}))
    engine = engine_with(flavor("default"), queue, local_queue("lq", "cq"), asks)
    (found,) = rest(engine)
    assert isinstance(found, Inadmissible)
    assert found.message == (
        f"couldn't assign flavors to pod set main: insufficient quota for {resource} in flavor default, previously "
        f"considered podsets requests (0) + current podset request ({printed}) > maximum capacity (5)"
    )


def test_quota_may_be_counted_in_what_transformations_yield() -> None:
    rule = Transformation(input="cpu", outputs={"credits": "10"}, strategy="Replace")
    engine = Engine(EngineSettings(transformations=(rule,)))
    engine.namespace_changed("ns", {})
    engine.flavor_changed(flavor("default"))
    engine.cluster_queue_changed(cluster_queue("cq", group(default={"credits": "25"})))
    engine.local_queue_changed(local_queue("lq", "cq"))
    for name in ("a", "b"):
        engine.workload_changed(workload(name, pod_set(requests={"cpu": "2"})), 0.0)
    assert reserved(rest(engine)) == ["a"]
    assert engine.charged("a") == {("default", "credits"): 20}


def two_queues_of_two(policy: Preemption) -> Engine:
    """Return an engine with a strict queue and another, in each of which an important one ran and two wait."""
    engine = Engine(EngineSettings(wake_period=1.0))
    engine.namespace_changed("ns", {})
    engine.flavor_changed(flavor("default"))
    for name, strategy in (("cq", "BestEffortFIFO"), ("strict", "StrictFIFO")):
        quota = group(default={"cpu": "2"})
        engine.cluster_queue_changed(cluster_queue(name, quota, queueing_strategy=strategy, preemption=policy))
        engine.local_queue_changed(local_queue(name, name))
        for one, priority in (("a", 2), ("b", 1)):
            asked = pod_set(requests={"cpu": "2"})
            engine.workload_changed(workload(f"{name}-{one}", asked, queue=name, priority=priority), 0.0)
    assert sorted(reserved(rest(engine))) == ["cq-a", "strict-a"]
    engine.release("cq-a")
    engine.release("strict-a")
    return engine


def test_quota_is_kept_from_lower_priorities_for_a_period_but_who_heads_a_queue_is_looked_at_at_once() -> None:
    engine = two_queues_of_two(Preemption(within_cluster_queue="LowerPriority"))
    assert reserved(rest(engine, 0.0)) == ["strict-b"]
    assert reserved(rest(engine, 0.5)) == []
    assert engine.next_deadline() == 1.0
    assert reserved(rest(engine, 1.0)) == ["cq-b"]


def test_equals_of_who_gave_quota_back_are_offered_it_at_once() -> None:
    engine = cohort_engine(EngineSettings(wake_period=1.0), "cq", cpu="2")
    for name in ("a", "b"):
        engine.workload_changed(workload(name, pod_set(requests={"cpu": "2"}), priority=2, queue="cq"), 0.0)
    assert reserved(rest(engine)) == ["a"]
    engine.release("a")
    assert engine.next_deadline() == SOON
    assert reserved(rest(engine, SOON)) == ["b"]


def test_who_would_borrow_is_woken_after_those_whose_quota_it_is() -> None:
    engine = cohort_engine(EngineSettings(wake_period=0.1, wake_period_max=1.0), "left", "right", cpu="2")
    for name in ("left-a", "left-b", "right-a", "right-b"):
        arrive(engine, name, 1, 0.0)
        arrive(engine, f"{name}-next", 1, 0.0, created=1)
    assert len(reserved(rest(engine))) == 4
    engine.release("right-a")
    engine.release("right-b")
    decided = rest(engine, 2.0)
    assert sorted(reserved(decided)) == ["right-a-next", "right-b-next"]
    assert not any(isinstance(one, Preempt) for one in decided)


def test_who_has_used_its_quota_up_does_not_borrow_what_another_has_yet_to_take_back() -> None:
    engine = cohort_engine(EngineSettings(wake_period=0.1, wake_period_max=1.0), "left", "right", cpu="2")
    for number in range(4):
        for queue in ("left", "right"):
            arrive(engine, f"{queue}-{number}", "500m", 0.0)
            arrive(engine, f"{queue}-next-{number}", "500m", 0.0, created=1)
    assert len(reserved(rest(engine))) == 8
    for uid in ("left-0", "right-0", "right-1", "right-2"):
        engine.release(uid)
    decided = rest(engine, SOON)
    assert sorted(reserved(decided)) == ["left-next-0", "right-next-0", "right-next-1", "right-next-2"]
    assert not any(isinstance(each, Preempt) for each in [*decided, *rest(engine, 2.0)])


def test_while_newcomers_are_preempted_who_arrives_waits_for_those_worth_more_but_not_longer_than_the_limit() -> None:
    engine = cohort_engine(EngineSettings(wake_period=0.2, wake_period_max=1.0), "cq", cpu="2")
    arrive(engine, "cq-low", 1, 0.0, priority=1)
    assert reserved(rest(engine)) == ["cq-low"]
    arrive(engine, "cq-high", 2, 0.1, priority=2)
    rest(engine, 0.1)
    engine.release("cq-low")
    assert reserved(rest(engine, 0.1)) == ["cq-high"]
    engine.release("cq-high")
    arrive(engine, "cq-late", 1, 0.2, priority=1)
    assert reserved(rest(engine, 0.2)) == []
    due = engine.next_deadline()
    while due is not None and due < 0.1 + 1.0:
        if reserved(rest(engine, due)):
            break
        due = engine.next_deadline()
    assert engine.charged("cq-late"), "it has not waited for more than the longest period"


def test_nothing_is_collected_where_nobody_may_preempt() -> None:
    engine = two_queues_of_two(Preemption())
    assert sorted(reserved(rest(engine, 0.001))) == ["cq-b", "strict-b"]
    assert not engine.state.wakes.freed


def test_the_period_grows_while_newcomers_are_preempted_and_shrinks_afterwards() -> None:
    engine = Engine(EngineSettings(wake_period=0.1, wake_period_max=1.0))
    engine.namespace_changed("ns", {})
    engine.flavor_changed(flavor("default"))
    policy = Preemption(within_cluster_queue="LowerPriority")
    engine.cluster_queue_changed(cluster_queue("cq", group(default={"cpu": "2"}), preemption=policy))
    engine.local_queue_changed(local_queue("lq", "cq"))
    engine.workload_changed(workload("low", pod_set(requests={"cpu": "2"}), priority=1), 0.0)
    rest(engine)
    engine.workload_changed(workload("high", pod_set(requests={"cpu": "2"}), priority=2), 0.2)
    rest(engine, 0.2)
    grown = wakeups.period_of(engine.state, "queue/cq")
    assert 0.1 < grown < 1.0
    engine.release("low")
    rest(engine, 5.0)
    rest(engine, 6.0)
    assert wakeups.period_of(engine.state, "queue/cq") < grown


def test_hd_159_a_workload_whose_pods_claim_devices_waits_and_says_that_nobody_would_charge_them() -> None:
    change = msgspec.structs.replace
    asks = pod_set(requests={"cpu": "1"})
    spec = change(asks.template.spec, resource_claims=({"name": "gpus"},))
    claims = change(asks, template=change(asks.template, spec=spec))
    found = rest(simple_engine(workload("a", claims), workload("b", asks, created=2)))
    assert reserved(found) == ["b"]
    (refused,) = (each for each in found if isinstance(each, Inadmissible))
    assert refused.reason == "Misconfigured"
    assert "spec.resourceClaims: claimed devices are not counted against quota" in refused.message
