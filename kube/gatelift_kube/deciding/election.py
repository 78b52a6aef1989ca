"""Who leads, decided from one Lease object. Pure: `now` is our own monotonic clock, in seconds.

The Lease's times are written for people. What decides is how long its record has not changed as seen by our own clock,
and, for the holder, when it sent the renewal that succeeded. A Lease that is not there is waited for as one that was
seen to change at that moment: only one that was given back is free at once. Each acquisition raises `leaseTransitions`,
so the term grows with every change of holder, also when the same process comes back after a lapse.

A Lease may also count (`counts`): each create, take and renewal raises a number that stands in an annotation, beside
the list of who took over at which number. So a Lease that was restored from a backup can be told from one that was not,
by whoever brings back a later number; and who takes over knows whether it saw the number grow a moment ago, or found a
Lease that may be old. What its holder has found is handed on: the Lease also says, by its term, whether that lead is
*settled*, and who follows one that was not is as unsure of what it finds as that one was. A Lease that was deleted is
made anew with a number that goes on, by a candidate that saw it a moment before it was gone and has looked there ever
since: nobody restores a cluster between two looks.
"""

from __future__ import annotations

import enum
import hashlib
import math
from dataclasses import dataclass, replace
from typing import Any

from gatelift_kube.objects.core import Lease
from gatelift_kube.objects.versions import is_older
from gatelift_kube.values import timestamps
from gatelift_kube.values.numbers import signed
from gatelift_kube.values.plain_text import plain
from gatelift_kube.values.resources import LEASE, ObjectKey

NEVER = -math.inf
ANNOTATION_COUNTER = "gatelift.dev/lease-counter"
"""How often the Lease was written by those who held it."""
ANNOTATION_HOLDERS = "gatelift.dev/lease-holders"
"""Who took over, and at which number, oldest first: `DIGEST:NUMBER`, separated by blanks."""
ANNOTATION_SETTLED = "gatelift.dev/lease-settled"
"""The term whose holder is sure that what it leads by is the newest; another term's holder, and nobody, is not."""
ANNOTATION_TERM = "gatelift.dev/lease-term"
"""The term that its last holder took it in, beside `leaseTransitions`: where that was edited, it goes on from here."""
TENURES_MAX = 64
"""Holders that are listed: some weeks of daily restarts, in 2 KB."""
COUNTER_MAX = 2**62
"""Read up to here: far above what is written from a number that is believed, also by recoveries from edited ones."""
BELIEVED_MAX = 2**61
"""Who takes over believes no number above this: what is counted on from it, for ever, can still be read."""
FLOOR_MAX = COUNTER_MAX - 2**54
"""Recoveries have it counted on from no higher number: what is counted on from there can be read, too."""
TERM_MAX = 2**31 - 1
"""`leaseTransitions` has 32 bits: an API server refuses every take with a higher one."""
TERM_BELIEVED_MAX = 2**30
"""Believed of whoever says so; with a takeover a second it takes 34 years. Above it only a holder's own mark counts."""
SHOWN_CHARACTERS_MAX = 40
"""Of what stands in place of a number, in texts for people."""
COUNTED_MAX = 2**53
"""Writes since the last one took over that nobody can have done: at ten a second they take 28 million years."""
UNANSWERED_WRITES = 100
"""Writes of a holder that landed without an answer in the ten seconds until it leads no more: a few at most."""
UNSEEN_WRITES = 16
"""How many writes of a Lease may have gone unseen between two looks at it: its holder tries at most ten times in twice
the retry time, as it tries again after a quarter of that, and somebody may have taken it over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectionTimes:
    """Seconds. The holder trusts itself for `renew_seconds` after a renewal was sent, others wait `lease_seconds`.

    The 5 s between them (defaults of Kubernetes' own components) hold a slow write and a difference of clock rates.
    """

    lease_seconds: float = 15.0
    renew_seconds: float = 10.0
    retry_seconds: float = 2.0

    def __post_init__(self) -> None:
        if not self.lease_seconds > self.renew_seconds > 2 * self.retry_seconds > 0:
            raise ValueError(
                "leader election: leaseSeconds must exceed renewSeconds, and that twice retrySeconds, got "
                f"{self.lease_seconds:g}, {self.renew_seconds:g}, {self.retry_seconds:g}"
            )


@dataclass(frozen=True, slots=True)
class Tenure:
    """Who held the Lease, by a digest of its identity, and the number that it found when it took over."""

    holder: str
    found: int


@dataclass(frozen=True, slots=True)
class LeadStanding:
    """Whether we lead: `term` is 0 and `valid_until` in the past where we do not.

    `counter` is the number that stands in the Lease, `tenures` who took over, the last of them we. `warm`: this process
    saw the number grow a moment before it took over, and the Lease said that who led before was settled; else the
    Lease, or what that one led by, may be of long ago.
    """

    term: int = 0
    valid_until: float = NEVER
    counter: int = 0
    tenures: tuple[Tenure, ...] = ()
    warm: bool = False

    def leads(self, now: float) -> bool:
        """Return whether the lease is still ours by our own clock."""
        return now < self.valid_until


class ElectionStep(enum.Enum):
    """What to do next."""

    CREATE = "create"
    TAKE = "take"
    RENEW = "renew"
    WAIT = "wait"


class Election:
    """What one candidate knows. `floor` is a term that ours must exceed (the highest that anybody has recorded).

    `counts`: the Lease counts, see above.
    """

    def __init__(
        self, key: ObjectKey, identity: str, times: ElectionTimes, *, floor: int = 0, counts: bool = False
    ) -> None:
        self.key = key
        self.identity = identity
        self.times = times
        self.standing = LeadStanding()
        self._floor = floor if floor <= TERM_BELIEVED_MAX else 0
        self._lease: Lease | None = None
        self._seen_since = NEVER
        self._vacant_from = NEVER
        self._counts = counts
        self._counter_floor = 0
        self._deleted: tuple[int, tuple[Tenure, ...]] | None = None
        self._grew_after = NEVER
        self._counted: int | None = None
        self._counted_at = NEVER
        self._written = 0
        self._is_older = False
        self._looked_at = NEVER
        self._warm = False
        self._settled: tuple[int, bool] | None = None
        self._went_back = ""
        self._edited = ""

    @property
    def holder(self) -> str:
        """Identity of the holder as last read; empty for none."""
        return (self._lease.spec.holder_identity or "") if self._lease is not None else ""

    def observe(self, lease: Lease | None, now: float) -> None:
        """Take in what was read. A record that changed in any way starts the wait anew."""
        version = lease.metadata.resource_version if lease is not None else ""
        known = self._lease.metadata.resource_version if self._lease is not None else ""
        if lease is None and (self._lease is not None or self._seen_since == NEVER):
            # Gone since the last look, or not there at the first one: somebody may have deleted it while it was held,
            # and its holder may not know yet. A first installation is not told apart from that, so it waits as well.
            self._vacant_from = now + self.times.lease_seconds
        if version != known or self._seen_since == NEVER:
            self._seen_since = now
        self._note_deletion(lease, now)
        self._note_count(lease, now)
        self._lease, self._looked_at = lease, now
        if lease is not None:
            self._floor = max(self._floor, believed_term(lease))

    def _note_count(self, lease: Lease | None, now: float) -> None:
        """Compare the number with the one seen before; one that nobody can have counted to is as none, not as 0."""
        known = self._lease
        before = self._counted if known is not None else None
        if lease is not None and known is not None and is_older(lease.metadata, known.metadata):
            self._is_older = True
        after = counter_of(lease) if _is_counted(lease) else None
        if after is None:
            if self._is_older and before is not None:
                self._outlived(lease, before)
            return
        if before is not None and after != before:
            # Some time after our last look at it. One that went back proves nothing.
            self._grew_after = self._counted_at if after > before else NEVER
            if after < before:
                self._outlived(lease, before)
        self._counted, self._counted_at = after, now

    def _outlived(self, lease: Lease | None, before: int) -> None:
        if self._counts and self._deleted is None:
            self._went_back = f"the Lease counts {_shown(lease)}, it counted {before}: was it restored?"

    def _note_deletion(self, lease: Lease | None, now: float) -> None:
        """Keep what a Lease counted that was deleted, as long as looks at it follow each other closely.

        Between two such looks it may be deleted, and no cluster be stopped, put back and started. A later look, or one
        that finds a Lease, has nothing to go on from but that.
        """
        if lease is not None or now - self._looked_at > 2 * self.times.retry_seconds:
            self._deleted = None
        elif self._lease is not None:
            self._deleted = _believable(self._lease) + UNSEEN_WRITES, tenures_of(self._lease)

    def raise_floor(self, term: int) -> None:
        """Never use a term at or below `term`: somebody has recorded it; what nobody can have come to is no term."""
        self._floor = max(self._floor, term if term <= TERM_BELIEVED_MAX else 0)

    def raise_counter(self, number: int) -> None:
        """Go on from `number` at least when the Lease is taken next."""
        self._counter_floor = max(self._counter_floor, min(number, FLOOR_MAX))

    def settle(self, term: int, *, settled: bool) -> None:
        """Have the Lease say so from the next renewal in that term on; until then it says what we took over (`warm`).

        May be called from another thread: what is said is replaced as a whole.
        """
        self._settled = (term, settled)

    def step(self, now: float) -> ElectionStep:
        """Return what to do, given what was read last."""
        if self._lease is None:
            return ElectionStep.CREATE if now >= self._vacant_from else ElectionStep.WAIT
        if self.standing.leads(now) and self._is_ours():
            return ElectionStep.RENEW
        return ElectionStep.TAKE if now >= self.free_at() else ElectionStep.WAIT

    def free_at(self) -> float:
        """Return when the lease may be taken; the past where nobody holds it.

        A record with our own identity is no exception: it may be a former life of ours, or a twin.
        """
        if self._lease is None:
            return self._vacant_from
        if not self.holder:
            return NEVER
        said = self._lease.spec.lease_duration_seconds or 0
        return self._seen_since + max(self.times.lease_seconds, float(said))

    def lost(self, now: float) -> str:
        """Return why we do not lead any more, or an empty text."""
        if self._lease is None:
            return "the Lease was deleted"
        if self._is_held_by_us() and not self._is_ours():
            return f"the Lease counts {_shown(self._lease)}, we wrote {self.standing.counter}: was it restored?"
        if self.holder == self.identity and not self._is_ours():
            term = self._lease.spec.lease_transitions or 0
            return f"the Lease is in term {term}, we took it in {self.standing.term}: was it edited, or restored?"
        if not self._is_ours():
            return f"the Lease is held by {self.holder or 'nobody'}"
        if not self.standing.leads(now):
            return f"the Lease was not renewed within {self.times.renew_seconds:g} s"
        return ""

    def went_back(self) -> str:
        """Return why nothing counts that a candidate remembers, or an empty text: it has outlived a restore.

        The Lease counts less than it did, or is gone since a look long ago. What this process knows of other objects
        may be of a history that is no more, and their versions may have gone back, so that watching on does not mend
        that. Gone since a look a moment before it was deleted: who saw that makes it anew, and counts on.
        """
        return self._went_back

    def acquired(self, lease: Lease, sent_at: float, now: float) -> None:
        """Take in that our create or take succeeded; the request was sent at `sent_at`."""
        self._counted = self._written  # in place of what it said before: that may have been edited
        self.observe(lease, now)
        self._is_older = False
        self.standing = LeadStanding(
            lease.spec.lease_transitions or 0,
            sent_at + self.times.renew_seconds,
            counter_of(lease),
            tenures_of(lease),
            self._warm,
        )

    def renewed(self, lease: Lease, sent_at: float, now: float) -> None:
        """Take in that our renewal succeeded; one that is answered with a lower number extends nothing (`lost`)."""
        self.observe(lease, now)
        if counter_of(lease) < self.standing.counter:
            return
        self._is_older = False
        until = sent_at + self.times.renew_seconds
        self.standing = replace(self.standing, valid_until=until, counter=counter_of(lease))

    def take_edited(self) -> str:
        """Return what people are told of a number in the Lease that no holder wrote, once; else an empty text."""
        edited, self._edited = self._edited, ""
        return edited

    def resigned(self) -> None:
        """Lead no more, from now on."""
        self.standing, self._went_back = LeadStanding(), ""

    def body(self, step: ElectionStep, wall: float, now: float = NEVER) -> dict[str, Any]:
        """Return the document to create, or the merge patch that takes or renews, on the version last read."""
        moment = timestamps.to_micro_text(wall)
        spec: dict[str, Any] = {
            "holderIdentity": self.identity,
            # Whole seconds, upwards: others must wait at least as long as we say.
            "leaseDurationSeconds": max(1, math.ceil(self.times.lease_seconds)),
            "renewTime": moment,
        }
        if step is not ElectionStep.RENEW:
            spec |= {"acquireTime": moment, "leaseTransitions": self._floor + 1}
            # As long as nobody takes over, plus two looks of ours at it: a moment ago.
            moved = now - self._grew_after <= self.times.lease_seconds + 2 * self.times.retry_seconds
            self._warm = moved and is_settled(self._lease)
        marks = {"annotations": self._count(step, now)} if self._counts else {}
        if self._lease is None:
            metadata = {"name": self.key.name, "namespace": self.key.namespace, **marks}
            return {"apiVersion": LEASE.api_version, "kind": LEASE.kind, "metadata": metadata, "spec": spec}
        return {"metadata": {**self._preconditions(), **marks}, "spec": spec}

    def _count(self, step: ElectionStep, now: float) -> dict[str, str]:
        """Return the annotations of the next write."""
        if step is ElectionStep.RENEW:
            # As many writes of ours may have landed unanswered, also below a number that cannot be read any more.
            most = self.standing.counter + UNANSWERED_WRITES
            found = self._noticed(min(counter_of(self._lease), most) if is_readable(self._lease) else most)
            return {ANNOTATION_COUNTER: str(found + 1), **self._settlement(self.standing.term, self._is_settled())}
        found, before = self._noticed(_believable(self._lease)), tenures_of(self._lease)
        self._notice_term()
        if (
            step is ElectionStep.CREATE
            and self._deleted is not None
            and now - self._looked_at <= 2 * self.times.retry_seconds
        ):
            found, before = self._deleted
        # Raised above all that a restored record does not know: who led before is of no account any more.
        before = before if self._counter_floor <= found else ()
        found = max(found, self._counter_floor)
        tenures = (*before, Tenure(holder_digest(self.identity), found))[-TENURES_MAX:]
        text = " ".join(f"{each.holder}:{each.found}" for each in tenures)
        self._written = found + 1
        counted = {ANNOTATION_COUNTER: str(found + 1), ANNOTATION_HOLDERS: text, ANNOTATION_TERM: str(self._floor + 1)}
        return {**counted, **self._settlement(self._floor + 1, self._warm)}

    def _noticed(self, believed: int) -> int:
        """Return the number that is believed of the Lease's; where it says another one, somebody has edited it."""
        if counter_of(self._lease) != believed or not is_readable(self._lease):
            said = _shown(self._lease)
            self._edited = (
                f"the Lease counts {said}, which no holder wrote: somebody edited it; counted on from {believed}"
            )
        return believed

    def _notice_term(self) -> None:
        """Tell of a term that no holder took the Lease in."""
        said = (self._lease.spec.lease_transitions or 0) if self._lease is not None else 0
        if self._lease is not None and said != believed_term(self._lease):
            text = f"the Lease is in term {said}, which nobody can have come to: somebody edited it"
            self._edited = f"{text}; {self._floor + 1} is next" + (f"; {self._edited}" if self._edited else "")

    def _is_settled(self) -> bool:
        """Say whether our own lead is: as we were told in this term, else as we took it over."""
        term, settled = self._settled or (0, False)
        return settled if term == self.standing.term else self.standing.warm

    def _settlement(self, term: int, settled: bool) -> dict[str, str]:
        """Return what the next write says of that; a Lease that never said so is not written for saying *no*."""
        written = self._lease is not None and ANNOTATION_SETTLED in self._lease.metadata.annotations
        return {ANNOTATION_SETTLED: str(term if settled else 0)} if settled or written else {}

    def release_body(self, wall: float) -> dict[str, Any] | None:
        """Return the merge patch that gives the lease back, or None where there is nothing to give."""
        if self._lease is None or not self._is_ours():
            return None
        spec = {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": timestamps.to_micro_text(wall)}
        return {"metadata": self._preconditions(), "spec": spec}

    def _preconditions(self) -> dict[str, str]:
        return {"resourceVersion": self._lease.metadata.resource_version} if self._lease is not None else {}

    def _is_ours(self) -> bool:
        if not self._is_held_by_us():
            return False
        if not is_readable(self._lease):
            return not self._is_older  # no holder wrote that, so no backup has it, but one of that very moment
        return counter_of(self._lease) >= self.standing.counter

    def _is_held_by_us(self) -> bool:
        lease = self._lease
        return (
            lease is not None
            and lease.spec.holder_identity == self.identity
            and (lease.spec.lease_transitions or 0) == self.standing.term
        )


def holder_digest(identity: str) -> str:
    """Return the short name of a holder in the list of those who took over: 16 hexadecimal digits."""
    return hashlib.sha256(identity.encode()).hexdigest()[:16]


def counter_of(lease: Lease | None) -> int:
    """Return the number that stands in a Lease; 0 without one, and where somebody wrote something else there."""
    return _number(lease.metadata.annotations.get(ANNOTATION_COUNTER, "")) if lease is not None else 0


def is_readable(lease: Lease | None) -> bool:
    """Say whether a Lease has no number, or one as holders write it; anything else was put there by somebody else."""
    text = lease.metadata.annotations.get(ANNOTATION_COUNTER) if lease is not None else None
    return text is None or str(_number(text)) == text


def believed_term(lease: Lease) -> int:
    """Return the term that a Lease has come to: what its holder marked, where it says what nobody can have come to."""
    said = lease.spec.lease_transitions or 0
    if 0 <= said <= TERM_BELIEVED_MAX:
        return said
    marked = _number(lease.metadata.annotations.get(ANNOTATION_TERM, ""))
    return marked if marked < TERM_MAX else 0


def _shown(lease: Lease | None) -> str:
    """Return what stands in a Lease as its number, for people."""
    text = lease.metadata.annotations.get(ANNOTATION_COUNTER) if lease is not None else None
    if text is None:
        return "nothing"
    return text if is_readable(lease) else f'"{plain(text, SHOWN_CHARACTERS_MAX)}"'


def _is_counted(lease: Lease | None) -> bool:
    """Say whether somebody can have come to the number of a Lease since those took over whom it lists."""
    found = [each.found for each in tenures_of(lease)]
    jump = found[-1] - found[-2] if len(found) > 1 else 0
    began = found[-1] if found else 0
    return is_readable(lease) and jump <= COUNTED_MAX and counter_of(lease) - began <= COUNTED_MAX


def _believable(lease: Lease | None) -> int:
    """Return the number of a Lease, 0 where nobody can have come to it."""
    number = counter_of(lease)
    return number if number <= BELIEVED_MAX and _is_counted(lease) else 0


def is_settled(lease: Lease | None) -> bool:
    """Say whether a Lease says that who holds it, or held it last, is settled: of another term it says nothing."""
    text = lease.metadata.annotations.get(ANNOTATION_SETTLED, "") if lease is not None else ""
    return lease is not None and 0 < _number(text) == (lease.spec.lease_transitions or 0)


def tenures_of(lease: Lease | None) -> tuple[Tenure, ...]:
    """Return who took over, oldest first; what somebody wrote there that is none is left out."""
    text = lease.metadata.annotations.get(ANNOTATION_HOLDERS, "") if lease is not None else ""
    parts = (part.partition(":") for part in text.split()[-TENURES_MAX:])
    return tuple(Tenure(holder, _number(found)) for holder, _, found in parts if _is_digest(holder))


def _is_digest(text: str) -> bool:
    return len(text) == 16 and all(letter in "0123456789abcdef" for letter in text)


def _number(text: str) -> int:
    number = signed(text)
    return number if number is not None and 0 <= number <= COUNTER_MAX else 0
