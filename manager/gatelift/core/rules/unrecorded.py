"""What runs though its record shows no quota for it: charged all the same, until it is over (P7).

Two say so of a Workload without a reservation. A cluster names it: in the record's own epoch, where somebody took its
status away, or in a later one, where the record is too old. And what is remembered of that, which the next leader reads
before it has heard the cluster (`status.predecessors`), with the ClusterQueue in which it is charged: its LocalQueue
may be gone by then. Neighbours: `caution` and `predecessors` know, the engine charges (its `feed.ghosts`), `endings`
has it stopped when its object goes.
"""

from __future__ import annotations

from gatelift.core.records.knowledge import ref_of
from gatelift.core.rules import successors
from gatelift.core.state import predecessors
from gatelift.core.state.core import Core
from gatelift_kube.objects.kueue import Workload

QUEUE_UNKNOWN = "QueueUnknown"
"""Reason of the event on a Workload whose run is charged everywhere."""


def runs(core: Core, known: Workload) -> bool:
    """Say whether something of a Workload is proved to run that its record does not place."""
    uid = known.metadata.uid
    remembered_too = uid in core.predecessors.by_uid
    return core.caution.runs_beside(core.knowledge.placed_uid(uid)) or (
        remembered_too and any(successors.proved_runs(core, known))
    )


def remembered(core: Core) -> list[Workload]:
    """Return the Workloads of which a run is remembered."""
    found = (core.knowledge.workload_of(uid) for uid in core.predecessors.by_uid)
    return [known for known in found if known is not None]


def charge(core: Core, known: Workload) -> bool:
    """Have the engine charge what runs of a Workload that waits, before it decides anything more; True: it does."""
    uid, engine = known.metadata.uid, core.ledger.engine
    beside, was_adrift = runs(core, known), engine.is_adrift(uid)
    engine.set_ghost(uid, runs=beside, queue=predecessors.charged_queue(core, uid) if beside else "")
    if beside:
        for cluster, key in successors.proved_runs(core, known):
            predecessors.is_charged(core, cluster, key, engine.charged_queue(uid))
    if engine.is_adrift(uid) and not was_adrift:
        text = adrift(known.spec.queue_name)
        core.event(ref_of(known), uid, QUEUE_UNKNOWN, text, warning=True)
        core.note(f"{known.metadata.namespace}/{known.metadata.name}: {text}", warning=True)
    return beside


def adrift(local_queue: str) -> str:
    """Return what people are told of what runs and nobody can tell in which ClusterQueue it was charged."""
    return (
        "It runs though its record does not place it, and nobody can tell in which ClusterQueue it is charged: what "
        f"it asks for is kept free in all of them. Make LocalQueue {local_queue!r} and its ClusterQueue anew, or end it"
    )
