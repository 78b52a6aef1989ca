"""Who is woken when a cluster changes: whom that change may help, and nobody else, at a bounded pace.

A worker's word costs nothing to say, and each workload that is woken by it is looked at, weighed by the engine and
offered to others as well, which nobody pays for. So what has not changed wakes nobody (`cluster_changes.gain`); what
has, wakes whose queue, pin and selector lead there, a slice at a time; and a workload that found nobody is woken by one
cluster once in the first step of its pause, ever later if that answers nobody, by others meanwhile. Neighbours:
`upcalls` tells of changes.
"""

from __future__ import annotations

from gatelift.core.api.agenda import Key, Look
from gatelift.core.clusters.link_values import ClusterView
from gatelift.core.dispatching import credit, fit, giving_back
from gatelift.core.records.attempts import Attempt
from gatelift.core.rules import targets
from gatelift.core.state import cluster_changes
from gatelift.core.state.cluster_changes import Followed, Gain, SeenCluster
from gatelift.core.state.core import Core
from gatelift_kube.objects.kueue import MultiKueueConfig
from gatelift_kube.values.resources import ObjectKey
from gatelift_wire.values.refusals import Refusal

WAKE_MAX = 64
"""Workloads that are looked through, or let in, at a time: bounds the work of one event."""
WOKE_SECONDS = 1.0
"""Between two slices of which the first has woken anybody. A slice of looks costs about 40 ms in all, which nobody
pays for: so one worker causes a twenty-fifth of the process at the most, whatever it says."""
LOOKED_SECONDS = 0.05
"""Between two slices of which the first has woken nobody: looking through one costs 1 to 2 ms."""
_CLOSED = frozenset({Refusal.NAMESPACE_MISSING.value, Refusal.NAMESPACE_NOT_ALLOWED.value})


def changed(core: Core, cluster: str, now: float) -> bool:
    """Take that something of a cluster may be new; say whether it is more than what it has and grants."""
    view = core.view(cluster)
    if view is None:
        core.cluster_changes.forget(cluster)
        return True
    followed = core.cluster_changes.of(cluster)
    after = _seen(core, view, now)
    before = followed.see(after)
    gained = cluster_changes.gain(before, after)
    if gained:
        followed.gains(gained, now)
        _forget_refusals(core, cluster, gained)
    if gained or core.cluster_waiters.count_for_room(cluster):
        core.agenda.mark(_key(cluster))  # a look of its own: what fails in it ends nobody's session
    return cluster_changes.differs(before, after)


def led_to(core: Core, config: MultiKueueConfig) -> None:
    """Take that queues may lead to clusters to which they did not: to those it is another one than before."""
    for cluster in targets.named(core, config):
        if core.view(cluster) is None:
            continue
        core.cluster_changes.of(cluster).gains(Gain(all=True), core.now)
        core.agenda.mark(_key(cluster))


def made(core: Core, attempt: Attempt, now: float) -> None:
    """Take that a placement was made: who stands in line for that room has it, or else who gave up waiting for some."""
    cluster, waiting = attempt.cluster, core.cluster_waiters.count_for_room(attempt.cluster)
    giving_back.free_room(core, attempt.uid, cluster)
    view = core.view(cluster)
    if view is not None and not waiting and fit.room_at(core, view, now) == 1:
        core.cluster_changes.of(cluster).gains(Gain(room=True), now)
        core.agenda.mark(_key(cluster))


def go_on(core: Core, key: ObjectKey, now: float) -> None:
    """Let some in who wait for room at a cluster, and look through some of those whom it may help."""
    cluster, view = key.name, core.view(key.name)
    if view is None:
        return
    followed = core.cluster_changes.of(cluster)
    _let_in(core, followed, view, now)
    if not followed.left and not followed.gained:
        return
    if now < followed.next_at:
        core.agenda.wake(_key(cluster), followed.next_at)
        return
    if not followed.left:
        followed.begin(core.cluster_waiters.everybody())
    woken = _slice(core, followed, view, now)
    followed.rest(now + (WOKE_SECONDS if woken else LOOKED_SECONDS))
    if followed.left:
        core.agenda.wake(_key(cluster), followed.next_at)


def _key(cluster: str) -> Key:
    return Key(Look.WAKING, ObjectKey("", cluster))


def _seen(core: Core, view: ClusterView, now: float) -> SeenCluster:
    room = fit.room_at(core, view, now)
    return SeenCluster(view=view, usable=not fit.unusable(view), placed=len(core.placements.at(view.name)), room=room)


def _forget_refusals(core: Core, cluster: str, gained: Gain) -> None:
    """Have those asked there again whose refusal this may mend: of a namespace by that, of all else by more room."""

    def mends(uid: str, refusal: str) -> bool:
        if gained.all or refusal not in _CLOSED:
            return gained.all or gained.room
        attempt = core.attempts.get(uid)
        return attempt is None or attempt.workload.namespace in gained.namespaces

    core.failures.cluster_changed(cluster, mends)


def _let_in(core: Core, followed: Followed, view: ClusterView, now: float) -> None:
    """Look at those who have waited longest for room there, as many as there is room for."""
    waiting = core.cluster_waiters.count_for_room(view.name)
    room = fit.room_at(core, view, now) if waiting and not fit.unusable(view) else 0
    if room <= 0:
        return
    if now < followed.lets_in_at:
        core.agenda.wake(_key(view.name), followed.lets_in_at)
        return
    followed.lets_in(now + WOKE_SECONDS)
    for _ in range(min(room, WAKE_MAX, waiting)):
        giving_back.wake_one(core, view.name)


def _slice(core: Core, followed: Followed, view: ClusterView, now: float) -> int:
    """Look through the next ones; return how many are woken."""
    leads: dict[tuple[str, ...], bool] = {}
    woken = 0
    for uid in followed.take(WAKE_MAX):
        checks, attempt = core.cluster_waiters.checks_of(uid), core.attempts.get(uid)
        if checks is None or attempt is None:
            continue  # it waits no more
        if checks not in leads:
            leads[checks] = view.name in targets.targets(core, checks).clusters
        if leads[checks] and _helps(core, attempt, view, followed.offers, now):
            woken += _wake(core, attempt, view.name, now)
    return woken


def _helps(core: Core, attempt: Attempt, view: ClusterView, offers: Gain, now: float) -> bool:
    """Say whether what a cluster has to give may be what an attempt lacks; its agent says the rest when it is asked."""
    if credit.is_dry(core, view, now) or not credit.may_be_taken(core, attempt, view, now):
        return False  # credit that has gone again by now helps nobody
    return offers.all or offers.room or attempt.workload.namespace in offers.namespaces


def _wake(core: Core, attempt: Attempt, cluster: str, now: float) -> bool:
    """Have an attempt try again, now or when this cluster may wake it again; say whether that is now."""
    at = core.cluster_waiters.wake(attempt.uid, cluster, now, giving_back.pace(core, cluster))
    core.failures.wake(attempt.uid, at)
    if at > now:
        core.agenda.wake(attempt.look, at)
        return False
    core.mark_attempt(attempt)
    return True
