"""HD-35, HD-111: a management cluster that was built anew waits for what the former one left, and for no more."""

from __future__ import annotations

from gatelift.core.clusters.foreign_runs import ANNOTATION_IGNORED, IGNORE_ALL
from gatelift_kube.values.resources import JOB, POD, WORKER_CLUSTER, WORKLOAD
from gatelift_wire.values.inventory import ForeignRun
from support.sim.cluster import Doc
from support.sim.election import SimLease
from support.sim.history import History
from support.sim.manager import SimManager
from support.sim.switchboard import KEY_DIGEST
from support.sim.truth import holds
from support.sim.world import WORKERS

NO_FINALIZERS: Doc = {"metadata": {"finalizers": None}}


def rebuilt() -> tuple[History, str]:
    """Return a history in which Job one runs at a worker, and is applied again to a management cluster built anew."""
    history = History(shown=False)
    history.job("one")
    cluster = history.until_runs("one", "Job")
    world, home = history.world, history.home
    for manager in world.managers:
        manager.kill()
    for each in home.all(WORKLOAD):
        history.edit("home", WORKLOAD, each["metadata"]["name"], NO_FINALIZERS)
        history.delete("home", WORKLOAD, each["metadata"]["name"])
    history.delete("home", JOB, "one")
    for name in (*WORKERS, "local"):
        history.delete("home", WORKER_CLUSTER, name)
    world.manager_lease = SimLease()
    start_manager(history)
    for name in WORKERS:
        home.create(WORKER_CLUSTER, {"metadata": {"name": name}, "spec": {}})
        home.change(WORKER_CLUSTER, name, {"status": {"keyDigest": KEY_DIGEST}}, "status")
    for name in WORKERS:
        history.until_connected(name)
    history.job("one")
    return history, cluster


def start_manager(history: History) -> None:
    """Start a manager of the management cluster that was built anew."""
    world = history.world
    world.board.managers = [
        *world.managers,
        SimManager(history.home, "anew", world.board, world.manager_lease, "origin-2"),
    ]


def another_leads(history: History) -> None:
    """Let the manager die and another one lead."""
    history.kill_leader()
    start_manager(history)
    history.passes(90.0)


def why(history: History, name: str = "one") -> str:
    """Return why a Job waits."""
    found = (history.workload(name, "Job") or {}).get("status", {}).get("conditions", [])
    return next((each["message"] for each in found if each["reason"] == "PredecessorOfAnotherManager"), "")


def pods_gone(history: History, cluster: str) -> None:
    """Wait until no pod is left there."""
    history.until("its pods are gone", lambda: not any(history.objects(cluster, POD)))


def test_hd_35_what_another_management_cluster_left_is_shown_and_waited_for_until_it_is_gone() -> None:
    history, cluster = rebuilt()
    history.until("it says why it waits", lambda: f"gatelift cluster foreign {cluster} --ignore" in why(history))
    status = history.status(cluster)
    assert status["foreign"] == [{"origin": "origin-1", "kind": "Job", "namespace": "team", "name": "one", "count": 2}]
    assert holds({"status": status}, "ForeignRuns")
    history.passes(60.0)
    assert history.runs("one", "Job") == {cluster}
    another_leads(history)
    history.edit(cluster, JOB, "one", NO_FINALIZERS)
    history.delete(cluster, JOB, "one")
    pods_gone(history, cluster)
    history.until("it runs", lambda: history.shows("one", "Admitted", "Job") and history.containers("one", "Job") > 0)
    history.until("nothing is shown", lambda: not history.status(cluster).get("foreign"))


def test_hd_35_a_person_says_that_it_need_not_be_waited_for() -> None:
    history, cluster = rebuilt()
    history.until("it says why it waits", lambda: bool(why(history)))
    history.edit(cluster, JOB, "one", {"spec": {"suspend": True}})
    pods_gone(history, cluster)
    history.passes(30.0)
    assert why(history)
    history.edit("home", WORKER_CLUSTER, cluster, {"metadata": {"annotations": {ANNOTATION_IGNORED: "origin-1"}}})
    history.until("it goes on", lambda: history.shows("one", "Admitted", "Job"))
    assert not holds({"status": history.status(cluster)}, "ForeignRuns")


def test_hd_35_others_do_not_wait() -> None:
    history, _ = rebuilt()
    history.job("two")
    history.until_runs("two", "Job")


def test_hd_35_a_lost_cluster_still_says_what_was_left_there() -> None:
    history, cluster = rebuilt()
    history.until("it says why it waits", lambda: bool(why(history)))
    history.cut(cluster)
    history.until_lost(cluster)
    another_leads(history)
    assert why(history)
    assert history.runs("one", "Job") == {cluster}


def a_liar(history: History, cluster: str, *runs: ForeignRun) -> None:
    """Let the agent of a worker say that these are there, from now on."""
    world = history.agent(cluster).machine.world
    world.foreign, world.foreign_changed, world.capacity_changed = runs, False, True
    history.until("it is shown", lambda: len(history.status(cluster).get("foreign", ())) == len(runs))


def test_hd_111_a_worker_that_counts_runs_of_others_holds_up_nobody_at_home_or_at_other_workers() -> None:
    history = History(shown=False)
    first, second = WORKERS[:2]
    a_liar(history, first, ForeignRun(origin="elsewhere", kind="", namespace="", name="", count=1000))
    history.job("here", "stays")
    history.job("there")
    history.job("waits")
    history.edit("home", JOB, "there", {"metadata": {"annotations": {"gatelift.dev/cluster": second}}})
    history.until("work at home runs", lambda: history.containers("here", "Job") > 0)
    history.until("work for another worker runs", lambda: history.runs("there", "Job") == {second})
    assert f"gatelift cluster foreign {first} --ignore" in why(history, "waits")
    word = {"metadata": {"annotations": {ANNOTATION_IGNORED: IGNORE_ALL}}}
    history.edit("home", WORKER_CLUSTER, first, word)
    history.until_runs("waits", "Job")
    a_liar(history, first, ForeignRun(origin="elsewhere-2", kind="", namespace="", name="", count=1000))
    history.job("later")
    history.until_runs("later", "Job")
