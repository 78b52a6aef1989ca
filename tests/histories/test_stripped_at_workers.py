"""Scripted histories (HD-423): at a worker, all that is ours is taken off a pod that runs, while no agent does.

Labels, annotations and finalizers are anybody's to take off around the policies. What nobody can take off is the
toleration that says whose run it is.
"""

from __future__ import annotations

import pytest

from gatelift_kinds.registry import WITH_GROUPS
from gatelift_kube.values.resources import POD, WORKLOAD
from support.manager.group_world import GROUP
from support.sim import groups, groups_at_home
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


def strip(history: History, cluster: str, *names: str) -> None:
    """Take all that is ours off pods, while the agent of their cluster does not run."""
    history.kill_agent(cluster, again=False)
    for name in names:
        meta = next(one["metadata"] for one in history.objects(cluster) if one["metadata"]["name"] == name)
        ours = ("gatelift.dev/", "kueue.x-k8s.io/")
        off = {
            each: {key: None for key in meta.get(each) or () if key.startswith(ours)}
            for each in ("labels", "annotations")
        }
        history.edit(cluster, POD, name, {"metadata": {**off, "finalizers": None}})
    history.world.start_agent(cluster)
    history.passes(60.0)


def test_hd_423_a_pod_that_was_stripped_keeps_its_place() -> None:
    history = History(shown=False)
    history.pod("one", "travels", cpu="2")
    cluster = history.until_runs("one")
    (before,) = [one["metadata"]["uid"] for one in history.objects(cluster)]
    strip(history, cluster, "one")
    assert history.containers("one") == 1
    assert [one["metadata"]["uid"] for one in history.objects(cluster)] == [before]
    assert history.leader.charges("travels") == 2000
    history.delete("home", POD, "one")
    history.until("nothing is left", lambda: not history.containers("one") and not history.leader.charges("travels"))


@pytest.mark.parametrize("stripped", [["b"], ABC], ids=["one", "all"])
def test_hd_423_members_that_were_stripped_keep_their_places(history: History, stripped: list[str]) -> None:
    for name in ABC:
        groups.make(history, name)
    history.until("all run", lambda: groups.run_there(history) == ABC, 60.0)
    history.passes(5.0)
    cluster = groups.cluster_of(history)
    before = {name: one["metadata"]["uid"] for name, one in groups.placed(history).items()}
    strip(history, cluster, *stripped)
    groups_at_home.make(history, "d", "travels")
    history.passes(30.0)
    assert groups.run_there(history) == ABC
    assert {name: one["metadata"]["uid"] for name, one in groups.placed(history).items()} == before
    assert history.leader.charges("travels") == 1500
    history.delete("home", WORKLOAD, GROUP)
    history.until("nothing is left", lambda: not groups.placed(history), 300.0)
    history.until("its quota is free", lambda: not history.leader.charges("travels"), 60.0)
