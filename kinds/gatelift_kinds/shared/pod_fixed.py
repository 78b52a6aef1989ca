"""What of a pod stays as it was when its run began elsewhere (`fixed`). Pure. Neighbour: `pod_review`.

At home it stays at its gate, where the API server lets more be changed than of a pod that runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gatelift_kinds.shared import fixed
from gatelift_kinds.shared.review import HeldChange
from gatelift_kinds.shared.rules import Object

FIELDS = ("activeDeadlineSeconds", "affinity", "nodeSelector", "tolerations")
"""Of the spec: what an API server lets anybody change of a pod at its gate, besides images."""
CONTAINERS = ("initContainers", "containers")
RUNS_ELSEWHERE = fixed.RUNS_ELSEWHERE.format(
    kind="pod", way_out="make a new pod, or deactivate its Workload first (spec.active: false)"
)

DEBUGGED_ELSEWHERE = fixed.RUNS_ELSEWHERE.format(
    kind="pod", way_out=f"debug it there, in worker cluster {fixed.CLUSTER} (status.clusterName of its Workload)"
)
"""`kubectl debug`, by the subresource `pods/ephemeralcontainers`, which nobody else writes."""


def changes(old: Object, new: Object) -> tuple[HeldChange, ...]:
    """Return what is changed that a run elsewhere takes no notice of."""
    found = fixed.changed_fields(old, new, FIELDS, RUNS_ELSEWHERE)
    debugged = fixed.changed_fields(old, new, ("ephemeralContainers",), DEBUGGED_ELSEWHERE)
    return (*found, *debugged, *(each for field in CONTAINERS for each in _images(field, old, new)))


def _images(field: str, old: Object, new: Object) -> Iterable[HeldChange]:
    """Yield the changed images; an API server takes no container off, and adds none."""
    before, after = _containers(old, field), _containers(new, field)
    for place, (was, wanted) in enumerate(zip(before, after, strict=False)):
        if was.get("image") != wanted.get("image"):
            path, image = f"spec.{field}[{place}].image", fixed.shown(wanted.get("image"))
            yield HeldChange(path=path, value=image, text=RUNS_ELSEWHERE)


def _containers(obj: Object, field: str) -> list[Any]:
    return fixed.spec_of(obj).get(field) or []
