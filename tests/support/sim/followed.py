"""What the outside check asks of a cluster that it follows. Neighbour: `truth`."""

from __future__ import annotations

from typing import Protocol

from gatelift_sandbox.embedded.store import Store


class Cluster(Protocol):
    """What is followed."""

    name: str
    store: Store
    ended: bool
    """Whether nothing is left of it: what is written there from then on is nobody's."""
    restoring: bool
    """Whether the write of this moment puts its etcd back to a copy."""
    by_hand: bool
    """Whether the write of this moment is a person's, not one of a process of ours, a controller or kubelet."""
    late: bool
    """Whether who asked for the write of this moment has ended since, or leads no more."""
