"""HD-257, IS-45: a gate that its user takes off a placed pod is taken off at its cluster; until then it is told of."""

from __future__ import annotations

import pytest

from gatelift_kinds.shared.markers import ADMISSION_GATE
from gatelift_kinds.shared.pod_trouble import CONDITION, GATED
from gatelift_kube.values.resources import POD
from support.manager.builders import a_pod
from support.sim.cluster import TEAM
from support.sim.history import History

GATE = "example.com/g"


def placed(queue: str = "travels") -> tuple[History, str]:
    """Return a pod with a gate of its user's own that is placed on a worker, or at home, and where."""
    history = History(shown=False)
    document = a_pod("one").asking(cpu="500m").gated_by(GATE).document()
    document["metadata"]["namespace"] = TEAM
    document["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = queue
    del document["status"]
    history.home.create(POD, document)
    history.until("it is placed", lambda: history.shows("one", "Admitted"))
    history.passes(10.0)
    assert history.containers("one") == 0, "its user's gate holds it"
    return history, (history.workload("one") or {})["status"].get("clusterName", "local")


def take_it_off(history: History) -> None:
    """Let the user take his gate off, which the API server lets anybody do who may patch the pod."""
    history.edit("home", POD, "one", {"spec": {"schedulingGates": [{"name": ADMISSION_GATE}]}})


@pytest.mark.parametrize(
    "what",
    [
        "nothing else happens",
        "nobody leads",
        "another leader came long before",
        "the leader dies a moment later",
        "the agent dies a moment before",
        "the agent dies a moment later",
        "the leader and the agent die a moment later",
    ],
)
def test_hd_257_what_its_user_lets_go_starts_whoever_has_died_meanwhile(what: str) -> None:
    """HD-257: what an agent had been told went with it, and a new leader took what it saw for what had been told."""
    history, cluster = placed()
    match what:
        case "nobody leads":
            history.kill_leader()
        case "another leader came long before":
            history.kill_leader()
            history.until("another one leads", history.leads, 60.0)
            history.passes(100.0)
        case "the agent dies a moment before":
            history.kill_agent(cluster)
    take_it_off(history)
    if "agent die" in what and "later" in what:
        history.kill_agent(cluster)
    if "leader" in what and "later" in what:
        history.kill_leader()
    history.until("it runs", lambda: history.containers("one") == 1, 300.0)


# --- what is said of it ----------------------------------------------------------------------------------------------


def said(history: History) -> list[tuple[str, str]]:
    """Return our condition on the user's pod and on its Workload."""
    pods = (each for each in history.objects("home") if each["metadata"]["name"] == "one")
    documents = (next(pods, None), history.workload("one"))
    return [
        (one["reason"], one["message"])
        for document in documents
        for one in (document or {}).get("status", {}).get("conditions") or []
        if one["type"] == CONDITION
    ]


@pytest.mark.parametrize("queue", ["travels", "stays"])
def test_is_45_a_placed_pod_says_at_home_for_which_gate_it_waits_until_it_runs(queue: str) -> None:
    history, cluster = placed(queue)
    history.passes(30.0)
    text = f'Pod one on cluster "{cluster}": waits for scheduling gate "{GATE}" to be taken off'
    assert said(history) == [(GATED, text), (GATED, text)]
    take_it_off(history)
    history.until("it runs", lambda: history.containers("one") == 1)
    history.passes(30.0)
    assert said(history) == []


def test_is_45_it_is_said_no_longer_though_its_agent_died_before_it_could_say_that_the_gate_is_gone() -> None:
    history, cluster = placed()
    history.passes(30.0)
    assert len(said(history)) == 2
    take_it_off(history)
    history.until("it runs", lambda: history.containers("one") == 1)
    history.kill_agent(cluster)
    history.passes(120.0)
    assert said(history) == []
