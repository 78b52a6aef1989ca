"""What the pods of a planned set need, made once for each version of the pod that it is of. Pure."""

from __future__ import annotations

import msgspec

from gatelift_kinds.pod_group.composition import PlannedSet
from gatelift_kinds.pod_group.declaration import SETS_MAX
from gatelift_kinds.pod_group.shapes import template_of
from gatelift_kinds.shared.workload_document import same_needs
from gatelift_kube.objects.core import PodSpec, PodTemplate
from gatelift_kube.objects.kueue import PodSet


class PlannedSpecs:
    """Specs by pod set, each with the JSON that it is made of. Only this class writes what it holds."""

    __slots__ = ("_made",)

    def __init__(self) -> None:
        self._made: dict[str, tuple[bytes, PodSpec]] = {}

    def is_alike(self, planned: PlannedSet, theirs: PodSet, raw: bytes) -> bool:
        """Return whether a pod set of a Workload asks for the same; `raw`: the pod that the planned one is like.

        Of one whose pods were all let go nothing can be said: they have what their flavor added.
        """
        if planned.lifted:
            return True
        spec = self._spec(planned, raw if planned.like else planned.template)
        mine = PodSet(name=planned.name, count=planned.count, template=PodTemplate(spec=spec))
        return same_needs(mine, theirs, started=False)

    def _spec(self, planned: PlannedSet, raw: bytes) -> PodSpec:
        made_of, spec = self._made.get(planned.name, (b"", PodSpec()))
        if made_of is not raw:
            spec = (
                msgspec.json.decode(template_of(raw).spec, type=PodSpec)
                if planned.like
                else msgspec.json.decode(raw, type=PodTemplate).spec
            )
            if len(self._made) > SETS_MAX:
                self._made.clear()
            self._made[planned.name] = (raw, spec)
        return spec
