"""Which of an agent's frames are worth taking apart: session and sequence are looked at before anything is made of it.

The session machine judges by the same rules (R6); but a frame of 4 MiB that it drops has been decoded by then. What is
known here is what was said on this very stream, in order. Pure. Neighbours: `agents_server`.
"""

from __future__ import annotations

import enum

from gatelift_wire.encoding.pieces import Header
from gatelift_wire.values import limits
from gatelift_wire.values.messages import Frame, Welcome
from gatelift_wire.values.violations import TooLarge, WireViolation

GREETING_BYTES_MAX = 128 * limits.KIBIBYTE
"""A frame before Welcome: the largest Hello has 82 KiB, a Close a text of 32."""


class Worth(enum.Enum):
    """What of a frame is decoded."""

    WHOLE = "whole"
    CONTROLS = "controls"
    """All its messages have come before: they are neither decoded nor delivered again."""
    NOTHING = "nothing"
    """It is of an earlier session."""


class StreamGate:
    """What is known of one stream."""

    __slots__ = ("_expected", "session")

    def __init__(self) -> None:
        self.session = 0
        """The session that was welcomed on this stream, 0 before."""
        self._expected: int | None = None

    def told(self, frame: Frame) -> None:
        """Take a frame that is being sent on the stream."""
        self.session = max(self.session, frame.session)
        for control in frame.control:
            if isinstance(control, Welcome):
                self._expected = control.received + 1 if control.resume else None

    def look(self, header: Header, size: int) -> Worth:
        """Say what of a frame of so many bytes is decoded. Raises `WireViolation` for one that cannot be."""
        if not self.session:
            if header.session or header.messages or header.controls != 1:
                raise WireViolation("frame", "the first on a stream must be a Hello of session 0, alone")
            if size > GREETING_BYTES_MAX:
                raise TooLarge("Frame", f"must have at most {GREETING_BYTES_MAX} bytes before Welcome, has {size}")
            return Worth.WHOLE
        if header.session < self.session:
            return Worth.NOTHING
        if header.session > self.session:
            raise WireViolation("session", f"must be {self.session}, is {header.session}")
        return self._numbered(header)

    def _numbered(self, header: Header) -> Worth:
        expected, after = self._expected, header.sequence + header.messages
        if expected is None:  # the first frame after a resync says where numbers begin
            expected = max(1, header.sequence)
        elif header.sequence > expected:
            raise WireViolation("sequence", f"must be {expected}, is {header.sequence}; messages between are missing")
        self._expected = max(expected, after)
        return Worth.CONTROLS if header.messages and after <= expected else Worth.WHOLE
