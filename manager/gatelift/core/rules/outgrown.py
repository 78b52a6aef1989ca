"""Whether a Workload asks for more than was granted to it: a reservation is made of one version of `spec.podSets`.

The requests of a suspended Job can be edited (Kubernetes 1.36), and its waiting Workload follows it while the engine
may have reserved for what it asked before. Neighbours: `admitting` asks before it writes an admission, in the pass
whose version that write is for; `owners` asks about what is placed.
"""

from __future__ import annotations

from gatelift.core import texts
from gatelift.core.records.attempts import Attempt, Ending
from gatelift.core.records.work import Owner
from gatelift.core.state.core import Core
from gatelift_kube.objects.kueue import Workload

ENDING = Ending(reason=texts.NO_MATCHING_WORKLOAD, message=texts.RESIZED)
"""It is queued anew as it is now."""


def before_admission(core: Core, known: Workload, attempt: Attempt) -> bool:
    """Say whether quota is reserved for something else than this version asks for: it must not be written beside it."""
    decided = attempt.reserved_for
    return (decided is not None and decided != known.spec.pod_sets) or not core.ledger.engine.covers(attempt.uid)


def while_live(core: Core, attempt: Attempt, owner: Owner) -> bool:
    """Say whether the record of a placement grants less than it asks for: by an earlier manager, or by an edit of it.

    Only of kinds whose objects can be queued anew.
    """
    return owner.kind.pods_are_children and not core.ledger.engine.covers(attempt.uid)
