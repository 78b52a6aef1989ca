"""HD-300 on both real cores: an agent that begins anew may not list the namespace in which work of ours runs."""

from __future__ import annotations

import pytest

from gatelift_agent.core.values import events
from gatelift_kube.values.resources import POD
from support.sim.agent import SimAgent
from support.sim.cluster import TEAM
from support.sim.history import History

ASKED_AGAIN_SECONDS = 5.0


class Rights:
    """Whether the agents of a worker may list a namespace. Their watches ask again by themselves."""

    def __init__(self, cluster: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.given = False
        watch = SimAgent._watch_namespaces

        def watching(agent: SimAgent, namespaces: tuple[str, ...]) -> None:
            if self.given or agent.local or agent.cluster.name != cluster or TEAM not in namespaces:
                watch(agent, namespaces)
                return
            watch(agent, tuple(name for name in namespaces if name != TEAM))
            agent.process.post(events.NamespaceRefused(namespace=TEAM, message="403 Forbidden: on purpose"))
            agent.cluster.timeline.after(ASKED_AGAIN_SECONDS, lambda: again(agent, namespaces))

        def again(agent: SimAgent, namespaces: tuple[str, ...]) -> None:
            if not agent.port.over:
                watching(agent, namespaces)

        monkeypatch.setattr(SimAgent, "_watch_namespaces", watching)


def _begun_anew(monkeypatch: pytest.MonkeyPatch) -> tuple[History, str, Rights]:
    history = History(shown=False)
    history.pod("one")
    cluster = history.until_runs("one")
    rights = Rights(cluster, monkeypatch)
    history.kill_agent(cluster)
    return history, cluster, rights


def test_hd_300_what_runs_there_stays_charged_and_is_run_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    history, cluster, rights = _begun_anew(monkeypatch)
    history.until("its agent serves", lambda: history.connected(cluster), 120.0)
    history.passes(900.0)
    assert history.runs("one") == {cluster}
    assert history.leader.charges("travels") == 500
    rights.given = True
    history.passes(120.0)
    assert history.runs("one") == {cluster}
    history.delete("home", POD, "one")
    history.until("it is gone", lambda: history.workload("one") is None, 200.0)
    assert history.leader.charges("travels") == 0


def test_hd_300_new_work_goes_elsewhere_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    history, cluster, _ = _begun_anew(monkeypatch)
    history.until("its agent serves", lambda: history.connected(cluster), 120.0)
    history.passes(30.0)
    history.pod("two")
    assert history.until_runs("two") != cluster


def test_hd_300_what_is_to_stop_there_is_not_called_stopped_before_it_was_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    history, cluster, rights = _begun_anew(monkeypatch)
    history.until("its agent serves", lambda: history.connected(cluster), 120.0)
    history.delete("home", POD, "one")
    history.passes(600.0)
    assert history.leader.charges("travels") == 500, "it runs there"
    assert history.containers("one") == 1
    rights.given = True
    history.until("it is gone", lambda: history.workload("one") is None, 300.0)
    assert history.containers("one") == 0
