"""When a group is over and how, and what is told while replacements are waited for. Pure.

KEP-976 and Kueue's rules (pods-and-slices 2.7, 2.8), with two differences. The result is what it is: of a group of
which one pod in three succeeded Kueue says Succeeded. And who says that nobody is to replace a pod has to have ended.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass

from gatelift_kinds.pod_group.composition import GroupPlan, PlannedSet
from gatelift_kinds.pod_group.made_there import NONE, MadeThere
from gatelift_kinds.pod_group.member import MemberState
from gatelift_kinds.pod_group.members import RUNNING, GroupMembers
from gatelift_kinds.pod_group.slots import places
from gatelift_kinds.shared.values import ObjectEnd
from gatelift_kube.objects.conditions import FALSE, TRUE
from gatelift_kube.objects.meta import Condition

WAITING = "WaitingForReplacementPods"
"""Type of the condition, as Kueue spells it. While it is True the Workload is not admissible."""
EVICTED = "Evicted"
PODS_FAILED, PODS_READY = "PodsFailed", "PodsReady"
ALL_THERE = "No pods are missing"


class Over(enum.Enum):
    """Why a group is over."""

    FINISHED = "finished"
    """It came to its own end: the Workload says how, finalizers go."""
    DELETED = "deleted"
    """A person deleted its Workload: pods are ended and deleted, finalizers go, on workers too."""
    ABANDONED = "abandoned"
    """All its pods were deleted, and nothing of them runs: finalizers go, and then the Workload."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupEnd:
    """How a group is over; `outcome` where it came to its own end."""

    over: Over
    outcome: ObjectEnd | None = None


def end(
    members: GroupMembers,
    total: int,
    *,
    serving: bool = False,
    workload_deleted: bool = False,
    made: MadeThere = NONE,
) -> GroupEnd | None:
    """Return how a group of `total` pods is over, None while it is not.

    `serving`: it never comes to an end of its own. `workload_deleted`: by a person. `made`: by its driver, at a worker.
    What runs beyond its total, which somebody may have lowered, has stopped before it is finished (HD-515).
    """
    if workload_deleted:
        return GroupEnd(over=Over.DELETED)
    if is_abandoned(members):
        return GroupEnd(over=Over.ABANDONED)
    if serving:
        return None
    for_good = members.unretriable and not (_goes_on(members) or made.goes_on)
    all_have = members.counts[MemberState.SUCCEEDED] + made.succeeded >= total > 0
    if for_good or (all_have and not any(members.counts[each] for each in RUNNING)):
        return GroupEnd(over=Over.FINISHED, outcome=outcome(members, total, made))
    return None


def is_abandoned(members: GroupMembers) -> bool:
    """Say whether all that is known of a group was deleted by its user, and nothing of it runs or may."""
    return 0 < len(members) == members.deleted and not _goes_on(members)


def outcome(members: GroupMembers, total: int, made: MadeThere = NONE) -> ObjectEnd:
    """Return the result of a group with numbers: succeeded when all of its pods did.

    `gone`: what neither succeeded nor shows that it failed: deleted, or never made.
    """
    succeeded = min(total, members.counts[MemberState.SUCCEEDED] + made.succeeded)
    failed = min(total - succeeded, members.counts[MemberState.FAILED] + made.failed)
    gone = total - succeeded - failed
    parts = [f"Pods succeeded: {succeeded}/{total}"]
    parts += [f"{word}: {count}" for word, count in (("failed", failed), ("gone", gone)) if count]
    return ObjectEnd(succeeded=succeeded == total, message=", ".join(parts))


def all_ready(members: GroupMembers, total: int) -> bool:
    """Say whether as many pods as the group has are ready, or have succeeded."""
    return members.ready >= total > 0


def reclaimable(members: GroupMembers, plan: GroupPlan, *, serving: bool = False) -> tuple[tuple[str, int], ...]:
    """Return per pod set how many pods need quota no longer, without zeros: those that succeeded (KEP-976, KEP-78)."""
    if serving:
        return ()
    done = [(each.name, min(each.count, _count(members, each.name, MemberState.SUCCEEDED))) for each in plan.pod_sets]
    return tuple((name, count) for name, count in done if count)


def lacking(members: GroupMembers, plan: GroupPlan, *, fast: bool = False, evicted: bool = False) -> dict[str, int]:
    """Return how many pods of each role have to be replaced, without zeros; of "" where any will do.

    Never those of declared sets that have not come yet: of such sets only pods that failed count. `fast`: the group was
    admitted by its first pod, so one is enough. `evicted`: what is leaving was ended by us, and is not there next time.
    """
    if fast:
        return {} if members.present or members.counts[MemberState.LEAVING] else {"": 1}
    found = ((each.name, _absent_of(members, each, evicted=evicted)) for each in plan.pod_sets)
    return {name: count for name, count in found if count}


def waiting_condition(
    lacks: Mapping[str, int], said: Condition | None, evicted: Condition | None, *, of_roles: bool = False
) -> Condition | None:
    """Return the condition WaitingForReplacementPods to put, None where it stays as it is, or is not needed.

    `lacks`: what `lacking` says; `of_roles`: the group has several, which are named. `said`: the condition as it is;
    `evicted`: the condition Evicted. An eviction gives it its reason and message, also while it is True; an admission
    does not touch it.
    """
    is_true = said is not None and said.status == TRUE
    if not lacks:
        return _condition(FALSE, PODS_READY, ALL_THERE) if is_true else None
    if evicted is not None and evicted.status == TRUE:
        told = said is not None and is_true and (said.reason, said.message) == (evicted.reason, evicted.message)
        return None if told else _condition(TRUE, evicted.reason, evicted.message)
    if said is not None and is_true and said.reason != PODS_FAILED:
        return None
    text = _lacks(lacks, of_roles=of_roles)
    return None if said is not None and is_true and said.message == text else _condition(TRUE, PODS_FAILED, text)


def _lacks(lacks: Mapping[str, int], *, of_roles: bool) -> str:
    """Return how many failed or are gone, and of which roles: a group has 18 at most, of names of 63 characters."""
    missing = sum(lacks.values())
    roles = ", ".join(f"{name}: {count}" for name, count in sorted(lacks.items()) if name) if of_roles else ""
    named = f" ({roles})" if roles else ""
    pods = "pod" if missing == 1 else "pods"
    return f"{missing} {pods} failed or gone{named}: make as many again under the group's name"


def _absent_of(members: GroupMembers, planned: PlannedSet, *, evicted: bool) -> int:
    role = members.roles.get(planned.name)
    if role is None:
        return 0 if planned.comes_later else planned.count
    found = places(role, planned.count)
    leaving = max(0, role.counts[MemberState.LEAVING] - found.heirs) if evicted else 0
    gone = min(found.empty, role.counts[MemberState.FAILED]) if planned.comes_later else found.empty
    return gone + leaving


def _count(members: GroupMembers, role: str, state: MemberState) -> int:
    found = members.roles.get(role)
    return found.counts[state] if found is not None else 0


def _goes_on(members: GroupMembers) -> bool:
    """Say whether a pod of the group waits, or may run."""
    return any(members.counts[state] for state in (MemberState.WAITING, *RUNNING))


def _condition(status: str, reason: str, message: str) -> Condition:
    return Condition(type=WAITING, status=status, reason=reason, message=message)
