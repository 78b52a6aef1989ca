"""The leader's counter: how a record proves that it is the newest (H19), and the seal by which it comes back. Pure.

The leader raises a counter with every renewal of its Lease, and every grant carries the number that was written last
before it, sealed. So what an agent brings back is at most what the Lease says, unless the Lease was restored from a
backup. Time alone would hide that, since a restored leader counts on: so the Lease also lists who took over, at which
number, and the seal names who granted. A grant of somebody who is not listed, or of one after the next had taken over,
is of a history that the record does not know. Neighbours: `links` (who grants and asks), `deciding.election` (who
counts).
"""

from __future__ import annotations

import enum
import hashlib
import hmac
from dataclasses import dataclass, field

from gatelift.core.api.events import LeadershipGained
from gatelift_kube.deciding.election import Tenure, holder_digest
from gatelift_wire.sessions.leases import UNCOUNTED, Sealed

_MAC_BYTES = 32
_HOLDER_BYTES = 8
_ORIGIN_BYTES = 8
_PURPOSE = b"gatelift.dev/lease-counter/1"


class Proof(enum.Enum):
    """What a greeting says about our own record."""

    SILENT = "silent"
    """It brings no counter: an agent that had no grant yet, or lost what it kept."""
    OLDER = "older"
    """What it brings was granted in the history that the record knows."""
    RESTORED = "restored"
    """What it brings was granted by us, and the record does not know of it: the record is not the newest."""
    FORMER = "former"
    """It was granted by us, before the first of those who are listed: nobody can tell any more what that proves."""
    UNVERIFIED = "unverified"
    """The seal is not ours: it says something about that cluster only."""


@dataclass(slots=True)
class Counter:
    """What the present leader knows: the key of the seals, who it is, and what stands in the Lease."""

    key: bytes = field(default=b"", repr=False)
    origin: str = ""
    holder: str = ""
    recorded: int = 0
    tenures: tuple[Tenure, ...] = ()

    @classmethod
    def of(cls, event: LeadershipGained, origin: str) -> Counter:
        """Return what a leader knows when it takes over."""
        return cls(event.seal_key, origin, event.holder, event.counter, event.tenures)

    def has_recorded(self, counter: int) -> None:
        """Take what the Lease has counted since; an older reading of it says nothing."""
        self.recorded = max(self.recorded, counter)

    def sealed(self, cluster: str) -> Sealed:
        """Return the counter that is recorded, sealed for a grant to `cluster`; `UNCOUNTED` where nobody counts."""
        if not (self.key and self.recorded):
            return UNCOUNTED
        holder = bytes.fromhex(holder_digest(self.holder))
        return Sealed(self.recorded, self._origin() + holder + self._mac(cluster, holder, self.recorded))

    def judge(self, cluster: str, sealed: Sealed) -> Proof:
        """Say what a counter proves that an agent of `cluster` brings back."""
        counter, seal = sealed
        if not self.key or not (counter or seal):
            return Proof.SILENT
        if len(seal) > _ORIGIN_BYTES and seal[:_ORIGIN_BYTES] != self._origin():
            return Proof.SILENT  # another management cluster's: it says nothing about ours
        seal = seal[_ORIGIN_BYTES:]
        holder, mac = seal[:_HOLDER_BYTES], seal[_HOLDER_BYTES:]
        if len(mac) != _MAC_BYTES or not hmac.compare_digest(mac, self._mac(cluster, holder, counter)):
            return Proof.UNVERIFIED
        return self._place(holder.hex(), counter)

    def _place(self, holder: str, counter: int) -> Proof:
        """Find a grant in the list of those who led."""
        ends = [*(tenure.found for tenure in self.tenures[1:]), self.recorded]
        for tenure, end in zip(self.tenures, ends, strict=False):
            if tenure.holder == holder:
                return Proof.OLDER if counter <= end else Proof.RESTORED
        if not self.tenures or counter > self.tenures[0].found:
            return Proof.RESTORED
        return Proof.FORMER

    def _origin(self) -> bytes:
        return hashlib.sha256(self.origin.encode()).digest()[:_ORIGIN_BYTES]

    def _mac(self, cluster: str, holder: bytes, counter: int) -> bytes:
        said = b"\0".join((_PURPOSE, self.origin.encode(), cluster.encode(), holder.hex().encode(), b"%d" % counter))
        return hmac.new(self.key, said, hashlib.sha256).digest()
