"""What an API server's audit log says of each process: requests by verb and resource, for the bench's objects. Pure.

The policy of the sandbox writes one line a request, when it is answered; a watch when it ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import msgspec

ACCOUNTS: Mapping[str, str] = {
    "system:serviceaccount:gatelift-system:gatelift-manager": "manager",
    "system:serviceaccount:gatelift-system:gatelift-agent": "agent",
    "system:serviceaccount:gatelift-system:gatelift-webhooks": "webhooks",
    "system:kube-scheduler": "scheduler",
    "gatelift-sandbox-kubelet": "kubelet",
    "kubernetes-admin": "loader",
}
OTHER = "other"


class _User(msgspec.Struct):
    username: str = ""


class _ObjectRef(msgspec.Struct, rename="camel"):
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""


class _Status(msgspec.Struct):
    code: int = 0


class Line(msgspec.Struct, rename="camel"):
    """One request."""

    verb: str
    user: _User
    request_received_timestamp: str = ""
    object_ref: _ObjectRef = msgspec.field(default_factory=_ObjectRef)
    response_status: _Status = msgspec.field(default_factory=_Status)


@dataclass(frozen=True, slots=True, order=True)
class Request:
    """What was asked, by whom; `resource` holds the subresource: `pods/status`."""

    process: str
    verb: str
    resource: str


_LINE = msgspec.json.Decoder(Line)


def parse(text: bytes) -> list[Line]:
    """Read the whole lines of a log; a last one that is cut short is left out."""
    return [_LINE.decode(line) for line in text.split(b"\n")[:-1] if line.strip()]


def request_of(line: Line) -> Request:
    """Return what a line is about."""
    ref = line.object_ref
    process = ACCOUNTS.get(line.user.username, OTHER)
    resource = f"{ref.resource}/{ref.subresource}" if ref.subresource else ref.resource
    return Request(process, line.verb, resource)


def count(lines: Iterable[Line], namespace: str, *, own: bool) -> Counter[Request]:
    """Count requests for objects of the namespace (`own`), or all others; watches are never counted."""
    return Counter(
        request_of(line) for line in lines if line.verb != "watch" and (line.object_ref.namespace == namespace) is own
    )


def failed(lines: Iterable[Line], namespace: str) -> Counter[tuple[Request, int]]:
    """Count requests for objects of the namespace that were refused, with their status code."""
    return Counter(
        (request_of(line), line.response_status.code)
        for line in lines
        if line.object_ref.namespace == namespace and line.response_status.code >= 400
    )


WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})
OURS = ("manager", "agent", "webhooks")


def per_workload(own: Mapping[str, Counter[Request]], count: int) -> dict[str, dict[str, float]]:
    """Return requests per workload on each side, as `process verb resource`; the loader's are left out."""
    return {
        side: {
            f"{request.process} {request.verb} {request.resource}": round(number / count, 3)
            for request, number in sorted(requests.items())
            if request.process != "loader"
        }
        for side, requests in own.items()
    }


def against(
    own: Mapping[str, Counter[Request]], expected: Mapping[tuple[str, str], int], count: int
) -> dict[str, dict[str, float]]:
    """Return what manager and agents wrote per workload to each resource, beside what the design says."""
    found = {}
    for (side, resource), wanted in expected.items():
        written = sum(
            number
            for request, number in own[side].items()
            if request.process in OURS and request.verb in WRITES and request.resource.split("/")[0] == resource
        )
        found[f"{side} {resource}"] = {"wanted": wanted, "found": round(written / count, 3)}
    return found


def others(rest: Mapping[str, Counter[Request]], seconds: float) -> dict[str, float]:
    """Return our requests for all other objects, a second: leases, status of queues and clusters, events."""
    return {
        f"{side} {request.process} {request.verb} {request.resource}": round(number / seconds, 2)
        for side, requests in rest.items()
        for request, number in sorted(requests.items())
        if request.process in OURS
    }
