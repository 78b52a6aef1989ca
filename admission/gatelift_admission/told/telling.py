"""What has to be said on objects besides reservations: why something waits, and what has to stop.

Each function looks at a bounded number of workloads. A text is sent once per change; a text whose figures alone
changed is marked so that the caller may merge it with the next. Neighbour: `engine` calls these around the cycle.
"""

from __future__ import annotations

import re
from typing import Final

from gatelift_admission import texts
from gatelift_admission.entries.entry import Entry, Phase
from gatelift_admission.entries.ordering import is_true
from gatelift_admission.entries.standings import AWAKE
from gatelift_admission.feed import faults
from gatelift_admission.queues.models import is_stopped
from gatelift_admission.state.known import State
from gatelift_admission.values.model import Decision, Evict, Inadmissible, Unreserve

_FIGURES: Final = re.compile(r"[0-9]+(?:\.[0-9]+)?(?:m|[kMGTPE]i?)?")
_DRAIN: Final = "HoldAndDrain"
EARLY_AT_ONCE: Final = 2
"""Entries dropped in one call before their time: more than one call adds to the line."""


def tell_all(state: State, budget: int, decisions: list[Decision]) -> None:
    """Add the conditions that changed to `decisions`, oldest first, at most `budget`."""
    left = budget
    while state.untold and left > 0:
        uid, entry = state.untold.popitem(last=False)
        if entry.want is None or entry.want == entry.told:
            continue
        reason, message = entry.want
        before = entry.told
        numbers_only = before is not None and before[0] == reason and _same_words(before[1], message)
        entry.told = entry.want
        left -= 1
        said = Inadmissible(uid=uid, key=entry.key, reason=reason, message=message, numbers_only=numbers_only)
        decisions.append(said)


def _same_words(left: str, right: str) -> bool:
    return _FIGURES.sub("#", left) == _FIGURES.sub("#", right)


def bypass(state: State, budget: int) -> None:
    """Tell members of parked classes, at most `budget`, that an equivalent workload failed."""
    left = budget
    while state.bypassed and left > 0:
        key, one = next(iter(state.bypassed.items()))
        while one.fresh and left > 0:
            entry = one.fresh.pop()
            left -= 1
            if one.standing not in AWAKE and one.members.get(entry.uid) is entry:
                _tell(state, entry, (one.bypass_reason, texts.BYPASSED))
        if not one.fresh:
            del state.bypassed[key]


def _tell(state: State, entry: Entry, said: tuple[str, str]) -> None:
    try:
        state.tell(entry, said)
    except Exception as error:  # noqa: BLE001 (containment: one workload keeps nobody else from being told)
        faults.set_aside(state, entry, error)


def overdue(state: State, budget: int) -> None:
    """Tell workloads, at most `budget`, that they wait unevaluated longer than the settings allow in silence.

    Those that wait no more before their time are dropped, so that no call is due for them; but only some at once, since
    after a start with many they would be what an admission costs.
    """
    left, early = budget, EARLY_AT_ONCE
    while state.unevaluated and left > 0:
        due, uid = state.unevaluated[0]
        entry = state.entries.get(uid)
        # Of what is kept out, who does that says why.
        waits = entry is not None and entry.queue and not entry.on_hold and entry.told is None and entry.want is None
        if due > state.now:
            if waits or not early:
                return
            early -= 1
        state.unevaluated.popleft()
        left -= 1
        if entry is not None and waits:
            _tell(state, entry, (texts.PENDING_EVALUATION, texts.WAITING))


def stop_of(state: State, entry: Entry) -> Evict | Unreserve | None:
    """Return what has to happen to a workload with quota whose queue or owner wants it to stop; once per cause."""
    if (entry.phase is not Phase.RESERVED and entry.phase is not Phase.ADMITTED) or entry.superseded:
        return None
    found = _stop(state, entry)
    if found is None or is_true(entry.workload, "Evicted"):
        entry.asked = None
        return None
    if entry.asked == (found.reason, found.message):
        return None
    entry.asked = (found.reason, found.message)
    return found


def _stop(state: State, entry: Entry) -> Evict | Unreserve | None:
    if not entry.workload.spec.active:
        return _evict(entry, texts.DEACTIVATED, texts.WORKLOAD_DEACTIVATED)
    admitted = entry.phase is Phase.ADMITTED
    local = state.local_queues.get(entry.local_queue)
    queue = state.queues.get(entry.grant.queue)
    local_policy = local.object.spec.stop_policy if local is not None else None
    queue_policy = queue.spec.stop_policy if queue is not None else None
    if admitted:
        if local_policy == _DRAIN:
            return _evict(entry, texts.LOCAL_QUEUE_STOPPED, texts.LOCAL_QUEUE_IS_STOPPED)
        if queue_policy == _DRAIN:
            return _evict(entry, texts.CLUSTER_QUEUE_STOPPED, texts.CLUSTER_QUEUE_IS_STOPPED)
        return None
    name = entry.workload.spec.queue_name
    if local is None or local.object.metadata.deletion_timestamp is not None:
        return _unreserve(entry, texts.MISCONFIGURED, texts.gone_while_reserved("LocalQueue", name))
    if is_stopped(local_policy):
        return _unreserve(entry, texts.SUSPENDED, texts.stopped_while_reserved("LocalQueue", name))
    if queue is None or queue.object.metadata.deletion_timestamp is not None:
        return _unreserve(entry, texts.MISCONFIGURED, texts.gone_while_reserved("ClusterQueue", entry.grant.queue))
    if is_stopped(queue_policy):
        return _unreserve(entry, texts.SUSPENDED, texts.stopped_while_reserved("ClusterQueue", entry.grant.queue))
    return None


def _evict(entry: Entry, reason: str, message: str) -> Evict:
    return Evict(uid=entry.uid, key=entry.key, reason=reason, message=message)


def _unreserve(entry: Entry, reason: str, message: str) -> Unreserve:
    return Unreserve(uid=entry.uid, key=entry.key, reason=reason, message=message)
