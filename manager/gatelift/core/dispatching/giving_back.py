"""What is let go in a round of offers: the holds that other clusters keep, the reservation that no cluster can take.

Neighbours: `dispatch` gives back, `endings` and `placing` withdraw; whoever waits for room at a cluster is woken here.
"""

from __future__ import annotations

from gatelift.core import texts
from gatelift.core.api.agenda import Key, Look
from gatelift.core.dispatching import credit
from gatelift.core.records.attempt_states import AttemptState, Internal
from gatelift.core.records.attempts import Attempt
from gatelift.core.state.cluster_changes import Gain
from gatelift.core.state.cluster_waiters import Pace
from gatelift.core.state.core import Core
from gatelift.core.told import slice_moments, telling
from gatelift_kube.values.resources import ObjectKey
from gatelift_wire.values.messages import Message, Withdraw


def withdraw(core: Core, attempt: Attempt, now: float, *, but: str = "") -> None:
    """Let the holds go that the other clusters keep for an attempt."""
    if attempt.round is None:
        return
    message: Message = Withdraw(key=attempt.key, size=attempt.round.size)
    withdrawn: dict[str, int] = {}
    for name, session in attempt.round.offered.items():
        if name == but:
            continue
        free_room(core, attempt.uid, name)
        view = core.view(name)
        if view is not None and view.open and view.session == session:
            core.send(name, (message,), now)
            withdrawn[name] = session
    attempt.end_round(withdrawn)


def free_room(core: Core, uid: str, cluster: str) -> None:
    """Note that a cluster has one un-applied placement fewer, and look at who waits for that."""
    if not core.placements.applied(cluster, uid):
        return
    wake_one(core, cluster)
    if core.cluster_changes.may_be_mute(cluster):  # nobody stands in line there
        core.cluster_changes.of(cluster).gains(Gain(room=True), core.now)
        core.agenda.mark(Key(Look.WAKING, ObjectKey("", cluster)))


def wake_one(core: Core, cluster: str) -> None:
    """Look at the workload that has waited longest for room at a cluster."""
    while (uid := core.cluster_waiters.next_for_room(cluster)) is not None:
        attempt = core.attempts.get(uid)
        if attempt is not None and attempt.state is AttemptState.RESERVED:
            core.mark_attempt(attempt)
            return


def give_back(core: Core, attempt: Attempt, now: float, why: tuple[str, str] | None = None) -> None:
    """Give the reservation back to the engine; the workload waits and says why: no cluster can take it, or `why`."""
    settings = core.settings.dispatch
    since = attempt.round.since if attempt.round is not None else now
    withdraw(core, attempt, now)
    core.cluster_waiters.wants_no_room(attempt.uid)
    if attempt.state is AttemptState.OFFERED:
        attempt.follow(Internal.UNOFFER)
    core.failures.gave_up(attempt.uid, now, settings.give_up_base, settings.give_up_max)
    said = why or (texts.NO_CLUSTER, slice_moments.no_cluster(core, attempt))
    attempt.wait_for(said)
    if why is None:
        core.cluster_waiters.wait_for_any(attempt.uid, attempt.reserve.checks if attempt.reserve is not None else ())
        core.failures.wake(attempt.uid, core.failures.asked_again_at(attempt.uid, attempt.why_not, now))
        _ask_again(core, attempt, since, now)
        telling.no_cluster(core, attempt, said)
    core.mark_attempt(attempt)


def pace(core: Core, cluster: str) -> Pace:
    """Return how often a cluster wakes the same work."""
    settings = core.settings.dispatch
    return Pace(settings.give_up_base, settings.give_up_max, core.open_offers.answered_at(cluster))


def _ask_again(core: Core, attempt: Attempt, since: float, now: float) -> None:
    """Try again soon what has found nobody, where a cluster that may take it has had more to give after it refused."""
    for name in core.cluster_changes.gained_since(attempt.why_not, since):
        view = core.view(name)
        if view is None or credit.is_dry(core, view, now) or not credit.may_be_taken(core, attempt, view, now):
            continue
        core.failures.wake(attempt.uid, core.cluster_waiters.wake_later(attempt.uid, name, now, pace(core, name)))
