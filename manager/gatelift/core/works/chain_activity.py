"""A chain is one unit: whichever of its open slices is deactivated, all of it is (SL-34).

What says so goes to the slice that runs, or is next to. So it is not lost with a slice whose place has just been taken,
and who activates that one again activates all. Neighbours: `past_slices` asks before it finishes a slice, `reconcile`
of what waits; `rules.deactivation` brings it about.
"""

from __future__ import annotations

from gatelift.core.api.agenda import Key, Look
from gatelift.core.records.knowledge import ref_of
from gatelift.core.rules import deactivation
from gatelift.core.state import api_requests
from gatelift.core.state.case import Case
from gatelift.core.state.core import Core
from gatelift.core.works import growing
from gatelift_kube.objects.kueue import Workload


def deactivates(core: Core, known: Workload, now: float) -> bool:
    """Deactivate the chain of a slice that was deactivated beside what runs; False where there is nothing to do."""
    chain = core.knowledge.slices.of(known.metadata.uid)
    current = chain.current if chain is not None else None
    if known.spec.active or current is None or not current.open or current.uid == known.metadata.uid:
        return False
    runs, one = core.knowledge.workloads[current.key], core.knowledge.slices.slice_of(known.metadata.uid)
    if not runs.spec.active or one is None:
        return False
    if not api_requests.blocked(core, ref_of(runs), Key(Look.WORKLOAD, one.key), now):
        deactivation.set_active(core, runs, active=False)
    return True


def of_what_waits(case: Case) -> bool:
    """Deactivate the chain of a slice that was deactivated as it waits; that one waits on behind it, with its size."""
    if case.known.spec.active or not growing.is_target(case):
        return False
    if not deactivates(case.core, case.known, case.now):
        deactivation.set_active(case.core, case.known, active=True)
    return True
