"""What sessions mean for work: upcalls of the links become facts of attempts and keys to look at."""

from __future__ import annotations

from gatelift.core import dispatch, endings, inventories, placing, reports, texts
from gatelift.core.agenda import Key, Look
from gatelift.core.attempts import Attempt, AttemptState, Internal, Outcome
from gatelift.core.link_values import (
    ClusterChanged,
    FencedByPerson,
    HigherTermRead,
    LinkBroken,
    LinkLost,
    LinkOpened,
    LinkRecovered,
    LinkSuspect,
    PlacementsInventoried,
    Reported,
    Upcall,
)
from gatelift.core.state import Core
from gatelift_kube.resources import ObjectKey

WAKE_MAX = 64
"""Workloads that wait for a cluster and are looked at again at one change of it: bounds the work of one event."""


def take(core: Core, upcall: Upcall, now: float) -> None:
    """Take one upcall."""
    match upcall:
        case Reported():
            reports.reported(core, upcall, now)
        case PlacementsInventoried():
            core.resynced[upcall.cluster] = upcall.session
            inventories.inventoried(core, upcall, now)
        case LinkOpened():
            if not upcall.resumed:
                core.resynced[upcall.cluster] = upcall.session
            _look_at_all(core, upcall.cluster)
            _changed(core, upcall.cluster)
        case LinkBroken():
            core.drop_session(upcall.cluster, upcall.session)
            core.agenda.mark(Key(Look.CLUSTER, ObjectKey("", upcall.cluster)))
            _look_at_all(core, upcall.cluster)
        case LinkLost():
            _lost(core, upcall.cluster)
        case LinkSuspect() | LinkRecovered() | ClusterChanged():
            _changed(core, upcall.cluster)
        case FencedByPerson():
            _fenced(core, upcall)
        case HigherTermRead():
            core.step_down(f"term {upcall.term} was read at cluster {upcall.cluster}, ours is {core.term}")


def _placed_on(core: Core, cluster: str) -> list[Attempt]:
    found = (core.attempts.get(uid) for uid in sorted(core.on_cluster.get(cluster, ())))
    return [attempt for attempt in found if attempt is not None]


def _look_at_all(core: Core, cluster: str) -> None:
    for attempt in _placed_on(core, cluster):
        core.mark_attempt(attempt)
    for uid in sorted(core.unapplied.get(cluster, ())):
        offered = core.attempts.get(uid)
        if offered is not None:
            core.mark_attempt(offered)


def _changed(core: Core, cluster: str) -> None:
    """Something about a cluster changed: what waited for that may go on."""
    core.agenda.mark(Key(Look.CLUSTER, ObjectKey("", cluster)))
    core.failures.cluster_changed(cluster)
    view = core.view(cluster)
    room = view.credits - len(core.unapplied.get(cluster, ())) if view is not None and view.open else 0
    for _ in range(min(room, WAKE_MAX, len(core.waiting_for_room))):
        dispatch.wake_one(core)
    for uid in list(core.out_of_clusters)[:WAKE_MAX]:
        del core.out_of_clusters[uid]
        core.failures.wake(uid)
        attempt = core.attempts.get(uid)
        if attempt is not None:
            core.mark_attempt(attempt)


def _lost(core: Core, cluster: str) -> None:
    """Show that the cluster is unreachable; its work keeps its charge, nothing is moved (policy wait)."""
    for attempt in _placed_on(core, cluster):
        if attempt.live and attempt.state is not AttemptState.LOST:
            placing.lose(core, attempt)
        core.mark_attempt(attempt)
    _changed(core, cluster)


def _fenced(core: Core, upcall: FencedByPerson) -> None:
    """End what was told to run in a session up to that one: a person says that nothing of it runs (P1)."""
    for attempt in _placed_on(core, upcall.cluster):
        if attempt.state is not AttemptState.LOST or attempt.heard_session > upcall.through_session:
            continue
        text = texts.fenced_by(upcall.cluster, upcall.who)
        core.remember_fenced(attempt.key, upcall.who)
        endings.end(core, attempt, Internal.FENCE, Outcome(how=Internal.FENCE, message=text, cluster=upcall.cluster))
