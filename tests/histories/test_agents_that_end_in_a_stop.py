"""Scripted histories: how long quota stays charged when an agent ends while what was deleted is stopped.

Another one is there 23 seconds after it was killed (decision 8). What it finds running it sees end, and how a pod has
ended is said by its status: quota is free within seconds. A Job that is found while it stops says nothing of the pods
that its controller has deleted: it is charged until each node was heard of after a grace and a margin (decision 25).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest

from gatelift_kube.values.resources import JOB, POD
from gatelift_sandbox.kubelet.nodes import STATUS_SECONDS
from gatelift_wire.values.limits import GRACE_SECONDS, KUBELET_MARGIN_SECONDS
from support.sim.history import History

SOON = 3.0
"""An agent is heard, and its manager writes, in less; time is looked at once a second."""
DOUBT_SECONDS = GRACE_SECONDS + KUBELET_MARGIN_SECONDS
RESOURCES = {"Pod": POD, "Job": JOB}
STOPS_IN = 5.0
"""The pods have ended long before the agent is back."""
OUTLIVES = 28.0
"""They end under the eyes of the agent that came back."""


class Times(NamedTuple):
    """Seconds after the deletion."""

    back: float
    ended: float
    free: float


def is_back(history: History, cluster: str) -> bool:
    """Say whether an agent leads there and has listed all."""
    agent = history.agent(cluster)
    return agent.elector is not None and agent.elector.leads() and agent.machine.world.ready


def stop(kind: str, stops_in: float, dies: Callable[[History, str], None]) -> Times:
    """Delete what runs on a worker, let its agent die, and start another one; return when what came."""
    history = History()
    (history.pod if kind == "Pod" else history.job)("one", stops_in=stops_in)
    cluster = history.until_runs("one", kind)
    history.passes(20.0)
    since = history.world.time.now
    deletes = RESOURCES[kind]
    history.delete("home", deletes, "one")
    dies(history, cluster)
    history.until("its agent is dead", lambda: not history.world.alive(cluster))
    history.world.start_agent(cluster)
    times: dict[str, float] = {}
    facts: dict[str, Callable[[], bool]] = {
        "back": lambda: is_back(history, cluster),
        "ended": lambda: history.containers("one", kind) == 0,
        "free": lambda: history.leader.charges("travels") == 0,
    }

    def all_came() -> bool:
        for name, holds in facts.items():
            if name not in times and holds():
                times[name] = history.world.time.now - since
        return len(times) == len(facts)

    history.until("its quota is free and the agent is back", all_came)
    history.until("nothing of it is left", lambda: not history.objects(cluster, deletes))
    history.until("the user's object is gone", lambda: not history.objects("home", deletes))
    return Times(**times)


def at_once(history: History, cluster: str) -> None:
    """Die before it hears that it is to stop anything."""
    history.kill_agent(cluster, again=False)


def after_write(number: int) -> Callable[[History, str], None]:
    """Die when so many writes of the stop have landed, their answers not heard."""
    return lambda history, cluster: history.agent(cluster).dies_after_write(number)


def after(seconds: float) -> Callable[[History, str], None]:
    """Die that long after the deletion."""

    def dies(history: History, cluster: str) -> None:
        history.passes(seconds)
        history.kill_agent(cluster, again=False)

    return dies


def with_its_word_unheard(history: History, cluster: str) -> None:
    """Die when it has seen all end and its manager has not heard it."""
    history.passes(1.0)
    history.cut(cluster)
    history.world.net.break_all(cluster)  # else what has stalled may be heard once that is mended
    history.passes(STOPS_IN)
    history.kill_agent(cluster, again=False)
    history.mend(cluster)


@pytest.mark.parametrize("stops_in", [STOPS_IN, OUTLIVES])
@pytest.mark.parametrize(
    ("kind", "dies"),
    [
        pytest.param("Job", at_once, id="Job, before it hears of it"),
        pytest.param("Pod", at_once, id="Pod, before it hears of it"),
        pytest.param("Pod", after_write(1), id="Pod, deleted there"),
        pytest.param("Pod", after(1.0), id="Pod, a second later"),
    ],
)
def test_quota_is_free_seconds_after_the_agent_is_back_and_the_pods_have_ended(
    kind: str, dies: Callable[[History, str], None], stops_in: float
) -> None:
    found = stop(kind, stops_in, dies)
    assert found.free <= max(found.back, found.ended) + SOON, found


@pytest.mark.parametrize(
    ("kind", "dies"),
    [
        pytest.param("Job", after_write(3), id="Job, its finalizer is off"),
        pytest.param("Job", after_write(4), id="Job, deleted there"),
        pytest.param("Pod", after_write(2), id="Pod, its finalizer is off"),
    ],
)
def test_quota_is_free_seconds_after_the_pods_have_ended_whatever_becomes_of_who_said_so(
    kind: str, dies: Callable[[History, str], None]
) -> None:
    found = stop(kind, STOPS_IN, dies)
    assert found.free <= found.ended + SOON, found


@pytest.mark.parametrize(
    ("stops_in", "dies"),
    [
        pytest.param(STOPS_IN, after_write(1), id="suspended"),
        pytest.param(STOPS_IN, after_write(2), id="suspended, and its controller asked to say so"),
        pytest.param(STOPS_IN, after(1.0), id="a second later"),
        pytest.param(OUTLIVES, after(1.0), id="a second later, and its pods end when it is back"),
        pytest.param(STOPS_IN, with_its_word_unheard, id="its pods have ended, and nobody has heard it"),
    ],
)
def test_a_job_that_is_found_while_it_stops_is_charged_until_its_nodes_were_heard_of(
    stops_in: float, dies: Callable[[History, str], None]
) -> None:
    """One and a half minutes and a heartbeat after the agent is back, and no more."""
    found = stop("Job", stops_in, dies)
    assert found.ended < found.back + DOUBT_SECONDS, "that its pods have ended is not what it waits for"
    assert found.back + DOUBT_SECONDS - SOON <= found.free <= found.back + DOUBT_SECONDS + STATUS_SECONDS + SOON, found
