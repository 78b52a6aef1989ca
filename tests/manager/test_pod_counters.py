"""PG-27: pods that came to our gate, were let go, were turned away: counted once, also over a restart (KEP-976)."""

from __future__ import annotations

from gatelift.adapters.metrics import ManagerMetrics
from gatelift_kube.values.resources import POD, ObjectKey, ObjectRef
from gatelift_kube.values.waits import Waits
from support.manager.builders import NAMESPACE, a_job, a_pod, a_setting
from support.manager.group_world import a_member, a_world_with_groups, join, pod_ref
from support.manager.world import World, a_running_pod, a_world, workload_ref

GATED, UNGATED, REJECTED = "kueue_pods_gated_total", "kueue_pods_ungated_total", "kueue_pods_rejected_total"
REMOVAL = "kueue_pod_scheduling_gate_removal_seconds"
EXCESS = {"reason": "ExcessPodDeleted"}
GATE = {"name": "kueue.x-k8s.io/admission"}


def value(world: World, metric: str, /, queue: str = "shared", **labels: str) -> float:
    metrics = ManagerMetrics()
    metrics.refresh(world.machine, waiting=0, writes_held=0)
    role = {"replica_role": "leader"} if metric.startswith("kueue_") else {}
    labels = {"cluster_queue": queue, **role, **labels}
    return metrics.registry.get_sample_value(metric, labels) or 0


def lift(world: World, *names: str) -> None:
    """Let pods go as the agent of `local` does."""
    for name in names:
        world.api.edit(pod_ref(name), lambda document: document["spec"].update(schedulingGates=[], nodeName="n"))
    world.settle()


def a_group(*members: str, total: int = 3) -> World:
    world = a_world_with_groups()
    world.connect("local")
    pods = [a_member(name, total=total) for name in members]
    for at, each in enumerate(pods):
        each["metadata"]["creationTimestamp"] = f"2026-11-18T11:00:{at:02}Z"
    join(world, *pods, seconds=5.0)
    return world


def test_pg_27_a_pod_that_comes_with_our_gate_is_counted_once_whatever_is_seen_of_it_later() -> None:
    world = a_world(a_setting())
    world.api.apply(a_pod("one").document())
    world.settle()
    world.api.edit(ObjectRef(POD, ObjectKey(NAMESPACE, "one")), lambda one: one["metadata"]["labels"].update(x="y"))
    world.settle()
    assert value(world, GATED) == 1
    world.api.apply(a_pod("two").document())
    world.settle()
    assert value(world, GATED) == 2


def test_sl_70_what_the_agent_of_this_cluster_let_go_of_elastic_work_is_shown_by_its_queue() -> None:
    world, waits = a_world(a_setting()), Waits()
    waits.add(7.0)
    metrics = ManagerMetrics()
    at_home = {ObjectKey(NAMESPACE, "main"): waits, ObjectKey(NAMESPACE, "gone"): waits}
    metrics.refresh(world.machine, waiting=0, writes_held=0, at_home=at_home)
    of_one = {"name": "kueue.x-k8s.io/elastic-job", "is_group": "false", "replica_role": "leader"}
    for queue in ("shared", ""):
        found = metrics.registry.get_sample_value(f"{REMOVAL}_sum", {**of_one, "cluster_queue": queue})
        assert found == 7.0


def test_pg_27_who_leads_next_counts_nothing_that_was_there_before() -> None:
    world = a_world(a_setting())
    world.api.apply(a_pod("one").document())
    world.settle()
    world.restart()
    world.advance(2.0)
    assert (value(world, GATED), value(world, UNGATED)) == (0, 0)
    world.api.apply(a_pod("two").document())
    world.advance(2.0)
    assert (value(world, GATED), value(world, UNGATED)) == (1, 1)


def test_pg_27_a_pod_that_names_no_queue_that_there_is_is_counted_at_none() -> None:
    world = a_world(a_setting())
    pod = a_pod("one").document()
    pod["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "nowhere"
    world.api.apply(pod)
    world.settle()
    assert (value(world, GATED), value(world, GATED, queue="")) == (0, 1)


def test_pg_27_a_pod_that_runs_elsewhere_keeps_its_gate_here_and_is_let_go_once() -> None:
    """PC-104."""
    world, _ = a_running_pod()
    of_one = {**GATE, "is_group": "false"}
    assert (value(world, UNGATED), value(world, f"{REMOVAL}_count", **of_one)) == (1, 1)
    world.api.edit(workload_ref(world), lambda one: one["spec"].update(active=False))
    world.advance(3.0)
    world.api.edit(workload_ref(world), lambda one: one["spec"].update(active=True))
    world.advance(5.0)
    assert world.condition(world.find("Workload"), "Admitted")["status"] == "True"
    assert value(world, UNGATED) == 1, "its second run is no other pod"
    world.restart()
    world.advance(3.0)
    assert value(world, UNGATED) == 0


def test_pg_27_a_job_makes_pods_of_its_own_which_never_had_our_gate() -> None:
    world = a_world(a_setting(cpu=8))
    world.api.apply(a_job(parallelism=8, completions=8))
    world.settle()
    assert [value(world, each, queue=queue) for each in (GATED, UNGATED) for queue in ("shared", "")] == [0] * 4


def test_pg_27_pods_of_a_group_are_counted_one_by_one_as_they_come_and_as_they_are_let_go() -> None:
    """PC-102, PC-103."""
    world = a_group("a", "b", "c")
    assert (value(world, GATED), value(world, UNGATED)) == (3, 0)
    world.advance(4.0)
    lift(world, "a", "b")
    assert value(world, UNGATED) == 2
    lift(world, "c")
    lift(world, "a", "b", "c")
    assert value(world, UNGATED) == 3
    of_group = {**GATE, "is_group": "true"}
    assert value(world, f"{REMOVAL}_count", **of_group) == 3
    assert value(world, f"{REMOVAL}_bucket", **of_group, le="2.5") == 0
    assert value(world, f"{REMOVAL}_bucket", **of_group, le="10.0") == 3


def test_pg_27_who_is_too_many_is_counted_as_rejected_with_its_reason() -> None:
    world = a_group("a", "b", "c")
    lift(world, "a", "b", "c")
    join(world, a_member("d", at=9), seconds=5.0)
    assert value(world, REJECTED, **EXCESS) == 1
    world.advance(30.0)
    assert value(world, REJECTED, **EXCESS) == 1
    assert value(world, GATED) == 4


def test_pg_27_a_member_that_waits_at_its_gate_while_its_group_is_placed_is_a_figure() -> None:
    world = a_group("a", "b", "c")
    assert value(world, "gatelift_pods_waiting_for_slot") == 3, "not let go yet"
    lift(world, "a", "b", "c")
    assert value(world, "gatelift_pods_waiting_for_slot") == 0
    world.api.edit(pod_ref("a"), lambda one: one["metadata"].update(deletionTimestamp="2026-11-21T00:01:00Z"))
    heir = a_member("heir")
    join(world, heir, seconds=5.0)
    assert value(world, "gatelift_pods_waiting_for_slot") == 1, "until the one before it has stopped"
