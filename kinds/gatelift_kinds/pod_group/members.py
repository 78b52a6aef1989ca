"""All pods of a group, counted: kept up by each change of one pod, by look-ups and halving. Pure.

Nothing here goes through all members. Of each role there is how many pods stand where, and who is next: to be let go,
to be dropped, to be replaced. Of what all have to agree on there is a `tally`. Times are RFC 3339 in UTC as an API
server writes them, which are in order as texts. Neighbours: `slots` and `composition` ask, `member` says where a pod
stands.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from gatelift_kinds.pod_group.member import MemberState
from gatelift_kinds.pod_group.ordered import Ordered
from gatelift_kinds.pod_group.tally import Named, ValueTally

Rank = tuple[bool, bool, bool, str, str, str]
"""In which order pods keep their place: what succeeded, with finalizer, let go, oldest first; the tail is too many."""
Since = tuple[bool, str, str, str, str]
"""Failed pods in the order in which they are replaced: without finalizer, longest ago, oldest."""

PRESENT = (MemberState.WAITING, MemberState.ACTIVE, MemberState.SUCCEEDED)
RUNNING = (MemberState.ACTIVE, MemberState.LEAVING)
OVER = (MemberState.SUCCEEDED, MemberState.FAILED)


class Agreement(enum.Enum):
    """What all members of a group have to agree on; the value is the word for it."""

    COUNT = "the group's size"
    QUEUE = "the queue"
    CLASS = "the priority class"
    LIMIT = "the execution limit"
    DECLARATION = "the declared sets"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMember:
    """One pod as its group counts it.

    `role`: "" fits none, which it is then in no count of. `shape`: of its spec at its gate, else "".
    `lifted`: it was let go, wherever that is. `deleted`: by its user, not by an eviction. `since`: when it failed.
    `said`: by subject, and by key of a label that is copied; what it does not say is not in it, but for size and queue,
    of which nothing is "".
    """

    uid: str
    name: str
    created: str
    state: MemberState
    role: str = ""
    shape: str = ""
    lifted: bool = False
    finalizer: bool = True
    since: str = ""
    ready: bool = False
    retriable: bool = True
    deleted: bool = False
    said: tuple[tuple[Agreement | str, str], ...] = ()

    @property
    def named(self) -> Named:
        """By age."""
        return (self.created, self.name, self.uid)

    @property
    def rank(self) -> Rank:
        """See `Rank`."""
        return (self.state is not MemberState.SUCCEEDED, not self.finalizer, not self.lifted, *self.named)

    @property
    def failed(self) -> Since:
        """See `Since`."""
        return (self.finalizer, self.since, *self.named)


@dataclass(slots=True, eq=False)
class RoleMembers:
    """The pods of one role: how many stand where, and those that are next."""

    counts: dict[MemberState, int] = field(default_factory=lambda: dict.fromkeys(MemberState, 0))
    waiting: Ordered[Rank] = field(default_factory=Ordered)
    untold: Ordered[Rank] = field(default_factory=Ordered)
    """Of those that wait, who was not named to the agent that is to let them go (`GroupMembers.tells`)."""
    active: Ordered[Rank] = field(default_factory=Ordered)
    failed: Ordered[Since] = field(default_factory=Ordered)
    present: Ordered[Named] = field(default_factory=Ordered)
    shapes: ValueTally = field(default_factory=ValueTally)

    @property
    def is_empty(self) -> bool:
        """Say whether no pod is of the role."""
        return not any(self.counts.values())

    def join(self, member: GroupMember, *, is_told: bool) -> None:
        """Count a pod in."""
        self.counts[member.state] += 1
        match member.state:
            case MemberState.WAITING:
                self.waiting.add(member.rank)
                if not is_told:
                    self.untold.add(member.rank)
            case MemberState.ACTIVE:
                self.active.add(member.rank)
            case MemberState.FAILED:
                self.failed.add(member.failed)
        if member.state in PRESENT:
            self.present.add(member.named)
            if member.shape:
                self.shapes.add(member.shape, member.named)

    def leave(self, member: GroupMember) -> None:
        """Count a pod out, as it was counted in."""
        self.counts[member.state] -= 1
        match member.state:
            case MemberState.WAITING:
                self.waiting.remove(member.rank)
                self.untold.remove(member.rank)
            case MemberState.ACTIVE:
                self.active.remove(member.rank)
            case MemberState.FAILED:
                self.failed.remove(member.failed)
        if member.state in PRESENT:
            self.present.remove(member.named)
            if member.shape:
                self.shapes.remove(member.shape, member.named)


class GroupMembers:
    """The pods of one group. Only this class writes what it holds.

    Each method may be called again and changes nothing then; after a change that came to no end all are counted anew
    (`whole`). `ranked`: those that are present, of all roles. `unfit`:
    those that fit no role. `present_roles`: of which a pod is present; `unlike`: such of several shapes. `deleted`: how
    many their users deleted. `unretriable`: how many are over and say that nobody is to replace them.
    """

    __slots__ = (
        "_by_uid",
        "_tallies",
        "_told",
        "_torn",
        "ages",
        "counts",
        "deleted",
        "present_roles",
        "ranked",
        "ready",
        "roles",
        "unfit",
        "unlike",
        "unretriable",
    )

    def __init__(self) -> None:
        self._by_uid: dict[str, GroupMember] = {}
        self._told: set[str] = set()
        self._begin()

    def _begin(self) -> None:
        """Count nobody."""
        self._torn = False
        self._tallies: dict[Agreement | str, ValueTally] = {}
        self.counts = dict.fromkeys(MemberState, 0)
        self.roles: dict[str, RoleMembers] = {}
        self.ages: Ordered[Named] = Ordered()
        self.ranked: Ordered[Rank] = Ordered()
        self.unfit: Ordered[Named] = Ordered()
        self.unlike: Ordered[tuple[str]] = Ordered()
        self.present_roles: Ordered[tuple[str]] = Ordered()
        self.unretriable = 0
        self.deleted = 0
        self.ready = 0

    def __len__(self) -> int:
        """Return how many pods are known, whatever became of them."""
        return len(self._by_uid)

    def get(self, uid: str) -> GroupMember | None:
        """Return a pod by its UID."""
        return self._by_uid.get(uid)

    def put(self, member: GroupMember) -> None:
        """Take in a pod, or another version of it."""
        before = self._by_uid.get(member.uid)
        if before == member:
            return
        self._by_uid[member.uid] = member
        self._torn = True
        if before is not None:
            self._leave(before)
        self._join(member)
        self._torn = False

    def drop(self, uid: str) -> None:
        """Let go of a pod that is gone."""
        before = self._by_uid.pop(uid, None)
        if before is not None:
            self._torn = True
            self._leave(before)
            self._torn = False
        self._told.discard(uid)

    def whole(self) -> GroupMembers:
        """Return it, counted anew where a change came to no end: half of that change is in the counts (HD-511)."""
        if self._torn:
            self._begin()
            self._torn = True
            for each in self._by_uid.values():
                self._join(each)
            self._torn = False
        return self

    def tells(self, uid: str) -> None:
        """Take that the agent which is to let a pod go was told of it: it is not asked for any more."""
        found = self._by_uid.get(uid)
        if found is not None:
            self._told.add(uid)
            if found.role:
                self.roles[found.role].untold.remove(found.rank)

    def tells_anew(self) -> None:
        """Take that nobody was told of any."""
        told, self._told = self._told, set()
        for found in filter(None, map(self._by_uid.get, told)):
            if found.role and found.state is MemberState.WAITING:
                self.roles[found.role].untold.add(found.rank)

    def tally(self, subject: Agreement | str) -> ValueTally:
        """Return what the present members say of a subject, or as a label's value; empty where nobody does."""
        return self._tallies.get(subject) or ValueTally()

    @property
    def labels(self) -> list[str]:
        """Keys of labels that are copied, of which a member has a value."""
        return sorted(key for key in self._tallies if isinstance(key, str))

    @property
    def present(self) -> int:
        """How many members are present, of all roles."""
        return len(self.ranked)

    @property
    def oldest(self) -> Named | None:
        """The oldest member that is present: to which the group's troubles are told."""
        return next(iter((*self.ages.first(), *self.unfit.first())), None)

    def _join(self, member: GroupMember) -> None:
        self.deleted += member.deleted
        if not member.role:
            self.unfit.add(member.named)
            return
        self.counts[member.state] += 1
        role = self.roles.setdefault(member.role, RoleMembers())
        role.join(member, is_told=member.uid in self._told)
        self._look_again(member.role, role)
        self.unretriable += _ended_for_good(member)
        if member.state in PRESENT:
            self.ready += member.ready or member.state is MemberState.SUCCEEDED
            self.ages.add(member.named)
            self.ranked.add(member.rank)
            for subject, value in member.said:
                self._tallies.setdefault(subject, ValueTally()).add(value, member.named)

    def _leave(self, member: GroupMember) -> None:
        self.deleted -= member.deleted
        if not member.role:
            self.unfit.remove(member.named)
            return
        self.counts[member.state] -= 1
        role = self.roles[member.role]
        role.leave(member)
        self._look_again(member.role, role)
        if role.is_empty:
            del self.roles[member.role]
        self.unretriable -= _ended_for_good(member)
        if member.state in PRESENT:
            self.ready -= member.ready or member.state is MemberState.SUCCEEDED
            self.ages.remove(member.named)
            self.ranked.remove(member.rank)
            for subject, value in member.said:
                self._take_back(subject, value, member)

    def _look_again(self, name: str, role: RoleMembers) -> None:
        """Put a role where it belongs by what its pods are now."""
        for names, belongs in ((self.present_roles, len(role.present) > 0), (self.unlike, len(role.shapes) > 1)):
            if belongs:
                names.add((name,))
            else:
                names.remove((name,))

    def _take_back(self, subject: Agreement | str, value: str, member: GroupMember) -> None:
        tally = self._tallies[subject]
        tally.remove(value, member.named)
        if not len(tally):
            del self._tallies[subject]


def _ended_for_good(member: GroupMember) -> bool:
    return member.state in OVER and not member.retriable
