"""What is said of a pod set: what it needs, and where its pods are. Pure values, parts of messages."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSetRequest:
    """What one pod set needs: `requests` in total for `count` pods (CPU in milli-units, all else in base units).

    In a commit only: `additions` (JSON): what checks want on its pods (KEP-993); `needs`: digest of what a pod needs.
    `uncounted`: what its pods ask for in total of what quota does not count; older agents do not read it.
    `shape`: hash of the pod template of which a driver makes pods there by itself; "": it makes none, or nobody says.
    """

    name: str
    count: int
    requests: tuple[tuple[str, int], ...] = ()
    flavors: tuple[tuple[str, str], ...] = ()  # resource -> flavor granted by the manager
    additions: bytes = b""
    needs: str = ""
    uncounted: tuple[tuple[str, int], ...] = ()
    shape: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSetCounts:
    """Where the pods of a pod set are: `remaining` hold resources, `terminating` of those are being deleted.

    `rejected`: so many were ended unused since this agent process began, beyond the count.
    """

    name: str
    active: int = 0
    ready: int = 0
    succeeded: int = 0
    failed: int = 0
    terminating: int = 0
    remaining: int = 0
    rejected: int = 0
