"""What persons say: of a lost cluster, and of a management cluster that was restored.

Of a lost cluster a true word, for the session that the status names, or one that was named before. True is a word that
nothing of the sessions it names runs there or ever will again: the outside check knows the first, and the second holds
of a cluster that is cut off from who could let anything go, or of which nothing is left. Of a restored one what
docs/operations.md says that they type: look, `gatelift recover --go-on`, and `--stop` for what is left.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from gatelift.cli.recover import EPOCHS_ABOVE
from gatelift.core.records import epochs
from gatelift.core.state.recovery_asked import ANNOTATION_FENCED_GONE, Without, without
from gatelift.core.state.recovery_values import (
    ANNOTATION_RECOVER,
    ANNOTATION_RESTORED,
    ANNOTATION_STOP_UNEXPLAINED,
    Finding,
    RecoverWord,
    Told,
    told,
    word,
)
from gatelift_kube.objects.gatelift import WorkerCluster
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.values.resources import WORKER_CLUSTER, WORKLOAD
from support.sim.attribution import EPOCH
from support.sim.cluster import Doc
from support.sim.objects import epoch_of

if TYPE_CHECKING:
    from support.sim.world import SimWorld

FENCED_THROUGH, FENCED_BY = "gatelift.dev/fenced-through-session", "gatelift.dev/fenced-by"
FENCED_AFTER = "gatelift.dev/fenced-after"
RAISE_TO = re.compile(r"raise the annotation gatelift\.dev/epoch to ([0-9]+) or above")
LOOK_AGAIN_SECONDS = 20.0
"""How long at most who recovers a management cluster does something else before looking again."""


def status_of(world: SimWorld, name: str) -> Doc:
    """Return the status of a WorkerCluster."""
    found = world.home.look(WORKER_CLUSTER, name)
    return found.get("status", {}) if found is not None else {}


def is_lost(status: Doc) -> bool:
    """Say whether a WorkerCluster is shown as lost."""
    return any(one.get("reason") == "Lost" for one in status.get("conditions", []))


def nothing_runs(world: SimWorld, name: str) -> bool:
    """Say whether, in truth, nothing of ours runs in the cluster of that name, or in one that had it before."""
    known_as = world.truth.known_as
    return not any(known_as.get(at, at) == name for live in world.truth.all_live().values() for _, at in live)


def said_fenced(world: SimWorld, name: str) -> bool:
    """Say whether a person's word stands that the present session of a cluster is fenced, carried out or not."""
    found = world.home.look(WORKER_CLUSTER, name) or {"metadata": {}}
    status = found.get("status", {})
    said = FENCED_THROUGH in found["metadata"].get("annotations", {})
    return said or status.get("fencedThroughSession", 0) >= status.get("session", 0)


def say_fenced(world: SimWorld, name: str, session: int) -> None:
    """Say that a cluster is fenced through a session, as `gatelift cluster fenced` does."""
    world.time.say("person", f"says that {name} is fenced through session {session}")
    local = _local(world)
    finding = (told(local) or Told()).finding if local is not None else None
    said = {FENCED_THROUGH: str(session), FENCED_BY: "a person", FENCED_AFTER: finding.since if finding else None}
    world.home.change(WORKER_CLUSTER, name, {"metadata": {"annotations": said}})


def say_nothing_of_before_runs(world: SimWorld, name: str) -> bool:
    """Say so, as the same verb does, where a recovery asks about an object that the name has no more; else False."""
    local = _local(world)
    shown = (told(local) or Told()) if local is not None else Told()
    if local is None or shown.finding is None or name not in shown.clusters or not shown.clusters[name].gone:
        return False
    said, since = without(local), shown.finding.since
    world.time.say("person", f"says that nothing of before runs on {name}, after the finding of {since}")
    names = {**(said.names if said.since == since else {}), name: "a person"}
    _annotate(world, "local", ANNOTATION_FENCED_GONE, msgspec.json.encode(Without(since=since, names=names)).decode())
    return True


def fence(world: SimWorld, name: str) -> bool:
    """Say so of a cluster that is shown as lost, if nothing runs there; return whether it was said."""
    status = status_of(world, name)
    if not is_lost(status) or not nothing_runs(world, name):
        return False
    say_fenced(world, name, status["session"])
    return True


def say_restored(world: SimWorld) -> None:
    """Say that the management cluster was restored, as `gatelift recover --restored` does."""
    if _local(world) is not None:
        world.time.say("person", "says that the management cluster was restored")
        _annotate(world, "local", ANNOTATION_RESTORED, f"a person at {world.time.wall:.3f}")


def recover(world: SimWorld) -> None:
    """Be who has restored the management cluster: look now and then, and go on as the page says."""
    if world.is_being_recovered:
        return
    world.is_being_recovered = True
    seen: list[Finding] = []  # what was shown at the last look

    def look() -> None:
        found = _local(world)
        if found is not None:
            shown = told(found) or Told()
            said = word(found)
            if shown.finding is None:
                _stop_what_is_left(world, shown)
                _raise_what_is_held(world)
            elif shown.finding in seen and (said is None or said.since != shown.finding.since):
                _go_on(world, shown.finding)
            seen[:] = [shown.finding] if shown.finding is not None else []
        world.time.after(world.time.between(1.0, LOOK_AGAIN_SECONDS), look)

    look()


def _local(world: SimWorld) -> WorkerCluster | None:
    found = world.home.look(WORKER_CLUSTER, "local")
    return msgspec.convert(found, WorkerCluster, strict=False) if found is not None else None


def _go_on(world: SimWorld, finding: Finding) -> None:
    """Type `gatelift recover --go-on`."""
    every = [msgspec.convert(each, Workload, strict=False) for each in world.home.all(WORKLOAD)]
    highest = max((max(epochs.annotated(each), epochs.used(each)) for each in every), default=0)
    world.time.say("person", f"goes on after the finding of {finding.since}, epochs above {highest}")
    said = RecoverWord(since=finding.since, epochs=highest + EPOCHS_ABOVE, who="a person")
    world.truth.recovered(said.epochs)
    _annotate(world, "local", ANNOTATION_RECOVER, msgspec.json.encode(said).decode())


def _stop_what_is_left(world: SimWorld, shown: Told) -> None:
    """Type `gatelift recover --stop CLUSTER` where something is shown as later or unexplained."""
    for name, found in shown.clusters.items():
        session = status_of(world, name).get("session", 0)
        if session and (found.unexplained or found.ahead):
            world.time.say("person", f"stops what nothing explains on {name}, session {session}")
            _annotate(world, name, ANNOTATION_STOP_UNEXPLAINED, str(session))


def _raise_what_is_held(world: SimWorld) -> None:
    """Raise the epoch of who waits since a cluster names a later one, as its condition says."""
    for each in world.home.all(WORKLOAD):
        asked = next(
            filter(
                None,
                (
                    RAISE_TO.search(one.get("message", ""))
                    for one in each.get("status", {}).get("conditions", [])
                    if one["type"] in {"QuotaReserved", "gatelift.dev/Held"} and one.get("reason") == "EpochAhead"
                ),
            ),
            None,
        )
        if asked is not None and epoch_of(each) < int(asked[1]):
            name = each["metadata"]["name"]
            world.time.say("person", f"raises the epoch of {name} to {asked[1]}")
            world.home.change(WORKLOAD, name, {"metadata": {"annotations": {EPOCH: asked[1]}}})


def _annotate(world: SimWorld, name: str, annotation: str, text: str) -> None:
    world.home.change(WORKER_CLUSTER, name, {"metadata": {"annotations": {annotation: text}}})
