"""What a kind keeps of all objects of one work, and what is asked of them together. Pure.

For kinds whose works have several objects (pods of a group). It is kept up by each change of one object, so that nobody
goes through all of them. Neighbour: `gatelift_kinds.kind`, which says whether a kind gathers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from gatelift_kinds.shared.values import ObjectEnd, Priority, PriorityNames
from gatelift_kube.objects.core import PodSpec
from gatelift_kube.objects.kueue import Workload

OVER_AT_HOME = "OverAtHome"
"""Reason of a Stop at `local` of what is over, as the manager has seen: its agent may be behind, and ends nothing."""


class Called(NamedTuple):
    """One of the objects: its name, in the namespace of the work, and its UID."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NothingToAsk:
    """Why the objects ask for no Workload: in one line, told when it changes; or `surplus`, objects that go first."""

    text: str = ""
    surplus: tuple[Called, ...] = ()


class PlacedPart(NamedTuple):
    """One object of a placement: which, and of which pod set."""

    called: Called
    pod_set: str


class Gathered(Protocol):
    """All objects of one work. `put` and `drop` may be called again and change nothing then."""

    def put(self, obj: Any, raw: bytes) -> None:
        """Take in an object, or another version of it; `raw`: its JSON as served."""
        ...

    def drop(self, uid: str) -> None:
        """Let go of an object that is gone."""
        ...

    @property
    def unread(self) -> tuple[str, ...]:
        """The UIDs of objects that are to be read anew, since another one says now what they are; the first ones."""
        ...

    def read_anew(self, uids: Iterable[str]) -> tuple[Called, ...]:
        """Read objects anew, and return them."""
        ...

    def misfit(self, uid: str) -> str:
        """Return why an object has no place among them, with the way out: it is never let go; "" where it has one."""
        ...

    def __len__(self) -> int:
        """Return how many objects are ours: not those that were taken out of their queue."""
        ...

    @property
    def speaker(self) -> Called | None:
        """The object at which people are told what concerns all, None where none stands for the others."""
        ...

    @property
    def queue_name(self) -> str:
        """The LocalQueue's name, "" if none; as all of them say where they lack nothing."""
        ...

    @property
    def priority_names(self) -> PriorityNames:
        """Where their priority comes from."""
        ...

    @property
    def is_abandoned(self) -> bool:
        """Say whether all were deleted by their users, and nothing of them runs or may."""
        ...

    def lacks(self) -> NothingToAsk | None:
        """Return why no Workload can be made of them; None where one can."""
        ...

    def workload_document(self, priority: Priority) -> bytes:
        """Return the Workload to create, in epoch 1, as JSON. KindError: it cannot be stored. Where nothing lacks."""
        ...

    def conflict(self, workload: Workload) -> str:
        """Return why a Workload of the name that theirs has is not theirs, with the way out; "" where it is.

        Then it is never adopted, changed or deleted.
        """
        ...

    def matches(self, workload: Workload) -> bool:
        """Return whether a Workload that waits asks for what they do. Where nothing lacks."""
        ...

    def surplus(self, workload: Workload) -> tuple[Called, ...]:
        """Return the objects that are too many for a Workload which holds quota; the first ones, where there are many.

        While it waits, `lacks` says so.
        """
        ...

    @property
    def may_run(self) -> bool:
        """Say whether an object was let go and is not known to have stopped."""
        ...

    @property
    def home_only(self) -> str:
        """Why they must not be placed elsewhere, with the way out; "" when they may."""
        ...

    def parts(self, granted: Mapping[str, int]) -> tuple[PlacedPart, ...]:
        """Return which objects run, or may be let go, where so many per pod set were granted: never more than that."""
        ...

    def needs(self, spec: PodSpec) -> str:
        """Return the digest of what each pod of a pod set needs by what was admitted: none is let go that differs."""
        ...

    def outcome(self, workload: Workload) -> ObjectEnd | None:
        """Return how all of them ended, None while they have not; `workload`: what was asked for."""
        ...

    def pods_ready(self, workload: Workload) -> bool:
        """Return whether as many as a Workload asks for are ready, or have succeeded."""
        ...

    def owners_patch(self, workload: Workload) -> bytes | None:
        """Return the JSON patch that has a Workload name the objects which it does not name yet; None for none."""
        ...

    def releases(self, uid: str) -> bool:
        """Return whether the finalizer of an object that is being deleted may go."""
        ...
