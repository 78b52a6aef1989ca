"""HD-229: a cluster is out of reach as its WorkerCluster is deleted and made anew, and its agent comes back.

What falls due to be said to it meanwhile is kept by nobody: there is no cluster of that name. So its next session
begins with a resync; one that went on where the former had ended left objects, and what runs, there for good.
"""

from __future__ import annotations

from gatelift.core.clusters.link_values import ClusterView
from gatelift_kube.values.resources import WORKER_CLUSTER
from histories.test_vanished_ends import KINDS, running, until_nothing_is_left, until_told, vanishes
from support.sim.history import History
from support.sim.switchboard import KEY_DIGEST

GONE_SECONDS = 3.0
"""Far less than a lease: nothing counts as lost."""
NOTICED_SECONDS = 10.0


def is_open(view: ClusterView | None) -> bool:
    return view is not None and view.open


def is_deleted_out_of_reach(history: History, cluster: str) -> None:
    """Let the stream of a cluster break, none come about, and its WorkerCluster be deleted once that was noticed."""
    history.cut(cluster)
    history.world.net.break_all(cluster)
    links = history.leader.machine.core.links
    history.until("its stream is over", lambda: not is_open(links.state(cluster)), NOTICED_SECONDS)
    history.home.delete(WORKER_CLUSTER, cluster)
    history.until("that is known", lambda: cluster not in links.clusters(), NOTICED_SECONDS)


def is_made_anew(history: History, cluster: str) -> None:
    history.home.create(WORKER_CLUSTER, {"metadata": {"name": cluster}, "spec": {}})
    history.home.change(WORKER_CLUSTER, cluster, {"status": {"keyDigest": KEY_DIGEST}}, "status")
    history.mend(cluster)
    history.until_connected(cluster)


@KINDS
def test_hd_229_what_vanished_meanwhile_is_stopped(kind: str) -> None:
    """HD-229: a person takes the Workload's finalizer off; nobody may run it beside what comes after it."""
    history, cluster = running(kind, seconds=0.0)
    (attempt,) = (each for manager in history.world.managers for each in manager.machine.core.attempts.values())
    is_deleted_out_of_reach(history, cluster)
    history.passes(GONE_SECONDS)
    vanishes(history, kind)
    history.passes(GONE_SECONDS)
    is_made_anew(history, cluster)
    until_nothing_is_left(history, cluster, attempt.key)


@KINDS
def test_hd_229_an_end_that_is_written_meanwhile_is_answered(kind: str) -> None:
    """HD-229: its agent kept the object, with our finalizer on it (drawn seed 8702928)."""
    history, cluster = running(kind, seconds=20.0)
    key = until_told(history, kind)
    history.world.faults.write_lost = 1.0
    is_deleted_out_of_reach(history, cluster)
    history.world.faults.write_lost = 0.0
    history.until("its end is written", lambda: history.shows("one", "Finished", kind))
    history.passes(GONE_SECONDS)
    is_made_anew(history, cluster)
    until_nothing_is_left(history, cluster, key)
