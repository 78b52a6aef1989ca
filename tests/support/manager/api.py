"""A management API in memory for tests of the manager's machine: objects as JSON, one resourceVersion, finalizers.

It refuses what a real one refuses of the machine's writes: stale versions, other UIDs, conditions without a message.
"""

from __future__ import annotations

import copy
import json
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from gatelift.core.works.beginning import watched
from gatelift_admission.feed.validation_workload import CHECK_STATES_MAX
from gatelift_kinds.registry import SERVED
from gatelift_kube.deciding.writes import Create, Delete, ObjectSeen, Patch, PatchKind, WriteError
from gatelift_kube.decoding.decoding import read_object
from gatelift_kube.values import resources
from gatelift_kube.values.resources import ObjectKey, ObjectRef, Resource

Doc = dict[str, Any]
CRD_CONDITIONS_MAX = 16
"""As the CRDs have it; written anew, so that this does not follow a mistake of the product."""
ALL = {f"{one.api_version}/{one.kind}": one for one in (*watched(SERVED), resources.COHORT, resources.PRIORITY_CLASS)}


def resource_of(document: Doc) -> Resource:
    return ALL[f"{document['apiVersion']}/{document['kind']}"]


def ref_of(document: Doc) -> ObjectRef:
    meta = document["metadata"]
    return ObjectRef(resource_of(document), ObjectKey(meta.get("namespace", ""), meta["name"]))


class ApiError(Exception):
    def __init__(self, error: WriteError, message: str = "") -> None:
        super().__init__(message or error.value)
        self.error = error


@dataclass
class Api:
    """The management API: objects as JSON, one resourceVersion for all, finalizers, owner garbage collection."""

    objects: dict[ObjectRef, Doc] = field(default_factory=dict)
    version: int = 100
    uids: int = 0
    changes: deque[tuple[str, ObjectRef, Doc]] = field(default_factory=deque)
    writes: list[tuple[str, ObjectRef, Doc | list[Doc]]] = field(default_factory=list)
    stores: Callable[[ObjectRef, Doc], None] | None = None
    """Changes what is stored, as the API server may."""

    def apply(self, document: Doc) -> Doc:
        """Create an object as a user would."""
        document = copy.deepcopy(document)
        ref = ref_of(document)
        if ref in self.objects:
            raise ApiError(WriteError.ALREADY_EXISTS)
        self.uids += 1
        meta = document["metadata"]
        meta.setdefault("uid", f"uid-{self.uids}")
        meta.setdefault("creationTimestamp", "2026-11-21T00:00:00Z")
        meta.setdefault("generation", 1)
        return self._store(ref, document)

    def _store(self, ref: ObjectRef, document: Doc) -> Doc:
        if self.stores is not None:
            self.stores(ref, document)
        self.version += 1
        document["metadata"]["resourceVersion"] = str(self.version)
        if document["metadata"].get("deletionTimestamp") and not document["metadata"].get("finalizers"):
            self._remove(ref, document)
            return document
        self.objects[ref] = document
        self.changes.append(("seen", ref, copy.deepcopy(document)))
        return document

    def _remove(self, ref: ObjectRef, document: Doc) -> None:
        self.objects.pop(ref, None)
        self.changes.append(("gone", ref, copy.deepcopy(document)))
        uid = document["metadata"]["uid"]
        for other, dependent in list(self.objects.items()):
            owners = [owner["uid"] for owner in dependent["metadata"].get("ownerReferences", [])]
            if uid in owners and not any(one["metadata"]["uid"] in owners for one in self.objects.values()):
                self.delete(other)

    def delete(self, ref: ObjectRef) -> None:
        """Delete an object as a user (or the garbage collector) would."""
        document = self.objects.get(ref)
        if document is None or document["metadata"].get("deletionTimestamp"):
            return
        document = copy.deepcopy(document)
        document["metadata"]["deletionTimestamp"] = "2026-11-21T00:10:00Z"
        self._store(ref, document)

    def edit(self, ref: ObjectRef, change: Callable[[Doc], None]) -> Doc:
        """Change an object as a user would."""
        document = copy.deepcopy(self.objects[ref])
        change(document)
        return self._store(ref, document)

    def carry_out(self, command: Create | Patch | Delete) -> Doc | None:
        """Carry out a write; ApiError says why not."""
        if isinstance(command, Create):
            body = json.loads(command.body)
            self.writes.append(("create", command.ref, body))
            return self.apply(body)
        document = self.objects.get(command.ref)
        if document is None:
            raise ApiError(WriteError.NOT_FOUND)
        if isinstance(command, Delete):
            self.writes.append(("delete", command.ref, {}))
            self.delete(command.ref)
            return self.objects.get(command.ref)
        body = json.loads(command.body)
        document = copy.deepcopy(document)
        if command.kind is PatchKind.REPLACE:
            self.writes.append((f"replace {command.subresource}", command.ref, {"status": changed(document, body)}))
            preconditions(document, body)
            document["status"] = body["status"]
            required(document["status"])
            return self._store(command.ref, document)
        self.writes.append((f"patch {command.subresource}".strip(), command.ref, body))
        if command.kind is PatchKind.MERGE:
            document = self._merged(document, body, status=command.subresource == "status")
        else:
            json_patch(document, body)
        return self._store(command.ref, document)

    def _merged(self, document: Doc, body: Doc, *, status: bool) -> Doc:
        preconditions(document, body)
        if status:
            document["status"] = merged(document.get("status", {}), body.get("status", {}))
            required(document["status"])
            if document["kind"] in {"Pod", "Job"}:  # of these a status takes labels and annotations along, of CRDs not
                said = {name: body["metadata"].get(name, {}) for name in ("labels", "annotations")}
                document["metadata"] = merged(document["metadata"], said)
            return document
        before = json.dumps(document.get("spec"))
        counts = counts_of(document)
        document = {**merged(document, {**body, "status": document.get("status", {})})}
        if is_reserved(document) and any(count > counts.get(name, 0) for name, count in counts_of(document).items()):
            raise ApiError(WriteError.INVALID, "podSets are immutable while quota is reserved: counts may only shrink")
        if json.dumps(document.get("spec")) != before:
            document["metadata"]["generation"] = document["metadata"].get("generation", 1) + 1
        return document


def counts_of(document: Doc) -> dict[str, int]:
    """Return how many pods a Workload asks for, by pod set; nothing of anything else."""
    if document["kind"] != "Workload":
        return {}
    return {one["name"]: one["count"] for one in document["spec"]["podSets"]}


def is_reserved(document: Doc) -> bool:
    """Say whether a Workload says that it has quota."""
    conditions = document.get("status", {}).get("conditions", ())
    return any((one["type"], one["status"]) == ("QuotaReserved", "True") for one in conditions)


def preconditions(document: Doc, body: Doc) -> None:
    """Refuse a write that was decided on another object, or on another version of it."""
    for name in ("uid", "resourceVersion"):
        wanted = body.get("metadata", {}).get(name)
        if wanted is not None and wanted != document["metadata"][name]:
            raise ApiError(WriteError.CONFLICT, f"{name}: {wanted}, is {document['metadata'][name]}")


def changed(document: Doc, body: Doc) -> Doc:
    """Return what a new status has that the old one had not, and None for what it has no longer."""
    before, after = document.get("status", {}), body["status"]
    gone = {name: None for name in before if name not in after}
    return {**gone, **{name: value for name, value in after.items() if value != before.get(name)}}


def merged(old: Any, new: Any) -> Any:
    """Return the outcome of a JSON merge patch."""
    if not isinstance(new, dict):
        return new
    result = dict(old) if isinstance(old, dict) else {}
    for key, value in new.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def required(status: Doc) -> None:
    """Refuse what the CRDs refuse: conditions and check states without a required field, and too many of them."""
    for name, most in (("conditions", CRD_CONDITIONS_MAX), ("admissionChecks", CHECK_STATES_MAX)):
        if len(status.get(name, [])) > most:
            raise ApiError(WriteError.INVALID, f"status.{name}: Too many: {len(status[name])}")
    for condition in status.get("conditions", []):
        ours = "observedGeneration" in condition  # a pod's conditions may do without
        if ours and not (condition.get("reason") and "message" in condition and condition.get("lastTransitionTime")):
            raise ApiError(WriteError.INVALID, f"condition {condition}")
    for check in status.get("admissionChecks", []):
        if not check.get("state") or "message" not in check or not check.get("lastTransitionTime"):
            raise ApiError(WriteError.INVALID, f"check {check}")


def json_patch(document: Doc, operations: list[Doc]) -> None:
    """Apply the operations of a JSON patch that the kinds use."""
    for operation in operations:
        parts = [part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]]
        parent: Any = document
        for part in parts[:-1]:
            parent = parent[int(part)] if isinstance(parent, list) else parent[part]
        last: Any = int(parts[-1]) if isinstance(parent, list) and parts[-1] != "-" else parts[-1]
        match operation["op"]:
            case "test":
                have = parent[last] if isinstance(parent, list) else parent.get(last)
                if have != operation["value"]:
                    raise ApiError(WriteError.CONFLICT, f"test {operation['path']}")
            case "remove":
                del parent[last]
            case "replace":
                parent[last] = operation["value"]
            case "add":
                if isinstance(parent, list):
                    parent.append(operation["value"]) if last == "-" else parent.insert(last, operation["value"])
                else:
                    parent[last] = operation["value"]


def seen(ref: ObjectRef, document: Doc) -> ObjectSeen:
    raw = json.dumps(document).encode()
    return ObjectSeen(ref.resource, read_object(ref.resource, raw), raw)
