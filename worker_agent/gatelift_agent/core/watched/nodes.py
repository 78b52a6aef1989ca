"""Whether containers of a pod that vanished may still run (rule P10), judged by its node.

A pod that was removed from the API without a terminal phase may have containers that run on: the force-deletion told
the API server only. They are over when the node is gone, when a person tainted it out-of-service, or when its kubelet
was heard of again after the pod's grace and a margin: a kubelet that reaches the API server ends what that no longer
has. One that was away needs grace and margin from its return on, and is heard of once more after them: its first
heartbeat comes before it has ended anything. A heartbeat is recognised by being different from the one known before;
wall clocks are not compared. A node that is ready and renewed its Lease without a break for as long, and after that
moment, was heard of as well: what is not changed a kubelet repeats every five minutes only (`renewals`).

A pod that was let go and never seen on a node may have been bound behind a slow watch: it may run on any node.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from gatelift_agent.core.watched.renewals import LeaseRenewals
from gatelift_kube.objects.core import Node
from gatelift_wire.values.limits import GRACE_SECONDS, GRACE_SECONDS_MAX, KUBELET_MARGIN_SECONDS

OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
SILENT_SECONDS = 360.0
"""A kubelet repeats a status that has not changed every five minutes."""

_BEFORE = "before "
"""No UID begins so."""


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
    """A node. `said_at`: when its last heartbeat came, or when it was seen first.

    `back_at`: when it came back after it had been away: not ready, or silent for longer than a kubelet is.
    """

    out_of_service: bool
    heartbeat: str
    said_at: float
    back_at: float = -math.inf
    renewals: LeaseRenewals = field(default_factory=LeaseRenewals)


@dataclass(slots=True, kw_only=True)
class _Watch:
    """One vanished pod: its containers are over when of each node in question another heartbeat came after `since`.

    `node` "": it was let go and never seen on a node, so it may run on any. `settles`: how long a kubelet that reaches
    its API server may take to end it (grace and margin). `heard_last`: the nodes that are waited for, None before the
    first look after `since`; each with its return and the heartbeat that was known at the first look after both.
    """

    node: str
    since: float
    settles: float
    heard_last: dict[str, tuple[float, str] | None] | None = None


class Nodes:
    """What is known of the nodes, and of the vanished pods whose containers may still run on them."""

    __slots__ = ("_began", "_known", "_synced", "_watched")

    def __init__(self) -> None:
        self._began = 0.0
        self._known: dict[str, _Known] = {}
        self._watched: dict[str, _Watch] = {}
        self._synced = False

    def seen(self, node: Node, raw: bytes, now: float) -> None:
        """Take a node as it is now."""
        ready = next((each for each in _DECODER.decode(raw).status.conditions if each.type == "Ready"), None)
        heartbeat = (ready.last_heartbeat_time or "") if ready is not None and ready.status == "True" else ""
        away = any(taint.key == OUT_OF_SERVICE for taint in node.spec.taints)
        known = self._known.get(node.metadata.name)
        if known is None:
            self._known[node.metadata.name] = _Known(out_of_service=away, heartbeat=heartbeat, said_at=now)
            return
        if heartbeat not in {"", known.heartbeat}:
            was_away = not known.heartbeat or now - known.said_at > SILENT_SECONDS
            known.back_at = now if was_away else known.back_at
            known.said_at = now
        known.out_of_service, known.heartbeat = away, heartbeat

    def exists(self, name: str, now: float) -> None:
        """Take that there is a node of which nothing else could be read: it was not heard of."""
        self._known.setdefault(name, _Known(out_of_service=False, heartbeat="", said_at=now))

    def renewed(self, renewals: Iterable[tuple[str, str]], asked_at: float, now: float) -> None:
        """Take what a list of the kubelets' Leases showed, by node, that was asked for at `asked_at`."""
        for name, text in renewals:
            known = self._known.get(name)
            if known is not None:
                known.renewals.shown(text, asked_at, now)

    def in_question(self, now: float) -> bool:
        """Say whether something is doubted that news of kubelets may end.

        Not for ever: who is well has repeated its status by then, and who is away says so when it is back.
        """
        return any(watch.heard_last != {} and now < watch.since + SILENT_SECONDS for watch in self._watched.values())

    def gone(self, name: str) -> None:
        """Take a node's removal."""
        self._known.pop(name, None)

    def synced(self) -> None:
        """All nodes have been listed: one that is not known does not exist."""
        self._synced = True

    def began(self, now: float) -> None:
        """Take that pods are watched from now on: whatever vanished earlier was seen by nobody here."""
        self._began = now
        self._watched = {name: watch for name, watch in self._watched.items() if not name.startswith(_BEFORE)}

    def before(self, grace_seconds: float) -> str:
        """Return the name by which to ask for pods of at most this grace that vanished before anybody here watched.

        They may run on any node. Graces are rounded up to twice the shortest, four times it and so on, so that few
        doubts stand for all.
        """
        grace = GRACE_SECONDS
        while grace < min(grace_seconds, GRACE_SECONDS_MAX):
            grace *= 2.0
        name = f"{_BEFORE}{grace:g}"
        self.vanished(name, "", grace, self._began)
        return name

    def vanished(self, pod_uid: str, node: str, grace_seconds: float, now: float) -> None:
        """Begin to doubt a pod that vanished without a terminal phase; `node` "" where its node was never seen."""
        if pod_uid not in self._watched:
            settles = grace_seconds + KUBELET_MARGIN_SECONDS
            self._watched[pod_uid] = _Watch(node=node, since=now + settles, settles=settles)

    def forget(self, pod_uid: str) -> None:
        """Doubt a pod no longer."""
        self._watched.pop(pod_uid, None)

    def may_run(self, pod_uid: str, now: float) -> bool:
        """Say whether containers of this vanished pod may still run."""
        watch = self._watched.get(pod_uid)
        if watch is None:
            return False
        if not self._synced and watch.node not in self._known:
            return True
        if now < watch.since:
            return not watch.node or self._counts(watch.node)
        if watch.heard_last is None:
            # Whatever node it was bound to is known by now: our watch of nodes is not that late.
            watch.heard_last = dict.fromkeys((watch.node,) if watch.node else self._known)
        for name, last in tuple(watch.heard_last.items()):
            if not self._counts(name) or self._heard(name, last) or self._reached(name, watch):
                del watch.heard_last[name]
            else:
                watch.heard_last[name] = self._last(name, last, watch.settles, now)
        return bool(watch.heard_last)

    def over_at(self, pod_uid: str) -> float | None:
        """Return when a doubt ends by time alone, because no node is known on which it could run; None: not so."""
        watch = self._watched.get(pod_uid)
        if watch is None or watch.node or not self._synced or any(map(self._counts, self._known)):
            return None
        return watch.since

    def _counts(self, name: str) -> bool:
        """Say whether containers may run on a node at all."""
        known = self._known.get(name)
        return known is not None and not known.out_of_service

    def _heard(self, name: str, last: tuple[float, str] | None) -> bool:
        """Say whether nothing that vanished runs on a node any more, `last` being what was known of it before."""
        known = self._known[name]
        return last is not None and last[0] == known.back_at and known.heartbeat not in {"", last[1]}

    def _reached(self, name: str, watch: _Watch) -> bool:
        known = self._known[name]
        return bool(known.heartbeat) and known.renewals.reached(watch.since, watch.settles)

    def _last(self, name: str, last: tuple[float, str] | None, settles: float, now: float) -> tuple[float, str] | None:
        """Return what is known of a node from which another heartbeat is waited for; None before it can count."""
        known = self._known[name]
        if now < known.back_at + settles:
            return None
        return last if last is not None and last[0] == known.back_at else (known.back_at, known.heartbeat)
