"""Whose place is whose in a role: who is let go, who waits for a place, who is too many, who was replaced. Pure.

A role has as many slots as were granted. What succeeded or runs has one; so has what is leaving, until it has stopped,
and one pod may wait gated for that (Kueue deletes it as too many, #15424). A slot that is free is taken by the pod that
waits longest, and by that it replaces the one that failed longest ago. All of it follows from counts, so a new leader
comes to the same: of a pod that is gone nothing is remembered, but that its slot is empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gatelift_kinds.pod_group.member import MemberState
from gatelift_kinds.pod_group.members import GroupMembers, RoleMembers

ALL = 4096 + 1
"""More than any group has."""
Stays = Callable[[str], bool]
"""Says of a UID whether that pod is never one too many."""


def nobody(_uid: str) -> bool:
    """Say that any pod may be one too many."""
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotPlaces:
    """How many: counts alone, so that asking costs nothing.

    `fill`: gated pods that may be let go now. `heirs`: those that wait gated for one that is leaving. `beyond`: gated
    ones that are too many, `beyond_active`: such that run. `empty`: slots that nobody has or is to get. `replaced`:
    failed pods whose slot another one has.
    """

    granted: int
    fill: int
    heirs: int
    beyond: int
    beyond_active: int
    empty: int
    replaced: int


def places(role: RoleMembers, granted: int) -> SlotPlaces:
    """Return how the slots of a role are taken, of which `granted` are there."""
    counts = role.counts
    firm = counts[MemberState.SUCCEEDED] + counts[MemberState.ACTIVE]
    leaving, waiting, failed = counts[MemberState.LEAVING], counts[MemberState.WAITING], counts[MemberState.FAILED]
    kept = min(waiting, max(0, granted - firm))
    fill = min(kept, max(0, granted - firm - leaving))
    empty = max(0, granted - firm - leaving - waiting)
    return SlotPlaces(
        granted=granted,
        fill=fill,
        heirs=kept - fill,
        beyond=waiting - kept,
        beyond_active=min(counts[MemberState.ACTIVE], max(0, firm - granted)),
        empty=empty,
        replaced=max(0, failed - empty),
    )


def to_fill(role: RoleMembers, found: SlotPlaces, most: int = ALL) -> tuple[str, ...]:
    """Return the UIDs of the pods that may be let go, `most` of them at most: with all of them no slot is taken twice.

    Only where quota and cluster of the attempt are written: that is not known here.
    """
    return tuple(rank[-1] for rank in role.waiting.between(0, min(found.fill, most)))


def to_tell(role: RoleMembers, found: SlotPlaces, most: int = ALL) -> Iterator[str]:
    """Yield the UIDs of those of them of whom nobody was told: who is behind the first one without a slot has none."""
    for rank in role.untold:
        if role.waiting.place(rank) >= min(found.fill, most):
            return
        yield rank[-1]


def heirs(role: RoleMembers, found: SlotPlaces, most: int = ALL) -> tuple[str, ...]:
    """Return the UIDs of the pods that wait gated until one that is leaving has stopped."""
    return tuple(rank[-1] for rank in role.waiting.between(found.fill, found.fill + min(found.heirs, most)))


def surplus(role: RoleMembers, found: SlotPlaces, most: int = ALL, stays: Stays = nobody) -> tuple[str, ...]:
    """Return the UIDs of the pods that are too many: the last in order, what is gated before what runs.

    `stays`: who was let go by us has a slot; what its user made without our gate is too many before it.
    """
    gated = role.waiting.between(found.fill + found.heirs, found.fill + found.heirs + min(found.beyond, most))
    waiting = tuple(rank[-1] for rank in gated if not stays(rank[-1]))
    if not found.beyond_active:
        return waiting
    run = [rank[-1] for rank in role.active.first(len(role.active)) if not stays(rank[-1])]
    room = max(0, min(found.beyond_active, most - len(waiting)))
    return (*waiting, *run[len(run) - min(room, len(run)) :])


def replaced(role: RoleMembers, found: SlotPlaces, most: int = ALL) -> tuple[str, ...]:
    """Return the UIDs of the failed pods whose slot another one has, longest ago first: their finalizer may go.

    Once the pods that replace them are owners of the Workload: else nobody would own it for a while.
    """
    return tuple(since[-1] for since in role.failed.first(min(found.replaced, most)))


def surplus_of_all(members: GroupMembers, total: int, most: int = ALL) -> tuple[str, ...]:
    """Return the UIDs of the pods that are too many before there is a Workload: beyond the group's size, of any role.

    What is leaving is not counted: who replaces it early is not too many.
    """
    return tuple(rank[-1] for rank in members.ranked.between(total, min(members.present, total + most)))


def unknown_roles(members: GroupMembers, granted: frozenset[str]) -> tuple[str, ...]:
    """Return the roles of which the Workload has no pod set: all their pods are too many."""
    return tuple(sorted(members.roles.keys() - granted))
