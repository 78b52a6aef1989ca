"""The objects of one API server: written with optimistic locking, listed in pages, watched from any recent version.

A pure object: no HTTP, no clock (`now`, seconds since 1970, is an argument), no randomness of its own (`Identities` are
passed in), no tasks. The server, the stand-in controllers and the simulation drive the same one. Every refusal is an
ApiError. A write has two halves, `draft_*` and `commit`, so that admission webhooks can look in between; `create`,
`update`, `patch` do both.

Objects are kept as JSON bytes: they are served as they are, a reader owns what it decodes, nothing can change them, and
the garbage collector never looks at them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from gatelift_sandbox.embedded import admission, builtin, crds, patching
from gatelift_sandbox.embedded.documents import Document, meta, timestamp
from gatelift_sandbox.embedded.drafts import (
    Deleted,
    Deletion,
    Draft,
    check_create,
    check_preconditions,
    check_versions,
    checked_new,
    parsed,
    settle_update,
    sized,
)
from gatelift_sandbox.embedded.failures import (
    RequestRefusedError,
    already_exists,
    bad_request,
    conflict,
    not_found,
    too_large_version,
    unsupported_media_type,
)
from gatelift_sandbox.embedded.kinds import KindTable, ServedKind, StorageKey
from gatelift_sandbox.embedded.names import GENERATED_BASE_MAX
from gatelift_sandbox.embedded.rules.pods import bind
from gatelift_sandbox.embedded.selection import ListSelection
from gatelift_sandbox.embedded.shelf import Shelf, ShelfPage
from gatelift_sandbox.embedded.watches import StoreChange, Stored, Watch

GENERATE_RETRIES_MAX = 8
"""As a real API server: so often a generated name may be taken before the create fails."""
ORPHAN_FINALIZER, FOREGROUND_FINALIZER = "orphan", "foregroundDeletion"
EVERYTHING = ListSelection()
_DEFINITIONS: StorageKey = ("apiextensions.k8s.io", "customresourcedefinitions")


class Identities(Protocol):
    """Where UIDs and generated names come from; seeded in a simulation."""

    def uid(self) -> str:
        """Return a UID that was never returned before."""
        ...

    def suffix(self) -> str:
        """Return five letters for the end of a generated name."""
        ...


@dataclass(frozen=True, slots=True)
class Copy:
    """A backup of a store."""

    version: int
    objects: dict[StorageKey, tuple[Stored, ...]]


class Store:
    """All objects of one cluster."""

    def __init__(self, identities: Identities, kinds: Iterable[ServedKind] | None = None) -> None:
        self.kinds = KindTable(builtin.kinds() if kinds is None else kinds)
        self.version = 0
        """The one resourceVersion, raised by each write."""
        self._identities = identities
        self._shelves: dict[StorageKey, Shelf] = {}
        self._listeners: list[Callable[[StorageKey, StoreChange], None]] = []

    # reading

    def find(self, storage: StorageKey, namespace: str, name: str) -> Stored | None:
        """Return an object as stored, None where there is none."""
        shelf = self._shelves.get(storage)
        return shelf.get((namespace, name)) if shelf is not None else None

    def look(self, storage: StorageKey, namespace: str, name: str) -> Document | None:
        """Return a copy of an object as stored, None where there is none."""
        found = self.find(storage, namespace, name)
        return found.document() if found is not None else None

    def all(self, storage: StorageKey) -> list[Stored]:
        """Return all objects under a storage key, in no order."""
        return list(self._shelf(storage))

    def look_all(self, storage: StorageKey) -> list[Document]:
        """Return copies of all objects under a storage key."""
        return [stored.document() for stored in self._shelf(storage)]

    def suffix(self) -> str:
        """Return five letters for the end of a generated name."""
        return self._identities.suffix()

    def uid(self) -> str:
        """Return a UID that no object has."""
        return self._identities.uid()

    def get(self, kind: ServedKind, namespace: str, name: str) -> Stored:
        """Return an object; ApiError 404."""
        found = self._shelf(kind.storage).get((namespace, name))
        if found is None:
            raise not_found(kind.resource, name)
        return found

    def list(
        self,
        kind: ServedKind,
        selection: ListSelection = EVERYTHING,
        *,
        limit: int = 0,
        token: str = "",
        at_least: int = 0,
    ) -> ShelfPage:
        """Return a page of objects; ApiError 410 for an old token, 504 for a version that does not exist yet."""
        if at_least > self.version:
            raise too_large_version(at_least, self.version)
        return self._shelf(kind.storage).page(selection, self.version, limit, token)

    def watch(
        self, kind: ServedKind, selection: ListSelection, since: int | None, wake: Callable[[], None] = lambda: None
    ) -> Watch:
        """Return a watch from version `since` (ApiError 410 where that is forgotten), None: from what is there.

        End it by `unwatch`.
        """
        watch, shelf = Watch(selection, wake), self._shelf(kind.storage)
        if since is None:
            for stored in shelf:
                watch.seed(stored)
        shelf.history.watch(watch, self.version if since is None else since)
        return watch

    def unwatch(self, kind: ServedKind, watch: Watch) -> None:
        """End a watch."""
        self._shelf(kind.storage).history.unwatch(watch)

    def compact(self, kind: ServedKind) -> None:
        """Forget the history of a kind: watches and pages that begin before now get 410."""
        self._shelf(kind.storage).history.forget(self.version)

    def drop_watches(self, kind: ServedKind) -> int:
        """End all watches of a kind; return how many there were."""
        return self._shelf(kind.storage).history.close_all()

    def copy(self) -> Copy:
        """Return what a backup of etcd holds: all objects, and the version at which it was made."""
        return Copy(self.version, {storage: tuple(shelf) for storage, shelf in self._shelves.items()})

    def restore(self, copy: Copy) -> None:
        """Put everything back as it was: versions go on from there, all watches end, and no history is known.

        Listeners hear of what is gone and of what is there again, as if each had been written.
        """
        self.version = copy.version
        for storage in list(self._shelves):
            before, after = self._shelves[storage], Shelf()
            for stored in copy.objects.get(storage, ()):
                after.put(stored)
            after.history.forget(copy.version)
            self._shelves[storage] = after
            before.history.close_all()
            for change in _differences(before, after):
                for listener in self._listeners:
                    listener(storage, change)

    def listen(self, listener: Callable[[StorageKey, StoreChange], None]) -> None:
        """Call `listener` after each write, in the order of the writes. It must not write."""
        self._listeners.append(listener)

    # writing

    def create(self, kind: ServedKind, namespace: str, new: Any, now: float, *, dry_run: bool = False) -> Stored:
        """Create an object from a document that from now on belongs to the store."""
        return self.commit(self.draft_create(kind, namespace, new), now, dry_run=dry_run)

    def update(
        self, kind: ServedKind, namespace: str, name: str, new: Any, now: float, *, subresource: str = ""
    ) -> Stored:
        """Replace an object, or the part of it that a subresource is."""
        return self.commit(self.draft_update(kind, namespace, name, lambda _: new, subresource), now)

    def patch(
        self,
        kind: ServedKind,
        namespace: str,
        name: str,
        body: bytes,
        media_type: str,
        now: float,
        *,
        subresource: str = "",
    ) -> Stored:
        """Patch an object by a JSON, merge or strategic merge patch."""
        change = patcher(kind, body, media_type)
        return self.commit(self.draft_update(kind, namespace, name, change, subresource, patch=True), now)

    def draft_create(self, kind: ServedKind, namespace: str, new: Any) -> Draft:
        """Read a new object: fill in defaults and let the built-in admission change or refuse it."""
        new = checked_new(kind, namespace, "", new)
        if meta(new).get("resourceVersion"):
            raise RequestRefusedError(
                500, "InternalError", "resourceVersion should not be set on objects to be created"
            )
        dropped = kind.rules.default(new)
        admission.admit_create(self, kind, new)
        name = meta(new).get("name") or ""
        return Draft(kind=kind, namespace=namespace, name=name, new=new, dropped=dropped)

    def draft_update(
        self,
        kind: ServedKind,
        namespace: str,
        name: str,
        change: Callable[[Document], Any],
        subresource: str = "",
        *,
        patch: bool = False,
    ) -> Draft:
        """Read a change of an object. `change` gets the present one, which it may alter, and returns the new one."""
        old = self._shelf(kind.storage).get((namespace, name))
        if old is None:
            if patch or subresource or not kind.rules.create_on_update:
                raise not_found(kind.resource, name)
            new = checked_new(kind, namespace, name, change({}))
            meta(new)["name"] = name
            return self.draft_create(kind, namespace, new)
        before = kind.served(old.document() if kind.converts else {**old.view()})
        present = kind.served(old.document())
        new = checked_new(kind, namespace, name, change(present))
        unconditional = check_versions(kind, new, old, patch=patch)
        dropped = kind.rules.default(new)
        admission.admit_update(kind, new, subresource)
        return Draft(
            kind=kind,
            namespace=namespace,
            name=name,
            new=new,
            old=old,
            old_document=before,
            subresource=subresource,
            dropped=dropped,
            unconditional=unconditional,
        )

    def commit(self, draft: Draft, now: float, *, dry_run: bool = False) -> Stored:
        """Write a draft: check all rules, give it a version, tell the watches. ApiError 409 if it was overtaken."""
        if draft.old is None:
            return self._commit_new(draft, now, dry_run=dry_run)
        kind, old = draft.kind, draft.old
        if self._shelf(kind.storage).get((draft.namespace, draft.name)) is not old:
            raise conflict(kind.resource, draft.name)
        new = settle_update(draft)
        meta(new)["resourceVersion"] = str(old.version)
        if new == draft.old_document:
            return old
        stored_form = kind.stored(new)
        about = meta(stored_form)
        going = about.get("deletionTimestamp") and not about.get("deletionGracePeriodSeconds")
        gone = bool(going) and not kind.rules.finalizers(stored_form)
        return self._write(kind, stored_form, old, removed=gone, dry_run=dry_run)

    def bind(self, kind: ServedKind, namespace: str, name: str, node: str, now: float, *, uid: str = "") -> Stored:
        """Bind a pod to a node, as the subresource `binding` does; ApiError 409 where it is bound, gated or going."""
        old = self.get(kind, namespace, name)
        pod = old.document()
        if uid and uid != old.uid:
            raise conflict(
                kind.resource, name, f"Precondition failed: UID in precondition: {uid}, UID in object meta: {old.uid}"
            )
        if old.deleting:
            raise conflict(kind.resource, name, f"pod {name} is being deleted, cannot be assigned to a host")
        if pod["spec"].get("nodeName"):
            text = f"pod {name} is already assigned to node {pod['spec']['nodeName']!r}".replace("'", '"')
            raise conflict(kind.resource, name, text)
        if pod["spec"].get("schedulingGates"):
            raise conflict(kind.resource, name, f"pod {name} has non-empty .spec.schedulingGates")
        bind(pod, node, now)
        return self._write(kind, pod, old)

    def delete(
        self, kind: ServedKind, namespace: str, name: str, deletion: Deletion, now: float, *, dry_run: bool = False
    ) -> Deleted:
        """Delete an object: at once, or, held by finalizers or grace, by marking it."""
        old = self.get(kind, namespace, name)
        check_preconditions(kind, old, deletion)
        admission.admit_delete(kind, name)
        document = old.document()
        about = meta(document)
        grace = kind.rules.grace_seconds(document, deletion.grace_seconds)
        if old.deleting:
            return self._shorten(kind, old, document, grace, now, dry_run=dry_run)
        _propagate(about, deletion.propagation or _propagation(kind, about))
        gone = not grace and not kind.rules.finalizers(document)
        if gone and not kind.rules.graceful:
            return Deleted(stored=self._write(kind, document, old, removed=True, dry_run=dry_run), gone=True)
        about["deletionTimestamp"] = timestamp(now + grace)
        about["deletionGracePeriodSeconds"] = grace
        if about.get("generation"):
            about["generation"] += 1
        kind.rules.mark_deleted(document)
        return Deleted(stored=self._write(kind, document, old, removed=gone, dry_run=dry_run), gone=gone)

    def _shorten(
        self, kind: ServedKind, old: Stored, document: Document, grace: int, now: float, *, dry_run: bool
    ) -> Deleted:
        """Delete again what is being deleted: a shorter grace counts, a longer one does not."""
        about = meta(document)
        if grace >= (about.get("deletionGracePeriodSeconds") or 0):
            return Deleted(stored=old, gone=False)
        about["deletionTimestamp"] = timestamp(now + grace)
        about["deletionGracePeriodSeconds"] = grace
        gone = not grace and not kind.rules.finalizers(document)
        return Deleted(stored=self._write(kind, document, old, removed=gone, dry_run=dry_run), gone=gone)

    def _commit_new(self, draft: Draft, now: float, *, dry_run: bool) -> Stored:
        kind, new, about = draft.kind, draft.new, meta(draft.new)
        shelf = self._shelf(kind.storage)
        if not about.get("name") and about.get("generateName"):
            about["name"] = self._generated(shelf, draft)
        for own in ("deletionTimestamp", "deletionGracePeriodSeconds"):
            about.pop(own, None)
        about["uid"] = self._identities.uid()
        about["creationTimestamp"] = timestamp(now)
        about.pop("generation", None)
        if kind.rules.generation:
            about["generation"] = 1
        if about.get("name") and not kind.rules.name_problem(about["name"]):
            kind.rules.prepare_create(new, now)
        check_create(kind, new)
        if shelf.get((draft.namespace, about["name"])) is not None:
            raise already_exists(kind.resource, about["name"])
        return self._write(kind, kind.stored(new), None, dry_run=dry_run)

    def _generated(self, shelf: Shelf, draft: Draft) -> str:
        base = str(meta(draft.new)["generateName"])[:GENERATED_BASE_MAX]
        for _ in range(GENERATE_RETRIES_MAX):
            name = base + self._identities.suffix()
            if shelf.get((draft.namespace, name)) is None:
                return name
        raise already_exists(draft.kind.resource, name)

    def _write(
        self,
        kind: ServedKind,
        document: Document,
        before: Stored | None,
        *,
        removed: bool = False,
        dry_run: bool = False,
    ) -> Stored:
        version = self.version + 1
        about = meta(document)
        about["resourceVersion"] = str(version)
        stored = Stored(sized(document), version, about, kind.rules.fields(document))
        if dry_run:
            return stored
        self.version = version
        shelf = self._shelf(kind.storage)
        if removed:
            shelf.remove((stored.namespace, stored.name))
        else:
            shelf.put(stored)
        if kind.storage == _DEFINITIONS:
            self._serve(document, before, removed=removed)
        change = StoreChange(before, stored, removed)
        shelf.history.add(change)
        for listener in self._listeners:
            listener(kind.storage, change)
        return stored

    def _serve(self, definition: Document, before: Stored | None, *, removed: bool) -> None:
        """Serve what a definition says, once it is written; a change of its status alone changes nothing."""
        storage = crds.storage_of(definition)
        if removed:
            self.kinds.drop(storage)
            return
        if before is not None and meta(before.document()).get("generation") == meta(definition).get("generation"):
            return
        self.kinds.drop(storage)
        for kind in crds.kinds_of(definition):
            self.kinds.add(kind)

    def _shelf(self, storage: StorageKey) -> Shelf:
        shelf = self._shelves.get(storage)
        if shelf is None:
            shelf = self._shelves[storage] = Shelf()
        return shelf


def _differences(before: Shelf, after: Shelf) -> list[StoreChange]:
    """Return what changes from one shelf to the other, first what goes."""
    there = {each.uid for each in after}
    found = [StoreChange(each, each, removed=True) for each in before if each.uid not in there]
    for each in after:
        old = before.get((each.namespace, each.name))
        if old is not each:  # of that name there may have been another object
            found.append(StoreChange(old if old is not None and old.uid == each.uid else None, each, removed=False))
    return found


def patcher(kind: ServedKind, body: bytes, media_type: str) -> Callable[[Document], Any]:
    """Return the change that a patch makes; ApiError 400, 415 or, when it is made, 422."""
    accepted = [patching.JSON_PATCH, patching.MERGE_PATCH]
    if kind.strategic:
        accepted.append(patching.STRATEGIC_PATCH)
    if media_type in patching.APPLY_PATCHES:
        note = "; server-side apply is not served by the embedded API server, use `kubectl apply` without --server-side"
        raise unsupported_media_type(accepted, note)
    if media_type not in accepted:
        raise unsupported_media_type(accepted)
    json_patch = media_type == patching.JSON_PATCH
    apply = patching.merge if media_type == patching.MERGE_PATCH else patching.strategic

    def change(present: Document) -> Any:
        patch = parsed(body, "patch")  # anew each time: parts of it become parts of the object
        if json_patch:
            return patching.json_patch(present, patch)
        if not isinstance(patch, dict):
            raise bad_request("error decoding patch: it is not a JSON object")
        return apply(present, patch)

    return change


def _propagation(kind: ServedKind, about: Document) -> str:
    """Return what to do about dependents: finalizers that say so win over the kind's custom."""
    finalizers = about.get("finalizers") or ()
    if ORPHAN_FINALIZER in finalizers:
        return "Orphan"
    return "Foreground" if FOREGROUND_FINALIZER in finalizers else kind.rules.propagation


def _propagate(about: Document, propagation: str) -> None:
    finalizers = [f for f in about.get("finalizers") or () if f not in (ORPHAN_FINALIZER, FOREGROUND_FINALIZER)]
    match propagation:
        case "Orphan":
            finalizers.append(ORPHAN_FINALIZER)
        case "Foreground":
            finalizers.append(FOREGROUND_FINALIZER)
        case "Background":
            pass
        case _:
            raise bad_request(f'invalid propagationPolicy {propagation!r}: use "Orphan", "Background" or "Foreground"')
    if finalizers:
        about["finalizers"] = finalizers
    else:
        about.pop("finalizers", None)
