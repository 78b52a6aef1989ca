"""What a worker's nodes have and what runs on them, as sums. Pure; raw pods are not kept.

A node counts while the scheduler may choose it for a placed pod: Ready, not cordoned, without a taint of its role or
its trouble (which the agent's policy lets nobody tolerate by default). A pod counts from its binding to its terminal
phase, whoever made it. Sums are kept apart by the origin that a pod was placed for: who judges has charged his own.

Of each pod that runs its node, origin and requests stay, the latter shared by all that ask for the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from gatelift_admission.demand.requests import pod_requests
from gatelift_admission.values import amounts
from gatelift_kinds.shared import pods
from gatelift_kube.objects.core import POD_COUNT, Node, Pod, Quantity
from gatelift_wire.values.keys import LABEL_ORIGIN

RESOURCES_MAX = 256
"""Resources of a node that are read, in the order of their names: a node has a dozen."""
SHAPES_MAX = 4096
"""Different requests that are shared; beyond, each pod has its own."""
SHUT_OUT = ("node-role.kubernetes.io/", "node.kubernetes.io/")
"""Beginnings of the taints that are of a node's role or trouble."""

Amounts = tuple[tuple[str, int], ...]
"""By resource, sorted (CPU in milli-units, all else in base units)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomOfNodes:
    """What the nodes have. `problem`: why nothing is known of them; then all else is empty.

    `whole`: of all nodes that count. `largest`: of each resource, what the node with the most of it has. `taken`: what
    runs on them, by origin ("" for what no management cluster placed). `aside`: what runs on nodes that do not count.
    """

    problem: str = ""
    nodes: int = 0
    whole: Amounts = ()
    largest: Amounts = ()
    taken: tuple[tuple[str, Amounts], ...] = ()
    aside: tuple[tuple[str, Amounts], ...] = ()


class _Condition(msgspec.Struct, frozen=True):
    type: str = ""
    status: str = ""


class _Status(msgspec.Struct, frozen=True):
    allocatable: dict[str, Quantity] = {}
    conditions: tuple[_Condition, ...] = ()


class _Node(msgspec.Struct, frozen=True):
    status: _Status = _Status()


_DECODER = msgspec.json.Decoder(_Node)


class _Has(NamedTuple):
    usable: bool
    allocatable: Amounts


class _Runs(NamedTuple):
    node: str
    origin: str
    requests: Amounts


class NodeRoom:
    """The nodes and what runs on them. Each call says whether a sum has changed."""

    __slots__ = ("_nodes", "_pods", "_shapes", "_used")

    def __init__(self) -> None:
        self._nodes: dict[str, _Has] = {}
        self._pods: dict[str, _Runs] = {}
        self._shapes: dict[Amounts, Amounts] = {}
        self._used: dict[str, dict[str, dict[str, int]]] = {}

    def node_seen(self, node: Node, raw: bytes) -> bool:
        """Take a node as it is now. Raises msgspec.MsgspecError for a status that is none."""
        status = _DECODER.decode(raw).status
        ready = any(each.type == "Ready" and each.status == "True" for each in status.conditions)
        shut = any(
            taint.effect in {"NoSchedule", "NoExecute"} and taint.key.startswith(SHUT_OUT) for taint in node.spec.taints
        )
        now = _Has(ready and not shut and not node.spec.unschedulable, _read(status.allocatable))
        changed = self._nodes.get(node.metadata.name) != now
        self._nodes[node.metadata.name] = now
        return changed

    def node_gone(self, name: str) -> bool:
        """Take a node's removal."""
        return self._nodes.pop(name, None) is not None

    def pod_seen(self, pod: Pod) -> bool:
        """Take a pod as it is now."""
        if not pod.spec.node_name or pods.over(pod):
            return self.pod_gone(pod.metadata.uid)
        known = self._pods.get(pod.metadata.uid)
        requests = self._requests(pod)
        now = _Runs(pod.spec.node_name, pod.metadata.labels.get(LABEL_ORIGIN, ""), requests)
        if known == now:
            return False
        self.pod_gone(pod.metadata.uid)
        self._pods[pod.metadata.uid] = now
        self._add(now, 1)
        return True

    def pod_gone(self, uid: str) -> bool:
        """Take a pod's removal, or its end."""
        known = self._pods.pop(uid, None)
        if known is not None:
            self._add(known, -1)
        return known is not None

    def room(self) -> RoomOfNodes:
        """Return the sums."""
        whole: dict[str, int] = {}
        largest: dict[str, int] = {}
        for has in self._nodes.values():
            for resource, amount in has.allocatable:
                counted = amount if has.usable else 0
                whole[resource] = whole.get(resource, 0) + counted
                largest[resource] = max(largest.get(resource, 0), counted)
        taken: dict[str, dict[str, int]] = {}
        aside: dict[str, dict[str, int]] = {}
        for node, by_origin in self._used.items():
            known = self._nodes.get(node)
            into = taken if known is not None and known.usable else aside
            for origin, used in by_origin.items():
                _plus(into.setdefault(origin, {}), used.items(), 1)
        return RoomOfNodes(
            nodes=len(self._nodes),
            whole=tuple(sorted(whole.items())),
            largest=tuple(sorted(largest.items())),
            taken=_sorted(taken),
            aside=_sorted(aside),
        )

    def _requests(self, pod: Pod) -> Amounts:
        try:
            wanted = {**pod_requests(pod.spec), POD_COUNT: 1}
        except amounts.QuantityError:
            wanted = {POD_COUNT: 1}  # no API server takes such a pod
        found = tuple(sorted(wanted.items()))
        if len(self._shapes) < SHAPES_MAX:
            return self._shapes.setdefault(found, found)
        return self._shapes.get(found, found)

    def _add(self, runs: _Runs, sign: int) -> None:
        by_origin = self._used.setdefault(runs.node, {})
        used = by_origin.setdefault(runs.origin, {})
        _plus(used, runs.requests, sign)
        if not any(used.values()):
            del by_origin[runs.origin]
        if not by_origin:
            del self._used[runs.node]


def _read(allocatable: Mapping[str, Quantity]) -> Amounts:
    found: list[tuple[str, int]] = []
    for resource, quantity in sorted(allocatable.items())[:RESOURCES_MAX]:
        try:
            found.append((resource, max(0, amounts.parse(quantity, resource))))
        except amounts.QuantityError:
            found.append((resource, 0))  # nothing that can be counted
    return tuple(found)


def _plus(total: dict[str, int], more: Iterable[tuple[str, int]], sign: int) -> None:
    for resource, amount in more:
        total[resource] = total.get(resource, 0) + sign * amount


def _sorted(by_origin: Mapping[str, Mapping[str, int]]) -> tuple[tuple[str, Amounts], ...]:
    return tuple((origin, tuple(sorted(each.items()))) for origin, each in sorted(by_origin.items()))
