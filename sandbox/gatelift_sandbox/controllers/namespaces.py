"""Stand-ins for the namespace and ServiceAccount controllers, and for the clean-up of deleted definitions. Pure."""

# ruff: noqa: ARG002 (decide is offered more than each controller needs)
from __future__ import annotations

from gatelift_kube.values import resources as known
from gatelift_sandbox.controllers.controller import (
    Action,
    Controller,
    CreateObject,
    DeleteIfSame,
    FinalizeNamespace,
    PatchObject,
    WatchedKey,
)
from gatelift_sandbox.embedded.crds import storage_of
from gatelift_sandbox.embedded.documents import meta
from gatelift_sandbox.embedded.kinds import StorageKey
from gatelift_sandbox.embedded.rules.custom import CLEANUP_FINALIZER
from gatelift_sandbox.embedded.store import Store
from gatelift_sandbox.embedded.watches import StoreChange

_NAMESPACE: StorageKey = ("", "namespaces")
_ACCOUNT: StorageKey = ("", "serviceaccounts")
_CONFIG_MAP: StorageKey = ("", "configmaps")
_DEFINITION: StorageKey = ("apiextensions.k8s.io", "customresourcedefinitions")
ROOT_CA = "kube-root-ca.crt"


class Namespaces(Controller):
    """Furnishes new namespaces, and empties those that are being deleted."""

    user = "system:serviceaccount:kube-system:namespace-controller"

    def __init__(self, authority: str) -> None:
        """Take the PEM of the cluster's CA, which each namespace gets in a ConfigMap."""
        super().__init__()
        self._authority = authority
        self._going: set[str] = set()

    def notice(self, storage: StorageKey, change: StoreChange) -> None:
        """Follow namespaces, their furniture, and removals in those that go."""
        stored = change.after
        if storage == _NAMESPACE:
            if change.removed:
                self._going.discard(stored.name)
                return
            if stored.deleting:
                self._going.add(stored.name)
            self.mark(_key(stored.name))
        elif change.removed and (stored.namespace in self._going or (storage, stored.name) in _FURNITURE):
            self.mark(_key(stored.namespace))

    def decide(self, store: Store, key: WatchedKey, now: float) -> list[Action]:
        """Furnish or empty a namespace."""
        stored = store.find(_NAMESPACE, "", key.name)
        if stored is None:
            return []
        return self._empty(store, key.name) if stored.deleting else self._furnish(store, key.name)

    def _furnish(self, store: Store, name: str) -> list[Action]:
        found: list[Action] = []
        if store.find(_ACCOUNT, name, "default") is None:
            account = {"metadata": {"name": "default"}}
            found.append(CreateObject(resource=known.SERVICE_ACCOUNT, namespace=name, document=account))
        if store.find(_CONFIG_MAP, name, ROOT_CA) is None:
            config = {"metadata": {"name": ROOT_CA}, "data": {"ca.crt": self._authority}}
            found.append(CreateObject(resource=known.CONFIG_MAP, namespace=name, document=config))
        return found

    def _empty(self, store: Store, name: str) -> list[Action]:
        found: list[Action] = []
        left = 0
        for storage, kind in store.kinds.storages().items():
            if not kind.resource.namespaced:
                continue
            for stored in store.all(storage):
                if stored.namespace != name:
                    continue
                left += 1
                if not stored.deleting:
                    found.append(DeleteIfSame(resource=kind.resource, namespace=name, name=stored.name, uid=stored.uid))
        return found if left else [FinalizeNamespace(name=name)]


_FURNITURE = frozenset({(_ACCOUNT, "default"), (_CONFIG_MAP, ROOT_CA)})


def _key(name: str) -> WatchedKey:
    return WatchedKey(storage=_NAMESPACE, namespace="", name=name)


class Definitions(Controller):
    """Deletes the objects of a CustomResourceDefinition that is being deleted, then lets it go."""

    user = "system:apiserver"

    def __init__(self) -> None:
        super().__init__()
        self._going: dict[StorageKey, WatchedKey] = {}

    def notice(self, storage: StorageKey, change: StoreChange) -> None:
        """Follow definitions that go, and removals of their objects."""
        if storage == _DEFINITION:
            where = storage_of(change.after.document())
            if change.removed:
                self._going.pop(where, None)
            elif change.after.deleting:
                self._going[where] = WatchedKey(storage=_DEFINITION, namespace="", name=change.after.name)
                self.mark(self._going[where])
        elif change.removed and storage in self._going:
            self.mark(self._going[storage])

    def decide(self, store: Store, key: WatchedKey, now: float) -> list[Action]:
        """Empty a definition, or let it go."""
        definition = store.look(key.storage, "", key.name)
        if definition is None or CLEANUP_FINALIZER not in (meta(definition).get("finalizers") or ()):
            return []
        storage = storage_of(definition)
        kind = store.kinds.storages().get(storage)
        left = store.all(storage)
        if left and kind is not None:
            return [
                DeleteIfSame(resource=kind.resource, namespace=each.namespace, name=each.name, uid=each.uid)
                for each in left
                if not each.deleting
            ]
        finalizers = [each for each in meta(definition)["finalizers"] if each != CLEANUP_FINALIZER]
        return [
            PatchObject(
                resource=known.CUSTOM_RESOURCE_DEFINITION,
                namespace="",
                name=key.name,
                uid=meta(definition)["uid"],
                patch={"metadata": {"finalizers": finalizers or None}},
            )
        ]
