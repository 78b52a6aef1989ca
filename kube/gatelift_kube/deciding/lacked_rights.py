"""Rights that an API server says we lack, from its refusals to its grants: what a person has to give us. Pure.

Whoever is refused tries again sooner or later, and each for itself; that a right is missing is a fact of the whole
process, which its log and its readiness name. Neighbour: `api.noting`.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from dataclasses import dataclass

from gatelift_kube.deciding.errors import ForbiddenError

LACKED_MAX = 64
"""Different rights that are remembered: more than any of our roles has rules."""
FORGOTTEN_SECONDS = 660.0
"""What was refused is tried again within ten minutes, if it is still wanted."""

_REFUSAL = re.compile(
    r'User "(?P<who>[^"]*)" cannot (?P<verb>[a-z]+) resource "(?P<what>[^"]+)" in API group "(?P<of>[^"]*)"'
)


@dataclass(frozen=True, slots=True)
class AskedRight:
    """What kind of request it is, whatever the object and its namespace."""

    method: str
    kind: str
    """Group, version and plural; below it the subresource."""
    named: bool
    watch: bool


def asked(method: str, path: str, query: str) -> AskedRight:
    """Return what kind of request it is."""
    parts = path.strip("/").split("/")
    head = 2 if parts[0] == "api" else 3
    group, rest = parts[:head], parts[head:]
    if rest[:1] == ["namespaces"] and len(rest) > 2 and rest[2] not in {"status", "finalize"}:
        rest = rest[2:]
    return AskedRight(method, "/".join([*group, *rest[:1], *rest[2:]]), len(rest) > 1, "watch=1" in query)


class LackedRights:
    """Remembers of each kind of request whether the last answer was that we may not."""

    def __init__(self) -> None:
        self._refused: OrderedDict[AskedRight, tuple[str, float]] = OrderedDict()

    def refused(self, request: AskedRight, error: ForbiddenError, now: float) -> str:
        """Take a refusal; return what right it is about, "" where it is about something else."""
        found = _REFUSAL.search(error.message)
        if found is None:
            return ""  # a quota, a webhook, an admission plugin: not a right
        group = f".{found['of']}" if found["of"] else ""
        right = f"{found['verb']} {found['what']}{group}"
        self._refused.pop(request, None)
        if len(self._refused) >= LACKED_MAX:
            self._refused.popitem(last=False)
        self._refused[request] = right, now
        return f"{found['who']} may not {right}; give it the roles of deploy/ of this version"

    def granted(self, request: AskedRight) -> None:
        """Take that such a request was answered."""
        self._refused.pop(request, None)

    def told(self, now: float) -> str:
        """Return what is lacked now, in one line; "" for nothing."""
        lacked = sorted({right for right, at in self._refused.values() if now - at < FORGOTTEN_SECONDS})
        return f"rights are missing: {', '.join(lacked)}; apply the roles of deploy/ of this version" if lacked else ""
