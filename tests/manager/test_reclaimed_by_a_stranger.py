"""HD-210: `status.reclaimablePods` frees no more than the cluster where it runs has reported to this leader."""

from __future__ import annotations

import pytest

from gatelift_kube.values.resources import WORKLOAD, ObjectKey, ObjectRef
from support.manager.builders import NAMESPACE, a_job, a_pod, a_setting
from support.manager.world import World, a_world, workload_ref


def free(world: World, ref: ObjectRef, count: int = 1) -> None:
    """Write, around the policy, that pods need quota no longer."""
    world.api.edit(ref, lambda one: one["status"].update(reclaimablePods=[{"name": "main", "count": count}]))
    world.advance(10.0)


def charged(world: World, uid: str) -> int:
    """Return the pods' worth of cpu that are charged: each asks for one."""
    return sum(world.machine.core.ledger.usage(uid).values()) // 1000


def a_running_job(cpu: int = 8) -> World:
    world = a_world(a_setting(cpu=cpu))
    world.api.apply(a_job(parallelism=8, completions=8))
    world.settle()
    return world


def uid_of(world: World) -> str:
    return str(world.find("Workload")["metadata"]["uid"])


def test_hd_210_what_waits_in_a_full_queue_does_not_run_for_nothing() -> None:
    """The symptom: it ran, charged for no pod."""
    world = a_world(a_setting(cpu=1))
    world.api.apply(a_pod("first").document())
    world.advance(2.0)
    first = uid_of(world)
    world.api.apply(a_pod("second").document())
    world.advance(2.0)
    (second,) = (one for one in world.all("Workload") if one["metadata"]["uid"] != first)
    ref = ObjectRef(WORKLOAD, ObjectKey(NAMESPACE, second["metadata"]["name"]))
    free(world, ref)
    world.advance(60.0)
    assert world.condition(world.api.objects[ref], "Admitted").get("status") != "True"


def admitted(world: World) -> int:
    return sum(world.condition(one, "Admitted").get("status") == "True" for one in world.all("Workload"))


def test_hd_210_what_runs_is_charged_whatever_is_said_of_it() -> None:
    """The symptom: one more got in than the queue had room for."""
    world = a_running_job()
    free(world, workload_ref(world), 8)
    assert charged(world, uid_of(world)) == 8
    world.api.apply(a_pod("more").document())
    world.advance(30.0)
    assert admitted(world) == 1


def test_hd_210_what_was_written_between_two_leaders_is_charged_once_its_cluster_is_heard() -> None:
    """Until then the record is believed: what its predecessor had freed may be another's already (decision 65)."""
    world = a_running_job()
    free(world, workload_ref(world), 8)
    world.restart()
    world.advance(3.0)
    agent = world.agents["a"]
    agent.count(agent.commits[0], remaining=8, succeeded=0, reclaimable=0)
    world.advance(3.0)
    assert charged(world, uid_of(world)) == 8
    world.api.apply(a_pod("more").document())
    world.advance(30.0)
    assert admitted(world) == 1


@pytest.mark.parametrize("when", ["while nobody leads", "later"])
def test_hd_235_of_a_pod_nothing_is_free_before_it_is_over(when: str) -> None:
    """HD-235: no cluster counts a pod, so what a leader had found of one was believed for ever."""
    world = a_world(a_setting(cpu=1))
    world.api.apply(a_pod("first").document())
    world.advance(2.0)
    uid, ref = uid_of(world), workload_ref(world)
    if when == "while nobody leads":
        free(world, ref)
    world.restart()
    world.advance(3.0)
    if when == "later":
        free(world, ref)
    assert charged(world, uid) == 1
    world.api.apply(a_pod("more").document())
    world.advance(30.0)
    assert admitted(world) == 1


def test_hd_210_what_the_cluster_reports_is_free_under_each_leader_from_then_on() -> None:
    world = a_running_job()
    agent, uid = world.agents["a"], uid_of(world)
    agent.count(agent.commits[0], remaining=2, succeeded=6, reclaimable=6)
    world.advance(3.0)
    assert charged(world, uid) == 2
    world.restart()
    world.advance(3.0)
    assert charged(world, uid) == 2, "nobody is preempted for what is free"
    agent.count(agent.commits[0], remaining=1, succeeded=7, reclaimable=7)
    world.advance(3.0)
    assert charged(world, uid) == 1


def test_hd_210_more_than_was_reported_is_neither_free_nor_left_standing() -> None:
    world = a_running_job()
    agent = world.agents["a"]
    agent.count(agent.commits[0], remaining=7, succeeded=1, reclaimable=1)
    world.advance(3.0)
    uid, ref = uid_of(world), workload_ref(world)
    for name in ("fits", "waits"):
        world.api.apply(a_pod(name).document())
        world.advance(3.0)
    free(world, ref, 8)
    assert charged(world, uid) == 7
    assert world.api.objects[ref]["status"]["reclaimablePods"] == [{"name": "main", "count": 1}]
    world.advance(30.0)
    assert sum(world.condition(one, "Admitted").get("status") == "True" for one in world.all("Workload")) == 2
