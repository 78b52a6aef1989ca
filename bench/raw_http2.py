"""HTTP/2 below gRPC, as a stranger writes it: frames by hand, and a block of headers that never ends."""

from __future__ import annotations

import ssl
import struct

HEADERS, SETTINGS, CONTINUATION = 1, 4, 9
END_HEADERS = 4
FIELDS = 4000
"""Of one frame of a block without an end: empty ones, of which most has to be kept for each byte."""


def frame(kind: int, flags: int, stream: int, body: bytes = b"") -> bytes:
    """Return a frame of RFC 9113."""
    return struct.pack(">I", len(body))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + body


def field(name: bytes, value: bytes) -> bytes:
    """Return a literal field that is not indexed, of RFC 7541."""
    return bytes([0, len(name)]) + name + bytes([len(value)]) + value


GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0)


def call(path: str) -> bytes:
    """Return the fields of a call of gRPC: POST by https."""
    named = field(b":path", path.encode()) + field(b":authority", b"localhost")
    return b"\x83\x87" + named + field(b"content-type", b"application/grpc") + field(b"te", b"trailers")


def endless(stream: int) -> bytes:
    """Return a part of a block of headers, which does not end with it."""
    return frame(CONTINUATION, 0, stream, field(b"x", b"") * FIELDS)


def client() -> ssl.SSLContext:
    """Return how one connects who asks nobody who he is, and shows nothing."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    return context
