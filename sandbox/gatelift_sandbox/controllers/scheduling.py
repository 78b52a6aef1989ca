"""Stand-in for kube-scheduler: binds pods to nodes with room for their requests. Pure.

Heeded: scheduling gates, priority (order only), nodeSelector, required node affinity, taints and tolerations, requests
of all resources, number of pods. Not heeded: preemption, pod affinity, spreading, volumes, claims.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from decimal import Decimal

from gatelift_kube.values import resources as known
from gatelift_sandbox.controllers.controller import Action, BindPod, Controller, PatchObject, WatchedKey, event
from gatelift_sandbox.embedded.documents import Document, at, items, meta, timestamp
from gatelift_sandbox.embedded.kinds import StorageKey
from gatelift_sandbox.embedded.rules.cluster import node_is_ready
from gatelift_sandbox.embedded.rules.pod_spec import quantity
from gatelift_sandbox.embedded.rules.pods import TERMINAL
from gatelift_sandbox.embedded.store import Store
from gatelift_sandbox.embedded.watches import StoreChange

NAME = "default-scheduler"
Amounts = dict[str, Decimal]
_POD: StorageKey = ("", "pods")
_NODE: StorageKey = ("", "nodes")


@dataclass(frozen=True, slots=True)
class _Placed:
    node: str
    amounts: Amounts


class Scheduler(Controller):
    """Keeps what is used on each node; looks at unbound pods, and again when room is made."""

    user = "system:kube-scheduler"

    def __init__(self) -> None:
        super().__init__()
        self._nodes: dict[str, Document] = {}
        self._placed: dict[str, _Placed] = {}
        self._used: dict[str, Counter[str]] = {}
        self._waiting: dict[str, tuple[int, int, WatchedKey]] = {}

    def notice(self, storage: StorageKey, change: StoreChange) -> None:
        """Follow pods and nodes."""
        if storage == _NODE:
            if change.removed:
                self._nodes.pop(change.after.name, None)
            else:
                before, node = self._nodes.get(change.after.name), change.after.view()
                self._nodes[change.after.name] = node
                if before is not None and _relevant(before) == _relevant(node):
                    return  # a heartbeat makes no room
            self._look_again()
        elif storage == _POD:
            self._notice_pod(change)

    def _notice_pod(self, change: StoreChange) -> None:
        stored, pod = change.after, change.after.view()
        node, phase = stored.fields["spec.nodeName"], stored.fields["status.phase"]
        occupies = bool(node) and phase not in TERMINAL and not change.removed
        if occupies:
            self._place(stored.uid, node, pod)
        elif self._placed.get(stored.uid) is not None:
            self._release(stored.uid)
            self._look_again()
        mine = (pod["spec"].get("schedulerName") or NAME) == NAME
        waits = mine and not node and not change.removed and not stored.deleting and phase not in TERMINAL
        if waits and not items(pod, "spec", "schedulingGates"):
            key = WatchedKey(storage=_POD, namespace=stored.namespace, name=stored.name)
            if stored.uid not in self._waiting:
                self._waiting[stored.uid] = (-(at(pod, "spec", "priority") or 0), stored.version, key)
                self.mark(key)
        else:
            self._waiting.pop(stored.uid, None)

    def _place(self, uid: str, node: str, pod: Document) -> None:
        there = self._placed.get(uid)
        if there is not None and there.node == node:
            return
        self._placed[uid] = _Placed(node, requests_of(pod["spec"]))
        used = self._used.setdefault(node, Counter())
        for name, amount in self._placed[uid].amounts.items():
            used[name] += amount  # type: ignore[assignment]  # a Counter of Decimal adds as well as one of int

    def _release(self, uid: str) -> None:
        placed = self._placed.pop(uid)
        for name, amount in placed.amounts.items():
            self._used[placed.node][name] -= amount  # type: ignore[assignment]  # as above

    def _look_again(self) -> None:
        for _, _, key in self._waiting.values():
            self.mark(key)

    def ordered(self, keys: list[WatchedKey]) -> list[WatchedKey]:
        """Highest priority first, then the oldest."""
        ranks = {key: (priority, version) for priority, version, key in self._waiting.values()}
        return sorted((key for key in keys if key in ranks), key=lambda key: ranks[key])

    def decide(self, store: Store, key: WatchedKey, now: float) -> list[Action]:
        """Bind a pod, or say why it cannot be bound."""
        stored = store.find(_POD, key.namespace, key.name)
        if stored is None or stored.uid not in self._waiting:
            return []
        pod = stored.view()
        wanted = requests_of(pod["spec"])
        refusals: Counter[str] = Counter()
        fitting = []
        for name, node in self._nodes.items():
            problem = node_problem(pod["spec"], node) or self._room_problem(name, node, wanted)
            if problem:
                refusals[problem] += 1
            else:
                fitting.append(name)
        if not fitting:
            return self._refuse(store, pod, refusals, now)
        chosen = max(fitting, key=lambda name: (self._free_share(name), _reversed(name)))
        said = event(
            store,
            known.POD,
            pod,
            now,
            reason="Scheduled",
            message=f"Successfully assigned {key.namespace}/{key.name} to {chosen}",
            source=NAME,
        )
        return [BindPod(namespace=key.namespace, name=key.name, uid=stored.uid, node=chosen), said]

    def _room_problem(self, name: str, node: Document, wanted: Amounts) -> str:
        room = at(node, "status", "allocatable") or {}
        used = self._used.get(name, Counter())
        for resource, amount in wanted.items():
            has = quantity(room.get(resource, 0)) or Decimal(0)
            if amount and used[resource] + amount > has:
                return "Too many pods" if resource == "pods" else f"Insufficient {resource}"
        return ""

    def _free_share(self, name: str) -> Decimal:
        room, used = at(self._nodes[name], "status", "allocatable") or {}, self._used.get(name, Counter())
        shares = [1 - used[r] / has for r in ("cpu", "memory") if (has := quantity(room.get(r, 0)) or Decimal(0)) > 0]
        return sum(shares, Decimal(0)) / max(len(shares), 1)

    def _refuse(self, store: Store, pod: Document, refusals: Counter[str], now: float) -> list[Action]:
        total = sum(refusals.values())
        reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(refusals.items()))
        message = f"0/{total} nodes are available: {reasons}." if total else "no nodes available to schedule pods"
        conditions = items(pod, "status", "conditions")
        before = next((c for c in conditions if c.get("type") == "PodScheduled"), {})
        if before.get("reason") == "Unschedulable" and before.get("message") == message:
            return []
        changed = before.get("lastTransitionTime") if before.get("status") == "False" else None
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "lastProbeTime": None,
            "lastTransitionTime": changed or timestamp(now),
            "reason": "Unschedulable",
            "message": message,
        }
        others = [c for c in conditions if c.get("type") != "PodScheduled"]
        about = meta(pod)
        return [
            PatchObject(
                resource=known.POD,
                namespace=about["namespace"],
                name=about["name"],
                uid=about["uid"],
                patch={"status": {"conditions": [*others, condition]}},
                subresource="status",
            ),
            event(store, known.POD, pod, now, reason="FailedScheduling", message=message, source=NAME, warning=True),
        ]


def _reversed(name: str) -> tuple[int, ...]:
    """Order names backwards, so that among equals `max` takes the first."""
    return tuple(-ord(letter) for letter in name)


def _relevant(node: Document) -> tuple[object, ...]:
    status, spec = node.get("status") or {}, node.get("spec") or {}
    return (
        status.get("allocatable"),
        spec.get("taints"),
        spec.get("unschedulable"),
        meta(node).get("labels"),
        node_is_ready(node),
    )


def requests_of(spec: Document) -> Amounts:
    """Return what a pod takes of a node: its containers' requests, at least the largest init container's, overhead."""
    total: Amounts = {"pods": Decimal(1)}
    for container in items(spec, "containers"):
        _add(total, container)
    for container in items(spec, "initContainers"):
        if container.get("restartPolicy") == "Always":
            _add(total, container)
            continue
        alone: Amounts = {}
        _add(alone, container)
        total |= {name: max(amount, total.get(name, Decimal(0))) for name, amount in alone.items()}
    for name, text in (spec.get("overhead") or {}).items():
        total[name] = total.get(name, Decimal(0)) + (quantity(text) or Decimal(0))
    return total


def _add(total: Amounts, container: Document) -> None:
    for name, text in (at(container, "resources", "requests") or {}).items():
        total[name] = total.get(name, Decimal(0)) + (quantity(text) or Decimal(0))


def node_problem(spec: Document, node: Document) -> str:
    """Return why a node does not take a pod, amounts aside, in kube-scheduler's words; an empty text if it does."""
    if at(node, "spec", "unschedulable"):
        return "node(s) were unschedulable"
    for taint in items(node, "spec", "taints"):
        if taint.get("effect") in ("NoSchedule", "NoExecute") and not any(
            _tolerates(toleration, taint) for toleration in items(spec, "tolerations")
        ):
            value = f": {taint['value']}" if taint.get("value") else ": "
            return f"node(s) had untolerated taint {{{taint.get('key')}{value}}}"
    labels = meta(node).get("labels") or {}
    selector = spec.get("nodeSelector") or {}
    if any(labels.get(key) != value for key, value in selector.items()) or not _affine(
        spec, labels, meta(node)["name"]
    ):
        return "node(s) didn't match Pod's node affinity/selector"
    return ""


def _tolerates(toleration: Document, taint: Document) -> bool:
    if toleration.get("effect") not in (None, "", taint.get("effect")):
        return False
    if not toleration.get("key"):
        return toleration.get("operator") == "Exists"
    if toleration["key"] != taint.get("key"):
        return False
    return toleration.get("operator") == "Exists" or (toleration.get("value") or "") == (taint.get("value") or "")


def _affine(spec: Document, labels: dict[str, str], name: str) -> bool:
    needed = at(spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    if not isinstance(needed, dict):
        return True
    return any(_term_fits(term, labels, name) for term in items(needed, "nodeSelectorTerms"))


def _term_fits(term: Document, labels: dict[str, str], name: str) -> bool:
    expressions, fields = items(term, "matchExpressions"), items(term, "matchFields")
    if not expressions and not fields:
        return False
    return all(_expression_fits(e, labels) for e in expressions) and all(
        _expression_fits(e, {"metadata.name": name}) for e in fields
    )


def _expression_fits(expression: Document, labels: dict[str, str]) -> bool:
    value = labels.get(str(expression.get("key")))
    values: list[str] = expression.get("values") or []
    match expression.get("operator"):
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt":
            return _is_number(value) and int(value or 0) > int(values[0])
        case "Lt":
            return _is_number(value) and int(value or 0) < int(values[0])
        case _:
            return False


def _is_number(text: str | None) -> bool:
    return text is not None and text.removeprefix("-").isdigit()
