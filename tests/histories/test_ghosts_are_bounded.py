"""HD-360: who may preempt himself gets no more nodes than twice what his queue could ever have."""

from __future__ import annotations

import pytest

from gatelift_kube.values.resources import POD
from support.sim.history import History
from support.sim.objects import is_released

from .test_release import WHOLE, a_world, prioritised, workload

LONG = 5_000.0
DAY = 86_400


def takes_its_own_place(history: History, queue: str, number: int) -> None:
    """Let a pod that does not stop run, and one that preempts it."""
    prioritised(history, f"low-{number}", 1, queue, stops=LONG * (number + 1), grace=DAY)
    history.until_runs(f"low-{number}")
    prioritised(history, f"high-{number}", 9, queue, stops=0.0)
    history.until("it is being stopped", lambda: history.shows(f"low-{number}", "Evicted"), 5.0)
    history.passes(10.0)


def goes(history: History, name: str) -> None:
    history.delete("home", POD, name)
    history.until("it is gone", lambda: history.home.look(POD, name) is None, 60.0)


@pytest.mark.parametrize("queue", ["stays", "travels"])
def test_hd_360_a_release_that_makes_more_ghost_than_the_queue_could_have_waits_for_the_stop(queue: str) -> None:
    history = a_world(queue)
    takes_its_own_place(history, queue, 0)
    assert is_released(workload(history, "low-0")), "as ever, up to the limit"
    goes(history, "high-0")
    takes_its_own_place(history, queue, 1)
    assert not is_released(workload(history, "low-1"))
    assert not history.shows("high-1", "QuotaReserved")
    assert history.leader.charges(queue) == WHOLE[queue]
    conditions = workload(history, "low-1")["status"]["conditions"]
    [said] = [one for one in conditions if one["type"] == "gatelift.dev/Draining"]
    assert said["reason"] == "QuotaHeld"
    assert f"less is occupied of ClusterQueue {queue}" in said["message"]
    history.kill_leader()
    history.passes(1_000.0)
    assert not history.shows("high-1", "QuotaReserved"), "who leads next counts the same, and no deadline frees it"
    history.until("the first one has stopped", lambda: history.containers("low-0") == 0, LONG)
    history.until("there is room for it", lambda: is_released(workload(history, "low-1")), 30.0)
    assert history.containers("low-1") == 1


def test_hd_360_of_two_that_are_stopped_at_once_one_is_released_where_there_is_room_for_one() -> None:
    history = a_world("stays")
    for name in ("low-0", "low-1"):
        prioritised(history, name, 1, "stays", cpu="1000m", stops=LONG, grace=DAY)
        history.until_runs(name)
    prioritised(history, "high-0", 9, "stays", cpu="1000m", stops=0.0)
    lows = ("low-0", "low-1", "low-2")
    history.until("one is released", lambda: released(history, lows) == 1, 10.0)
    goes(history, "high-0")
    prioritised(history, "low-2", 1, "stays", cpu="1000m", stops=LONG, grace=DAY)
    history.until_runs("low-2")
    prioritised(history, "high-1", 9, "stays", stops=0.0)
    history.passes(60.0)
    assert released(history, lows) == 2
    assert not history.shows("high-1", "QuotaReserved")


def released(history: History, names: tuple[str, ...]) -> int:
    found = (history.workload(name) for name in names)
    return sum(each is not None and is_released(each) for each in found)
