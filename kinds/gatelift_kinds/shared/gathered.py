"""What a kind keeps of all objects of one work, and what is asked of them together. Pure.

For kinds whose works have several objects (pods of a group). It is kept up by each change of one object, so that nobody
goes through all of them. Neighbour: `gatelift_kinds.kind`, which says whether a kind gathers.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from gatelift_kinds.shared.values import ObjectEnd, Part, Priority, PriorityNames
from gatelift_kube.objects.core import PodSpec
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.objects.meta import Condition
from gatelift_wire.values.messages import PodSetCounts

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


class StoppingObject(NamedTuple):
    """An object that is being deleted and may still run: its name, and since when, RFC 3339 in UTC."""

    name: str
    since: str


class Replaced(NamedTuple):
    """One whose place another one has, or is to have. `why`: it failed, or is leaving.

    `by`: who is about to take it, "" where that is not known any more, or nobody is there yet (`is_taken`: it is).
    """

    name: str
    by: str
    why: str
    is_taken: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldOfAll:
    """What people are told of all objects: how many stand where, what lacks, whose place is whose, what leaves."""

    wanted: int
    standing: tuple[tuple[str, int], ...]
    lacks: str
    replaced: tuple[Replaced, ...]
    leaving: tuple[StoppingObject, ...]


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

    def asks(self, workload: Workload | None) -> None:
        """Take the Workload that has quota, None while it waits: who is not let go yet has to ask for that.

        Those of whom it says something new are to be read anew.
        """
        ...

    def is_unread(self, uid: str) -> bool:
        """Return whether an object has to be read anew before it is let go."""
        ...

    def read_anew(self, uids: Iterable[str]) -> tuple[Called, ...]:
        """Read objects anew, and return them."""
        ...

    def misfit(self, uid: str) -> str:
        """Return why an object has no place among them, with the way out: it is never let go; "" where it has one."""
        ...

    def unlike(self, workload: Workload, uid: str) -> str:
        """Return what an object that has a place says otherwise than its Workload, which has quota; "" for nothing."""
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

    @property
    def is_over(self) -> bool:
        """Say whether they have come to their end by themselves, which nothing is made of any more."""
        ...

    def is_left(self, uid: str) -> bool:
        """Return whether an object may go while there is no Workload: nothing of it runs, or is to run."""
        ...

    def is_named(self, workload: Workload, uid: str) -> bool:
        """Return whether a Workload names an object of theirs as an owner."""
        ...

    def names_any(self, workload: Workload) -> bool:
        """Return whether a Workload names any of those that are there."""
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

    def own_marks(self, workload: Workload) -> Mapping[str, str]:
        """Return the annotations that say of a Workload of theirs that it is, where it lacks one; else none."""
        ...

    @property
    def is_prebuilt(self) -> bool:
        """Say whether they name a Workload that their user makes: none is made of them, and it stays as it is."""
        ...

    def not_adopted(self, workload: Workload | None) -> str:
        """Return why the Workload that their user made cannot become theirs, with the way out; "" where it can.

        None: there is none of that name. Where nothing lacks.
        """
        ...

    def awaits(self, workload: Workload) -> bool:
        """Return whether a Workload of nobody's is to become theirs, now or once nothing lacks."""
        ...

    def differs(self, workload: Workload) -> str:
        """Return how that Workload, once it is theirs, differs from what they ask for; "" where it does not."""
        ...

    def adoption(self, workload: Workload) -> bytes:
        """Return the JSON patch, for the version that was seen, by which it becomes theirs."""
        ...

    def matches(self, workload: Workload) -> bool:
        """Return whether a Workload that waits asks for what they do. Where nothing lacks."""
        ...

    def asks_for(self, workload: Workload) -> bool:
        """Return whether the pod sets of a Workload are what they ask for: then those stay as they are."""
        ...

    def surplus(self, workload: Workload) -> tuple[Called, ...]:
        """Return the objects that are too many for a Workload which holds quota; the first ones, where there are many.

        While it waits, `lacks` says so.
        """
        ...

    def waiting_condition(self, workload: Workload) -> Condition | None:
        """Return the condition of a Workload about objects that have to be made again; None where it is to stay."""
        ...

    def waits(self, workload: Workload) -> bool:
        """Return whether objects have to be made again before it gets quota, or it says so still."""
        ...

    @property
    def waiting(self) -> int:
        """How many wait at their gate."""
        ...

    @property
    def may_run(self) -> bool:
        """Say whether an object was let go and is not known to have stopped."""
        ...

    @property
    def stands_still(self) -> bool:
        """Say whether some succeeded, none runs, and whoever is left waits for a slot of those that were granted."""
        ...

    @property
    def home_only(self) -> str:
        """Why they must not be placed elsewhere, with the way out; "" when they may."""
        ...

    def is_at_worker(self, placement: Hashable, workload: Workload, *, found: bool = False) -> None:
        """Take that a placement at a worker is live: each held back that its Workload names may run there.

        Nobody else can, since who is told of is named first. Said again, it changes nothing. `found`: it was there
        before this leader was: so may one of which nobody has told it yet.
        """
        ...

    @property
    def is_counted(self) -> bool:
        """Say whether all are counted by where they may run; else what is asked of them counts the others first."""
        ...

    def counts(self, most: int) -> bool:
        """Count so many of those that are not yet; True: all are. So that no call has to count thousands at once."""
        ...

    def keeps_ends(self, workload: Workload) -> None:
        """Take what their Workload keeps of how some of them ended at a worker that cannot show it."""
        ...

    def ends_to_keep(self, workload: Workload, ends: Mapping[str, bool]) -> tuple[str, str] | None:
        """Return name and text of the annotation by which a Workload keeps how these ended; None where it does.

        `ends`: by UID, whether it succeeded.
        """
        ...

    def is_home(self) -> None:
        """Take that nothing of them runs elsewhere."""
        ...

    def runs_elsewhere(self, uid: str) -> None:
        """Take that a worker was told of an object."""
        ...

    def waits_elsewhere(self, uid: str, *, waits: bool) -> None:
        """Take that a worker says of an object whether it waits there for a slot: it may be one too many."""
        ...

    def stopped_elsewhere(self, uid: str, *, well: bool = False) -> None:
        """Take that a worker says of an object that it has stopped there."""
        ...

    def has_run(self, uid: str) -> bool:
        """Say whether an object is of theirs, and was let go, here or as a worker may have: it stays one of them."""
        ...

    def is_told_of(self, uid: str) -> bool:
        """Say whether a worker may have been told of an object; of one that waits at home it was not."""
        ...

    def makes_there(self, counts: tuple[PodSetCounts, ...]) -> bool:
        """Take what one of them has made at a worker by itself, which is no object at home; False where it is no news.

        Before anything is said of that, in a work that declares so, they have come to no end.
        """
        ...

    @property
    def declared_later(self) -> dict[str, bytes]:
        """What of each pod set is to be made later by one of them, as a pod spec in JSON, by name."""
        ...

    def there(self, granted: Mapping[str, int]) -> tuple[PlacedPart, ...]:
        """Return the objects that may run at a worker, also more than were granted: one may wait there for a slot."""
        ...

    def to_join(self, workload: Workload, granted: Mapping[str, int]) -> tuple[PlacedPart, ...]:
        """Return the objects that may take a slot which is free, that the Workload names, and nobody was told of.

        At home that is said by `tells`; at a worker by `runs_elsewhere`.
        """
        ...

    def came_late(self, workload: Workload, uid: str) -> bool:
        """Return whether a Workload names an object only since it has quota: another one may have had its place."""
        ...

    def tells(self, uid: str) -> None:
        """Take that the agent at home was told of an object."""
        ...

    def tells_anew(self) -> None:
        """Take that no agent was told of any, as in another session, or of another placement."""
        ...

    def travels_as(self, uid: str) -> Part | None:
        """Return an object as it is made elsewhere; None where it is not known."""
        ...

    def replaced(self, workload: Workload) -> tuple[Called, ...]:
        """Return the objects that failed, bear our finalizer and have another one in their place, which is named."""
        ...

    def parts(self, workload: Workload, granted: Mapping[str, int]) -> tuple[PlacedPart, ...]:
        """Return which objects run, or may be let go, where so many per pod set were granted: never more than that."""
        ...

    def over(self, workload: Workload, granted: Mapping[str, int]) -> dict[str, int]:
        """Return how many of the pods that a Workload asks for succeeded, and need quota no longer, without zeros.

        `granted`: by its record, nothing without one. Never so many that less would be charged than may run.
        """
        ...

    def unproven(self) -> dict[str, int]:
        """Return how many show that they succeeded, by pod set, and no worker of the live placement has said so.

        They were over before it, or a leader before has heard of it; or somebody else has written that.
        """
        ...

    def left(self, workload: Workload, granted: Mapping[str, int], epoch: int) -> dict[str, int]:
        """Return how many of the pods that a Workload asks for are over while that epoch is stopped, without zeros.

        Asked from the time on at which it begins to be stopped: who was over before does not count.
        """
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

    def told(self, workload: Workload | None) -> ToldOfAll:
        """Return what people are told who ask: of the objects, and of their Workload, where they have one."""
        ...

    def releases(self, uid: str) -> bool:
        """Return whether the finalizer of an object that is being deleted may go."""
        ...
