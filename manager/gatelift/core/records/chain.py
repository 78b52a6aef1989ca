"""A chain: all Workloads of one elastic object in a row, its slices, read as one value (KEP-77, decision 106). Pure.

Of the slices that have quota and are not finished the one of the highest number is the *record*: it is charged, and
placed. A slice on top of it that waits is the *target*. All others are past, or are to be finished. Numbers decide, and
never times: slices can be made in one second. Neighbours: `chains` keeps them by their Workloads and says which
marks are believed; `works.choosing` picks one chain where an object has several.
"""

from __future__ import annotations

import enum
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import NamedTuple

from gatelift.core import texts
from gatelift.core.api.user_objects import Name
from gatelift.core.records import epochs
from gatelift.core.records.record import Record
from gatelift_kinds.shared import sizes, slices
from gatelift_kinds.shared.sizes import SizeError
from gatelift_kube.objects.conditions import find
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.values.resources import ObjectKey

REPLACED = "WorkloadSliceReplaced"
OUT_OF_SYNC = "OutOfSync"
_PAST = frozenset({REPLACED, OUT_OF_SYNC})
"""Reasons of Finished by which a slice is past, and what runs is not over (Kueue's)."""
UNREADABLE = 0
"""Number of a slice of which nobody can tell it; those that can be read are 1 or more."""


class Role(enum.Enum):
    """What a slice is in its chain."""

    CURRENT = "the record, or what is to become it, or what it was"
    TARGET = "waits to grow the record"
    SUPERSEDED = "has quota, and its place is taken: it is to be finished"
    OUT_OF_SYNC = "nobody asks for it any more: it is to be finished"
    PAST = "finished before the end of what runs"
    SURPLUS = "of another chain of the same object, and has quota: it is to be stopped and deleted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """One Workload of a chain, as far as chains go by it. `number`: `UNREADABLE` where nobody can tell it."""

    key: ObjectKey
    uid: str
    owner: Name
    said: str
    """The UID of the first slice of its chain, as it says itself."""
    names: ObjectKey | None
    """Whose place it says that it takes."""
    number: int
    epoch: int
    is_unused: bool
    """It never had quota, as far as it shows."""
    reserved: bool
    """It has quota as what runs, or is to; not what is reserved to grow that."""
    asks: bool
    """Quota is reserved to grow what runs, and checks of other controllers are asked about that (SL-33)."""
    placed: bool
    """It has quota, and a winner."""
    finished: bool
    past: bool
    created: str

    @property
    def place(self) -> tuple[int, str]:
        """Where it stands among its chain: sizes only go up; the UID tells those of one number apart."""
        return self.number, self.uid

    @property
    def open(self) -> bool:
        """Say whether it is not finished."""
        return not self.finished


def read_slice(workload: Workload, rec: Record, owner: Name) -> Slice:
    """Read what a Workload says of its chain; `owner`: its user's object."""
    try:
        number = sizes.number_of(workload.metadata.annotations)
    except SizeError:
        number = UNREADABLE
    over = find(workload.status.conditions, texts.FINISHED) if rec.finished else None
    grows = asks(workload, rec)
    return Slice(
        key=rec.ref.key,
        uid=rec.uid,
        owner=owner,
        said=slices.chain_of(workload),
        names=slices.replaced_by(workload),
        number=number,
        epoch=rec.highest_epoch + 1 if rec.epoch_used else rec.epoch,
        is_unused=(grows or not rec.reserved) and epochs.used(workload) == 0,
        reserved=rec.reserved and not grows,
        asks=grows and not rec.finished,
        placed=rec.reserved and bool(rec.cluster) and not rec.finished,
        finished=rec.finished,
        past=over is not None and over.reason in _PAST,
        created=workload.metadata.creation_timestamp or "",
    )


def asks(workload: Workload, rec: Record) -> bool:
    """Say whether a reservation is one to grow what runs: of a slice in the place of another one, and of no epoch.

    One that is placed, or is to be, has the epoch in which it is (R5); this one is of the record's, and runs nothing.
    """
    unplaced = rec.reserved and not rec.cluster and not rec.written_epoch
    return unplaced and slices.replaced_by(workload) is not None


class ChainHistory(NamedTuple):
    """What is over of a chain. `owner`: whose it is; `past`: the oldest first; `highest`: number that it ever had."""

    owner: Name | None = None
    past: tuple[Slice, ...] = ()
    highest: int = UNREADABLE


NONE = ChainHistory()


@dataclass(frozen=True, slots=True)
class Chain:
    """One chain. `uid`: of its first slice, by which it is placed; `slices`: by number, without the past ones.

    `current`: the record; without one what is next to become it, or the last one of a chain that is over; None where
    the record was deleted. `is_held`: the number of an open slice cannot be read, so that nothing is resized.
    """

    uid: str
    slices: tuple[Slice, ...]
    record: Slice | None = None
    current: Slice | None = None
    target: Slice | None = None
    roles: dict[str, Role] = field(default_factory=dict)
    history: ChainHistory = NONE

    @property
    def owner(self) -> Name | None:
        """Whose it is, None where nobody can tell."""
        return self.history.owner

    def role_of(self, uid: str) -> Role:
        """Return what one of its slices is."""
        return self.roles.get(uid, Role.PAST)

    @property
    def past(self) -> tuple[Slice, ...]:
        """Those that are over while what runs is not, the oldest first; also such as somebody finished by hand."""
        by_hand = [each for each in self.slices if self.roles[each.uid] is Role.PAST]
        return (
            tuple(sorted((*self.history.past, *by_hand), key=lambda each: each.place)) if by_hand else self.history.past
        )

    def has_had(self, number: int) -> bool:
        """Say whether one of its slices that is there has this number."""
        return any(each.number == number for each in (*self.slices, *self.history.past))

    @property
    def is_held(self) -> bool:
        """Say whether nobody can tell which number comes next."""
        return any(each.open and each.number == UNREADABLE for each in self.slices)

    @property
    def is_over(self) -> bool:
        """Say whether what ran has ended for good."""
        return self.current is not None and self.current.finished

    @property
    def rank(self) -> tuple[bool, bool, bool, bool, tuple[int, str]]:
        """By which one chain of an object counts before others: placed, with quota, over, then by number."""
        if self.current is None:
            return False, False, False, False, (0, self.uid)
        record = self.record
        return record is not None and record.placed, record is not None, self.is_over, True, self.current.place

    @property
    def highest(self) -> int:
        """The highest number that any slice of it has, or had: the next one is above it (Size 4)."""
        return max((self.history.highest, *(each.number for each in self.slices)))


def assess(uid: str, members: Collection[Slice], history: ChainHistory = NONE) -> Chain:
    """Return a chain with what each of its slices is; `members`: all that are not in its history."""
    found = tuple(sorted(members, key=lambda each: each.place))
    record = _record(found)
    current = record or _over(found) or _next(found)
    target = _target(found, current) if current is not None and current.open else None
    chain = Chain(uid, found, record, current, target, history=history)
    chain.roles.update((each.uid, _role(chain, each)) for each in found)
    return chain


def alone(one: Slice) -> Chain:
    """Return the chain of a slice whose mark is not believed: what waits is nobody's next one, and gets no quota."""
    if one.open and not one.reserved:
        return Chain(one.uid, (one,), roles={one.uid: Role.OUT_OF_SYNC}, history=ChainHistory(one.owner))
    return assess(one.uid, (one,), ChainHistory(one.owner))


def _record(found: tuple[Slice, ...]) -> Slice | None:
    """Return the slice of the highest number that has quota; one of an epoch that has ended is never followed (Size 1).

    Whoever ends an epoch says so on what waits first. So a reservation in an earlier epoch than a slice below it has is
    a write that landed late.
    """
    reserved = [each for each in found if each.open and each.reserved]
    below = {
        each.uid: max((one.epoch for one in found if one.open and one.place < each.place), default=0)
        for each in reserved
    }
    return next((each for each in reversed(reserved) if each.epoch >= below[each.uid]), None)


def _over(found: tuple[Slice, ...]) -> Slice | None:
    """Return the slice in which what ran has ended for good."""
    return next((each for each in reversed(found) if each.finished and not each.past), None)


def _next(found: tuple[Slice, ...]) -> Slice | None:
    """Return the slice that goes first where none has quota: the lowest, as any Workload.

    Not one that never had any and is on top of what is not there, or over: that was the end of its chain.
    """
    waiting = [each for each in found if each.open and not each.reserved]
    there = {each.key for each in waiting}
    return next((each for each in waiting if each.names is None or not each.is_unused or each.names in there), None)


def _target(found: tuple[Slice, ...], current: Slice) -> Slice | None:
    above = (
        each
        for each in reversed(found)
        if each.open and not each.reserved and each.names == current.key and each.number > current.number
    )
    return next(above, None)


def _role(chain: Chain, each: Slice) -> Role:
    if chain.current is not None and each.uid == chain.current.uid:
        return Role.CURRENT
    if each.finished:
        return Role.PAST
    if chain.target is not None and each.uid == chain.target.uid:
        return Role.TARGET
    if each.reserved and chain.record is not None and each.place < chain.record.place:
        return Role.SUPERSEDED
    return Role.OUT_OF_SYNC
