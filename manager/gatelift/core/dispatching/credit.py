"""Work that may go only to clusters without credit: it reserves nothing in turn while that stays so (HD-301).

A first one waits for room with its quota in hand (`dispatch`). Once it has given up, those clusters are *mute* until
they answer an offer, and *dry* while they have no room, either: nobody else is made to wait as long for them. Who may
go nowhere else is kept out of its queue, says why, and is woken by what its clusters have to give (`waking`), and now
and then. Credit that comes and goes makes no cluster anything else than mute: it costs nothing to say.
"""

from __future__ import annotations

from gatelift.core import texts
from gatelift.core.clusters.link_values import ClusterView
from gatelift.core.dispatching import fit
from gatelift.core.records.attempts import Attempt
from gatelift.core.records.work import Owner
from gatelift.core.rules import targets
from gatelift.core.state.case import Case
from gatelift.core.state.core import Core
from gatelift.core.told import telling
from gatelift_kube.objects.kueue import Workload


def is_mute(core: Core, cluster: str) -> bool:
    """Say whether a cluster has answered nobody since somebody gave up waiting for room there."""
    return core.cluster_changes.is_mute(cluster, core.open_offers.answered_at(cluster))


def is_dry(core: Core, view: ClusterView, now: float) -> bool:
    """Say whether such a cluster has no room, either."""
    return is_mute(core, view.name) and fit.room_at(core, view, now) <= 0


def all_dry(core: Core, clusters: list[str], now: float) -> bool:
    """Say that of all of these."""
    views = [core.view(name) for name in clusters]
    return all(view is not None and is_dry(core, view, now) for view in views)


def may_be_taken(core: Core, attempt: Attempt, view: ClusterView, now: float) -> bool:
    """Say whether this cluster may take an attempt, by all that is known here but whether there is room."""
    known = core.knowledge.workloads.get(attempt.workload)
    owner = core.knowledge.work_of(known).stands_for_all if known is not None else None
    if known is None or owner is None:
        return False
    want = fit.wanted(known, owner, attempt)
    why = fit.unfit(view, want)
    return (not why or why == fit.closed(want.namespace)) and not core.failures.avoided(attempt.uid, view.name, now)


def keeps_out(case: Case) -> bool:
    """Say whether all clusters that may take what waits for quota are dry; then it says so, and is woken by them."""
    core, attempt = case.core, case.attempt
    owner = case.work.stands_for_all if core.cluster_changes.any_mute else None
    if owner is None:
        return False
    checks = _checks(core, case.known)
    why_not = _dry(case, owner, checks) if checks else {}
    if not why_not:
        return False
    attempt.used_nowhere(why_not)
    core.cluster_waiters.wait_for_any(attempt.uid, checks)
    core.agenda.wake(attempt.look, case.now + core.settings.dispatch.give_up_max)
    said = texts.NO_CLUSTER, texts.no_cluster(why_not)
    if core.waiting_reasons.say(attempt.uid, said):
        telling.no_cluster(core, attempt, said)
    return True


def _dry(case: Case, owner: Owner, checks: tuple[str, ...]) -> dict[str, str]:
    """Return why each of its clusters does not take it, nothing where one may, or none of them is dry."""
    core, attempt, now = case.core, case.attempt, case.now
    want = fit.wanted(case.known, owner, attempt)
    why_not: dict[str, str] = {}
    found = False
    for name in targets.targets(core, checks).clusters:
        view = core.view(name)
        why = fit.unfit(view, want) or core.failures.avoided(attempt.uid, name, now)
        if view is not None and not why:
            if not is_dry(core, view, now):
                return {}
            why, found = fit.NO_CREDIT, True
        why_not[name] = why
    return why_not if found else {}


def _checks(core: Core, known: Workload) -> tuple[str, ...]:
    """Return the checks that say where a queue's work may go, whatever flavor it gets; none where they do not."""
    queue = core.knowledge.cluster_queues.get(core.knowledge.cluster_queue_of(known))
    strategy = queue.spec.admission_checks_strategy if queue is not None else None
    rules = strategy.admission_checks if strategy is not None else ()
    leading = [rule for rule in rules if targets.multikueue_check(core, (rule.name,))]
    if not leading or any(rule.on_flavors for rule in leading):
        return ()
    return tuple(rule.name for rule in rules)
