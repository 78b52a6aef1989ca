"""Bootstrap tokens of agents: single-use, bound to a name, expiring, stored hashed, carrying the CA's hash. Pure.

Form: `gl1.<cluster name>.<secret>.<hash of the CA>`; names hold no dots, so the parts never mix. The agent checks the
manager's CA against the hash before it trusts anything; the manager stores `digest(token)` in `WorkerCluster.spec`.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass

_PREFIX = "gl1"
SECRET_BYTES = 24


@dataclass(frozen=True, slots=True)
class Token:
    """A parsed token. The secret is not shown."""

    cluster: str
    ca_hash: str


def compose(cluster: str, secret: bytes, ca_bundle: bytes) -> str:
    """Return the token's text for a random `secret` of SECRET_BYTES bytes."""
    return f"{_PREFIX}.{cluster}.{secret.hex()}.{ca_hash(ca_bundle)}"


def parse(text: str) -> Token:
    """Read a token. Raises ValueError (one line) when it is not one."""
    parts = text.strip().split(".")
    if len(parts) != 4 or parts[0] != _PREFIX or len(parts[2]) != 2 * SECRET_BYTES or not parts[1]:
        raise ValueError("token: is not one of ours; copy it whole from 'gatelift cluster add NAME'")
    return Token(parts[1], parts[3])


def digest(text: str) -> str:
    """Return what is stored of a token: SHA-256, hex. The secret has 192 random bits, so a plain hash is enough."""
    return hashlib.sha256(text.strip().encode()).hexdigest()


def matches(text: str, stored_digest: str) -> bool:
    """Say whether the token is the stored one, in constant time."""
    return bool(stored_digest) and hmac.compare_digest(digest(text), stored_digest)


def ca_hash(ca_bundle: bytes) -> str:
    """Return the first 32 hex digits of the SHA-256 of a PEM bundle's first certificate, as the token carries it."""
    end = b"-----END CERTIFICATE-----"
    first = ca_bundle.split(end, 1)[0].strip() + b"\n" + end
    return hashlib.sha256(first).hexdigest()[:32]
