"""HD-30: an epoch that a person raises while the attempt lives, on both real cores.

The policy forbids it; one who goes around the policy must not double the run either.
"""

from __future__ import annotations

import pytest

from gatelift_kube.values.resources import JOB, WORKLOAD
from gatelift_sandbox.behaviour import RUN_SECONDS
from support.manager.builders import a_job
from support.sim.cluster import TEAM
from support.sim.faults import Faults
from support.sim.truth import epoch_of
from support.sim.world import Plan, SimWorld

QUIET = Plan(faults=Faults(), break_every=0.0, user_every=0.0, workloads=0)


def running(seed: int, queue: str) -> SimWorld:
    """Return a world in which one Job runs for long."""
    world = SimWorld(seed, QUIET)
    world.pass_seconds(60.0)
    job = a_job("one", parallelism=1, cpu="500m")
    job["metadata"] |= {"namespace": TEAM, "labels": {"kueue.x-k8s.io/queue-name": queue}}
    job["spec"]["template"]["metadata"]["annotations"] = {RUN_SECONDS: "900"}
    if queue == "stays":
        del job["spec"]["managedBy"]
    del job["status"]
    world.home.create(JOB, job)
    assert world.pass_seconds(60.0, lambda: bool(world.truth.all_live()))
    world.pass_seconds(5.0)
    return world


def raise_epoch(world: SimWorld, epoch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Raise it by hand, around the policy; the outside check, which would take it for ours, looks away."""
    name = world.home.all(WORKLOAD)[0]["metadata"]["name"]
    with monkeypatch.context() as hand:
        hand.setattr(world.truth, "_transition", lambda *_: None)
        world.home.change(WORKLOAD, name, {"metadata": {"annotations": {"gatelift.dev/epoch": str(epoch)}}})


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("queue", ["travels", "stays"])
@pytest.mark.parametrize("restart", [False, True], ids=["same-leader", "next-leader"])
def test_hd_30_a_live_attempt_ignores_an_epoch_that_somebody_raises(
    monkeypatch: pytest.MonkeyPatch, seed: int, queue: str, *, restart: bool
) -> None:
    world = running(seed, queue)
    before = world.truth.all_live()
    raise_epoch(world, 7, monkeypatch)
    if restart:
        for manager in world.managers:
            manager.kill()
    world.pass_seconds(120.0)
    assert world.truth.all_live() == before, "it runs on, once, under its own epoch"

    name = world.home.all(WORKLOAD)[0]["metadata"]["name"]
    world.home.change(WORKLOAD, name, {"spec": {"active": False}})
    assert world.pass_seconds(120.0, lambda: not world.truth.all_live())
    world.pass_seconds(30.0)
    assert epoch_of(world.home.all(WORKLOAD)[0]) == 8, "max(annotation, own) + 1"
    world.home.change(WORKLOAD, name, {"spec": {"active": True}})
    assert world.pass_seconds(120.0, lambda: bool(world.truth.all_live()))
    assert {epoch for live in world.truth.all_live().values() for epoch, _ in live} == {8}


def test_hd_30_an_epoch_raised_while_quota_is_free_is_the_one_that_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    world = running(1, "travels")
    name = world.home.all(WORKLOAD)[0]["metadata"]["name"]
    world.home.change(WORKLOAD, name, {"spec": {"active": False}})
    assert world.pass_seconds(120.0, lambda: not world.truth.all_live())
    world.pass_seconds(30.0)
    raise_epoch(world, 40, monkeypatch)
    world.home.change(WORKLOAD, name, {"spec": {"active": True}})
    assert world.pass_seconds(120.0, lambda: bool(world.truth.all_live()))
    assert {epoch for live in world.truth.all_live().values() for epoch, _ in live} == {40}
