"""Counters and histograms that are plain numbers until somebody scrapes them; both ends' `metrics` are made of them.

The library's own take a lock, look labels up and compare bucket by bucket at each step: that is for threads. These
belong to one event loop, which counts thousands of times a second and is asked every few seconds. Gauges, which are set
when they are asked for, are the library's.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate

from prometheus_client import CollectorRegistry, Metric
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

Labels = tuple[str, ...]


class Counts(Collector):
    """One counter, or one for each combination of labels that was counted. One without labels is 0 from the start."""

    def __init__(self, name: str, text: str, labels: Sequence[str] = (), *, registry: CollectorRegistry) -> None:
        self._name, self._text, self._labels = name, text, tuple(labels)
        self._counts: dict[Labels, int] = {} if labels else {(): 0}
        registry.register(self)

    def add(self, *labels: str) -> None:
        """Count one, under values of the labels in their order."""
        self._counts[labels] = self._counts.get(labels, 0) + 1

    def collect(self) -> Iterator[Metric]:
        """Yield what was counted."""
        family = CounterMetricFamily(self._name, self._text, labels=self._labels)
        for labels, count in self._counts.items():
            family.add_metric(labels, count)
        yield family


class Spread:
    """How many of what was seen were at most as large as each bound, and their sum."""

    __slots__ = ("bounds", "cells", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.cells = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def see(self, amount: float) -> None:
        """Count one."""
        self.cells[bisect_left(self.bounds, amount)] += 1
        self.sum += amount


class Spreads(Collector):
    """A histogram for each combination of labels that was seen."""

    def __init__(
        self, name: str, text: str, labels: Sequence[str] = (), *, bounds: Sequence[float], registry: CollectorRegistry
    ) -> None:
        """`bounds` are the upper ends of the buckets, rising, without infinity."""
        self._name, self._text, self._labels = name, text, tuple(labels)
        self._bounds = tuple(bounds)
        self._spreads: dict[Labels, Spread] = {} if labels else {(): Spread(self._bounds)}
        registry.register(self)

    def of(self, *labels: str) -> Spread:
        """Return the one under values of the labels in their order; it may be kept."""
        found = self._spreads.get(labels)
        if found is None:
            found = self._spreads[labels] = Spread(self._bounds)
        return found

    def collect(self) -> Iterator[Metric]:
        """Yield what was seen."""
        family = HistogramMetricFamily(self._name, self._text, labels=self._labels)
        names = [*map(floatToGoString, self._bounds), "+Inf"]
        for labels, spread in self._spreads.items():
            family.add_metric(labels, list(zip(names, accumulate(spread.cells), strict=True)), spread.sum)
        yield family
