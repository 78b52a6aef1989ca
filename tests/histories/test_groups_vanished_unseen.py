"""Scripted histories: a pod of a group vanished while no agent watched, and all are stopped before anybody names it.

P10: it was removed by force (our finalizer taken off) from a node that nobody hears of, so its containers run on.
"""

from __future__ import annotations

import pytest

from gatelift_kinds.registry import WITH_GROUPS
from gatelift_kube.values.resources import POD, WORKLOAD
from support.manager.group_world import GROUP, K
from support.sim import groups, groups_at_home
from support.sim.agent import SimAgent
from support.sim.history import History
from support.sim.manager import SimManager

ABC = ["a", "b", "c"]
FAST = {f"{K}pod-group-fast-admission": "true"}


@pytest.fixture
def history(monkeypatch: pytest.MonkeyPatch) -> History:
    """Return a history whose managers and agents serve groups."""
    monkeypatch.setattr(SimManager, "kinds", WITH_GROUPS)
    monkeypatch.setattr(SimAgent, "registry", WITH_GROUPS)
    return History(shown=False)


def let_go(history: History) -> list[str]:
    return sorted(name for name, one in groups.placed(history).items() if not one["spec"].get("schedulingGates"))


def placed(history: History, *, shown: bool = True) -> str:
    """Have a group run at a worker, all but its first pod for a few seconds; return where.

    `shown`: home shows that they run; else who leads dies before.
    """
    for name in ABC:
        groups_at_home.make(history, name, "travels", seconds=0.0 if name == "a" else 12.0, at_once=True)
    while let_go(history) != ABC:
        history.passes(0.01)
    if shown:
        history.until("it is shown", lambda: set(groups.phases(history).values()) == {"Running"}, 30.0)
    else:
        history.kill_leader()
    return groups.cluster_of(history)


def vanishes_unseen(history: History, cluster: str, name: str, *, lost: bool = True) -> None:
    """Have the last pod of a group that runs vanish while no agent runs; `lost`: with a node that falls silent."""
    history.cut(cluster)
    history.until("it runs alone", lambda: groups.run_there(history) == [name], 60.0)
    history.kill_agent(cluster, again=False)
    history.cluster(cluster).cut_node(f"{cluster}-node", lost=lost)
    history.edit(cluster, POD, name, {"metadata": {"finalizers": None}})
    history.cluster(cluster).delete(POD, name, grace_seconds=0)
    history.until("it is gone", lambda: name not in groups.placed(history), 10.0)


def back(history: History, cluster: str) -> None:
    """Have another agent begin, and be heard."""
    history.world.start_agent(cluster)
    history.mend(cluster)


def active(history: History, *, value: bool) -> None:
    history.edit("home", WORKLOAD, GROUP, {"spec": {"active": value}})


def reserved(history: History) -> str:
    return groups.condition(history, "QuotaReserved")[0]


def stays_charged(history: History, cluster: str) -> None:
    """Check that its quota stays until its node is heard of, and is free then."""
    for _ in range(60):
        history.passes(2.0)
        assert reserved(history) == "True"
    history.cluster(cluster).cut_node(f"{cluster}-node", lost=False)
    history.until("its quota is free", lambda: reserved(history) in {"False", ""}, 200.0)


@pytest.mark.parametrize("shown", [True, False])
@pytest.mark.parametrize("another_leads", [False, True])
@pytest.mark.parametrize("deleted", [False, True])
def test_hd_660_what_vanished_unseen_keeps_all_of_a_group_from_having_stopped(
    history: History, *, shown: bool, another_leads: bool, deleted: bool
) -> None:
    """Else its quota were free while it runs; where home had yet to show it, it would be let go once more."""
    cluster = placed(history, shown=shown)
    vanishes_unseen(history, cluster, "a")
    history.until("somebody leads", history.leads, 60.0)
    if deleted:
        history.delete("home", WORKLOAD, GROUP)
    else:
        active(history, value=False)
    if another_leads:
        history.kill_leader()
        history.until("another leads", history.leads, 60.0)
    back(history, cluster)
    stays_charged(history, cluster)


@pytest.mark.parametrize("replaces", [False, True])
def test_hd_660_nor_is_one_that_joined_forgotten(history: History, *, replaces: bool) -> None:
    """It came to a group that was admitted with its first pod, or in the place of one that failed and is there."""
    if replaces:
        for name in ABC:
            groups.make(history, name, seconds=4.0 if name == "b" else 20.0, exit_code=int(name == "b"))
        history.until("one has failed", lambda: groups.phases(history)["b"] == "Failed", 60.0)
        groups.make(history, "d")
        history.until("another runs", lambda: "d" in groups.run_there(history), 60.0)
    else:
        for name in "abd":
            groups.make(history, name, seconds=0.0 if name == "d" else 20.0, notes=FAST)
        history.until("all run", lambda: groups.run_there(history) == ["a", "b", "d"], 60.0)
    cluster = groups.cluster_of(history)
    vanishes_unseen(history, cluster, "d")
    active(history, value=False)
    back(history, cluster)
    stays_charged(history, cluster)


@pytest.mark.parametrize("gone", ["", "a"])
def test_hd_660_nor_where_its_agent_ends_them_by_itself_before_it_has_named_them(history: History, gone: str) -> None:
    """Another one was changed meanwhile; where all are there nothing is waited for."""
    for name in ABC:
        groups.make(history, name)
    history.until("all three run", lambda: groups.run_there(history) == ABC, 60.0)
    cluster = groups.cluster_of(history)
    history.cut(cluster)
    history.kill_agent(cluster, again=False)
    for name in gone:
        history.edit(cluster, POD, name, {"metadata": {"finalizers": None}})
        history.cluster(cluster).delete(POD, name, grace_seconds=0)
    containers = groups.placed(history)["b"]["spec"]["containers"]
    containers[0]["resources"] = {"requests": {"cpu": "750m"}}
    history.edit(cluster, POD, "b", {"spec": {"containers": containers}}, "resize")
    back(history, cluster)
    if gone:
        for _ in range(20):
            history.passes(2.0)
            assert reserved(history) == "True"
            assert groups.cluster_of(history) == cluster
    if gone:
        history.until("it is shown", lambda: groups.phases(history)["a"] == "Failed", 200.0)  # HD-661
        groups.make(history, "d")
    history.until("they go on elsewhere", lambda: groups.cluster_of(history) not in {cluster, ""}, 40.0)


def test_hd_660_nobody_waits_where_all_that_had_a_slot_are_there(history: History) -> None:
    """Two have failed, and another came in the place of one of them."""
    for name in ABC:
        groups.make(history, name, seconds=6.0 if name in "ab" else 0.0, exit_code=1)
    history.until("two have failed", lambda: groups.run_there(history) == ["c"], 60.0)
    groups.make(history, "d")
    history.until("one was replaced", lambda: groups.run_there(history) == ["c", "d"], 60.0)
    cluster = groups.cluster_of(history)
    history.cut(cluster)
    history.kill_agent(cluster, again=False)
    active(history, value=False)
    back(history, cluster)
    history.until("its quota is free", lambda: reserved(history) == "False", 30.0)


def test_hd_660_nor_once_their_manager_has_named_them(history: History) -> None:
    """Who is not found is doubted by itself, and is shown as gone."""
    cluster = placed(history)
    vanishes_unseen(history, cluster, "a", lost=False)
    back(history, cluster)
    history.until("it is shown", lambda: groups.phases(history)["a"] == "Failed", 200.0)
    active(history, value=False)
    history.until("its quota is free", lambda: reserved(history) == "False", 10.0)


@pytest.mark.parametrize("gone", ["a", "ab"])
def test_hd_660_nor_has_a_group_stopped_at_home_before_each_slot_is_accounted_for(history: History, gone: str) -> None:
    for name in ABC:
        groups_at_home.make(history, name, seconds=0.0 if name in gone else 8.0)
    history.until("the others are over", lambda: groups_at_home.running(history) == sorted(gone), 60.0)
    history.kill_leader()
    history.home.cut_node("home-node", lost=True)
    for name in gone:
        history.edit("home", POD, name, {"metadata": {"finalizers": None}})
        history.home.delete(POD, name, grace_seconds=0)
    active(history, value=False)
    history.until("another leads", history.leads, 60.0)
    stays_charged(history, "home")
