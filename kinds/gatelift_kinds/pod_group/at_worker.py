"""Where the pods of a group run at a worker, and who of them is told of there: a part of `gathering`. Pure.

What a driver makes there by itself is no pod of ours: it is counted as that worker says (`made_there`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from itertools import islice
from typing import Protocol

import msgspec

from gatelift_kinds.pod_group import member, places, unshown_ends
from gatelift_kinds.pod_group.declaration import DeclaredSet
from gatelift_kinds.pod_group.declaring import Declaring
from gatelift_kinds.pod_group.elsewhere import RunsElsewhere
from gatelift_kinds.pod_group.let_go import LetGo
from gatelift_kinds.pod_group.made_there import NONE, MadeThere
from gatelift_kinds.pod_group.members import RUNNING, GroupMembers
from gatelift_kinds.pod_group.named import NamedMembers
from gatelift_kinds.pod_group.shapes import Template, template_of
from gatelift_kinds.shared import pods
from gatelift_kinds.shared.digests import digest
from gatelift_kinds.shared.gathered import Called, PlacedPart
from gatelift_kinds.shared.patches import encode
from gatelift_kinds.shared.values import Part
from gatelift_kube.objects.core import Pod
from gatelift_kube.objects.kueue import Workload
from gatelift_wire.values.messages import PodSetCounts

AT_ONCE = 32
"""Pods that are counted anew in one go: to read and count one takes about 0.2 ms."""
LET_GO_HERE = "a pod of the group was let go in this cluster: it runs here, or may; delete that pod, or the group"


class GatheredAtWorker(Protocol):
    """See `gathering.GatheredPods`, which holds all of this."""

    __slots__ = ()
    _declaring: Declaring
    _is_ours: Callable[[Pod], bool]
    _let_go: LetGo
    _members: GroupMembers
    _names: NamedMembers
    _pods: dict[str, tuple[Pod, bytes]]
    _taken_out: dict[str, tuple[Pod, bytes]]
    _uncounted: dict[str, None]
    _travels: dict[str, Template]
    _unnamed: set[str]
    _where: RunsElsewhere

    @property
    def members(self) -> GroupMembers:
        """The pods that are ours, as they are by now: nobody reads what is half of a change (HD-511)."""
        if self._uncounted:
            self._count(len(self._uncounted))
        return self._members.whole()

    @property
    def is_counted(self) -> bool:
        """Say whether all are counted by where they may run: else whoever asks for something has them counted first."""
        return not self._uncounted

    def counts(self, most: int) -> bool:
        """Count so many of those that are not, and read what they travel as, which is asked for next; True: all are."""
        for uid in self._count(most):
            found = self._pods.get(uid)
            if found is not None and self._where.of(uid) is member.Elsewhere.MAY_RUN:
                self._travels[uid] = template_of(found[1])
        return self.is_counted

    def put(self, obj: Pod, raw: bytes) -> None:
        """Take in another version of a pod."""
        ...

    @property
    def waiting(self) -> int:
        """How many wait at their gate."""
        ...

    def _named_by(self, workload: Workload) -> frozenset[str]:
        """Return the UIDs that a Workload names; who was named before and is there is to be named once more."""
        found = self._names.by(workload)
        if self._names.taken_off:
            self._unnamed |= {uid for uid in self._names.take_off() if uid in self._pods}
        return found

    def _learn(self, workload: Workload) -> None:
        """Read those anew that were let go as a pod set of it, by what nobody knew the name of."""
        self._count_anew(self._let_go.learn(workload.spec.pod_sets))

    def is_named(self, workload: Workload, uid: str) -> bool:
        """Return whether a Workload names a pod of the group as an owner, or has named it."""
        return uid in self._pods and (uid in self._named_by(workload) or self._names.has_named(workload, uid))

    def names_any(self, workload: Workload) -> bool:
        """Return whether a Workload names any pod of the group that is there: as a rule the first one."""
        return any(self.is_named(workload, uid) for uid in self._pods)

    def _is_counted(self, obj: Pod, raw: bytes) -> bool:
        """Say whether a pod is counted: it is ours, or was let go as one that was, whatever it says since (HD-610).

        What is known of others is kept, since a worker may yet say that they run there.
        """
        uid = obj.metadata.uid
        if self._is_ours(obj):
            self._taken_out.pop(uid, None)
            return True
        self._taken_out[uid] = (obj, raw)
        return self._let_go.is_marked(uid) or self._where.of(uid) is not member.Elsewhere.NOWHERE

    def is_at_worker(self, placement: Hashable, workload: Workload, *, found: bool = False) -> None:
        """Take that pods which the Workload names may run at a worker: who shows its end was over when it was placed.

        Or its worker has said so to a leader before; should that be untrue, it says what runs in each session.
        `found`: it was there before this leader was, so also who is in no watch may run there (HD-610).
        """
        self._learn(workload)
        if self._where.is_at(placement):
            return
        every = (each.uid for each in workload.metadata.owner_references)  # in their order
        known = {uid: self._pods.get(uid) or self._taken_out.get(uid) for uid in every if found or uid in self._pods}
        over = {uid: self._where.has_ended(uid) or bool(pod and pods.over(pod[0])) for uid, pod in known.items()}
        self._count_anew(self._where.placed(placement, over))

    @property
    def may_run(self) -> bool:
        """Say whether a pod was let go, also one that is being deleted."""
        return any(self.members.counts[state] for state in RUNNING)

    @property
    def stands_still(self) -> bool:
        """Return whether some succeeded, none runs, and whoever is left waits: a success keeps the slot that it had.

        Also one that has vanished, or was never granted since it was over before.
        """
        counts, held = self.members.counts, self._where.held(self.members)
        runs = counts[member.MemberState.ACTIVE] - held + counts[member.MemberState.LEAVING]
        made = any(self._made.running(name) for name in self.members.roles)
        return bool(counts[member.MemberState.SUCCEEDED] and (self.waiting or held) and not (runs or made))

    @property
    def home_only(self) -> str:
        """Return why a pod that was let go here keeps all of them at home; "" where none was."""
        return LET_GO_HERE if self._where.runs_here(self.may_run) else ""

    def keeps_ends(self, workload: Workload) -> None:
        """Take what a Workload keeps of how pods ended that cannot show it: they do not run once more."""
        self._count_anew(self._where.keeps(unshown_ends.said(workload), self._pods))

    def ends_to_keep(self, workload: Workload, ends: Mapping[str, bool]) -> tuple[str, str] | None:
        """Return the annotation by which a Workload keeps how these ended (by UID, whether well); None if it does."""
        said = unshown_ends.said(workload)
        text = unshown_ends.more(said, ends, {digest(uid) for uid in self._pods})
        known, wanted = unshown_ends.read(said), unshown_ends.read(text)
        news = any(known.get(each) != wanted.get(each) for each in map(digest, ends))
        return (unshown_ends.ANNOTATION, text) if news else None

    def unproven(self) -> dict[str, int]:
        """Return how many count as succeeded, by role, and no worker of the live placement has said so."""
        return self._where.unproven(self.members)

    def is_home(self) -> None:
        """Take that no pod runs elsewhere."""
        self._count_anew(self._where.ended())

    def runs_elsewhere(self, uid: str) -> None:
        """Take that a worker was told of a pod."""
        self._count_anew(self._where.put(uid, member.Elsewhere.MAY_RUN))

    def waits_elsewhere(self, uid: str, *, waits: bool) -> None:
        """Take that a worker says of a pod whether it waits there, since no slot is free."""
        self._where.holds(uid, waits)

    def stopped_elsewhere(self, uid: str, *, well: bool = False) -> None:
        """Take that a worker says that a pod has stopped; `well`: with success, whatever is written of it since."""
        self._count_anew(self._where.put(uid, member.Elsewhere.SUCCEEDED if well else member.Elsewhere.STOPPED))

    def is_told_of(self, uid: str) -> bool:
        """Say whether a worker may have been told of a pod."""
        found = self.members.get(uid)
        return found is None or found.state is not member.MemberState.WAITING

    def has_run(self, uid: str) -> bool:
        """Say whether a pod is of the group and was let go, here or perhaps at a worker."""
        found = self.members.get(uid)
        return found is not None and found.lifted

    def there(self, granted: Mapping[str, int]) -> tuple[PlacedPart, ...]:
        """Return the pods that may run at a worker, role by role."""
        return self._parts(places.there(self.members, granted))

    def came_late(self, workload: Workload, uid: str) -> bool:
        """Return whether a Workload names a pod only since it has quota."""
        return self._names.is_late(workload, uid)

    def tells(self, uid: str) -> None:
        """Take that the agent at home was told of a pod: it is not asked for any more."""
        self.members.tells(uid)

    def tells_anew(self) -> None:
        """Take that no agent was told of any."""
        self._travels.clear()
        self.members.tells_anew()

    def to_join(self, workload: Workload, granted: Mapping[str, int]) -> tuple[PlacedPart, ...]:
        """Return the pods that wait, nobody was told of and a slot is free for, of those that the Workload names."""
        if not self.waiting:
            return ()
        named = self._named_by(workload)
        return self._parts(
            each for each in places.to_join(self.members, workload, granted, self._made) if each[0] in named
        )

    def travels_as(self, uid: str) -> Part | None:
        """Return a pod's template, under its name and role."""
        found = self._pods.get(uid)
        mine = self.members.get(uid)
        if found is None or mine is None:
            return None
        template = self._travels.pop(uid, None) or template_of(found[1])
        return Part(name=found[0].metadata.name, pod_set=mine.role, metadata=template.metadata, spec=template.spec)

    def makes_there(self, counts: tuple[PodSetCounts, ...]) -> bool:
        """Take what a driver has made at a worker by itself, as its agent says; False where that is no news."""
        return self._where.makes(counts)

    @property
    def declared_later(self) -> dict[str, bytes]:
        """The spec of each set whose pods a driver is to make, as JSON, by name."""
        later = ((each.name, each.template) for each in self._later())
        return {name: encode(msgspec.json.decode(template)["spec"]) for name, template in later if template is not None}

    def _later(self) -> list[DeclaredSet]:
        driver = self._declaring.driver
        if driver is None:
            return []
        return [each for each in driver.declaration.sets if each.template is not None and each.name != driver.role]

    @property
    def _made(self) -> MadeThere:
        """What a driver made there; where it declares nothing to be made nobody has to say that it is nothing."""
        return self._where.made if self._later() else NONE

    def _count_anew(self, uids: Iterable[str]) -> None:
        """Count pods of whose run at a worker something else is known now; of many that is left for later (HD-691).

        Those of a try that raised as well.
        """
        self._uncounted |= dict.fromkeys(uids)
        if len(self._uncounted) <= AT_ONCE:
            self._count(AT_ONCE)

    def _count(self, most: int) -> tuple[str, ...]:
        """Count so many of them, and return which."""
        some = tuple(islice(self._uncounted, most))
        for uid in some:
            found = self._pods.get(uid) or self._taken_out.get(uid)
            if found is not None:
                self.put(*found)
            self._uncounted.pop(uid, None)
        return some

    def _parts(self, found: Iterable[tuple[str, str]]) -> tuple[PlacedPart, ...]:
        return tuple(PlacedPart(Called(self._pods[uid][0].metadata.name, uid), role) for uid, role in found)
