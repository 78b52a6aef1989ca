"""Attacks: a watch of a manager stands still for longer than a Lease, while it stands by or while it leads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gatelift.core.works.beginning import watched
from gatelift_kinds.registry import SERVED
from gatelift_kube.values.resources import JOB, POD, WORKLOAD, Resource
from support.sim.draws import some

if TYPE_CHECKING:
    from support.sim.world import SimWorld

STALL_SECONDS = (20.0, 40.0)
"""A Lease takes 15 s, and is taken within 4 s of that: a standby that is behind leads before its watch goes on."""
DIES_WITHIN_SECONDS = 15.0


def standbys_watch_stalls(world: SimWorld) -> bool:
    """Let watches of a standby, which may be just there, stand still, and mostly let the leader die meanwhile."""
    leader = some(world, [each for each in world.managers if each.elector.leads()])
    if leader is None:
        return False
    standby = some(world, [each for each in world.managers if each is not leader]) or world.start_manager()
    standby.stall(world.time.between(*STALL_SECONDS), _kinds(world))
    world.make("stays" if world.time.chance(0.5) else "travels")  # what it does not see
    if world.time.chance(0.7):
        world.time.after(world.time.between(1.0, DIES_WITHIN_SECONDS), leader.kill)
    return True


def leaders_watch_stalls(world: SimWorld) -> bool:
    """Let watches of the leader stand still: it acts late, and on what it wrote itself and was answered."""
    leader = some(world, [each for each in world.managers if each.elector.leads()])
    if leader is None:
        return False
    leader.stall(world.time.between(*STALL_SECONDS), _kinds(world))
    return True


def _kinds(world: SimWorld) -> tuple[Resource, ...]:
    """Return kinds whose watches stand still: one that matters most, any one, or all."""
    draw = world.time.rng.random()
    if draw < 0.6:
        return (world.time.rng.choice((WORKLOAD, POD, JOB)),)
    return (world.time.rng.choice(watched(SERVED)),) if draw < 0.9 else ()
