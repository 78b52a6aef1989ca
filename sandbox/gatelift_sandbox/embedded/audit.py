"""The audit log of the embedded API server: who asked for what, one JSON line a request, as a real server writes it.

Level Metadata, stage ResponseComplete: written when the answer is known and before it leaves, so that whoever has an
answer finds its line. Watches are left out: they write nothing and end when they like.
"""

from __future__ import annotations

from pathlib import Path

from gatelift_kube.values.timestamps import to_micro_text
from gatelift_sandbox.embedded.documents import Document, encode
from gatelift_sandbox.embedded.rbac import User
from gatelift_sandbox.embedded.requests import RequestInfo


def line(user: User, info: RequestInfo, user_agent: str, code: int, received: float) -> bytes:
    """Return the line of one request; `received` is in seconds since 1970."""
    about = {
        "resource": info.plural,
        "namespace": info.namespace,
        "name": info.name,
        "apiGroup": info.group,
        "apiVersion": info.version,
        "subresource": info.subresource,
    }
    event: Document = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "stage": "ResponseComplete",
        "requestURI": info.path,
        "verb": info.verb,
        "user": user.info(),
        "userAgent": user_agent,
        "responseStatus": {"code": code},
        "requestReceivedTimestamp": to_micro_text(received),
    }
    if info.plural:
        event["objectRef"] = {key: value for key, value in about.items() if value}
    return encode(event) + b"\n"


class AuditLog:
    """Appends to one file; without a path it writes nothing."""

    def __init__(self, path: Path | None) -> None:
        self._file = path.open("ab", buffering=0) if path is not None else None

    def write(self, user: User, info: RequestInfo, user_agent: str, code: int, received: float) -> None:
        """Log an answered request."""
        if self._file is not None:
            self._file.write(line(user, info, user_agent, code, received))

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
