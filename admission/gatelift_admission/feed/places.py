"""Where a workload belongs: in its queue, aside, or out; and what has to be said about that.

Neighbours: `engine` reviews what changed with these, `cycle` takes out whom it lets in; `state` holds what they change.
"""

from __future__ import annotations

import heapq

from gatelift_admission import texts
from gatelift_admission.entries.entry import Entry, Phase, has_failed_checks, out_of_queue_reason
from gatelift_admission.entries.reading import Reading
from gatelift_admission.entries.standings import AWAKE, INADMISSIBLE, LEAVE, RESERVING
from gatelift_admission.feed import slices
from gatelift_admission.flavors.plain import demand_of
from gatelift_admission.queues.models import QueueModel
from gatelift_admission.state import wakeups
from gatelift_admission.state.known import State
from gatelift_admission.waking.equals import PendingClass


def place(state: State, entry: Entry) -> None:
    """Put a workload where it belongs: into its queue, aside, or out; and note what has to be said."""
    if entry.phase is not Phase.PENDING:
        if entry.queue:
            unqueue(state, entry)
        state.tell(entry, None)
        return
    target, said = _target(state, entry)
    if entry.on_hold:
        said = None  # who keeps it out says why
    if target is None:
        unqueue(state, entry)
        state.tell(entry, said)
        return
    reading = _read(state, entry)
    if reading.invalid:
        unqueue(state, entry)
        state.tell(entry, (texts.MISCONFIGURED, texts.invalid_resources(reading.invalid)))
        return
    if entry.queued_local not in (None, entry.local_queue):  # submitted to another one of the same ClusterQueue
        state.ledger.wait(entry.queue, entry.queued_local, -1)
        state.ledger.wait(entry.queue, entry.local_queue, 1)
        entry.queued_local = entry.local_queue
    out = entry.on_hold or entry.ghost or (entry.backoff_until is not None and entry.backoff_until > state.now)
    out = out or (said is not None and said == texts.BEHIND)
    same = (entry.queue, entry.shape, entry.timestamp) == (target.name, reading.shape, reading.timestamp)
    same = same and entry.obstacle == reading.obstacle
    failed = target.pending.blocked is entry and has_failed_checks(entry.workload)  # it waits for no quota then
    failed = failed or target.pending.bars(entry)
    if not same or failed or out or entry.standing is INADMISSIBLE:
        sticky, changed = target.pending.sticky is entry, bool(entry.queue)
        unqueue(state, entry)
        entry.priority, entry.timestamp = reading.priority, reading.timestamp
        entry.pod_sets, entry.shape = reading.pod_sets, reading.shape
        entry.search_anew()
        entry.obstacle = reading.obstacle
        _queue(state, entry, target, out=out, changed=changed)
        if sticky:
            target.pending.sticky = entry
            state.offer(target)
    if said is not None or entry.on_hold:
        state.tell(entry, said)
    elif texts.ends_when_queued(entry.want or entry.told, state.settings.kept_out):
        # No longer true; who is not evaluated soon says so.
        if (entry.want or entry.told or ("", ""))[0] == texts.ADMISSION_GATED:
            state.tell(entry, (texts.PENDING_EVALUATION, texts.GATE_CLEARED))
            return
        entry.want = entry.told = None
        state.untold.pop(entry.uid, None)
        target.pending.tell_again(entry)
        _expect_evaluation(state, entry)


def _read(state: State, entry: Entry) -> Reading:
    """Return what the object says about its place: of a slice as far as it grows its chain."""
    reading = state.reader.read(entry.workload, state.namespace_defaults(entry.key.namespace))
    return slices.as_slice(state, entry, reading) if entry.of_chain is not None else reading


def _expect_evaluation(state: State, entry: Entry) -> None:
    """Let the workload be told that it waits unless it is evaluated before; times only grow: the first is due first."""
    state.unevaluated.append((state.now + state.settings.pending_text_after, entry.uid))


def _target(state: State, entry: Entry) -> tuple[QueueModel | None, tuple[str, str] | None]:
    """Return the queue that `entry` belongs into (None: none) and what its condition has to say about that."""
    own = out_of_queue_reason(entry.workload)
    if own is not None:
        return None, own if own[0] else None
    local = state.local_queues.get(entry.local_queue)
    if local is None:
        return None, (texts.MISCONFIGURED, texts.missing("LocalQueue", entry.workload.spec.queue_name))
    if local.stopped:
        return None, (texts.SUSPENDED, texts.inactive("LocalQueue", entry.workload.spec.queue_name))
    queue = state.queues.get(local.object.spec.cluster_queue)
    if queue is None:
        return None, (texts.MISCONFIGURED, texts.missing("ClusterQueue", local.object.spec.cluster_queue))
    if not queue.admits:
        return queue, (texts.SUSPENDED, texts.inactive("ClusterQueue", queue.name))
    if entry.of_chain is not None and state.chains.behind(entry, queue.name):
        return queue, texts.BEHIND
    return queue, None


def _queue(state: State, entry: Entry, queue: QueueModel, *, out: bool, changed: bool) -> None:
    if changed or not entry.came_back:
        state.happened(queue.root)
    entry.came_back = False
    entry.queue, entry.queued_local = queue.name, entry.local_queue
    state.note_said(entry)
    state.ledger.wait(queue.name, entry.local_queue, 1)
    if out:
        set_aside(state, entry, queue)
        return
    one = queue.pending.add(entry)
    root = "" if state.outdated else queue.root
    if one.standing not in AWAKE:
        if one.bypass_reason:
            state.bypassed[id(one)] = one
    elif root and _holds(state, root, queue, one, entry):
        pass
    elif root:
        wakeups.touch(state, root)
        state.offer(queue)
    if entry.told is None and entry.want is None:
        _expect_evaluation(state, entry)


def _holds(state: State, root: str, queue: QueueModel, one: PendingClass, entry: Entry) -> bool:
    """Let a workload that arrives wait where what it needs is kept from it, and others were let in too early.

    So does who was preempted and comes back before anything has happened from outside: others were worth more.
    """
    returned = entry.preempted_of is not None and entry.preempted_of == state.outside_of(root)
    if returned and root in state.wakes.kept_quota.roots and queue.pending.hold(one, ()):
        return True
    if not state.wakes.careful(root, state.settings):
        return False
    demand = None
    if entry.of_chain is None:
        demand = queue.pending.demand(entry, state.built, lambda: demand_of(state.market(queue), entry.pod_sets))
    if demand is None:  # it has a choice of flavors, or asks for what a chain lacks
        return state.wakes.kept_quota.above(root, entry.priority) and queue.pending.hold(one, ())
    needs = tuple(demand.usage.items())
    left = wakeups.kept_in(state, root).leaves(needs, state.room(queue), entry.priority, within=False)
    return not left and queue.pending.hold(one, needs)


def set_aside(state: State, entry: Entry, queue: QueueModel) -> None:
    """Keep a queued entry out of the order until its backoff ends, it is let in, or something about it changes."""
    queue.pending.set_aside(entry)
    if entry.backoff_until is not None and state.now < entry.backoff_until < float("inf"):
        heapq.heappush(state.backoffs, (entry.backoff_until, entry.uid))


def expire_backoffs(state: State) -> None:
    """Let those be reviewed whose backoff is over."""
    while state.backoffs and state.backoffs[0][0] <= state.now:
        _, uid = heapq.heappop(state.backoffs)
        entry = state.entries.get(uid)
        if entry is not None:
            state.review[uid] = entry


def unqueue(state: State, entry: Entry) -> None:
    """Take an entry out of its queue, if it is in one."""
    if not entry.queue:
        return
    queue = state.queues.get(entry.queue)
    if entry.queued_local is not None:
        state.ledger.wait(entry.queue, entry.queued_local, -1)
    entry.queue, entry.queued_local = "", None
    state.stale.note(entry, "")
    state.postponed.waiting.pop(entry.uid, None)
    if queue is None:
        entry.move(LEAVE)
        return
    kept_room = entry.standing is RESERVING
    queue.pending.remove(entry)
    state.offer(queue)
    if state.outdated:
        return
    root = queue.root
    wakeups.touch(state, root)
    if kept_room:  # who was parked beside it may be one to fit
        wakeups.wake_for_anything(state, root)
