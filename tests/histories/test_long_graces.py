"""What vanished while no agent watched, and was given longer to stop than an agent takes for granted (HD-269).

A kubelet that sees that a pod is no longer there stops its containers, by the grace that the pod had. An agent that has
not seen that pod does not know it: once all nodes were heard of it says that what it does not list proves something.
"""

from __future__ import annotations

import pytest

from gatelift_kube.values.resources import POD
from support.sim.history import History

GRACE_SECONDS = 900
SOON = 300.0
"""Longer than what ends by a grace of 30 s, the margin, and a heartbeat of each node."""


def vanished_unseen(grace_seconds: int, stops_in: float) -> tuple[History, str]:
    """Return a history whose pod somebody removes by force while no agent watches, and its cluster."""
    history = History(shown=False)
    history.pod("one", stops_in=stops_in, grace_seconds=grace_seconds)
    cluster = history.until_runs("one")
    history.until("it runs", lambda: history.containers("one") == 1)
    history.kill_agent(cluster, again=False)
    history.edit(cluster, POD, "one", {"metadata": {"finalizers": None}})
    history.workers[cluster].delete(POD, "one", grace_seconds=0)
    history.world.start_agent(cluster)
    history.until_connected(cluster)
    return history, cluster


def epoch(history: History) -> str:
    workload = history.workload("one")
    assert workload is not None
    return str(workload["metadata"]["annotations"]["gatelift.dev/epoch"])


@pytest.mark.parametrize("changes", [(), ("agent",), ("manager",)], ids=["", "agent again", "another manager"])
def test_hd_269_what_keeps_to_a_long_grace_is_charged_for_it_and_runs_again_after_it(changes: tuple[str, ...]) -> None:
    """HD-269: the symptom: two minutes after the start of its agent it ran a second time, beside the first."""
    history, cluster = vanished_unseen(GRACE_SECONDS, GRACE_SECONDS - 60.0)
    history.passes(SOON / 2.0)
    if "agent" in changes:
        history.kill_agent(cluster)
    if "manager" in changes:
        history.kill_leader()
    history.passes(SOON)
    assert history.containers("one") == 1
    assert history.leader.charges("travels") == 500
    history.until("it is placed again", lambda: epoch(history) == "2", 2.0 * GRACE_SECONDS)
    history.until("it runs again", lambda: history.containers("one") == 1)


def test_hd_269_while_its_cluster_is_away_nobody_asks_again_and_again_and_its_return_decides() -> None:
    """HD-269: the time is over and nobody is there to ask: a deadline in the past would keep the manager busy."""
    history, cluster = vanished_unseen(GRACE_SECONDS, GRACE_SECONDS - 60.0)
    history.passes(SOON)
    history.cut(cluster)
    history.passes(1.5 * GRACE_SECONDS)
    assert history.leader.charges("travels") == 500
    history.mend(cluster)
    history.until("it is placed again", lambda: epoch(history) == "2", SOON)


def test_hd_269_what_has_the_grace_that_an_agent_goes_by_runs_again_soon() -> None:
    history, _ = vanished_unseen(30, 25.0)
    history.until("it is placed again", lambda: epoch(history) == "2", SOON)
