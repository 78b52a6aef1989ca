"""The user's object against its chain: a slice is made, edited, lowered or ended. One write in a pass (KEP-77).

Less in some pod sets lowers these in the record, in place; more in some makes a slice on top of it, or edits the one
that waits. Both is both: the slice on top is written first, with all that is wanted, then the record is lowered, so
that whatever lowers has written to what waits before (Size 1). Each write takes a number that no slice had (Size 4).
Neighbours: `owners` asks in its pass; `past_slices` finishes what nobody wants.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from gatelift.core import texts
from gatelift.core.api.purposes import Purpose
from gatelift.core.dispatching import growth_reservations
from gatelift.core.records import metadata_patches
from gatelift.core.records.attempt_states import CHOOSING, AttemptState
from gatelift.core.records.chain import OUT_OF_SYNC, Chain, Slice
from gatelift.core.records.knowledge import ref_of
from gatelift.core.records.work import Owner
from gatelift.core.rules import ends
from gatelift.core.state import api_requests
from gatelift.core.state.case import Case
from gatelift.core.state.core import Core
from gatelift.core.works import asking, choosing, deadlines, flavor_moves, growth_parts, past_slices, slices_seen
from gatelift_kinds.shared import markers, sizes, slices
from gatelift_kinds.shared.sizes import Counts, Size
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.values.resources import WORKLOAD, ObjectKey, ObjectRef

_ENDED = frozenset({AttemptState.ENDING, AttemptState.ENDED})


class _Wish(NamedTuple):
    """What is wanted, against what the record asks for. `lower`: the counts that it is to have."""

    case: Case
    owner: Owner
    chain: Chain
    wanted: Counts
    asked: Counts
    lower: Counts


def step(case: Case, owner: Owner) -> bool:
    """Take the one step that brings the slices of a chain to what its user wants; True if one is under way."""
    core, kind = case.core, owner.kind
    if not kind.resizes(owner.object) or kind.outcome(owner.object) is not None:
        return False
    chain = choosing.chain_of(core, case.work)
    if chain is None or chain.is_held or chain.current is None or chain.current.uid != case.rec.uid:
        return False
    if chain.is_over or ends.is_deleted(case.known.metadata) or case.attempt.ending is not None:
        return False
    target = core.knowledge.workloads[chain.target.key] if chain.target is not None else None
    if target is not None and not kind.same_shape(target, owner.object):
        return _end(case, owner, target)
    if chain.target is not None:
        slices_seen.tell_engine(core, chain.target)
    if case.attempt.state in _ENDED or not kind.same_shape(case.known, owner.object):
        return False
    wanted, asked = kind.wanted(owner.object), sizes.counts_of(case.known)
    if target is not None and (deadlines.carry_out(case, owner, target) or flavor_moves.carry_out(case, owner, target)):
        return True
    back = deadlines.taken_back(case, owner, chain)
    if target is None and back is not None:
        wanted = sizes.lowered({**asked, **wanted}, back)
    wish = _Wish(case, owner, chain, wanted, asked, sizes.lowered(back or asked, wanted))
    if target is None and case.attempt.state is AttemptState.PENDING:
        return asked != wanted and kind.suspended(owner.object) and _resize(wish, case.known, chain.highest + 1, wanted)
    return case.attempt.state not in CHOOSING and _of_what_runs(wish, target)


def _of_what_runs(wish: _Wish, target: Workload | None) -> bool:
    """Take the step of what has a record, or goes back to the queue with a slice behind it."""
    if (edited := asking.edited(wish.case.core, wish.chain)) is not None:
        return _put_back(wish, target, edited)
    grows, lowers = sizes.is_raised(wish.asked, wish.wanted), wish.lower != wish.asked
    wishes = wish.case.core.knowledge.slices.wishes
    if grows:
        wishes.more(wish.chain.uid, wish.wanted, wish.case.now)
    if lowers:
        wishes.less(wish.chain.uid, wish.case.now)
    if grows and target is None and not deadlines.is_rolled_back(wish.case.core, wish.owner, wish.chain):
        return _make(wish, wish.chain.highest + (2 if lowers else 1))
    if grows and target is not None:
        return _beside(wish, target, lowers=lowers)
    if target is not None:
        return _end(wish.case, wish.owner, target)
    return lowers and _resize(wish, wish.case.known, wish.chain.highest + 1, wish.lower)


def _put_back(wish: _Wish, target: Workload | None, edited: Counts) -> bool:
    """Write what its cluster has, as far as it is wanted, by a number that nobody had.

    Where quota is reserved the API server lets no count go up (HD-708): a slice with what its cluster has, or with what
    is wanted where that is more, takes the place of the record then, and is lowered to what is wanted after that.
    """
    chain, counts = wish.chain, sizes.lowered({**wish.asked, **edited}, wish.wanted)
    if sizes.is_raised(wish.asked, counts):
        raised = wish._replace(wanted=sizes.raised(wish.wanted, edited), lower=wish.asked)
        return _make(raised, chain.highest + 1) if target is None else _beside(raised, target, lowers=False)
    if target is None or chain.target is None:
        return _resize(wish, wish.case.known, chain.highest + 1, counts)
    number = chain.target.number - 1
    if number in {each.number for each in chain.slices}:
        return _resize(wish, target, chain.highest + 2, wish.wanted)
    return _resize(wish, wish.case.known, number, counts)


def _beside(wish: _Wish, target: Workload, *, lowers: bool) -> bool:
    """Bring a slice that waits to what is wanted; then the record, with a number between both that nobody had."""
    case, chain = wish.case, wish.chain
    if chain.target is None:
        return False
    if chain.target.epoch < case.attempt.epoch:
        return _renumber(wish.owner, case, target)
    if _is_left_over(case, chain.target, target):
        return _end(case, wish.owner, target)
    if sizes.counts_of(target) != wish.wanted and not growth_parts.is_taken(case.core, target, wish.wanted):
        return _resize(wish, target, chain.highest + (2 if lowers else 1), wish.wanted)
    if not lowers:
        return False
    number = chain.target.number - 1
    if chain.has_had(number):
        return _resize(wish, target, chain.highest + 2, wish.wanted)
    return _resize(wish, case.known, number, wish.lower)


def _is_left_over(case: Case, waits: Slice, target: Workload) -> bool:
    """Say whether a slice that waits is of an epoch that what runs never came to: it would wait for ever (HD-631).

    It was deactivated alone. Another one takes its place once it is active.
    """
    return waits.epoch > case.attempt.epoch and target.spec.active and not ends.is_evicted(case.rec)


def _resize(wish: _Wish, known: Workload, number: int, counts: Counts) -> bool:
    """Ask for the write by which a slice has other counts, with their number; its place in the queue stays."""
    core, uid = wish.case.core, known.metadata.uid
    if growth_reservations.takes_back(core, uid, growth_reservations.ANOTHER_SIZE):
        return True
    raw = core.knowledge.slices.raw(uid)
    if not raw or api_requests.blocked(core, ref_of(known), wish.owner.look, wish.case.now):
        return True
    body = slices.resized(known, raw, Size(number=number, counts={**sizes.counts_of(known), **counts}))
    api_requests.patch_workload(core, known, body, Purpose.RESIZE, status=False)
    text = f"Updated Workload {ref_of(known).key} to another size: {_said(sizes.counts_of(known))} to {_said(counts)}"
    core.event(wish.owner.ref, wish.owner.object.metadata.uid, texts.UPDATED_WORKLOAD, text)
    return True


def _said(counts: Counts) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))


def _renumber(owner: Owner, case: Case, target: Workload) -> bool:
    """Write the epoch of the record on a slice that waits behind it: another end than that of what it would grow."""
    core = case.core
    if not api_requests.blocked(core, ref_of(target), owner.look, case.now):
        body = metadata_patches.epoch_patch(target, case.attempt.epoch)
        api_requests.patch_workload(core, target, body, Purpose.RENUMBER, status=False)
    return True


def _end(case: Case, owner: Owner, target: Workload) -> bool:
    """Finish a slice that waits for what nobody wants any more."""
    if not api_requests.blocked(case.core, ref_of(target), owner.look, case.now):
        past_slices.finish(case.core, target, (OUT_OF_SYNC, past_slices.NOT_WANTED), case.now)
    return True


def _make(wish: _Wish, number: int) -> bool:
    """Make the slice on top of the record, of the record: with all that is wanted.

    Alone with the record: what else is not over is finished first.
    """
    core, known = wish.case.core, wish.case.known
    if any(each.uid != known.metadata.uid for each in core.knowledge.slices.standing(wish.owner.name)):
        return True
    if is_being_made(core, wish.owner, wish.case.now):
        return True
    raw, ref = core.knowledge.slices.raw(known.metadata.uid), free_ref(core, wish.owner)
    if not raw or ref is None or api_requests.blocked(core, ref, wish.owner.look, wish.case.now):
        return True
    size = Size(number=number, counts={**wish.asked, **wish.wanted})
    new = slices.NextSlice(name=ref.key.name, size=size, epoch=wish.case.attempt.epoch)
    body = slices.following(known, raw, new)
    api_requests.create(core, ref, body, Purpose.CREATE_WORKLOAD, owner=wish.owner.ref)
    return True


def is_being_made(core: Core, owner: Owner, now: float) -> bool:
    """Say whether a slice of an object is being made, perhaps under the name of another size: one at a time.

    One of which nobody can tell is read first; what is certainly not there is waited for no more.
    """
    for key in core.creations.of(owner.ref):
        if api_requests.blocked(core, ObjectRef(WORKLOAD, key), owner.look, now):
            return True
        core.creations.done(key)
    return False


def free_ref(core: Core, owner: Owner) -> ObjectRef | None:
    """Return where the next slice of an object belongs: by its generation, and where that is taken beside it."""
    for again in deadlines.tries(core):
        name = owner.kind.slice_name(owner.object, again)
        key = ObjectKey(owner.ref.key.namespace, name)
        if key not in core.knowledge.workloads:
            return ObjectRef(WORKLOAD, key)
    return None


def named(body: bytes, key: ObjectKey) -> bytes:
    """Return the first slice of a chain under another name: it is its own origin."""
    made = msgspec.json.decode(body)
    made["metadata"]["name"] = key.name
    made["metadata"]["annotations"][markers.SLICE_NAME] = key.name
    return msgspec.json.encode(made)
