"""What has become of a slice of elastic work: told at its Workload and the user's object, and counted (SL-70).

Each moment once, with the write or the word that it is of, and by who leads. Nothing is decided here. Neighbours:
`telling` brings what was written, `slice_texts` has the words.
"""

from __future__ import annotations

from gatelift.core import texts
from gatelift.core.api.commands import OfSlice, SliceMoment
from gatelift.core.api.purposes import Purpose
from gatelift.core.records import record
from gatelift.core.records.attempts import Attempt
from gatelift.core.records.chain import REPLACED, Chain
from gatelift.core.records.knowledge import ref_of
from gatelift.core.state.core import Core
from gatelift.core.told import slice_texts
from gatelift_kinds.shared.sizes import Counts, counts_of
from gatelift_kube.objects.conditions import find
from gatelift_kube.objects.kueue import Workload
from gatelift_wire.values.messages import CountsReport


def written(core: Core, known: Workload, purpose: Purpose) -> None:
    """Tell of a write of a slice that has succeeded."""
    tells = _WRITTEN.get(purpose)
    chain = core.knowledge.slices.of(known.metadata.uid) if tells is not None else None
    if chain is not None and tells is not None:
        tells(core, known, chain)


def _made(core: Core, known: Workload, chain: Chain) -> None:
    before = _before(core, chain, known)
    if before is not None:
        text = slice_texts.made(known.metadata.name, counts_of(known), before)
        _both(core, known, slice_texts.MADE, text)
        _count(core, known, OfSlice.MADE, text)


def _resized(core: Core, known: Workload, chain: Chain) -> None:
    name, counts = known.metadata.name, counts_of(known)
    lowers = chain.record is not None and chain.record.uid == known.metadata.uid
    text = slice_texts.lowers(name, counts) if lowers else slice_texts.asks(name, counts)
    _both(core, known, slice_texts.RESIZED, text)
    _count(core, known, OfSlice.LOWERED if lowers else OfSlice.EDITED, text)


def _grown(core: Core, known: Workload, chain: Chain) -> None:
    text = slice_texts.grown(known.metadata.name, record.granted(known), _before(core, chain, known) or {})
    _both(core, known, slice_texts.GROWN, text)
    _count(core, known, OfSlice.ADMITTED, text)


def _finished(core: Core, known: Workload, chain: Chain) -> None:
    said = find(known.status.conditions, texts.FINISHED)
    if said is None:
        return
    core.event(ref_of(known), known.metadata.uid, said.reason, said.message)
    name, counts = known.metadata.name, counts_of(known)
    if said.reason == REPLACED:
        text = slice_texts.replaced(name, counts, chain.record.key.name if chain.record is not None else "")
        moment = OfSlice.REPLACED
    else:
        text, moment = slice_texts.withdrawn(name, counts), OfSlice.WITHDRAWN
        if chain.target is None:
            core.knowledge.slices.wishes.more_is_over(chain.uid)
    _owner(core, known, said.reason, text)
    _count(core, known, moment, text)


def _released(core: Core, known: Workload, chain: Chain) -> None:
    since = core.knowledge.slices.wishes.less_is_over(chain.uid)
    text = slice_texts.released(record.granted(known))
    _both(core, known, slice_texts.RELEASED, text)
    _count(core, known, OfSlice.RELEASED, text, core.now - since if since is not None else None)


_WRITTEN = {
    Purpose.CREATE_WORKLOAD: _made,
    Purpose.RESIZE: _resized,
    Purpose.GROW: _grown,
    Purpose.FINISH_SLICE: _finished,
    Purpose.SHRINK: _released,
}


def counted(core: Core, attempt: Attempt, said: CountsReport) -> None:
    """Take how many pods are ready: of what grew, the moment when all are."""
    wish = core.knowledge.slices.wishes.growth(attempt.key.uid)
    known = core.knowledge.workloads.get(attempt.workload) if wish is not None else None
    if wish is None or known is None:
        return
    granted, ready = record.granted(known), {one.name: one.ready for one in said.pod_sets}
    if all(min(granted.get(name, 0), ready.get(name, 0)) >= count for name, count in wish.counts.items()):
        core.knowledge.slices.wishes.more_is_over(attempt.key.uid)
        text = slice_texts.running(wish.counts)
        _both(core, known, slice_texts.RUNNING, text)
        _count(core, known, OfSlice.RUNNING, text, core.now - wish.since)


def refused(core: Core, known: Workload, text: str) -> None:
    """Tell that a cluster does not carry out a size, as `text` says: what runs goes on."""
    _both(core, known, slice_texts.REFUSED, text, warning=True)
    _count(core, known, OfSlice.REFUSED, text)


def rolled_back(core: Core, known: Workload, text: str) -> None:
    """Tell that a growth was given up, and the size is that of before."""
    core.knowledge.slices.wishes.more_is_over(core.knowledge.slices.chain_uid(known.metadata.uid))
    _both(core, known, slice_texts.ROLLED_BACK, text, warning=True)
    _count(core, known, OfSlice.ROLLED_BACK, text)


def moved(core: Core, known: Workload, text: str) -> None:
    """Tell that all of it is queued again, since it can grow elsewhere alone."""
    _both(core, known, slice_texts.MOVED, text, warning=True)
    _count(core, known, OfSlice.MOVED, text)


def waits(core: Core, uid: str, message: str) -> str:
    """Return what a Workload waits for, as it says it: of one that grows what runs, what it would grow as well."""
    chain = core.knowledge.slices.of(uid)
    known = core.knowledge.workload_of(uid) if chain is not None else None
    if known is None or chain is None:
        return message
    before = _before(core, chain, known)
    return slice_texts.grows(chain, uid, counts_of(known), before or {}) + message


def no_cluster(core: Core, attempt: Attempt) -> str:
    """Return what a Workload says that no cluster takes; of one that grows what runs it is one that was asked."""
    chain = core.knowledge.slices.of(attempt.uid)
    if chain is None or chain.target is None or chain.target.uid != attempt.uid or chain.record is None:
        return texts.no_cluster(attempt.why_not)
    return waits(core, attempt.uid, texts.no_room_to_grow(attempt.why_not))


def _before(core: Core, chain: Chain, known: Workload) -> Counts | None:
    """Return the counts of the slice in whose place this one is, or is to be; None where it is in nobody's."""
    one = core.knowledge.slices.slice_of(known.metadata.uid)
    before = core.knowledge.workloads.get(one.names) if one is not None and one.names is not None else None
    if before is None and chain.current is not None and chain.current.uid != known.metadata.uid:
        before = core.knowledge.workloads.get(chain.current.key)
    return counts_of(before) if before is not None else None


def _both(core: Core, known: Workload, reason: str, message: str, *, warning: bool = False) -> None:
    core.event(ref_of(known), known.metadata.uid, reason, message, warning=warning)
    _owner(core, known, reason, message, warning=warning)


def _owner(core: Core, known: Workload, reason: str, message: str, *, warning: bool = False) -> None:
    owner = core.knowledge.work_of(known).speaker
    if owner is not None:
        core.event(owner.ref, owner.object.metadata.uid, reason, message, warning=warning)


def _count(core: Core, known: Workload, moment: OfSlice, text: str, seconds: float | None = None) -> None:
    """Leave a line for the log, which metrics count."""
    admission = known.status.admission
    queue = admission.cluster_queue if admission is not None else core.knowledge.cluster_queue_of(known)
    lasted = (("seconds", f"{seconds:.3f}"),) if seconds is not None else ()
    about = (("moment", moment.value), ("cluster_queue", queue), ("uid", known.metadata.uid))
    attempt = core.attempts.get(known.metadata.uid)
    core.command(
        SliceMoment(
            level="info",
            text=text,
            workload=f"{known.metadata.namespace}/{known.metadata.name}",
            epoch=attempt.epoch if attempt is not None else 0,
            cluster=attempt.cluster if attempt is not None else "",
            fields=(*about, *lasted),
            moment=moment,
            cluster_queue=queue,
            seconds=seconds,
        )
    )
