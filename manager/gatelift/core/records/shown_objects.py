"""What of an attempt the objects of its user show, by their names. Neighbour: `heard_troubles`."""

from __future__ import annotations

from dataclasses import dataclass

_NOTHING: frozenset[str] = frozenset()

MERGE_SECONDS = 1.0
"""Passing states (scheduled, pulling, one more of many pods) wait so long for the next one."""
PAUSE_MAX_SECONDS, CALM_SECONDS = 8.0, 10.0
"""What is said again and again is written at pauses that double up to the first; of what had rested for the second at
once, as ever."""


@dataclass(slots=True)
class _Shown:
    """Of one object: since when it shows what was before, when it was last asked to be written, how far it showed.

    `pause`: seconds from that write to the next one that says nothing for the first time.
    """

    unshown_since: float | None = None
    mirrored_at: float | None = None
    pause: float = MERGE_SECONDS
    stages: frozenset[str] = _NOTHING  # that it ran, that it was over


@dataclass(slots=True, kw_only=True)
class ShownObjects:
    """Changed by its methods only. An attempt that waits has none of it, and there are many of those."""

    _shown: dict[str, _Shown] | None = None

    def shown(self, name: str) -> None:
        """Take that a user's object shows what was reported, or is being written so."""
        one = self._known(name)
        if one is not None:
            one.unshown_since = None

    def mirrors(self, name: str, now: float) -> None:
        """Take that a user's object is being written so."""
        self.shown(name)
        one = self._of(name)
        follows = one.mirrored_at is not None and now - one.mirrored_at < CALM_SECONDS
        one.pause = min(2 * one.pause, PAUSE_MAX_SECONDS) if follows else MERGE_SECONDS
        one.mirrored_at = now

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

    def _known(self, name: str) -> _Shown | None:
        return self._shown.get(name) if self._shown is not None else None

    def _of(self, name: str) -> _Shown:
        if self._shown is None:
            self._shown = {}
        return self._shown.setdefault(name, _Shown())
