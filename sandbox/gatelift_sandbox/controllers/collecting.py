"""Stand-in for the garbage collector: dependents go with their owners; foreground and orphan deletion. Pure."""

# ruff: noqa: ARG002 (decide is offered more than each controller needs)
from __future__ import annotations

from gatelift_sandbox.controllers.controller import Action, Controller, DeleteIfSame, PatchObject, WatchedKey
from gatelift_sandbox.embedded.documents import Document, meta
from gatelift_sandbox.embedded.kinds import StorageKey
from gatelift_sandbox.embedded.store import FOREGROUND_FINALIZER, ORPHAN_FINALIZER, Store
from gatelift_sandbox.embedded.watches import StoreChange


class Collector(Controller):
    """Keeps who depends on whom by UID."""

    user = "system:serviceaccount:kube-system:generic-garbage-collector"

    def __init__(self) -> None:
        super().__init__()
        self._dependents: dict[str, set[WatchedKey]] = {}
        self._owners: dict[WatchedKey, tuple[str, ...]] = {}
        self._waiting: dict[str, WatchedKey] = {}

    def notice(self, storage: StorageKey, change: StoreChange) -> None:
        """Follow owner references and removals."""
        stored = change.after
        key = WatchedKey(storage=storage, namespace=stored.namespace, name=stored.name)
        owners: tuple[str, ...] = ()
        if not change.removed and b'"ownerReferences":[' in stored.raw:
            owners = tuple(owner["uid"] for owner in meta(stored.view())["ownerReferences"])
        self._follow(key, owners)
        if change.removed:
            self._waiting.pop(stored.uid, None)
            for dependent in sorted(self._dependents.get(stored.uid, ()), key=str):
                self.mark(dependent)
        elif stored.deleting and _holds(stored.raw):
            self._waiting[stored.uid] = key
            self.mark(key)

    def begin_anew(self) -> None:
        """Look at all that has an owner, as the real one does when it begins: an owner may have gone meanwhile."""
        for key in self._owners:
            self.mark(key)

    def _follow(self, key: WatchedKey, owners: tuple[str, ...]) -> None:
        before = self._owners.get(key, ())
        if before == owners:
            return
        for uid in before:
            left = self._dependents.get(uid, set())
            left.discard(key)
            if not left:
                self._dependents.pop(uid, None)
            if uid in self._waiting:
                self.mark(self._waiting[uid])
        for uid in owners:
            self._dependents.setdefault(uid, set()).add(key)
        if owners:
            self._owners[key] = owners
            self.mark(key)
        else:
            self._owners.pop(key, None)

    def decide(self, store: Store, key: WatchedKey, now: float) -> list[Action]:
        """Let go what waits for its dependents; delete what has no owner left."""
        stored = store.find(key.storage, key.namespace, key.name)
        kind = store.kinds.storages().get(key.storage)
        if stored is None or kind is None:
            return []
        document = stored.view()
        finalizers = meta(document).get("finalizers") or []
        if stored.deleting and ORPHAN_FINALIZER in finalizers:
            return [*self._orphan(store, stored.uid), _without(store, key, document, ORPHAN_FINALIZER)]
        if stored.deleting and FOREGROUND_FINALIZER in finalizers:
            return self._foreground(store, key, document)
        if stored.deleting:
            return []
        return self._absent(store, key, document)

    def _orphan(self, store: Store, uid: str) -> list[Action]:
        found: list[Action] = []
        for key in sorted(self._dependents.get(uid, ()), key=str):
            document = store.look(key.storage, key.namespace, key.name)
            if document is not None:
                owners = [owner for owner in meta(document)["ownerReferences"] if owner["uid"] != uid]
                found.append(_patch(store, key, document, {"ownerReferences": owners or None}))
        return found

    def _foreground(self, store: Store, key: WatchedKey, document: Document) -> list[Action]:
        """End what depends on it, and let it go at once where nothing of that blocks its deletion.

        What has other owners, which are there and do not wait themselves, stays and is theirs alone.
        """
        uid = meta(document)["uid"]
        blocked, found = False, list[Action]()
        for dependent in sorted(self._dependents.get(uid, ()), key=str):
            there = store.look(dependent.storage, dependent.namespace, dependent.name)
            if there is None:
                continue
            owners = meta(there).get("ownerReferences") or ()
            blocked |= any(owner["uid"] == uid and owner.get("blockOwnerDeletion") for owner in owners)
            others = [
                each for each in owners if each["uid"] not in self._waiting and _is_there(store, key.namespace, each)
            ]
            if others:
                found.append(_patch(store, dependent, there, {"ownerReferences": others}))
            elif not meta(there).get("deletionTimestamp"):
                deeper = "Foreground" if self._dependents.get(meta(there)["uid"]) else "Background"
                found.append(_delete(store, dependent, there, deeper))
        return found if blocked else [*found, _without(store, key, document, FOREGROUND_FINALIZER)]

    def _absent(self, store: Store, key: WatchedKey, document: Document) -> list[Action]:
        owners = meta(document).get("ownerReferences") or []
        known = [(owner, _is_there(store, key.namespace, owner)) for owner in owners]
        if not owners or all(there for _, there in known):
            return []
        left = [owner for owner, there in known if there]
        if left:
            return [_patch(store, key, document, {"ownerReferences": left})]
        return [_delete(store, key, document, "Background")]


def _holds(raw: bytes) -> bool:
    return f'"{ORPHAN_FINALIZER}"'.encode() in raw or f'"{FOREGROUND_FINALIZER}"'.encode() in raw


def _is_there(store: Store, namespace: str, owner: Document) -> bool:
    """Return whether an owner exists; one of a kind that is not served counts as there, since nobody can tell."""
    kind = store.kinds.by_name(str(owner.get("apiVersion")), str(owner.get("kind")))
    if kind is None:
        return True
    found = store.find(kind.storage, namespace if kind.resource.namespaced else "", str(owner.get("name")))
    return found is not None and found.uid == owner.get("uid")


def _without(store: Store, key: WatchedKey, document: Document, finalizer: str) -> Action:
    left = [each for each in meta(document).get("finalizers") or () if each != finalizer]
    return _patch(store, key, document, {"finalizers": left or None})


def _patch(store: Store, key: WatchedKey, document: Document, metadata: Document) -> Action:
    about = meta(document)
    return PatchObject(
        resource=store.kinds.storages()[key.storage].resource,
        namespace=key.namespace,
        name=key.name,
        uid=about["uid"],
        version=about["resourceVersion"],
        patch={"metadata": metadata},
    )


def _delete(store: Store, key: WatchedKey, document: Document, propagation: str) -> Action:
    return DeleteIfSame(
        resource=store.kinds.storages()[key.storage].resource,
        namespace=key.namespace,
        name=key.name,
        uid=meta(document)["uid"],
        propagation=propagation,
    )
