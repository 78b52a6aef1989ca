"""Slices come in: the engine hears whose they are, and what is placed goes over to the slice that is the record now.

At once, in the call that sees it: a report about what is placed finds it on the slice on which it stands. Neighbour:
`intake` calls.
"""

from __future__ import annotations

from typing import Any

import msgspec

from gatelift.core import texts
from gatelift.core.dispatching import endings
from gatelift.core.records.attempt_states import CHOOSING
from gatelift.core.records.chain import REPLACED, Chain, Role, Slice, read_slice
from gatelift.core.records.knowledge import key_of, ref_of
from gatelift.core.records.record import Record
from gatelift.core.rules import kept_record
from gatelift.core.state.core import Core
from gatelift.core.works import following, growth_parts, past_slices
from gatelift_admission.values.model import ElasticSlice
from gatelift_kinds.kind import Kind
from gatelift_kinds.shared import slices
from gatelift_kube.objects.conditions import find, without
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.values.resources import ObjectKey
from gatelift_kube.values.timestamps import to_seconds

CHAIN_NOT_BELIEVED = "SliceNotBelieved"
"""Reason of the event on a Workload whose mark names a chain of another object."""
_NOT_BELIEVED = (
    "its annotations say that it is a slice of a chain that is another object's, or whose first slice is of another "
    "one: it gets no quota, and changes nothing of that chain"
)


def believed(core: Core, seen: Workload, rec: Record) -> Workload:
    """Return a Workload as it is to be known: as not finished, while what took its place is not seen to have quota.

    Whoever finishes a slice as replaced has seen the admission of the next one, which was written before. Until that
    comes in, what runs stands on this one: it is charged, and nothing is stopped.
    """
    attempt = core.attempts.get(rec.uid)
    if not rec.finished or attempt is None or not attempt.live:
        return seen
    over, chain = find(seen.status.conditions, texts.FINISHED), core.knowledge.slices.of(rec.uid)
    if chain is None or chain.target is None or over is None or over.reason != REPLACED:
        return seen
    status = msgspec.structs.replace(seen.status, conditions=without(seen.status.conditions, texts.FINISHED))
    return msgspec.structs.replace(seen, status=status)


def take(core: Core, seen: Workload, kind: Kind[Any] | None, raw: bytes) -> None:
    """Take in a Workload that may be a slice; `raw` is its JSON as served, b"" where that is as before."""
    if kind is None or not kind.sliced:
        return
    uid, index = seen.metadata.uid, core.knowledge.slices
    known = index.slice_of(uid)
    if not slices.asks(seen.metadata.annotations):
        if known is not None:
            index.drop(uid)
            core.ledger.engine.set_slice(uid, None)
        return
    rec = core.knowledge.readings[key_of(seen.metadata)][1]
    one = read_slice(seen, rec, core.knowledge.names[uid][0])
    was_believed, before = known is None or index.is_believed(uid), index.called(one.said).roles
    index.put(one, raw)
    after, chain = index.called(one.said).roles, index.of(uid)
    _charge_growth(core, known, one)
    tell_engine(core, one)
    for each in sorted((before.keys() | after.keys()) - {uid}):
        other = index.slice_of(each)
        if other is not None and before.get(each) is not after.get(each):
            tell_engine(core, other)
        if other is not None and other.open:
            core.mark_workload(other.key)
    if chain is not None:
        _settle(core, chain)
        if one.finished:
            past_slices.look_at_displaced(core, chain)
    if was_believed and not index.is_believed(uid):
        core.event(ref_of(seen), uid, CHAIN_NOT_BELIEVED, _NOT_BELIEVED, warning=True)


def _charge_growth(core: Core, before: Slice | None, after: Slice | None) -> None:
    """Have the record of a chain charged what is reserved to grow it, as soon as that is seen, and no longer (SL-33).

    The record first: what is charged goes from one to the other, and nobody is woken by it.
    """
    known = after or before
    grows = after is not None and after.asks
    if known is None or not (grows or (before is not None and before.asks)):
        return
    chain, engine = core.knowledge.slices.called(known.said), core.ledger.engine
    if chain.record is not None and chain.record.uid != known.uid:
        record = core.knowledge.workloads[chain.record.key]
        engine.workload_changed(kept_record.charged(core, record), core.now)
    attempt = core.attempts.get(known.uid)
    if grows:
        core.ledger.block(known.uid)
        engine.forget(known.uid)
    elif after is not None and not after.reserved and attempt is not None and attempt.state in CHOOSING:
        endings.strike(core, attempt, core.now)


def drop(core: Core, key: ObjectKey, uid: str) -> None:
    """Forget a Workload that is gone; other slices of its chain may be what is wanted now, or nobody's."""
    chain, one = core.knowledge.slices.of(uid), core.knowledge.slices.slice_of(uid)
    core.knowledge.drop_workload(key)
    _charge_growth(core, one, None)
    for each in chain.slices if chain is not None else ():
        if each.open:
            core.mark_workload(each.key)


def tell_engine(core: Core, each: Slice) -> None:
    """Say whose slice a Workload is: of what nobody can tell, and of what landed late, that it is none."""
    if each.finished:
        return  # it holds nothing; what it was is forgotten with it
    chain = core.knowledge.slices.of(each.uid)
    known = chain is not None and not (each.reserved and chain.role_of(each.uid) is Role.OUT_OF_SYNC)
    said = (
        ElasticSlice(
            chain=chain.uid,
            number=each.number,
            since=_since(core, chain),
            by_parts=growth_parts.are_wanted(core, each.uid),
        )
        if chain is not None and known and each.number
        else None
    )
    core.ledger.engine.set_slice(each.uid, said)


def _since(core: Core, chain: Chain) -> float:
    """Return when a chain has begun, in Unix seconds; 0 where nobody knows."""
    began = core.knowledge.slices.began(chain.uid)
    return to_seconds(began) if began else 0.0


def _settle(core: Core, chain: Chain) -> None:
    """Have what is placed stand on the record, which may be another slice than before: the charge goes with it."""
    record = chain.record
    if record is None:
        return
    for each in chain.slices:
        attempt = core.attempts.get(each.uid) if each.uid != record.uid else None
        if attempt is None or not attempt.live or attempt.epoch != record.epoch:
            continue
        waited, known = core.attempts.get(record.uid), core.knowledge.workloads[record.key]
        reserve = waited.reserve if waited is not None and waited.reserve is not None else following.reserve_of(known)
        cluster, namespace = attempt.cluster, record.key.namespace
        unapplied = core.placements.unapplied(cluster)
        applied = each.uid not in unapplied and record.uid not in unapplied  # a growth is, once it is answered
        core.move_attempt(attempt, record.uid, record.key, reserve)
        core.ledger.moves(each.uid, record.uid)
        core.placements.forget(cluster, each.uid)
        core.placements.put(cluster, record.uid, namespace)
        if applied:
            core.placements.applied(cluster, record.uid)
        core.mark_workload(each.key)
        core.mark_workload(record.key)
