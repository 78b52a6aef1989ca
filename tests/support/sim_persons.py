"""What persons say of a lost cluster: a true word, for the session that the status names, or one that was named before.

True is a word that nothing of the sessions it names runs there or ever will again: the outside check knows the first,
and the second holds of a cluster that is cut off from who could let anything go, or of which nothing is left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gatelift_kube.resources import WORKER_CLUSTER
from support.sim_cluster import Doc

if TYPE_CHECKING:
    from support.sim_world import SimWorld

FENCED_THROUGH, FENCED_BY = "gatelift.dev/fenced-through-session", "gatelift.dev/fenced-by"


def status_of(world: SimWorld, name: str) -> Doc:
    """Return the status of a WorkerCluster."""
    found = world.home.look(WORKER_CLUSTER, name)
    return found.get("status", {}) if found is not None else {}


def is_lost(status: Doc) -> bool:
    """Say whether a WorkerCluster is shown as lost."""
    return any(one.get("reason") == "Lost" for one in status.get("conditions", []))


def nothing_runs(world: SimWorld, name: str) -> bool:
    """Say whether, in truth, nothing of ours runs in the cluster of that name."""
    physical = world.workers[name].name
    return not any(cluster == physical for live in world.truth.all_live().values() for _, cluster in live)


def say_fenced(world: SimWorld, name: str, session: int) -> None:
    """Say that a cluster is fenced through a session."""
    world.time.say("person", f"says that {name} is fenced through session {session}")
    said = {FENCED_THROUGH: str(session), FENCED_BY: "a person"}
    world.home.change(WORKER_CLUSTER, name, {"metadata": {"annotations": said}})


def fence_of_before(world: SimWorld, name: str) -> bool:
    """Say of a connected cluster in doubt that nothing runs of what it does not list, as its condition asks for.

    Whoever was served before has lost the right to start anything, and nothing runs there, nor in the cluster that had
    the name before.
    """
    status = status_of(world, name)
    doubted = max(status.get(each, 0) for each in ("restoredSession", "replacedSession", "takenOverSession"))
    if doubted <= status.get("settledSession", 0) or not status.get("unexplained") or is_lost(status):
        return False
    places = {name, world.workers[name].name}
    if any(cluster in places for live in world.truth.all_live().values() for _, cluster in live):
        return False
    say_fenced(world, name, doubted - 1)
    return True


def fence(world: SimWorld, name: str) -> bool:
    """Say so of a cluster that is shown as lost, if nothing runs there; return whether it was said."""
    status = status_of(world, name)
    if not is_lost(status) or not nothing_runs(world, name):
        return False
    say_fenced(world, name, status["session"])
    return True
