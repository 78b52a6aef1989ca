"""Two agents of one identity, on both real cores: installed twice in a cluster, or a Secret copied into another one."""

from __future__ import annotations

import pytest

from gatelift_kube.values.resources import NAMESPACE, POD, WORKER_CLUSTER
from support.sim.agent import SimAgent
from support.sim.cluster import ACCEPT, ELSEWHERE, TEAM, SimCluster
from support.sim.election import SimLease
from support.sim.history import History

MINUTES = 120.0
TAKES_OVER = 200.0
"""Until a cluster is lost, who was turned away looks again, lists everything and greets."""


def installed_again(history: History, cluster: str, namespace: str = ELSEWHERE) -> SimAgent:
    """Start another agent of the same identity in the same cluster, in another namespace."""
    return history.world.start_agent(cluster, SimLease(name=f"{namespace}/gatelift-agent"))


def in_another_cluster(history: History, cluster: str) -> SimAgent:
    """Start an agent of the same identity in another cluster."""
    world = history.world
    other = SimCluster(world.time, world.faults, f"{cluster}-other", known_as=cluster, noted=world.noted)
    world.truth.known_as[other.name] = cluster
    world.follow(other)
    agent = SimAgent(other, f"{cluster}-agent-of-another", world.board)
    agent.stand(SimLease())
    return agent


def shown(history: History, cluster: str, type_: str) -> str:
    """Return the reason of a condition of a WorkerCluster that is True, "" when it is not."""
    conditions = history.status(cluster).get("conditions", [])
    return str(next((one["reason"] for one in conditions if (one["type"], one["status"]) == (type_, "True")), ""))


def says(history: History, cluster: str, type_: str) -> str:
    return str(next(one["message"] for one in history.status(cluster)["conditions"] if one["type"] == type_))


def cordon(history: History, cluster: str, *, on: bool) -> None:
    history.edit("home", WORKER_CLUSTER, cluster, {"spec": {"cordoned": on}})


@pytest.mark.parametrize(("seed", "after"), [(3, 0.0), (4, 0.2), (5, 0.0), (5, 0.2), (5, 0.4)])
def test_hd_60_what_one_agent_runs_is_not_ended_by_the_inventory_of_another_one(seed: int, after: float) -> None:
    """HD-60: both start while a pod waits; one is served and lets it go; the other one, which listed before, greets."""
    history = History(seed)
    for cluster in ("a", "b"):
        history.kill_agent(cluster, again=False)
    history.until_lost("a")
    history.until_lost("b")
    history.pod("one")
    history.passes(5.0)
    installed_again(history, "a")
    history.world.time.after(after, lambda: history.world.start_agent("a", SimLease()))
    history.until("it runs", lambda: history.runs("one") == {"a"})
    history.passes(MINUTES)
    assert history.runs("one") == {"a"}
    assert not history.shows("one", "Evicted")


@pytest.mark.parametrize("other", [installed_again, in_another_cluster])
def test_hd_61_a_true_word_is_not_taken_while_who_was_served_before_may_still_let_go(other: object) -> None:
    """HD-61: a person sees a pod gated, as another agent greets, and says so; then the first let it go, too.

    Its agent was cut off, and its right to start had not ended.
    """
    assert callable(other)
    history = History()
    cordon(history, "b", on=True)
    first, worker = history.agent("a"), history.workers["a"]
    history.pod("one")
    while not worker.all(POD):
        history.passes(0.002)
    first.pause()
    assert not history.runs("one")
    history.world.net.partition(first.name)
    other(history, "a")
    cordon(history, "b", on=False)
    for _ in range(30):
        history.passes(0.2)
        status = history.status("a")
        doubted = max(status["replacedSession"], status["takenOverSession"], status["restoredSession"])
        history.say_fenced("a", doubted - 1 if doubted else status["session"])
    first.wake()
    history.passes(MINUTES)
    assert len(history.runs("one")) == 1
    assert history.containers("one") == 1


def test_hd_60_the_second_agent_is_shown_and_turned_away_and_the_first_one_serves_on() -> None:
    history = History()
    history.pod("one")
    cluster = history.until_runs("one")
    session = history.status(cluster)["session"]
    second = installed_again(history, cluster)
    history.until("it is shown", lambda: shown(history, cluster, "SecondAgent") == "TurnedAway")
    told = says(history, cluster, "SecondAgent")
    assert second.name in told
    assert f"{ELSEWHERE}/gatelift-agent" in told
    assert "uninstall one of the two" in told
    history.passes(MINUTES)
    history.pod("two")
    history.until_runs("two")
    assert second.machine.turned_away
    assert not second.machine.world.ready, "it does nothing for placements that are the other one's"
    assert history.status(cluster)["session"] == session
    second.kill()
    history.until("it is not shown any more", lambda: shown(history, cluster, "SecondAgent") == "")
    assert history.status(cluster)["session"] == session
    assert shown(history, cluster, "TakenOver") == ""


def test_hd_60_when_the_first_is_gone_the_second_takes_over_what_runs() -> None:
    history = History()
    history.pod("one")
    cluster = history.until_runs("one")
    second = installed_again(history, cluster)
    history.until("it is shown", lambda: shown(history, cluster, "SecondAgent") == "TurnedAway")
    history.kill_agent(cluster, again=False)
    history.until("it is served", lambda: second.machine.connected, TAKES_OVER)
    history.passes(10.0)
    status = history.status(cluster)
    assert status["agentLease"] == f"{ELSEWHERE}/gatelift-agent"
    assert status["takenOverSession"] == status["settledSession"] == status["session"]
    assert shown(history, cluster, "SecondAgent") == shown(history, cluster, "TakenOver") == ""
    assert history.runs("one") == {cluster}
    history.pod("two")
    history.until_runs("two")


def test_hd_60_what_the_second_does_not_list_stays_charged_until_a_persons_word() -> None:
    """HD-60: the namespace does not accept work any more, which only the first one's memory names."""
    history = History()
    history.pod("one")
    cluster = history.until_runs("one")
    worker = history.workers[cluster]
    history.kill_agent(cluster, again=False)
    worker.change(NAMESPACE, TEAM, {"metadata": {"labels": {ACCEPT: None}}})
    second = installed_again(history, cluster)
    history.until("it is served", lambda: second.machine.connected, TAKES_OVER)
    history.until("it is shown", lambda: shown(history, cluster, "TakenOver") == "AnotherLease")
    assert "gatelift cluster fenced" in says(history, cluster, "TakenOver")
    history.passes(MINUTES)
    assert history.runs("one") == {cluster}
    assert history.status(cluster)["unexplained"] == 1
    assert not history.shows("one", "Evicted")
    history.world.start_agent(cluster)
    second.kill()
    history.until("the first is back", lambda: history.agent(cluster).machine.connected, TAKES_OVER)
    history.until("and lists it", lambda: shown(history, cluster, "TakenOver") == "")
    assert history.runs("one") == {cluster}
