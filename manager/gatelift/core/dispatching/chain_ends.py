"""Whatever ends the record of a chain writes to the slice that waits behind it first: that it is of the next epoch.

What is reserved to grow it is given back before that.

So a write by which that would become the record, of a leader before, conflicts, however late it lands (Size 1).
Neighbours: `endings` asks before it writes an end; `records.chain` follows no reservation of an epoch that has ended.
"""

from __future__ import annotations

from gatelift.core.api.purposes import Purpose
from gatelift.core.dispatching import growth_reservations
from gatelift.core.records import metadata_patches
from gatelift.core.records.knowledge import ref_of
from gatelift.core.state import api_requests
from gatelift.core.state.case import Case


def goes_first(case: Case) -> bool:
    """Say whether something is to be written of a slice that waits before the end that is due, and see to it."""
    return growth_reservations.ended(case) or touches_target(case)


def touches_target(case: Case) -> bool:
    """Say whether the slice behind a record has yet to be written to, and see to it; its answer looks here again."""
    core, attempt = case.core, case.attempt
    chain = core.knowledge.slices.of(case.rec.uid)
    if chain is None or chain.record is None or chain.target is None or chain.record.uid != case.rec.uid:
        return False
    if growth_reservations.takes_back(core, chain.target.uid, growth_reservations.LEAVES):
        return True
    if chain.target.epoch > attempt.epoch:
        return False
    target = core.knowledge.workloads[chain.target.key]
    if not api_requests.blocked(core, ref_of(target), attempt.look, case.now):
        body = metadata_patches.epoch_patch(target, attempt.epoch + 1)
        api_requests.patch_workload(core, target, body, Purpose.RENUMBER, status=False)
    return True
