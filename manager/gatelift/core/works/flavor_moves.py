"""A chain whose flavor is too small for what is wanted goes to another one, where its user wants that (SL-36).

A growth keeps the flavors of its chain (SL-30). With `gatelift.dev/resize-flavor: migrate` a chain that can never be so
large there is evicted and queued whole, as soon as all of it would fit into another flavor; until then it runs on as it
is, and is asked about again from time to time: what is given back of other flavors wakes no growth. Neighbour:
`resizing` asks.
"""

from __future__ import annotations

from gatelift.core import texts
from gatelift.core.dispatching import placing
from gatelift.core.records.attempt_states import AttemptState
from gatelift.core.records.attempts import Ending
from gatelift.core.records.chain import OUT_OF_SYNC
from gatelift.core.records.knowledge import ref_of
from gatelift.core.records.work import Owner
from gatelift.core.state import api_requests
from gatelift.core.state.case import Case
from gatelift.core.told import slice_moments, slice_texts
from gatelift.core.works import past_slices
from gatelift_kinds.shared import sizes
from gatelift_kinds.shared.resize_wishes import RESIZE_FLAVOR
from gatelift_kube.objects.kueue import Workload

MIGRATE = "migrate"
LOOK_SECONDS = 30.0
"""How often one that cannot go anywhere yet is asked about."""


def carry_out(case: Case, owner: Owner, target: Workload) -> bool:
    """Evict a chain that can be as large as is wanted in another flavor alone; True when that is under way."""
    core, attempt, uid = case.core, case.attempt, target.metadata.uid
    waiting = core.attempts.get(uid)
    if owner.object.metadata.annotations.get(RESIZE_FLAVOR) != MIGRATE:
        return False
    if waiting is None or waiting.state is not AttemptState.PENDING or not attempt.live:
        return False
    if placing.open_view(core, attempt.cluster) is None or not core.ledger.engine.fits_elsewhere_alone(uid):
        core.agenda.wake(owner.look, case.now + LOOK_SECONDS)
        return False
    if api_requests.blocked(core, ref_of(target), owner.look, case.now):
        return True
    past_slices.finish(core, target, (OUT_OF_SYNC, past_slices.NOT_WANTED), case.now)
    text = texts.flavor_too_small(sizes.told(sizes.counts_of(target)))
    slice_moments.moved(core, target, text)
    attempt.end_for(Ending(reason=slice_texts.MOVED, message=text))
    core.mark_attempt(attempt)
    return True
