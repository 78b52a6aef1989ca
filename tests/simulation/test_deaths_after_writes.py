"""A process may die after each write (HD-51): one script, and after each of its writes in turn the writer is gone.

The script has all that a manager writes for: work that travels and work that stays, a cluster that is lost with work
that ended unheard, a person's word about it, a deletion. The outside check judges each write on the way, and in the end
everything is finished and nothing is left.
"""

from __future__ import annotations

import functools

import pytest

from gatelift_kube.deciding.writes import ApiWrite
from gatelift_kube.values.resources import JOB
from support.sim.endings import left_over, unsettled
from support.sim.history import History

LEADER = "the leader"
SHARES = 8
"""The numbers of the writes are dealt to so many tests, which run side by side."""
END_SECONDS = 900.0


def script(history: History) -> None:
    """Do what makes everybody write."""
    history.pod("travels", seconds=8.0)
    history.job("pair", pods=2, seconds=30.0, stops_in=2.0)
    history.job("stays", "stays", pods=1, seconds=20.0)
    history.passes(4.0)
    history.cut("a")
    history.passes(75.0)
    if history.lost("a") and not any("a" in history.runs(*one) for one in (("travels", "Pod"), ("pair", "Job"))):
        history.say_fenced("a")
    history.pod("later", seconds=5.0)
    history.passes(10.0)
    history.mend("a")
    history.job("deleted", pods=1)
    history.passes(5.0)
    history.delete("home", JOB, "deleted")
    world = history.world
    history.until("everything has come to its end", lambda: not unsettled(world), END_SECONDS)
    world.delete_all()
    history.until("nothing is left", lambda: not left_over(world), END_SECONDS)


def begun() -> History:
    """Return the installation that the script is played to: the same one each time."""
    return History(seed=5)


@functools.cache
def writes_of(who: str) -> int:
    """Return how many writes land for the leader, or for the agent of a worker, in a script in which nobody dies."""
    history, count = begun(), 0

    def landed(_command: ApiWrite) -> bool:
        nonlocal count
        count += 1
        return False

    process = history.leader if who == LEADER else history.agent(who)
    for port in process.ports:
        port.dies_after = landed
    script(history)
    return count


def share_of(who: str, share: int) -> range:
    """Return the numbers of the writes that one test takes."""
    return range(1 + share, 1 + writes_of(who), SHARES)


@pytest.mark.parametrize("standby", ["an old standby", "no standby"])
@pytest.mark.parametrize("share", range(SHARES))
def test_hd_51_the_leader_dies_after_each_write(share: int, standby: str) -> None:
    numbers = share_of(LEADER, share)
    assert numbers, "each share has some"
    died = 0
    for number in numbers:
        history = begun()
        dying = history.leader
        if standby == "an old standby":
            history.world.start_manager()  # which draws, so that writes at the end may be one or two fewer
        dying.dies_after_write(number)
        script(history)
        died += dying.process.dead
    assert died >= len(numbers) - 1


@pytest.mark.parametrize("name", ["a", "b"])
def test_hd_51_an_agent_dies_after_each_write(name: str) -> None:
    assert writes_of(name) > 5
    for number in range(1, 1 + writes_of(name)):
        history = begun()
        dying = history.agent(name)
        history.world.start_agent(name)
        dying.dies_after_write(number)
        script(history)
        assert dying.process.dead, f"write {number} landed"
