"""HD-245: somebody takes the finalizer off a Workload that waits, which no policy keeps, and the Workload once it runs.

Where nobody led meanwhile the next leader knows of no Workload: what ran was left alone, uncharged, until a person said
*stop*, and the Workload that was made anew waited for it (drawn seed 8811821).
"""

from __future__ import annotations

import pytest

from gatelift_kube.values.resources import CLUSTER_QUEUE, WORKLOAD
from histories.test_vanished_ends import KINDS, NO_FINALIZERS
from support.sim.history import History

QUEUES = pytest.mark.parametrize("queue", ["travels", "stays"])
OURS = "kueue.x-k8s.io/resource-in-use"
OTHERS = "example.com/theirs"


def holds(history: History, queue: str, policy: str) -> None:
    history.edit("home", CLUSTER_QUEUE, queue, {"spec": {"stopPolicy": policy}})


def waits_without(history: History, kind: str, queue: str, finalizers: list[str] | None = None) -> str:
    """Let a user's object wait, and a person take the finalizer off its Workload; return the Workload's name."""
    holds(history, queue, "Hold")
    (history.pod if kind == "Pod" else history.job)("one", queue)
    history.until("it has a Workload", lambda: history.workload("one", kind) is not None)
    history.passes(5.0)
    name = str((history.workload("one", kind) or {})["metadata"]["name"])
    history.edit("home", WORKLOAD, name, {"metadata": {"finalizers": finalizers}} if finalizers else NO_FINALIZERS)
    history.passes(5.0)
    holds(history, queue, "None")
    return name


@QUEUES
@KINDS
def test_hd_245_what_runs_is_known_to_the_next_leader_though_its_workload_was_deleted_while_nobody_led(
    kind: str, queue: str
) -> None:
    history = History()
    name = waits_without(history, kind, queue)
    history.until_runs("one", kind)
    uid = (history.workload("one", kind) or {})["metadata"]["uid"]
    history.passes(5.0)
    history.kill_leader()
    history.delete("home", WORKLOAD, name)
    left = history.workload("one", kind)
    assert left is not None, "it is kept until nothing of it runs"
    assert left["metadata"]["uid"] == uid
    history.until("another one leads", history.leads)
    history.until("it goes", lambda: all(each["metadata"]["uid"] != uid for each in history.objects("home", WORKLOAD)))


@KINDS
def test_hd_245_finalizers_of_others_stay(kind: str) -> None:
    history = History()
    waits_without(history, kind, "travels", [OTHERS])
    history.until_runs("one", kind)
    workload = history.workload("one", kind) or {}
    assert workload["metadata"]["finalizers"] == [OTHERS, OURS]
