"""What is asked of the worker's API server, each with a number under which its answer is found: writes, and reads.

What has just been carried out and is due again all the same has to wait: a webhook may undo a write, and it must not go
round without a pause. Neighbours: `values.asked` says what each is for, `answers` takes what is answered, `world` says
whether one more may be asked for (`has_room`).
"""

from __future__ import annotations

from gatelift_agent.core.placement.placements import Placement, Tracked
from gatelift_agent.core.state.world import World
from gatelift_agent.core.values.asked import Asked, SamplePod, WantedDelete, WantedPatch, WritePurpose
from gatelift_agent.core.values.commands import ReadNamespace, ReadPods
from gatelift_kube.deciding.writes import Create, Delete, Patch, PatchKind
from gatelift_kube.objects.core import Pod
from gatelift_kube.values.resources import POD, ObjectKey, ObjectRef


def create(world: World, placement: Placement, tracked: Tracked, body: bytes, now: float) -> None:
    """Create an object of a placement."""
    write_id = _ask(world, tracked, _of(WritePurpose.CREATE, placement, tracked, now))
    if write_id:
        world.commands.append(Create(write_id=write_id, ref=tracked.ref, body=body))


def sample(world: World, placement: Placement, tracked: Tracked, pod: SamplePod, now: float) -> None:
    """Ask what a pod of a pod set that an object makes would be here; nothing is made."""
    write_id = _ask(world, tracked, _of(WritePurpose.SAMPLE, placement, tracked, now, form=pod.pod_set))
    if write_id:
        ref = ObjectRef(POD, tracked.ref.key)
        world.commands.append(Create(write_id=write_id, ref=ref, body=pod.body, dry_run=True))


def why(world: World, placement: Placement, tracked: Tracked, pod: SamplePod, now: float) -> None:
    """Ask what the API server says of one more pod of an object; nothing is made, and no write waits for it."""
    asked = Asked(purpose=WritePurpose.WHY, key=placement.key, name="", form=pod.pod_set, at=now)
    ref = ObjectRef(POD, tracked.ref.key)
    world.commands.append(Create(write_id=world.writes.ask(asked), ref=ref, body=pod.body, dry_run=True))


def patch(world: World, placement: Placement, tracked: Tracked, wanted: WantedPatch, now: float) -> bool:
    """Patch an object of a placement; False when it has to wait, as after one without effect."""
    form = f"{wanted.kind.name} {wanted.subresource} {wanted.what}"
    write_id = _ask(world, tracked, _of(wanted.purpose, placement, tracked, now, form=form))
    if write_id:
        world.commands.append(
            Patch(
                write_id=write_id,
                ref=tracked.ref,
                body=wanted.body,
                kind=wanted.kind,
                subresource=wanted.subresource,
            )
        )
    return write_id != 0


def delete(world: World, placement: Placement, tracked: Tracked, wanted: WantedDelete, now: float) -> bool:
    """Delete an object with its UID as precondition; False when it has to wait, as after one without effect."""
    asked = Asked(purpose=wanted.purpose, key=placement.key, name=tracked.name, at=now, form="delete", deletes=True)
    write_id = _ask(world, tracked, asked)
    if write_id:
        world.commands.append(
            Delete(write_id=write_id, ref=tracked.ref, uid=wanted.uid, grace_seconds=wanted.grace_seconds)
        )
    return write_id != 0


def child_delete(world: World, placement: Placement, pod: Pod, now: float, *, grace_seconds: int | None) -> None:
    """Delete a pod whose Job is gone; its outcome changes nothing, the watch tells the rest."""
    ref = ObjectRef(POD, ObjectKey(pod.metadata.namespace, pod.metadata.name))
    asked = Asked(purpose=WritePurpose.CHILD, key=placement.key, name=pod.metadata.name, at=now)
    write_id = world.writes.ask(asked)
    world.commands.append(Delete(write_id=write_id, ref=ref, uid=pod.metadata.uid, grace_seconds=grace_seconds))


def child_labels(world: World, placement: Placement, pod: Pod, body: bytes, now: float) -> None:
    """Put the labels of a Job's pod back, which tells whether it is there."""
    ref = ObjectRef(POD, ObjectKey(pod.metadata.namespace, pod.metadata.name))
    asked = Asked(purpose=WritePurpose.CHILD_LABELS, key=placement.key, name=pod.metadata.name, at=now)
    world.commands.append(Patch(write_id=world.writes.ask(asked), ref=ref, body=body, kind=PatchKind.MERGE))


def ungate(world: World, placement: Placement, pod: Pod, body: bytes, now: float) -> None:
    """Let one pod of elastic work go."""
    ref = ObjectRef(POD, ObjectKey(pod.metadata.namespace, pod.metadata.name))
    asked = Asked(purpose=WritePurpose.UNGATE, key=placement.key, name="", form=pod.metadata.uid, at=now)
    world.commands.append(Patch(write_id=world.writes.ask(asked), ref=ref, body=body, kind=PatchKind.JSON))


def pods(world: World, placement: Placement, now: float) -> None:
    """Read which pods of a placement there are."""
    placement.pods_asked = True
    read_id = world.writes.ask(Asked(purpose=WritePurpose.PODS, key=placement.key, name="", at=now))
    labels = tuple(sorted(world.owner_labels(placement).items()))
    world.commands.append(ReadPods(read_id=read_id, namespace=placement.namespace, labels=labels))


def namespace(world: World, placement: Placement, now: float) -> None:
    """Read the namespace of a placement whose objects cannot be asked for themselves."""
    if placement.namespace_asked or not world.has_room(placement):
        return
    placement.namespace_asked = True
    read_id = world.writes.ask(Asked(purpose=WritePurpose.NAMESPACE, key=placement.key, name="", at=now))
    world.commands.append(ReadNamespace(read_id=read_id, name=placement.namespace))


def whether_deleted(world: World, name: str, now: float) -> None:
    """Read a namespace that a watch calls deleted."""
    read_id = world.writes.ask(Asked(purpose=WritePurpose.NAMESPACE, key=None, name=name, at=now))
    world.commands.append(ReadNamespace(read_id=read_id, name=name))


def all_pods(world: World, name: str, now: float) -> None:
    """Read all pods of a namespace, whatever their labels."""
    read_id = world.writes.ask(Asked(purpose=WritePurpose.PODS, key=None, name=name, at=now))
    world.commands.append(ReadPods(read_id=read_id, namespace=name, labels=()))


def _of(purpose: WritePurpose, placement: Placement, tracked: Tracked, now: float, *, form: str = "") -> Asked:
    return Asked(purpose=purpose, key=placement.key, name=tracked.name, at=now, form=form)


def _ask(world: World, tracked: Tracked, asked: Asked) -> int:
    """Return the id of a write; 0 when the same one has just been carried out and is due again all the same."""
    if tracked.carried_out == (asked.purpose, asked.form) and asked.at < tracked.again_at:
        if asked.key is not None:
            world.wakes.ask(asked.key, tracked.again_at)
        return 0
    tracked.asked = world.writes.ask(asked)
    return tracked.asked
