"""The cluster in memory that fake agents work on."""

from __future__ import annotations

import json

import msgspec
from bench.fake_worker import FakeWorker
from bench.memory import placed_pod

from gatelift_agent.core.values import events
from gatelift_kube.deciding.writes import (
    Create,
    Delete,
    ObjectGone,
    ObjectSeen,
    Patch,
    PatchKind,
    WriteDone,
    WriteFailed,
)
from gatelift_kube.objects.core import Pod
from gatelift_kube.values.resources import POD, ObjectKey, ObjectRef
from support.until import until

NAMESPACE = "bench"
REF = ObjectRef(POD, ObjectKey(NAMESPACE, "placed-00001"))
LIFT = json.dumps([{"op": "remove", "path": "/spec/schedulingGates"}]).encode()


def worker(told: list[events.Event], run_seconds: float = 0.0) -> FakeWorker:
    made = FakeWorker(told.append, NAMESPACE, run_seconds)
    made.watch_cluster()
    made.watch_namespaces([NAMESPACE])
    return made


def phases(told: list[events.Event]) -> list[str]:
    return [
        event.object.status.phase for event in told if isinstance(event, ObjectSeen) and isinstance(event.object, Pod)
    ]


async def test_a_pod_that_is_let_go_runs_and_ends_and_the_agent_sees_each_step() -> None:
    told: list[events.Event] = []
    cluster = worker(told)
    cluster.write(Create(write_id=1, ref=REF, body=placed_pod(1)))
    await until(lambda: any(isinstance(event, WriteDone) for event in told))
    assert phases(told) == ["Pending"], "a gated pod does not run"
    cluster.write(Patch(write_id=2, ref=REF, body=LIFT, kind=PatchKind.JSON))
    await until(lambda: "Succeeded" in phases(told))
    assert phases(told) == ["Pending", "Pending", "Pending", "Running", "Succeeded"], (
        "created, lifted, bound, running, over"
    )


async def test_a_pod_that_is_deleted_is_gone_once_nothing_holds_it() -> None:
    told: list[events.Event] = []
    cluster = worker(told)
    cluster.write(Create(write_id=1, ref=REF, body=placed_pod(1)))
    body = msgspec.json.encode({"metadata": {"finalizers": None}})
    cluster.write(Patch(write_id=2, ref=REF, body=body))
    await until(lambda: sum(isinstance(event, WriteDone) for event in told) == 2)
    (pod, *_) = [event.object for event in told if isinstance(event, ObjectSeen) and event.resource == POD]
    cluster.write(Delete(write_id=3, ref=REF, uid=pod.metadata.uid))
    await until(lambda: any(isinstance(event, ObjectGone) for event in told))


async def test_a_write_that_cannot_be_carried_out_is_answered_as_failed() -> None:
    told: list[events.Event] = []
    cluster = worker(told)
    cluster.write(Patch(write_id=1, ref=REF, body=LIFT, kind=PatchKind.JSON))
    await until(lambda: any(isinstance(event, WriteFailed) for event in told))
