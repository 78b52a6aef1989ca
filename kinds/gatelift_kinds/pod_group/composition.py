"""When the Workload of a group is made, and of which pod sets; until then, what is told and to whom. Pure.

Kueue's rules (pods-and-slices 2.4): as many pods as the group's size says, equal in what they say of all of them; with
fast admission, or with declared sets, from the first pod on. Neighbour: `document` writes it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from gatelift_kinds.pod_group.declaration import SETS_MAX, Declaration
from gatelift_kinds.pod_group.marks import total_count
from gatelift_kinds.pod_group.members import Agreement, GroupMembers, RoleMembers
from gatelift_kinds.pod_group.slots import surplus_of_all
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.values.plain_text import plain

NOT_COMPOSED = "ErrWorkloadCompose"
"""Reason of the Warning on the oldest member, as Kueue spells it."""
CONFLICT = "WorkloadNameConflict"
MISMATCH = "GroupShapeMismatch"
TEXT_CHARS_MAX = 1000
"""An event has 1024 characters at most."""
ROLES_SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedSet:
    """One pod set. `like`: the UID of the pod whose template it has; "" where `template` (JSON) was declared.

    `comes_later`: its pods are made by a driver that runs: who has not come yet is not waited for. `lifted`: all its
    pods were let go, so `like` has what its flavor added: a Workload that has the pod set keeps it.
    """

    name: str
    count: int
    like: str = ""
    template: bytes = b""
    comes_later: bool = False
    lifted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPlan:
    """The pod sets of a Workload, sorted by name, or as they were declared."""

    pod_sets: tuple[PlannedSet, ...]

    @property
    def counts(self) -> dict[str, int]:
        """Return how many pods each role has."""
        return {each.name: each.count for each in self.pod_sets}


@dataclass(frozen=True, slots=True, kw_only=True)
class NotYet:
    """No Workload is made: why, in one line; told to the oldest member when it changes.

    `surplus`: UIDs of the pods that are too many, and go first; then there is no text.
    """

    text: str = ""
    surplus: tuple[str, ...] = ()


def compose(members: GroupMembers, *, fast: bool = False) -> GroupPlan | NotYet:
    """Return what the Workload of a group without declared sets is made of. `fast`: from its first pod."""
    disagreement = disagreements(members)
    if disagreement:
        return NotYet(text=disagreement)
    total = total_count(members.tally(Agreement.COUNT).agreed)
    if not members.present:
        return NotYet(text="no pod of the group waits or runs: make them again under the group's name")
    if total is None:
        return NotYet(text=_text("no pod of the group says how many it has: give each the same total count"))
    if fast:
        return _fast(members, total)
    if members.present < total:
        lack = total - members.present
        return NotYet(text=f"{lack} of {total} pods of the group {'is' if lack == 1 else 'are'} not there yet")
    beyond = surplus_of_all(members, total)
    return NotYet(surplus=beyond) if beyond else _by_role(members)


def declared(members: GroupMembers, declaration: Declaration, driver: str, role: str) -> GroupPlan | NotYet:
    """Return what the Workload of a group with declared sets is made of.

    `driver`: UID of the pod that declares; `role`: which set it is of.
    """
    disagreement = disagreements(members, by_hash=False)
    if disagreement:
        return NotYet(text=disagreement)
    said = members.tally(Agreement.COUNT).agreed
    if said and said != str(declaration.total):
        text = f"the pods say that the group has {said}, and the declared sets have {declaration.total} in all"
        return NotYet(text=_text(text))
    return GroupPlan(
        pod_sets=tuple(
            PlannedSet(
                name=each.name,
                count=each.count,
                like=driver if each.template is None else "",
                template=each.template or b"",
                comes_later=each.name != role,
            )
            for each in declaration.sets
        )
    )


def disagreements(members: GroupMembers, *, by_hash: bool = True) -> str:
    """Return in what members differ that all have to say the same, in one line; "" where they agree.

    `by_hash`: roles are hashes; of declared sets each pod was compared with its template instead.
    """
    told = [
        f"the pods of the group differ in {subject if isinstance(subject, str) else subject.value}: {tally.said()}"
        for subject in (*Agreement, *members.labels)
        if len(tally := members.tally(subject)) > 1
    ]
    unlike = [
        f"{len(shapes)} shapes in role {name}: {shapes.said()}"
        for (name,) in members.unlike.first(ROLES_SHOWN)
        if (shapes := members.roles[name].shapes)
    ]
    if unlike and by_hash:
        told.append(f"pods of one role ask for different things, {'; '.join(unlike)}: leave the role hash out")
    return _text("; ".join(told)) if told else ""


def differs(workload: Workload, plan: GroupPlan) -> str:
    """Return the first difference between the pod sets of a Workload and a plan; "" where it is of this plan.

    By names and counts; a finished Workload is asked by nobody. A prebuilt one that differs is out of sync.
    """
    found, wanted = workload.spec.pod_sets, plan.pod_sets
    if len(found) != len(wanted):
        return f"spec.podSets: {len(found)} pod sets, the group has {len(wanted)} roles"
    for place, (there, mine) in enumerate(zip(found, wanted, strict=True)):
        if (there.name, there.count) != (mine.name, mine.count):
            said = plain(there.name, 63)
            return f"spec.podSets[{place}]: {there.count} pods of {said}, the group has {mine.count} of {mine.name}"
    return ""


def _fast(members: GroupMembers, total: int) -> GroupPlan:
    """Return one pod set of all, named after the first pod: all are taken to be equal, and compared when they come."""
    first = members.get(members.ranked.first()[0][-1])
    name = first.role if first is not None else ""
    return GroupPlan(pod_sets=(replace(_planned(name, members.roles[name]), count=total),))


def _by_role(members: GroupMembers) -> GroupPlan | NotYet:
    """Return a pod set for each role."""
    if len(members.present_roles) > SETS_MAX:
        text = f"the group has {len(members.present_roles)} roles, which are pods of different shape, and a Workload"
        way_out = "make the pods alike in what they request and where they may run"
        return NotYet(text=_text(f"{text} has at most {SETS_MAX}: {way_out}"))
    return GroupPlan(pod_sets=tuple(_planned(name, members.roles[name]) for (name,) in members.present_roles))


def _planned(name: str, role: RoleMembers) -> PlannedSet:
    """Return the pod set of a role: like a pod at its gate, since one that was let go has what its flavor added."""
    ranks = role.waiting.first() or role.present.first()
    return PlannedSet(name=name, count=len(role.present), like=ranks[0][-1], lifted=not len(role.waiting))


def _text(text: str) -> str:
    return plain(text, TEXT_CHARS_MAX)
