"""Scripted histories: nothing that home still has of a group is left where it was placed, and that counts as lost."""

from __future__ import annotations

import pytest

from gatelift_kinds.registry import WITH_GROUPS
from gatelift_kube.values.resources import POD, WORKLOAD
from support.manager.group_world import GROUP
from support.sim import groups
from support.sim.agent import SimAgent
from support.sim.history import History
from support.sim.manager import SimManager


@pytest.fixture
def history(monkeypatch: pytest.MonkeyPatch) -> History:
    """Return a history whose managers and agents serve groups, and whose group has lost all that it was known by.

    Its pods are over at its worker, whose agent has begun anew, and are deleted there while it is cut off; at home the
    failed one, by whose name it is called there, has gone without its finalizer, and another one has taken its place.
    """
    monkeypatch.setattr(SimManager, "kinds", WITH_GROUPS)
    monkeypatch.setattr(SimAgent, "registry", WITH_GROUPS)
    history = History(shown=False)
    for name in ("a", "b"):
        groups.make(history, name, total=2, seconds=12.0, exit_code=int(name == "a"))
    history.until("both run", lambda: groups.run_there(history) == ["a", "b"], 60.0)
    cluster = groups.cluster_of(history)
    history.cut(cluster)
    history.until("both are over there", lambda: not groups.run_there(history), 60.0)
    history.kill_agent(cluster)
    for name in ("a", "b"):
        history.delete(cluster, POD, name)
    history.until("both have gone there", lambda: not groups.placed(history), 120.0)
    history.edit("home", POD, "a", {"metadata": {"finalizers": None}})
    history.delete("home", POD, "a")
    groups.make(history, "c", total=2)
    history.until_lost(cluster)
    return history


def test_hd_528_what_is_evicted_meanwhile_is_stopped_and_gives_its_quota_back(history: History) -> None:
    """What its cluster lists under its key had no name that home knows: nobody was told to stop it, for ever."""
    cluster = groups.cluster_of(history)
    history.edit("home", WORKLOAD, GROUP, {"spec": {"active": False}})
    history.until("it is evicted", lambda: groups.condition(history, "Evicted")[0] == "True", 30.0)
    history.mend(cluster)
    history.until("its quota is free", lambda: groups.condition(history, "QuotaReserved")[0] != "True", 120.0)
    assert history.leader.charges("travels") == 0
    history.edit("home", WORKLOAD, GROUP, {"spec": {"active": True}})
    history.until("it runs again", lambda: groups.run_there(history) == ["c"], 120.0)


def test_hd_528_what_goes_on_is_told_which_pods_are_meant(history: History) -> None:
    cluster = groups.cluster_of(history)
    history.mend(cluster)
    history.until("who took the place of the failed one runs", lambda: groups.run_there(history) == ["c"], 120.0)
