"""What clusters list while the record may not be the newest, and what of it is left alone.

A cluster lists what no Workload explains: that is left alone, for ever if need be, until a person says that it is to
stop (H19). Neighbours: `inventories`, `reports` and `strays` (hear it), `recovery_settling` (waits for it).
"""

from __future__ import annotations

from gatelift.core.clusters.link_values import PlacementsInventoried
from gatelift.core.conclusions import recovery_settling, recovery_texts
from gatelift.core.conclusions.raising import LOOK
from gatelift.core.records import epochs
from gatelift.core.state import predecessors
from gatelift.core.state.core import Core
from gatelift.core.state.recovery_values import is_told_to_stop
from gatelift_kube.objects.kueue import Workload
from gatelift_wire.values.inventory import InventoryEntry
from gatelift_wire.values.keys import PlacementKey


def spares(core: Core, cluster: str, key: PlacementKey, known: Workload) -> bool:
    """Say whether a placement of an epoch that a recovery has skipped is left to its own end: nobody said *stop*."""
    state = core.caution.recovery
    found = state.clusters.get(cluster)
    raised_to = max(state.word.epochs if state.word is not None else 0, epochs.recovered(known))
    if not key.epoch < raised_to <= epochs.annotated(known):
        return False
    return found is None or not is_told_to_stop(found)


def listed(core: Core, upcall: PlacementsInventoried) -> None:
    """Take that a cluster has listed what it has, and that this was looked at."""
    state, cluster = core.caution.recovery, upcall.cluster
    state.take_list(upcall, hold=bool(core.caution.halted))
    if upcall.unheard and state.finding is not None and cluster in state.awaited:
        _proves_nothing(core, cluster)
    else:
        recovery_settling.proves(core, cluster)
    if cluster in state.awaited and not recovery_settling.answers(core, cluster):
        _is_asked_about(core, cluster)
    elif cluster not in state.unproven:
        recovery_settling.heard(core, cluster)
    recovery_settling.settle(core)
    core.agenda.mark(LOOK)


def _proves_nothing(core: Core, cluster: str) -> None:
    """Wait on for a list: what this one does not name may run all the same, by its agent's own word.

    It greets anew as soon as its agent can tell.
    """
    if core.caution.recovery.proves_nothing(cluster):
        core.placements.note(cluster)
        recovery_settling.warn(
            core, cluster, recovery_texts.LIST_PROVES_NOTHING, recovery_texts.list_proves_nothing(cluster)
        )


def _is_asked_about(core: Core, cluster: str) -> None:
    """Wait for a person's word about what ran under a name before who has it now."""
    if core.caution.recovery.unvouch(cluster):
        recovery_settling.warn(core, cluster, recovery_texts.UNVOUCHED, recovery_texts.unvouched(cluster))


def over(core: Core, cluster: str) -> None:
    """Take that a session is over: what it listed counts no more."""
    core.caution.recovery.session_over(cluster)
    recovery_settling.proves(core, cluster)


def forget(core: Core, cluster: str) -> None:
    """Forget what a cluster had that nothing explains: it lists all anew, or is not expected any more."""
    if core.caution.recovery.forget_lists(cluster):
        core.agenda.mark(LOOK)


def leave_alone(core: Core, cluster: str, key: PlacementKey, listed: InventoryEntry | None = None) -> None:
    """Leave alone what runs and no Workload explains, since the record may be too old; a person may have it stopped.

    Who would run in its place waits (H21), as far as the cluster has said which that is.
    """
    if listed is not None and listed.name:
        predecessors.left_alone(core, cluster, listed)
    count = core.caution.recovery.leave_alone(cluster, key, listed.namespace if listed is not None else "")
    if not count:
        return
    if count == 1:
        text = recovery_texts.unexplained(cluster)
        core.note(text, warning=True, cluster=cluster)
        recovery_settling.tell(core, cluster, recovery_texts.UNEXPLAINED, text)
    core.agenda.mark(LOOK)


def leaves(core: Core, cluster: str, key: PlacementKey) -> bool:
    """Say whether a placement is left alone: it runs, and nothing explains it."""
    return key in core.caution.recovery.unexplained.get(cluster, {})


def idles(core: Core, cluster: str, key: PlacementKey) -> None:
    """Take that nothing runs of what nothing explains, by the list of its cluster: it tells no end of its own."""
    core.caution.recovery.idles(cluster, key)


def is_idle(core: Core, cluster: str, key: PlacementKey) -> bool:
    """Say whether nothing runs of what nothing explains: nor is anything of it let go in this session (R1)."""
    return key in core.caution.recovery.idle.get(cluster, ())


def is_over(core: Core, cluster: str, key: PlacementKey) -> None:
    """Take that something that nothing explained has ended."""
    if core.caution.recovery.is_over(cluster, key):
        core.agenda.mark(LOOK)
