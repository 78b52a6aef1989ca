"""Writes and reads under way: at most one write per object, and which objects may not be decided on yet.

Rules kept here: never two writes of ours in flight for one object; after a conflict wait for a newer version before
deciding again; after an outcome that nobody can tell, read first. A wait that only an event could end has a limit.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from gatelift.core.api.purposes import Purpose
from gatelift_kube.values.numbers import whole
from gatelift_kube.values.resources import ObjectRef

STALE_SECONDS_MAX = 2.0
"""How long to wait for the watch to show what we conflicted with, before reading: watches lag by milliseconds."""
RETRY_SECONDS_MIN = 0.5
RETRY_SECONDS_MAX = 60.0
"""Pause after a write or read that was refused or failed: doubles from the first to the second."""


class ClusterWord(NamedTuple):
    """What a cluster says of a placement: what was not shown of it before, or something `again`."""

    cluster: str
    again: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Outstanding:
    """A write or read whose outcome has not come. `purpose` is for the story and the tests.

    `uid`: of the Workload that a write is about; of the object as it was known when a read was asked for.
    `lands_until`: set on a write from whose absence something is concluded: until then it may still land.
    `informs`: it only tells people. `word_of`: the word of a cluster that alone it follows, which may take it back.
    `gone`: UID of the object that the watch has seen go meanwhile; an answer that still shows it is older than that.
    """

    ref: ObjectRef
    purpose: Purpose
    decided_on: str = ""
    uid: str = ""
    gone: str = ""
    lands_until: float = 0.0
    informs: bool = False
    word_of: ClusterWord | None = None


@dataclass(slots=True)
class _Trouble:
    """Why an object has to wait: `stale` is the version we conflicted on, "" when only time counts."""

    until: float
    failures: int
    stale: str = ""
    read: bool = False
    version: str = ""
    lands_until: float = 0.0  # while the object has `version`, a write of ours may still land until then


@dataclass(slots=True)
class InFlight:
    """All outstanding requests to the API, by id and by object."""

    by_id: dict[int, Outstanding] = field(default_factory=dict)
    by_ref: dict[ObjectRef, int] = field(default_factory=dict)
    trouble: dict[ObjectRef, _Trouble] = field(default_factory=dict)
    by_word: Counter[ClusterWord] = field(default_factory=Counter)
    """How many follow each word of a cluster."""
    charging: int = 0
    """How many write what quota was given for."""

    def begin(self, request_id: int, outstanding: Outstanding) -> None:
        """Note a request that goes out. Raises RuntimeError when one for the object is out already: our mistake."""
        if outstanding.ref in self.by_ref:
            raise RuntimeError(f"two requests in flight for {outstanding.ref}: {outstanding.purpose}")
        self.by_id[request_id] = outstanding
        self.by_ref[outstanding.ref] = request_id
        self.charging += outstanding.purpose.charges
        if outstanding.word_of is not None:
            self.by_word[outstanding.word_of] += 1

    def end(self, request_id: int) -> Outstanding | None:
        """Take a request off the list; None when it is unknown (of an earlier life, or answered twice)."""
        outstanding = self.by_id.pop(request_id, None)
        if outstanding is not None:
            self.by_ref.pop(outstanding.ref, None)
            self.charging -= outstanding.purpose.charges
            if outstanding.word_of is not None:
                self.by_word[outstanding.word_of] -= 1
                self.by_word += Counter()  # keeps those alone of which any is out
        return outstanding

    def overtake(self, ref: ObjectRef, uid: str) -> None:
        """Note that the watch has seen an object go while a request for it is out."""
        request_id = self.by_ref.get(ref)
        if request_id is not None:
            self.by_id[request_id] = replace(self.by_id[request_id], gone=uid)

    def busy(self, ref: ObjectRef) -> bool:
        """Say whether a request for the object is out."""
        return ref in self.by_ref

    def purpose(self, ref: ObjectRef) -> Purpose | None:
        """Return what the outstanding request for the object is for, "" if none."""
        request = self.by_ref.get(ref)
        return self.by_id[request].purpose if request is not None else None

    def succeeded(self, ref: ObjectRef) -> None:
        """Forget earlier trouble with the object."""
        self.trouble.pop(ref, None)

    def forget(self, ref: ObjectRef) -> None:
        """Forget all trouble with an object that is gone, or that nobody wants to write any more."""
        self.trouble.pop(ref, None)

    def conflicted(self, ref: ObjectRef, decided_on: str, now: float) -> float:
        """Wait for a newer version than the one decided on, at most until the time returned; then it is read."""
        before = self.trouble.get(ref)
        until = now + STALE_SECONDS_MAX
        self.trouble[ref] = _Trouble(until, before.failures if before else 0, stale=decided_on)
        return until

    def failed(self, ref: ObjectRef, now: float, *, read: bool = False) -> float:
        """Pause after a refusal or failure, doubling; return the time of the next try. `read`: it was a read."""
        before = self.trouble.get(ref)
        failures = before.failures + 1 if before else 1
        until = now + pause(failures)
        self.trouble[ref] = _Trouble(until, failures, read=read or (before.read if before else False))
        return until

    def set_aside(self, ref: ObjectRef, version: str, until: float) -> None:
        """Wait for a version newer than the one that nothing could be written on, at most until then; it is read."""
        self.trouble[ref] = _Trouble(until, 0, stale=version)

    def unsure(
        self, ref: ObjectRef, now: float, *, version: str = "", lands_until: float = 0.0, informs: bool = False
    ) -> None:
        """Nobody can tell what happened: the object must be read before anything is decided on it.

        Decided at once after the first time, with a growing pause from the second in a row: an API server that is
        overloaded is not asked twice as often for that. What only `informs` is not counted, it rests by itself.
        """
        before = self.trouble.get(ref)
        failures = (before.failures if before else 0) + (not informs)
        self.trouble[ref] = _Trouble(now, failures, read=True, version=version, lands_until=lands_until)

    def seen(self, ref: ObjectRef, version: str) -> None:
        """End the wait for a newer version, if this is not the one conflicted on."""
        trouble = self.trouble.get(ref)
        if trouble is not None and trouble.stale and trouble.stale != version:
            del self.trouble[ref]

    def was_read(self, ref: ObjectRef, version: str = "", now: float = 0.0) -> None:
        """End all doubt, the object was read by quorum; but not yet when our write may still land on this version."""
        trouble = self.trouble.get(ref)
        if trouble is not None and trouble.lands_until > now and trouble.version == version:
            trouble.until = trouble.lands_until
        elif trouble is not None and (trouble.read or trouble.stale):
            trouble.until = now + pause(trouble.failures - 1) if trouble.read and trouble.failures > 1 else 0.0
            trouble.read, trouble.stale, trouble.lands_until = False, "", 0.0
            if not trouble.failures:
                del self.trouble[ref]

    def went_back(self, ref: ObjectRef, version: str) -> str:
        """Return the version that we conflicted on, if a read asked for since found an older one; "" if it did not.

        Versions never go back, unless the API server was put back to a backup under our feet.
        """
        trouble = self.trouble.get(ref)
        stale = trouble.stale if trouble is not None else ""
        conflicted, found = whole(stale), whole(version)
        return stale if conflicted is not None and found is not None and found < conflicted else ""

    def hindrance(self, ref: ObjectRef, now: float) -> tuple[bool, bool, float]:
        """Return (must wait, must be read first, time at which to look again)."""
        trouble = self.trouble.get(ref)
        if trouble is None:
            return False, False, 0.0
        if trouble.until > now:
            return True, False, trouble.until
        return (True, True, now) if trouble.read or trouble.stale else (False, False, 0.0)


def pause(failures: int) -> float:
    """Return for how long to wait after so many failures in a row."""
    return min(RETRY_SECONDS_MAX, RETRY_SECONDS_MIN * 2.0 ** min(failures - 1, 16))
