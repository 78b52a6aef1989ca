"""All links by name, and by what comes back: streams, writes, requests to the authority, and deadlines on one heap.

Neighbours: `links` (routes by it), `contained_steps` (refreshes it after each step), `link` (says what it has out).
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

from gatelift.core.clusters.link import Link
from gatelift_kube.deciding.contained import Contained


@dataclass(slots=True)
class LinkIndex:
    """`streams`: the cluster of each that is open. A link's deadline is looked at when somebody asks."""

    contained: Contained[str]
    links: dict[str, Link] = field(default_factory=dict)
    streams: dict[int, str] = field(default_factory=dict)
    _writes: dict[int, str] = field(default_factory=dict)
    _certificates: dict[int, str] = field(default_factory=dict)
    _heap: list[tuple[float, str]] = field(default_factory=list)
    _queued: dict[str, float | None] = field(default_factory=dict)
    _moved: dict[str, Link] = field(default_factory=dict)

    def each(self) -> list[Link]:
        """Return all links, by name."""
        return [self.links[name] for name in sorted(self.links)]

    def of_stream(self, stream_id: int) -> Link | None:
        """Return whose stream this is."""
        return self.links.get(self.streams.get(stream_id, ""))

    def refresh(self, link: Link) -> None:
        """Refresh what is kept of a link: its write, its certificate requests; its deadline when somebody asks."""
        if link.record.write_id is not None:
            self._writes[link.record.write_id] = link.name
        for request_id in link.certificate_requests:
            self._certificates[request_id] = link.name
        self._moved[link.name] = link

    def owns_write(self, write_id: int) -> bool:
        """Say whether a link waits for the outcome of this write."""
        return write_id in self._writes

    def take_write(self, write_id: int) -> Link | None:
        """Return whose write this is, once."""
        return self.links.get(self._writes.pop(write_id, ""))

    def take_certificate(self, request_id: int) -> Link | None:
        """Return whose request to the authority this is, once."""
        return self.links.get(self._certificates.pop(request_id, ""))

    def forget_writes(self) -> None:
        """Wait for no write any more: the lead is lost."""
        self._writes.clear()

    def next_deadline(self, now: float) -> float | None:
        """Return the moment at which a link has something to do."""
        self._queue_moved(now)
        while self._heap and self._stale(*self._heap[0]):
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def take_due(self, now: float) -> list[str]:
        """Return whose deadline has passed, once."""
        self._queue_moved(now)
        due = set()
        while self._heap and self._heap[0][0] <= now:
            due.add(heapq.heappop(self._heap)[1])
        for name in due:
            self._queued.pop(name, None)
        return sorted(due)

    def _queue_moved(self, now: float) -> None:
        """Note the deadlines of all links that something happened to, which several events may have done."""
        for name, link in self._moved.items():
            deadline = self._deadline(link, now)
            if self._queued.get(name) != deadline:
                self._queued[name] = deadline
                if deadline is not None:
                    heapq.heappush(self._heap, (deadline, name))
        self._moved.clear()

    def _deadline(self, link: Link, now: float) -> float | None:
        """Return when a link has something to do; where that raises it is looked at after its rest."""
        try:
            return link.next_deadline()
        except Exception as error:  # noqa: BLE001 (containment: one cluster keeps no other from its leases)
            return self.contained.failed(f"deadline of {link.name}", error, now).again_at

    def _stale(self, moment: float, name: str) -> bool:
        return self._queued.get(name) != moment
