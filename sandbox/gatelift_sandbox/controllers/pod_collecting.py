"""Stand-in for the pod garbage collector: says the end of pods that stop and that no kubelet will speak for. Pure.

Of what the real one does only this: a pod of a Job that is being deleted and has no node, or one that is gone, is
Failed. Its Job may wait for that before it makes another one. The real one looks every 20 seconds; this one at once.
"""

# ruff: noqa: ARG002 (decide is offered more than each controller needs)
from __future__ import annotations

from gatelift_kube.values import resources as known
from gatelift_sandbox.controllers.controller import Action, Controller, DeleteIfSame, PatchObject, WatchedKey
from gatelift_sandbox.controllers.job_pods import TRACKING_FINALIZER
from gatelift_sandbox.embedded.documents import at, meta
from gatelift_sandbox.embedded.kinds import StorageKey
from gatelift_sandbox.embedded.rules.pods import TERMINAL
from gatelift_sandbox.embedded.store import Store
from gatelift_sandbox.embedded.watches import StoreChange

_POD: StorageKey = ("", "pods")
_NODE: StorageKey = ("", "nodes")


class PodCollector(Controller):
    """Keeps which pods are being deleted."""

    user = "system:serviceaccount:kube-system:pod-garbage-collector"

    def __init__(self) -> None:
        super().__init__()
        self._stopping: dict[str, WatchedKey] = {}

    def notice(self, storage: StorageKey, change: StoreChange) -> None:
        """Follow pods that are being deleted, and nodes that go."""
        stored = change.after
        if storage == _NODE and change.removed:
            for key in self._stopping.values():
                self.mark(key)
        elif storage == _POD:
            if change.removed or not stored.deleting:
                self._stopping.pop(stored.uid, None)
                return
            key = WatchedKey(storage=_POD, namespace=stored.namespace, name=stored.name)
            self._stopping[stored.uid] = key
            self.mark(key)

    def decide(self, store: Store, key: WatchedKey, now: float) -> list[Action]:
        """Say the end of a pod for which nobody else will."""
        pod = store.look(_POD, key.namespace, key.name)
        if pod is None or not meta(pod).get("deletionTimestamp") or at(pod, "status", "phase") in TERMINAL:
            return []
        node = at(pod, "spec", "nodeName")
        tracked = TRACKING_FINALIZER in (meta(pod).get("finalizers") or ())
        if not tracked or (node and store.find(_NODE, "", node) is not None):
            return []
        which = {"resource": known.POD, "namespace": key.namespace, "name": key.name, "uid": meta(pod)["uid"]}
        return [
            PatchObject(**which, patch={"status": {"phase": "Failed"}}, subresource="status"),
            DeleteIfSame(**which, grace_seconds=0),
        ]
