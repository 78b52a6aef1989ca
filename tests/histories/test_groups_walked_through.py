"""A group's whole life with its leader killed at each step of it (PG-31): it always comes to the same end.

What is waited for is what its pods at home show, after an eviction as well (HD-394).
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gatelift_kinds.registry import WITH_GROUPS
from gatelift_kube.values.resources import POD, WORKLOAD
from support.manager.group_world import GROUP
from support.sim import groups_at_home as groups
from support.sim.agent import SimAgent
from support.sim.history import History
from support.sim.manager import SimManager

STEPS = ("composed", "half let go", "all run", "one is deleted", "one is replaced", "evicted", "back", "one is over")


@pytest.fixture
def history(monkeypatch: pytest.MonkeyPatch) -> History:
    """Return a history whose managers and agents serve groups."""
    monkeypatch.setattr(SimManager, "kinds", WITH_GROUPS)
    monkeypatch.setattr(SimAgent, "registry", WITH_GROUPS)
    return History(shown=False)


def live(history: History, queue: str, kill_at: str) -> None:
    """Let a group live: composed, let go, one replaced, evicted, let go again, over; the leader dies at one step."""

    def step(name: str) -> None:
        if name == kill_at:
            history.kill_leader()

    def make(name: str, *, seconds: float = 30.0) -> None:
        groups.make(history, name, queue, seconds=seconds, at_once=True)

    for name in ("a", "b", "c"):
        make(name)
    history.until("it is composed", lambda: groups.theirs(history) is not None, 60.0)
    step("composed")
    history.until("some of it runs", lambda: bool(_running(history)), 400.0)
    step("half let go")
    history.until("all run", lambda: len(_running(history)) == 3, 400.0)
    step("all run")
    history.delete("home", POD, "b")
    step("one is deleted")
    make("d")
    history.until("another one runs", _run(history, "a", "c", "d"), 400.0)
    step("one is replaced")
    history.edit("home", WORKLOAD, GROUP, {"spec": {"active": False}})
    history.until("it is evicted", lambda: not _running(history), 400.0)
    step("evicted")
    history.passes(5.0)
    for name in ("e", "f", "g") if queue == "stays" else ():
        make(name)
    history.until("a leader is there", history.leads, 120.0)
    history.edit("home", WORKLOAD, GROUP, {"spec": {"active": True}})
    step("back")
    history.until("all run again", lambda: len(_running(history)) == 3, 600.0)
    history.until("one is over", lambda: bool(groups.in_phase(history, "Succeeded")), 200.0)
    step("one is over")


def _running(history: History) -> list[str]:
    return groups.running(history)


def _run(history: History, *names: str) -> Callable[[], bool]:
    return lambda: _running(history) == sorted(names)


@pytest.mark.parametrize("kill_at", STEPS)
@pytest.mark.parametrize("queue", ["stays", "travels"])
def test_pg_31_a_group_comes_to_the_same_end_at_whatever_step_its_leader_is_killed(
    history: History, queue: str, kill_at: str
) -> None:
    """HD-394: the members show that they wait once they are evicted."""
    live(history, queue, kill_at)
    history.until("it has finished", lambda: groups.says(history, "Finished")[0] == "True", 400.0)
    assert groups.says(history, "Finished") == ("True", "Succeeded", "Pods succeeded: 3/3")
    history.until("all are let go", lambda: not groups.held(history), 100.0)
