"""HD-45. No answer makes the agent write the same again without time passing, whatever the write is for.

Every purpose is met by every failure, and by a success that changes nothing (a webhook of the cluster that undoes it, a
probe that teaches nothing), for as long as it goes on asking.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from gatelift_agent.core.values import commands, events
from gatelift_agent.core.values.asked import Asked, WritePurpose
from gatelift_kube.deciding.writes import ApiWrite, Create, Patch, WriteError
from gatelift_kube.values.resources import JOB, POD
from gatelift_wire.values import messages as m
from gatelift_wire.values.keys import LABEL_EPOCH, PlacementKey
from gatelift_wire.values.single import SetUserGates
from support.agent.drivers import Cluster
from support.agent.stage import Stage
from support.agent.values import KEY, NAMESPACE_NAME, ORIGIN, POD_SPEC

SECONDS = 120.0
WRITES_MAX = 80
"""Of one purpose to one object in `SECONDS`: the shortest steady pause of any of them is two seconds."""

Act = Callable[[Stage], object]


def _running(stage: Stage) -> None:
    stage.place()
    stage.run()


def _job_runs(stage: Stage) -> Cluster:
    cluster = Cluster(stage, finishes=False)
    stage.place(kind="Job", name="j")
    while cluster.react():
        pass
    return cluster


def _create(stage: Stage) -> None:
    stage.place()


def _name_is_taken(stage: Stage) -> None:
    stage.fail = _first(stage, lambda write: isinstance(write, Create) and write.ref.resource == POD, stage.fail)
    stage.place()


def _first(stage: Stage, chosen: Callable[[ApiWrite], bool], otherwise: Callable[[ApiWrite], WriteError | None]) -> Any:
    """Answer the chosen writes that the name is taken, and all others as they were to be."""
    return lambda write: WriteError.ALREADY_EXISTS if chosen(write) else otherwise(write)


def _unlabelled(stage: Stage) -> None:
    stage.change(POD, "p", {"metadata": {"labels": None}})


def _unlabelled_pod(stage: Stage) -> None:
    [pod, *_] = stage.store.look_all(("", "pods"))
    stage.change(POD, pod["metadata"]["name"], {"metadata": {"labels": None}})


def _pod_is_gone(stage: Stage) -> None:
    [pod, *_] = stage.store.look_all(("", "pods"))
    stage.remove(POD, pod["metadata"]["name"], grace=0)


def _gates(stage: Stage) -> None:
    stage.place(spec={**POD_SPEC, "schedulingGates": [{"name": "example.com/own"}]})
    stage.send(SetUserGates(key=KEY, name="p", gates=()))


def _stop(stage: Stage) -> None:
    stage.send(m.Stop(key=KEY, reason="Evicted"))


def _create_and_stop(stage: Stage) -> None:
    _create(stage)
    _stop(stage)


def _stop_and_end(stage: Stage) -> None:
    _stop(stage)
    for pod in stage.store.look_all(("", "pods")):
        stage.remove(POD, pod["metadata"]["name"])
    cluster = Cluster(stage, finishes=False)
    while cluster.react():
        pass


def _orphan(stage: Stage) -> None:
    stage.remove(JOB, "j", propagation="Orphan")
    for pod in stage.store.look_all(("", "pods")):
        stage.change(POD, pod["metadata"]["name"], {"metadata": {"ownerReferences": None}})
    stage.change(JOB, "j", {"metadata": {"finalizers": None}})


def _forget(stage: Stage) -> None:
    stage.finish()
    stage.send(m.Forget(key=KEY))


def _stray(stage: Stage) -> None:
    labels = {"gatelift.dev/origin": ORIGIN, "gatelift.dev/workload-uid": "w-9", "gatelift.dev/epoch": "1"}
    meta = {"name": "p", "namespace": NAMESPACE_NAME, "labels": labels, "finalizers": ["gatelift.dev/report"]}
    stage.create(POD, {"metadata": meta, "spec": dict(POD_SPEC)})
    stage.settle()
    stage.place()


def _cut_and_deleted(stage: Stage) -> None:
    stage.cut_stream()
    stage.finish()
    stage.remove(POD, "p")


def _nothing(_stage: Stage) -> None:
    pass


WAYS: dict[WritePurpose, list[tuple[Act, Act]]] = {
    WritePurpose.CREATE: [(_nothing, _create)],
    WritePurpose.SAMPLE: [(_nothing, lambda stage: stage.place(kind="Job", name="j"))],
    WritePurpose.WHY: [(_job_runs, _pod_is_gone)],
    WritePurpose.PROBE: [(_running, _unlabelled), (_nothing, _name_is_taken)],
    WritePurpose.LABELS: [
        (_running, lambda stage: stage.change(POD, "p", {"metadata": {"labels": {LABEL_EPOCH: "2"}}}))
    ],
    WritePurpose.PUT_BACK: [(_job_runs, lambda stage: stage.change(JOB, "j", {"spec": {"parallelism": 6}}))],
    WritePurpose.TOLD: [(_running, lambda stage: stage.change(POD, "p", {"spec": {"activeDeadlineSeconds": 77}}))],
    WritePurpose.LIFT: [(_nothing, _create), (_nothing, lambda stage: stage.place(kind="Job", name="j"))],
    WritePurpose.GATES: [(_nothing, _gates)],
    WritePurpose.STOP: [(_running, _stop), (_job_runs, _stop), (_nothing, _create_and_stop)],
    WritePurpose.PODS: [(_job_runs, _stop_and_end)],
    WritePurpose.NAMESPACE: [(_job_runs, _stop_and_end)],
    WritePurpose.CHILD_LABELS: [(_job_runs, _unlabelled_pod)],
    WritePurpose.CHILD: [(_job_runs, _orphan)],
    WritePurpose.REMOVE: [(_running, _forget)],
    WritePurpose.REMOVE_STRAY: [(_nothing, _stray)],
    WritePurpose.UNFINALIZE: [(_running, _forget), (_running, _cut_and_deleted)],
    WritePurpose.RECORD: [(_running, _cut_and_deleted)],
    WritePurpose.STATE: [(_nothing, _create)],
}
"""What brings a write of each purpose about: what happens before, and what then."""

BACKENDS = {WritePurpose.ROOM}
"""When a backend writes again it says itself (`Verdict.again_at`): `tests/agent/test_agent_admission.py`."""

LOCAL_ONLY = {WritePurpose.HOLD, WritePurpose.NOTE, WritePurpose.RESTORE, WritePurpose.SAY_END}
"""The pauses of the first two are those of `WritePurpose.LABELS`, with which they share their answers; the histories of
HD-73 and HD-196 bring them about. The last has those of `WritePurpose.STOP`: `tests/agent/test_agent_restore.py`."""

DRIVERS = {WritePurpose.TAKE_IN, WritePurpose.TURN_AWAY}
"""Of pods that a driver makes at a worker: `tests/agent/test_agent_made_here.py`."""

SIZES = {WritePurpose.SIZE, WritePurpose.UNGATE}
"""Of elastic work, which is not served: `tests/agent/test_agent_size_writes.py` tries each answer."""

READS = {WritePurpose.PODS, WritePurpose.NAMESPACE}
"""A read has one failure: that it could not be carried out."""

ANSWERS = [*WriteError, None]
ROWS = [
    pytest.param(purpose, number, answer, id=f"{purpose.name}-{number}-{answer.name if answer else 'no effect'}")
    for purpose, ways in WAYS.items()
    for number in range(len(ways))
    for answer in ([WriteError.UNKNOWN] if purpose in READS else ANSWERS)
]


class Counting(Stage):
    """A stage that counts what is asked for, by purpose, object and moment."""

    def __init__(self) -> None:
        self.counted: Counter[tuple[Asked, float]] = Counter()
        super().__init__()

    def asked(self, write_id: int) -> Asked | None:
        return self.machine.world.writes.look(write_id)

    def _carry(self, command: commands.Command) -> None:
        write_id = getattr(command, "write_id", getattr(command, "read_id", 0))
        asked = self.asked(write_id)
        if asked is not None:
            self.counted[asked, self.now] += 1
        if isinstance(command, commands.ReadPods) and self.unread:
            self.events.append(events.PodsNotRead(read_id=command.read_id, message="told to fail"))
        elif isinstance(command, commands.ReadNamespace) and self.unread:
            self.events.append(events.NamespaceNotRead(read_id=command.read_id, message="told to fail"))
        else:
            super()._carry(command)

    unread = False


def test_each_purpose_of_a_write_is_tried() -> None:
    assert WAYS.keys() | LOCAL_ONLY | BACKENDS | DRIVERS | SIZES == set(WritePurpose)
    assert not WAYS.keys() & (LOCAL_ONLY | BACKENDS | DRIVERS | SIZES)


@pytest.mark.parametrize(("purpose", "number", "answer"), ROWS)
def test_hd_45_no_answer_makes_the_agent_write_the_same_again_at_once(
    purpose: WritePurpose, number: int, answer: WriteError | None
) -> None:
    stage = Counting()
    stage.start()
    before, then = WAYS[purpose][number]

    def chosen(write: ApiWrite) -> bool:
        asked = stage.asked(write.write_id)
        return asked is not None and asked.purpose is purpose

    before(stage)
    stage.counted.clear()
    stage.unread = purpose in READS
    if answer is None:
        stage.idle = chosen
    else:
        stage.fail = lambda write: answer if chosen(write) else None
    then(stage)
    stage.pass_seconds(SECONDS)
    mine = [(asked, at) for asked, at in stage.counted.elements() if asked.purpose is purpose]
    assert mine, "the write was brought about"
    assert max(Counter((one.purpose, one.name, one.form, at) for one, at in stage.counted.elements()).values()) == 1
    assert max(Counter((one.name, one.form) for one, _ in mine).values()) <= WRITES_MAX


def test_hd_45_a_write_without_effect_has_longer_and_longer_pauses() -> None:
    stage = Counting()
    stage.start()
    stage.idle = lambda write: isinstance(write, Patch) and write.ref.resource == POD
    stage.place()
    stage.pass_seconds(SECONDS)
    at = sorted(moment for asked, moment in stage.counted.elements() if asked.purpose is WritePurpose.LIFT)
    pauses = [later - earlier for earlier, later in pairwise(at)]
    assert pauses[0] > 0
    assert pauses == sorted(pauses)
    assert pauses[-1] == 30.0
    stage.idle = lambda _write: False
    stage.pass_seconds(40.0)
    assert stage.state(PlacementKey("w-1", 1)) == "Running"
