"""A person who reads what clusters in doubt show, and says what their conditions ask for, once it is true.

The word is about what the agent of a connected cluster does not list (docs/operations.md): which that is he has from
the manager's events (ClusterUnreachable), and he looks for it at every cluster of his. That agent lets nothing go that
it does not list (R1), so what is true stays true.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gatelift_kube.values.resources import JOB, POD
from support.sim.objects import holds, place_of
from support.sim.persons import is_lost, said_fenced, say_fenced, say_nothing_of_before_runs, status_of

if TYPE_CHECKING:
    from gatelift.core.state.core import Core
    from support.sim.world import SimWorld

LOOK_SECONDS = 30.0
DOUBTS = ("restoredSession", "replacedSession", "takenOverSession")


def attend(world: SimWorld, name: str) -> None:
    """Look at a cluster now and then, for the rest of the history."""
    settle(world, name)
    world.time.after(LOOK_SECONDS, lambda: attend(world, name))


def settle(world: SimWorld, name: str) -> bool:
    """Say of a connected cluster in doubt that nothing runs of what it does not list; return whether it was said."""
    status = status_of(world, name)
    doubted = max(status.get(each, 0) for each in DOUBTS)
    if is_lost(status) or (world.home.restores and _runs_unlisted(world, name)):
        return False  # of what a restored record has lost nobody tells him: he has looked for all that ran there
    if doubted <= status.get("settledSession", 0) or not status.get("unexplained"):
        return _answers_a_recovery(world, name, doubted)
    live = world.truth.all_live()
    remembered = {each["workloadUID"] for each in status.get("predecessors", []) if each["session"] < doubted}
    unlisted = _unlisted(world, name)
    if len(unlisted | remembered) < status["unexplained"]:
        return False  # who leads, if anybody does, has yet to tell of all that is counted there
    if any(uid in live for uid in unlisted | remembered):
        return False
    say_fenced(world, name, doubted - 1)
    return True


def has_yet_to_end(world: SimWorld, name: str) -> bool:
    """Say whether a person has said that nothing of before runs on a cluster, and the record still has such a run.

    The record lets go of it by that word alone. Once it has, what a backup brings back is nobody's (`truth`).
    """
    status = status_of(world, name)
    doubted = max(status.get(each, 0) for each in DOUBTS)
    if not (said_fenced(world, name) or 0 < doubted <= status.get("fencedThroughSession", 0) + 1):
        return False
    live = world.truth.all_live()
    return any(
        uid not in live and place_of(each)[1] == name and holds(each, "QuotaReserved") and not holds(each, "Finished")
        for uid, each in world.truth.workloads.items()
    )


def _answers_a_recovery(world: SimWorld, name: str, doubted: int) -> bool:
    """Say it also where the record has lost what it could miss, and its recovery waits for a person who has looked."""
    waits = any(name in core.caution.recovery.unvouched for core in _leading(world))
    if not waits:
        return False
    if not say_nothing_of_before_runs(world, name):
        say_fenced(world, name, doubted - 1)
    return True


def _runs_unlisted(world: SimWorld, name: str) -> bool:
    """Say whether something runs in a former cluster of this name, or in this one of what no object tells."""
    worker, truth = world.workers[name], world.truth
    objects = [each["metadata"]["uid"] for resource in (POD, JOB) for each in worker.all(resource)]
    told = {belongs.workload for uid in objects if (belongs := truth.whose.of(worker.name, uid)) is not None}
    return any(
        truth.known_as.get(cluster, cluster) == name and (cluster != worker.name or uid not in told)
        for uid, places in truth.all_live().items()
        for _, cluster in places
    )


def _unlisted(world: SimWorld, name: str) -> set[str]:
    """Return the Workloads of which the manager has told that their cluster cannot be asked for them."""
    placed = [core.attempts.get(uid) for core in _leading(world) for uid in core.placements.at(name)]
    return {each.uid for each in placed if each is not None and each.state.value == "Lost"}


def _leading(world: SimWorld) -> list[Core]:
    return [each.machine.core for each in world.managers if each.elector.leads()][-1:]
