"""For how long nothing is concluded from what the objects of one cluster show, as its sessions begin. Pure.

What has happened while nobody heard of it is told then, if something has. So a cluster that was away has time to tell,
`TOLD_SECONDS`; one whose stream broke for a moment, `MOMENT_SECONDS`. Sessions that begin again and again buy none:
time is given a few times, and once more in each `AGAIN_SECONDS`, and for a moment only after a session that has lasted.
Neighbours: `sessions` keeps it, `rules.readiness` asks.
"""

from __future__ import annotations

from dataclasses import dataclass

TOLD_SECONDS = 60.0
"""After a cluster is heard: within this it has told how all its pods are, and what it told is shown at home."""
AWAY_SECONDS = 10.0
"""Who was not heard for less was not away: its stream broke, and what it had to say follows at once."""
MOMENT_SECONDS = 5.0
LASTING_SECONDS = 30.0
"""A session that was shorter gives the next one nothing."""
TIMES_MAX, AGAIN_SECONDS = 3.0, 600.0
"""How often it may have been away in a row, and in which time once more. Meanwhile it counts as lost."""


@dataclass(slots=True)
class Hearing:
    """Of one cluster. `since`: when this session began; `told_since`: whoever told since then has told.

    `moment`: for how long nothing is concluded of those that have told.
    """

    since: float
    told_since: float
    moment: float = 0.0
    ended_at: float | None = None
    _times: float = TIMES_MAX - 1.0
    _times_at: float = 0.0

    def broken(self, now: float) -> None:
        """Take that this session is over."""
        self.ended_at = now if self.ended_at is None else self.ended_at

    def opened(self, now: float) -> None:
        """Take that another session begins."""
        ended = self.ended_at if self.ended_at is not None else now
        lasted, away = ended - self.since, now - ended
        self.moment = MOMENT_SECONDS if lasted >= LASTING_SECONDS else 0.0
        self.since, self.ended_at = now, None
        self._times = min(TIMES_MAX, self._times + (now - self._times_at) / AGAIN_SECONDS)
        self._times_at = now
        if away >= AWAY_SECONDS and self._times >= 1.0:
            self._times -= 1.0
            self.told_since = now

    def concluded_from(self, told_at: float) -> float:
        """Return from when on something is concluded of a placement of which it told last at `told_at`."""
        if told_at >= self.since:
            return self.since
        in_a_moment = self.since + self.moment
        return in_a_moment if told_at >= self.told_since else max(in_a_moment, self.told_since + TOLD_SECONDS)


def begins(now: float) -> Hearing:
    """Return what holds of a cluster that is heard for the first time."""
    return Hearing(since=now, told_since=now, _times_at=now)
