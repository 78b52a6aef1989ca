"""HD-451: what only informs has its share by cluster, and in it by namespace: who flaps delays its own words alone."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift.core.api.agenda import Key, Look
from gatelift.core.api.asks import WriteAsk
from gatelift.core.api.purposes import Purpose
from gatelift.core.api.status_budget import CALLED_SECONDS, OUT_MAX, SAVED_MAX, StatusBudget
from gatelift.core.state import showing
from gatelift.core.told.pod_troubles import SETTLE_SECONDS
from gatelift_kinds.shared.pod_trouble import CONDITION
from gatelift_kube.values.resources import ObjectKey
from support.manager.world import World, a_running_pod

UNSCHEDULABLE: dict[str, Any] = {
    "phase": "Pending",
    "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no nodes"}],
}
FLAPPING = 600
"""A minute of all that may be written to inform, and what is saved up for a burst."""


def flap(world: World, cluster: str) -> None:
    """Let the troubles of so many placements at a cluster be due to be shown."""
    core = world.machine.core
    for number in range(FLAPPING):
        key = Key(Look.WORKLOAD, ObjectKey("team", f"w-{number}"))
        core.may_inform(WriteAsk(key, Purpose.POD_TROUBLE, cluster), world.now)
    assert core.budget.waiting > FLAPPING // 2


def test_hd_451_a_trouble_is_shown_while_those_of_another_cluster_change_all_the_time() -> None:
    """It stood in one line with these, behind each of them."""
    world, agent = a_running_pod()
    flap(world, "b")
    agent.show(agent.commits[0], UNSCHEDULABLE)
    world.advance(SETTLE_SECONDS + 1.0)
    assert world.condition(world.find("Workload"), CONDITION)
    assert world.condition(world.find("Pod"), CONDITION)


# --- the budget and its line --------------------------------------------------------------------------------


def test_no_more_writes_that_inform_go_out_than_a_slow_server_carries_out() -> None:
    budget = StatusBudget(out=OUT_MAX)
    assert not budget.spend(0.0)
    budget.out -= 1
    assert budget.spend(0.0)


def test_writes_that_only_inform_have_a_tenth_and_a_little() -> None:
    budget = StatusBudget()
    assert sum(budget.spend(0.0) for _ in range(1000)) == SAVED_MAX
    for _ in range(20):
        budget.earn()
    assert sum(budget.spend(0.0) for _ in range(1000)) == 2
    assert budget.spend(0.1)


def why(name: str, namespace: str = "team") -> WriteAsk:
    return WriteAsk(Key(Look.WORKLOAD, ObjectKey(namespace, name)), Purpose.WHY_WAITING)


def trouble(name: str, cluster: str, namespace: str = "team") -> WriteAsk:
    return WriteAsk(Key(Look.WORKLOAD, ObjectKey(namespace, name)), Purpose.POD_TROUBLE, cluster)


QUEUE = WriteAsk(Key(Look.CLUSTER_QUEUE, ObjectKey("", "q")), Purpose.STATUS)


def test_whoever_finds_no_token_stands_in_line_and_is_called_in_its_turn() -> None:
    budget = StatusBudget(tokens=0.0)
    first, second, third, late = (why(name) for name in "abcd")
    assert not any(budget.ask(asks, 0.0) for asks in (first, second, third, first))
    assert budget.waiting == 3, "asking twice is standing there once"
    budget.leave(second)
    assert budget.call(0.1) == [first]
    assert budget.ask(first, 0.1), "its token was taken when it was called"
    assert not budget.ask(late, 0.2), "a token that is there belongs to whoever waits longer"
    assert budget.call(0.5) == [third, late]
    assert budget.waiting == 0


def test_a_queue_that_stands_in_line_is_not_looked_at_for_each_change() -> None:
    core = World().machine.core
    core.budget.stand(QUEUE)
    showing.queue(core, QUEUE.key)
    assert core.agenda.next_time() is None, "it is looked at when its turn comes"
    assert core.budget.call(10.0) == [QUEUE]
    showing.queue(core, QUEUE.key)
    assert core.agenda.next_time() is not None, "what changes from now on is not in that look"


def test_a_line_that_many_leave_and_enter_again_does_not_grow() -> None:
    budget = StatusBudget(tokens=0.0)
    for _ in range(1000):
        for number in range(10):
            budget.leave(why(str(number), f"n-{number}"))
            budget.stand(why(str(number), f"n-{number}"))
    assert budget.waiting == 10
    assert len(budget.call(1.0)) == 10
    assert budget._line._turns.is_empty, "and no share is kept of which nobody waits"


def test_queues_do_not_wait_behind_thousands_of_workloads() -> None:
    budget = StatusBudget(tokens=0.0)
    for number in range(1000):
        budget.stand(why(str(number)))
    budget.stand(QUEUE)
    assert QUEUE in budget.call(0.2)


@pytest.mark.parametrize("other", [trouble("x", "b"), trouble("x", "a", "another"), why("x"), QUEUE])
def test_hd_451_one_waits_for_no_more_than_one_of_each_other_share(other: WriteAsk) -> None:
    budget = StatusBudget(tokens=0.0)
    for number in range(1000):
        budget.stand(trouble(str(number), "a"))
    budget.stand(other)
    assert other in budget.call(0.2)


def test_hd_451_what_is_written_of_a_workload_for_one_purpose_takes_no_place_of_another_one() -> None:
    budget = StatusBudget(tokens=0.0)
    made = WriteAsk(trouble("w", "a").key, Purpose.MADE_THERE, "a")
    assert not budget.ask(made, 0.0)
    budget.leave(trouble("w", "a"))
    assert budget.call(0.1) == [made]
    budget.leave(trouble("w", "a"))
    assert budget.ask(made, 0.1)


def test_hd_451_who_was_called_and_asks_no_more_is_forgotten() -> None:
    budget = StatusBudget(tokens=0.0)
    budget.stand(QUEUE)
    assert budget.call(0.1) == [QUEUE]
    budget.call(0.1 + CALLED_SECONDS)
    budget.allow(0)
    assert not budget.ask(QUEUE, 0.1 + CALLED_SECONDS)
