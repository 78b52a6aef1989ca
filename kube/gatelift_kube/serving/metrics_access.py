"""Who may read the figures: whoever the API server lets `get` the path `/metrics`, as Kueue's own metrics are guarded.

The bearer token of a scrape is reviewed (TokenReview), and whose it is (SubjectAccessReview). Answers are kept for a
moment, and questions of strangers are few, so that who guesses tokens costs the API server next to nothing.
"""

from __future__ import annotations

import enum
import hashlib
from dataclasses import dataclass, field
from typing import Any

import msgspec

from gatelift_kube.api.client import Client
from gatelift_kube.deciding.errors import KubeError
from gatelift_kube.process.clock import Clock, monotonic
from gatelift_kube.values.unreadable import UNREADABLE

TOKEN_CHARS_MAX = 16 * 1024
"""Tokens of service accounts have a thousand."""
KEPT_SECONDS = 60.0
"""How long a token that was taken back is believed at most: the time that controller-runtime keeps an answer."""
KEPT_MAX = 256
"""Answers that are kept; above, the oldest goes."""
REVIEWS_PER_SECOND = 2.0
"""Of tokens that were never let in: a scraper that starts needs one."""
REVIEWS_BURST = 10.0
PATH = "/metrics"
_TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"  # noqa: S105 - a path
_ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


class Access(enum.Enum):
    """What a scrape is answered; the value is its HTTP status."""

    ALLOWED = 200
    UNKNOWN = 401
    DENIED = 403
    TOO_MANY = 429
    UNANSWERED = 503


class _User(msgspec.Struct):
    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = {}  # msgspec copies defaults


class _Said(msgspec.Struct):
    authenticated: bool = False
    allowed: bool = False
    denied: bool = False
    user: _User = msgspec.field(default_factory=_User)


class _Review(msgspec.Struct):
    status: _Said = msgspec.field(default_factory=_Said)


@dataclass(slots=True)
class MetricsAccess:
    """Asks the API server about tokens, and remembers what it said."""

    client: Client
    clock: Clock = monotonic
    _kept: dict[bytes, tuple[Access, float]] = field(default_factory=dict)
    _tokens_left: float = REVIEWS_BURST
    _filled_at: float = 0.0

    async def judge(self, authorization: str) -> Access:
        """Say what a scrape with this header `Authorization` is answered."""
        scheme, _, token = authorization.partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token or len(token) > TOKEN_CHARS_MAX:
            return Access.UNKNOWN
        name, now = hashlib.sha256(token.encode(errors="replace")).digest(), self.clock()
        said, until = self._kept.get(name, (Access.UNKNOWN, 0.0))
        if now < until:
            return said
        if said is not Access.ALLOWED and not self._may_ask(now):
            return Access.TOO_MANY
        try:
            said = await self._reviewed(token)
        except (KubeError, *UNREADABLE):
            return Access.UNANSWERED
        self._kept.pop(name, None)
        while len(self._kept) >= KEPT_MAX:
            del self._kept[self._first_to_go()]
        self._kept[name] = said, self.clock() + KEPT_SECONDS
        return said

    def _may_ask(self, now: float) -> bool:
        """Take one question of the strangers' share, if there is one."""
        gained = (now - self._filled_at) * REVIEWS_PER_SECOND
        self._tokens_left, self._filled_at = min(REVIEWS_BURST, self._tokens_left + gained), now
        if self._tokens_left < 1.0:
            return False
        self._tokens_left -= 1.0
        return True

    def _first_to_go(self) -> bytes:
        """Return the oldest answer that lets nobody in; where all do, the oldest."""
        strangers = (name for name, (said, _) in self._kept.items() if said is not Access.ALLOWED)
        return next(strangers, next(iter(self._kept)))

    async def _reviewed(self, token: str) -> Access:
        known = await self._ask(_TOKEN_REVIEWS, "authentication.k8s.io/v1", "TokenReview", {"token": token})
        if not known.authenticated:
            return Access.UNKNOWN
        user = known.user
        spec = {
            "user": user.username,
            "uid": user.uid,
            "groups": user.groups,
            "extra": user.extra,
            "nonResourceAttributes": {"path": PATH, "verb": "get"},
        }
        may = await self._ask(_ACCESS_REVIEWS, "authorization.k8s.io/v1", "SubjectAccessReview", spec)
        return Access.ALLOWED if may.allowed and not may.denied else Access.DENIED

    async def _ask(self, path: str, version: str, kind: str, spec: dict[str, Any]) -> _Said:
        body = msgspec.json.encode({"apiVersion": version, "kind": kind, "spec": spec})
        return msgspec.json.decode(await self.client.raw("POST", path, body=body), type=_Review).status
