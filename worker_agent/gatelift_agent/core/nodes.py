"""Whether containers of a pod that vanished may still run (rule P10), judged by its node.

A pod that was removed from the API without a terminal phase may have containers that run on: the force-deletion told
the API server only. They are over when the node is gone, when a person tainted it out-of-service, or when its kubelet
was heard of again after the pod's grace and a margin: a kubelet that reaches the API server ends what that no longer
has. A heartbeat is recognised by being different from the one known at that moment; wall clocks are not compared.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from gatelift_kube.objects.core import Node

OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
KUBELET_MARGIN_SECONDS = 60.0
"""A kubelet notices a removed pod within seconds; kills that hang take up to the runtime's own limits."""


class _Condition(msgspec.Struct, frozen=True, rename="camel"):
    type: str = ""
    status: str = ""
    last_heartbeat_time: str | None = None


class _Status(msgspec.Struct, frozen=True):
    conditions: tuple[_Condition, ...] = ()


class _Node(msgspec.Struct, frozen=True):
    status: _Status = _Status()


_DECODER = msgspec.json.Decoder(_Node)


@dataclass(slots=True, kw_only=True)
class _Known:
    out_of_service: bool
    heartbeat: str


@dataclass(slots=True, kw_only=True)
class _Watch:
    """One vanished pod: from `since` on, a heartbeat other than `heartbeat` proves that its containers are over."""

    node: str
    since: float
    heartbeat: str | None = None


class Nodes:
    """What is known of the nodes, and of the vanished pods whose containers may still run on them."""

    __slots__ = ("_known", "_synced", "_watched")

    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}
        self._watched: dict[str, _Watch] = {}
        self._synced = False

    def seen(self, node: Node, raw: bytes) -> None:
        """Take a node as it is now."""
        ready = next((each for each in _DECODER.decode(raw).status.conditions if each.type == "Ready"), None)
        heartbeat = (ready.last_heartbeat_time or "") if ready is not None and ready.status == "True" else ""
        self._known[node.metadata.name] = _Known(
            out_of_service=any(taint.key == OUT_OF_SERVICE for taint in node.spec.taints), heartbeat=heartbeat
        )

    def gone(self, name: str) -> None:
        """Take a node's removal."""
        self._known.pop(name, None)

    def synced(self) -> None:
        """All nodes have been listed: one that is not known does not exist."""
        self._synced = True

    def vanished(self, pod_uid: str, node: str, grace_seconds: float, now: float) -> None:
        """Begin to doubt a pod that vanished without a terminal phase."""
        if pod_uid not in self._watched:
            self._watched[pod_uid] = _Watch(node=node, since=now + grace_seconds + KUBELET_MARGIN_SECONDS)

    def forget(self, pod_uid: str) -> None:
        """Doubt a pod no longer."""
        self._watched.pop(pod_uid, None)

    def may_run(self, pod_uid: str, now: float) -> bool:
        """Say whether containers of this vanished pod may still run."""
        watch = self._watched.get(pod_uid)
        if watch is None:
            return False
        known = self._known.get(watch.node)
        if known is None:
            return not self._synced
        if known.out_of_service:
            return False
        if now < watch.since:
            return True
        if watch.heartbeat is None:
            watch.heartbeat = known.heartbeat
            return True
        return not known.heartbeat or known.heartbeat == watch.heartbeat
