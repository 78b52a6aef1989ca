"""A stand-in kubelet's machine with an imagined API server and a clock of its own."""

from __future__ import annotations

import json
from typing import Any

from gatelift_kube.deciding.writes import (
    Create,
    Delete,
    ObjectGone,
    ObjectSeen,
    Patch,
    WriteDone,
    WriteError,
    WriteFailed,
)
from gatelift_kube.objects import core
from gatelift_kube.objects.meta import ObjectMeta
from gatelift_kube.values.resources import LEASE, NODE, POD
from gatelift_sandbox.behaviour import Behaviour, as_annotations
from gatelift_sandbox.kubelet.documents import NodeSettings
from gatelift_sandbox.kubelet.machine import AppendRecord, Command, KubeletMachine, TimePassed
from gatelift_sandbox.records import RunRecord

WALL = 1_800_000_000.0
NODE_SETTINGS = NodeSettings(name="n0", capacity={"cpu": "8", "memory": "32Gi", "pods": "110"})


class Rig:
    """A machine, the pods of an imagined API server, and the time."""

    def __init__(self, earlier: tuple[RunRecord, ...] = ()) -> None:
        self.now = 100.0
        self.machine = KubeletMachine("c", [NODE_SETTINGS], now=self.now, wall_offset=WALL, earlier=earlier)
        self.pods: dict[str, dict[str, Any]] = {}
        self.version = 0
        self.notes: list[RunRecord] = []
        self.pending: list[Create | Patch | Delete] = []
        self._take(self.machine.handle(TimePassed(), self.now))
        for write in self.take_writes():
            self.done(write)

    def a_pod(self, name: str = "p", behaviour: Behaviour | None = None, **fields: Any) -> dict[str, Any]:
        """Make a bound pod that nobody has seen yet."""
        metadata = {
            "name": name,
            "namespace": "ns",
            "uid": f"uid-{name}",
            "labels": {"gatelift.dev/workload-uid": "w", "gatelift.dev/epoch": "2"},
            "annotations": as_annotations(behaviour or Behaviour()),
            **fields.pop("metadata", {}),
        }
        spec = {
            "nodeName": "n0",
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 30,
            "containers": [{"name": "main", "image": "i"}],
            **fields.pop("spec", {}),
        }
        status = {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True"}], **fields}
        self.pods[name] = {"metadata": metadata, "spec": spec, "status": status}
        return self.pods[name]

    def see(self, name: str = "p") -> None:
        """Let the watch tell of the pod as it is now."""
        self.version += 1
        pod = self.pods[name]
        pod["metadata"]["resourceVersion"] = str(self.version)
        raw = json.dumps(pod).encode()
        self._take(self.machine.handle(ObjectSeen(POD, core.Pod(), raw), self.now))

    def delete(self, name: str = "p", grace: int = 30) -> None:
        """Mark the pod as being deleted, as the API server does."""
        self.pods[name]["metadata"] |= {
            "deletionTimestamp": "2027-01-15T08:00:00Z",
            "deletionGracePeriodSeconds": grace,
        }
        self.see(name)

    def vanish(self, name: str = "p") -> None:
        """Let the watch tell that the pod is gone."""
        pod = core.Pod(metadata=ObjectMeta(name=name, namespace="ns", uid=f"uid-{name}"))
        self._take(self.machine.handle(ObjectGone(POD, pod), self.now))

    def node(self, **annotations: str) -> None:
        """Let the watch tell of the node."""
        node = core.Node(metadata=ObjectMeta(name="n0", annotations=annotations))
        self._take(self.machine.handle(ObjectSeen(NODE, node, b""), self.now))

    def pass_time(self, seconds: float) -> None:
        """Let time go on from deadline to deadline; heartbeats succeed unseen."""
        until = self.now + seconds
        for _ in range(1000):
            deadline = self.machine.next_deadline()
            if deadline > until:
                break
            assert deadline >= self.now, "a deadline in the past keeps the loop busy"
            self.now = max(deadline, self.now)
            self._take(self.machine.handle(TimePassed(), self.now))
            for write in [w for w in self.pending if w.ref.resource in (NODE, LEASE)]:
                self.pending.remove(write)
                self.done(write)
        else:
            raise AssertionError("a thousand deadlines without an end")
        self.now = until

    def take_writes(self) -> list[Create | Patch | Delete]:
        """Return the writes asked for since the last call."""
        found, self.pending = self.pending, []
        return found

    def write(self) -> Create | Patch | Delete:
        """Return the one write asked for."""
        (only,) = self.take_writes()
        return only

    def done(self, write: Create | Patch | Delete) -> None:
        """Let the write happen; a status patch changes the pod, and the answer brings its new version."""
        self.answer(write, self.carry_out(write))

    def carry_out(self, write: Create | Patch | Delete) -> bytes:
        """Let the write happen, of which nobody hears yet; return what the answer brings."""
        raw = b""
        if isinstance(write, Patch) and write.ref.resource == POD:
            self.version += 1
            pod = self.pods[write.ref.key.name]
            pod["status"] |= json.loads(write.body)["status"]
            pod["metadata"]["resourceVersion"] = str(self.version)
            raw = json.dumps(pod).encode()
        return raw

    def answer(self, write: Create | Patch | Delete, raw: bytes) -> None:
        """Let the answer to a write that happened come."""
        self._take(self.machine.handle(WriteDone(write_id=write.write_id, object=None, raw=raw), self.now))

    def fail(self, write: Create | Patch | Delete, error: WriteError) -> None:
        """Let the write fail."""
        self._take(self.machine.handle(WriteFailed(write_id=write.write_id, error=error, message=""), self.now))

    def run(self, name: str = "p", behaviour: Behaviour | None = None, **fields: Any) -> None:
        """Bring a pod to Running."""
        self.a_pod(name, behaviour, **fields)
        self.see(name)
        self.done(self.write())
        assert self.pods[name]["status"]["phase"] == "Running"

    def _take(self, commands: list[Command]) -> None:
        for command in commands:
            if isinstance(command, AppendRecord):
                self.notes.append(command.record)
            else:
                self.pending.append(command)
