"""Requests that are under way: what each was for, so that its outcome finds its way back."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from gatelift_kube.deciding.writes import PatchKind
from gatelift_wire.values.keys import PlacementKey


class WritePurpose(enum.Enum):
    """What a write is for."""

    __hash__ = object.__hash__  # members are singletons; the one of Enum is Python code on the hot path

    CREATE = "create"
    SAMPLE = "ask for"  # asks what a pod of a Job would be here; makes nothing
    WHY = "ask why a pod is missing"  # asks as well what a pod would be; makes nothing, and nothing waits for it
    PROBE = "probe"  # finds out whether a create of unknown outcome made an object
    LABELS = "put labels back"
    NOTE = "note again what is to be restored"
    PUT_BACK = "put an edit back"
    TOLD = "note what was told of an edit"
    ROOM = "ask for room"  # of the backend of the remote admission (`admission`)
    TAKE_IN = "take in what a driver made here"
    TURN_AWAY = "turn away"  # ends what waits at its gate and has no place; it is of no placement
    LIFT = "lift"
    HOLD = "hold back what its user let go"
    GATES = "user gates"
    SAY_END = "say why it ends"  # informs; the stop goes on whatever becomes of it
    STOP = "stop"
    RESTORE = "restore"  # gives the user's own object back what the lift took; it has stopped before
    PODS = "read pods"  # reads which pods of a Job there are
    NAMESPACE = "namespace"  # reads whether the namespace of a placement is still the one that it is in
    SIZE = "set the size"
    UNGATE = "let a pod go by count"
    CHILD_LABELS = "ask for a pod of a Job"  # puts its labels back, where it is still there
    CHILD = "child"  # deletes a pod whose Job is gone
    REMOVE = "remove"  # deletes what was forgotten
    REMOVE_STRAY = "remove stray"  # deletes what is ours, has no placement and is in the way
    UNFINALIZE = "unfinalize"
    RECORD = "record"
    STATE = "state"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One write under way. `name` is the object's name inside its placement, or the shard of a record.

    `deletes`: a conflict can only mean that the UID is another one, so what was to be deleted is gone. `form` tells the
    writes of one purpose apart: a stop of a Job has several, one after the other.
    """

    purpose: WritePurpose
    key: PlacementKey | None
    name: str
    at: float
    form: str = ""
    deletes: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedPatch:
    """A patch of an object of a placement. `body` has its preconditions, `what` tells patches of one purpose apart."""

    purpose: WritePurpose
    body: bytes
    kind: PatchKind = PatchKind.JSON
    subresource: str = ""
    what: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedDelete:
    """The deletion of an object of a placement, with its UID as precondition."""

    purpose: WritePurpose
    uid: str
    grace_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class SamplePod:
    """A pod of a pod set as an object of a placement would make one more: asked about, and never made."""

    pod_set: str
    body: bytes


class Writes:
    """Numbers writes and remembers those without an outcome."""

    __slots__ = ("_asked", "_next")

    def __init__(self) -> None:
        self._next = 1
        self._asked: dict[int, Asked] = {}

    def ask(self, asked: Asked) -> int:
        """Remember a write and return its id."""
        write_id = self._next
        self._next += 1
        self._asked[write_id] = asked
        return write_id

    def answered(self, write_id: int) -> Asked | None:
        """Return what the write was for and forget it; None for an id that is not under way."""
        return self._asked.pop(write_id, None)

    def look(self, write_id: int) -> Asked | None:
        """Return what a write that is under way is for, None for any other id."""
        return self._asked.get(write_id)

    @property
    def count(self) -> int:
        """How many writes are under way."""
        return len(self._asked)

    def next_generation(self) -> Writes:
        """Return an empty register that goes on numbering: late answers of the old one mean nothing to the new."""
        fresh = Writes()
        fresh._next = self._next
        return fresh
