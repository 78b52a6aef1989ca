"""The stand-in kubelet's deciding part: `handle(event, now) -> commands` and `next_deadline()`. Pure.

As a kubelet does: a pod bound to one of its nodes starts; its status is written when it runs and when it ends; a pod
that is being deleted gets SIGTERM with its grace period and, once its containers have ended and that is written, is
deleted with grace 0 under its UID (finalizers may keep the object: that is their business). A pod that vanished from
the API is stopped too. At most one write per pod is under way.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf

import msgspec

from gatelift_kube.deciding.writes import (
    ApiEvent,
    Create,
    Delete,
    ObjectGone,
    ObjectSeen,
    Patch,
    Synced,
    WriteDone,
    WriteError,
    WriteFailed,
)
from gatelift_kube.objects import core
from gatelift_kube.values.resources import NODE, POD, ObjectRef
from gatelift_sandbox import behaviour
from gatelift_sandbox.behaviour import SIGKILL_EXIT, Behaviour, BehaviourError
from gatelift_sandbox.kubelet import documents, pods
from gatelift_sandbox.kubelet.documents import NodeSettings
from gatelift_sandbox.kubelet.nodes import StandInNode
from gatelift_sandbox.kubelet.pods import Ended, Run
from gatelift_sandbox.kubelet.views import PodView, pod_view
from gatelift_sandbox.records import EPOCH_LABEL, WORKLOAD_UID_LABEL, RunRecord

CONFLICT_SECONDS = 0.05
"""Another write came between: its watch event arrives within milliseconds, then the status is written again."""
FAILURE_SECONDS = 1.0
"""After any other failure of a write; the executor has already retried what a moment heals."""
UNREADABLE_EXIT = 128
NEVER_STARTED = "The pod was deleted before its containers were started"
TERMINAL = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class TimePassed:
    """`next_deadline()` has come."""


@dataclass(frozen=True, slots=True)
class AppendRecord:
    """Append a record: containers have started, or have stopped."""

    record: RunRecord


Event = ApiEvent | TimePassed
Command = Create | Patch | Delete | AppendRecord
_Stage = tuple[bool, int, bool]
"""What a status says: ended, number of restarts, waiting for a restart."""


@dataclass(slots=True)
class _Pod:
    view: PodView
    run: Run | None = None  # None: not started by us, or over before we saw it
    over: bool = False  # its containers have ended or never will start
    gone: bool = False
    written: _Stage | None = None
    writing: _Stage | None = None
    write_id: int | None = None
    delete_sent: bool = False
    grace_asked: float = inf
    retry_at: float = 0.0
    wake_at: float = inf


class KubeletMachine:
    """All nodes and pods of one kubelet process. `wall_offset` is wall time minus monotonic time, for what people read.

    `earlier` holds the runs that a former life of this kubelet recorded, so that a restart goes on with them.
    """

    def __init__(
        self,
        cluster: str,
        nodes: Sequence[NodeSettings],
        *,
        now: float,
        wall_offset: float,
        earlier: Iterable[RunRecord] = (),
    ) -> None:
        self._cluster = cluster
        self._wall_offset = wall_offset
        self._nodes = {settings.name: StandInNode(settings, now) for settings in nodes}
        self._earlier = {r.pod_uid: r for r in earlier if r.cluster == cluster and r.stopped is None}
        self._pods: dict[str, _Pod] = {}
        self._writes: dict[int, Callable[[WriteDone | WriteFailed, float], list[Command]]] = {}
        self._last_id = 0
        self._started = 0
        self._heap: list[tuple[float, str]] = []

    def handle(self, event: Event, now: float) -> list[Command]:
        """Take one event and return what to do. Every write is answered by WriteDone or WriteFailed."""
        match event:
            case ObjectSeen(resource=resource) if resource == POD:
                return self._seen(pod_view(event.raw), now)
            case ObjectGone(resource=resource) if resource == POD:
                return self._gone(event.object.metadata.uid, now)
            case ObjectSeen(resource=resource) if resource == NODE and isinstance(event.object, core.Node):
                return self._node_seen(event.object.metadata.name, event.object.metadata.annotations, now)
            case Synced(resource=resource) if resource == POD:
                return self._close_forgotten(now)
            case WriteDone() | WriteFailed():
                answered = self._writes.pop(event.write_id, None)
                return answered(event, now) if answered is not None else []
            case TimePassed():
                return self._due(now)
            case _:
                return []

    def next_deadline(self) -> float:
        """Return when `TimePassed` is wanted, inf if never."""
        while self._heap and self._stale(*self._heap[0]):
            heapq.heappop(self._heap)
        first = self._heap[0][0] if self._heap else inf
        return min([first, *(node.next_moment() for node in self._nodes.values())])

    @property
    def running(self) -> int:
        """How many pods have containers that have not ended."""
        return sum(1 for pod in self._pods.values() if not pod.over)

    @property
    def lost(self) -> frozenset[str]:
        """Names of the nodes that are cut off."""
        return frozenset(name for name, node in self._nodes.items() if node.lost)

    def restored(self, now: float) -> None:
        """Take that the API server was put back to a backup: versions go back, and what was told has to be told again.

        What is seen next counts, whatever its version is; a kubelet compares what it knows with what is served.
        """
        for pod in self._pods.values():
            forgotten = msgspec.structs.replace(pod.view.metadata, resource_version="0")
            pod.view = msgspec.structs.replace(pod.view, metadata=forgotten)
            pod.written, pod.delete_sent = None, False
            if (
                pod.over and pod.run is None
            ):  # seen ended, never run here: it says so of what comes back as running, too
                pod.run = Run(behaviour=Behaviour(), ip="", started=now, running_since=None)
                code = 0 if pod.view.status.phase == TERMINAL[0] else SIGKILL_EXIT
                pod.run.ended = Ended(exit_code=code, reason=pods.NEVER_STARTED, at=now)

    # --- what happened

    def _seen(self, view: PodView, now: float) -> list[Command]:
        if view.spec.node_name not in self._nodes:
            return self._gone(view.metadata.uid, now)  # a backup knows of no binding: who watches a node sees it go
        pod = self._pods.get(view.metadata.uid)
        if pod is None:
            pod = self._pods[view.metadata.uid] = _Pod(view)
        elif _newer(view, pod.view):
            pod.view, pod.gone = view, False
        return self._look(pod, now)

    def _gone(self, uid: str, now: float) -> list[Command]:
        pod = self._pods.get(uid)
        if pod is None:
            return []
        pod.gone = True
        return self._look(pod, now)

    def _node_seen(self, name: str, annotations: Mapping[str, str], now: float) -> list[Command]:
        node = self._nodes.get(name)
        if node is None:
            return []
        lost = annotations.get(behaviour.LOST) == "true"
        if lost == node.lost:
            return []
        node.set_lost(lost, now)
        commands = self._heartbeat(node, now)
        for pod in [pod for pod in self._pods.values() if pod.view.spec.node_name == name]:
            commands += self._look(pod, now)
        return commands

    def _close_forgotten(self, now: float) -> list[Command]:
        """End runs of a former life whose pods are no longer there: a kubelet removes such containers as it starts."""
        forgotten = [record for uid, record in self._earlier.items() if uid not in self._pods]
        for record in forgotten:
            del self._earlier[record.pod_uid]
        return [AppendRecord(msgspec.structs.replace(r, stopped=now, exit_code=SIGKILL_EXIT)) for r in forgotten]

    def _due(self, now: float) -> list[Command]:
        commands: list[Command] = []
        for node in self._nodes.values():
            commands += self._heartbeat(node, now)
        while self._heap and self._heap[0][0] <= now:
            when, uid = heapq.heappop(self._heap)
            pod = self._pods.get(uid)
            if pod is not None and pod.wake_at == when:
                pod.wake_at = inf
                commands += self._look(pod, now)
        return commands

    # --- what follows from the state alone

    def _look(self, pod: _Pod, now: float) -> list[Command]:
        lost = self._nodes[pod.view.spec.node_name].lost
        commands: list[Command] = []
        if not lost:
            commands += self._begin(pod, now)
            self._stop_if_asked(pod, now)
        commands += self._advance(pod, now)
        if pod.gone and pod.over:
            if not lost:
                self._pods.pop(pod.view.metadata.uid, None)
                return commands
        elif not lost and not pod.gone and pod.write_id is None and pod.retry_at <= now:
            commands += self._write(pod)
        self._wake(pod, lost=lost, now=now)
        return commands

    def _begin(self, pod: _Pod, now: float) -> list[Command]:
        if pod.run is not None or pod.over:
            return []
        view = pod.view
        deleted = pod.gone or view.metadata.deletion_timestamp is not None
        if view.status.phase in TERMINAL:
            pod.over = True
            return []
        self._started += 1
        ip = f"10.244.{self._started // 250 % 250}.{self._started % 250 + 1}"
        if deleted and view.status.phase != "Running":  # never to be started; a kubelet says so before it lets it go
            pod.run = Run(behaviour=Behaviour(), ip=ip, started=now, running_since=None)
            pod.run.ended = Ended(exit_code=SIGKILL_EXIT, reason=pods.NEVER_STARTED, at=now, message=NEVER_STARTED)
            pod.over = True
            return []
        try:
            told = behaviour.from_annotations(view.metadata.annotations)
        except BehaviourError as problem:
            pod.run = Run(behaviour=Behaviour(), ip=ip, started=now, running_since=None)
            pod.run.ended = Ended(exit_code=UNREADABLE_EXIT, reason=pods.UNREADABLE, at=now, message=str(problem))
            pod.over = True
            return []
        if view.status.phase == "Running":
            pod.run = pods.resumed(view, told, ip=ip, now=now, wall_offset=self._wall_offset)
            pod.written = _stage(pod.run)
            known = self._earlier.pop(view.metadata.uid, None)
            if known is not None:
                pod.run.started = known.started
                return []
        else:
            pod.run = Run(behaviour=told, ip=ip, started=now, running_since=now)
        return [AppendRecord(self._record(view, pod.run))]

    def _stop_if_asked(self, pod: _Pod, now: float) -> None:
        if pod.run is None or pod.over or not (pod.gone or pod.view.metadata.deletion_timestamp is not None):
            return
        grace = pods.grace_of(pod.view)
        if grace < pod.grace_asked:
            pod.grace_asked = grace
            pod.run.stop(grace, now)

    def _advance(self, pod: _Pod, now: float) -> list[Command]:
        if pod.run is None or pod.over:
            return []
        pod.run.advance(pod.view, now)
        if pod.run.ended is None:
            return []
        pod.over = True
        return [AppendRecord(self._record(pod.view, pod.run))]

    def _write(self, pod: _Pod) -> list[Command]:
        view, run = pod.view, pod.run
        ref = ObjectRef(POD, view.key)
        if run is not None and pod.written != _stage(run):
            pod.writing = _stage(run)
            pod.write_id = self._new_id(lambda outcome, at: self._status_answered(pod, outcome, at))
            body = documents.pod_status(view, run, self._wall_offset)
            return [Patch(write_id=pod.write_id, ref=ref, body=body, subresource="status")]
        if pod.over and view.metadata.deletion_timestamp is not None and not pod.delete_sent:
            pod.delete_sent = True
            pod.write_id = self._new_id(lambda outcome, at: self._delete_answered(pod, outcome, at))
            return [Delete(write_id=pod.write_id, ref=ref, uid=view.metadata.uid, grace_seconds=0)]
        return []

    def _status_answered(self, pod: _Pod, outcome: WriteDone | WriteFailed, now: float) -> list[Command]:
        pod.write_id = None
        if isinstance(outcome, WriteDone):
            pod.written = pod.writing
            answered = pod_view(outcome.raw) if outcome.raw else pod.view
            if _newer(answered, pod.view):  # the watch may have told what came after it
                pod.view = answered
        else:
            changed = outcome.error in (WriteError.CONFLICT, WriteError.PRECONDITION)
            pod.retry_at = now + (CONFLICT_SECONDS if changed else FAILURE_SECONDS)
        return self._look(pod, now)

    def _delete_answered(self, pod: _Pod, outcome: WriteDone | WriteFailed, now: float) -> list[Command]:
        pod.write_id = None
        # not found, or another UID: it is gone, and the watch will say so
        if isinstance(outcome, WriteFailed) and outcome.error not in (WriteError.NOT_FOUND, WriteError.PRECONDITION):
            pod.delete_sent = False
            pod.retry_at = now + FAILURE_SECONDS
        return self._look(pod, now)

    def _heartbeat(self, node: StandInNode, now: float) -> list[Command]:
        def new_id() -> int:
            return self._new_id(lambda outcome, at: self._node_answered(node, outcome, at))

        return [*node.writes(now, now + self._wall_offset, new_id)]

    def _node_answered(self, node: StandInNode, outcome: WriteDone | WriteFailed, now: float) -> list[Command]:
        if isinstance(outcome, WriteDone):
            node.done(outcome.write_id)
        else:
            node.failed(outcome.write_id, outcome.error, now)
        return self._heartbeat(node, now)

    # --- bookkeeping

    def _new_id(self, answered: Callable[[WriteDone | WriteFailed, float], list[Command]]) -> int:
        self._last_id += 1
        self._writes[self._last_id] = answered
        return self._last_id

    def _wake(self, pod: _Pod, *, lost: bool, now: float) -> None:
        when = pod.run.next_moment() if pod.run is not None else inf
        if not lost and pod.retry_at > now and pod.write_id is None:
            when = min(when, pod.retry_at)
        if when < inf and when != pod.wake_at:
            heapq.heappush(self._heap, (when, pod.view.metadata.uid))
        pod.wake_at = when

    def _stale(self, when: float, uid: str) -> bool:
        pod = self._pods.get(uid)
        return pod is None or pod.wake_at != when

    def _record(self, view: PodView, run: Run) -> RunRecord:
        labels, epoch = view.metadata.labels, view.metadata.labels.get(EPOCH_LABEL, "0")
        return RunRecord(
            cluster=self._cluster,
            node=view.spec.node_name,
            namespace=view.metadata.namespace,
            name=view.metadata.name,
            pod_uid=view.metadata.uid,
            workload_uid=labels.get(WORKLOAD_UID_LABEL, ""),
            epoch=int(epoch) if epoch.isdecimal() else 0,
            started=run.started,
            stopped=None if run.ended is None else run.ended.at,
            exit_code=None if run.ended is None else run.ended.exit_code,
        )


def _stage(run: Run) -> _Stage:
    return run.ended is not None, run.restarts, run.running_since is None


def _newer(one: PodView, other: PodView) -> bool:
    """Compare resourceVersions, which are numbers that grow; a watch may tell again what the answer to a write told."""
    versions = one.metadata.resource_version, other.metadata.resource_version
    if all(version.isdecimal() for version in versions):
        return int(versions[0]) >= int(versions[1])
    return True
