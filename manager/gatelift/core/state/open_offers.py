"""Offers that a cluster has not answered yet: the back-pressure of dispatch. Pure. Neighbour: `dispatch`.

An agent that lacks CPU answers late. Whoever takes lateness for a no, and asks three more, makes load grow with
slowness until nobody answers in time. So each cluster has a window of unanswered offers; what is withdrawn unanswered
stays in it, since the agent has to read it all the same; and a cluster that works through its window is waited for.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from gatelift_wire.values.keys import PlacementKey

WINDOW = 64
"""Unanswered offers per cluster: at 5 ms of an agent's CPU for an offer a third of a second's work, about the time for
which an answer is waited for; over a wire of 50 ms still more than a thousand offers a second."""

ANSWER_SECONDS_MAX = 30.0
"""After so long an offer counts as answered: a hold would have run out by itself (`DispatchSettings.hold_seconds`), and
an agent that is busier than this is told apart from a dead one by its lease, not here."""


SILENT_PAUSE_SECONDS = 10.0
"""One that was found silent is asked beside another one so often, not waited for: its answer ends that."""

LATE_SECONDS = 0.1
"""Who holds no room and takes longer than this to say so kept others waiting for nothing: as long as the best one is
waited for where it is asked alone, and several times as long as an agent across a continent takes."""


class LastAnswer(NamedTuple):
    """When a cluster answered last, and when the offer had gone out that it answered."""

    at: float
    sent_at: float


NO_ANSWER_YET = LastAnswer(float("-inf"), float("-inf"))


@dataclass(slots=True)
class OpenOffers:
    """What each cluster has been asked and has not answered, oldest first; and when each answered last.

    One that was waited for in vain is silent until it answers, in whatever session: nobody else waits for it where
    another one holds room (HD-572). So is one that takes its time to hold none, until it holds some or answers in time.
    """

    window: int = WINDOW
    _sent: dict[str, dict[PlacementKey, float]] = field(default_factory=dict)
    _answered: dict[str, LastAnswer] = field(default_factory=dict)
    _trusted: set[str] = field(default_factory=set)
    _silent: dict[str, float] = field(default_factory=dict)  # when it was asked last

    def sent(self, cluster: str, key: PlacementKey, now: float) -> None:
        """Note an offer that went out. One that is sent again is the younger one."""
        waiting = self._sent.setdefault(cluster, {})
        waiting.pop(key, None)
        waiting[key] = now
        if cluster in self._silent:
            self._silent[cluster] = now

    def answered(self, cluster: str, key: PlacementKey, now: float, *, held: bool) -> bool:
        """Note the answer to an offer, also to one that nobody waits for any more; True if that made room.

        A bid that answers none says nothing of the cluster (HD-274). `held`: it keeps room for us.
        """
        waiting = self._sent.get(cluster)
        sent_at = waiting.pop(key, None) if waiting is not None else None
        if waiting is None or sent_at is None:
            return False
        self._answered[cluster] = LastAnswer(now, sent_at)
        if held or now <= sent_at + LATE_SECONDS:
            self._silent.pop(cluster, None)
        else:
            self._silent.setdefault(cluster, now)
        (self._trusted.add if held else self._trusted.discard)(cluster)
        if not waiting:
            del self._sent[cluster]
        return True

    def waiting(self, cluster: str, now: float) -> int:
        """Return how many offers the cluster has not answered."""
        waiting = self._sent.get(cluster)
        if waiting is None:
            return 0
        while waiting and next(iter(waiting.values())) + ANSWER_SECONDS_MAX <= now:
            del waiting[next(iter(waiting))]
        if not waiting:
            del self._sent[cluster]
        return len(waiting)

    def room(self, cluster: str, now: float) -> int:
        """Return how many more the cluster may be asked."""
        return max(0, self.window - self.waiting(cluster, now))

    def works(self, cluster: str, since: float, sent_at: float) -> bool:
        """Say whether the cluster has answered anything after `since`: then it is slow, not silent.

        What counts is that it comes nearer to what was sent at `sent_at`: an answer to a later offer passes that over
        (HD-645).
        """
        last = self._answered.get(cluster, NO_ANSWER_YET)
        return last.at > since and last.sent_at <= sent_at

    def answered_at(self, cluster: str) -> float:
        """Return when a cluster last answered anything in this session; long ago where it has not."""
        return self._answered.get(cluster, NO_ANSWER_YET).at

    def trusted(self, cluster: str) -> bool:
        """Say whether its last answer was to hold room, and it was not found silent since: it will hold room again."""
        return cluster in self._trusted

    def silent(self, clusters: Iterable[str], now: float) -> None:
        """Note who has not answered in time and is answering nobody else: no longer trusted until it holds again."""
        for cluster in clusters:
            self._trusted.discard(cluster)
            self._silent.setdefault(cluster, now)

    def is_silent(self, cluster: str) -> bool:
        """Say whether it was waited for in vain and has answered nothing since."""
        return cluster in self._silent

    def may_speak_again(self, cluster: str, now: float) -> bool:
        """Say whether a silent one is to be asked again, to see whether it answers."""
        asked = self._silent.get(cluster)
        return asked is not None and now >= asked + SILENT_PAUSE_SECONDS

    def session_ended(self, cluster: str) -> None:
        """Forget what was asked in a session that is over: nobody answers it (R6)."""
        self._sent.pop(cluster, None)
        self._answered.pop(cluster, None)
        self._trusted.discard(cluster)

    def forget(self, cluster: str) -> None:
        """Keep nothing of a cluster that is gone."""
        self.session_ended(cluster)
        self._silent.pop(cluster, None)

    def clusters(self) -> frozenset[str]:
        """Return the clusters of which something is kept."""
        return frozenset(self._sent) | frozenset(self._answered) | frozenset(self._silent)
