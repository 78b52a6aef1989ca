"""Back-pressure of dispatch: agents that are slow are not asked more for it, and none keeps work waiting for ever."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import pytest

from gatelift.core.rules import invariants
from gatelift.core.state.open_offers import ANSWER_SECONDS_MAX, WINDOW, OpenOffers
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import Commit, Message, Offer
from support.manager.agents import ScriptedAgent
from support.manager.builders import a_pod, a_setting
from support.manager.world import World, a_world

KEYS = [PlacementKey(f"uid-{number}", 1) for number in range(200)]
TICK = 0.05


@dataclass
class SlowAgent(ScriptedAgent):
    """An agent that handles so many messages per tick and keeps the others in a queue; 0: it hangs."""

    each_tick: int = 1
    queue: deque[tuple[int, int, Message]] = field(default_factory=deque)
    longest: int = 0

    def receive(self, session: int, sequence: int, message: Message) -> None:
        self.queue.append((session, sequence, message))
        self.longest = max(self.longest, sum(isinstance(one, Offer) for _, _, one in self.queue))

    def work(self) -> None:
        for _ in range(min(self.each_tick, len(self.queue))):
            super().receive(*self.queue.popleft())


def slow_world(names: tuple[str, ...], **each_tick: int) -> tuple[World, list[SlowAgent]]:
    world = a_world(a_setting(cpu=10_000, clusters=names), clusters=())
    agents = [SlowAgent(name=name, world=world, each_tick=each_tick.get(name, 1)) for name in names]
    for agent in agents:
        world.agents[agent.name] = agent
        world.connect(agent.name)
    world.settle()
    return world, agents


def pass_time(world: World, agents: list[SlowAgent], seconds: float) -> None:
    for _ in range(round(seconds / TICK)):
        for agent in agents:
            agent.work()
        world.advance(TICK)


def submit(world: World, count: int) -> None:
    for number in range(count):
        world.api.apply(a_pod(f"pod-{number}").document())


def placed(world: World) -> int:
    return sum(bool(one.get("status", {}).get("clusterName")) for one in world.all("Workload"))


def test_a_burst_on_starved_agents_costs_hardly_more_offers_than_workloads(monkeypatch: pytest.MonkeyPatch) -> None:
    checked = invariants.check
    monkeypatch.setattr(invariants, "check", lambda _core, _now: None)  # each step looks at all thousand
    world, agents = slow_world(tuple("abcdefghij"))
    submit(world, 1000)
    pass_time(world, agents, 30.0)
    offers = len(world.messages(Offer))
    assert max(agent.longest for agent in agents) <= WINDOW
    assert placed(world) == 1000
    assert len(world.messages(Commit)) == 1000
    assert offers < 1500, "one each, and several to choose between at the beginning and at the end"
    checked(world.machine.core, world.now)


def test_a_cluster_that_hangs_does_not_keep_work_from_the_others() -> None:
    world, agents = slow_world(("a", "b", "c"), a=0, b=20, c=20)
    submit(world, 100)
    pass_time(world, agents, 20.0)
    assert placed(world) == 100
    assert agents[0].longest <= WINDOW


def test_clusters_that_all_hang_get_their_windows_and_no_more_and_work_goes_on_when_one_wakes() -> None:
    world, agents = slow_world(("a", "b"), a=0, b=0)
    submit(world, 150)
    pass_time(world, agents, 20.0)
    assert len(world.messages(Offer)) <= 2 * WINDOW
    agents[1].each_tick = 50
    pass_time(world, agents, 2 * ANSWER_SECONDS_MAX)
    assert placed(world) == 150


def test_a_slow_cluster_that_works_through_its_queue_is_waited_for() -> None:
    world, agents = slow_world(("a", "b"), a=1, b=1)
    submit(world, 30)
    pass_time(world, agents, 10.0)
    assert placed(world) == 30
    asked = [message.key for _, message in world.messages(Offer)]
    assert len(asked) < 2 * 30


def test_offers_count_until_they_are_answered_or_too_old_or_of_a_session_that_is_over() -> None:
    offers = OpenOffers(window=3)
    for key in KEYS[:3]:
        offers.sent("a", key, 10.0)
    assert (offers.waiting("a", 10.0), offers.room("a", 10.0), offers.room("b", 10.0)) == (3, 0, 3)
    assert offers.answered("a", KEYS[1], 11.0, held=True)
    assert not offers.answered("a", KEYS[1], 11.0, held=True), "answered twice makes room once"
    assert offers.room("a", 11.0) == 1
    offers.sent("a", KEYS[0], 20.0)
    assert offers.waiting("a", 10.0 + ANSWER_SECONDS_MAX) == 1, "the one sent again is younger"
    offers.session_ended("a")
    assert offers.room("a", 20.0) == 3
    assert not offers.clusters()


def test_who_has_held_room_is_trusted_until_it_refuses_or_is_silent_or_its_session_ends() -> None:
    offers = OpenOffers()
    assert not offers.trusted("a")
    for ends_trust in (
        lambda: offers.answered("a", KEYS[1], 11.0, held=False),
        lambda: offers.silent(["b", "a"], 11.0),
        lambda: offers.session_ended("a"),
    ):
        offers.sent("a", KEYS[0], 9.0)
        offers.sent("a", KEYS[1], 9.0)
        offers.answered("a", KEYS[0], 10.0, held=True)
        assert offers.trusted("a")
        ends_trust()
        assert not offers.trusted("a")


def test_who_has_answered_anything_since_is_slow_and_not_silent() -> None:
    offers = OpenOffers()
    offers.sent("a", KEYS[5], 9.0)
    offers.sent("a", KEYS[0], 10.0)
    assert not offers.works("a", 10.0, 10.0)
    offers.answered("a", KEYS[5], 10.5, held=False)
    assert offers.works("a", 10.0, 10.0)
    assert not offers.works("a", 10.5, 10.0)


def test_hd_645_who_answers_what_it_was_asked_later_does_not_come_to_this() -> None:
    offers = OpenOffers()
    offers.sent("a", KEYS[0], 10.0)
    offers.sent("a", KEYS[1], 10.1)
    offers.answered("a", KEYS[1], 10.5, held=True)
    assert not offers.works("a", 10.2, 10.0)
    offers.answered("a", KEYS[0], 10.6, held=True)
    assert offers.works("a", 10.2, 10.1)


def test_hd_274_a_bid_that_answers_no_offer_says_nothing_of_its_cluster() -> None:
    """HD-274: with one now and then a silent cluster counted as slow, and was asked alone."""
    offers = OpenOffers()
    offers.sent("a", KEYS[0], 10.0)
    assert not offers.answered("a", KEYS[5], 10.5, held=True)
    assert not offers.works("a", 10.0, 10.0)
    assert not offers.trusted("a")
