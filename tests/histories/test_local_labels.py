"""What runs at `local` is known by the user's object, not by labels that a person can take away."""

from __future__ import annotations

import pytest

from gatelift_kube.values.resources import CLUSTER_QUEUE, JOB, POD, WORKLOAD, Resource
from gatelift_sandbox.behaviour import RUN_SECONDS
from gatelift_wire.values.keys import LABEL_EPOCH, LABEL_ORIGIN, LABEL_WORKLOAD_UID
from support.manager.builders import a_job
from support.sim.cluster import TEAM, Doc
from support.sim.faults import Faults
from support.sim.truth import holds
from support.sim.world import Plan, SimWorld

QUIET = Plan(faults=Faults(), break_every=0.0, user_every=0.0, workloads=0)
NO_LABELS: Doc = {"metadata": {"labels": dict.fromkeys((LABEL_ORIGIN, LABEL_WORKLOAD_UID, LABEL_EPOCH))}}
OBJECTS = (pytest.param(POD, id="pod"), pytest.param(JOB, id="job"))


def world_with(resource: Resource, seconds: str = "600") -> SimWorld:
    """Return a world in which one object runs at `local`."""
    world = SimWorld(3, QUIET)
    world.pass_seconds(30.0)
    if resource == POD:
        world.make_pod("one", "stays", "500m", {RUN_SECONDS: seconds})
    else:
        document = a_job("one", parallelism=2, cpu="500m")
        document["metadata"]["namespace"] = TEAM
        document["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "stays"
        document["spec"]["template"]["metadata"]["annotations"] = {RUN_SECONDS: seconds}
        del document["spec"]["managedBy"], document["status"]
        world.home.create(JOB, document)
    assert world.pass_seconds(60.0, lambda: runs(world))
    return world


def runs(world: SimWorld) -> bool:
    """Say whether a container of the object runs at home."""
    return any(one.get("status", {}).get("phase") == "Running" for one in world.home.all(POD))


def restart(world: SimWorld) -> None:
    """Let the manager die; its Deployment starts another."""
    for manager in world.managers:
        manager.kill()
    world.pass_seconds(90.0)


def charged(world: SimWorld) -> bool:
    """Say whether the Workload is there and holds quota; that of a pod goes with it, since it cannot be gated again."""
    return any(holds(each, "QuotaReserved") for each in world.home.all(WORKLOAD))


def labels(world: SimWorld, resource: Resource) -> Doc:
    """Return the labels of the user's object."""
    found = world.home.look(resource, "one")
    assert found is not None
    return dict(found["metadata"]["labels"])


@pytest.mark.parametrize("resource", OBJECTS)
def test_hd_6_what_runs_without_its_labels_stays_charged_after_a_restart(resource: Resource) -> None:
    world = world_with(resource)
    before = labels(world, resource)
    world.home.change(resource, "one", NO_LABELS)
    restart(world)
    assert runs(world)
    assert charged(world), "its quota is free while it runs"
    assert labels(world, resource).items() >= before.items(), "the labels are put back"


@pytest.mark.parametrize("resource", OBJECTS)
def test_hd_6_what_runs_without_its_labels_is_charged_until_its_eviction_has_stopped_it(resource: Resource) -> None:
    world = world_with(resource)
    for manager in world.managers:
        manager.kill()
    world.home.change(resource, "one", NO_LABELS)
    world.home.change(CLUSTER_QUEUE, "stays", {"spec": {"stopPolicy": "HoldAndDrain"}})
    assert world.pass_seconds(120.0, lambda: not charged(world))
    assert not runs(world)


@pytest.mark.parametrize("resource", OBJECTS)
def test_hd_6_what_runs_without_its_labels_is_charged_until_it_has_finished(resource: Resource) -> None:
    world = world_with(resource, seconds="200")
    world.home.change(resource, "one", NO_LABELS)
    restart(world)
    assert charged(world)
    assert world.pass_seconds(300.0, lambda: all(holds(each, "Finished") for each in world.home.all(WORKLOAD)))


@pytest.mark.parametrize("resource", OBJECTS)
def test_hd_134_a_label_at_home_is_put_back_after_a_change_of_leader_too(resource: Resource) -> None:
    """The next leader's agent asks for the confirmation that it needs: what runs is confirmed by nobody on his own."""
    world = world_with(resource)
    restart(world)
    edited = world.home.change(resource, "one", {"metadata": {"labels": {LABEL_EPOCH: "7"}}})
    assert edited is not None
    world.pass_seconds(60.0)
    found = world.home.look(resource, "one")
    assert found is not None
    assert found["metadata"]["labels"][LABEL_EPOCH] == "1"
    assert runs(world)
