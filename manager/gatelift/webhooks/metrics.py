"""Prometheus metrics of the webhooks: how many reviews, how they were answered, how long that took. Decides nothing."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram

BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)
"""Seconds; every queued pod waits for two reviews, and the API server gives up after ten seconds."""


class WebhookMetrics:
    """One registry per daemon."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._reviews = Counter(
            "gatelift_webhook_reviews_total",
            "Reviews taken, by HTTP status: 200 is an answer (allowed or denied), anything else none",
            ["kind", "step", "status"],
            registry=self.registry,
        )
        self._seconds = Histogram(
            "gatelift_webhook_review_seconds",
            "Time from a review to its answer",
            ["kind", "step"],
            buckets=BUCKETS,
            registry=self.registry,
        )

    def taken(self, kind: str, step: str, status: int, seconds: float) -> None:
        """Count one review."""
        self._reviews.labels(kind, step, str(status)).inc()
        self._seconds.labels(kind, step).observe(seconds)
