"""Attacks: people edit, suspend, resize and delete by hand, around every webhook and policy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gatelift_kube.values.resources import JOB, POD, WORKLOAD, Resource
from support.sim.attribution import QUEUE, Work
from support.sim.cluster import TEAM, Doc, SimCluster
from support.sim.draws import a_worker, some
from support.sim.objects import holds, is_over, place_of
from support.sim.persons import is_lost, said_fenced, status_of

if TYPE_CHECKING:
    from support.sim.world import SimWorld

OURS = "gatelift.dev/"
PLACED_AS = "gatelift.dev/placed-as"
STOPPING = "gatelift.dev/stopping"
"""On what an agent stops."""


def ours(worker: SimCluster) -> list[tuple[Any, Doc]]:
    """Return the kinds and objects on a worker that wear a label of ours."""
    return [
        (resource, each)
        for resource in (POD, JOB)
        for each in worker.all(resource)
        if any(key.startswith(OURS) for key in each["metadata"].get("labels", {}))
    ]


def workers_finalizer_edited(world: SimWorld) -> bool:
    """Take the finalizers off an object on a worker."""
    _, worker = a_worker(world)
    found = some(world, [pair for pair in ours(worker) if pair[1]["metadata"].get("finalizers")])
    if found is None:
        return False
    resource, document = found
    return changed(worker, resource, document, {"metadata": {"finalizers": None}})


def homes_finalizer_edited(world: SimWorld) -> bool:
    """Take the finalizers off a user's pod."""
    found = some(world, [each for each in world.home.all(POD) if each["metadata"].get("finalizers")])
    return found is not None and changed(world.home, POD, found, {"metadata": {"finalizers": None}})


def workloads_finalizer_edited(world: SimWorld) -> bool:
    """Take the finalizers off a Workload without quota: while it has some, a policy keeps them Gatelift's."""
    found = some(world, [each for each in world.home.all(WORKLOAD) if not holds(each, "QuotaReserved")])
    return found is not None and changed(world.home, WORKLOAD, found, {"metadata": {"finalizers": None}})


def workers_label_edited(world: SimWorld) -> bool:
    """Take a label of ours off an object on a worker, or change it; or what else says there what it was placed as."""
    _, worker = a_worker(world)
    found = some(world, ours(worker))
    if found is None:
        return False
    resource, document = found
    if world.time.chance(0.25) and PLACED_AS in document["metadata"].get("annotations", {}):
        said = some(world, [None, "origin-1/somebody/1", "elsewhere/somebody/1"])
        return changed(worker, resource, document, {"metadata": {"annotations": {PLACED_AS: said}}})
    label = some(world, sorted(key for key in document["metadata"]["labels"] if key.startswith(OURS)))
    value = some(world, [None, "7", "somebody"])
    return changed(worker, resource, document, {"metadata": {"labels": {label: value}}})


def homes_label_edited(world: SimWorld) -> bool:
    """Take the labels of ours off a user's pod or Job that was let go, or change them."""
    pods = [(POD, each) for each in world.home.all(POD) if not _gated(each)]
    jobs = [(JOB, each) for each in world.home.all(JOB) if not each["spec"].get("suspend")]
    found = some(world, [each for each in (*pods, *jobs) if _ours_of(each[1])])
    if found is None:
        return False
    resource, document = found
    labels = _ours_of(document)
    edited = some(world, [labels, *([one] for one in labels)])
    value = some(world, [None, None, "7", "somebody"])
    return changed(world.home, resource, document, {"metadata": {"labels": dict.fromkeys(edited or (), value)}})


def _ours_of(document: Doc) -> list[str]:
    return sorted(key for key in document["metadata"].get("labels", {}) if key.startswith(OURS))


def epoch_edited(world: SimWorld) -> bool:
    """Raise the epoch of a Workload by hand."""
    found = some(world, world.home.all(WORKLOAD))
    if found is None:
        return False
    epoch = int(found["metadata"].get("annotations", {}).get("gatelift.dev/epoch", "1"))
    more = str(epoch + world.time.rng.choice((1, 5, 1000)))
    return changed(world.home, WORKLOAD, found, {"metadata": {"annotations": {"gatelift.dev/epoch": more}}})


def workers_job_suspended(world: SimWorld) -> bool:
    """Suspend a Job on a worker, or let one go that the record says is there.

    One that has ended there only the worker's policy keeps people from letting go, and so it is while an agent's word
    that it has stopped is on its way, or a person's that nothing runs there: who lets it go makes that word untrue.
    """
    name, worker = a_worker(world)
    found = some(world, worker.all(JOB))
    if found is None:
        return False
    suspended = found["spec"].get("suspend", False)
    if suspended and not _stands_there(world, name, worker, found):
        return False
    return changed(worker, JOB, found, {"spec": {"suspend": not suspended}})


def _stands_there(world: SimWorld, name: str, worker: SimCluster, job: Doc) -> bool:
    """Say whether a worker's Job is one that the record places there, and no word of its end counts or may come."""
    status = status_of(world, name)
    if said_fenced(world, name) or (STOPPING in job["metadata"].get("labels", {}) and not is_lost(status)):
        return False
    belongs = world.truth.whose.of(worker.name, job["metadata"]["uid"])
    record = world.truth.record(belongs.workload) if belongs is not None else None
    if belongs is None or record is None or not holds(record, "QuotaReserved"):
        return False
    return place_of(record) == (belongs.epoch, name)


def workers_job_resized(world: SimWorld) -> bool:
    """Change how many pods of a Job run at once on a worker."""
    _, worker = a_worker(world)
    found = some(world, worker.all(JOB))
    return found is not None and changed(
        worker, JOB, found, {"spec": {"parallelism": world.time.rng.choice((1, 3, 5))}}
    )


def _some_local(world: SimWorld, *, suspended: bool) -> Doc | None:
    """Return a Job of `local` that is so; where there is none its user makes one for the next time."""
    found: Doc | None = some(world, [each for each in _local_jobs(world, suspended=suspended) if not is_over(each)])
    if found is None and world.made < world.plan.workloads:
        world.make("stays", job=True)
    return found


def _local_jobs(world: SimWorld, *, suspended: bool) -> list[Doc]:
    jobs = [each for each in world.home.all(JOB) if each["metadata"].get("labels", {}).get("kueue.x-k8s.io/queue-name")]
    return [
        each for each in jobs if bool(each["spec"].get("suspend")) is suspended and not each["spec"].get("managedBy")
    ]


def homes_job_suspended(world: SimWorld) -> bool:
    """Let a user suspend a Job that runs at home."""
    found = _some_local(world, suspended=False)
    return found is not None and changed(world.home, JOB, found, {"spec": {"suspend": True}})


def _is_preceded(world: SimWorld, job: Doc) -> bool:
    """Say whether something may run of a Job that was deleted, and had this one's name."""
    work = Work(JOB.kind, TEAM, job["metadata"]["name"])
    return any(each.user != job["metadata"]["uid"] for each in world.truth.lives(work))


def homes_job_unsuspended(world: SimWorld) -> bool:
    """Let a user unsuspend a Job that waits, around the webhook; not while one runs that he had by that name before."""
    found = _some_local(world, suspended=True)
    if found is not None and _is_preceded(world, found):
        return False
    return found is not None and changed(world.home, JOB, found, {"spec": {"suspend": False}})


def homes_job_resized(world: SimWorld) -> bool:
    """Let a user change how many pods of his running Job run at once, around the webhook."""
    found = _some_local(world, suspended=False)
    return found is not None and changed(
        world.home, JOB, found, {"spec": {"parallelism": world.time.rng.choice((1, 2, 3))}}
    )


def counts_lowered(world: SimWorld) -> bool:
    """Lower the counts of a Workload that has its quota."""
    found = some(world, [each for each in world.home.all(WORKLOAD) if holds(each, "QuotaReserved")])
    if found is None or found["spec"]["podSets"][0].get("count", 1) < 2:
        return False
    sets = [{**one, "count": 1} for one in found["spec"]["podSets"]]
    return changed(world.home, WORKLOAD, found, {"spec": {"podSets": sets}})


def force_deleted(world: SimWorld) -> bool:
    """Delete a pod on a worker with no grace: its object is gone at once, its containers some time later."""
    _, worker = a_worker(world)
    found = some(world, worker.all(POD))
    if found is None:
        return False
    worker.delete(POD, found["metadata"]["name"], grace_seconds=0)
    return True


def jobs_pods_deleted(world: SimWorld) -> bool:
    """Delete pods of Jobs that run, with their grace, at home or on a worker; as a drained node does."""
    clusters = [world.home, a_worker(world)[1]]
    made = [(each, pod) for each in clusters for pod in each.all(POD) if pod["metadata"].get("ownerReferences")]
    running = [one for one in made if one[1].get("status", {}).get("phase") == "Running"]
    found = [some(world, running) for _ in range(2)]
    for cluster, pod in filter(None, found):
        cluster.delete(POD, pod["metadata"]["name"])
    return any(found)


def _gated(pod: Doc) -> bool:
    return bool(pod["spec"].get("schedulingGates"))


def changed(cluster: SimCluster, resource: Any, document: Doc, patch: Doc) -> bool:
    """Edit an object by hand, and say so; return whether it was taken."""
    cluster.timeline.say("by hand", f"{resource.kind} {document['metadata']['name']} on {cluster.name}: {patch}")
    return cluster.change(resource, document["metadata"]["name"], patch) is not None


def again_while_it_runs(world: SimWorld) -> bool:
    """Delete a user's object whose cluster is cut off, and let its user make it again under the same name at once."""
    _, worker = a_worker(world)
    found = some(
        world, [(kind, each) for kind, each in ours(worker) if world.home.look(kind, each["metadata"]["name"])]
    )
    if found is None:
        return False
    resource, document = found
    user = world.home.look(resource, document["metadata"]["name"])
    if user is None or user["metadata"].get("ownerReferences"):
        return False
    if worker.name not in world.net.cut:
        world.net.partition(worker.name)
        world.time.after(world.time.between(60.0, 200.0), lambda: world.net.mend(worker.name))
    world.home.delete(resource, user["metadata"]["name"])
    make_again(world, resource, user, while_it_runs=True)
    return True


def is_queued(document: Doc) -> bool:
    """Say whether an object is one that its user made for a queue: no pod of a Job, also where the Job is gone."""
    meta = document["metadata"]
    return not meta.get("ownerReferences") and QUEUE in meta.get("labels", {})


def make_again(world: SimWorld, resource: Resource, document: Doc, *, while_it_runs: bool = False) -> None:
    """Let the user create the same once more under the same name, as soon as that is free, or nothing runs of it."""
    name = document["metadata"]["name"]
    work = Work(resource.kind, TEAM, name)

    def act() -> None:
        if not world.troubled:
            return
        runs = not while_it_runs and world.truth.lives(work)
        if runs or world.home.look(resource, name) is not None:
            world.time.after(world.time.between(0.05, 2.0), act)
            return
        world.time.say("user", f"creates {resource.kind} {name} again")
        world.home.create(resource, anew(document))

    world.time.after(world.time.between(0.01, 2.0), act)


def anew(document: Doc) -> Doc:
    """Return an object as its user would create it again: gated or suspended, without what the API server added."""
    meta, spec = document["metadata"], document["spec"]
    kept = {key: meta[key] for key in ("name", "namespace", "labels", "annotations") if key in meta}
    own = ("gatelift.dev/", "kueue.x-k8s.io/cluster-queue", "kueue.x-k8s.io/podset")
    for marks in ("labels", "annotations"):
        kept[marks] = {key: value for key, value in kept.get(marks, {}).items() if not key.startswith(own)}
    if "template" not in spec:
        fresh = {key: spec[key] for key in ("containers", "restartPolicy", "schedulingGates") if key in spec}
        fresh["containers"] = [{k: v for k, v in one.items() if k != "volumeMounts"} for one in spec["containers"]]
        fresh["schedulingGates"] = [{"name": "kueue.x-k8s.io/admission"}]
        return {"metadata": {**kept, "finalizers": ["kueue.x-k8s.io/managed"]}, "spec": fresh}
    template = {"spec": {key: spec["template"]["spec"][key] for key in ("containers", "restartPolicy")}}
    marks = spec["template"].get("metadata", {}).get("annotations", {})
    template["metadata"] = {"annotations": {key: marks[key] for key in marks if not key.startswith(own)}}
    fresh = {key: spec[key] for key in ("parallelism", "completions", "managedBy", "backoffLimit") if key in spec}
    return {"metadata": kept, "spec": {**fresh, "suspend": True, "template": template}}
