"""Who leads, decided from one Lease object. Pure: `now` is our own monotonic clock, in seconds.

The Lease's times are written for people. What decides is how long its record has not changed as seen by our own clock,
and, for the holder, when it sent the renewal that succeeded. A Lease that is not there is waited for as one that was
seen to change at that moment: only one that was given back is free at once. Each acquisition raises `leaseTransitions`,
so the term grows with every change of holder, also when the same process comes back after a lapse.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from typing import Any

from gatelift_kube import timestamps
from gatelift_kube.objects.core import Lease
from gatelift_kube.resources import LEASE, ObjectKey

NEVER = -math.inf


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
class Standing:
    """Whether we lead: `term` is 0 and `valid_until` in the past where we do not."""

    term: int = 0
    valid_until: float = NEVER

    def leads(self, now: float) -> bool:
        """Return whether the lease is still ours by our own clock."""
        return now < self.valid_until


class Step(enum.Enum):
    """What to do next."""

    CREATE = "create"
    TAKE = "take"
    RENEW = "renew"
    WAIT = "wait"


class Election:
    """What one candidate knows. `floor` is a term that ours must exceed (the highest that anybody has recorded)."""

    def __init__(self, key: ObjectKey, identity: str, times: ElectionTimes, *, floor: int = 0) -> None:
        self.key = key
        self.identity = identity
        self.times = times
        self.standing = Standing()
        self._floor = floor
        self._lease: Lease | None = None
        self._seen_since = NEVER
        self._vacant_from = NEVER

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
        self._lease = lease
        if lease is not None:
            self._floor = max(self._floor, lease.spec.lease_transitions or 0)

    def raise_floor(self, term: int) -> None:
        """Never use a term at or below `term`: somebody has recorded it."""
        self._floor = max(self._floor, term)

    def step(self, now: float) -> Step:
        """Return what to do, given what was read last."""
        if self._lease is None:
            return Step.CREATE if now >= self._vacant_from else Step.WAIT
        if self.standing.leads(now) and self._is_ours():
            return Step.RENEW
        return Step.TAKE if now >= self.free_at() else Step.WAIT

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
        if not self._is_ours():
            return f"the Lease is held by {self.holder or 'nobody'}"
        if not self.standing.leads(now):
            return f"the Lease was not renewed within {self.times.renew_seconds:g} s"
        return ""

    def acquired(self, lease: Lease, sent_at: float, now: float) -> None:
        """Take in that our create or take succeeded; the request was sent at `sent_at`."""
        self.observe(lease, now)
        self.standing = Standing(lease.spec.lease_transitions or 0, sent_at + self.times.renew_seconds)

    def renewed(self, lease: Lease, sent_at: float, now: float) -> None:
        """Take in that our renewal succeeded."""
        self.observe(lease, now)
        self.standing = Standing(self.standing.term, sent_at + self.times.renew_seconds)

    def resigned(self) -> None:
        """Lead no more, from now on."""
        self.standing = Standing()

    def body(self, step: Step, wall: float) -> dict[str, Any]:
        """Return the document to create, or the merge patch that takes or renews, on the version last read."""
        moment = timestamps.to_micro_text(wall)
        spec: dict[str, Any] = {
            "holderIdentity": self.identity,
            # Whole seconds, upwards: others must wait at least as long as we say.
            "leaseDurationSeconds": max(1, math.ceil(self.times.lease_seconds)),
            "renewTime": moment,
        }
        if step is not Step.RENEW:
            spec |= {"acquireTime": moment, "leaseTransitions": self._floor + 1}
        if self._lease is None:
            metadata = {"name": self.key.name, "namespace": self.key.namespace}
            return {"apiVersion": LEASE.api_version, "kind": LEASE.kind, "metadata": metadata, "spec": spec}
        return {"metadata": self._preconditions(), "spec": spec}

    def release_body(self, wall: float) -> dict[str, Any] | None:
        """Return the merge patch that gives the lease back, or None where there is nothing to give."""
        if self._lease is None or not self._is_ours():
            return None
        spec = {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": timestamps.to_micro_text(wall)}
        return {"metadata": self._preconditions(), "spec": spec}

    def _preconditions(self) -> dict[str, str]:
        return {"resourceVersion": self._lease.metadata.resource_version} if self._lease is not None else {}

    def _is_ours(self) -> bool:
        lease = self._lease
        return (
            lease is not None
            and lease.spec.holder_identity == self.identity
            and (lease.spec.lease_transitions or 0) == self.standing.term
        )
