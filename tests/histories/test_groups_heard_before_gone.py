"""Scripted histories: who leaves a group that runs at a worker stays there until the manager has heard of its end."""

from __future__ import annotations

import pytest

from gatelift_kinds.registry import WITH_GROUPS
from gatelift_kube.values.resources import POD
from support.sim import groups
from support.sim.agent import SimAgent
from support.sim.history import History
from support.sim.manager import SimManager

NAMES = [f"m{number:02}" for number in range(12)]


@pytest.fixture
def history(monkeypatch: pytest.MonkeyPatch) -> History:
    """Return a history whose managers and agents serve groups."""
    monkeypatch.setattr(SimManager, "kinds", WITH_GROUPS)
    monkeypatch.setattr(SimAgent, "registry", WITH_GROUPS)
    return History(shown=False)


def placed(history: History, takes: float = 3.0) -> str:
    for name in NAMES:
        groups.make(history, name, takes=takes, total=len(NAMES), cpu="20m")
    history.until("all run", lambda: groups.run_there(history) == NAMES, 60.0)
    return groups.cluster_of(history)


def is_over(history: History) -> bool:
    return not (groups.names(history) or groups.placed(history) or groups.workload(history))


@pytest.mark.parametrize("deleted", [len(NAMES), 5])
@pytest.mark.parametrize("leader_too", [False, True])
def test_hd_431_pg_30_who_stopped_unheard_before_its_agent_died_is_not_doubted_by_the_next(
    history: History, deleted: int, *, leader_too: bool
) -> None:
    """The next agent would doubt, for as long as a node may be silent, what the one before had removed (P10)."""
    cluster = placed(history)
    for name in NAMES[:deleted]:
        history.delete("home", POD, name)
    history.passes(1.5)
    history.cut(cluster)
    history.passes(4.0)
    assert not {*groups.run_there(history)} & {*NAMES[:deleted]}, "they have stopped, and nobody heard of it"
    history.kill_agent(cluster)
    if leader_too:
        history.kill_leader()
    history.mend(cluster)
    history.until("they have gone at home", lambda: groups.names(history) == NAMES[deleted:], 75.0)
    for name in NAMES[deleted:]:
        history.delete("home", POD, name)
    history.until("nothing is left", lambda: is_over(history), 60.0)


def test_hd_431_mc_6_without_a_manager_a_node_waits_for_a_minute_at_most(history: History) -> None:
    cluster = placed(history)
    for name in NAMES[:5]:
        history.delete("home", POD, name)
    history.passes(1.5)
    history.cut(cluster)
    history.passes(30.0)
    assert set(NAMES[:5]) <= set(groups.placed(history))
    history.until("they have gone there", lambda: sorted(groups.placed(history)) == NAMES[5:], 120.0)
    history.mend(cluster)
    history.until("they have gone at home", lambda: groups.names(history) == NAMES[5:], 120.0)


@pytest.mark.parametrize("after", [0.0, 0.1, 0.3, 1.0, 3.0, 3.3, 4.0])
def test_hd_431_nobody_is_told_of_twice_as_the_stream_breaks(history: History, after: float) -> None:
    """What was said and not heard is said once more, in the next session; a slot is free once."""
    cluster = placed(history)
    for name in NAMES[:5]:
        history.delete("home", POD, name)
    history.passes(after)
    history.cut(cluster)
    history.passes(2.0)
    history.mend(cluster)
    history.until("they have gone", lambda: groups.names(history) == NAMES[5:] == sorted(groups.placed(history)), 120.0)
    assert groups.run_there(history) == NAMES[5:]
    for number in range(5):
        groups.make(history, f"r{number}", total=len(NAMES), cpu="20m")
    history.until("all run again", lambda: len(groups.run_there(history)) == len(NAMES), 60.0)
