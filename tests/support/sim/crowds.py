"""Containers under one Job, counted where they run: never more at once than its spec has ever allowed.

Those of pods that are gone by force or were taken off their Job are left out, and of a Job that does not wait for them
those that are being deleted: Kubernetes makes others for them at once, and `account` asks who is charged for both.
Knows no core and no kind.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from support.sim.objects import TruthError


@dataclass(slots=True)
class Crowd:
    """What is known of one Job, by its UID."""

    most: int = 0
    """The highest parallelism that its spec has had."""
    patient: bool = False
    """Whether it makes no pod beside one that stops."""
    running: set[str] = field(default_factory=set)
    """UIDs of pods with containers that run."""


class Crowds:
    """Follows Jobs, their pods and the containers of those."""

    def __init__(self) -> None:
        self._of: dict[str, Crowd] = {}
        self._going: set[str] = set()

    def job(self, root: str, parallelism: int, *, patient: bool = False) -> None:
        """Take a version of a Job; `patient`: it makes no pod beside one that stops."""
        crowd = self._of.setdefault(root, Crowd())
        crowd.most = max(crowd.most, parallelism)
        crowd.patient = patient

    def waits(self, root: str) -> bool:
        """Say whether a Job makes no pod beside one that stops."""
        return root in self._of and self._of[root].patient

    def pod(self, uid: str, *, going: bool) -> None:
        """Take a version of a pod; `going`: its Job makes another one for it."""
        (self._going.add if going else self._going.discard)(uid)

    def started(self, root: str, uid: str) -> None:
        """Take that a pod's containers run; TruthError where that is one pod too many of a Job."""
        crowd = self._of.get(root)
        if crowd is None:
            return
        crowd.running.add(uid)
        stay = sorted(crowd.running - self._going)
        if len(stay) > crowd.most:
            raise TruthError(f"Job {root} has {len(stay)} pods whose containers run ({stay}), at most {crowd.most}")

    def stopped(self, root: str, uid: str) -> None:
        """Take that they have stopped."""
        if root in self._of:
            self._of[root].running.discard(uid)

    def restored(self) -> None:
        """Take that a cluster was put back: its controllers know nothing of what runs since then."""
        for crowd in self._of.values():
            self._going |= crowd.running
