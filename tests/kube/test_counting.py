"""Counters and histograms of our own say to a scraper what the library's say."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics, enable_created_metrics
from prometheus_client.exposition import generate_latest

from gatelift_kube.counting import Counts, Spreads

BOUNDS = (0.005, 0.1, 1.0, 2.5, 10240.0)
AMOUNTS = (0.0, 0.005, 0.0050001, 0.7, 1.0, 2.6, 20_000.0)


def test_a_scraper_reads_what_it_reads_of_the_library() -> None:
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    counts = Counts("made_total", "What was made", ["verb", "resource"], registry=ours)
    Counts("plain_total", "Never", registry=ours)
    spreads = Spreads("took_seconds", "How long", ["event"], bounds=BOUNDS, registry=ours)
    alone = Spreads("alone_seconds", "Without labels", bounds=BOUNDS, registry=ours)
    # When a series began is not told by ours.
    disable_created_metrics()  # type: ignore[no-untyped-call] # the library has no types for it
    try:
        counter = Counter("made_total", "What was made", ["verb", "resource"], registry=theirs)
        Counter("plain_total", "Never", registry=theirs)
        histogram = Histogram("took_seconds", "How long", ["event"], buckets=BOUNDS, registry=theirs)
        other = Histogram("alone_seconds", "Without labels", buckets=BOUNDS, registry=theirs)
        for verb, times in (("create", 1), ("patch", 3)):
            for _ in range(times):
                counts.add(verb, "pods")
                counter.labels(verb, "pods").inc()
        for event in ("Ticked", "ObjectSeen"):
            for amount in AMOUNTS:
                spreads.of(event).see(amount)
                histogram.labels(event).observe(amount)
        assert generate_latest(ours) == generate_latest(theirs)
        alone.of().see(3.0)
        other.observe(3.0)
        assert generate_latest(ours) == generate_latest(theirs)
    finally:
        enable_created_metrics()  # type: ignore[no-untyped-call] # as above
