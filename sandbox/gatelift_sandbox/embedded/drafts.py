"""What a request wants to write, between reading it and writing it; and the checks that are the same for every kind.

Pure. Webhooks look at a draft and may change it; `store` makes and commits drafts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from gatelift_sandbox.embedded import names
from gatelift_sandbox.embedded.documents import Document, decode, encode, meta
from gatelift_sandbox.embedded.failures import (
    BrokenRule,
    RequestRefusedError,
    bad_request,
    conflict,
    forbidden_field,
    invalid,
    precondition,
    required,
    wrong,
)
from gatelift_sandbox.embedded.kinds import ServedKind
from gatelift_sandbox.embedded.watches import Stored

OBJECT_BYTES_MAX = 3 * 1024 * 1024
"""As a real API server limits a request; etcd would refuse half of it already."""
_OMITTED_WHEN_EMPTY = ("labels", "annotations", "finalizers", "ownerReferences", "generateName")
_SERVERS_OWN = ("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "uid")


@dataclass(slots=True, kw_only=True)
class Draft:
    """A create (`old` is None) or an update of an object or of one of its subresources."""

    kind: ServedKind
    namespace: str
    name: str
    new: Document
    old: Stored | None = None
    old_document: Document | None = None
    subresource: str = ""
    dropped: list[str] = field(default_factory=list)
    """Paths of fields that were pruned."""
    unconditional: bool = False
    """Whether it may be tried again on a newer version: the client named none, or it is a patch, made anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """What a delete request says."""

    grace_seconds: int | None = None
    uid: str | None = None
    version: str | None = None
    propagation: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    """What a delete did: the object's last or latest state, and whether it is gone."""

    stored: Stored
    gone: bool


def checked_new(kind: ServedKind, namespace: str, name: str, new: Any) -> Document:
    """Return the document of a request if it is an object of this kind that fits the path; ApiError if not."""
    if not isinstance(new, dict):
        raise bad_request("the request body is not a JSON object")
    resource = kind.resource
    if not kind.strategic and not new.get("kind"):
        text = f"the object provided is unrecognized (must be of type {resource.kind}): Object 'Kind' is missing"
        raise bad_request(text)
    given = (new.setdefault("apiVersion", resource.api_version), new.setdefault("kind", resource.kind))
    if given != (resource.api_version, resource.kind):
        raise bad_request(
            f"the API version in the data ({given[0]}, kind {given[1]}) does not match the expected API version"
            f" ({resource.api_version}, kind {resource.kind})"
        )
    if problem := names.string_map_problem(new):
        raise bad_request(f"{resource.kind} cannot be handled: {problem}")
    about = meta(new)
    for gone in ("managedFields", "selfLink"):
        about.pop(gone, None)
    for omitted in _OMITTED_WHEN_EMPTY:
        if omitted in about and not about[omitted]:
            del about[omitted]
    if resource.namespaced:
        if (about.get("namespace") or namespace) != namespace:
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
        about["namespace"] = namespace
    else:
        about.pop("namespace", None)
    if name and (about.get("name") or name) != name:
        text = f"the name of the object ({about['name']}) does not match the name on the URL ({name})"
        raise bad_request(text)
    return new


def check_create(kind: ServedKind, new: Document) -> None:
    """Raise ApiError where the name or any field of a new object breaks a rule."""
    about, found = meta(new), []
    if not about.get("name"):
        found.append(required("metadata.name", "name or generateName is required"))
    elif text := kind.rules.name_problem(about["name"]):
        found.append(wrong("metadata.name", about["name"], text))
    found += names.metadata_errors(new)
    found += kind.rules.validate_create(new)
    if found:
        raise invalid(kind.resource, about.get("name", ""), found)


def check_versions(kind: ServedKind, new: Document, old: Stored, *, patch: bool) -> bool:
    """Hold UID and resourceVersion in `new` against the stored ones; return whether it may be tried again.

    ApiError 409; for another UID in a patch 422, since the real server finds it when it compares the results.
    """
    about = meta(new)
    if patch and not about.get("resourceVersion"):
        about["resourceVersion"] = str(old.version)
    uid, version = about.get("uid"), about.get("resourceVersion")
    if patch and version != str(old.version):
        raise conflict(kind.resource, old.name)
    if patch and uid and uid != old.uid:
        raise invalid(kind.resource, old.name, [wrong("metadata.uid", uid, "field is immutable")])
    if uid and uid != old.uid:
        text = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {old.uid}"
        raise conflict(kind.resource, old.name, text)
    if version:
        if version != str(old.version):
            raise conflict(kind.resource, old.name)
        return patch
    if not kind.rules.unconditional_update:
        found = [wrong("metadata.resourceVersion", 0, "must be specified for an update")]
        raise invalid(kind.resource, old.name, found)
    return True


def settle_update(draft: Draft) -> Document:
    """Put back what an update may not change, raise the generation if due, check the rules; return the new object."""
    new, old = draft.new, draft.old_document or {}
    rules, about, was = draft.kind.rules, meta(draft.new), meta(old)
    for own in _SERVERS_OWN:
        if own in was:
            about[own] = was[own]
        else:
            about.pop(own, None)
    about["name"] = was["name"]
    rules.prepare_update(new, old, draft.subresource)
    about = meta(new)
    if rules.generation and rules.spec_changed(new, old):
        about["generation"] = was.get("generation", 0) + 1
    found = _metadata_change_errors(new, old)
    found += rules.validate_update(new, old, draft.subresource)
    if found:
        raise invalid(draft.kind.resource, draft.name, found)
    return new


def _metadata_change_errors(new: Document, old: Document) -> list[BrokenRule]:
    about, was = meta(new), meta(old)
    found = names.metadata_errors(new) if about != was else []
    if was.get("deletionTimestamp"):
        added = [f for f in about.get("finalizers") or () if f not in (was.get("finalizers") or ())]
        if added:
            listed = "[]string{" + ", ".join(f'"{each}"' for each in sorted(added)) + "}"
            detail = f"no new finalizers can be added if the object is being deleted, found new finalizers {listed}"
            found.append(forbidden_field("metadata.finalizers", detail))
    return found


def check_preconditions(kind: ServedKind, stored: Stored, deletion: Deletion) -> None:
    """Raise ApiError 409 where a delete asks for another object or another version than the stored one."""
    if deletion.uid is not None and deletion.uid != stored.uid:
        text = (
            f"the UID in the precondition ({deletion.uid}) does not match the UID in record ({stored.uid}). The object"
            " might have been deleted and then recreated"
        )
        raise precondition(kind.resource, stored.name, text)
    if deletion.version is not None and deletion.version != str(stored.version):
        text = (
            f"the ResourceVersion in the precondition ({deletion.version}) does not match the ResourceVersion in record"
            f" ({stored.version}). The object might have been modified"
        )
        raise precondition(kind.resource, stored.name, text)


def sized(document: Document) -> bytes:
    """Return the JSON of an object; ApiError 413 where it is too large to keep."""
    raw = encode(document)
    if len(raw) > OBJECT_BYTES_MAX:
        text = f"Request entity too large: limit is {OBJECT_BYTES_MAX}"
        raise RequestRefusedError(413, "RequestEntityTooLarge", text)
    return raw


def parsed(body: bytes, what: str = "body") -> Any:
    """Return the JSON value of a request; ApiError 400 or 413."""
    if len(body) > OBJECT_BYTES_MAX:
        raise RequestRefusedError(
            413, "RequestEntityTooLarge", f"Request entity too large: limit is {OBJECT_BYTES_MAX}"
        )
    try:
        return decode(body)
    except ValueError as failure:
        raise bad_request(f"error decoding {what}: {failure}") from None
