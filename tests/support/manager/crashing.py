"""A life of a workload, lived once for each step in it, with the manager thrown away after that step."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from support.manager.world import World

STEPS_OF_A_LIFE = 400
"""More than any of these lives takes: the loop ends when a life is over before its crash."""

Act = Callable[[World], None]


def crashes(
    setting: Callable[[], World], acts: tuple[Act, ...], *, agents_too: bool = False
) -> Iterator[tuple[int, World]]:
    """Live a life once for each step in it, with a crash of the manager (and of all agents) after that step."""
    for crash_at in range(1, STEPS_OF_A_LIFE):
        world = setting()
        world.steps = 0
        crashed = False
        for act in acts:
            act(world)
            world.stop_after = None if crashed else crash_at
            world.settle()
            world.stop_after = None
            if not crashed and world.steps >= crash_at:
                crashed = True
                for agent in world.agents.values() if agents_too else ():
                    agent.restart()
                world.restart()
            world.advance(10.0)
        world.advance(120.0)
        yield crash_at, world
        if not crashed:
            return
    raise AssertionError("the life never ended")


def over_and_clean(world: World, crash_at: int) -> None:
    assert not world.running, crash_at
    # A hold of an offer whose manager died expires by itself; nothing of it exists.
    left = [held for agent in world.agents.values() for held in agent.placements.values() if held.state != "Held"]
    assert not left, crash_at
    placements = world.machine.core.placements
    assert not any(placements.at(each) or placements.unapplied(each) for each in placements.clusters()), crash_at
    for workload in world.all("Workload"):
        assert world.machine.core.ledger.engine.charged(workload["metadata"]["uid"]) == {}, crash_at
