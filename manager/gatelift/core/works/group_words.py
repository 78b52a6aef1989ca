"""What is told at objects of a group: what concerns all of them, and why one has no place. Neighbour: `gathered`."""

from __future__ import annotations

from gatelift.core.records.work import Owner, Work
from gatelift.core.state.core import Core
from gatelift.core.told import event_texts
from gatelift_kube.objects.kueue import Workload


def tell(core: Core, work: Work, owner: Owner, said: tuple[str, str], now: float) -> None:
    """Tell at the oldest object what concerns all, when that changes, and lasts: it changes with each that comes."""
    every = core.settings.status_every
    about = (owner.object.metadata.uid, *said)
    due = work.may_say(about, now, every)
    if due is None:
        return
    if now < due:
        core.agenda.wake(work.look, due)
        return
    core.event(owner.ref, owner.object.metadata.uid, *said, warning=True)
    work.has_said(about, now, every)


def tell_one(core: Core, work: Work, owner: Owner, reason: str, text: str) -> None:
    """Tell at an object why it has no place among the others, once."""
    uid = owner.object.metadata.uid
    if work.says_anew_of(uid, text) and text:
        core.event(owner.ref, uid, reason, text, warning=True)


def tell_unlike(core: Core, work: Work, owner: Owner, workload: Workload | None) -> None:
    """Tell at an object why it has no place, or what it says otherwise than its group has quota for (HD-525)."""
    gathered, uid = work.gathered, owner.object.metadata.uid
    if gathered is None:
        return
    misfit = gathered.misfit(uid)
    if misfit or workload is None or workload.status.admission is None:
        tell_one(core, work, owner, event_texts.GROUP_SHAPE_MISMATCH, misfit)
    else:
        tell_one(core, work, owner, event_texts.NOT_COMPOSED, gathered.unlike(workload, uid))
