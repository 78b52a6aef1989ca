"""Namespaces that are being deleted: what is known of each, and what that proves of a placement in it (HD-259). Pure.

An API server makes nothing new in such a namespace, and nothing takes that back. So once a list that began late enough
after its deletion shows that no pod of a Job may run, none ever will: the Job has stopped without a write of ours,
which nobody lets us do any more where the RoleBinding went first. A pod is judged as everywhere, by what is seen (P10).

That a watch calls a namespace so is asked for before anything ends by it. All of it is about one UID, and about objects
that are no younger than the deletion: others are in a later namespace of that name.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gatelift_kinds.shared import pods
from gatelift_kube.objects.core import Namespace

if TYPE_CHECKING:
    from gatelift_agent.core.placement.placements import Placement
    from gatelift_agent.core.state.world import World

REASON = "WorkerNamespaceDeleted"
"""Of the eviction, and of what is told of a stop that waits."""

SETTLE_SECONDS = 60.0
"""By then what was let through before the deletion has landed: an API server gives a request a minute at most, and one
that learns of the deletion late does so within seconds. Our own writes land sooner (`WRITE_SECONDS_MAX`)."""

LEFT_SECONDS = 600.0
"""Pause between two tries to take our finalizer off what is left there and costs nothing any more."""


@dataclass(slots=True, kw_only=True)
class Condemned:
    """One namespace that is being deleted. `since`: its deletionTimestamp."""

    uid: str
    since: str
    asked: bool = False
    """A read of it, or of its pods, is under way; the next one is due at `ask_at`."""
    ask_at: float = -math.inf
    sure_at: float | None = None
    """When the API server itself had said so."""
    shown_at: float | None = None
    """When the last list of its pods was asked for that counts: after `sure_at` and `SETTLE_SECONDS`."""


def seen(world: World, namespace: Namespace) -> None:
    """Take a Namespace as a watch shows it."""
    meta = namespace.metadata
    if world.local or meta.deletion_timestamp is None:
        world.condemned.pop(meta.name, None)
    elif meta.name not in world.condemned or world.condemned[meta.name].uid != meta.uid:
        world.condemned[meta.name] = Condemned(uid=meta.uid, since=meta.deletion_timestamp)


def is_said(world: World, placement: Placement) -> bool:
    """Say whether a watch shows that the namespace of what is known of a placement is being deleted."""
    return _of(world, placement) is not None


def is_sure(world: World, placement: Placement) -> bool:
    """Say whether the API server itself has said so."""
    entry = _of(world, placement)
    return entry is not None and entry.sure_at is not None


def nothing_runs(world: World, placement: Placement) -> bool:
    """Say whether no pod of a placement's Jobs may run there, and none can come; nothing for kinds without such pods.

    What vanished is doubted beside this (`doubts`).
    """
    entry = _of(world, placement)
    if entry is None or entry.shown_at is None or not world.kind(placement).pods_are_children:
        return False
    return none_seen(world, placement)


def none_seen(world: World, placement: Placement) -> bool:
    """Say whether no pod of a placement's Jobs that is known may run."""
    return not placement.hidden and not any(map(pods.holds_resources, world.children(placement)))


def _of(world: World, placement: Placement) -> Condemned | None:
    """Return what is known of a placement's namespace, None where its objects may be in a later one of that name."""
    entry = world.condemned.get(placement.namespace)
    if entry is None:
        return None
    for tracked in placement.objects.values():
        known = tracked.last_object if tracked.object is None else tracked.object
        made = (known.metadata.creation_timestamp or "") if known is not None else ""
        if made > entry.since:  # both are RFC 3339 in UTC, to the second
            return None
    return entry
