"""Templates on the wire: each travels once in a session, under the name that its content has. Pure."""

from __future__ import annotations

import hashlib

from gatelift_wire.values.messages import TemplateBlob

BLOBS_MAX = 10_000
"""Templates per session that we remember as sent; above, they are sent again. An agent keeps about as many."""


def blob_hash(content: bytes) -> str:
    """Return the name under which a template travels."""
    return hashlib.sha256(content).hexdigest()


def fresh(known: set[str], contents: tuple[bytes, ...]) -> tuple[TemplateBlob, ...]:
    """Return what has not travelled yet, each once; `known` are the names of those that have, and learns these."""
    if len(known) > BLOBS_MAX:
        known.clear()
    found = []
    for content in contents:
        digest = blob_hash(content)
        if digest not in known:
            known.add(digest)
            found.append(TemplateBlob(hash=digest, content=content))
    return tuple(found)
