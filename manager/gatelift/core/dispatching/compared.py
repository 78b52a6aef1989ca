"""Several objects are compared with what their Workload has quota for: before any of them is let go. Pure.

A role is a word that a user may write, and with fast admission the first object speaks for all (BG-16). Who was not
compared yet is left out of a Commit and of a Change, and read anew by the pass over all objects.
"""

from __future__ import annotations

from gatelift.core.records.attempt_states import AttemptState
from gatelift.core.records.attempts import Attempt
from gatelift.core.records.work import Work
from gatelift.core.state.core import Core
from gatelift_kube.objects.kueue import Workload


def with_quota(core: Core, work: Work, attempt: Attempt, known: Workload) -> None:
    """Say to the objects what there is quota for, nothing while their Workload waits, and look at them where needed."""
    if work.gathered is None:
        return
    work.gathered.asks(None if attempt.state is AttemptState.PENDING else known)
    if work.gathered.unread:
        core.agenda.mark(work.look)
