"""Errors of the wire. Pure. Raised by codec, identity and session; adapters turn them into a `BadFrame` event.

Each text is one line that names the field, the rule and what came instead.
"""

from __future__ import annotations

from gatelift_wire.values.refusals import CloseReason


class WireError(Exception):
    """Base of all errors of this package."""


class WireViolation(WireError):  # noqa: N818 - a rule was broken: the word people read
    """Something that came, or was about to be sent, breaks a rule of the wire. Ends one session and nothing else."""

    reason = CloseReason.PROTOCOL_VIOLATION

    def __init__(self, field: str, rule: str) -> None:
        super().__init__(f"{field}: {rule}")
        self.field = field
        self.rule = rule

    def within(self, head: str) -> WireViolation:
        """Return the same violation with its field's path begun by `head`: `[3].name` in `objects`, and so on."""
        tail = self.field
        return type(self)(head + tail if not tail or tail.startswith("[") else f"{head}.{tail}", self.rule)


class TooLarge(WireViolation):
    """A limit of size or count was exceeded."""

    reason = CloseReason.TOO_LARGE


class IllegalUse(WireError):  # noqa: N818 - as above: not a fault of the wire, a wrong call
    """The end's own core asked for something that its session's state does not allow. Nothing was changed."""
