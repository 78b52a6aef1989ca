"""IS-10: one cluster's large inventory is compared over many calls, and nobody else waits for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from gatelift.core.api.events import Ticked
from gatelift.core.clusters.link_values import LinkBroken, LinkOpened, LinkState, PlacementsInventoried, Reported
from gatelift.core.conclusions import inventories, recovery_lists, reports
from gatelift.core.conclusions.catching_up import BEHIND_PER_CALL
from gatelift_wire.values.inventory import InventoryEntry
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import Applied, Finished, Stop
from support.manager.builders import a_pod, a_setting
from support.manager.world import World, a_world

GHOSTS = 300


def ghosts(count: int = GHOSTS) -> tuple[InventoryEntry, ...]:
    return tuple(
        InventoryEntry(key=PlacementKey(f"ghost-{n}", 1), namespace="team", name="x", state="Running", lifted=True)
        for n in range(count)
    )


def lists(world: World, cluster: str, entries: tuple[InventoryEntry, ...]) -> int:
    """Let a cluster list this in a new session, and hand the machine that in one call; return the session."""
    view = world.links.views[cluster]
    session = view.session + 1
    world.links.views[cluster] = replace(view, session=session, state=LinkState.CONNECTED)
    world.agents[cluster].session = session
    world.upcall(PlacementsInventoried(cluster=cluster, session=session, record_revision=0, applied=0, entries=entries))
    return session


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """Return a world in which a pod is placed on cluster a, and where five placements are compared in a call."""
    monkeypatch.setattr(inventories, "COMPARED_PER_CALL", 5)
    made = a_world(a_setting())
    for agent in made.agents.values():
        agent.auto = False
    made.api.apply(a_pod().document())
    made.settle()
    assert made.agents["a"].commits
    return made


def test_is_10_what_another_cluster_says_is_taken_while_an_inventory_is_compared(world: World) -> None:
    lists(world, "b", ghosts())
    agent = world.agents["a"]
    world.upcall(
        Reported(cluster="a", session=agent.session, sequence=1, message=Finished(key=agent.commits[0], succeeded=True))
    )
    world.give(Ticked())
    assert world.machine.core.sessions.compares("b"), "it is far from done"
    assert _said_over(world)


def test_is_10_what_a_cluster_says_behind_its_inventory_waits_for_that(world: World) -> None:
    session = lists(world, "b", ghosts(10 * GHOSTS))
    world.upcall(LinkOpened(cluster="b", session=session, resumed=False))
    for number in range(3 * BEHIND_PER_CALL):
        said = Applied(key=PlacementKey(f"ghost-{number}", 1))
        world.upcall(Reported(cluster="b", session=session, sequence=1 + number, message=said))
    assert world.machine.core.sessions.compares("b")
    view = world.machine.core.view("b")
    assert view is not None
    assert not view.open, "it is told nothing before it is compared"
    world.settle()
    assert not world.machine.core.sessions.compares("b")
    assert world.links.inventories_compared["b"] == session
    world.advance(60.0)
    told = {message.key.uid for _, message in world.messages(Stop)}
    assert told == {f"ghost-{number}" for number in range(3 * BEHIND_PER_CALL)}, "those alone that wait for a word"
    assert world.machine.core.sessions.resynced("b") == session


def test_is_10_the_end_of_what_a_cluster_lists_is_taken_behind_its_inventory_and_not_before(world: World) -> None:
    agent = world.agents["a"]
    session = lists(world, "a", (*agent.inventory(), *ghosts()))
    over = Finished(key=agent.commits[0], succeeded=True)
    world.upcall(Reported(cluster="a", session=session, sequence=1, message=over))
    calls = 0
    while world.machine.core.sessions.compares("a"):
        assert not _said_over(world), "an inventory of before would contradict it"
        world.give(Ticked())
        calls += 1
    assert calls > 10, "it took its time"
    world.settle()
    assert _said_over(world)


def _said_over(world: World) -> bool:
    return "Succeeded" in "".join(str(getattr(each, "body", "")) for each in world.history)


def test_is_10_a_session_that_ends_takes_the_rest_of_its_inventory_with_it(world: World) -> None:
    session = lists(world, "b", ghosts())
    world.links.views["b"] = replace(world.links.views["b"], state=LinkState.UNKNOWN, open=False)
    world.upcall(LinkBroken(cluster="b", session=session))
    for _ in range(2):
        world.give(Ticked())
    assert not world.machine.core.sessions.compares("b")
    assert world.links.inventories_compared.get("b") != session, "so it is asked for anew"
    again = lists(world, "b", ())
    world.settle()
    assert world.links.inventories_compared["b"] == again


def test_is_10_two_large_inventories_are_compared_in_turn(world: World) -> None:
    session = lists(world, "b", ghosts())
    small = lists(world, "a", world.agents["a"].inventory())
    calls = 0
    while world.machine.core.sessions.compares("a"):
        world.give(Ticked())
        calls += 1
    assert calls < 10, "not behind the hundred calls of the other one"
    assert world.links.inventories_compared["a"] == small
    assert world.links.inventories_compared.get("b") != session


@pytest.mark.parametrize("halted", ["", "the record may be old"], ids=["leading", "halted"])
def test_is_10_no_call_goes_through_a_whole_inventory(
    world: World, monkeypatch: pytest.MonkeyPatch, halted: str
) -> None:
    looked_at = 0

    def counted(step: Callable[..., object]) -> Callable[..., object]:
        def call(*args: object, **named: object) -> object:
            nonlocal looked_at
            looked_at += 1
            return step(*args, **named)

        return call

    for module, name in ((recovery_lists, "leave_alone"), (reports, "is_past"), (inventories, "_drop")):
        monkeypatch.setattr(module, name, counted(getattr(module, name)))
    world.machine.core.caution.halted = halted
    lists(world, "b", ghosts())
    calls, most = 0, looked_at
    while world.machine.core.sessions.compares("b"):
        before = looked_at
        world.give(Ticked())
        calls, most = calls + 1, max(most, looked_at - before)
    assert calls > GHOSTS / 5
    assert 0 < most <= 5 * inventories.CHEAP
