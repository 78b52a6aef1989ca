"""A pod that was removed by force from a lost node is doubted also by an agent that did not see it go (HD-80).

The node is cut off from its API server and its containers run on. Somebody removes the pod by force, and takes off what
holds it. The agent that saw this dies, or there was none at that moment.
"""

from __future__ import annotations

import pytest

from gatelift_kube.values.resources import NODE, POD, WORKLOAD
from gatelift_sandbox.behaviour import LOST
from support.sim.history import ON_TERMINAL, History

KINDS = ("Pod", "Job")
MINUTES = 300.0
"""Longer than all that ends by time alone: a grace, the margin, and a heartbeat of each node."""


def node_of(cluster: str) -> str:
    return f"{'home' if cluster == 'local' else cluster}-node"


def lose_node(history: History, cluster: str) -> None:
    """Cut the node off; it is cordoned, as Kubernetes taints such a one."""
    patch = {"metadata": {"annotations": {LOST: "true"}}, "spec": {"unschedulable": True}}
    history.edit(cluster, NODE, node_of(cluster), patch)


def find_node(history: History, cluster: str) -> None:
    """Let it reach its API server again: its kubelet ends what that no longer has."""
    patch = {"metadata": {"annotations": {LOST: None}}, "spec": {"unschedulable": None}}
    history.edit(cluster, NODE, node_of(cluster), patch)


def force_delete(history: History, cluster: str) -> None:
    """Remove all pods by force, and take off what still holds them."""
    for pod in history.objects(cluster, POD):
        history.cluster(cluster).delete(POD, pod["metadata"]["name"], grace_seconds=0)
    history.passes(2.0)
    for pod in history.objects(cluster, POD):
        if pod["metadata"].get("deletionTimestamp"):
            history.edit(cluster, POD, pod["metadata"]["name"], {"metadata": {"finalizers": None}})
    history.passes(3.0)


def activate(history: History, kind: str, *, active: bool) -> None:
    """Let a person deactivate or activate the Workload; a preemption does the same."""
    workload = history.workload("one", kind)
    assert workload is not None
    history.edit("home", WORKLOAD, workload["metadata"]["name"], {"spec": {"active": active}})


def runs_here_alone(history: History, kind: str, cluster: str) -> None:
    """Its containers run, once, and are charged."""
    assert history.containers("one", kind) == 1
    assert history.runs("one", kind) == {cluster}
    assert history.leader.charges("travels") == 500


def evicted_unseen(history: History, kind: str, cluster: str, *, restarts: bool) -> None:
    """Its pods are removed by force on a lost node, with nobody to see it; then a person stops it for a while."""
    force_delete(history, cluster)
    if restarts:
        history.kill_agent(cluster)
        history.passes(30.0)
    activate(history, kind, active=False)
    history.passes(20.0)
    activate(history, kind, active=True)
    history.passes(MINUTES)


def goes_on_later(history: History, kind: str, cluster: str) -> None:
    """Once the node is back its kubelet ends them, and the work runs again in another attempt."""
    find_node(history, cluster)
    history.until("it is placed again", lambda: epoch_of(history, kind) > 1, 900.0)
    history.until("it runs again", lambda: history.containers("one", kind) == 1)


def epoch_of(history: History, kind: str) -> int:
    workload = history.workload("one", kind)
    assert workload is not None
    return int(workload["metadata"]["annotations"].get("gatelift.dev/epoch", "0"))


@pytest.mark.parametrize("restarts", [False, True], ids=["agent stays", "agent restarts"])
@pytest.mark.parametrize("kind", KINDS)
def test_hd_80_what_an_agent_doubts_is_doubted_by_the_next_one(kind: str, restarts: bool) -> None:
    history = History(shown=False)
    (history.pod if kind == "Pod" else history.job)("one")
    cluster = history.until_runs("one", kind)
    lose_node(history, cluster)
    evicted_unseen(history, kind, cluster, restarts=restarts)
    runs_here_alone(history, kind, cluster)
    goes_on_later(history, kind, cluster)


@pytest.mark.parametrize("kind", KINDS)
def test_hd_80_what_goes_while_no_agent_watches_is_doubted(kind: str) -> None:
    """A Job that waits for its pods to end does not count one whose finalizer was taken off (HD-132)."""
    history = History(shown=False)
    (history.pod if kind == "Pod" else history.job)("one")
    cluster = history.until_runs("one", kind)
    history.kill_agent(cluster, again=False)
    lose_node(history, cluster)
    force_delete(history, cluster)
    history.world.start_agent(cluster)
    history.until_connected(cluster)
    activate(history, kind, active=False)
    history.passes(20.0)
    activate(history, kind, active=True)
    history.passes(MINUTES)
    runs_here_alone(history, kind, cluster)
    goes_on_later(history, kind, cluster)


def test_hd_80_what_goes_while_a_job_is_stopped_and_no_agent_watches_is_doubted() -> None:
    """Pods that a suspended Job deletes are not counted by its controller."""
    history = History(shown=False, file=ON_TERMINAL)
    history.job("one")
    cluster = history.until_runs("one", "Job")
    lose_node(history, cluster)
    activate(history, "Job", active=False)
    history.passes(5.0)
    history.kill_agent(cluster, again=False)
    force_delete(history, cluster)
    history.world.start_agent(cluster)
    history.until_connected(cluster)
    activate(history, "Job", active=True)
    history.passes(MINUTES)
    runs_here_alone(history, "Job", cluster)
    goes_on_later(history, "Job", cluster)


def test_hd_80_nothing_that_is_not_listed_is_concluded_by_a_later_leader_either() -> None:
    history = History(shown=False)
    history.pod("one")
    cluster = history.until_runs("one")
    lose_node(history, cluster)
    force_delete(history, cluster)
    history.kill_agent(cluster)
    history.passes(30.0)
    history.kill_leader()
    history.passes(MINUTES)
    runs_here_alone(history, "Pod", cluster)
    goes_on_later(history, "Pod", cluster)


def test_hd_80_what_was_placed_long_ago_is_doubted_by_a_later_leader_whatever_is_shown() -> None:
    history = History(shown=False)
    history.pod("one")
    cluster = history.until_runs("one")
    history.passes(MINUTES)
    lose_node(history, cluster)
    force_delete(history, cluster)
    history.kill_agent(cluster)
    history.passes(30.0)
    history.edit("home", POD, "one", {"status": {"phase": "Pending", "conditions": None}}, "status")
    history.kill_leader()
    history.passes(MINUTES)
    runs_here_alone(history, "Pod", cluster)


def test_hd_80_at_home_it_is_doubted_by_the_next_leader() -> None:
    history = History(shown=False)
    history.pod("one", "stays")
    history.until_runs("one")
    lose_node(history, "home")
    force_delete(history, "home")
    history.kill_leader()
    history.passes(MINUTES)
    assert history.containers("one") == 1
    assert history.leader.charges("stays") == 500
    find_node(history, "home")
    history.until("its quota is free", lambda: history.leader.charges("stays") == 0, 900.0)
    assert history.containers("one") == 0


@pytest.mark.parametrize("kind", KINDS)
def test_what_goes_from_a_node_that_is_heard_of_ends_by_itself(kind: str) -> None:
    history = History(shown=False)
    (history.pod if kind == "Pod" else history.job)("one")
    cluster = history.until_runs("one", kind)
    history.kill_agent(cluster, again=False)
    force_delete(history, cluster)
    history.world.start_agent(cluster)
    history.until_connected(cluster)
    if kind == "Job":
        activate(history, kind, active=False)
        history.until("its quota is free", lambda: history.leader.charges("travels") == 0)
    else:
        first = history.workload("one")
        assert first is not None
        history.until(
            "it is evicted", lambda: (history.workload("one") or first)["status"].get("clusterName") != cluster
        )


@pytest.mark.parametrize("restarts", [False, True], ids=["agent stays", "agent restarts"])
@pytest.mark.parametrize("kind", KINDS)
def test_hd_82_the_first_heartbeat_of_a_node_that_comes_back_ends_no_doubt(kind: str, restarts: bool) -> None:
    """Its kubelet says that it is ready before it has ended what is gone, and these containers take 25 seconds."""
    history = History(shown=False)
    (history.pod if kind == "Pod" else history.job)("one", stops_in=25.0)
    cluster = history.until_runs("one", kind)
    lose_node(history, cluster)
    unknown = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}
    history.edit(cluster, NODE, node_of(cluster), {"status": {"conditions": [unknown]}}, "status")
    evicted_unseen(history, kind, cluster, restarts=restarts)
    goes_on_later(history, kind, cluster)
