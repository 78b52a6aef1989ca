"""A record that is charged for more than it asks for gives that back, once its cluster has answered (Size 2, Size 5).

Never at the mere change of a count. Neighbour: `reconcile` asks of what is live; its attempt knows in which
session it was answered.
"""

from __future__ import annotations

from gatelift.core.api.purposes import Purpose
from gatelift.core.records import record, size_writes
from gatelift.core.state import api_requests
from gatelift.core.state.case import Case
from gatelift.core.works import choosing, following
from gatelift_kinds.shared import slices
from gatelift_kinds.shared.sizes import counts_of


def give_back(case: Case) -> bool:
    """Write that a record is charged less, where its cluster says that no more can run; True if that was asked for."""
    core, known, attempt = case.core, case.known, case.attempt
    chain = choosing.chain_of(core, case.work)
    if chain is None or chain.is_held or chain.record is None or chain.record.uid != case.rec.uid:
        return False
    if attempt.ending is not None:
        attempt.size.ends()
        return False
    wanted = counts_of(known)
    lowers = any(wanted.get(name, count) < count for name, count in record.granted(known).items())
    size = slices.size_of(known)
    attempt.size.follows(size.number, lowers=lowers)
    view, session = core.view(attempt.cluster), attempt.size.answered_in
    answered = view is not None and view.open and core.sessions.keeps(attempt.cluster, session)
    answered = answered and attempt.size.is_answered(size.number, session) and not attempt.size.is_ahead(size.number)
    reserve, carried = following.reserve_of(known), attempt.size.counts_at(size.number)
    if not (lowers and answered) or reserve is None or carried is None:
        return False
    left = {name: max(count, carried.get(name, 0)) for name, count in wanted.items()}
    admission = size_writes.lowered(reserve.admission, left)
    if admission == reserve.admission:
        return False  # somebody has edited the counts, and its cluster has others by that number (HD-602)
    attempt.regranted(reserve._replace(admission=admission), known.metadata.resource_version)
    api_requests.patch_workload(
        core, known, size_writes.shrink_write(known, admission, core.wall.text(case.now)), Purpose.SHRINK
    )
    return True
