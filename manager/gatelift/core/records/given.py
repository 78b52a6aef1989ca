"""The mark on what was given to a worker: which run a name in its inventory is, in our own hand (decision 36). Pure.

A worker's word that something runs there holds others' work as far as present settings allow (`successors`). Settings
change, and a restored record has older ones; what was truly placed there must hold its place whatever they say now. So
every object goes to a worker with a mark that only this management cluster can make, over that cluster, the placement
and its place. A worker can repeat one, for what it had; it cannot invent one.
"""

from __future__ import annotations

import hashlib
import hmac

import msgspec

from gatelift_kube.values.resources import ObjectKey
from gatelift_wire.values.keys import ANNOTATION_GIVEN, PlacementKey

_HEX_DIGITS = 32
"""128 bits: nobody guesses one, and every inventory entry carries it."""
_PURPOSE = b"gatelift.dev/given/1"


def mark(seal_key: bytes, origin: str, cluster: str, placed: PlacementKey, place: ObjectKey) -> str:
    """Return the mark of one placement at a cluster, for the object at a place; "" where there is no key."""
    if not seal_key:
        return ""
    said = "\0".join((origin, cluster, placed.uid, str(placed.epoch), place.namespace, place.name)).encode()
    return hmac.new(seal_key, _PURPOSE + b"\0" + said, hashlib.sha256).hexdigest()[:_HEX_DIGITS]


def is_ours(wanted: str, said: str) -> bool:
    """Say whether what an inventory says is the mark that we would have made."""
    return bool(wanted) and hmac.compare_digest(wanted.encode(), said.encode())


def with_mark(metadata: bytes, given: str) -> bytes:
    """Return the labels and annotations that travel to a worker, with the mark."""
    if not given:
        return metadata
    marks = msgspec.json.decode(metadata or b"{}")
    marks["annotations"] = {**(marks.get("annotations") or {}), ANNOTATION_GIVEN: given}
    return msgspec.json.encode(marks)
