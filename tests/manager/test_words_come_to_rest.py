"""HD-460, HD-461, HD-465, HD-466: what a worker has said is written once, and what it said before causes nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gatelift.core.api.resting import NEWS_SECONDS
from gatelift.core.clusters.link_values import Reported
from gatelift.core.conclusions import upcalls
from gatelift_kube.deciding.writes import WriteError
from gatelift_kube.values.resources import POD, ObjectRef
from gatelift_kube.values.timestamps import stored_time
from gatelift_wire.values.messages import CountsReport, GatesLifted
from gatelift_wire.values.release import Leaving
from support.manager.agents import ScriptedAgent
from support.manager.builders import a_job, a_pod, a_setting
from support.manager.world import RUNNING, SUCCEEDED, THE_POD, World, a_running_pod, a_world

Doc = dict[str, Any]
NOT_READY = {**RUNNING, "conditions": [{"type": "Ready", "status": "False"}]}


def pod_writes(world: World) -> int:
    return sum(ref.resource == POD for _, ref, _ in world.api.writes)


# --- what is stored otherwise ----------------------------------------------------------------------------------------


def stored_otherwise() -> tuple[World, ScriptedAgent]:
    """Return a world whose API server keeps no reason of a pod, and a pod of which one is reported."""
    world, agent = a_running_pod()

    def stores(ref: ObjectRef, document: Doc) -> None:
        if ref.resource == POD:
            document.get("status", {}).pop("reason", None)

    world.api.stores = stores
    world.advance(20.0)
    agent.show(agent.commits[-1], {**RUNNING, "reason": "One"})
    world.advance(5.0)
    return world, agent


def test_hd_461_what_was_accepted_and_reads_differently_is_not_written_again() -> None:
    """It was written once a second for ever, also while its cluster was cut off and said nothing."""
    world, agent = stored_otherwise()
    before = pod_writes(world)
    world.advance(60.0)
    assert pod_writes(world) == before
    world.cut("a")
    world.advance(20.0)
    assert pod_writes(world) == before
    world.connect("a", resumed=True)
    agent.show(agent.commits[-1], {**NOT_READY, "reason": "Two"})
    world.advance(5.0)
    assert world.condition(world.find("Pod"), "Ready")["status"] == "False", "another report is written"


def test_hd_461_what_somebody_else_has_changed_is_written_once_more() -> None:
    world, _ = stored_otherwise()
    world.api.edit(THE_POD, lambda one: one["status"].update(phase="Pending"))
    before = pod_writes(world)
    world.advance(20.0)
    assert world.find("Pod")["status"]["phase"] == "Running"
    assert pod_writes(world) == before + 1


def test_hd_461_what_another_report_brought_first_is_written_though_the_last_one_rested() -> None:
    world, agent = stored_otherwise()
    for status in (NOT_READY, {**RUNNING, "reason": "One"}):
        agent.show(agent.commits[-1], status)
        world.advance(20.0)
    assert world.condition(world.find("Pod"), "Ready")["status"] == "True"
    before = pod_writes(world)
    world.advance(20.0)
    assert pod_writes(world) == before


def test_hd_461_what_shows_that_nobody_hears_of_it_is_no_report_that_came_to_rest() -> None:
    world, _ = stored_otherwise()
    world.cut("a", lost=True)
    world.advance(20.0)
    assert world.condition(world.find("Pod"), "Ready")["status"] == "Unknown"
    world.connect("a")
    world.advance(20.0)
    assert world.condition(world.find("Pod"), "Ready")["status"] == "True"


def test_hd_461_an_end_that_is_stored_otherwise_ends_its_workload() -> None:
    world, agent = stored_otherwise()
    agent.finish(agent.commits[-1], {**SUCCEEDED, "reason": "Over"})
    world.advance(5.0)
    assert world.condition(world.find("Workload"), "Finished")["status"] == "True"
    before = pod_writes(world)
    world.advance(60.0)
    assert pod_writes(world) == before


@pytest.mark.parametrize(
    ("said", "stored"),
    [
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
        ("2026-01-01T00:00:00.999999999Z", "2026-01-01T00:00:00Z"),
        ("2026-01-01T01:30:00.5+02:00", "2025-12-31T23:30:00Z"),
        ("1969-12-31T23:59:59.5Z", "1969-12-31T23:59:59Z"),
        ("0001-01-01T00:00:00.5Z", ""),
        ("0001-01-01T00:00:01Z", "0001-01-01T00:00:01Z"),
        ("0001-01-01T00:00:00+05:00", ""),
        ("9999-12-31T23:59:59-05:00", ""),
        ("2026-02-30T00:00:00Z", ""),
        ("2026-01-01 00:00:00Z", ""),
    ],
)
def test_hd_460_a_time_is_stored_to_the_second_and_in_utc(said: str, stored: str) -> None:
    assert stored_time(said) == stored


# --- what was said before --------------------------------------------------------------------------------------------


def looks(world: World, *messages: Any) -> list[int]:
    """Return how many looks are waited for after each word of cluster a."""
    core, found = world.machine.core, []
    for message in messages:
        said = Reported(cluster="a", session=world.agents["a"].session, sequence=1, message=message)
        upcalls.take(core, said, world.now)
        found.append(core.agenda.dirty)
    return found


def test_hd_465_counts_that_were_said_before_cause_nothing() -> None:
    """Word for word the same, they put two looks for each object in front of everybody's next pod."""
    world = a_world(a_setting(cpu=8))
    world.api.apply(a_job(parallelism=8, completions=8))
    world.settle()
    key = world.agents["a"].commits[0]
    world.agents["a"].count(key, remaining=4, succeeded=4, reclaimable=4)
    world.advance(5.0)
    counts = world.machine.core.attempts[key.uid].counts
    assert counts is not None
    none, some = looks(world, counts, replace(counts, pod_sets=()))
    assert (none, some > 0) == (0, True)


def test_hd_465_of_what_leaves_each_word_is_news() -> None:
    world, agent = a_running_pod()
    said = CountsReport(key=agent.commits[0], pod_sets=(), leaving=Leaving(since_seconds=1.0))
    agent.say(said)
    world.settle()
    world.advance(5.0)
    assert looks(world, said)[0] > 0
    world.settle()
    assert looks(world, replace(said, leaving=None))[0] > 0


def test_hd_465_that_what_runs_was_let_go_causes_nothing() -> None:
    world, agent = a_running_pod()
    world.advance(5.0)
    assert looks(world, GatesLifted(key=agent.commits[0])) == [0]


# --- what was refused ------------------------------------------------------------------------------------------------


def test_hd_466_a_first_run_does_not_wait_for_the_pause_of_what_was_refused_before_it() -> None:
    """It was shown up to a minute later: pauses after refusals were by object, whatever was refused."""
    world = a_world(a_setting())
    world.api.apply(a_pod().document())
    world.settle()
    agent = world.agents["a"]
    refuse: list[WriteError] = [WriteError.INVALID]
    world.fail = lambda command: refuse[0] if refuse and command.ref == THE_POD else None
    agent.show(agent.commits[0], {"phase": "Pending", "reason": "Odd"})
    world.advance(150.0)
    refuse.clear()
    agent.show(agent.commits[0], RUNNING)
    world.advance(NEWS_SECONDS)
    assert world.find("Pod")["status"]["phase"] == "Running"


def test_hd_466_what_was_refused_rests_for_longer_and_longer_and_other_words_for_a_while_each() -> None:
    world = a_world(a_setting())
    world.api.apply(a_pod().document())
    world.settle()
    agent, tries = world.agents["a"], []

    def fail(command: Any) -> WriteError | None:
        if command.ref != THE_POD:
            return None
        tries.append(world.now)
        return WriteError.INVALID

    world.fail = fail
    agent.show(agent.commits[0], {"phase": "Pending", "reason": "Odd"})
    world.advance(150.0)
    assert len(tries) <= 10
    tries.clear()
    for number in range(150):
        agent.show(agent.commits[0], {"phase": "Pending", "reason": f"Odd{number}"})
        world.advance(1.0)
    assert len(tries) <= 150 / NEWS_SECONDS + 1
