"""What a workload costs API servers (design: speed): both real cores together, each write that lands is counted."""

from __future__ import annotations

from collections import Counter

import pytest

from gatelift_kube.values.resources import JOB, POD, WORKLOAD
from gatelift_sandbox.behaviour import RUN_SECONDS
from support.sim.faults import Faults
from support.sim.landed import Count, counting
from support.sim.world import Plan, SimWorld

QUIET = Plan(faults=Faults(), break_every=0.0, workloads=0)
"""Nobody but the test does anything, and nothing breaks."""


@pytest.fixture
def landed(monkeypatch: pytest.MonkeyPatch) -> Count:
    """Count every write of manager and agents."""
    return counting(monkeypatch)


def ready(landed: Count) -> SimWorld:
    """Return a world whose agents are connected and that has nothing to do."""
    world = SimWorld(3, QUIET)
    world.pass_seconds(120.0)
    landed.clear()
    return world


def finished(world: SimWorld) -> bool:
    """Say whether every Workload is finished and nothing is left on a worker."""
    workloads = world.home.all(WORKLOAD)
    done = all(
        any(one["type"] == "Finished" for one in each.get("status", {}).get("conditions", [])) for each in workloads
    )
    return bool(workloads) and done and not any(each.all(POD) or each.all(JOB) for each in world.workers.values())


def test_a_pod_costs_three_writes_to_its_workload_three_to_itself_and_four_at_the_worker(landed: Count) -> None:
    world = ready(landed)
    world.make_pod("one", "travels", "500m", {RUN_SECONDS: "20"})
    assert world.pass_seconds(120.0, lambda: finished(world))
    worker = next(cluster for cluster, *_ in landed if cluster != "home")
    assert landed == {
        ("home", "create", "workloads"): 1,
        ("home", "update", "workloads/status"): 2,  # reserved, admitted and cluster in one; finished
        ("home", "patch", "pods/status"): 2,  # running, terminal
        ("home", "patch", "pods"): 1,  # finalizer
        (worker, "create", "pods"): 1,
        (worker, "patch", "pods"): 2,  # lift, finalizer
        (worker, "delete", "pods"): 1,
    }


def test_ten_pods_cost_ten_times_as_much_and_nothing_besides(landed: Count) -> None:
    world = ready(landed)
    for number in range(10):
        world.make_pod(f"p{number}", "travels", "500m", {RUN_SECONDS: "5"})
    assert world.pass_seconds(600.0, lambda: finished(world))
    waits = landed.pop(("home", "update", "workloads/status")) - 20
    assert 0 <= waits <= 10, "a workload that waits says why, once"
    at_workers = Counter[tuple[str, str]]()
    for (cluster, verb, resource), number in landed.items():
        at_workers[("home" if cluster == "home" else "worker", f"{verb} {resource}")] += number
    assert at_workers == {
        ("home", "create workloads"): 10,
        ("home", "patch pods/status"): 20,
        ("home", "patch pods"): 10,
        ("worker", "create pods"): 10,
        ("worker", "patch pods"): 20,
        ("worker", "delete pods"): 10,
    }
