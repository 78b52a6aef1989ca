"""Drawn histories of an elastic Job: it is resized again and again while agents, managers and wires break (SL-54)."""

from __future__ import annotations

import random

import pytest

from gatelift_kube.values.resources import POD
from support.sim.sized_history import SizedHistory

STEPS = 14


def a_walk(history: SizedHistory, cluster: str, seed: int) -> int:
    """Let things happen; return the last size that was wanted."""
    rng = random.Random(seed)  # noqa: S311 - a history to be drawn again
    wanted = 4
    for _ in range(STEPS):
        match rng.choice(("resize", "resize", "resize", "agent", "manager", "cut", "mend", "pod", "write")):
            case "resize":
                wanted = rng.randint(0, 10)
                history.resize(wanted)
            case "agent" if cluster != "local":
                history.kill_agent(cluster)
            case "manager" if history.leads():
                history.kill_leader()
            case "cut" if cluster != "local":
                history.cut(cluster)
            case "mend" if cluster != "local":
                history.mend(cluster)
            case "pod":
                pods = sorted(one["metadata"]["name"] for one in history.objects(cluster, POD))
                if pods:
                    history.delete(cluster, POD, rng.choice(pods))
            case "write" if cluster != "local" and history.world.alive(cluster):
                history.agent(cluster).dies_after_write(rng.randint(1, 6))
        history.passes(rng.choice((0.02, 0.1, 0.3, 2.0, 20.0)))
        if cluster != "local" and not history.world.alive(cluster):
            history.world.start_agent(cluster)
    return wanted


def comes_to_rest(history: SizedHistory, cluster: str, wanted: int) -> None:
    """Mend what is broken, start who is dead, and wait until all is as it is wanted."""
    if cluster != "local":
        history.mend(cluster)
    for _ in range(15):  # who was to die after a write may do so yet
        history.passes(20.0)
        if cluster != "local" and not history.world.alive(cluster):
            history.world.start_agent(cluster)
    history.rests(wanted, 900.0)


@pytest.mark.parametrize("queue", ["travels", "stays"])
@pytest.mark.parametrize("seed", range(6))
def test_sl_54_whatever_happens_enough_is_charged_and_it_comes_to_rest(
    monkeypatch: pytest.MonkeyPatch, queue: str, seed: int
) -> None:
    """SL-54, SL-20, SL-50: the outside account judges each write."""
    history = SizedHistory(monkeypatch, queue=queue)
    cluster = history.begins(4, stops_in=2.0)
    history.account.first = set()
    wanted = a_walk(history, cluster, seed)
    comes_to_rest(history, cluster, wanted)
