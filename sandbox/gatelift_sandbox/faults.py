"""Failures on request: which requests to an embedded API server shall fail, how, and how often. Pure.

A `PlannedFault` names requests by verb, kind, namespace, name (empty: any) and what the next `count` of them get.
Tests add faults to `FaultPlan` directly or over `/sandbox/faults`; the server asks `take` before it serves a request.
"""

from __future__ import annotations

from enum import Enum

import msgspec

FAULTS_MAX = 1_000
"""Faults waiting at a time; more is a test that loops."""
DELAY_SECONDS_MAX = 300.0


class FaultAction(Enum):
    """What happens to a request."""

    REFUSE = "refuse"  # answered with `code`, nothing done
    DELAY = "delay"  # done after `seconds`
    CUT = "cut"  # connection broken, nothing done
    LOSE_ANSWER = "lose-answer"  # done, and the connection broken before the answer


REASONS = {
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}
"""The codes that may be asked for, with the reason in the answer."""


class PlannedFault(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One failure to come. `verb` is RBAC's; `resource` is the plural, with a subresource as `pods/status`."""

    action: FaultAction
    verb: str = ""
    resource: str = ""
    namespace: str = ""
    name: str = ""
    count: int = 1
    code: int = 500
    reason: str = ""
    message: str = "asked for by a fault of the sandbox"
    seconds: float = 0.0
    retry_after: int = 0

    def problem(self) -> str:
        """Return what is wrong with it in one line, or an empty text."""
        if self.action is FaultAction.REFUSE and self.code not in REASONS:
            return f"code: {self.code} is not one of {', '.join(map(str, REASONS))}"
        if not 0 <= self.seconds <= DELAY_SECONDS_MAX:
            return f"seconds: {self.seconds} is not between 0 and {DELAY_SECONDS_MAX:.0f}"
        return "" if self.count > 0 else f"count: {self.count} is not above 0"

    def fits(self, verb: str, resource: str, namespace: str, name: str) -> bool:
        """Return whether a request is meant."""
        wanted = ((self.verb, verb), (self.resource, resource), (self.namespace, namespace), (self.name, name))
        return all(asked in ("", is_) for asked, is_ in wanted)


class FaultPlan:
    """The failures to come, in the order in which they were asked for. The first that fits a request is used up."""

    def __init__(self) -> None:
        self._left: list[tuple[PlannedFault, int]] = []
        self.used = 0
        """How many requests were hit so far."""

    def add(self, fault: PlannedFault) -> None:
        """Ask for a failure; ValueError where it makes no sense or too many wait."""
        if problem := fault.problem():
            raise ValueError(problem)
        if len(self._left) >= FAULTS_MAX:
            raise ValueError(f"{FAULTS_MAX} faults wait already: clear them first")
        self._left.append((fault, fault.count))

    def clear(self) -> None:
        """Let everything succeed from now on."""
        self._left.clear()

    def waiting(self) -> list[PlannedFault]:
        """Return what is still to come, each with the count that is left."""
        return [msgspec.structs.replace(fault, count=left) for fault, left in self._left]

    def take(self, verb: str, resource: str, namespace: str, name: str) -> PlannedFault | None:
        """Return the failure that hits this request, if any, and count it as used."""
        for index, (fault, left) in enumerate(self._left):
            if fault.fits(verb, resource, namespace, name):
                if left > 1:
                    self._left[index] = (fault, left - 1)
                else:
                    del self._left[index]
                self.used += 1
                return fault
        return None
