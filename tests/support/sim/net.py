"""The network of a simulation: streams between agents and managers that delay, stall, break halves apart and repeat.

A stream is two queues of frames, each in order. When it breaks, its two ends learn of that at different times, and
what was under way may still arrive, late, beside the frames of the stream that follows it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from support.sim.clock import Timeline
from support.sim.faults import Faults

NOTICE_SECONDS_MAX = 30.0
"""An end that hears nothing notices a dead stream by its keepalive within this."""
Deliver = Callable[[Any], None]


@dataclass
class End:
    """One end of a stream: how it takes frames, and the end of the stream."""

    frame: Deliver
    closed: Callable[[str], None]
    over: bool = False
    last_at: float = 0.0
    """When the last frame for this end arrives: the next one not before."""


@dataclass
class SimStream:
    """One stream."""

    cluster: str
    agent: End
    manager: End
    agent_name: str = ""
    broken: bool = False
    stalled: list[tuple[End, Callable[[], None]]] = field(default_factory=list)


class SimNet:
    """All streams, and which clusters are cut off."""

    def __init__(self, timeline: Timeline, faults: Faults) -> None:
        self.cut: set[str] = set()
        """Clusters, and single agents, that reach no manager."""
        self._severed: set[str] = set()
        self._time = timeline
        self._faults = faults
        self._streams: list[SimStream] = []

    def join(self, stream: SimStream) -> None:
        """Take a stream that was opened."""
        self._streams = [each for each in self._streams if not (each.agent.over and each.manager.over)]
        self._streams.append(stream)

    def send(self, stream: SimStream, to: End, frame: Any) -> None:
        """Put a frame on its way."""
        if stream.broken:
            return
        if self._faults.strikes("stream_break", self._time):
            self.break_off(stream)
            return
        self._deliver(stream, to, lambda: to.frame(frame))
        if self._faults.strikes("frame_twice", self._time):
            self._deliver(stream, to, lambda: to.frame(frame))

    def _deliver(self, stream: SimStream, to: End, act: Callable[[], None]) -> None:
        slow = self._faults.strikes("frame_slow", self._time)
        at = max(to.last_at, self._time.now + self._time.between(0.0005, 4.0 if slow else 0.02))
        to.last_at = at

        def arrive() -> None:
            if {stream.cluster, stream.agent_name} & self.cut:
                stream.stalled.append((to, act))
            else:
                act()

        self._time.after(at - self._time.now, arrive)

    def hang_up(self, stream: SimStream, by: End) -> None:
        """End a stream from one end: the other reads what is under way, and then the end."""
        if by.over:
            return
        by.over = True
        other = stream.manager if by is stream.agent else stream.agent
        if not stream.broken:
            self._deliver(stream, other, lambda: self._close(other, "the peer hung up"))
        stream.broken = True
        self._notice(other)

    def die(self, stream: SimStream, by: End) -> None:
        """End a stream because one end's process died."""
        by.over = True
        stream.broken = True
        self._notice(stream.manager if by is stream.agent else stream.agent)

    def break_off(self, stream: SimStream) -> None:
        """Break a stream: each end notices by itself."""
        stream.broken = True
        self._time.say("net", f"a stream of {stream.cluster} breaks")
        self._notice(stream.agent)
        self._notice(stream.manager)

    def _notice(self, end: End) -> None:
        late = self._time.chance(0.3)
        after = self._time.between(0.001, NOTICE_SECONDS_MAX if late else 0.2)
        self._time.after(max(after, end.last_at - self._time.now), lambda: self._close(end, "the stream broke"))

    def _close(self, end: End, text: str) -> None:
        if not end.over:
            end.over = True
            end.closed(text)

    def break_all(self, cluster: str) -> None:
        """Break all streams of a cluster."""
        for stream in self._streams:
            if stream.cluster == cluster and not stream.broken:
                self.break_off(stream)

    def partition(self, cluster: str) -> None:
        """Let nothing of a cluster, or of a single agent, through; frames stall, and the ends notice after a while."""
        self.cut.add(cluster)
        for stream in self._streams:
            if cluster in {stream.cluster, stream.agent_name} and self._time.chance(0.7):
                self._notice(stream.agent)
                self._notice(stream.manager)

    def sever(self, cluster: str) -> None:
        """Let nothing through, for ever."""
        self._severed.add(cluster)
        self.partition(cluster)

    def mend(self, cluster: str) -> None:
        """Let frames through again: what stalled comes now, on streams that live; some of it on others too."""
        if cluster in self._severed:
            return
        self.cut.discard(cluster)
        for stream in self._streams:
            stalled, stream.stalled = stream.stalled, []
            if cluster not in {stream.cluster, stream.agent_name} or {stream.cluster, stream.agent_name} & self.cut:
                stream.stalled = stalled
                continue
            for _, act in stalled:
                act()
