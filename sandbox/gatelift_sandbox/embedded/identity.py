"""Who a client is: by the subject of its certificate, or by a ServiceAccount token that this server signed.

Tokens are JWTs signed with an HMAC key of the server; nobody but this server checks them.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec

from gatelift_sandbox.embedded.documents import Document, at, decode, encode
from gatelift_sandbox.embedded.failures import RequestRefusedError
from gatelift_sandbox.embedded.rbac import ANONYMOUS, AUTHENTICATED, UNAUTHENTICATED, RbacReader, User, account

ISSUER = "https://kubernetes.default.svc.cluster.local"
AUDIENCES = [ISSUER]
TOKEN_SECONDS_MIN = 600
"""As a real API server: no token lives shorter."""
TOKEN_SECONDS_MAX = 2**32
TOKEN_SECONDS = 3600
CREDENTIAL = "authentication.kubernetes.io/credential-id"
"""Which token it was, for audit logs and webhooks: processes that share an account are told apart by it."""
_HEADER = {"alg": "HS256", "typ": "JWT"}


def anonymous() -> User:
    """Return who a client without credentials is."""
    return User(name=ANONYMOUS, groups=(UNAUTHENTICATED,))


def of_certificate(certificate: Mapping[str, Any] | None) -> User | None:
    """Return the user that a verified certificate names (as `SSLSocket.getpeercert` shows it), None without one."""
    if not certificate:
        return None
    names = [pair for part in certificate.get("subject", ()) for pair in part]
    user = next((value for key, value in names if key == "commonName"), "")
    if not user:
        return None
    groups = tuple(value for key, value in names if key == "organizationName")
    return User(name=user, groups=(*groups, AUTHENTICATED))


class Tokens:
    """Signs and checks ServiceAccount tokens."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def sign(self, namespace: str, name: str, uid: str, now: float, request: Document) -> Document:
        """Return a TokenRequest answered: its status has the token and when it expires (seconds since 1970)."""
        asked = at(request, "spec", "expirationSeconds") or TOKEN_SECONDS
        if not isinstance(asked, int) or not TOKEN_SECONDS_MIN <= asked <= TOKEN_SECONDS_MAX:
            text = f"may not specify a duration shorter than {TOKEN_SECONDS_MIN} seconds"
            raise RequestRefusedError(422, "Invalid", f"spec.expirationSeconds: Invalid value: {asked}: {text}")
        audiences = at(request, "spec", "audiences") or AUDIENCES
        expires = int(now) + asked
        claims = {
            "iss": ISSUER,
            "sub": f"system:serviceaccount:{namespace}:{name}",
            "aud": audiences,
            "iat": int(now),
            "exp": expires,
            "jti": str(uuid.uuid4()),
            "kubernetes.io": {"namespace": namespace, "serviceaccount": {"name": name, "uid": uid}},
        }
        body = f"{_part(encode(_HEADER))}.{_part(encode(claims))}"
        return {"token": f"{body}.{_part(self._signature(body))}", "expires": expires, "audiences": audiences}

    def user(self, token: str, store: RbacReader, now: float) -> User | None:
        """Return the ServiceAccount of a token; None where it is not ours, expired, or its account is gone."""
        body, _, signature = token.rpartition(".")
        if not hmac.compare_digest(_part(self._signature(body)), signature):
            return None
        try:
            claims = decode(_bytes(body.rpartition(".")[2]))
        except (ValueError, msgspec.MsgspecError):
            return None
        subject = at(claims, "kubernetes.io") or {}
        namespace, name = subject.get("namespace", ""), at(subject, "serviceaccount", "name") or ""
        found = store.look(("", "serviceaccounts"), namespace, name)
        uid = at(subject, "serviceaccount", "uid")
        if found is None or at(found, "metadata", "uid") != uid or claims.get("exp", 0) < now:
            return None
        return replace(account(namespace, name, str(uid)), extra={CREDENTIAL: [f"JTI={claims.get('jti', '')}"]})

    def _signature(self, body: str) -> bytes:
        return hmac.new(self._key, body.encode(), hashlib.sha256).digest()


def _part(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _bytes(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
