"""HD-395, PG-25: a gate that its user takes off one pod of a group is taken off at its cluster, whoever has died."""

from __future__ import annotations

import pytest

from gatelift_kinds.registry import WITH_GROUPS
from gatelift_kinds.shared.markers import ADMISSION_GATE
from gatelift_kube.values.resources import POD
from support.sim import groups
from support.sim.agent import SimAgent
from support.sim.history import History
from support.sim.manager import SimManager

GATE = "example.com/g"


@pytest.fixture
def history(monkeypatch: pytest.MonkeyPatch) -> History:
    """Return a history whose managers and agents serve groups."""
    monkeypatch.setattr(SimManager, "kinds", WITH_GROUPS)
    monkeypatch.setattr(SimAgent, "registry", WITH_GROUPS)
    return History(shown=False)


def placed(history: History, gated: str, free: str) -> str:
    """Have a group run at a worker but for those pods that a gate of their user holds; return where."""
    for name in sorted(gated + free):
        groups.make(history, name, gates=[GATE] if name in gated else ())
    history.until("the others run", lambda: groups.run_there(history) == sorted(free), 60.0)
    history.passes(10.0)
    return groups.cluster_of(history)


def let_go(history: History, name: str) -> None:
    """Let its user take his gate off, which the API server lets anybody do who may patch the pod."""
    history.edit("home", POD, name, {"spec": {"schedulingGates": [{"name": ADMISSION_GATE}]}})


@pytest.mark.parametrize(
    "what",
    [
        "nothing else happens",
        "nobody leads",
        "another leader came long before",
        "the leader dies a moment later",
        "the agent dies a moment before",
        "the agent dies a moment later",
    ],
)
@pytest.mark.parametrize("gated", ["a", "b", "abc"])
def test_hd_395_pg_25_what_its_user_lets_go_starts_whoever_has_died_meanwhile(
    history: History, what: str, gated: str
) -> None:
    cluster = placed(history, gated, "".join(sorted(set("abc") - set(gated))))
    match what:
        case "nobody leads":
            history.kill_leader()
        case "another leader came long before":
            history.kill_leader()
            history.until("another one leads", history.leads, 60.0)
            history.passes(100.0)
        case "the agent dies a moment before":
            history.kill_agent(cluster)
    for name in gated:
        let_go(history, name)
    history.passes(0.1)
    match what:
        case "the leader dies a moment later":
            history.kill_leader()
        case "the agent dies a moment later":
            history.kill_agent(cluster)
    history.until("all run", lambda: groups.run_there(history) == ["a", "b", "c"], 300.0)


def test_hd_395_a_replacement_with_a_gate_of_its_users_waits_for_that_alone(history: History) -> None:
    placed(history, "", "abc")
    history.delete("home", POD, "b")
    history.until("it has gone", lambda: groups.names(history) == ["a", "c"], 60.0)
    groups.make(history, "d", gates=[GATE])
    history.until("it is there", lambda: "d" in groups.placed(history), 60.0)
    history.passes(20.0)
    assert groups.run_there(history) == ["a", "c"]
    let_go(history, "d")
    history.until("all run", lambda: groups.run_there(history) == ["a", "c", "d"], 60.0)
