"""What the engine promises its caller: assumed reservations, the ledger's word, stale objects, waiting, looking."""

from __future__ import annotations

import msgspec
import pytest

from gatelift_admission.engine import Engine
from gatelift_admission.entries.entry import Phase
from gatelift_admission.values.model import EngineSettings, Evict, Inadmissible, Preempt, Reserve, Unreserve
from gatelift_kube.objects.kueue import (
    Admission,
    AdmissionCheckState,
    LocalQueue,
    PodSetAssignment,
    Preemption,
    ReclaimablePod,
    RequeueState,
    Workload,
    WorkloadStatus,
)
from gatelift_kube.objects.meta import Condition
from support.twin.admission_objects import (
    LQ,
    cluster_queue,
    engine_with,
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

CELL = ("default", "cpu")
ONE = pod_set(count=4, requests={"cpu": "1"})
HUGE = pod_set(requests={"cpu": "11"})
GRANTED = Admission("cq", (PodSetAssignment("main", {"cpu": "default"}, {"cpu": "4"}, 4),))
START = 1767225600.0
"""Unix time of 2026-01-01T00:00:00Z, the creation time of workloads in these tests."""


def pending(engine: Engine) -> tuple[int, int]:
    """Return how many wait in the ClusterQueue and in the LocalQueue."""
    both = engine.cluster_queue_status("cq"), engine.local_queue_status(LQ)
    left, right = (figures.pending_workloads if figures is not None else -1 for figures in both)
    return left, right


def test_an_assumed_reservation_outlives_the_older_object_of_the_watch() -> None:
    engine = simple_engine(workload("a", ONE))
    rest(engine)
    engine.workload_changed(workload("a", ONE, version=2), 1.0)
    assert engine.phase("a") is Phase.ASSUMED
    assert rest(engine, 1.0) == []
    assert engine.charged("a") == {CELL: 4000}


def test_the_written_object_confirms_the_reservation() -> None:
    engine = simple_engine(workload("a", ONE))
    (decision,) = rest(engine)
    assert isinstance(decision, Reserve)
    engine.workload_changed(workload("a", ONE, version=2, status=reserved_status(decision.admission)), 1.0)
    assert engine.phase("a") is Phase.ADMITTED
    assert engine.charged("a") == {CELL: 4000}


def test_an_older_version_of_an_object_is_ignored() -> None:
    engine = simple_engine(workload("a", ONE, version=9, status=reserved_status(GRANTED)))
    engine.workload_changed(workload("a", ONE, version=8), 1.0)
    assert engine.phase("a") is Phase.ADMITTED
    assert rest(engine) == []


def test_reclaimable_pods_give_quota_back_and_may_need_it_again() -> None:
    engine = simple_engine(workload("a", ONE, status=reserved_status(GRANTED)))
    fewer = reserved_status(GRANTED, reclaimable_pods=(ReclaimablePod("main", 3),))
    engine.workload_changed(workload("a", ONE, version=2, status=fewer), 1.0)
    assert engine.charged("a") == {CELL: 1000}
    engine.workload_changed(workload("a", ONE, version=3, status=reserved_status(GRANTED)), 1.0)
    assert engine.charged("a") == {CELL: 4000}


def test_the_ledgers_word_holds_against_the_object_until_the_next_reservation() -> None:
    engine = simple_engine(workload("a", ONE, status=reserved_status(GRANTED)))
    rest(engine)
    engine.set_usage("a", {"main": 3})
    assert engine.charged("a") == {CELL: 3000}
    engine.workload_changed(workload("a", ONE, version=2), 1.0)
    engine.block("a")
    assert engine.charged("a") == {CELL: 3000}
    assert rest(engine, 1.0) == []
    engine.release("a")
    assert engine.charged("a") == {}
    engine.unblock("a")
    assert reserved(rest(engine, 1.0)) == ["a"]
    assert engine.charged("a") == {CELL: 4000}


@pytest.mark.parametrize("strategy", ["StrictFIFO", "BestEffortFIFO"])
def test_who_is_kept_out_counts_as_waiting_behind_all_others_and_holds_nobody_up(strategy: str) -> None:
    engine = simple_engine(workload("a", ONE), workload("b", HUGE, created=1), queueing_strategy=strategy)
    engine.block("a")
    assert reserved(rest(engine)) == []
    assert [one.uid for one in engine.pending_positions("cq")] == ["b", "a"]
    assert pending(engine) == (2, 2)
    engine.workload_changed(workload("c", ONE, priority=1), 1.0)
    assert reserved(rest(engine, 1.0)) == ["c"]
    engine.unblock("a")
    engine.workload_removed("b")
    assert reserved(rest(engine, 2.0)) == ["a"]
    assert pending(engine) == (0, 0)


@pytest.mark.parametrize("why", ["inactive", "being deleted", "in a queue that is gone", "in a queue that is stopped"])
def test_who_is_kept_out_counts_nowhere_if_it_could_not_wait_anyway(why: str) -> None:
    engine = simple_engine(workload("a", ONE))
    newer = workload("a", ONE, version=2)
    gone = msgspec.structs.replace(newer.metadata, deletion_timestamp="2026-01-01T00:00:01Z")
    changes: dict[str, Workload | LocalQueue] = {
        "inactive": workload("a", ONE, version=2, active=False),
        "being deleted": msgspec.structs.replace(newer, metadata=gone),
        "in a queue that is gone": workload("a", ONE, version=2, queue="gone"),
        "in a queue that is stopped": local_queue("lq", "cq", stop="Hold"),
    }
    engine.block("a")
    change = changes[why]
    if isinstance(change, LocalQueue):
        engine.local_queue_changed(change)
    else:
        engine.workload_changed(change, 1.0)
    assert rest(engine, 1.0) == []
    assert pending(engine) == (0, 0)


def test_a_removed_workload_frees_its_quota_whatever_it_was() -> None:
    engine = simple_engine(workload("a", ONE), cpu="4")
    rest(engine)
    engine.workload_changed(workload("b", ONE), 1.0)
    rest(engine, 1.0)
    engine.workload_removed("a")
    assert reserved(rest(engine, 1.0)) == ["b"]
    engine.workload_removed("b")
    figures = engine.cluster_queue_status("cq")
    assert figures is not None
    assert figures.reserving_workloads == 0
    assert figures.flavors_reservation[0].resources[0].total == "0"


def test_backoff_keeps_a_workload_out_until_its_time() -> None:
    engine = simple_engine()
    engine.wall_clock(START, 100.0)
    status = WorkloadStatus(requeue_state=RequeueState(1, "2026-01-01T00:00:30Z"))
    engine.workload_changed(workload("a", ONE, status=status), 100.0)
    assert reserved(rest(engine, 100.0)) == []
    assert engine.next_deadline() is not None
    assert reserved(rest(engine, 129.0)) == []
    assert reserved(rest(engine, 130.0)) == ["a"]


def test_a_requeue_that_is_withheld_waits_for_the_object_to_change() -> None:
    held = WorkloadStatus(conditions=(Condition("Requeued", "False", "PodsReadyTimeout"),))
    engine = simple_engine(workload("a", ONE, status=held))
    assert reserved(rest(engine, 1e9)) == []
    engine.workload_changed(workload("a", ONE, version=2), 1e9)
    assert reserved(rest(engine, 1e9)) == ["a"]


def test_the_wait_is_counted_from_creation_or_the_last_requeue() -> None:
    engine = simple_engine()
    engine.wall_clock(START + 90, 5.0)
    engine.workload_changed(workload("a", ONE), 5.0)
    (first,) = rest(engine, 5.0)
    assert isinstance(first, Reserve)
    assert first.event == (
        "Quota reserved in ClusterQueue cq, wait time since queued was 90s; Flavors considered: main: default(Fit)"
    )
    again = WorkloadStatus(conditions=(Condition("Requeued", "True", "Preempted", "", "2026-01-01T00:01:00Z"),))
    engine.workload_changed(workload("b", ONE, status=again), 5.0)
    (second,) = rest(engine, 5.0)
    assert isinstance(second, Reserve)
    assert second.wait_seconds == 30.0


def test_a_workload_that_waits_unseen_says_so_after_a_second() -> None:
    engine = simple_engine(workload("big", pod_set(requests={"cpu": "11"}), priority=1), queueing_strategy="StrictFIFO")
    engine.workload_changed(workload("behind", ONE), 0.0)
    assert [one.uid for one in rest(engine, 0.5)] == ["big"]
    assert engine.next_deadline() == 1.5
    (said,) = rest(engine, 1.5)
    assert isinstance(said, Inadmissible)
    assert (said.uid, said.reason) == ("behind", "PendingEvaluation")
    assert said.message == "Workload is pending evaluation in the scheduling queue"
    assert engine.next_deadline() is None


def test_a_workload_does_not_go_on_saying_that_its_queue_is_inactive() -> None:
    engine = simple_engine(
        workload("big", pod_set(requests={"cpu": "11"}), priority=1),
        workload("behind", ONE),
        queueing_strategy="StrictFIFO",
        stop_policy="Hold",
    )
    assert {one.uid: one.reason for one in rest(engine) if isinstance(one, Inadmissible)} == {
        "big": "Suspended",
        "behind": "Suspended",
    }
    engine.cluster_queue_changed(cluster_queue("cq", group(default={"cpu": "10"}), queueing_strategy="StrictFIFO"))
    assert [one.uid for one in rest(engine, 0.5)] == ["big"]
    (said,) = rest(engine, 2.0)
    assert isinstance(said, Inadmissible)
    assert (said.uid, said.reason) == ("behind", "PendingEvaluation")


@pytest.mark.parametrize(
    ("before", "told"),
    [
        (workload("behind", ONE, version=1, active=False), ("Deactivated", "The workload is deactivated")),
        (
            workload("behind", ONE, version=1, annotations={"kueue.x-k8s.io/admission-gated-by": "x"}),
            ("AdmissionGated", "Admission is gated by: x"),
        ),
    ],
    ids=["deactivated", "gated"],
)
def test_who_may_queue_again_does_not_go_on_saying_that_it_may_not(before: Workload, told: tuple[str, str]) -> None:
    engine = simple_engine(
        workload("big", pod_set(requests={"cpu": "11"}), priority=1), before, queueing_strategy="StrictFIFO"
    )
    said = {one.uid: (one.reason, one.message) for one in rest(engine) if isinstance(one, Inadmissible)}
    assert said["behind"] == told
    engine.workload_changed(workload("behind", ONE, version=2), 5.0)
    (again,) = [*rest(engine, 5.0), *rest(engine, 7.0)]
    assert isinstance(again, Inadmissible)
    cleared = "AdmissionGatedBy cleared, waiting for quota reservation"
    waits = "Workload is pending evaluation in the scheduling queue"
    assert (again.reason, again.message) == ("PendingEvaluation", cleared if told[0] == "AdmissionGated" else waits)


def test_what_the_object_says_already_is_not_said_again() -> None:
    message = (
        "couldn't assign flavors to pod set main: insufficient quota for cpu in flavor default, previously considered "
        "podsets requests (0) + current podset request (11) > maximum capacity (10)"
    )
    asks = pod_set(requests={"cpu": "11"})
    known = WorkloadStatus(conditions=(Condition("QuotaReserved", "False", "ExceedsMaxQuota", message),))
    engine = simple_engine(workload("a", asks, status=known))
    assert rest(engine) == []
    other = WorkloadStatus(conditions=(Condition("QuotaReserved", "False", "WaitingForQuota", "of another leader"),))
    engine.workload_changed(workload("a", asks, version=2, status=other), 1.0)
    (said,) = rest(engine, 1.0)
    assert isinstance(said, Inadmissible)
    assert said.message == message


def test_a_text_whose_figures_alone_changed_is_marked() -> None:
    engine = simple_engine(
        workload("held", ONE, status=reserved_status(GRANTED)), workload("a", pod_set(requests={"cpu": "9"}))
    )
    (first,) = rest(engine)
    engine.set_usage("held", {"main": 2})
    engine.state.restructure()
    (second,) = rest(engine)
    assert isinstance(first, Inadmissible)
    assert isinstance(second, Inadmissible)
    assert not first.numbers_only
    assert second.numbers_only
    assert second.message.endswith("1 more needed")


def test_failed_checks_keep_a_workload_waiting() -> None:
    status = WorkloadStatus(admission_checks=(AdmissionCheckState("check", "Retry"),))
    engine = simple_engine(workload("a", ONE, status=status))
    (said,) = rest(engine)
    assert isinstance(said, Inadmissible)
    assert (said.reason, said.message) == ("PendingEvaluation", "The workload has failed admission checks")
    engine.workload_changed(workload("a", ONE, version=2), 1.0)
    assert reserved(rest(engine, 1.0)) == ["a"]


def test_a_stopped_local_queue_gives_back_what_is_not_admitted_yet() -> None:
    engine = simple_engine(workload("a", ONE, status=reserved_status(GRANTED, admitted=False)))
    engine.local_queue_changed(local_queue("lq", "cq", stop="Hold"))
    (said,) = rest(engine)
    assert isinstance(said, Unreserve)
    assert (said.reason, said.message) == ("Suspended", "LocalQueue lq is stopped")
    assert rest(engine) == []


def test_a_drained_local_queue_evicts_once() -> None:
    engine = simple_engine(workload("a", ONE, status=reserved_status(GRANTED)))
    engine.local_queue_changed(local_queue("lq", "cq", stop="HoldAndDrain"))
    (said,) = rest(engine)
    assert isinstance(said, Evict)
    assert (said.reason, said.message) == ("LocalQueueStopped", "The LocalQueue is stopped")
    engine.workload_changed(workload("a", ONE, version=2, status=reserved_status(GRANTED)), 1.0)
    assert rest(engine, 1.0) == []


def test_a_deleted_local_queue_gives_back_what_is_not_admitted_yet() -> None:
    engine = simple_engine(workload("a", ONE, status=reserved_status(GRANTED, admitted=False)))
    engine.local_queue_removed(LQ)
    (said,) = rest(engine)
    assert isinstance(said, Unreserve)
    assert (said.reason, said.message) == ("Misconfigured", "LocalQueue lq is terminating or missing")


def test_a_deleted_cluster_queue_keeps_its_charges_until_it_is_back() -> None:
    queue = cluster_queue("cq", group(default={"cpu": 10}))
    engine = engine_with(flavor("default"), queue, local_queue("lq", "cq"))
    engine.workload_changed(workload("a", ONE, status=reserved_status(GRANTED)), 0.0)
    engine.workload_changed(workload("b", pod_set(requests={"cpu": "8"})), 0.0)
    rest(engine)
    engine.cluster_queue_removed("cq")
    (said,) = [one for one in rest(engine) if isinstance(one, Inadmissible)]
    assert (said.uid, said.message) == ("b", "ClusterQueue cq doesn't exist")
    engine.cluster_queue_changed(queue)
    (said,) = [one for one in rest(engine) if isinstance(one, Inadmissible)]
    assert said.message.endswith("2 more needed")
    assert engine.charged("a") == {CELL: 4000}


def test_counts_of_both_queues_follow_the_workloads() -> None:
    engine = simple_engine(
        workload("a", ONE, status=reserved_status(GRANTED)),
        workload("b", ONE, status=reserved_status(GRANTED, admitted=False)),
        workload("c", ONE),
    )
    rest(engine)
    for figures in (engine.cluster_queue_status("cq"), engine.local_queue_status(LQ)):
        assert figures is not None
        counts = (figures.pending_workloads, figures.reserving_workloads, figures.admitted_workloads)
        assert counts == (1, 2, 1)
        assert figures.flavors_reservation[0].resources[0].total == "8"
        assert figures.flavors_usage[0].resources[0].total == "4"


def test_a_local_queue_says_whether_its_cluster_queue_admits() -> None:
    engine = simple_engine()
    engine.local_queue_changed(local_queue("lost", "nowhere"))
    engine.local_queue_changed(local_queue("shut", "cq", stop="Hold"))
    found = {}
    for name in ("lq", "lost", "shut"):
        figures = engine.local_queue_status(type(LQ)("ns", name))
        assert figures is not None
        found[name] = (figures.active.reason, figures.active.message)
    assert found == {
        "lq": ("Ready", "Can submit new workloads to localQueue"),
        "lost": ("ClusterQueueDoesNotExist", "Can't submit new workloads to clusterQueue"),
        "shut": ("Stopped", "LocalQueue is stopped"),
    }


def test_explain_says_where_a_workload_stands_and_what_each_flavor_lacks() -> None:
    engine = simple_engine(
        workload("held", ONE, status=reserved_status(GRANTED)),
        workload("first", pod_set(requests={"cpu": "8"}), priority=1),
        workload("second", pod_set(requests={"cpu": "7"})),
    )
    rest(engine)
    said = engine.explain("second")
    assert said is not None
    assert (said.position, said.waiting, said.reason) == (1, 2, "WaitingForQuota")
    (verdict,) = said.verdicts
    assert (verdict.flavor, verdict.fits) == ("default", False)
    assert verdict.reasons == ("insufficient unused quota for cpu in flavor default, 1 more needed",)
    assert [(one.uid, one.in_local_queue) for one in engine.pending_positions("cq", 1)] == [("first", 0)]
    assert engine.explain("nobody") is None


def test_a_call_does_no_more_than_its_budget() -> None:
    engine = simple_engine(*(workload(f"w{number:02}", ONE) for number in range(20)), cpu="1000")
    result = engine.cycle(0.0, 3)
    assert result.more
    assert len(result.decisions) <= 3
    assert result.nominations <= 3
    assert len(reserved(rest(engine, 0.0, 3))) + len(reserved(result.decisions)) == 20


def test_memory_of_the_wake_up_index_is_bounded_by_what_waits() -> None:
    engine = simple_engine(*(workload(f"w{n:02}", pod_set(requests={"cpu": f"{n + 1}"})) for n in range(10)), cpu="10")
    for turn in range(200):
        holders = [entry.uid for entry in engine.state.entries.values() if entry.phase is Phase.ASSUMED]
        for uid in holders:
            engine.forget(uid)
        engine.workload_changed(
            workload(f"w{turn % 10:02}", pod_set(requests={"cpu": f"{turn % 7 + 1}"}), version=turn + 2), 0.0
        )
        rest(engine)
    pending = engine.state.queues["cq"].pending
    assert len(pending.watches) < 200
    assert len(pending.classes) <= 10


def test_a_queue_whose_quota_cannot_be_read_is_inactive_and_says_so() -> None:
    engine = simple_engine(workload("a", ONE), cpu="1 core")
    (said,) = rest(engine)
    assert isinstance(said, Inadmissible)
    assert said.message == "ClusterQueue cq is inactive"
    figures = engine.cluster_queue_status("cq")
    assert figures is not None
    assert figures.active.message.startswith("Can't admit new workloads: '1 core' is not a quantity")
    engine.cluster_queue_changed(cluster_queue("cq", group(default={"cpu": "4"})))
    assert reserved(rest(engine)) == ["a"]


def test_nothing_known_is_nothing_to_do() -> None:
    engine = Engine()
    assert rest(engine) == []
    assert engine.next_deadline() is None
    assert engine.cluster_queue_status("cq") is None
    engine.release("nobody")
    engine.forget("nobody")
    engine.workload_removed("nobody")
    assert engine.charged("nobody") == {}


def boosted(uid: str, text: str, **more: object) -> Workload:
    return workload(uid, ONE, annotations={"kueue.x-k8s.io/priority-boost": text}, **more)  # type: ignore[arg-type]  # by name


@pytest.mark.parametrize(
    ("text", "gate", "first"),
    [("5", True, "b"), ("-1", True, "a"), ("5", False, "a"), ("five", True, "a"), ("99999999999", True, "a")],
)
def test_a_boost_adds_to_the_priority_where_its_gate_is_on(text: str, gate: bool, first: str) -> None:
    engine = Engine(EngineSettings(priority_boost=gate))
    engine.namespace_changed("ns", {})
    engine.flavor_changed(flavor("default"))
    engine.cluster_queue_changed(cluster_queue("cq", group(default={"cpu": "4"})))
    engine.local_queue_changed(local_queue("lq", "cq"))
    engine.workload_changed(workload("a", ONE, priority=1), 0.0)
    engine.workload_changed(boosted("b", text, created=5, priority=1), 0.0)
    assert reserved(rest(engine)) == [first]


def test_a_boost_protects_from_preemption_by_what_is_below_it() -> None:
    for gate, phase in ((True, []), (False, ["low"])):
        engine = Engine(EngineSettings(priority_boost=gate))
        engine.namespace_changed("ns", {})
        engine.flavor_changed(flavor("default"))
        queue = cluster_queue("cq", group(default={"cpu": "4"}), preemption=Preemption("LowerPriority"))
        engine.cluster_queue_changed(queue)
        engine.local_queue_changed(local_queue("lq", "cq"))
        engine.workload_changed(boosted("low", "9", status=reserved_status(GRANTED)), 0.0)
        engine.workload_changed(workload("high", ONE, priority=5), 0.0)
        assert [one.uid for one in rest(engine) if isinstance(one, Preempt)] == phase


def test_pods_that_were_done_before_the_reservation_are_not_taken_off_a_second_time() -> None:
    done = (ReclaimablePod("main", 1),)
    sets = pod_set(count=2, requests={"cpu": 1})
    engine = simple_engine(workload("a", sets, status=WorkloadStatus(reclaimable_pods=done)))
    (made,) = rest(engine)
    assert isinstance(made, Reserve)
    assert engine.charged("a") == {("default", "cpu"): 1000}
    engine.workload_changed(
        workload("a", sets, version=2, status=reserved_status(made.admission, reclaimable_pods=done)), 0.0
    )
    assert engine.charged("a") == {("default", "cpu"): 1000}


def test_who_was_granted_a_flavor_for_nothing_of_it_is_among_those_that_use_it() -> None:
    some, none = pod_set("some", requests={"cpu": 1}), pod_set("none", 0, {"cpu": 1})
    engine = simple_engine(workload("a", some, none), workload("b", none))
    assert sorted(reserved(rest(engine))) == ["a", "b"]
    holds = engine.state.holders.holds
    assert holds["a"].usage == {("default", "cpu"): 1000}
    assert holds["b"].usage == {}
    assert all(("default", "cpu") in holds[uid].cells for uid in "ab")
    engine.release("b")
    assert set(holds) == {"a"}
