"""Digests of parts of an object, small enough to be written on another one. Pure."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

DIGEST_DIGITS = 16
"""Of SHA-256. It tells an edit from none; nobody gains by a second template with the same digest."""


def digest(value: Any) -> str:
    """Return the digest of a JSON value, whatever the order of its fields."""
    return hashlib.sha256(msgspec.json.encode(value, order="sorted")).hexdigest()[:DIGEST_DIGITS]
