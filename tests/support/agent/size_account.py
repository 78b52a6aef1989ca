"""The outside account of one elastic placement: what may run by what stands in the cluster, against what was granted.

It reads the cluster's writes and the words that cross, and nothing of the agent (SL-08 at one worker). *Granted* of a
pod set is the most of all sizes that were said since the last answer, and of the answered one (Size 2, Size 3).
*Holding* is each pod without the gate that has not stopped; who stops is one of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from gatelift_kinds.shared import markers
from gatelift_kube.deciding.writes import ApiWrite, Patch
from gatelift_kube.values.resources import POD
from gatelift_sandbox.embedded.watches import StoreChange
from gatelift_wire.values.keys import ANNOTATION_SIZE
from support.agent.size_stage import deleting, gated, is_size, is_ungate, over

Counts = dict[str, int]


class SizeTruthError(AssertionError):
    """A promise of sizes is broken."""


@dataclass
class SizeAccount:
    """Words and pods of one placement. `on_terminating`: the release rule."""

    names: tuple[str, ...]
    on_terminating: bool = False
    said: dict[int, Mapping[str, int]] = field(default_factory=dict)
    answered: int = 0
    pods: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By UID."""
    objects: dict[str, dict[str, Any]] = field(default_factory=dict)
    """What runs, by UID."""
    opened: Counts = field(default_factory=dict)
    """The most that held or were about to, of what a word of its session has let be opened (Size 9)."""
    ended: dict[str, str] = field(default_factory=dict)
    """The pod sets of what was let go and holds no more, by UID."""
    checks: int = 0

    # --- words --------------------------------------------------------------------------------------------------

    def says(self, number: int, counts: Mapping[str, int]) -> None:
        """Take that a size goes out: from now on it is charged."""
        self.said[number] = dict(counts)

    def granted(self) -> Counts:
        """Return what is charged of each pod set, at the least."""
        counting = [counts for number, counts in self.said.items() if number >= self.answered]
        return {name: max((counts.get(name, 0) for counts in counting), default=0) for name in self.names}

    def hears_said(self, number: int, in_flight: tuple[ApiWrite, ...]) -> None:
        """Take that an answer is given: it is true now, and nothing that is under way can make it false (Size 6)."""
        counts = self.said.get(number)
        if counts is None:
            raise SizeTruthError(f"size {number} is answered, and nobody has said it")
        landing = [write.ref for write in in_flight if self._can_land(write)]
        if landing:
            raise SizeTruthError(f"size {number} is answered while writes can land: {landing}")
        for obj in self.objects.values():
            mark = msgspec.json.decode(obj["metadata"].get("annotations", {}).get(ANNOTATION_SIZE, "{}"))
            if mark.get("number") != number or mark.get("counts") != counts:
                raise SizeTruthError(f"size {number} {counts} is answered, and the object has {mark}")
        waits = [pod for pod in self.pods.values() if not (self.on_terminating and deleting(pod))]
        self._within(_counted(self.names, waits), counts, f"size {number} is answered")
        self.opened = {name: min(self.opened.get(name, 0), counts.get(name, 0)) for name in self.names}

    def hears(self, number: int) -> None:
        """Take that an answer has come: from now on no more is charged than it says, and what was said since."""
        self.answered = max(self.answered, number)

    def deadline(self, _number: int) -> None:
        """Take that a deadline of a size has passed: it takes nothing back (Size 3)."""

    # --- the cluster --------------------------------------------------------------------------------------------

    def sees(self, change: StoreChange, *, is_pod: bool) -> None:
        """Take a write of the cluster; raise SizeTruthError where more may run than is granted."""
        document = change.after.document()
        found, uid = self.pods if is_pod else self.objects, document["metadata"]["uid"]
        if is_pod and not gated(document) and (change.removed or over(document)):
            self.ended[uid] = _pod_set(document)
        if change.removed:
            found.pop(uid, None)
        else:
            found[uid] = document
        if is_pod:
            self.check()

    def check(self) -> None:
        """Compare what holds with what is granted."""
        self.checks += 1
        # By OnTerminating what stops is a ghost, which is charged apart.
        counted = [pod for pod in self.pods.values() if not (self.on_terminating and deleting(pod))]
        self._within(_counted(self.names, counted), self.granted(), "may run")

    def asks(self, write: ApiWrite, in_flight: tuple[ApiWrite, ...], unseen: set[str], *, may_open: bool) -> None:
        """Take that a lift is asked for: it fills an open slot again, or is let open one (Size 9).

        `unseen`: pods of which the agent has not seen all yet; who ended among them had a slot of its own for it.
        """
        if not is_ungate(write):
            return
        about = {uid for uid, pod in self.pods.items() for one in in_flight if _is_of(one, pod)}
        counted = _counted(self.names, [pod for uid, pod in self.pods.items() if uid not in about])
        for uid in about:
            counted[_pod_set(self.pods[uid])] += 1
        if not may_open:
            self._within(counted, self.opened, f"nothing may be opened, and {write.ref} is let go: holding")
            return
        for uid in unseen & self.ended.keys():
            counted[self.ended[uid]] = counted.get(self.ended[uid], 0) + 1
        self.opened = {name: max(self.opened.get(name, 0), counted[name]) for name in self.names}

    def begins(self) -> None:
        """Take that an agent starts: open are as many as are found let go, running or ended (Size 9)."""
        there = [pod for pod in self.pods.values() if not gated(pod)]
        for name in self.names:
            found = sum(_pod_set(pod) == name for pod in there)
            self.opened[name] = max(self.opened.get(name, 0), found)

    def holding(self) -> Counts:
        """Return how many pods of each pod set may run."""
        return _counted(self.names, self.pods.values())

    def _within(self, found: Mapping[str, int], limit: Mapping[str, int], what: str) -> None:
        above = {name: (count, limit.get(name, 0)) for name, count in found.items() if count > limit.get(name, 0)}
        if above:
            raise SizeTruthError(f"{what}: {above} (there are, at most), said {self.said}, answered {self.answered}")

    def _can_land(self, write: ApiWrite) -> bool:
        """Say whether a write that is under way would change a gate or a size, as things stand."""
        if not (isinstance(write, Patch) and (is_ungate(write) or is_size(write))):
            return False
        tests = {one["path"]: one["value"] for one in msgspec.json.decode(write.body) if one["op"] == "test"}
        there = self.pods if write.ref.resource == POD else self.objects
        found = there.get(tests.get("/metadata/uid", ""))
        version = tests.get("/metadata/resourceVersion")
        return found is not None and version in {None, found["metadata"]["resourceVersion"]}


def _counted(names: tuple[str, ...], pods: Any) -> Counts:
    """Return how many were let go and have not stopped; who names no pod set counts in each."""
    found = dict.fromkeys(names, 0)
    for pod in pods:
        never_ran = deleting(pod) and not pod["spec"].get("nodeName")
        if not gated(pod) and not over(pod) and not never_ran:
            for name in (_pod_set(pod),) if _pod_set(pod) in found else names:
                found[name] += 1
    return found


def _pod_set(pod: dict[str, Any]) -> str:
    return str(pod["metadata"]["labels"].get(markers.POD_SET, ""))


def _is_of(write: ApiWrite, pod: dict[str, Any]) -> bool:
    return is_ungate(write) and write.ref.key.name == pod["metadata"]["name"] and gated(pod)
