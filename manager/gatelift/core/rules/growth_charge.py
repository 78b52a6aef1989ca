"""What a chain is charged while checks of other controllers are asked about a growth of it (SL-33). Pure.

All that is reserved is charged to the slice that runs, the higher of both by pod set: so who preempts, drains or
deactivates finds that one, with all that comes free by it. The slice that waits to grow it counts as one that waits,
and has no turn. Neighbour: `kept_record` asks for what the engine is to know.
"""

from __future__ import annotations

import msgspec

from gatelift.core.records import record
from gatelift.core.state.core import Core
from gatelift_kube.objects.kueue import Admission, Workload


def of_chain(core: Core, known: Workload) -> Workload:
    """Return a Workload as the engine is to know it, as far as it is a slice of a chain that is to grow."""
    one = core.knowledge.slices.slice_of(known.metadata.uid)
    if one is None:
        return known
    if one.asks:
        return _with(known, None)
    chain = core.knowledge.slices.of(one.uid)
    if chain is None or chain.record is None or chain.record.uid != one.uid:
        return known
    if chain.target is None or not chain.target.asks:
        return known
    more, admission = core.knowledge.workloads[chain.target.key].status.admission, known.status.admission
    if more is None or admission is None:
        return known
    return _with(known, _higher(known, admission, more))


def _with(known: Workload, admission: Admission | None) -> Workload:
    """Return it with another reservation: none of its pods counts as over, since what is reserved is for all."""
    status = msgspec.structs.replace(known.status, admission=admission, reclaimable_pods=())
    return msgspec.structs.replace(known, status=status)


def _higher(known: Workload, admission: Admission, more: Admission) -> Admission:
    granted, wanted = record.granted(known), {one.name: one for one in more.pod_set_assignments}
    assignments = tuple(
        wanted[one.name] if one.name in wanted and (wanted[one.name].count or 0) >= granted.get(one.name, 0) else one
        for one in admission.pod_set_assignments
    )
    return msgspec.structs.replace(admission, pod_set_assignments=assignments)
