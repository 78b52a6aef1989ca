"""HD-576: an object that its user deleted stays for a finalizer of his own, long after nothing of it runs any more."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift_kinds.registry import WITH_GROUPS
from gatelift_kube.values.resources import JOB, POD, WORKLOAD, Resource
from support.manager.group_world import GROUP
from support.sim import groups_at_home as groups
from support.sim.agent import SimAgent
from support.sim.cluster import TEAM
from support.sim.history import History
from support.sim.manager import SimManager

HIS = "example.com/stays"


def the_one(history: History, resource: Resource) -> dict[str, Any]:
    (found,) = (each for each in history.objects("home", resource) if each["metadata"]["name"] == "one")
    return found


@pytest.mark.parametrize(("kind", "queue"), [("Pod", "travels"), ("Pod", "stays"), ("Job", "travels")])
def test_hd_576_its_workload_goes_once_nothing_of_it_runs_and_none_is_made_anew(kind: str, queue: str) -> None:
    """Its record said that it was placed: its cluster could not be removed, and the next leader charged it again.

    A Job at home is none of these: its controller ends no pods of one that is deleted, so they run, and are charged.
    """
    history, resource = History(), POD if kind == "Pod" else JOB
    (history.pod if kind == "Pod" else history.job)("one", queue)
    history.until_runs("one", kind)
    found = the_one(history, resource)
    kept = [*found["metadata"].get("finalizers", []), HIS]
    history.edit("home", resource, "one", {"metadata": {"finalizers": kept}})
    history.delete("home", resource, "one")
    history.until("its Workload goes", lambda: history.workload("one", kind) is None)
    history.passes(30.0)
    assert history.workload("one", kind) is None
    assert the_one(history, resource)["metadata"]["finalizers"] == [HIS]


@pytest.fixture
def of_groups(monkeypatch: pytest.MonkeyPatch) -> History:
    """Return a history whose managers and agents serve groups."""
    monkeypatch.setattr(SimManager, "kinds", WITH_GROUPS)
    monkeypatch.setattr(SimAgent, "registry", WITH_GROUPS)
    return History(shown=False)


def run(history: History, queue: str) -> str:
    """Let a group run whose pods its user keeps by a finalizer; return where."""
    for name in "abc":
        groups.make(history, name, queue)
    places = [history.home] if queue == "stays" else list(history.workers.values())

    def runs() -> bool:
        pods = [one for each in places for one in each.all(POD)]
        return [one.get("status", {}).get("phase") for one in pods].count("Running") == len("abc")

    history.until("it runs", runs, 60.0)
    for name in "abc":
        found = groups.pod(history, name) or {}
        kept = [*found["metadata"].get("finalizers", []), HIS]
        history.edit("home", POD, name, {"metadata": {"finalizers": kept}})
    return str((groups.theirs(history) or {})["status"].get("clusterName", ""))


@pytest.mark.parametrize("queue", ["travels", "stays"])
def test_hd_642_so_does_that_of_a_group_once_each_of_its_pods_is_deleted_and_let_go(
    of_groups: History, queue: str
) -> None:
    """Its record said that it was placed until they went."""
    history = of_groups
    run(history, queue)
    for name in "ab":
        history.delete("home", POD, name)
    history.passes(60.0)
    assert groups.theirs(history) is not None, "one of it runs"
    history.delete("home", POD, "c")
    history.until("its Workload goes", lambda: groups.theirs(history) is None, 120.0)
    history.kill_leader()
    history.until("another leads", history.leads, 120.0)
    history.passes(60.0)
    assert (groups.theirs(history), history.leader.charges(queue)) == (None, 0)
    assert [one["metadata"]["finalizers"] for one in history.home.all(POD)] == [[HIS]] * 3


def test_hd_642_a_group_in_a_lost_cluster_keeps_its_workload_and_its_charge_until_that_is_heard(
    of_groups: History,
) -> None:
    history, queue = of_groups, "travels"
    cluster = run(history, queue)
    history.cut(cluster)
    history.until_lost(cluster)
    for name in "abc":
        history.delete("home", POD, name)
    history.passes(60.0)
    history.kill_leader()
    history.until("another leads", history.leads, 120.0)
    history.passes(120.0)
    assert history.home.look(WORKLOAD, GROUP, TEAM) is not None
    assert history.leader.charges(queue) == 1500
    history.mend(cluster)
    history.until("its Workload goes", lambda: groups.theirs(history) is None, 200.0)
    assert history.leader.charges(queue) == 0


def test_hd_642_a_pod_that_comes_while_the_others_are_kept_is_of_a_group_of_its_own(of_groups: History) -> None:
    history = of_groups
    run(history, "travels")
    for name in "abc":
        history.delete("home", POD, name)
    history.until("its Workload goes", lambda: groups.theirs(history) is None, 120.0)
    for name in "def":
        groups.make(history, name, "travels")
    history.until("those run", lambda: groups.theirs(history) is not None, 60.0)
    history.until("those run", lambda: history.leader.charges("travels") == 1500, 60.0)
