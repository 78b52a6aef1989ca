"""Names of Workload objects, as Kueue makes them. Pure."""

from __future__ import annotations

import hashlib

NAME_LENGTH_MAX = 253
"""The longest name of a Workload: a DNS subdomain."""
HASH_DIGITS = 5


def workload_name(kind: str, group: str, name: str, uid: str, extra: str = "") -> str:
    """Return `<kind>-<name>-<5 hex digits>`, cut before the digits to 253 characters.

    `extra` tells versions of one owner apart (the generation of an elastic Job). Checked against Kueue's vectors:
    Job, batch, `name`, `uid` give `job-name-ef3a1`, with extra `1` `job-name-2514c`.
    """
    words = [kind, group, name, uid, *([extra] if extra else [])]
    digest = hashlib.sha1("\n".join(words).encode(), usedforsecurity=False).hexdigest()[:HASH_DIGITS]
    prefix = f"{kind.lower()}-{name}"[: NAME_LENGTH_MAX - HASH_DIGITS - 1]
    return f"{prefix}-{digest}"
