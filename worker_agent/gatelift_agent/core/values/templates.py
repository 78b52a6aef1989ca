"""Specs that the manager sent, by hash. They travel once a session window and are referred to afterwards."""

from __future__ import annotations

import hashlib

BYTES_MAX = 64 * 1024 * 1024
"""Kept at once: ten thousand different specs of 6 KB. The least recently used go first; a commit that misses one is
refused with TemplateMissing and its next attempt brings it again."""


class Templates:
    """Bounded store of specs."""

    __slots__ = ("_bytes", "_kept", "_limit")

    def __init__(self, limit: int = BYTES_MAX) -> None:
        self._kept: dict[str, bytes] = {}
        self._bytes = 0
        self._limit = limit

    def put(self, name: str, content: bytes) -> bool:
        """Keep a spec; False, and nothing is kept, when the content is not what the hash says."""
        if hashlib.sha256(content).hexdigest() != name:
            return False
        self._bytes -= len(self._kept.pop(name, b""))
        self._kept[name] = content
        self._bytes += len(content)
        while self._bytes > self._limit and len(self._kept) > 1:
            self._bytes -= len(self._kept.pop(next(iter(self._kept))))
        return True

    def get(self, name: str) -> bytes | None:
        """Return a spec and count it as used, None when it is not kept."""
        content = self._kept.pop(name, None)
        if content is not None:
            self._kept[name] = content
        return content

    def clear(self) -> None:
        """Forget all specs: a new session sends them anew."""
        self._kept.clear()
        self._bytes = 0
