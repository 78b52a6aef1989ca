"""Leader election of a simulation: a Lease that changes by conditional writes, and candidates with clocks of their own.

The times are those of `deciding.election`: the holder trusts itself for `renew_seconds` from when it sent the
renewal, others wait `lease_seconds` from when they last saw it change.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gatelift_kube.deciding.election import NEVER, TENURES_MAX, UNSEEN_WRITES, ElectionTimes, Tenure, holder_digest
from gatelift_kube.objects.core import Lease, LeaseSpec
from gatelift_kube.objects.meta import ObjectMeta
from support.sim.clock import ProcessClock, Timeline

TIMES = ElectionTimes()


@dataclass
class SimLease:
    """One Lease object. `name`: its namespace and name, by which an agent's greeting says which one it leads by."""

    name: str = "gatelift-system/gatelift-agent"
    holder: str = ""
    term: int = 0
    version: int = 0
    counter: int = 0
    tenures: tuple[Tenure, ...] = ()
    settled: int = 0
    """The term whose holder has said that it is settled."""
    gone: bool = False
    """Somebody has deleted it: it is waited for as one that ran out (a first start of a simulation waits for none)."""

    @property
    def vacant(self) -> bool:
        """Say whether it was given back, or never was: it is taken at once."""
        return not self.holder and not self.gone

    def delete(self) -> None:
        """Delete the object; whoever holds it learns of that when it renews."""
        self.holder, self.term, self.counter, self.tenures, self.settled = "", 0, 0, (), 0
        self.version += 1
        self.gone = True

    def restore(self, copy: SimLease) -> None:
        """Come back from a backup, with the version that it had."""
        self.holder, self.term, self.counter, self.tenures = copy.holder, copy.term, copy.counter, copy.tenures
        self.version, self.gone, self.settled = copy.version, copy.gone, copy.settled


class SimElector:
    """One candidate, for the life of its process."""

    def __init__(
        self,
        timeline: Timeline,
        clock: ProcessClock,
        lease: SimLease,
        who: str,
        *,
        stands: Callable[[], bool],
        reaches: Callable[[], bool],
        gained: Callable[[int, float, bool], None],
        extended: Callable[[float], None],
        lost: Callable[[], None],
        outlives_no_restore: bool = False,
    ) -> None:
        """`outlives_no_restore`: its process ends when it is told `lost`, also one that did not lead."""
        self._outlives_no_restore = outlives_no_restore
        self.valid_until = 0.0
        self.term = 0
        self.over = False
        self._time = timeline
        self._clock = clock
        self._lease = lease
        self._who = who
        self._stands, self._reaches = stands, reaches
        self._gained, self._extended, self._lost = gained, extended, lost
        self._seen = -1
        self._seen_since = 0.0
        self._counted, self._looked_at = -1, NEVER
        if outlives_no_restore:  # it looks before it reads anything else
            self._counted, self._looked_at = lease.counter, clock.at(timeline.now)
        self._grew_after = NEVER
        self._deleted: tuple[int, tuple[Tenure, ...]] | None = None
        self._there: tuple[int, tuple[Tenure, ...]] | None = None
        self.counter, self.warm = 0, True
        self._settled = (0, False)
        self.tenures: tuple[Tenure, ...] = ()
        self.floors: Callable[[], tuple[int, int]] = lambda: (0, 0)
        timeline.after(timeline.between(0.05, 0.5), self._look)

    def leads(self) -> bool:
        """Say whether the lead is ours by our own clock."""
        return self.term > 0 and self._clock.at(self._time.now) < self.valid_until

    def read(self) -> Lease | None:
        """Return the Lease as a quorum read finds it."""
        lease = self._lease
        if lease.gone:
            return None
        namespace, _, name = lease.name.partition("/")
        meta = ObjectMeta(name=name, namespace=namespace, resource_version=str(lease.version))
        return Lease(metadata=meta, spec=LeaseSpec(holder_identity=lease.holder, lease_transitions=lease.term))

    def settle(self, term: int, *, settled: bool) -> None:
        """Have the Lease say so from the next renewal in that term on."""
        self._settled = (term, settled)

    def look_now(self) -> None:
        """Notice what a pause has done."""
        if self.term and not self.leads() and not self.over:
            self.term = 0
            self._lost()

    def _look(self) -> None:
        if self.over:
            return
        self._time.after(self._clock.lasts(TIMES.retry_seconds) * self._time.between(0.8, 1.2), self._look)
        if not self._stands():
            return
        self.look_now()
        if self.over or not self._reaches():
            return
        sent, version = self._clock.at(self._time.now), self._lease.version
        if self.term:
            self._time.after(self._time.between(0.001, 0.05), lambda: self._renew(sent, self.term))
            return
        if version != self._seen:
            self._seen, self._seen_since = version, sent
        if self._outlives_no_restore and self._went_back(sent):
            self._deposed()
            return
        if self._counted >= 0 and self._lease.counter != self._counted:
            self._grew_after = self._looked_at if self._lease.counter > self._counted else NEVER
        self._look_at(sent)
        if self._lease.vacant or sent >= self._seen_since + TIMES.lease_seconds:
            floors = self.floors()  # asked after it was found free; what is said from now on it does not know
            self._time.after(self._time.between(0.001, 0.05), lambda: self._take(sent, version, floors))

    def _went_back(self, sent: float) -> bool:
        """Say whether the Lease counts less than it did, or is gone since a look that was not a moment ago."""
        if self._lease.gone:
            return self._there is not None and sent - self._looked_at > 2 * TIMES.retry_seconds
        return self._lease.counter < self._counted

    def _look_at(self, sent: float) -> None:
        """Take what is there; of a Lease that is gone a candidate knows what it saw a moment before."""
        lease = self._lease
        if not lease.gone or sent - self._looked_at > 2 * TIMES.retry_seconds:
            self._deleted = None
        elif self._there is not None:
            self._deleted = self._there[0] + UNSEEN_WRITES, self._there[1]
        self._there = None if lease.gone else (lease.counter, lease.tenures)
        self._counted, self._looked_at = lease.counter, sent

    def _renew(self, sent: float, term: int) -> None:
        lease = self._lease
        if not self.over and term == self.term and lease.gone:
            self._look_at(self._clock.at(self._time.now))
            self._seen, self._seen_since = lease.version, self._looked_at
            self._deposed()
            return
        if self.over or term != self.term:
            return
        if lease.counter < self.counter:
            self._deposed()
            return
        if (lease.holder, lease.term) != (self._who, term):
            return
        lease.version += 1
        lease.counter += 1
        self.counter = lease.counter
        said, settled = self._settled
        lease.settled = term if (settled if said == term else self.warm) else 0
        self._look_at(self._clock.at(self._time.now))
        self.valid_until = sent + TIMES.renew_seconds
        self._extended(self.valid_until)

    def _deposed(self) -> None:
        self.term = 0
        self._lost()

    def _take(self, sent: float, version: int, floors: tuple[int, int]) -> None:
        lease = self._lease
        if self.over or lease.version != version:
            return
        seen = self._deleted if lease.gone else None
        vacant, lease.gone = lease.vacant, False
        was_settled = 0 < lease.settled == lease.term
        if seen is not None:
            lease.counter, lease.tenures = seen
        term, counter = floors
        lease.holder, lease.version, lease.term = self._who, version + 1, max(lease.term, term) + 1
        found = max(lease.counter, counter)
        tenure = Tenure(holder_digest(self._who), found)
        lease.tenures = (*(lease.tenures if found == lease.counter else ()), tenure)[-TENURES_MAX:]
        self.counter = lease.counter = found + 1
        self.tenures = lease.tenures
        moved = self._time.now - self._grew_after <= TIMES.lease_seconds + 2 * TIMES.retry_seconds
        self.warm = moved and was_settled
        lease.settled = lease.term if self.warm else 0
        self.term, self.valid_until = lease.term, sent + TIMES.renew_seconds
        self._time.say(self._who, f"leads with term {self.term}")
        self._gained(self.term, self.valid_until, vacant)
