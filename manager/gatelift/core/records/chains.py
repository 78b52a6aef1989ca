"""All chains, by the UIDs of their Workloads: which marks are believed, and whose quota a placement stands on. Pure.

A slice says of which chain it is by the UID of the first one. That is believed where both have one controller and one
namespace (SL-49). Whose a chain is does not change while this process knows it; where the first slice is gone before
that, it is the object that has quota by it, or the only one that names it. What is not believed is nobody's next slice,
and gets no quota, so that no two objects ever have some by one name. Only this module writes the index; `knowledge`
has it; those that are past stand by themselves, in `past`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from gatelift.core.api.user_objects import NAME_CHARS_MAX, Name
from gatelift.core.records.chain import Chain, ChainHistory, Slice, alone, assess
from gatelift.core.records.past import PastSlices
from gatelift.core.records.size_wishes import SizeWishes


@dataclass(slots=True)
class SliceIndex:
    """The slices of elastic work that are known. Nothing is here where nothing is elastic.

    `_raw`: the Workload as served, of those that are not finished: the next slice is made of it.
    """

    _slices: dict[str, Slice] = field(default_factory=dict)
    _raw: dict[str, bytes] = field(default_factory=dict)
    _named: dict[str, dict[str, Slice]] = field(default_factory=dict)
    """By the UID of a first slice: who says that it is of that chain, and is not past."""
    _past: PastSlices = field(default_factory=PastSlices)
    _owners: dict[str, Name] = field(default_factory=dict)
    """By the UID of a first slice: whose chain it is."""
    _began: dict[str, str] = field(default_factory=dict)
    """By the UID of a first slice: when that was made, or the first of those that are there."""
    _highest: dict[str, int] = field(default_factory=dict)
    """By the UID of a first slice: the highest number that one of its slices has or had, also one that is gone."""
    wishes: SizeWishes = field(default_factory=SizeWishes)
    """By the UID of a first slice: since when another size is wanted."""
    _of_owner: dict[Name, dict[str, None]] = field(default_factory=dict)
    """The UIDs of the slices of an object that are not past."""
    _read: dict[str, Chain] = field(default_factory=dict)
    _chosen: dict[Name, Chain | None] = field(default_factory=dict)

    def put(self, one: Slice, raw: bytes) -> None:
        """Take in a slice, or another version of it; `raw` empty: as it was served before."""
        self._leave(one.uid)
        self._slices[one.uid] = one
        if raw and one.open:
            self._raw[one.uid] = raw
        elif one.finished:
            self._raw.pop(one.uid, None)
        if one.past:
            self._past.put(one)
        else:
            self._named.setdefault(one.said, {})[one.uid] = one
            self._of_owner.setdefault(one.owner, {})[one.uid] = None
        self._highest[one.said] = max(one.number, self._highest.get(one.said, 0))
        self._forget(one)
        began = self._began.get(one.said)
        if one.created and (began is None or one.created < began):
            self._began[one.said] = one.created

    def drop(self, uid: str) -> None:
        """Forget a slice that is gone, or is none any more."""
        self._leave(uid)
        self._slices.pop(uid, None)
        self._raw.pop(uid, None)

    def _leave(self, uid: str) -> None:
        known = self._slices.get(uid)
        if known is None:
            return
        self._forget(known)
        if known.past:
            self._past.drop(known)
        else:
            named, own = self._named[known.said], self._of_owner[known.owner]
            named.pop(uid, None)
            own.pop(uid, None)
            if not own:
                del self._of_owner[known.owner]
            if not named:
                del self._named[known.said]
        if known.said not in self._named and not self._past.owners(known.said):
            for each in (self._owners, self._began, self._highest):
                each.pop(known.said, None)
            self.wishes.drop(known.said)

    def _forget(self, one: Slice) -> None:
        """Read anew what a slice is in; where nobody can tell yet whose a chain is, that of all who name it."""
        self._read.pop(one.said, None)
        self._read.pop(one.uid, None)
        self._chosen.pop(one.owner, None)
        for name in {one.said, one.uid} - self._owners.keys() | {one.uid}:
            for owner in {each.owner for each in self._named.get(name, {}).values()} | self._past.owners(name):
                self._chosen.pop(owner, None)

    def called(self, uid: str) -> Chain:
        """Return the chain whose first slice has this UID."""
        return self._chain(uid)

    def slice_of(self, uid: str) -> Slice | None:
        """Return the slice that a Workload is."""
        return self._slices.get(uid)

    def number_of(self, uid: str) -> int:
        """Return the number of the size that a record has; 0 where it has none, or nobody can tell it."""
        chain = self.of(uid)
        if chain is None or chain.is_held or chain.record is None or chain.record.uid != uid:
            return 0
        return chain.record.number

    def raw(self, uid: str) -> bytes:
        """Return the JSON of a slice as it was served last, b"" where that is not known."""
        return self._raw.get(uid, b"")

    def of(self, uid: str) -> Chain | None:
        """Return the chain of a Workload, None where it is no slice; of what is not believed it is alone in one."""
        one = self._slices.get(uid)
        if one is None:
            return None
        return self._chain(one.said) if self.is_believed(uid) else alone(one)

    def is_believed(self, uid: str) -> bool:
        """Say whether a slice is of the chain that it names."""
        one = self._slices.get(uid)
        return one is None or one.owner == self._chain(one.said).owner

    def chain_uid(self, uid: str) -> str:
        """Return the UID by which what a Workload stands for is placed: its own, unless it is a later slice."""
        one = self._slices.get(uid)
        return one.said if one is not None and self.is_believed(uid) else uid

    def holder(self, uid: str) -> str:
        """Return the UID of the Workload on which what is placed by this one stands: its own, unless it has moved."""
        if uid not in self._named:
            return uid  # nothing is placed by a chain of which all is past
        current = self._chain(uid).current
        return current.uid if current is not None else uid

    def chosen(self, owner: Name) -> Chain | None:
        """Return the one chain of an object that counts, None where it has no slices (`Chain.rank`)."""
        if owner not in self._chosen:
            uids = (*self._of_owner.get(owner, ()), *(each.uid for each in self._past.latest(owner)))
            found = {chain.uid: chain for uid in uids if (chain := self.of(uid)) is not None}
            if not found:
                return None
            self._chosen[owner] = max(found.values(), key=lambda each: each.rank)
        return self._chosen[owner]

    def standing(self, owner: Name) -> Iterator[Slice]:
        """Yield the slices of an object that are not finished, of whatever chain they say that they are."""
        found = (self._slices[uid] for uid in self._of_owner.get(owner, ()))
        return (each for each in found if each.open)

    def unfinished(self) -> Iterator[Chain]:
        """Yield the chains of which not all is past."""
        yield from (self._chain(uid) for uid in tuple(self._named))

    def began(self, uid: str) -> str:
        """Return when the chain of this first slice began, as far as it was seen; "" where nobody knows."""
        return self._began.get(uid, "")

    def _chain(self, uid: str) -> Chain:
        found = self._read.get(uid)
        if found is None:
            found = self._read[uid] = self._assess(uid)
        return found

    def _assess(self, uid: str) -> Chain:
        named = self._named.get(uid, {})
        owner = self._owner(uid, named) if len(uid) <= NAME_CHARS_MAX else None
        believed = [each for each in named.values() if each.owner == owner]
        return assess(uid, believed, ChainHistory(owner, self._past.of(owner, uid), self._highest.get(uid, 0)))

    def _owner(self, uid: str, named: dict[str, Slice]) -> Name | None:
        """Return whose a chain is: its first slice's; else who had that, or has quota by it, or alone names it."""
        first = self._slices.get(uid)
        if first is not None and first.said == uid:
            self._owners[uid] = first.owner
            return first.owner
        known = self._owners.get(uid)
        holding = {each.owner for each in named.values() if each.reserved} if known is None else {known}
        if len(holding) == 1:
            self._owners[uid] = found = next(iter(holding))
            return found
        owners = {each.owner for each in named.values()} | self._past.owners(uid)
        return next(iter(owners)) if len(owners) == 1 else None
