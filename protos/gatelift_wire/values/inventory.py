"""Values of an inventory: what a worker has of every placement, asked for and listed. Pure; control values of the wire.

Neighbours: `messages` (all else that crosses the wire), `cutting` (cuts a long one into chunks).
"""

from __future__ import annotations

from dataclasses import dataclass

from gatelift_wire.values.keys import PlacementKey


@dataclass(frozen=True, slots=True, kw_only=True)
class InventoryEntry:
    """One placement that the agent has objects or memory of.

    `given`: the mark with which the manager gave it its objects, as they carry it, "" where they carry none.
    `all_over`: all of it that was let go is over, and it is of several objects, which tell no end of their own.
    `size`: of elastic work, the number of the size that it has here, 0 for all else and where nobody can read it;
    `granted` and `running`: how many pods that is by pod set, and how many were let go and are not known to be over.
    """

    key: PlacementKey
    namespace: str
    name: str
    state: str  # the name of the agent's placement state
    lifted: bool
    counts: tuple[tuple[str, int], ...] = ()  # objects per pod set
    digest: str = ""
    given: str = ""
    all_over: bool = False
    size: int = 0
    granted: tuple[tuple[str, int], ...] = ()
    running: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignRun:
    """What the management cluster of another origin left at the worker and may run: a pod, or a Job and its pods.

    `count`: how many pods or Jobs. Without a name it stands for so many further ones that are not named.
    """

    origin: str
    kind: str
    namespace: str
    name: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InventoryChunk:
    """A part of an inventory; `applied` is the last command sequence that the agent had applied (R4).

    `foreign` and `unheard` come with the last chunk. `unheard`: not all nodes were heard of since the agent began to
    watch, so what vanished before that may run on one of them (P10), or not every namespace that was named in the
    request is listed: absence says nothing of what was let go.
    """

    request: int
    applied: int
    last: bool
    entries: tuple[InventoryEntry, ...] = ()
    foreign: tuple[ForeignRun, ...] = ()
    unheard: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class InventoryRequest:
    """Asks for the complete inventory; the manager remembers what it had written when it asked (R4).

    `namespaces`: those in which the record has placements. The agent looks into them whatever it remembers itself; as
    long as one that is there is not listed, absence proves nothing (`InventoryChunk.unheard`).
    """

    request: int
    namespaces: tuple[str, ...] = ()
