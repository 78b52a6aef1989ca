"""Objects of a work that are counted by where they may run: thousands of them in parts, before anything is concluded.

As a placement begins at a worker, and as it ends, all of its objects are counted anew, which for a thousand took longer
than a call may (HD-691). So each call counts some, and whatever else is to be looked at of the work waits for it.
Whoever asks all the same has the others counted at once: nobody reads what is half of a change. Neighbours: `gathered`
and `reconcile` ask here.
"""

from __future__ import annotations

from gatelift.core.api.agenda import Key
from gatelift.core.records.work import Work
from gatelift.core.state.core import Core

COUNTED_PER_CALL = 32
"""To read and count one takes about 0.2 ms."""
AGAIN_SECONDS = 0.05
"""After so long what was put off is looked at again; the Workload itself as soon as all are counted."""


def is_put_off(core: Core, work: Work, look: Key, now: float) -> bool:
    """Say whether a look waits until all objects of its work are counted."""
    if work.gathered is None or work.gathered.is_counted:
        return False
    if core.knowledge.works.gathered_at(work.key) is not work:
        return False  # nobody looks at all of these
    rests = core.contained.rests_until(work.look, now) if core.contained.resting else 0.0
    core.agenda.wake(work.look, now)
    core.agenda.wake(look, max(rests, now + AGAIN_SECONDS))
    return True


def go_on(core: Core, work: Work, now: float) -> bool:
    """Count some of them; True once all are."""
    if work.gathered is None or work.gathered.is_counted:
        return True
    if work.gathered.counts(COUNTED_PER_CALL):
        core.mark_workload(work.key)
        return True
    core.agenda.wake(work.look, now)
    return False
