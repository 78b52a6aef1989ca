"""Why a slice of elastic work has no turn for quota, whatever there is of it, in words (SL-72).

What its cluster lacks is said elsewhere. Neighbours: `growing` decides whether it has a turn, `requeueing` writes it.
"""

from __future__ import annotations

from gatelift.core import texts
from gatelift.core.records.chain import UNREADABLE, Chain
from gatelift.core.rules import sizes_ready
from gatelift.core.state.case import Case
from gatelift.core.works import choosing, growing
from gatelift_kinds.shared.sizes import counts_of
from gatelift_wire.values.keys import ANNOTATION_SIZE

SIZE_UNREADABLE = "SizeUnreadable"
"""A reason of QuotaReserved=False, as `texts.GROWTH_WAITS` is."""
KEEPS_ITS_SIZE = (
    "its object keeps the size that it has: elastic Jobs are switched off, or it does not ask to be one; what runs "
    "goes on, and this waits until that is changed, or the object asks for the size of before"
)
LEAVES = "what runs is being stopped, and is queued again with the size that it had: this grows it after that"
LATE = "not all of its pods were ready in time, so it waits before it is tried again"


def why(case: Case) -> tuple[str, str] | None:
    """Return reason and message of what keeps a slice from its turn; None of one that has it, or is none.

    Nor where that is a moment: what runs is being written, and a growth has no write to spare for it.
    """
    chain = choosing.chain_of(case.core, case.work)
    if chain is None or not growing.has_no_turn(case):
        return None
    if chain.is_held:
        return SIZE_UNREADABLE, unreadable(chain)
    growth = _growth(case, chain) if growing.is_target(case) else ""
    return (texts.GROWTH_WAITS, growth) if growth else None


def unreadable(chain: Chain) -> str:
    """Return what is said where the number of a slice is none."""
    names = sorted(each.key.name for each in chain.slices if each.open and each.number == UNREADABLE)
    return (
        f"metadata.annotations[{ANNOTATION_SIZE}] of Workload {', '.join(names)} is no number of a size, so nobody can "
        "tell which comes next: put it back to what it was; until then nothing of its Job is resized, and what runs "
        "goes on"
    )


def _growth(case: Case, chain: Chain) -> str:
    core, owner = case.core, case.work.only_object
    if not case.known.spec.active:
        return ""  # that is said as of any Workload
    if owner is None or not owner.kind.resizes(owner.object):
        return KEEPS_ITS_SIZE
    if chain.record is None:
        current = core.knowledge.workloads[chain.current.key] if chain.current is not None else None
        name = current.metadata.name if current is not None else "of before"
        if current is not None and not current.spec.active:
            return f"Workload {name} comes first, which is deactivated: activate that one, and this grows it after that"
        return f"Workload {name} comes first, which waits for quota with the size that it had: this grows it after that"
    known, attempt = core.knowledge.workloads[chain.record.key], core.attempts.get(chain.record.uid)
    deleted = known.metadata.deletion_timestamp is not None or not known.spec.active
    if deleted or attempt is None or attempt.ending is not None or attempt.epoch != case.attempt.epoch:
        return LEAVES
    return "" if sizes_ready.may_grow(core, attempt, counts_of(case.known), case.now) else LATE
