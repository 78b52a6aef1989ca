"""HD-45: pods that a controller made, and pods that say that one did, on both real cores."""

from __future__ import annotations

from typing import Any

from gatelift_kube.values.resources import POD, WORKLOAD
from gatelift_sandbox.behaviour import RUN_SECONDS
from support.manager.builders import a_pod
from support.sim.cluster import TEAM
from support.sim.faults import Faults
from support.sim.world import Plan, SimWorld

QUIET = Plan(faults=Faults(), break_every=0.0, user_every=0.0, workloads=0)
"""Nobody but the test does anything, and nothing breaks."""


def _ready() -> SimWorld:
    world = SimWorld(3, QUIET)
    world.pass_seconds(120.0)
    return world


def _finished(world: SimWorld) -> bool:
    workloads = world.home.all(WORKLOAD)
    ends = [one for each in workloads for one in each.get("status", {}).get("conditions", [])]
    return any(one["type"] == "Finished" and one["reason"] == "Succeeded" for one in ends)


def _make(world: SimWorld, queue: str, **metadata: Any) -> None:
    document = a_pod("one").asking(cpu="500m").document()
    meta = document["metadata"]
    meta |= {"namespace": TEAM, "annotations": {RUN_SECONDS: "20"}, **metadata}
    meta["labels"] |= {"kueue.x-k8s.io/queue-name": queue, **metadata.get("labels", {})}
    meta["labels"]["kueue.x-k8s.io/managed"] = "true"
    del document["status"]
    world.home.create(POD, document)


def test_hd_45_a_queued_pod_of_an_operator_runs_where_it_is() -> None:
    world = _ready()
    owner = {"apiVersion": "example.com/v1", "kind": "Task", "name": "maker", "uid": "uid-maker", "controller": True}
    _make(world, "stays", ownerReferences=[owner])
    assert world.pass_seconds(120.0, lambda: _finished(world))


def test_hd_45_a_pod_that_names_a_job_travels_without_the_name() -> None:
    world = _ready()
    index = "batch.kubernetes.io/job-completion-index"
    names = {"batch.kubernetes.io/job-name": "other", "job-name": "other", "controller-uid": "x", index: "4"}
    _make(world, "travels", labels=names)
    assert world.pass_seconds(60.0, lambda: any(each.all(POD) for each in world.workers.values()))
    [made] = [pod for each in world.workers.values() for pod in each.all(POD)]
    assert {key for key in made["metadata"]["labels"] if "job-name" in key or "controller-uid" in key} == set()
    assert made["metadata"]["labels"][index] == "4"
    assert world.pass_seconds(120.0, lambda: _finished(world))
