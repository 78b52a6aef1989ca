"""What a deciding core sees of the Kubernetes API and what it asks of it: plain values, no I/O.

Events: `ObjectSeen`, `ObjectGone`, `Synced`, `WriteDone`, `WriteFailed`.
Commands: `Create`, `Patch`, `Delete`, `EmitEvent`.

Every write carries a `write_id` chosen by the core; exactly one `WriteDone` or `WriteFailed` with that id comes back,
at the latest `WRITE_SECONDS_MAX` after the command was taken up (the executor enforces it).
Writes to one object (same `ObjectRef`) are carried out in the order in which they were asked for.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Protocol

from gatelift_kube.objects.meta import ObjectMeta
from gatelift_kube.values.resources import ObjectRef, Resource

WRITE_SECONDS_MAX = 10.0
"""After this long each write is answered or given up (protocol rule R1: the time limit of writes). It may land later:
by how much, and what that means, stands in decision 28."""


class KubeObject(Protocol):
    """Any typed object: all have metadata."""

    @property
    def metadata(self) -> ObjectMeta:
        """Name, namespace, UID, resourceVersion, labels, ..."""
        ...


@dataclass(frozen=True, slots=True)
class ObjectSeen:
    """An object was added or changed. `raw` is its JSON as served, for what the typed object does not carry."""

    resource: Resource
    object: KubeObject
    raw: bytes


@dataclass(frozen=True, slots=True)
class ObjectGone:
    """An object is no longer there; `object` is the last state known."""

    resource: Resource
    object: KubeObject


@dataclass(frozen=True, slots=True)
class Synced:
    """A complete list (a quorum read) of a kind has been delivered: the first one, and each that was asked for since.

    What it has is told as `ObjectSeen` before, and what it has no more as `ObjectGone`.
    """

    resource: Resource


class PatchKind(enum.Enum):
    """How a change is told, by its content type. Server-side apply is never used."""

    MERGE = "application/merge-patch+json"  # lists are replaced
    JSON = "application/json-patch+json"
    REPLACE = "application/json"  # a PUT of the whole subresource: for statuses that are ours and known in full


@dataclass(frozen=True, slots=True, kw_only=True)
class Create:
    """Create the object in `body` (complete JSON document).

    `dry_run`: only ask what would be made. Nothing is kept; the answer is as admission would have it.
    """

    write_id: int
    ref: ObjectRef
    body: bytes
    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """Patch an object. Preconditions (uid, resourceVersion) are part of `body`.

    A MERGE or REPLACE body names them under `metadata`, a JSON body as `test` operations.
    """

    write_id: int
    ref: ObjectRef
    body: bytes
    kind: PatchKind = PatchKind.MERGE
    subresource: str = ""
    informs: bool = False
    """Only people read what this changes (a pending status, a queue's numbers): it has a tenth of the budget."""
    holds: bool = False
    """Something is kept for it until it is written: no other write of its namespace stands before it for long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """Delete an object with preconditions; `grace_seconds` None means the object's own."""

    write_id: int
    ref: ObjectRef
    uid: str
    resource_version: str | None = None
    grace_seconds: int | None = None
    propagation: str = "Background"


@dataclass(frozen=True, slots=True, kw_only=True)
class EmitEvent:
    """Tell people. Best effort: own budget, aggregated, dropped oldest first under load; has no outcome."""

    ref: ObjectRef
    uid: str
    warning: bool
    reason: str
    message: str
    action: str = ""


class WriteError(enum.Enum):
    """Why a write did not happen, or may not have happened."""

    CONFLICT = "conflict"  # it changed meanwhile (resourceVersion); whether it is still there is not said
    PRECONDITION = "precondition"  # another UID is there, or a test of a JSON patch did not hold
    ALREADY_EXISTS = "already-exists"
    NOT_FOUND = "not-found"
    NAMESPACE_MISSING = "namespace-missing"  # not there or terminating
    INVALID = "invalid"
    FORBIDDEN = "forbidden"  # RBAC
    DENIED = "denied"  # an admission webhook or policy said no; the message is its text
    QUOTA = "quota"  # ResourceQuota said no
    TOO_LARGE = "too-large"
    NOT_SENT = "not-sent"  # it never left the process, for want of a turn: ask again, with what is due by then
    NOT_DONE = "not-done"  # certainly not written, by no fault of the request: turned away; ask again later
    UNKNOWN = "unknown"  # timeout or broken connection: it may have happened; read again before deciding


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteDone:
    """The write happened. `object` and `raw` are the answer (None after a delete that removed the object at once)."""

    write_id: int
    object: KubeObject | None
    raw: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteFailed:
    """The write did not happen (or, UNKNOWN, nobody can tell). Retries by the executor are already behind it."""

    write_id: int
    error: WriteError
    message: str


ApiWrite = Create | Patch | Delete
ApiEvent = ObjectSeen | ObjectGone | Synced | WriteDone | WriteFailed
