"""What a workload's way leaves in the metrics, under Kueue's names, and in the log: nothing unseen, nothing twice."""

from __future__ import annotations

from prometheus_client import generate_latest

from gatelift.adapters.metrics import ManagerMetrics
from gatelift.core.api.commands import Happened, Transition
from gatelift.core.state.readiness_values import ReadinessSettings
from gatelift_kube.values import resources
from gatelift_kube.values.resources import ObjectKey, ObjectRef
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import Stop
from support.manager.builders import Doc, a_pod, a_setting
from support.manager.world import RUNNING, SUCCEEDED, World, a_world

QUEUE = {"cluster_queue": "shared"}
PLAIN = {**QUEUE, "priority_class": ""}
LOCAL = {"name": "main", "namespace": "team"}
CELL = {"cohort": "", "cluster_queue": "shared", "flavor": "default", "resource": "cpu"}


class Counted:
    """A world of two clusters and the metrics that its notes make."""

    def __init__(self, readiness: ReadinessSettings | None = None) -> None:
        setting = a_setting(cpu="4", clusters=("a", "b"))
        self.world: World = a_world(setting, clusters=("a", "b"), readiness=readiness)
        self.metrics = ManagerMetrics()
        self._seen = 0

    def value(self, name: str, /, **labels: str) -> float | None:
        for note in self.world.notes[self._seen :]:
            self.metrics.performed(note)
        self._seen = len(self.world.notes)
        self.metrics.refresh(self.world.machine, waiting=0, writes_held=0)
        role = {"replica_role": "leader"} if name.startswith("kueue_") else {}
        return self.metrics.registry.get_sample_value(name, {**labels, **role})

    def said(self, happened: Happened) -> list[Transition]:
        return [note for note in self.world.notes if isinstance(note, Transition) and note.happened is happened]


def a_running_pod() -> Counted:
    counted = Counted()
    counted.world.api.apply(a_pod("one").asking(cpu="1").document())
    counted.world.settle()
    counted.world.agents["a"].show(_placed(counted.world), RUNNING)
    counted.world.settle()
    return counted


def test_a_running_workload_is_counted_where_kueues_dashboards_look() -> None:
    counted = a_running_pod()
    assert counted.value("kueue_quota_reserved_workloads_total", **PLAIN) == 1
    assert counted.value("kueue_admitted_workloads_total", **PLAIN) == 1
    assert counted.value("kueue_multikueue_workloads_admitted_total", **QUEUE, cluster="a") == 1
    assert counted.value("kueue_admission_wait_time_seconds_count", **PLAIN) == 1
    assert counted.value("kueue_admission_checks_wait_time_seconds_count", **PLAIN) == 1
    assert counted.value("gatelift_admitted_to_lifted_seconds_count", cluster="a") == 1
    assert counted.value("kueue_admitted_active_workloads", **QUEUE) == 1
    assert counted.value("kueue_reserving_active_workloads", **QUEUE) == 1
    assert counted.value("kueue_pending_workloads", **QUEUE, status="active") == 0
    assert counted.value("kueue_pending_workloads", **QUEUE, status="inadmissible") == 0
    assert counted.value("kueue_cluster_queue_resource_usage", **CELL) == 1.0
    assert counted.value("kueue_cluster_queue_status", **QUEUE, status="active") == 1
    assert counted.value("gatelift_cluster_placements", cluster="a") == 1
    assert counted.value("gatelift_attempts", state="Running") == 1
    assert counted.value("kueue_finished_workloads_total", **PLAIN) is None


def test_a_finished_workload_leaves_its_time_and_no_usage() -> None:
    counted = a_running_pod()
    counted.world.advance(30.0)
    counted.world.agents["a"].finish(_placed(counted.world), SUCCEEDED)
    counted.world.settle()
    assert counted.value("kueue_finished_workloads_total", **PLAIN) == 1
    assert counted.value("kueue_execution_time_seconds_sum", **QUEUE) == 30.0
    assert counted.value("kueue_admitted_active_workloads", **QUEUE) == 0
    assert counted.value("kueue_cluster_queue_resource_usage", **CELL) == 0.0


def test_what_waits_for_quota_is_pending() -> None:
    counted = Counted()
    counted.world.api.apply(a_pod("giant").asking(cpu="500").document())
    counted.world.settle()
    assert counted.value("kueue_pending_workloads", **QUEUE, status="inadmissible") == 1
    assert counted.value("kueue_pending_workloads", **QUEUE, status="active") == 0
    assert counted.value("kueue_reserving_active_workloads", **QUEUE) == 0
    waits = {"reason": "NoReservation", "underlying_cause": "ExceedsMaxQuota"}
    assert counted.value("kueue_unadmitted_workloads", **QUEUE, **waits) == 1


def test_all_of_a_stopped_queue_are_inadmissible() -> None:
    counted = Counted()
    queue = ObjectRef(resources.CLUSTER_QUEUE, ObjectKey("", "shared"))
    counted.world.api.edit(queue, lambda found: found["spec"].update(stopPolicy="Hold"))
    counted.world.api.apply(a_pod("one").document())
    counted.world.settle()
    assert counted.value("kueue_pending_workloads", **QUEUE, status="inadmissible") == 1
    assert counted.value("kueue_pending_workloads", **QUEUE, status="active") == 0


def test_an_eviction_is_counted_once_with_its_reason_and_how_long_the_pods_took_to_stop() -> None:
    counted = a_running_pod()
    agent = counted.world.agents["a"]
    agent.silent = True
    counted.world.api.edit(
        ObjectRef(resources.WORKLOAD, _workload(counted.world)), lambda found: found["spec"].update(active=False)
    )
    counted.world.advance(5.0)
    agent.silent = False
    agent.receive(agent.session, agent.applied, Stop(key=_placed(counted.world), reason="Deactivated"))
    counted.world.settle()
    why = {"reason": "Deactivated", "underlying_cause": "", "priority_class": ""}
    assert counted.value("kueue_evicted_workloads_total", **QUEUE, **why) == 1
    assert counted.value("kueue_evicted_workloads_once_total", **QUEUE, **why) == 1
    assert counted.value("kueue_workload_eviction_latency_seconds_sum", **QUEUE, reason="Deactivated") == 5.0
    assert [event.reason for event in counted.world.emitted].count("EvictedDueToDeactivated") == 1


def test_pods_that_get_ready_and_are_evicted_leave_how_long_that_took() -> None:
    counted = Counted(readiness=ReadinessSettings(timeout=60.0, recovery_timeout=20.0))
    counted.world.api.apply(a_pod("one").document())
    counted.world.advance(10.0)
    agent = counted.world.agents["a"]
    agent.show(_placed(counted.world), RUNNING)
    counted.world.advance(5.0)
    agent.show(_placed(counted.world), {**RUNNING, "conditions": [{"type": "Ready", "status": "False"}]})
    counted.world.advance(60.0)
    assert counted.value("kueue_admitted_until_ready_wait_time_seconds_sum", **PLAIN) == 10.0
    assert counted.value("kueue_ready_wait_time_seconds_count", **PLAIN) == 1
    gone = {**QUEUE, "reason": "PodsReadyTimeout", "underlying_cause": "WaitForRecovery"}
    assert counted.value("kueue_pods_ready_to_evicted_time_seconds_count", **gone) is None, "they were not ready then"
    why = {"reason": "PodsReadyTimeout", "underlying_cause": "WaitForRecovery", "priority_class": ""}
    assert counted.value("kueue_evicted_workloads_total", **QUEUE, **why) == 1


def test_who_comes_back_is_ready_counted_from_its_return_to_the_queue() -> None:
    counted = Counted(readiness=ReadinessSettings(timeout=20.0, backoff_base=10.0))
    counted.world.api.apply(a_pod("one").document())
    counted.world.advance(40.0)  # evicted after 20 s, back after 10 s, waiting for its pods for another 10 s
    counted.world.agents["a"].show(_placed(counted.world), RUNNING)
    counted.world.advance(1.0)
    seconds = counted.value("kueue_ready_wait_time_seconds_sum", **PLAIN)
    assert seconds is not None
    assert 9.0 <= seconds <= 11.0


def test_a_preemption_is_counted_for_the_queue_that_preempts() -> None:
    counted = Counted()
    world = counted.world
    urgent = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "WorkloadPriorityClass", "metadata": {"name": "urgent"}}
    world.api.apply({**urgent, "value": 100})
    queue = ObjectRef(resources.CLUSTER_QUEUE, ObjectKey("", "shared"))
    world.api.edit(queue, lambda found: found["spec"].update(preemption={"withinClusterQueue": "LowerPriority"}))
    world.api.apply(a_pod("low").asking(cpu="4").document())
    world.settle()
    world.api.apply(a_pod("high").of_class("urgent").document())
    world.settle()
    preempting = {"preempting_cluster_queue": "shared", "reason": "InClusterQueue"}
    assert counted.value("kueue_preempted_workloads_total", **preempting) == 1


def test_a_local_queue_has_its_own_figures() -> None:
    counted = a_running_pod()
    counted.world.api.apply(a_pod("giant").asking(cpu="500").document())
    counted.world.settle()
    plain, cell = {**LOCAL, "priority_class": ""}, {"flavor": "default", "resource": "cpu"}
    totals = ("quota_reserved_workloads_total", "admitted_workloads_total")
    waits = ("quota_reserved_wait_time", "admission_wait_time", "admission_checks_wait_time")
    for name in (*totals, *(f"{wait}_seconds_count" for wait in waits)):
        assert counted.value(f"kueue_local_queue_{name}", **plain) == 1, name
    assert counted.value("kueue_local_queue_pending_workloads", **LOCAL, status="active") == 0
    assert counted.value("kueue_local_queue_pending_workloads", **LOCAL, status="inadmissible") == 1
    assert counted.value("kueue_local_queue_reserving_active_workloads", **LOCAL) == 1
    assert counted.value("kueue_local_queue_admitted_active_workloads", **LOCAL) == 1
    assert counted.value("kueue_local_queue_resource_reservation", **LOCAL, **cell) == 1.0
    assert counted.value("kueue_local_queue_resource_usage", **LOCAL, **cell) == 1.0
    active = {status: counted.value("kueue_local_queue_status", **LOCAL, active=status) for status in ("True", "False")}
    assert active == {"True": 1, "False": 0}
    counted.world.agents["a"].finish(_placed(counted.world), SUCCEEDED)
    counted.world.settle()
    assert counted.value("kueue_local_queue_finished_workloads_total", **plain) == 1
    assert counted.value("kueue_local_queue_finished_workloads", **LOCAL) == 1
    assert counted.value("kueue_finished_workloads", **QUEUE) == 1
    assert counted.value("kueue_local_queue_admitted_active_workloads", **LOCAL) == 0


def test_an_eviction_is_counted_for_its_local_queue_and_the_class_of_its_priority() -> None:
    counted = Counted()
    world = counted.world
    urgent = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "WorkloadPriorityClass", "metadata": {"name": "urgent"}}
    world.api.apply({**urgent, "value": 100})
    world.api.apply(a_pod("one").of_class("urgent").document())
    world.settle()
    world.api.edit(ObjectRef(resources.WORKLOAD, _workload(world)), lambda found: found["spec"].update(active=False))
    world.settle()
    why = {"reason": "Deactivated", "underlying_cause": "", "priority_class": "urgent"}
    assert counted.value("kueue_evicted_workloads_total", **QUEUE, **why) == 1
    assert counted.value("kueue_local_queue_evicted_workloads_total", **LOCAL, **why) == 1
    assert counted.value("kueue_admitted_workloads_total", **QUEUE, priority_class="urgent") == 1


def test_quota_and_its_limits_are_shown_in_whole_units_and_only_where_there_are_limits() -> None:
    counted = Counted()
    queue = ObjectRef(resources.CLUSTER_QUEUE, ObjectKey("", "shared"))
    quota = {"name": "cpu", "nominalQuota": "2500m", "lendingLimit": 1}
    flavors = [{"name": "default", "resources": [quota]}]

    def limited(found: Doc) -> None:
        found["spec"]["cohortName"] = "team"
        found["spec"]["resourceGroups"][0]["flavors"] = flavors

    counted.world.api.edit(queue, limited)
    counted.world.settle()
    cell = {**CELL, "cohort": "team"}
    assert counted.value("kueue_cluster_queue_nominal_quota", **cell) == 2.5
    assert counted.value("kueue_cluster_queue_lending_limit", **cell) == 1.0
    assert counted.value("kueue_cluster_queue_borrowing_limit", **cell) is None


def test_without_metrics_of_local_queues_there_are_none() -> None:
    names = {family.name for family in ManagerMetrics(local_queues=False).registry.collect()}
    assert not [name for name in names if name.startswith("kueue_local_queue")]
    assert "kueue_admitted_workloads" in names


def test_the_text_that_is_scraped_has_finished_workloads_as_a_gauge_and_as_a_counter() -> None:
    counted = a_running_pod()
    counted.world.agents["a"].finish(_placed(counted.world), SUCCEEDED)
    counted.world.settle()
    assert counted.value("kueue_finished_workloads", **QUEUE) == 1
    text = generate_latest(counted.metrics.registry).decode()
    assert "# TYPE kueue_finished_workloads gauge" in text
    assert "# TYPE kueue_finished_workloads_total counter" in text


def test_a_queue_that_is_gone_is_gone_from_the_gauges() -> None:
    counted = Counted()
    assert counted.value("kueue_cluster_queue_status", **QUEUE, status="active") == 1
    counted.world.api.delete(ObjectRef(resources.CLUSTER_QUEUE, ObjectKey("", "shared")))
    counted.world.advance(2.0)
    assert counted.value("kueue_cluster_queue_status", **QUEUE, status="active") is None


def test_quota_that_is_freed_while_pods_stop_is_counted_by_its_reason() -> None:
    """KEP-6143: by the rule, or by the deadline of what has not stopped."""
    metrics = ManagerMetrics()
    for reason in ("QuotaReleased", "QuotaReleasedByDeadline", "QuotaReleased"):
        freed = Happened.FREED
        metrics.performed(Transition(level="info", text="", happened=freed, cluster_queue="shared", reason=reason))
    counted = (
        metrics.registry.get_sample_value("gatelift_quota_releases_total", {**QUEUE, "reason": reason})
        for reason in ("QuotaReleased", "QuotaReleasedByDeadline")
    )
    assert tuple(counted) == (2, 1)


def test_each_transition_is_one_log_line_that_names_workload_epoch_and_cluster() -> None:
    counted = a_running_pod()
    counted.world.agents["a"].finish(_placed(counted.world), SUCCEEDED)
    counted.world.settle()
    key = str(_workload(counted.world))
    for happened in (Happened.RESERVED, Happened.ADMITTED, Happened.LIFTED, Happened.FINISHED):
        said = counted.said(happened)
        assert [(note.workload, note.epoch) for note in said] == [(key, 1)], happened
        assert happened is Happened.RESERVED or said[0].cluster == "a"
        assert dict(said[0].fields)["transition"] == happened.value, "the log says it as well"


def _placed(world: World) -> PlacementKey:
    return next(iter(world.agents["a"].placements))


def _workload(world: World) -> ObjectKey:
    meta = world.find("Workload")["metadata"]
    return ObjectKey(meta["namespace"], meta["name"])
