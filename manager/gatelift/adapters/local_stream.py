"""The stream between the manager and the agent of `local`: frames handed over as values, in one process.

Stream ids are negative, so that they never meet those of the gRPC server.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Protocol

from gatelift.core.api.commands import CloseAgentStream, SendToAgent
from gatelift.core.api.events import AgentFrameArrived, AgentStreamClosed, AgentStreamOpened, Event
from gatelift_kube.objects.gatelift import LOCAL_CLUSTER
from gatelift_wire.values.messages import Frame


class LocalPeer(Protocol):
    """The agent's end."""

    def frame_arrived(self, frame: Frame) -> None:
        """Take a frame from the manager."""
        ...

    def closed(self, text: str) -> None:
        """Take that the manager closed the stream."""
        ...


class LocalStream:
    """At most one stream at a time; dialling again ends the one before."""

    def __init__(self, post: Callable[[Event], None]) -> None:
        self._post = post
        self._ids = itertools.count(-1, -1)
        self._stream_id = 0
        self._peer: LocalPeer | None = None

    def open(self, peer: LocalPeer) -> None:
        """Connect the agent."""
        self.hang_up()
        self._stream_id, self._peer = next(self._ids), peer
        self._post(AgentStreamOpened(stream_id=self._stream_id, cluster=LOCAL_CLUSTER, key_digest=""))

    def to_manager(self, frame: Frame) -> None:
        """Hand a frame to the manager; after the stream ended it goes nowhere, as on a wire."""
        if self._peer is not None:
            self._post(AgentFrameArrived(stream_id=self._stream_id, frame=frame))

    def hang_up(self) -> None:
        """End the stream from the agent's side."""
        if self._peer is not None:
            self._peer = None
            self._post(AgentStreamClosed(stream_id=self._stream_id, text="the local agent hung up"))

    def send(self, command: SendToAgent) -> bool:
        """Take a frame that is for this stream; False when it is for another."""
        if command.stream_id >= 0:
            return False
        if command.stream_id == self._stream_id and self._peer is not None:
            self._peer.frame_arrived(command.frame)
        return True

    def close(self, command: CloseAgentStream) -> bool:
        """Close this stream; False when the command is for another."""
        if command.stream_id >= 0:
            return False
        if command.stream_id == self._stream_id and self._peer is not None:
            peer, self._peer = self._peer, None
            peer.frame_arrived(Frame(session=0, control=(command.close,)))
            peer.closed(command.close.text)
            self._post(AgentStreamClosed(stream_id=self._stream_id, text=command.close.text))
        return True
