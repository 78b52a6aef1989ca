"""Scripted histories: pods of a group are over at a worker that nobody hears, and what could explain them is gone."""

from __future__ import annotations

import pytest

from gatelift_kinds.registry import WITH_GROUPS
from gatelift_kube.values.resources import POD, WORKLOAD
from support.manager.group_world import GROUP
from support.sim import groups
from support.sim.agent import SimAgent
from support.sim.history import History
from support.sim.manager import SimManager

ABC = ["a", "b", "c"]


@pytest.fixture
def history(monkeypatch: pytest.MonkeyPatch) -> History:
    """Return a history whose managers and agents serve groups."""
    monkeypatch.setattr(SimManager, "kinds", WITH_GROUPS)
    monkeypatch.setattr(SimAgent, "registry", WITH_GROUPS)
    return History(shown=False)


def fenced_and_deleted(history: History, *, failed: int) -> str:
    """Have a group end at a worker that is cut off, and that a person calls fenced; then another leads.

    Meanwhile its Workload is deleted. Return where it ran.
    """
    for name in ABC:
        groups.make(history, name, takes=6.0, seconds=30.0, exit_code=int(ABC.index(name) < failed))
    history.until("all three run", lambda: groups.run_there(history) == ABC, 60.0)
    cluster = groups.cluster_of(history)
    history.cut(cluster)
    history.delete("home", WORKLOAD, GROUP)
    history.until_lost(cluster)
    history.say_fenced(cluster)
    history.until("all is gone at home", lambda: not groups.names(history) and not groups.workload(history), 60.0)
    history.kill_leader()
    history.until("another leads", history.leads, 120.0)
    return cluster


@pytest.mark.parametrize(("failed", "again"), [(0, False), (3, False), (1, True)])
def test_hd_418_a_group_that_is_over_and_that_nothing_explains_goes_as_a_single_pod_does(
    history: History, failed: int, *, again: bool
) -> None:
    cluster = fenced_and_deleted(history, failed=failed)
    if again:
        history.kill_agent(cluster)
    history.mend(cluster)
    # What another agent has not seen to go may run until it has heard of each node (P10).
    history.until("nothing is left of it", lambda: not groups.placed(history), 300.0 if again else 20.0)
    history.passes(60.0)
    assert not history.status(cluster).get("unexplained")


def test_hd_522_nor_does_who_has_its_name_wait_where_nothing_of_it_is_left(history: History) -> None:
    cluster = fenced_and_deleted(history, failed=0)
    for name in ABC:
        history.edit(cluster, POD, name, {"metadata": {"finalizers": None}})
        history.delete(cluster, POD, name)
    history.until("they are gone there", lambda: not groups.placed(history), 60.0)
    history.mend(cluster)
    history.until_connected(cluster)
    for name in ABC:
        groups.make(history, name)
    history.until("the others run", lambda: groups.run_there(history) == ABC, 120.0)
