"""AdmissionReview in and out. Pure and total: any bytes give an answer or a `BadReviewError`.

The objects inside come from a user by way of the API server, which runs webhooks before it validates: labels may be
missing, lists may be null, and in tests of malice anything may be anything. So the parts that rules look at are
checked for their types first; what does not fit is refused with the path of the field.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from gatelift.webhooks.envelope import Envelope
from gatelift_kinds.registry import SERVED
from gatelift_kinds.shared import unserved
from gatelift_kinds.shared.hooks import CheckedMeta
from gatelift_kinds.shared.review import ErrorKind, FieldError, Verdict

API_VERSION = "admission.k8s.io/v1"
MESSAGE_CHARS_MAX = 2000
"""A refusal is read by a person on a terminal; longer texts are cut."""
WARNINGS_MAX = 8
WARNING_CHARS_MAX = 256  # the API server cuts longer ones
GATELIFT_GROUP = "system:serviceaccounts:{namespace}"

Json = dict[str, Any]


class _User(msgspec.Struct):
    username: str = ""
    groups: list[str] | None = None


class _Kind(msgspec.Struct):
    kind: str = ""
    group: str = ""


class _Request(msgspec.Struct, rename="camel"):
    uid: str
    operation: str
    kind: _Kind = msgspec.field(default_factory=_Kind)
    namespace: str = ""
    name: str = ""
    object: Json | None = None
    old_object: Json | None = None
    user_info: _User = msgspec.field(default_factory=_User)
    dry_run: bool | None = None


_REVIEW = Envelope(API_VERSION, "AdmissionReview", _Request)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What the API server asks. `new` and `old` are checked: the parts that rules look at have their types."""

    uid: str
    operation: str
    kind: str
    namespace: str
    new: Json
    old: Json
    groups: tuple[str, ...]
    username: str = ""
    group: str = ""
    """Of the kind."""
    dry_run: bool = False
    body_bytes: int = 0
    """Of the whole review: neither object is larger."""
    problem: str = ""
    """Why the object cannot even be looked at, "" if it can."""

    def asked_by_gatelift(self, namespace: str) -> bool:
        """Return whether one of our own service accounts sent the object."""
        return GATELIFT_GROUP.format(namespace=namespace) in self.groups


def read(body: bytes | bytearray) -> Question:
    """Read a review. BadReviewError: it is none, so there is nobody to answer to."""
    request = _REVIEW.open(body)
    new, old = request.object or {}, request.old_object or {}
    return Question(
        uid=request.uid,
        operation=request.operation,
        kind=request.kind.kind,
        group=request.kind.group,
        namespace=request.namespace,
        new=new,
        old=old,
        groups=tuple(request.user_info.groups or ()),
        username=request.user_info.username,
        dry_run=request.dry_run is True,
        body_bytes=len(body),
        problem=_problem(request.kind.kind, new) or _problem(request.kind.kind, old),
    )


def allow(uid: str, operations: tuple[Json, ...] = (), warnings: tuple[str, ...] = ()) -> bytes:
    """Return the answer yes, with a JSON patch if there is one."""
    response: Json = {"uid": uid, "allowed": True}
    if operations:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(msgspec.json.encode(operations)).decode()
    return _answer(response, warnings)


def deny(uid: str, verdict: Verdict) -> bytes:
    """Return the answer no: all that is wrong, in one line."""
    text = "; ".join(str(error) for error in verdict.errors)[:MESSAGE_CHARS_MAX]
    only_forbidden = all(error.kind is ErrorKind.FORBIDDEN for error in verdict.errors)
    status = (
        {"code": 403, "reason": "Forbidden", "message": text}
        if only_forbidden
        else {"code": 422, "reason": "Invalid", "message": text}
    )
    return _answer({"uid": uid, "allowed": False, "status": status}, verdict.warnings)


def malformed(question: Question) -> bytes:
    """Return the answer no to an object that cannot be looked at."""
    error = FieldError(kind=ErrorKind.INVALID, path=question.kind or "object", text=question.problem)
    return deny(question.uid, Verdict(errors=(error,)))


def _answer(response: Json, warnings: tuple[str, ...]) -> bytes:
    if warnings:
        response["warnings"] = [text[:WARNING_CHARS_MAX] for text in warnings[:WARNINGS_MAX]]
    return msgspec.json.encode({"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": response})


# --- types of the parts that rules look at ------------------------------------------------------------------------


class _Made(msgspec.Struct):
    metadata: CheckedMeta | None = None


class _MadeJobSpec(msgspec.Struct):
    template: _Made | None = None


class _MadeJob(msgspec.Struct):
    metadata: CheckedMeta | None = None
    spec: _MadeJobSpec | None = None


class _MakerSpec(msgspec.Struct, rename="camel"):
    template: _Made | None = None
    job_template: _MadeJob | None = None


class _Maker(msgspec.Struct):
    metadata: CheckedMeta | None = None
    spec: _MakerSpec | None = None


_SHAPES: Mapping[str, Any] = {
    **{each.kind: SERVED.hook(each).shape for each in SERVED.hooked},
    **{each.kind: _Maker for each in unserved.BUILT_IN},
    **{each.kind: _Made for each in unserved.EXTENSIONS},  # their spec is their CRD's; the rule takes any
}


def _problem(kind: str, document: Json) -> str:
    shape = _SHAPES.get(kind)
    if shape is None or not document:
        return ""
    try:
        msgspec.convert(document, shape, strict=True)
    except msgspec.ValidationError as error:
        return f"{error}: give the field the type that the API says"
    return ""


def controller_of(document: Json) -> tuple[str, str, str, str] | None:
    """Return (apiVersion, kind, name, uid) of the controller owner of a checked object, None if it has none."""
    for owner in (document.get("metadata") or {}).get("ownerReferences") or []:
        if owner.get("controller"):
            return (owner.get("apiVersion", ""), owner.get("kind", ""), owner.get("name", ""), owner.get("uid", ""))
    return None
