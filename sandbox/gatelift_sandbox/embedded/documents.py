"""JSON documents as the store holds and copies them. Pure."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from gatelift_kube.values import timestamps

Document = dict[str, Any]
"""A decoded JSON object. Whoever decodes one owns it."""

encode = msgspec.json.Encoder().encode
"""JSON bytes of a document; keys stay in their order."""
decode = msgspec.json.Decoder().decode
"""A document of JSON bytes; msgspec.DecodeError where they are not JSON."""


def copied(document: Document) -> Document:
    """Return a deep copy. Through JSON it takes 15 us for a pod, `copy.deepcopy` ten times as long."""
    copy: Document = decode(encode(document))
    return copy


@lru_cache(maxsize=64)
def _second(seconds: int) -> str:
    return timestamps.to_text(seconds)


def timestamp(now: float) -> str:
    """Return metav1.Time of `now`, seconds since 1970."""
    return _second(int(now // 1))


def at(document: Document, *path: str) -> Any:
    """Return what lies at a path of keys, or None where some key on the way is missing or no object."""
    found: Any = document
    for key in path:
        if not isinstance(found, dict):
            return None
        found = found.get(key)
    return found


def items(document: Document, *path: str) -> list[Document]:
    """Return the objects in the list at a path; an empty list where there is none."""
    found = at(document, *path)
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def meta(document: Document) -> Document:
    """Return the metadata of an object, made if missing or null."""
    found = document.get("metadata")
    if not isinstance(found, dict):
        found = document["metadata"] = {}
    return found
