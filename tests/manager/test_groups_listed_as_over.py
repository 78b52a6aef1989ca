"""HD-418: what nothing explains is left alone while any of it runs; a group of which nothing runs is ended."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gatelift.core.clusters.link_values import LinkOpened, LinkState, PlacementsInventoried, Reported
from gatelift.core.conclusions import recovery_settling
from gatelift.core.state.core import DOUBTS
from gatelift_wire.values.inventory import InventoryEntry
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import CountsReport, GatesLifted, Stop
from support.manager.builders import a_pod, a_setting
from support.manager.world import World, a_world

CREW = PlacementKey("nobodys", 1)
RUNS = InventoryEntry(key=CREW, namespace="team", name="crew", state="Running", lifted=True)
OVER = replace(RUNS, all_over=True)


def lists(world: World, *entries: InventoryEntry) -> None:
    """Let cluster a list this in a new session, which it begins to report in."""
    session = world.links.views["a"].session + 1
    world.links.views["a"] = replace(world.links.views["a"], session=session, state=LinkState.CONNECTED)
    world.agents["a"].session = session
    world.upcall(PlacementsInventoried(cluster="a", session=session, record_revision=0, applied=0, entries=entries))
    world.upcall(LinkOpened(cluster="a", session=session, resumed=False))


def says(world: World, *messages: GatesLifted | CountsReport) -> None:
    session = world.agents["a"].session
    for number, message in enumerate(messages, start=1):
        world.upcall(Reported(cluster="a", session=session, sequence=number, message=message))


def stopped(world: World) -> set[PlacementKey]:
    world.advance(60.0)
    return {message.key for cluster, message in world.messages(Stop) if cluster == "a"}


def left_alone(world: World) -> list[PlacementKey]:
    return list(world.machine.core.caution.recovery.unexplained.get("a", ()))


@pytest.fixture
def world() -> World:
    """Return a world with two clusters on which nothing is placed."""
    made = a_world(a_setting())
    for agent in made.agents.values():
        agent.auto = False
    return made


@pytest.mark.parametrize("said", [(), (GatesLifted(key=CREW),)], ids=["listed alone", "and said anew"])
def test_hd_418_what_runs_is_left_alone(world: World, said: tuple[GatesLifted, ...]) -> None:
    lists(world, RUNS)
    says(world, *said)
    assert stopped(world) == set()
    assert left_alone(world) == [CREW]


def test_hd_418_what_is_all_over_is_stopped_whatever_its_agent_says_anew_of_it(world: World) -> None:
    lists(world, OVER)
    says(world, GatesLifted(key=CREW), CountsReport(key=CREW, pod_sets=()))
    assert stopped(world) == {CREW}
    assert left_alone(world) == []


@pytest.fixture
def halted(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """Return such a world in which nothing may be dispatched before a person has said so."""
    monkeypatch.setattr(recovery_settling, "settle", lambda _core: None)
    world.machine.core.caution.halted = "a person is asked"
    return world


def goes_on(world: World) -> None:
    world.machine.core.caution.halted = ""
    world.machine.core.agenda.mark(DOUBTS)


def test_hd_418_what_is_all_over_and_listed_while_dispatch_is_halted_is_stopped_after_that(halted: World) -> None:
    lists(halted, OVER)
    says(halted, GatesLifted(key=CREW))
    assert stopped(halted) == set()
    assert left_alone(halted) == []
    goes_on(halted)
    assert stopped(halted) == {CREW}


def test_hd_418_what_runs_in_the_session_after_that_is_left_alone(halted: World) -> None:
    lists(halted, OVER)
    halted.advance(1.0)
    lists(halted, RUNS)
    halted.advance(1.0)
    goes_on(halted)
    assert stopped(halted) == set()
    assert left_alone(halted) == [CREW]


def test_hd_418_that_all_is_over_counts_in_its_session_alone(halted: World) -> None:
    lists(halted, OVER)
    halted.advance(1.0)
    lists(halted)
    says(halted, GatesLifted(key=CREW))
    halted.advance(1.0)
    goes_on(halted)
    assert stopped(halted) == set()
    assert left_alone(halted) == [CREW]


def test_hd_418_a_group_that_is_explained_goes_on_whatever_is_over(world: World) -> None:
    world.api.apply(a_pod().document())
    world.settle()
    placed = world.agents["a"].commits[0]
    lists(world, replace(OVER, key=placed, name="one"))
    assert stopped(world) == set()
    assert world.machine.core.attempts[placed.uid].listed_over is False
