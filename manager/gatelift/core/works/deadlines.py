"""The deadline of a growth (KEP-77): how long its cluster may lack the room for it, and what becomes of the wish then.

No quota is held for what waits there. So `keep` (the default) goes on waiting; `rollback` ends the slice that waits,
and its user's wish stays in the object: no other one is made before he changes that; `move` evicts the chain, which is
queued whole and offered to the others. What is written already, and refused, is taken back by a later size and its
answer, as a user's own shrink (Size 3): nothing is lowered here. Each leader counts anew. Neighbour: `resizing` asks.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator

from gatelift.core import texts
from gatelift.core.dispatching import placing
from gatelift.core.records.attempts import Attempt, Ending
from gatelift.core.records.chain import OUT_OF_SYNC, Chain
from gatelift.core.records.knowledge import ref_of
from gatelift.core.records.work import Owner
from gatelift.core.rules import sizes_ready
from gatelift.core.state import api_requests
from gatelift.core.state.case import Case
from gatelift.core.state.core import Core
from gatelift.core.told import slice_moments, slice_texts
from gatelift.core.works import growing, growth_checks, past_slices
from gatelift_kinds.shared import sizes
from gatelift_kinds.shared.resize_wishes import AT_DEADLINE, RESIZE_DEADLINE
from gatelift_kinds.shared.sizes import Counts
from gatelift_kube.objects.conditions import find
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.values.numbers import whole

DEFAULT_SECONDS = 300.0
NAMES_TRIED = 16
"""Names of slices of one generation that are tried: each but the first is of a slice that ended, and whose like is
wanted once more."""
ROLLED_BACK = "The cluster on which it runs had no room for this size before its deadline"
"""Message of Finished on a slice that was rolled back."""


class AtDeadline(enum.StrEnum):
    """What becomes of a growth for which its cluster has had no room for too long."""

    KEEP = "keep"
    ROLLBACK = "rollback"
    MOVE = "move"


_POLICIES = {each.value: each for each in AtDeadline}


def policy(owner: Owner) -> AtDeadline:
    """Return what the user of an object wants then; anything else is the default."""
    return _POLICIES.get(owner.object.metadata.annotations.get(AT_DEADLINE, ""), AtDeadline.KEEP)


def seconds(owner: Owner) -> float:
    """Return how long its cluster is waited for: whole seconds; anything else is the default."""
    said = owner.object.metadata.annotations.get(RESIZE_DEADLINE)
    found = whole(said) if said is not None else None
    return float(found) if found is not None and found > 0 else DEFAULT_SECONDS


def carry_out(case: Case, owner: Owner, target: Workload) -> bool:
    """End or move a growth that has waited for its cluster for too long; True when that is under way."""
    core, asks = case.core, policy(owner)
    waiting = core.attempts.get(target.metadata.uid)
    if asks is AtDeadline.KEEP or waiting is None:
        return False
    if not _waits_for_its_cluster(core, target):
        waiting.size.waits_no_more()
        return False
    due = waiting.size.waits(case.now) + seconds(owner)
    if case.now < due:
        core.agenda.wake(owner.look, due)
        return False
    if api_requests.blocked(core, ref_of(target), owner.look, case.now):
        return True
    moves = asks is AtDeadline.MOVE
    if moves and placing.open_view(core, case.attempt.cluster) is None:
        return False  # nobody could stop it there
    past_slices.finish(core, target, (OUT_OF_SYNC, past_slices.NOT_WANTED if moves else ROLLED_BACK), case.now)
    tell = slice_moments.moved if moves else slice_moments.rolled_back
    text = texts.growth_over(case.attempt.cluster, seconds(owner), moves=moves)
    tell(core, target, text)
    if moves:
        _move(core, case.attempt, text, case.now)
    return True


def _waits_for_its_cluster(core: Core, target: Workload) -> bool:
    """Say whether it is no quota of its queue that it lacks, but its cluster."""
    return core.failures.has_given_up(target.metadata.uid) or growing.is_kept_waiting(core, target)


def _move(core: Core, attempt: Attempt, text: str, now: float) -> None:
    """Evict a chain; where it ran it goes last."""
    core.failures.avoid(attempt.uid, attempt.cluster, now + core.settings.dispatch.give_up_max, text)
    attempt.end_for(Ending(reason=slice_texts.MOVED, message=text))
    core.mark_attempt(attempt)


def taken_back(case: Case, owner: Owner, chain: Chain) -> Counts | None:
    """Return the counts to go back to of a growth that is written, and refused or late for too long; None: it stays."""
    core, attempt, refused = case.core, case.attempt, case.attempt.size.refused
    if chain.record is None:
        return None
    replaced = sizes_ready.before(core, chain)
    if attempt.size.is_given_up(chain.record.number) and replaced is not None:
        return sizes.lowered(sizes.counts_of(case.known), replaced)
    if refused is None or refused.number != chain.record.number:
        return None
    due = refused.since + seconds(owner)
    if case.now < due:
        core.agenda.wake(owner.look, due)
        return None
    if replaced is None:
        return None
    if policy(owner) is AtDeadline.MOVE and attempt.ending is None:
        text = texts.growth_over(attempt.cluster, seconds(owner), moves=True)
        slice_moments.moved(core, case.known, text)
        _move(core, attempt, text, case.now)
        return None
    return sizes.lowered(sizes.counts_of(case.known), replaced)


def is_rolled_back(core: Core, owner: Owner, chain: Chain) -> bool:
    """Say whether what a user wants was given up, and he wants nothing else since: names are by generation."""
    over = [known for each in chain.past if (known := core.knowledge.workloads.get(each.key))]
    names = {one.metadata.name for one in over if _is_given_up(one)}
    return any(owner.kind.slice_name(owner.object, again) in names for again in tries(core)) if names else False


def tries(core: Core) -> Iterator[str]:
    """Yield what tells the names of slices of one generation apart, in the order in which they are tried.

    More than are kept of past ones: a growth by parts makes one for each part (SL-36).
    """
    yield ""
    yield from (str(tried) for tried in range(1, NAMES_TRIED + core.settings.retention.slice_history))


def _is_given_up(known: Workload) -> bool:
    over = find(known.status.conditions, texts.FINISHED)
    if over is None or over.reason != OUT_OF_SYNC:
        return False
    return over.message == ROLLED_BACK or over.message.startswith(growth_checks.REJECTED)
