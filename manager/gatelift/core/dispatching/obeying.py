"""What is set aside still obeys a stop: its cluster is told, though the look that would say so raises. Pure.

Nothing else is done for it: what has stopped stays charged until a look has come to its end. Neighbours: `machine` asks
behind a look at a Workload that failed.
"""

from __future__ import annotations

from gatelift.core import texts
from gatelift.core.dispatching import placing
from gatelift.core.records.attempts import Ending
from gatelift.core.rules import deactivation
from gatelift.core.state.core import Core
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.values.resources import ObjectKey


def stop_if_asked(core: Core, key: ObjectKey, now: float) -> None:
    """Have the placement of a Workload stopped if its user, its queue or a person wants that."""
    known = core.knowledge.workloads.get(key)
    attempt = core.attempts.get(known.metadata.uid) if known is not None else None
    if known is None or attempt is None or not attempt.live or core.caution.halted:
        return
    ending = attempt.ending or _asked(core, known)
    if ending is not None:
        attempt.end_for(ending)
        placing.stop(core, attempt, ending, now)


def _asked(core: Core, known: Workload) -> Ending | None:
    """Return why it is to stop by what its objects say; that an object is not known says nothing here."""
    owner = core.knowledge.owner_of(known)
    if known.metadata.deletion_timestamp is not None:
        return Ending(reason=texts.WORKLOAD_DELETED, message="The user deleted it", evict=False)
    if owner is not None and owner.object.metadata.deletion_timestamp is not None:
        return Ending(reason=texts.OWNER_DELETED, message="The user deleted it", evict=False)
    return None if known.spec.active else deactivation.ending(known)
