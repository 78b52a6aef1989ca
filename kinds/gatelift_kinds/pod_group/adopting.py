"""A group whose user makes its Workload: whether that can become the group's; a part of `gathering`. Pure.

Neighbour: `prebuilt` has the conditions and the write.
"""

from __future__ import annotations

from typing import Protocol

from gatelift_kinds.pod_group import composition, prebuilt
from gatelift_kinds.pod_group.composition import GroupPlan, NotYet
from gatelift_kinds.pod_group.members import GroupMembers
from gatelift_kinds.pod_group.planned_specs import PlannedSpecs
from gatelift_kube.objects.core import Pod
from gatelift_kube.objects.kueue import Workload


class GatheredPrebuilt(Protocol):
    """See `gathering.GatheredPods`, which holds all of this."""

    __slots__ = ()
    _group: str
    _pods: dict[str, tuple[Pod, bytes]]
    _prebuilt: set[str]
    _specs: PlannedSpecs

    @property
    def members(self) -> GroupMembers:
        """The pods that are ours."""
        ...

    def _plan(self) -> GroupPlan | NotYet: ...

    @property
    def is_prebuilt(self) -> bool:
        """Say whether a pod names a Workload that their user makes: none is made for them."""
        return bool(self._prebuilt)

    def not_adopted(self, workload: Workload | None) -> str:
        """Return why the Workload that their user made cannot become theirs, with the way out; "" where it can."""
        found = prebuilt.problem(workload, self._group)
        if found or workload is None:
            return found
        return self.differs(workload) or prebuilt.holds_quota(workload)

    def awaits(self, workload: Workload) -> bool:
        """Return whether a Workload of nobody's is to become theirs, now or once nothing lacks."""
        if not self._prebuilt or not self.members.present or prebuilt.problem(workload, self._group):
            return False
        return isinstance(self._plan(), NotYet) or not self.differs(workload)

    def differs(self, workload: Workload) -> str:
        """Return how the Workload that their user made differs from what the pods ask for; "" where it does not."""
        plan = self._plan()
        if isinstance(plan, NotYet):
            return plan.text
        unlike = "" if composition.differs(workload, plan) else self._unlike(plan, workload)
        return prebuilt.unlike(workload, plan, unlike)

    def adoption(self, workload: Workload) -> bytes:
        """Return the JSON patch by which a Workload becomes theirs, the oldest pod first."""
        owners = [self._pods[uid][0].metadata for _, _, uid in self.members.ages]
        return prebuilt.adoption(workload, self._group, owners)

    def _unlike(self, plan: GroupPlan, workload: Workload) -> str:
        """Return the first pod set whose pods ask for something else than the plan's, "" for none; as many in both."""
        pairs = zip(plan.pod_sets, workload.spec.pod_sets, strict=True)
        raws = ((mine, theirs, self._pods[mine.like][1] if mine.like else b"") for mine, theirs in pairs)
        return next((mine.name for mine, theirs, raw in raws if not self._specs.is_alike(mine, theirs, raw)), "")
