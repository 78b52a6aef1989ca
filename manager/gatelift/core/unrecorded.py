"""What runs though its record shows no quota for it: charged all the same, until it is over (P7).

Two say so of a Workload without a reservation. A cluster names it: in the record's own epoch, where somebody took its
status away, or in a later one, where the record is too old. And what is remembered of that, which the next leader reads
before it has heard the cluster (`status.predecessors`). Neighbours: `caution` and `predecessors` know, the engine
charges (`gatelift_admission.ghosts`), `endings` has it stopped when its object goes.
"""

from __future__ import annotations

from gatelift.core import successors
from gatelift.core.state import Core
from gatelift_kube.objects.kueue import Workload


def runs(core: Core, known: Workload) -> bool:
    """Say whether something of a Workload may run that its record does not place."""
    return core.caution.runs_beside(known.metadata.uid) or successors.own_run(core, known) is not None


def remembered(core: Core) -> list[Workload]:
    """Return the Workloads of which a run is remembered."""
    found = (core.knowledge.workload_of(uid) for uid in core.predecessors.by_uid)
    return [known for known in found if known is not None]


def charge(core: Core, known: Workload) -> bool:
    """Have the engine charge what runs of a Workload that waits, before it decides anything more; True: it does."""
    beside = runs(core, known)
    core.ledger.engine.set_ghost(known.metadata.uid, runs=beside)
    return beside
