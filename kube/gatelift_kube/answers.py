"""Answers of HTTP/1.1 as they come over a connection, put together from the bytes. Pure; `connections` feeds it.

Only what an API server answers to requests of ours is understood: one answer at a time, its length given or in chunks
or until the end of the connection. Whatever is no such answer raises `BrokenAnswerError`, and the connection is over.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass

HEAD_BYTES_MAX = 64 * 1024
"""Status line and headers, or trailers: API servers send 400 bytes, proxies in between add a few hundred."""
CHUNK_LINE_BYTES_MAX = 1024
"""The line before a chunk holds its size; extensions are skipped."""

_STATUS = re.compile(rb"HTTP/1\.([01]) ([1-9][0-9]{2})(?: [^\r\n]*)?\Z")
_LENGTH = re.compile(rb"[0-9]{1,18}\Z")
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n]*)?\Z")
_WITHOUT_BODY = frozenset({204, 304})
_SWITCHING = 101


class BrokenAnswerError(Exception):
    """What came is no answer that can be read; one line."""


class TooLargeError(Exception):
    """The answer is larger than its reader takes."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back. `retry_after` is the header of that name, empty where it was not there."""

    status: int
    body: bytes
    retry_after: str = ""


class _Next(enum.Enum):
    """What the next line between chunks is."""

    SIZE = enum.auto()
    END_OF_CHUNK = enum.auto()
    TRAILER = enum.auto()


class AnswerReader:
    """Reads one answer. `feed` returns it once it is complete; then `reusable` says whether the connection goes on."""

    __slots__ = (
        "_begun",
        "_left",
        "_most",
        "_next",
        "_parts",
        "_retry_after",
        "_status",
        "_taken",
        "_trailers",
        "reusable",
    )

    def __init__(self, most: int) -> None:
        """Take a body of at most `most` bytes."""
        self.reusable = True
        self._most = most
        self._begun = b""  # of a head, a chunk line or a trailer whose end has not come
        self._status = 0
        self._retry_after = ""
        self._next: _Next | None = None  # None: the body does not come in chunks
        self._left = -1  # bytes of the body, or of the chunk, that are to come; -1: until the end
        self._trailers = 0
        self._parts: list[bytes] = []
        self._taken = 0

    def feed(self, data: bytes) -> Answer | None:
        """Take what came. Raises BrokenAnswerError, TooLargeError."""
        if self._begun:
            data, self._begun = self._begun + data, b""
        while not self._status:
            head, end, rest = data.partition(b"\r\n\r\n")
            if len(head) > HEAD_BYTES_MAX:
                raise BrokenAnswerError(f"its headers are longer than {HEAD_BYTES_MAX} bytes")
            if not end:
                self._begun = data
                return None
            self._take_head(head)
            data = rest
        if self._next is not None:
            return self._feed_chunks(data)
        if self._left < 0:
            self._keep(data)
            return None
        if len(data) > self._left:
            self.reusable = False  # something came unasked
            data = data[: self._left]
        self._left -= len(data)
        self._keep(data)
        return self._whole() if not self._left else None

    @property
    def begun(self) -> bool:
        """Whether anything of it has come."""
        return bool(self._status or self._begun)

    def end(self) -> Answer | None:
        """Take that the connection has ended: whole is what was to last until then, None: it ended too early."""
        self.reusable = False
        return self._whole() if self._status and self._next is None and self._left < 0 else None

    # --- head ------------------------------------------------------------------------------------------------------

    def _take_head(self, head: bytes) -> None:
        """Take status line and headers; an announcement (1xx) is passed over."""
        first, _, headers = head.partition(b"\r\n")
        found = _STATUS.match(first)
        if found is None:
            raise BrokenAnswerError("it does not begin as one of HTTP/1.1")
        status = int(found[2])
        if 100 <= status < 200 and status != _SWITCHING:
            return
        lowered = b"\r\n" + headers.lower()
        length, coding = _field(lowered, b"content-length"), _field(lowered, b"transfer-encoding")
        connection = _field(lowered, b"connection")
        if found[1] == b"0" or status == _SWITCHING or (connection is not None and b"close" in connection):
            self.reusable = False
        if status in _WITHOUT_BODY or status == _SWITCHING:
            self._left = 0
        elif coding is not None:
            if coding != b"chunked" or length is not None:
                raise BrokenAnswerError("the length of its body is not clear")
            self._next, self._left = _Next.SIZE, 0
        elif length is not None:
            if not _LENGTH.match(length):
                raise BrokenAnswerError("the length of its body is no number")
            self._left = int(length)
            if self._left > self._most:
                raise TooLargeError
        if status >= 300:
            self._retry_after = (_field(lowered, b"retry-after") or b"").decode("latin-1")
        self._status = status

    # --- body ------------------------------------------------------------------------------------------------------

    def _feed_chunks(self, data: bytes) -> Answer | None:
        at = 0
        while True:
            if self._left:
                part = data[at : at + self._left]
                at += len(part)
                self._left -= len(part)
                self._keep(part)
                if self._left:
                    return None
            end = data.find(b"\r\n", at)
            if end < 0:
                self._begun = data[at:]
                if len(self._begun) > CHUNK_LINE_BYTES_MAX:
                    raise BrokenAnswerError(f"a line between its chunks is longer than {CHUNK_LINE_BYTES_MAX} bytes")
                return None
            line, at = data[at:end], end + 2
            if self._next is _Next.TRAILER and not line:
                self.reusable = self.reusable and at == len(data)
                return self._whole()
            self._take_line(line)

    def _take_line(self, line: bytes) -> None:
        """Take a line that is not of the body: a chunk's size, the end of a chunk, a trailer."""
        if self._next is _Next.SIZE:
            found = _CHUNK.match(line)
            if found is None:
                raise BrokenAnswerError("the size of a chunk is no number")
            self._left = int(found[1], 16)
            self._next = _Next.END_OF_CHUNK if self._left else _Next.TRAILER
        elif self._next is _Next.END_OF_CHUNK:
            if line:
                raise BrokenAnswerError("a chunk is longer than it says")
            self._next = _Next.SIZE
        else:
            self._trailers += len(line)
            if self._trailers > HEAD_BYTES_MAX:
                raise BrokenAnswerError(f"its trailers are longer than {HEAD_BYTES_MAX} bytes")

    def _keep(self, part: bytes) -> None:
        self._taken += len(part)
        if self._taken > self._most:
            raise TooLargeError
        if part:
            self._parts.append(part)

    def _whole(self) -> Answer:
        parts = self._parts
        return Answer(self._status, parts[0] if len(parts) == 1 else b"".join(parts), self._retry_after)


def _field(headers: bytes, name: bytes) -> bytes | None:
    """Return the value of a header, None where there is none. `headers` are in small letters, each behind a CRLF."""
    start = headers.find(b"\r\n%s:" % name)
    if start < 0:
        return None
    start += len(name) + 3
    end = headers.find(b"\r\n", start)
    if headers.find(b"\r\n%s:" % name, start) >= 0:
        raise BrokenAnswerError(f"it has the header {name.decode()} twice")
    return headers[start : end if end >= 0 else len(headers)].strip()
