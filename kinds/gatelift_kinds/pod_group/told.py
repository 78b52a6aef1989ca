"""What people are told of the pods of a group, once somebody asks: goes through all of them, and decides nothing. Pure.

Who has whose place follows from counts (`slots`): of a pod that was let go it is not known any more whose place it
took. Neighbour: `gathering` is asked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from gatelift_kinds.pod_group import slots
from gatelift_kinds.pod_group.member import MemberState
from gatelift_kinds.pod_group.members import GroupMembers, RoleMembers
from gatelift_kinds.shared.gathered import Replaced, StoppingObject, ToldOfAll
from gatelift_kube.objects.core import Pod
from gatelift_kube.values.timestamps import to_seconds, to_text

WORDS = {
    MemberState.ACTIVE: "let go",
    MemberState.WAITING: "at their gate",
    MemberState.LEAVING: "leaving",
    MemberState.SUCCEEDED: "succeeded",
    MemberState.FAILED: "failed",
    MemberState.WITHDRAWN: "withdrawn",
}

NOBODY = RoleMembers()
"""A role of which no pod is known."""


def told(
    members: GroupMembers, pods: Mapping[str, Pod], counts: Mapping[str, int], lacks: str, later: Collection[str] = ()
) -> ToldOfAll:
    """Return what is said of a group; `counts`: slots by role, none where no Workload is made yet.

    `later`: roles whose pods their driver makes where it runs: who has not come yet does not lack (HD-651).
    """
    leaving = sorted(_leaving(members, pods))
    replaced: list[Replaced] = []
    empty = 0
    for name, count in counts.items():
        role = members.roles.get(name, NOBODY)
        places = slots.places(role, count)
        empty += min(places.empty, role.counts[MemberState.FAILED]) if name in later else places.empty
        replaced += _replaced(role, places, pods, [uid for _, uid, of in leaving if of == name])
    return ToldOfAll(
        wanted=sum(counts.values()),
        standing=tuple((word, members.counts[state]) for state, word in WORDS.items() if members.counts[state]),
        lacks=lacks or _missing(empty, sum(counts.values())),
        replaced=tuple(replaced),
        leaving=tuple(StoppingObject(pods[uid].metadata.name, since) for since, uid, _ in leaving),
    )


def _missing(empty: int, wanted: int) -> str:
    if not empty:
        return ""
    return f"{empty} of {wanted} slots {'has' if empty == 1 else 'have'} no pod: make as many under the group's name"


def _leaving(members: GroupMembers, pods: Mapping[str, Pod]) -> Iterable[tuple[str, str, str]]:
    """Yield since when each pod that is being deleted is, its UID and its role."""
    for uid, pod in pods.items():
        found = members.get(uid)
        if found is not None and found.state is MemberState.LEAVING:
            yield _asked_at(pod), uid, found.role


def _asked_at(pod: Pod) -> str:
    """Return when the deletion was accepted: its deletionTimestamp lies a grace behind that."""
    meta = pod.metadata
    try:
        asked = to_seconds(meta.deletion_timestamp or "") - (meta.deletion_grace_period_seconds or 0)
    except ValueError:
        return meta.deletion_timestamp or ""
    return to_text(asked)


def _replaced(
    role: RoleMembers, places: slots.SlotPlaces, pods: Mapping[str, Pod], leaving: list[str]
) -> Iterable[Replaced]:
    """Yield whose place is another one's, or is to be: failed pods, longest ago first, then those that leave."""
    failed = [since[-1] for since in role.failed]
    taken, filling = failed[: places.replaced], list(slots.to_fill(role, places))
    by = [""] * max(0, len(taken) - len(filling)) + filling[-len(taken) :] if taken else []
    for uid, heir in zip(taken, by, strict=True):
        yield Replaced(_name(pods, uid), _name(pods, heir), "failed", is_taken=True)
    for uid in failed[places.replaced :]:
        yield Replaced(_name(pods, uid), "", "failed")
    for uid, heir in zip(leaving, slots.heirs(role, places), strict=False):
        yield Replaced(_name(pods, uid), _name(pods, heir), "leaving")


def _name(pods: Mapping[str, Pod], uid: str) -> str:
    return pods[uid].metadata.name if uid else ""
