"""Which cluster is this, on both real cores: another one under a name, an agent without memory, a restored worker."""

from __future__ import annotations

import pytest

from gatelift_kube.values.resources import CONFIG_MAP, NAMESPACE, POD, WORKER_CLUSTER
from support.sim.agent import SimAgent
from support.sim.cluster import ACCEPT, SYSTEM, TEAM, SimCluster
from support.sim.election import SimLease
from support.sim.history import History
from support.sim.switchboard import KEY_DIGEST

MINUTES = 120.0


def running() -> tuple[History, str]:
    """Return a world in which a pod runs on a worker."""
    history = History()
    history.pod("one")
    return history, history.until_runs("one")


def unheard(history: History, cluster: str) -> None:
    """Let a worker's agent end for good: its pods run on, nobody hears of them."""
    history.kill_agent(cluster, again=False)
    history.until_lost(cluster)


def enrol_another(history: History, cluster: str) -> SimCluster:
    """Enrol another, empty cluster under the name of one that is not heard of."""
    world = history.world
    other = SimCluster(world.time, world.faults, f"{cluster}-new", known_as=cluster, noted=world.noted)
    world.truth.follow(other, management=False)
    other.name = cluster
    start_agent(history, other, SimLease())
    return other


def start_agent(history: History, other: SimCluster, lease: SimLease) -> None:
    """Start the agent of another cluster."""
    world = history.world
    agent = SimAgent(other, f"{other.name}-other-{lease.counter}", world.board)
    agent.stand(lease)
    world.agents[other.name] = [*world.alive(other.name), agent]


def shown(history: History, cluster: str, type_: str) -> str:
    """Return reason or "" of a condition of a WorkerCluster that is True."""
    conditions = history.status(cluster).get("conditions", [])
    return next((one["reason"] for one in conditions if (one["type"], one["status"]) == (type_, "True")), "")


def say_fenced_of_before(history: History, cluster: str) -> None:
    """Let a person who has switched off the former cluster say so while the new one is connected."""
    status = history.status(cluster)
    history.say_fenced(cluster, max(status["restoredSession"], status["replacedSession"]) - 1)


def is_charged(history: History) -> bool:
    """Say whether the pod's Workload still is where it was placed first."""
    workload = history.workload("one")
    assert workload is not None
    return history.shows("one", "QuotaReserved") and not history.shows("one", "Evicted")


def switch_off(history: History, former: SimCluster) -> None:
    for pod in former.all(POD):
        name = pod["metadata"]["name"]
        former.change(POD, name, {"metadata": {"finalizers": None}})
        former.delete(POD, name)
    history.until("nothing runs there", lambda: not history.runs("one"))


@pytest.mark.parametrize("made_anew", [False, True], ids=["", "with a WorkerCluster made anew"])
def test_hd_20_the_empty_inventory_of_another_cluster_under_the_name_ends_nothing(made_anew: bool) -> None:
    history, cluster = running()
    former = history.workers[cluster]
    unheard(history, cluster)
    if made_anew:
        history.home.delete(WORKER_CLUSTER, cluster)
        history.home.create(WORKER_CLUSTER, {"metadata": {"name": cluster}, "spec": {}})
        history.home.change(WORKER_CLUSTER, cluster, {"status": {"keyDigest": KEY_DIGEST}}, "status")
    other = enrol_another(history, cluster)
    history.until("it is shown", lambda: shown(history, cluster, "Replaced") == "AnotherCluster")
    history.until_connected(cluster)
    history.passes(MINUTES)
    assert is_charged(history)
    assert history.status(cluster)["unexplained"] == 1
    history.kill_leader()
    history.passes(MINUTES)
    assert is_charged(history), "and not under the next leader either"
    history.kill_agent(cluster, again=False)
    start_agent(history, other, SimLease(counter=1000))
    history.passes(MINUTES)
    assert is_charged(history), "nor in its next sessions, which it remembers well"
    switch_off(history, former)
    say_fenced_of_before(history, cluster)
    history.until("it runs elsewhere", lambda: bool(history.runs("one")))
    history.until("all is said", lambda: shown(history, cluster, "Replaced") == "")
    history.passes(5.0)
    assert history.status(cluster)["unexplained"] == 0


def test_hd_20_another_cluster_goes_on_by_itself_when_nothing_was_placed_on_the_former() -> None:
    history = History()
    unheard(history, "a")
    enrol_another(history, "a")
    history.until_connected("a")
    history.passes(5.0)
    status = history.status("a")
    assert status["replacedSession"] == status["settledSession"] == status["session"]
    assert shown(history, "a", "Replaced") == ""


def test_hd_20_a_word_that_was_said_before_the_other_cluster_was_enrolled_is_enough() -> None:
    history, cluster = running()
    former = history.workers[cluster]
    unheard(history, cluster)
    switch_off(history, former)
    history.say_fenced(cluster)
    history.until("it runs elsewhere", lambda: bool(history.runs("one")))
    enrol_another(history, cluster)
    history.until_connected(cluster)
    assert shown(history, cluster, "Replaced") == ""


def test_hd_20_an_agent_that_was_installed_again_without_its_memory_ends_nothing_by_what_it_does_not_list() -> None:
    history, cluster = running()
    worker = history.workers[cluster]
    history.kill_agent(cluster, again=False)
    for each in worker.all(CONFIG_MAP):
        worker.delete(CONFIG_MAP, each["metadata"]["name"], namespace=SYSTEM)
    worker.change(NAMESPACE, TEAM, {"metadata": {"labels": {ACCEPT: None}}})
    history.world.start_agent(cluster)
    history.until("it is shown", lambda: shown(history, cluster, "Restored") == "OlderThanItsRecord")
    history.passes(MINUTES)
    assert history.runs("one") == {cluster}
    worker.change(NAMESPACE, TEAM, {"metadata": {"labels": {ACCEPT: "true"}}})
    history.kill_agent(cluster)
    history.until("its inventory lists it again", lambda: shown(history, cluster, "Restored") == "")
    assert history.runs("one") == {cluster}


def test_hd_21_a_worker_cluster_made_anew_is_served_at_the_next_greeting_whatever_session_its_agent_remembers() -> None:
    history = History()
    for _ in range(8):
        history.world.net.break_all("a")
        history.passes(30.0)
    last = history.status("a")["session"]
    assert last > 8
    history.home.delete(WORKER_CLUSTER, "a")
    history.kill_leader()  # the next one has never heard of those sessions
    history.passes(5.0)
    history.home.create(WORKER_CLUSTER, {"metadata": {"name": "a"}, "spec": {}})
    history.home.change(WORKER_CLUSTER, "a", {"status": {"keyDigest": KEY_DIGEST}}, "status")
    history.until("it is served", lambda: history.connected("a"), 60.0)
    assert history.status("a")["session"] > last


def test_hd_22_a_worker_restored_to_the_same_session_proves_nothing_about_what_was_placed_since() -> None:
    history = History()
    history.passes(30.0)
    history.pod("one")
    cluster = history.until_runs("one")
    world, worker = history.world, history.workers[cluster]
    backup = world.leases[cluster].counter
    history.passes(30.0)
    history.kill_agent(cluster, again=False)
    switch_off(history, worker)  # the object is gone with its etcd; that its containers stopped, too, nobody can know
    world.leases[cluster] = SimLease(term=world.leases[cluster].term, counter=backup)
    world.start_agent(cluster)
    history.until("it is shown", lambda: shown(history, cluster, "Restored") == "OlderThanItsRecord")
    history.passes(MINUTES)
    assert is_charged(history)
    say_fenced_of_before(history, cluster)
    history.until("it runs again", lambda: bool(history.runs("one")))


def test_hd_22_a_restart_of_an_agent_is_no_restore() -> None:
    history, cluster = running()
    history.passes(20.0)
    history.kill_agent(cluster)
    history.passes(MINUTES)
    assert history.connected(cluster)
    assert not history.status(cluster)["restoredSession"]
    assert history.runs("one") == {cluster}


@pytest.mark.parametrize("who", ["its holder", "a standby"])
def test_hd_67_a_lease_that_is_deleted_makes_no_restored_worker_where_somebody_saw_it(who: str) -> None:
    """HD-67: a person tidies up; who saw the Lease a moment before makes it anew, and it counts on."""
    history, cluster = running()
    world = history.world
    if who == "a standby":
        world.start_agent(cluster)
        history.passes(20.0)
        history.kill_agent(cluster, again=False)
    history.passes(20.0)
    counted = world.leases[cluster].counter
    world.leases[cluster].delete()
    history.passes(MINUTES)
    assert world.leases[cluster].counter > counted
    assert history.connected(cluster)
    assert not history.status(cluster)["restoredSession"]
    assert history.runs("one") == {cluster}


def test_hd_67_a_lease_that_is_deleted_while_nobody_looks_counts_anew_and_all_that_is_listed_settles_it() -> None:
    """HD-67, HD-22: who comes afterwards cannot tell it from a backup; what runs is listed, so nobody is asked."""
    history, cluster = running()
    history.passes(20.0)
    history.kill_agent(cluster, again=False)
    history.world.leases[cluster].delete()
    history.world.start_agent(cluster)
    history.passes(MINUTES)
    status = history.status(cluster)
    assert status["restoredSession"] == status["settledSession"] > 0
    assert history.runs("one") == {cluster}


def test_hd_68_a_worker_cluster_made_anew_forgets_nothing_and_says_which_word_is_waited_for() -> None:
    """HD-68: what its agent lists goes on by itself; the rest stays charged, and ends by that word alone."""
    history, cluster = running()
    history.home.change(WORKER_CLUSTER, "b" if cluster == "a" else "a", {"spec": {"cordoned": True}})
    history.pod("two")
    assert history.until_runs("two") == cluster
    history.kill_agent(cluster, again=False)
    history.edit(cluster, POD, "two", {"metadata": {"finalizers": None}})
    history.delete(cluster, POD, "two")
    history.until("it has stopped, and nobody saw it", lambda: not history.runs("two"))
    history.home.delete(WORKER_CLUSTER, cluster)
    history.kill_leader()  # the next one knows of that WorkerCluster only what the Workloads say
    history.passes(5.0)
    history.home.create(WORKER_CLUSTER, {"metadata": {"name": cluster}, "spec": {}})
    history.home.change(WORKER_CLUSTER, cluster, {"status": {"keyDigest": KEY_DIGEST}}, "status")
    history.world.start_agent(cluster)
    history.until("it is shown", lambda: shown(history, cluster, "Replaced") == "AnotherCluster")
    history.passes(MINUTES)
    assert history.status(cluster)["unexplained"] == 1
    told = next(one["message"] for one in history.status(cluster)["conditions"] if one["type"] == "Replaced")
    assert "or this WorkerCluster was made anew; 1 placements of before" in told
    assert f"gatelift cluster fenced {cluster}" in told
    assert history.shows("two", "QuotaReserved")
    assert not history.shows("two", "Evicted")
    say_fenced_of_before(history, cluster)
    history.until("the other one runs again", lambda: history.runs("two") == {cluster})
    assert history.runs("one") == {cluster}
    assert history.containers("one") == history.containers("two") == 1


@pytest.mark.parametrize("leader", ["stays", "changes"])
def test_hd_160_a_worker_cluster_made_anew_whose_cluster_never_comes_back_takes_a_true_word(leader: str) -> None:
    """It has had no session, and what is charged to it was placed in those of the object before."""
    history, cluster = running()
    former = history.world.workers[cluster]
    unheard(history, cluster)
    switch_off(history, former)
    history.home.delete(WORKER_CLUSTER, cluster)
    if leader == "changes":
        history.kill_leader()
    history.passes(5.0)
    history.home.create(WORKER_CLUSTER, {"metadata": {"name": cluster}, "spec": {}})
    history.until_lost(cluster)
    assert is_charged(history)
    history.passes(MINUTES)
    assert is_charged(history), "nobody has said that nothing runs there"
    session = history.status(cluster)["session"]
    assert session > 0
    history.say_fenced(cluster, session)
    other = "b" if cluster == "a" else "a"
    history.until("it runs again", lambda: history.runs("one") == {other})


def test_hd_160_a_new_worker_cluster_begins_with_its_first_session_however_late_its_agent_comes() -> None:
    history = History()
    history.passes(MINUTES)
    history.home.create(WORKER_CLUSTER, {"metadata": {"name": "late"}, "spec": {}})
    history.until_lost("late")
    history.passes(MINUTES)
    assert history.status("late").get("session", 0) == 0
