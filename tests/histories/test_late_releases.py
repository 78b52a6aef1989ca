"""Scripted histories (HD-119): a dead leader's release lands after its successor has taken the reservation over."""

from __future__ import annotations

from gatelift_kube.values.resources import WORKLOAD
from support.sim.cluster import Doc
from support.sim.history import History
from support.sim.objects import epoch_of


def reserved_and_nowhere_placed() -> History:
    """Let a pod have its quota while no worker answers, and let the next leader take it over so."""
    history = History(shown=False)
    for name in history.workers:
        history.agent(name).pause()
    history.pod("one", seconds=5.0)
    history.until("it has quota", lambda: history.shows("one", "QuotaReserved"))
    history.kill_leader()
    history.until("the next one leads", lambda: any(each.elector.leads() for each in history.world.managers))
    history.until("it charges it", lambda: history.leader.charges("travels") == 500)
    return history


def release(workload: Doc) -> Doc:
    """Return the status that the dead leader wrote: no quota, and the epoch of the reservation stays used."""
    status = dict(workload["status"])
    gone = {"type": "QuotaReserved", "status": "False", "reason": "Suspended", "message": "ClusterQueue is stopped"}
    rest = [each for each in status["conditions"] if each["type"] != "QuotaReserved"]
    time = {"lastTransitionTime": workload["metadata"]["creationTimestamp"]}
    return {"status": {"conditions": [gone | time, *rest], "admission": None}}


def test_hd_119_an_epoch_that_a_dead_leader_has_given_back_is_never_reserved_again() -> None:
    history = reserved_and_nowhere_placed()
    workload = history.workload("one")
    assert workload is not None
    history.edit("home", WORKLOAD, workload["metadata"]["name"], release(workload), "status")
    for name in history.workers:
        history.agent(name).wake()
    history.until("it has run", lambda: history.shows("one", "Finished"))
    again = history.workload("one")
    assert again is not None
    assert epoch_of(again) == 2
    assert history.leader.charges("travels") == 0
