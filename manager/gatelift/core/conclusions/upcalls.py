"""What sessions mean for work: upcalls of the links become facts of attempts and keys to look at."""

from __future__ import annotations

from gatelift.core.api.agenda import Key, Look
from gatelift.core.clusters.link_values import (
    ClusterChanged,
    CounterProved,
    FencedByPerson,
    HigherTermRead,
    LinkBroken,
    LinkLost,
    LinkOpened,
    LinkRecovered,
    LinkSuspect,
    Reported,
    Upcall,
)
from gatelift.core.conclusions import higher_terms, recovery, recovery_lists, recovery_settling, reports
from gatelift.core.dispatching import waking
from gatelift.core.state import predecessors
from gatelift.core.state.core import Core
from gatelift_kube.values.resources import ObjectKey


def take(core: Core, upcall: Upcall, now: float) -> None:
    """Take one upcall."""
    match upcall:
        case Reported():
            reports.reported(core, upcall, now)
        case LinkOpened():
            core.sessions.opened(upcall.cluster, now)
            if not upcall.resumed:
                core.sessions.resync(upcall.cluster, upcall.session)
            core.note("session open", cluster=upcall.cluster, fields=_session(upcall))
            _look_at_all(core, upcall.cluster)
            _changed(core, upcall.cluster, now)
        case CounterProved():
            recovery.shown(core, upcall)
        case LinkBroken():
            core.sessions.broken(upcall.cluster, upcall.session, now)
            recovery_lists.over(core, upcall.cluster)
            core.cluster_changes.heard(upcall.cluster, core.open_offers.answered_at(upcall.cluster))
            core.open_offers.session_ended(upcall.cluster)
            core.agenda.mark(Key(Look.CLUSTER, ObjectKey("", upcall.cluster)))
            _look_at_all(core, upcall.cluster)
        case LinkLost():
            recovery_settling.lost(core, upcall.cluster)
            core.note("cluster lost: its lease ran out", warning=True, cluster=upcall.cluster)
            for uid in core.placements.at(upcall.cluster):  # before anything is decided; the passes follow
                core.ledger.engine.set_unreachable(uid, unreachable=True)
            _look_at_all(core, upcall.cluster)
            _changed(core, upcall.cluster, now)
        case ClusterChanged():
            predecessors.adopt(core, upcall.cluster)
            _changed(core, upcall.cluster, now)
        case LinkSuspect() | LinkRecovered():
            _changed(core, upcall.cluster, now)
        case FencedByPerson():
            reports.let_go(core, upcall.cluster)
            predecessors.fenced(core, upcall.cluster)
            said = ("through_session", str(upcall.through_session)), ("who", upcall.who)
            core.note(
                "a person says that nothing runs there any more", warning=True, cluster=upcall.cluster, fields=said
            )
            _look_at_all(core, upcall.cluster)
        case HigherTermRead():
            higher_terms.read(core, upcall, now)


def _session(opened: LinkOpened) -> tuple[tuple[str, str], ...]:
    return ("session", str(opened.session)), ("resumed", str(opened.resumed).lower())


def _look_at_all(core: Core, cluster: str) -> None:
    core.mark_later(sorted(core.placements.at(cluster)))
    core.mark_later(sorted(core.placements.unapplied(cluster)))
    core.mark_later(core.predecessors.take_waiting(cluster))


def _changed(core: Core, cluster: str, now: float) -> None:
    """Something about a cluster changed: what waited for that may go on."""
    if waking.changed(core, cluster, now):
        core.agenda.mark(Key(Look.CLUSTER, ObjectKey("", cluster)))
    if core.links.state(cluster) is None:
        reports.let_go(core, cluster)
        recovery_lists.forget(core, cluster)
    core.placements.note(cluster)
