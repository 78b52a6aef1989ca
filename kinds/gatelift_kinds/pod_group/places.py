"""Which pods have a place of those that were granted or get one, and how many need quota no longer. Pure.

By the counts of the members, what the Workload asks for, and what was granted of it: those that succeeded before were
not granted again. Neighbours: `gathering` asks and names the pods, `slots` says how the slots of one role are taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gatelift_kinds.pod_group import slots
from gatelift_kinds.pod_group.made_there import NONE, MadeThere
from gatelift_kinds.pod_group.member import MemberState
from gatelift_kinds.pod_group.members import OVER, RUNNING, GroupMembers, RoleMembers
from gatelift_kube.objects.kueue import PodSet, Workload

Places = Iterator[tuple[str, str]]
"""UIDs of pods, each with its role."""
Stays = slots.Stays
Begun = Mapping[str, Mapping[MemberState, int]]
"""How many pods of each role there were, by state, as something began."""


def there(members: GroupMembers, granted: Mapping[str, int]) -> Places:
    """Return the pods that may run, role by role, also more than were granted."""
    for name in sorted(granted):
        role = members.roles.get(name)
        if role is not None:
            yield from ((rank[-1], name) for rank in role.active.first(len(role.active)))


def to_join(members: GroupMembers, workload: Workload, granted: Mapping[str, int], made: MadeThere = NONE) -> Places:
    """Return the pods that wait, of whom nobody was told, and a slot is free for, of those that were granted."""
    for each, role in _asked(members, workload):
        runs = _count(members, each.name, *RUNNING) + made.running(each.name)
        most = max(0, granted.get(each.name, 0) - runs)
        yield from ((uid, each.name) for uid in slots.to_tell(role, slots.places(role, each.count), most))


def of_all(members: GroupMembers, workload: Workload, granted: Mapping[str, int]) -> Places:
    """Return the pods that run and those that a slot is free for, role by role (the room rule)."""
    for each, role in _asked(members, workload):
        yield from ((uid, each.name) for uid in _of_role(role, each.count, granted.get(each.name, 0)))


def replaced(members: GroupMembers, workload: Workload) -> list[str]:
    """Return the failed pods whose slot another one has, and which bear our finalizer."""
    found: list[str] = []
    for each, role in _asked(members, workload):
        if len(role.failed):
            found += slots.replaced(role, slots.places(role, each.count))
    mine = [members.get(uid) for uid in found]
    return [one.uid for one in mine if one is not None and one.finalizer]


def beyond(members: GroupMembers, counts: Mapping[str, int], most: int, stays: Stays = slots.nobody) -> list[str]:
    """Return the pods beyond the count of their role, of the first ones of each; `stays`: who is none of them."""
    found: list[str] = []
    for name, count in counts.items():
        role = members.roles.get(name)
        if role is not None:
            found += slots.surplus(role, slots.places(role, count), most, stays)
    return found[:most]


def of_other_roles(
    members: GroupMembers, counts: Mapping[str, int], most: int, stays: Stays = slots.nobody
) -> list[str]:
    """Return pods of roles that are not among these: as many roles are looked at as may be among them, and more."""
    some = members.present_roles.first(len(counts) + most)
    others = [members.roles[name] for (name,) in some if name not in counts]
    found = [rank[-1] for role in others for rank in (*role.waiting.first(most), *role.active.first(most))]
    return [uid for uid in found if not stays(uid)]


def over(
    members: GroupMembers, workload: Workload, granted: Mapping[str, int], made: MadeThere = NONE
) -> dict[str, int]:
    """Return how many succeeded, by role; of those that a driver made at a worker none, whose quota stays."""
    found: dict[str, int] = {}
    for each in workload.spec.pod_sets:
        done = _count(members, each.name, MemberState.SUCCEEDED)
        runs = _count(members, each.name, *RUNNING) + made.running(each.name)
        found[each.name] = min(done, _free(each, granted, runs))
    return {name: count for name, count in found.items() if count > 0}


def begun(members: GroupMembers) -> Begun:
    """Return how many pods of each role there are."""
    return {name: dict(each.counts) for name, each in members.roles.items()}


def left(
    members: GroupMembers, workload: Workload, granted: Mapping[str, int], since: Begun, made: MadeThere = NONE
) -> dict[str, int]:
    """Return how many are over since that began, or succeeded, by role.

    Who waited then was perhaps let go by now; who came since is not. A pod that vanished is none that is over: its
    node may run it.
    """
    found: dict[str, int] = {}
    for each in workload.spec.pod_sets:
        before = since.get(each.name, {})
        done = _count(members, each.name, *OVER) - before.get(MemberState.FAILED, 0)
        waits = min(_count(members, each.name, MemberState.WAITING), before.get(MemberState.WAITING, 0))
        goes_on = waits + _count(members, each.name, *RUNNING) + made.running(each.name)
        found[each.name] = min(done, _free(each, granted, goes_on))
    return {name: count for name, count in found.items() if count > 0}


def _asked(members: GroupMembers, workload: Workload) -> Iterator[tuple[PodSet, RoleMembers]]:
    for each in sorted(workload.spec.pod_sets, key=lambda each: each.name):
        role = members.roles.get(each.name)
        if role is not None:
            yield each, role


def _of_role(role: RoleMembers, count: int, granted: int) -> tuple[str, ...]:
    """Return the pods of a role that have one of so many slots, or are to get one that is free and granted."""
    runs = tuple(rank[-1] for rank in role.active.first(granted))
    return runs + slots.to_fill(role, slots.places(role, count), granted - len(runs))


def _count(members: GroupMembers, role: str, *states: MemberState) -> int:
    found = members.roles.get(role)
    return sum(found.counts[each] for each in states) if found is not None else 0


def _free(asked: PodSet, granted: Mapping[str, int], runs: int) -> int:
    """Return how many of the pods that are asked for need no quota, where so many run, or may."""
    return asked.count - min(granted.get(asked.name, asked.count), runs)
