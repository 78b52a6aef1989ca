"""What only shows what a cluster has said comes behind all else, and is never left alone; namespaces take turns."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gatelift.core.api.agenda import LATE_EVERY, Agenda, Key, Look
from gatelift.core.api.events import Ticked
from gatelift.core.works.passes import LATE_PER_CALL
from gatelift_kube.values.resources import POD, ObjectKey
from support.manager.builders import a_pod, a_setting
from support.manager.world import RUNNING, SUCCEEDED, World, a_world


def key(name: str, namespace: str = "team") -> Key:
    return Key(Look.OWNER, ObjectKey(namespace, name), POD)


def taken(agenda: Agenda) -> list[str]:
    return [each.object.name for each in iter(agenda.take, None)]


def test_is_10_what_is_late_comes_behind_what_came_after_it() -> None:
    agenda = Agenda()
    agenda.mark_late(key("late"))
    agenda.mark(key("one"))
    agenda.mark(key("two"))
    assert agenda.dirty == 3
    assert taken(agenda) == ["one", "two", "late"]
    assert agenda.dirty == 0


def test_is_10_a_late_key_that_is_marked_for_something_else_waits_no_longer() -> None:
    agenda = Agenda()
    for name in ("late", "later"):
        agenda.mark_late(key(name))
    agenda.mark(key("later"))
    agenda.mark_late(key("later"))
    assert taken(agenda) == ["later", "late"]


def test_is_10_a_time_that_comes_leads_into_the_line_that_was_asked_for() -> None:
    agenda = Agenda()
    agenda.wake(key("late"), 1.0, late=True)
    agenda.wake(key("sooner"), 5.0, late=True)
    agenda.wake(key("sooner"), 1.0)
    agenda.ring(1.0)
    agenda.mark(key("one"))
    assert taken(agenda) == ["sooner", "one", "late"]


def test_is_10_the_late_line_is_never_left_alone() -> None:
    agenda = Agenda()
    agenda.mark_late(key("late"))
    for number in range(100):
        agenda.mark(key(f"{number:03}"))
    assert taken(agenda).index("late") < LATE_EVERY


def test_is_10_what_is_forgotten_is_in_no_line() -> None:
    agenda = Agenda()
    agenda.mark_late(key("late"))
    agenda.forget(key("late"))
    assert taken(agenda) == []
    assert not agenda.waits(key("late"))


@pytest.mark.parametrize("mark", [Agenda.mark, Agenda.mark_late])
def test_hd_570_keys_of_one_namespace_do_not_wait_for_thousands_of_another(mark: Callable[[Agenda, Key], None]) -> None:
    agenda = Agenda()
    for number in range(1000):
        mark(agenda, key(f"{number:03}", "flood"))
    mark(agenda, key("first"))
    mark(agenda, key("second"))
    mark(agenda, key("queue", ""))
    order = taken(agenda)
    assert order[:6] == ["000", "first", "queue", "001", "second", "002"]
    assert len(order) == 1003
    assert agenda.dirty == 0


def running(count: int) -> World:
    world = a_world(a_setting(cpu=1000))
    for number in range(count):
        world.api.apply(a_pod(f"p-{number:03}").document())
    world.settle()
    agent = world.agents["a"]
    for status in (RUNNING, SUCCEEDED):
        for commit in agent.commits:
            agent.show(commit, status)
        world.advance(3.0)
    return world


def test_is_10_one_call_shows_few_of_what_a_cluster_says_again_and_all_are_shown_in_the_end() -> None:
    world = running(30)
    agent, core = world.agents["a"], world.machine.core
    for owner in core.knowledge.owners.values():
        core.agenda.mark_late(owner.look)
    before = core.agenda.dirty
    world.machine.handle(Ticked(), world.now)
    assert core.agenda.dirty == before - LATE_PER_CALL
    for commit in agent.commits:
        agent.show(commit, RUNNING)
    world.advance(10.0)
    phases = [one["status"].get("phase") for one in world.all("Pod")]
    assert len(agent.commits) > 2 * LATE_PER_CALL
    assert phases.count("Running") == len(agent.commits)
