"""Pods of groups as tests want them."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from gatelift_kinds.pod_group.member import MemberState
from gatelift_kinds.pod_group.members import Agreement, GroupMember, GroupMembers
from gatelift_kube.objects.core import Pod

Json = dict[str, Any]
K = "kueue.x-k8s.io/"
GROUP, TOTAL, SETS, ROLE = (f"{K}pod-group-{name}" for name in ("name", "total-count", "sets", "role"))
GATE = {"name": f"{K}admission"}


def at(second: int) -> str:
    """Return a moment as an API server writes it."""
    return f"2026-01-01T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}Z"


def a_member(number: int, state: MemberState = MemberState.WAITING, role: str = "r", **more: Any) -> GroupMember:
    """Return a pod, the `number`th to be made; by default at its gate, in a group of which it says nothing."""
    lifted = state not in {MemberState.WAITING, MemberState.WITHDRAWN}
    values = {"uid": f"u{number}", "name": f"p{number}", "created": at(number), "lifted": lifted, **more}
    return GroupMember(state=state, role=role, **values)


def a_group(*members: GroupMember) -> GroupMembers:
    """Return a group of these pods."""
    group = GroupMembers()
    for each in members:
        group.put(each)
    return group


def of_size(total: int, *more: tuple[Agreement | str, str]) -> Json:
    """Return what a member says of its group, as a value of `said`."""
    return {"said": ((Agreement.COUNT, str(total)), (Agreement.QUEUE, "q"), *more)}


def a_pod(
    name: str = "p", *, labels: Json | None = None, notes: Json | None = None, status: Json | None = None, **spec: Any
) -> Json:
    """Return a pod of group `g` as an API server serves it, gated, with one container."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "ns",
            "uid": f"uid-{name}",
            "creationTimestamp": at(0),
            "labels": {f"{K}queue-name": "q", GROUP: "g", **(labels or {})},
            "annotations": {TOTAL: "3", **(notes or {})},
            "finalizers": [f"{K}managed"],
        },
        "spec": {"containers": [{"name": "c"}], "schedulingGates": [GATE], **spec},
        "status": status or {"phase": "Pending"},
    }


def typed(document: Json) -> Pod:
    """Return a pod as the cores have it."""
    return msgspec.json.decode(json.dumps(document).encode(), type=Pod)
