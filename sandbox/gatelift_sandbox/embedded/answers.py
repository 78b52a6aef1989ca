"""From stored objects to bodies: plain, as a Table, or as metadata only, whichever the client prefers. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from gatelift_sandbox.embedded import tables
from gatelift_sandbox.embedded.documents import Document, encode, meta
from gatelift_sandbox.embedded.kinds import ServedKind
from gatelift_sandbox.embedded.shelf import ShelfPage
from gatelift_sandbox.embedded.watches import Stored, WatchEvent

JSON = "application/json"
INITIAL_END = "k8s.io/initial-events-end"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A whole answer to a request."""

    body: bytes
    code: int = 200
    content_type: str = JSON
    headers: dict[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Form:
    """How the client wants to see objects: `""` as they are, `Table`, `PartialObjectMetadata` (or its list)."""

    name: str = ""
    include: str = "Metadata"

    @property
    def partial(self) -> bool:
        """Return whether only the metadata is wanted."""
        return self.name.startswith("PartialObjectMetadata")


@lru_cache(maxsize=256)
def form_of(accept: str, include: str) -> Form:
    """Return the first form in an Accept header that is served here."""
    for part in accept.split(","):
        media, *parameters = (piece.strip() for piece in part.split(";"))
        if media not in (JSON, "*/*", "application/*", ""):
            continue
        asked = dict(p.split("=", 1) for p in parameters if "=" in p).get("as", "")
        if asked in ("", "Table", "PartialObjectMetadata", "PartialObjectMetadataList"):
            return Form(asked, include or "Metadata")
    return Form()


def object_body(kind: ServedKind, stored: Stored, form: Form, now: float) -> bytes:
    """Return the body of one object."""
    if not form.name:
        return _raw(kind, stored)
    document = kind.served(stored.document())
    if form.partial:
        return encode(tables.partial(document))
    about = {"resourceVersion": meta(document)["resourceVersion"]}
    return encode(tables.table(kind, [_row(kind, stored, form, now)], about))


def list_body(kind: ServedKind, page: ShelfPage, form: Form, now: float) -> bytes:
    """Return the body of a list."""
    about: Document = {"resourceVersion": str(page.version)}
    if page.next:
        about["continue"] = page.next
    if page.next and page.remaining is not None:
        about["remainingItemCount"] = page.remaining
    if form.name == "Table":
        return encode(tables.table(kind, [_row(kind, stored, form, now) for stored in page.items], about))
    if form.partial:
        shown = [tables.partial(stored.document()) for stored in page.items]
        head: Document = {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": about}
        return encode({**head, "items": shown})
    head = {"kind": kind.list_kind, "apiVersion": kind.resource.api_version, "metadata": about}
    return encode(head)[:-1] + b',"items":[' + b",".join(_raw(kind, stored) for stored in page.items) + b"]}"


def event_line(kind: ServedKind, event: WatchEvent, form: Form, now: float, *, headers: bool) -> bytes:
    """Return one line of a watch. `headers`: whether a Table says its columns (the first one does)."""
    shown: bytes
    if not form.name:
        shown = _raw(kind, event.stored)
    elif form.partial:
        shown = encode(tables.partial(kind.served(event.stored.document())))
    else:
        about = {"resourceVersion": str(event.stored.version)}
        shown = encode(tables.table(kind, [_row(kind, event.stored, form, now)], about, headers=headers))
    return b'{"type":"' + event.happened.value.encode() + b'","object":' + shown + b"}\n"


def bookmark_line(kind: ServedKind, version: int, form: Form, *, initial_end: bool = False) -> bytes:
    """Return a bookmark: everything up to `version` has been said. `initial_end` closes the initial objects."""
    about: Document = {"resourceVersion": str(version), "creationTimestamp": None}
    if initial_end:
        about["annotations"] = {INITIAL_END: "true"}
    shown: Document = {"kind": kind.resource.kind, "apiVersion": kind.resource.api_version, "metadata": about}
    if form.name == "Table":
        cells = {"cells": [""] * len(tables.columns_of(kind)), "object": tables.partial({"metadata": about})}
        shown = tables.table(kind, [cells], {"resourceVersion": str(version)}, headers=False)
    elif form.partial:
        shown = tables.partial({"metadata": about})
    return encode({"type": "BOOKMARK", "object": shown}) + b"\n"


def _row(kind: ServedKind, stored: Stored, form: Form, now: float) -> Document:
    return tables.row(kind, kind.served(stored.document()), now, form.include)


def _raw(kind: ServedKind, stored: Stored) -> bytes:
    return encode(kind.served(stored.document())) if kind.converts else stored.raw
