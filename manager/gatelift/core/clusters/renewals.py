"""Renewals of an agent's certificate over its stream: which one is wanted, and when the authority is asked. Pure.

Neighbours: `conversation` (hears the request), `link` (hands out the answer).
"""

from __future__ import annotations

from gatelift.core.api.commands import IssueCertificate
from gatelift.core.clusters.linking import Effects, Leading
from gatelift_kube.objects.gatelift import WorkerCluster

CERTIFICATE_SECONDS = 1.0
"""A certificate is signed for one cluster at most this often: agents renew in hours, tests in seconds."""


class Renewals:
    """Those of one cluster; one at a time, since signing costs us and not the agent."""

    def __init__(self, name: str, leading: Leading) -> None:
        self._name = name
        self._leading = leading
        self._not_before = 0.0
        self._asked: set[int] = set()
        self._wanted = b""

    @property
    def asked(self) -> frozenset[int]:
        """Requests to the authority that are not answered yet."""
        return frozenset(self._asked)

    def due(self) -> float | None:
        """Return when `ask` has something to do."""
        return self._not_before if self._wanted and not self._asked else None

    def want(self, request: bytes) -> None:
        """Take a request; the latest counts. b"": the session that it came in is over."""
        self._wanted = request

    def answered(self, request_id: int) -> None:
        """Forget a request to the authority."""
        self._asked.discard(request_id)

    def ask(self, found: WorkerCluster | None, now: float, out: Effects) -> None:
        """Have a certificate signed for the key that was approved."""
        wanted = self._wanted
        if not wanted or self._asked or now < self._not_before or found is None:
            return
        self._wanted, self._not_before = b"", now + CERTIFICATE_SECONDS
        # Negative: adapters number enrolment requests upwards, so the two never meet.
        request_id = -self._leading.ids.take()
        self._asked.add(request_id)
        out.commands.append(
            IssueCertificate(
                request_id=request_id, cluster=self._name, request=wanted, key_digest=found.status.key_digest
            )
        )
