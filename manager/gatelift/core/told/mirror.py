"""What of a worker's report the user's object shows, and when: three writes for a pod's whole life.

Shown at once: the first time it runs (a pod: Ready), and the first end, each once in a placement. Everything else is
merged into the next write that is due, `MERGE_SECONDS` later; where it runs or is over again, `MERGE_SECONDS` after the
last write. So a worker that says one and the other in turn gets one write a second, and at growing pauses while others
write; all that it says has its share (`word_writes`). Neighbours: `owners` calls, `gatelift_kinds` makes the patch.
"""

from __future__ import annotations

import hashlib

import msgspec

from gatelift.core import texts
from gatelift.core.api.asks import WriteAsk
from gatelift.core.api.inflight import ClusterWord, Outstanding
from gatelift.core.api.purposes import Purpose
from gatelift.core.records.attempts import Attempt
from gatelift.core.records.shown_objects import MERGE_SECONDS
from gatelift.core.records.work import Owner
from gatelift.core.state import api_requests, word_writes
from gatelift.core.state.api_requests import Decided
from gatelift.core.state.case import Case
from gatelift.core.state.core import Core
from gatelift_kinds.shared import placed_on
from gatelift_kinds.shared.values import PatchStep
from gatelift_kube.objects.meta import ObjectMeta
from gatelift_kube.values.unreadable import UNREADABLE
from gatelift_wire.values.messages import ObjectReport

_NEITHER, _RUNS, _OVER = frozenset[str](), frozenset({"runs"}), frozenset({"over"})

COUNT_MAX = 2**31 - 1
"""Kubernetes counts pods in int32; the API server refuses a status that says more."""
PHASES = frozenset({"", "Pending", "Running", "Succeeded", "Failed", "Unknown"})
STATES = frozenset({"", "True", "False", "Unknown"})
NAME_CHARS_MAX = 40
"""Of what stands in their place, in a note."""
DIGEST_BYTES = 16
_OF_REPORTS = frozenset({Purpose.MIRROR, Purpose.MIRROR_END})


class _Condition(msgspec.Struct, frozen=True, gc=False):
    type: str = ""
    status: str = ""


class _Status(msgspec.Struct, frozen=True):
    phase: str = ""
    active: int = 0
    ready: int | None = None
    conditions: tuple[_Condition, ...] = ()

    def true(self, *types: str) -> bool:
        return any(self.said(type_, "True") for type_ in types)

    def said(self, type_: str, status: str) -> bool:
        return any((one.type, one.status) == (type_, status) for one in self.conditions)

    @property
    def over(self) -> bool:
        return self.phase in {"Succeeded", "Failed"} or (not self.phase and self.true("Complete", "Failed"))

    @property
    def runs(self) -> bool:
        return (self.phase == "Running" and self.true("Ready")) or (not self.phase and self.active > 0)


class _Object(msgspec.Struct, frozen=True):
    status: _Status = _Status()


class _Readable(msgspec.Struct, frozen=True):
    """The fields that a mirror computes with. All else is skipped: what is shown of it is read when it is shown."""

    phase: str = ""
    active: int = 0
    ready: int | None = None
    succeeded: int = 0
    failed: int = 0
    conditions: tuple[_Condition, ...] | None = None


_READABLE = msgspec.json.Decoder(_Readable)
_STATUS = msgspec.json.Decoder(_Status)
_OBJECT = msgspec.json.Decoder(_Object)


def unreadable(status: bytes) -> str:
    """Return what is wrong with a reported status, "" when it can be shown: agents are believed in nothing."""
    if not status:
        return ""
    try:
        found = _READABLE.decode(status)
    except UNREADABLE as error:
        return str(error)
    counts = {"active": found.active, "ready": found.ready, "succeeded": found.succeeded, "failed": found.failed}
    wrong = [f"{name}: must not be negative" for name, count in counts.items() if (count or 0) < 0]
    wrong += [f"{name}: is above {COUNT_MAX}" for name, count in counts.items() if (count or 0) > COUNT_MAX]
    if found.phase not in PHASES:
        wrong.append(f"phase: {found.phase[:NAME_CHARS_MAX]!r} is none")
    states = sorted({one.status for one in found.conditions or ()} - STATES)
    wrong += [f"conditions: a status is True, False or Unknown, not {one[:NAME_CHARS_MAX]!r}" for one in states[:1]]
    return "; ".join(wrong)


def is_shown(owner: Owner, attempt: Attempt) -> bool:
    """Say whether the user's object shows what its cluster reported last, as far as its API server stores it."""
    report = attempt.reports.get(owner.object.metadata.name)
    if report is None or not report.status:
        return report is not None  # there is nothing to show
    return unshown(owner, attempt, report.status) is None


def unshown(owner: Owner, attempt: Attempt, status: bytes) -> bytes | None:
    """Return the patch that shows a status; None where nothing is to be written.

    What was accepted and reads differently (a time to the second, a field of a version to come) is not written again:
    it would be for ever. Somebody else's change of the object is, since another patch is left then.
    """
    meta = owner.object.metadata
    body = owner.kind.mirror_patch(owner.object, owner.raw, status)
    if body is None or not attempt.asked(meta.name):
        return body
    return None if attempt.rests_in(meta.name, digest_of(status), meta.resource_version, digest_of(body)) else body


def digest_of(said: bytes) -> bytes:
    """Return what tells one report, or patch, from another: a digest of it."""
    return hashlib.blake2b(said, digest_size=DIGEST_BYTES).digest()


def accepted(core: Core, outstanding: Outstanding, meta: ObjectMeta) -> None:
    """Take that the API server has accepted a write that shows a report, and what came of it.

    What says that nobody hears of the object's cluster is written for no Workload: it shows no report.
    """
    attempt = core.attempts.get(outstanding.uid) if outstanding.purpose in _OF_REPORTS else None
    if attempt is not None:
        attempt.stored(meta.name, meta.resource_version)


def show(case: Case, owner: Owner) -> None:
    """Write the reported status to the user's object if it is due; else see that it is looked at when it is."""
    core, attempt, now = case.core, case.attempt, case.now
    report = attempt.reports.get(owner.object.metadata.name)
    if report is None or not report.status:
        return
    meta = owner.object.metadata
    body = unshown(owner, attempt, report.status)
    if body is None:
        attempt.shown(meta.name)
        core.words.leave(attempt.cluster, owner.look)
        return
    word = ClusterWord(attempt.cluster, again=not is_first(attempt, meta.name, owner.raw, report.status))
    if word.again:
        since = attempt.unshown(meta.name, now)
        if turns(owner.raw, report.status):  # such as a pod that is ready again, for which a time-out may run
            since = min(since, attempt.mirrored_at(meta.name, since - MERGE_SECONDS))
        due = since + MERGE_SECONDS
        if core.words.shares(attempt.cluster, now, others=False):
            due = max(due, attempt.rests_until(meta.name))
        if now < due:
            core.agenda.wake(owner.look, due, late=True)
            return
    said = digest_of(report.status)
    rests = core.resting.until(owner.ref, Purpose.MIRROR, now, news=said != attempt.asked(meta.name))
    if rests:
        core.agenda.wake(owner.look, rests, late=word.again)
        return
    if not word_writes.may_write(core, word, owner.look, now):
        return
    attempt.mirrors(meta.name, now, said)
    step = PatchStep(body=placed_on.noted(body, meta, attempt.cluster), subresource="status")
    decided = Decided(owner.ref, meta.resource_version, attempt.uid, word_of=word)
    api_requests.patch(core, decided, step, Purpose.MIRROR)


def show_unreachable(case: Case, owner: Owner) -> None:
    """Write that nobody hears of the object's cluster, at the pace of what only informs: there may be thousands."""
    core, look, now = case.core, owner.look, case.now
    asks = WriteAsk(look, Purpose.MIRROR, case.attempt.cluster)
    obj, text = owner.object, texts.unreachable(case.attempt.cluster)
    body = owner.kind.unreachable_patch(obj, owner.raw, text, core.wall.text(now))
    if body is None:
        core.budget.leave(asks)
    elif not core.resting.rests(owner.ref, Purpose.MIRROR, core.agenda, look, now) and core.may_inform(asks, now):
        step = PatchStep(body=body, subresource="status")
        api_requests.patch(core, Decided(owner.ref, obj.metadata.resource_version), step, Purpose.MIRROR, informs=True)


def over(status: bytes) -> bool:
    """Say whether a reported status shows an end."""
    try:
        return bool(status) and _STATUS.decode(status).over
    except UNREADABLE:
        return False


def succeeded(status: bytes) -> bool:
    """Say whether a reported status shows a pod that has succeeded."""
    try:
        return bool(status) and _STATUS.decode(status).phase == "Succeeded"
    except UNREADABLE:
        return False


def shows_run(shown: bytes) -> bool:
    """Say whether the user's object shows that it runs, or has run. What cannot be read counts as that."""
    try:
        status = _OBJECT.decode(shown).status
    except msgspec.DecodeError:
        return True
    ran = status.phase == "Running" and status.said("Ready", "Unknown")  # as its cluster was last heard of
    return status.runs or status.over or ran


def is_first(attempt: Attempt, name: str, shown: bytes, reported: bytes) -> bool:
    """Say whether a report shows the first end of a placement's object, or the first time it runs.

    What the object shows has been shown, whoever wrote it. What cannot be read waits its turn.
    """
    try:
        new = _STATUS.decode(reported)
        old = _OBJECT.decode(shown).status
    except UNREADABLE:
        return False
    return bool(_stages(new) - attempt.has_shown(name, _stages(old)))


def is_news(attempt: Attempt, report: ObjectReport) -> bool:
    """Say whether a report tells for the first time in this attempt how far an object is: that is not late.

    Of an object of the placement, whose report is kept by now. Said again it is no news, whether it is shown or not: it
    may stand in a line, or be refused for ever.
    """
    if report.name not in attempt.reports:
        return False
    try:
        said = attempt.has_said(report.name, _stages(_STATUS.decode(report.status)))
        return bool(said - attempt.has_shown(report.name, _NEITHER))
    except UNREADABLE:
        return False


def turns(shown: bytes, reported: bytes) -> bool:
    """Say whether what is reported runs and what is shown does not, or is over: at once, unless it was just written."""
    try:
        return bool(_stages(_STATUS.decode(reported)) - _stages(_OBJECT.decode(shown).status))
    except UNREADABLE:
        return False


def _stages(status: _Status) -> frozenset[str]:
    return _OVER if status.over else _RUNS if status.runs else _NEITHER
