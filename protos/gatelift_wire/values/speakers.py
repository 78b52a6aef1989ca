"""Who speaks for a worker cluster: one agent at a time, whose replicas take turns by one Lease. Pure.

Two processes that lead by the same Lease of the same cluster never act at once, and a later one lists what the earlier
one left (rule R8). Two Leases, or two clusters, promise nothing to each other: so the manager lets in another speaker
only when it is sure that the one before starts nothing any more (`gatelift/core/api/speaking.py`).
"""

from __future__ import annotations

from typing import NamedTuple

from gatelift_wire.values.messages import Hello


class Speaker(NamedTuple):
    """The cluster (UID of its namespace kube-system) and the Lease in it (namespace and name); "" is not known."""

    cluster_uid: str
    lease: str

    def is_another(self, other: Speaker) -> bool:
        """Say whether the two are known to be of different clusters, or to lead by different Leases."""
        return any(mine and theirs and mine != theirs for mine, theirs in zip(self, other, strict=True))


def of(hello: Hello) -> Speaker:
    """Return who greets."""
    return Speaker(hello.cluster_uid, hello.lease)
