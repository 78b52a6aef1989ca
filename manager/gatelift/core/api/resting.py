"""Pauses of writes that only inform, by object and purpose: none of them keeps anything else of the object waiting.

What moves something pauses in `inflight`, and everything about its object with it, since nobody knows what holds. A
refused mirror or `reclaimablePods` says nothing about the next eviction, deletion or end, so it rests alone. At most
one request per object is out all the same: a slow one holds up the next for its time limit, no longer.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gatelift.core.api.agenda import Agenda, Key
from gatelift.core.api.inflight import pause
from gatelift.core.api.purposes import Purpose
from gatelift_kube.values.resources import ObjectRef

NEWS_SECONDS = 4.0
"""What says something else than what was refused waits no longer than this."""


@dataclass(slots=True)
class _Pause:
    until: float
    failures: int
    since: float


@dataclass(slots=True)
class Resting:
    """Which informing writes rest, until when, and which objects take no word about their end at all."""

    pauses: dict[ObjectRef, dict[Purpose, _Pause]] = field(default_factory=dict)
    despaired: dict[ObjectRef, str] = field(default_factory=dict)

    def failed(self, ref: ObjectRef, purpose: Purpose, now: float, *, doubt: bool = False) -> float:
        """Pause this purpose alone, doubling; return the time of the next try.

        `doubt`: nobody can tell what happened; once the object was read the first repetition follows at once.
        """
        of_object = self.pauses.setdefault(ref, {})
        before = of_object.get(purpose)
        failures = before.failures + 1 if before is not None else 1
        until = now if doubt and failures == 1 else now + pause(failures - doubt)
        of_object[purpose] = _Pause(until, failures, now)
        return until

    def until(self, ref: ObjectRef, purpose: Purpose, now: float, *, news: bool = False) -> float:
        """Return until when a purpose rests, 0 when it does not; `news`: for what was not refused yet."""
        resting = self.pauses.get(ref, {}).get(purpose)
        if resting is None:
            return 0.0
        until = min(resting.until, resting.since + NEWS_SECONDS) if news else resting.until
        return until if until > now else 0.0

    def rests(self, ref: ObjectRef, purpose: Purpose, agenda: Agenda, key: Key, now: float) -> bool:
        """Say whether a purpose rests after a failure; sees to it that `key` is looked at after that."""
        until = self.until(ref, purpose, now)
        if until:
            agenda.wake(key, until)
        return bool(until)

    def succeeded(self, ref: ObjectRef, purpose: Purpose) -> None:
        """Forget the pause of one purpose."""
        of_object = self.pauses.get(ref)
        if of_object is not None and of_object.pop(purpose, None) is not None and not of_object:
            del self.pauses[ref]

    def despair(self, ref: ObjectRef, why: str) -> None:
        """Note that the object takes no word about its end, whatever it says; until it is gone or `renewed`."""
        self.despaired[ref] = why

    def hopeless(self, ref: ObjectRef) -> str:
        """Return why the end is not shown any more, "" when it is."""
        return self.despaired.get(ref, "")

    def renewed(self, ref: ObjectRef) -> None:
        """Try at once what is to be said now: the refusals were of something else."""
        self.forget(ref)

    def forget(self, ref: ObjectRef) -> None:
        """Forget all of an object that is gone, or that nobody wants to write any more."""
        self.pauses.pop(ref, None)
        self.despaired.pop(ref, None)
