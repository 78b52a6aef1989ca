"""Priorities: where they come from, and how a change of a class or of its value reaches Workloads."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift.core.state.waiters import Waiters
from gatelift_kube.values import resources
from gatelift_kube.values.resources import ObjectKey, ObjectRef
from support.manager.agents import ScriptedAgent
from support.manager.builders import NAMESPACE, Doc, a_job, a_pod, a_setting, a_workload
from support.manager.world import RUNNING, SUCCEEDED, World, a_world

LABEL = "kueue.x-k8s.io/priority-class"


def a_class(name: str, value: int) -> Doc:
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "WorkloadPriorityClass",
        "metadata": {"name": name},
        "value": value,
    }


def a_pod_class(name: str, value: int, *, default: bool = False) -> Doc:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        "globalDefault": default,
    }


def workload_of(world: World, name: str) -> Any:
    return next(one for one in world.all("Workload") if f"-{name}-" in one["metadata"]["name"])


def priority_of(world: World, name: str) -> tuple[int, str]:
    spec = workload_of(world, name)["spec"]
    ref = spec.get("priorityClassRef")
    return spec["priority"], f"{ref['kind']} {ref['name']} of {ref['group']}" if ref else ""


def set_value(world: World, name: str, value: int) -> None:
    ref = ObjectRef(resources.WORKLOAD_PRIORITY_CLASS, ObjectKey("", name))
    world.api.edit(ref, lambda document: document.update(value=value))


def relabel(world: World, pod: str, name: str) -> None:
    ref = ObjectRef(resources.POD, ObjectKey(NAMESPACE, pod))
    world.api.edit(ref, lambda document: document["metadata"]["labels"].update({LABEL: name}))


def one_runs() -> tuple[World, ScriptedAgent]:
    """Return a world of one cpu in which a pod of class `mid` runs."""
    world = a_world(a_setting(cpu=1))
    for name, value in (("low", 10), ("mid", 50), ("high", 100)):
        world.api.apply(a_class(name, value))
    world.api.apply(a_pod("runs").of_class("mid").document())
    world.settle()
    agent = world.agents["a"]
    agent.show(agent.commits[0], RUNNING)
    world.settle()
    return world, agent


def test_a_workload_class_wins_over_the_pods_own() -> None:
    world = a_world([*a_setting(), a_class("high", 100), a_pod_class("system", 7)])
    document = a_pod("both").of_class("high").document()
    document["spec"] |= {"priorityClassName": "system", "priority": 7}
    world.api.apply(document)
    world.settle()
    assert priority_of(world, "both") == (100, "WorkloadPriorityClass high of kueue.x-k8s.io")


def test_a_pod_templates_class_counts_where_no_workload_class_is_named() -> None:
    world = a_world([*a_setting(), a_pod_class("batch", 7), a_pod_class("usual", 3, default=True)])
    job = a_job("named")
    job["spec"]["template"]["spec"]["priorityClassName"] = "batch"
    world.api.apply(job)
    world.api.apply(a_job("plain"))
    world.settle()
    assert priority_of(world, "named") == (7, "PriorityClass batch of scheduling.k8s.io")
    assert priority_of(world, "plain") == (3, "PriorityClass usual of scheduling.k8s.io")


def test_a_changed_value_reaches_those_that_wait_and_those_that_run() -> None:
    world, _ = one_runs()
    world.api.apply(a_pod("waits").of_class("mid").document())
    world.api.apply(a_pod("other").of_class("low").document())
    world.advance(2.0)
    set_value(world, "mid", 60)
    world.advance(2.0)
    assert [priority_of(world, name)[0] for name in ("runs", "waits", "other")] == [60, 60, 10]


def test_who_is_raised_goes_first() -> None:
    world, agent = one_runs()
    world.api.apply(a_pod("first").of_class("mid").document())
    world.advance(2.0)
    world.api.apply(a_pod("second").of_class("low").document())
    world.advance(2.0)
    set_value(world, "low", 70)
    world.advance(2.0)
    agent.finish(agent.commits[0], SUCCEEDED)
    world.advance(2.0)
    assert world.condition(workload_of(world, "second"), "QuotaReserved")["status"] == "True"
    assert world.condition(workload_of(world, "first"), "QuotaReserved")["status"] == "False"


def test_who_is_lowered_while_it_runs_can_be_preempted() -> None:
    world, _ = one_runs()
    queue = ObjectRef(resources.CLUSTER_QUEUE, ObjectKey("", "shared"))
    policy = {"withinClusterQueue": "LowerPriority"}
    world.api.edit(queue, lambda document: document["spec"].update(preemption=policy))
    world.api.apply(a_class("urgent", 40))
    world.api.apply(a_pod("urgent").of_class("urgent").document())
    world.advance(2.0)
    assert world.condition(workload_of(world, "urgent"), "QuotaReserved")["status"] == "False"
    set_value(world, "mid", 20)
    world.advance(2.0)
    assert world.condition(workload_of(world, "runs"), "Preempted")["status"] == "True"
    assert world.condition(workload_of(world, "urgent"), "QuotaReserved")["status"] == "True"


@pytest.mark.parametrize("name", ["runs", "waits"])
def test_another_class_on_the_users_object_is_taken_over(name: str) -> None:
    world, _ = one_runs()
    world.api.apply(a_pod("waits").of_class("low").document())
    world.advance(2.0)
    relabel(world, name, "high")
    world.advance(2.0)
    assert priority_of(world, name) == (100, "WorkloadPriorityClass high of kueue.x-k8s.io")
    told = [one.message for one in world.emitted if one.reason == "UpdatedWorkload"]
    assert told == [f"Updated workload priority class: {NAMESPACE}/{workload_of(world, name)['metadata']['name']}"]


def test_a_class_that_does_not_exist_changes_nothing_until_it_does() -> None:
    world, _ = one_runs()
    relabel(world, "runs", "absent")
    world.advance(2.0)
    assert priority_of(world, "runs")[0] == 50
    assert "WorkloadPriorityClassNotFound" in {one.reason for one in world.emitted}
    world.api.apply(a_class("absent", 5))
    world.advance(2.0)
    assert priority_of(world, "runs") == (5, "WorkloadPriorityClass absent of kueue.x-k8s.io")


def test_hd_297_a_pod_that_names_one_missing_class_after_another_waits_for_the_last_one() -> None:
    world = a_world(a_setting(cpu=1))
    world.api.apply(a_pod("runs").document())
    world.advance(2.0)
    world.api.apply(a_pod("waits").document())
    for number in range(20):
        relabel(world, "waits", f"absent-{number}")
        world.advance(2.0)
    classless = world.machine.core.classless
    assert [number for number in range(20) if classless.of(f"absent-{number}")] == [19]


def test_hd_297_who_goes_leaves_what_he_waited_for_without_a_look_at_what_others_wait_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waiters: Waiters[str, str] = Waiters()
    for number in range(1000):
        waiters.wait_only(f"class-{number}", f"pod-{number}")
    left: list[str] = []
    leave = Waiters.leave

    def counted(self: Waiters[str, str], subject: str, waiter: str) -> bool:
        left.append(subject)
        return leave(self, subject, waiter)

    monkeypatch.setattr(Waiters, "leave", counted)
    waiters.leave_all("pod-7")
    waiters.leave_all("nobody")
    assert left == ["class-7"]
    assert not waiters.of("class-7")
    assert list(waiters.of("class-8")) == ["pod-8"]


def test_a_workload_without_owner_follows_its_class_too() -> None:
    world = a_world([*a_setting(clusters=()), a_class("high", 100)], clusters=("local",))
    document = a_workload("bare").document()
    ref = {"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": "high"}
    document["spec"] |= {"priorityClassRef": ref, "priority": 1}
    world.api.apply(document)
    world.advance(1.0)
    assert world.find("Workload")["spec"]["priority"] == 100
    set_value(world, "high", 30)
    world.advance(1.0)
    assert world.find("Workload")["spec"]["priority"] == 30


def test_what_is_finished_keeps_the_priority_it_ran_with() -> None:
    world, agent = one_runs()
    agent.finish(agent.commits[0], SUCCEEDED)
    world.advance(2.0)
    set_value(world, "mid", 60)
    world.advance(2.0)
    assert priority_of(world, "runs")[0] == 50


def test_a_new_leader_finds_a_value_that_changed_while_nobody_led() -> None:
    world, _ = one_runs()
    ref = ObjectRef(resources.WORKLOAD_PRIORITY_CLASS, ObjectKey("", "mid"))
    world.api.objects[ref]["value"] = 65
    world.restart()
    world.advance(2.0)
    assert priority_of(world, "runs")[0] == 65


@pytest.mark.parametrize(("named", "stays"), [("low", 10), ("", 900)], ids=["of a class", "of none"])
def test_what_somebody_writes_on_a_workload_counts_as_in_kueue_and_a_class_has_the_last_word(
    named: str, stays: int
) -> None:
    world = a_world(a_setting(cpu=1))
    world.api.apply(a_class("low", 10))
    for name in ("first", "second"):
        document = a_pod(name).asking(cpu=1).document()
        if named:
            document["metadata"]["labels"][LABEL] = named
        world.api.apply(document)
    world.advance(3.0)
    waits = ObjectRef(resources.WORKLOAD, ObjectKey(NAMESPACE, workload_of(world, "second")["metadata"]["name"]))
    world.api.edit(waits, lambda one: one["spec"].update(priority=900))
    world.advance(3.0)
    assert priority_of(world, "second")[0] == stays
