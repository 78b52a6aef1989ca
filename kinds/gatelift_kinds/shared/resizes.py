"""What is asked of a kind whose objects are resized while they run (KEP-77): a part of `gatelift_kinds.kind`. Pure.

A kind that says nothing here has no elastic objects. At home an object is asked what its user wants; at a worker and at
`local` it is set to a size, and its pods are let go one by one, up to that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

from gatelift_kinds.shared import sized_pods
from gatelift_kinds.shared.sized_pods import Surplus
from gatelift_kinds.shared.sizes import Counts, Size, SizeMark
from gatelift_kinds.shared.values import Charged, KindError, PodSetStart
from gatelift_kube.objects.core import Pod
from gatelift_kube.objects.kueue import Workload

UserT_contra = TypeVar("UserT_contra", contravariant=True)
_NONE = "nothing of this kind is elastic"


class Resizes(Protocol[UserT_contra]):
    """How an elastic object is resized."""

    sliced: bool = False
    """Whether several Workloads may stand for one object in a row, each for one size; also while the feature is off."""

    def gated(self, obj: UserT_contra) -> bool:
        """Return whether its pods wait at the gate of elastic work, and are let go by count."""
        return False

    def resizes(self, obj: UserT_contra) -> bool:
        """Return whether its user may change its size while it runs: its pods are gated, and the feature is on."""
        return False

    def wanted(self, obj: UserT_contra) -> Counts:
        """Return how many pods its user wants at once, by pod set."""
        raise KindError(_NONE)

    def are_ready(self, obj: UserT_contra, counts: Counts) -> bool:
        """Return whether as many pods are ready as these, or have succeeded."""
        raise KindError(_NONE)

    def slice_name(self, obj: UserT_contra, again: str = "") -> str:
        """Return the name of a slice for the object as it is now; `again`: tells it from one that has this name."""
        raise KindError(_NONE)

    def same_shape(self, workload: Workload, obj: UserT_contra) -> bool:
        """Return whether the Workload describes the object but for the counts: its pod sets, and what pods need."""
        raise KindError(_NONE)

    def mark(self, obj: UserT_contra) -> SizeMark | None:
        """Return what an object that runs was set to, None where it was never set. SizeError: it cannot be read."""
        return None

    def size_patch(self, obj: UserT_contra, size: Size) -> bytes | None:
        """Return the JSON patch that sets a worker's object to a size, with its mark, in one; None: it is set to it.

        With tests on UID and resourceVersion. It is due also where no pod changes, for the mark. SizeError: its mark
        cannot be read, or would be too long.
        """
        raise KindError(_NONE)

    def local_size_patch(self, obj: UserT_contra, size: Size) -> bytes | None:
        """Return the same of the user's own object: its mark alone, for its size is what its user wants."""
        raise KindError(_NONE)

    def charged_at(self, obj: UserT_contra, raw: bytes, mark: SizeMark) -> Charged:
        """Return what the charge of a worker's object follows from at the size that it was set to (`charged`)."""
        raise KindError(_NONE)

    def gated_pods(self, obj: UserT_contra, pods: Sequence[Pod]) -> Mapping[str, tuple[Pod, ...]]:
        """Return its pods that wait at the gate, by pod set, in the order in which they are to be let go."""
        raise KindError(_NONE)

    def ungate_patch(self, pod: Pod, raw: bytes, start: PodSetStart) -> bytes:
        """Return the JSON patch that lets one pod go, with what is added to its pod set.

        MergeConflictError: that contradicts the pod, which waits on.
        """
        return sized_pods.ungate_patch(pod, raw, start)

    def surplus(self, obj: UserT_contra, pods: Sequence[Pod], counts: Counts) -> tuple[Surplus, ...]:
        """Return how many of its pods are let go above these counts, for each pod set; `pods`: all that are there."""
        raise KindError(_NONE)
