"""What the attacks of a simulation draw, and when they go on."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from support.sim.cluster import SimCluster

if TYPE_CHECKING:
    from support.sim.world import SimWorld

BACK_SECONDS = 30.0
"""The longest time after which a person makes again what he has deleted."""


def some(world: SimWorld, found: list[Any]) -> Any:
    """Draw one, None from an empty list."""
    return world.time.rng.choice(found) if found else None


def a_worker(world: SimWorld) -> tuple[str, SimCluster]:
    """Draw a worker that is still there."""
    name = some(world, [each for each in world.names if world.workers[each].name not in world.lost_for_good])
    return name, world.workers[name]


def later(world: SimWorld, act: Callable[[], object], seconds: float = BACK_SECONDS) -> None:
    """Let something happen within some seconds, trouble or calm."""
    world.time.after(world.time.between(0.1, seconds), act)
