"""What an API server puts its questions into: a document of one version and kind, with a request of known shape. Pure.

Neighbours: `review` (admission) and `conversion` open theirs here.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import msgspec

from gatelift_kube.values.unreadable import UNREADABLE

RequestT = TypeVar("RequestT")

VALUES_MAX = 1_000_000
"""Values of a document: the largest objects with all their managed fields have a third of it. Each takes up to 72 bytes
once it is read, twenty times what it takes in JSON."""
PROBLEM_CHARS_MAX = 300
"""What is wrong may quote what was sent; a log line and an answer have no room for all of it."""


class BadReviewError(Exception):
    """What came is no such document, so there is nobody to answer to. The text says what is wrong, in one line."""

    def __init__(self, text: str) -> None:
        super().__init__(text[:PROBLEM_CHARS_MAX])


class _Head(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str


class Envelope(Generic[RequestT]):
    """Opens documents of one version and kind."""

    def __init__(self, api_version: str, kind: str, request: type[RequestT]) -> None:
        self._of = (api_version, kind)
        whole = msgspec.defstruct(kind, [("request", request)], bases=(_Head,), rename="camel")
        self._decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(whole)

    def open(self, body: bytes | bytearray) -> RequestT:
        """Return the request. BadReviewError for anything else, whatever the bytes."""
        version, kind = self._of
        if sum(map(body.count, (b",", b"[", b"{"))) > VALUES_MAX:
            raise BadReviewError(f"the body has more than {VALUES_MAX} values, so it is no {kind} of an API server")
        try:
            found = self._decoder.decode(body)
        except UNREADABLE as error:
            raise BadReviewError(f"the body is no {kind}: {error}") from error
        if (found.api_version, found.kind) != self._of:
            raise BadReviewError(f"{found.api_version} {found.kind} is not understood: send {version} {kind}")
        request: RequestT = found.request
        return request
