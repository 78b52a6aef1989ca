"""Reasons and messages of what people are told of slices, at the Workload and the user's object (SL-71, SL-72). Pure.

Those of slices that end are Kueue's, and stand with what ends them. Neighbour: `slice_moments` decides which.
"""

from __future__ import annotations

from gatelift.core.records.chain import Chain
from gatelift_kinds.shared.sizes import Counts, told

MADE = "WorkloadSliceCreated"
RESIZED = "WorkloadSliceResized"
GROWN = "WorkloadSliceAdmitted"
RELEASED = "WorkloadSliceReleased"
RUNNING = "WorkloadSliceRunning"
REFUSED = "SizeRefused"
ROLLED_BACK = "ResizeRolledBack"
MOVED = "ResizeMoved"


def made(name: str, counts: Counts, before: Counts) -> str:
    """Return what is told of a slice that was made to grow what runs."""
    return f"Workload {name} is to grow what runs from {told(before)} to {told(counts)}, and waits for the difference"


def asks(name: str, counts: Counts) -> str:
    """Return what is told of a slice that waits and asks for other counts now."""
    return f"Workload {name} asks for {told(counts)} now"


def lowers(name: str, counts: Counts) -> str:
    """Return what is told of what runs and is to have fewer pods."""
    return f"Workload {name} asks for {told(counts)} now: quota of the others is free when they are out of the way"


def grown(name: str, counts: Counts, before: Counts) -> str:
    """Return what is told of a slice that has taken the place of the one before."""
    return f"Workload {name} has quota for {told(counts)}, in the place of {told(before)}"


def replaced(name: str, counts: Counts, by: str) -> str:
    """Return what is told at the user's object of a slice whose place is taken."""
    return f"Workload {name} ({told(counts)}) is replaced by Workload {by}"


def withdrawn(name: str, counts: Counts) -> str:
    """Return what is told at the user's object of a slice that nobody wants any more."""
    return f"Workload {name} ({told(counts)}) is withdrawn: another size is wanted by now"


def released(counts: Counts) -> str:
    """Return what is told when the quota of pods that are too many is free."""
    return f"No more than {told(counts)} can run: the quota of what ran above that is free"


def running(counts: Counts) -> str:
    """Return what is told when all pods of a larger size are ready."""
    return f"All pods of the larger size are ready: {told(counts)}"


def grows(chain: Chain | None, uid: str, counts: Counts, before: Counts) -> str:
    """Return how what a slice waits for begins: what it would grow; "" of one that grows nothing."""
    if chain is None or chain.target is None or chain.target.uid != uid:
        return ""
    return f"It grows what runs from {told(before)} to {told(counts)}: "
