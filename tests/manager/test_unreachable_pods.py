"""IS-45: a pod whose cluster is lost is Ready=Unknown, as a node's controller says it of pods on a lost node."""

from __future__ import annotations

import json
from typing import Any

from gatelift.core.state.readiness_values import ReadinessSettings
from gatelift.core.told import mirror
from gatelift_kube.deciding.writes import Patch
from support.manager.builders import a_job, a_pod, a_setting
from support.manager.world import RUNNING, SUCCEEDED, World, a_world

TEXT = 'Cluster "a" is unreachable; the work there may be running and its quota stays charged'


def ready(world: World) -> dict[str, Any]:
    (said,) = [one for one in world.find("Pod")["status"]["conditions"] if one["type"] == "Ready"]
    return dict(said)


def a_pod_that_runs(**settings: Any) -> World:
    world = a_world(a_setting(), **settings)
    world.api.apply(a_pod().document())
    world.settle()
    agent = world.agents["a"]
    agent.show(agent.commits[0], RUNNING)
    world.advance(5.0)
    assert ready(world)["status"] == "True"
    return world


def written(world: World) -> list[Patch]:
    return [one for one in world.history if isinstance(one, Patch) and b"ClusterUnreachable" in one.body]


def test_is_45_a_pod_whose_cluster_is_lost_is_not_called_ready() -> None:
    world = a_pod_that_runs()
    world.cut("a", lost=True)
    world.advance(3600.0)
    said = ready(world)
    assert (said["status"], said["reason"], said["message"]) == ("Unknown", "ClusterUnreachable", TEXT)
    assert world.find("Pod")["status"]["phase"] == "Running", "what its kubelet said last stays"
    assert [one.informs for one in written(world)] == [True], "once, and nothing of weight waits for it"


def test_is_45_as_its_cluster_comes_back_it_is_ready_again_and_nothing_is_timed_out() -> None:
    world = a_pod_that_runs(readiness=ReadinessSettings(timeout=30.0, recovery_timeout=30.0))
    world.cut("a", lost=True)
    world.advance(600.0)
    world.connect("a")
    world.advance(5.0)
    agent = world.agents["a"]
    agent.show(agent.commits[0], RUNNING)
    world.advance(60.0)
    assert ready(world)["status"] == "True"
    assert world.condition(world.find("Workload"), "PodsReady")["status"] == "True"
    assert world.condition(world.find("Workload"), "Evicted") == {}
    agent.finish(agent.commits[0], SUCCEEDED)
    world.settle()
    assert world.find("Pod")["status"]["phase"] == "Succeeded"


def test_is_45_a_job_and_a_pod_that_was_not_ready_keep_what_they_say() -> None:
    world = a_world(a_setting(cpu=8))
    world.api.apply(a_job())
    world.api.apply(a_pod().document())
    world.settle()
    world.cut("a", lost=True)
    world.advance(60.0)
    assert written(world) == []


def test_is_45_what_ran_when_its_cluster_was_last_heard_of_still_shows_that_it_ran() -> None:
    """Who takes over does not take it for something that was never let go."""
    world = a_pod_that_runs()
    world.cut("a", lost=True)
    world.advance(60.0)
    assert mirror.shows_run(json.dumps(world.find("Pod")).encode())
