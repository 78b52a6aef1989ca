"""What of an attempt the objects of its user show, by their names. Neighbour: `heard_troubles`."""

from __future__ import annotations

from dataclasses import dataclass

_NOTHING: frozenset[str] = frozenset()

MERGE_SECONDS = 1.0
"""Passing states (scheduled, pulling, one more of many pods) wait so long for the next one."""
PAUSE_MAX_SECONDS, CALM_SECONDS = 8.0, 10.0
"""What is said again and again is written at pauses that double up to the first; of what had rested for the second at
once, as ever."""


def next_pause(pause: float, before: float | None, now: float) -> float:
    """Return how long what is written now waits for the next time; `before`: when it was written last."""
    follows = before is not None and now - before < CALM_SECONDS
    return min(2 * pause, PAUSE_MAX_SECONDS) if follows else MERGE_SECONDS


@dataclass(slots=True)
class _Shown:
    """Of one object: since when it shows what was before, when it was last asked to be written, how far it showed.

    `pause`: seconds from that write to the next one that says nothing for the first time. `asked`: the report (a
    digest) that this write is to show; `stored_on`: the version that came of it, "" until it is accepted; `left`: the
    patch (a digest) that would still be written after that, which the API server stores as it is already.
    `says_ready`, `ready_until`: what its cluster says, and until when it said so.
    """

    unshown_since: float | None = None
    mirrored_at: float | None = None
    pause: float = MERGE_SECONDS
    stages: frozenset[str] = _NOTHING  # that it ran, that it was over
    said: frozenset[str] = _NOTHING  # the same, as its cluster has said
    asked: bytes = b""
    stored_on: str = ""
    left: bytes = b""
    says_ready: bool = False
    ready_until: float | None = None


@dataclass(slots=True, kw_only=True)
class ShownObjects:
    """Changed by its methods only. An attempt that waits has none of it, and there are many of those."""

    _shown: dict[str, _Shown] | None = None

    def shown(self, name: str) -> None:
        """Take that a user's object shows what was reported, or is being written so."""
        one = self._known(name)
        if one is not None:
            one.unshown_since = None

    def mirrors(self, name: str, now: float, report: bytes = b"") -> None:
        """Take that a user's object is being written so, to show a report of this digest."""
        self.writes(name, report)
        self.shown(name)
        one = self._of(name)
        one.pause = next_pause(one.pause, one.mirrored_at, now)
        one.mirrored_at = now

    def writes(self, name: str, report: bytes) -> None:
        """Take that a user's object is being written to show a report of this digest."""
        one = self._of(name)
        one.asked, one.stored_on = report, ""

    def asked(self, name: str) -> bytes:
        """Return the digest of the report that a user's object was last asked to show, b"" for none."""
        one = self._known(name)
        return b"" if one is None else one.asked

    def stored(self, name: str, version: str) -> None:
        """Take that this was accepted, and which version of the object came of it."""
        one = self._known(name)
        if one is not None and one.asked:
            one.stored_on = version

    def rests_in(self, name: str, report: bytes, version: str, left: bytes) -> bool:
        """Say whether the API server has accepted all that a patch (its digest) would write, and stores it otherwise.

        That is so of what is left to be written of the version that came of the write of this very report.
        """
        one = self._known(name)
        if one is None:
            return False
        if one.stored_on and (one.asked, one.stored_on) == (report, version):
            one.left, one.stored_on = left, ""
        return one.left == left

    def says_ready(self, name: str, now: float, *, ready: bool) -> None:
        """Take whether its cluster says that a user's object is ready."""
        one = self._of(name) if ready else self._known(name)
        if one is not None:
            one.ready_until = now if ready or one.says_ready else one.ready_until
            one.says_ready = ready

    def was_ready_until(self, name: str, now: float) -> float | None:
        """Return until when its cluster has said so since it was last not ready; None where it has not."""
        one = self._known(name)
        return None if one is None else now if one.says_ready else one.ready_until

    def is_ready_no_more(self) -> None:
        """Take that it is known not to be ready: what was said of that before is over."""
        for one in (self._shown or {}).values():
            one.ready_until = None

    def rests_until(self, name: str) -> float:
        """Return until when a user's object is not written again where others write as well."""
        one = self._known(name)
        return 0.0 if one is None or one.mirrored_at is None else one.mirrored_at + one.pause

    def mirrored_at(self, name: str, otherwise: float) -> float:
        """Return when a user's object was last asked to be written so."""
        one = self._known(name)
        return otherwise if one is None or one.mirrored_at is None else one.mirrored_at

    def unshown(self, name: str, now: float) -> float:
        """Take that it does not; return since when."""
        one = self._of(name)
        if one.unshown_since is None:
            one.unshown_since = now
        return one.unshown_since

    def has_shown(self, name: str, stages: frozenset[str]) -> frozenset[str]:
        """Take what a user's object shows of how far it is; return all that it has shown in this attempt."""
        one = self._known(name)
        before = one.stages if one is not None else _NOTHING
        if stages <= before:
            return before
        one = self._of(name)
        one.stages = before | stages
        return one.stages

    def has_said(self, name: str, stages: frozenset[str]) -> frozenset[str]:
        """Take how far its cluster says that an object is; return what of it that had not said before."""
        one = self._of(name) if stages else self._known(name)
        news = stages - one.said if one is not None else _NOTHING
        if one is not None and news:
            one.said |= news
        return news

    def _known(self, name: str) -> _Shown | None:
        return self._shown.get(name) if self._shown is not None else None

    def _of(self, name: str) -> _Shown:
        if self._shown is None:
            self._shown = {}
        return self._shown.setdefault(name, _Shown())
