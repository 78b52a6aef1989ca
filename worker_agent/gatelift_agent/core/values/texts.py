"""Texts that go to the manager."""

from __future__ import annotations

from gatelift_wire.values import limits


def cut(text: str) -> str:
    """Return a text that the wire takes; API servers may say more than a condition holds."""
    data = text.encode(errors="replace")
    return text if len(data) <= limits.TEXT_MAX else data[: limits.TEXT_MAX - 4].decode(errors="ignore") + " ..."
