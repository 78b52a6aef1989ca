"""HD-125, HD-126, HD-141: what an agent keeps of itself, written late, lost or not enough: where it has work.

A namespace that accepts no work any more is looked into only because the agent knows that something of ours is there.
"""

from __future__ import annotations

import msgspec
import pytest

from gatelift_agent.core.memory.keeper import STATE_NAME
from gatelift_kube.deciding.writes import ApiWrite, Patch
from gatelift_kube.values.resources import CONFIG_MAP, JOB, NAMESPACE, POD
from support.sim.cluster import ACCEPT, SYSTEM, TEAM
from support.sim.history import History

LATE_SECONDS = 26.0
"""From when the state was to be written until that lands: 16 s after its time limit."""
ABSENCE_SECONDS = 240.0
"""Longer than it takes the next inventory, and each node's heartbeat, to prove that something is gone."""

KINDS = pytest.mark.parametrize("kind", ["Pod", "Job"])


def _kept_namespaces(history: History, cluster: str) -> list[str]:
    kept = history.workers[cluster].look(CONFIG_MAP, STATE_NAME, SYSTEM)
    assert kept is not None
    return msgspec.json.decode(kept["data"]["state"]).get("namespaces", [])  # type: ignore[no-any-return]


def _let_the_first_state_land_late(history: History, cluster: str, landed: list[str]) -> None:
    """Start another agent; the number of its session, its first write, lands when more has been written."""
    history.kill_agent(cluster)
    time, port = history.world.time, history.agent(cluster).port
    send, asked = port._send, list[ApiWrite]()

    def land(command: ApiWrite) -> None:
        port._land(command, answered=False)
        landed.append(cluster)

    def slow(command: ApiWrite, deadline: float) -> None:
        if asked or not isinstance(command, Patch) or command.ref.resource != CONFIG_MAP or b"data" not in command.body:
            send(command, deadline)
            return
        asked.append(command)
        time.after(deadline - time.now, lambda: port._unsure(command))
        time.after(LATE_SECONDS, lambda: land(command))

    port._send = slow  # type: ignore[method-assign]


def close(history: History, cluster: str) -> None:
    history.edit(cluster, NAMESPACE, TEAM, {"metadata": {"labels": {ACCEPT: None}}})


def _runs_on(history: History, kind: str, cluster: str) -> None:
    history.until_connected(cluster)
    history.passes(ABSENCE_SECONDS)
    assert history.containers("one", kind) == 1
    assert history.workload("one", kind) is not None
    assert history.shows("one", "QuotaReserved", kind)
    assert history.runs("one", kind) == {cluster}


@KINDS
def test_hd_125_a_state_that_lands_late_takes_no_namespace_off_the_list(kind: str) -> None:
    """The agent dies before it sees that; the next one starts while the namespace accepts no work."""
    history, landed = History(shown=False), list[str]()
    for name in history.workers:
        _let_the_first_state_land_late(history, name, landed)
    (history.pod if kind == "Pod" else history.job)("one")
    cluster = history.until_runs("one", kind)
    assert cluster not in landed
    history.until("the late state has landed", lambda: cluster in landed, 60.0)
    history.kill_agent(cluster, again=False)
    assert _kept_namespaces(history, cluster) == [TEAM]
    close(history, cluster)
    history.world.start_agent(cluster)
    _runs_on(history, kind, cluster)


def forget_the_namespace(history: History, cluster: str) -> None:
    """Let a person take it off the list; the session stays as it is."""
    kept = history.workers[cluster].look(CONFIG_MAP, STATE_NAME, SYSTEM)
    assert kept is not None
    state = msgspec.json.decode(kept["data"]["state"])
    del state["namespaces"]
    body = {"data": {"state": msgspec.json.encode(state).decode()}}
    assert history.workers[cluster].change(CONFIG_MAP, STATE_NAME, body, namespace=SYSTEM) is not None


def _begun_unaware(kind: str) -> tuple[History, str]:
    """Return a history in which it runs where an agent begins anew that knows nothing of the namespace, and where."""
    history = History(shown=False)
    (history.pod if kind == "Pod" else history.job)("one")
    cluster = history.until_runs("one", kind)
    history.passes(5.0)
    history.kill_agent(cluster, again=False)
    forget_the_namespace(history, cluster)
    close(history, cluster)
    history.world.start_agent(cluster)
    return history, cluster


@KINDS
def test_hd_126_what_is_found_in_a_namespace_that_is_watched_after_the_start_is_taken_up_and_told(kind: str) -> None:
    """It opens before an inventory could prove anything: each node was heard of since the agent watches."""
    history, cluster = _begun_unaware(kind)
    agent = history.agent(cluster)
    history.until("the agent is in a session", lambda: agent.machine.connected, 120.0)
    history.edit(cluster, NAMESPACE, TEAM, {"metadata": {"labels": {ACCEPT: "true"}}})
    _runs_on(history, kind, cluster)


@KINDS
def test_hd_141_a_namespace_that_was_taken_off_the_list_is_looked_into_since_the_manager_names_it(kind: str) -> None:
    """It accepts no work while the agent starts, and does not open again."""
    history, cluster = _begun_unaware(kind)
    _runs_on(history, kind, cluster)
    assert _kept_namespaces(history, cluster) == [TEAM]


@KINDS
def test_hd_141_while_the_namespace_cannot_be_listed_what_runs_there_stays_charged(kind: str) -> None:
    """As where the agent's RoleBinding was taken away: an answer of 403 is no answer."""
    history, cluster = _begun_unaware(kind)
    agent = history.agent(cluster)
    watch, asked = agent._watch_namespaces, list[tuple[str, ...]]()

    def refused(namespaces: tuple[str, ...]) -> None:
        asked.append(namespaces)
        watch(tuple(name for name in namespaces if name != TEAM))

    agent._watch_namespaces = refused  # type: ignore[method-assign]
    _runs_on(history, kind, cluster)
    assert TEAM in asked[-1]
    agent._watch_namespaces = watch  # type: ignore[method-assign]
    watch(asked[-1])
    _runs_on(history, kind, cluster)
    history.home.delete(POD if kind == "Pod" else JOB, "one")
    history.until("it is stopped", lambda: not history.runs("one", kind) and history.workload("one", kind) is None)
