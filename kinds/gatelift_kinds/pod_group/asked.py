"""Whether a pod that waits asks for what its group's Workload has quota for. Pure.

The role hash is whatever its user wrote, and with fast admission the Workload was made of the first pod alone. So once
there is quota, whoever waits is compared with the template of its role: requests, selectors, tolerations and classes.
Who differs has no role: it is counted nowhere, never let go, not deleted, and told why (BG-16). Pods that agree in all
of this are compared once. Neighbours: `roles` has the role, `shapes` the first difference.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from gatelift_kinds.pod_group.roles import RoleFit
from gatelift_kinds.pod_group.shapes import as_json, difference
from gatelift_kinds.shared.json_parts import Json, objects
from gatelift_kube.objects.kueue import PodSet, Workload

Like = tuple[str, str, bytes]
"""Role, shape, and what counts of a spec besides: who agrees in these asks for the same."""
WAY_OUT = "the group has quota for pods of another shape: make it like those, or make a new group"
UNKNOWN = "its role is none of those that the group was admitted with: make it like the first pod of the group"


class AskedOfPods:
    """The pods that wait and run nowhere, by what they ask for. `unread`: UIDs of those that are to be read anew.

    `_asked`: the pod sets for which there is quota, none while the group waits, and whether its first pod admitted it.
    """

    __slots__ = ("_asked", "_found", "_likes", "_pods", "_templates", "unread")

    def __init__(self) -> None:
        self._asked: tuple[tuple[PodSet, ...], bool] = ((), False)
        self._templates: dict[str, Json] = {}
        self._found: dict[Like, str] = {}
        self._likes: dict[str, Like] = {}
        self._pods: dict[Like, set[str]] = {}
        self.unread: set[str] = set()

    def put(self, uid: str, fit: RoleFit, spec: Json, shape: str) -> RoleFit:
        """Take in a pod that waits, or another version of it, and return its role, or why it has none."""
        self.drop(uid)
        if not fit.role:
            return fit
        like = (fit.role, shape, _besides(spec))
        self._likes[uid] = like
        self._pods.setdefault(like, set()).add(uid)
        text = self._text(like, spec)
        return RoleFit("", text) if text else fit

    def drop(self, uid: str) -> None:
        """Let go of a pod that does not wait any more, or is gone."""
        self.unread.discard(uid)
        like = self._likes.pop(uid, None)
        if like is None:
            return
        there = self._pods[like]
        there.discard(uid)
        if not there:
            del self._pods[like]
            self._found.pop(like, None)

    def ask(self, workload: Workload | None, spec_of: Callable[[str], Json], *, fast: bool) -> None:
        """Take what there is quota for, None for nothing: those of whom that says something else are read anew."""
        asked = (workload.spec.pod_sets, fast) if workload is not None else ((), False)
        if asked == self._asked:
            return
        before = self._found
        self._asked, self._found = asked, {}
        self._templates = {each.name: as_json(each.template.spec) for each in asked[0]}
        for like, uids in self._pods.items():
            if before.get(like, "") != self._text(like, spec_of(next(iter(uids)))):
                self.unread |= uids

    def _text(self, like: Like, spec: Json) -> str:
        if like not in self._found:
            self._found[like] = self._difference(like[0], spec)
        return self._found[like]

    def _difference(self, role: str, spec: Json) -> str:
        pod_sets, fast = self._asked
        template = self._templates.get(role)
        if template is None:  # of another role: without fast admission it is one too many
            return UNKNOWN if pod_sets and fast else ""
        text = difference(template, spec)
        return f"spec.{text}: {WAY_OUT}" if text else ""


def _besides(spec: Json) -> bytes:
    """Return what quota, and where a pod may run, depend on besides its shape."""
    containers: list[Any] = [
        (each.get("restartPolicy"), (each.get("resources") or {}).get("limits"))
        for name in ("initContainers", "containers")
        for each in objects(spec, name)
    ]
    return msgspec.json.encode((containers, spec.get("priorityClassName")))
