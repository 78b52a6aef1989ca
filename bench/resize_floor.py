"""The write floor of resizes: a script without logic that makes just the writes of a growth and of a shrink, in order.

`python -m bench.resize_floor MGMT_KUBECONFIG W1_KUBECONFIG`. It takes over elastic Jobs that Gatelift has placed and
left, with the same client, the same watches and the same bodies. For more pods: the next slice, its admission; then the
end of the slice before, and the worker's Job and each new pod's gate. For fewer: the slice, the worker's Job, and once
the surplus is gone the slice's status. Nothing is asked, held, checked, answered or shown.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Mapping

import uvloop

from bench.fleet import CHECK, NAMESPACE, QUEUE
from bench.generator import workload_of
from bench.resize_jobs import JOB_NAME, KIND
from bench.resize_jobs import ref as job_ref
from bench.write_floor import OVER, PATIENCE, serve
from gatelift.core.records import epochs, size_writes, status_writes
from gatelift.core.records.chain import REPLACED
from gatelift.core.works.past_slices import replaced
from gatelift_admission.values.model import Reserve
from gatelift_kinds.shared import markers, sized_pods, sizes, slices
from gatelift_kinds.shared.sizes import Size
from gatelift_kinds.shared.slices import NextSlice
from gatelift_kinds.shared.values import PodSetStart
from gatelift_kube.api.client import Client, Selection
from gatelift_kube.api.reflector import Reflector
from gatelift_kube.deciding.writes import ApiEvent, ObjectGone, ObjectSeen, PatchKind
from gatelift_kube.decoding.decoding import Served
from gatelift_kube.objects.batch import Job
from gatelift_kube.objects.conditions import is_true
from gatelift_kube.objects.core import Pod
from gatelift_kube.objects.kueue import Admission, Workload
from gatelift_kube.process.clock import wall
from gatelift_kube.process.tasks import Supervisor
from gatelift_kube.values.resources import JOB, POD, WORKLOAD, ObjectKey, ObjectRef
from gatelift_kube.values.timestamps import to_text
from gatelift_wire.values.keys import LABEL_ORIGIN

MAIN = markers.DEFAULT_POD_SET
START = PodSetStart(pod_set=MAIN)
TERM = 1


class Floor:
    """Follows elastic Jobs and writes."""

    def __init__(self, management: Client, workers: Mapping[str, Client], supervisor: Supervisor) -> None:
        (self._worker,) = workers.values()
        self._management = management
        self._supervisor = supervisor
        self._records: dict[str, tuple[Workload, bytes]] = {}  # by Job, as all that follows
        self._sizes: dict[str, int] = {}
        self._remote: dict[str, Job] = {}
        self._may_start: Counter[str] = Counter()
        self._pods: dict[str, set[str]] = {}
        self._fewer: dict[str, tuple[int, asyncio.Future[None]]] = {}

    async def start(self) -> None:
        """Watch what manager and agent watch of the objects that are written."""
        ours = Selection(namespace=NAMESPACE, labels=LABEL_ORIGIN)
        reflectors = [
            Reflector(self._management, WORKLOAD, self._workload),
            Reflector(self._worker, JOB, self._worker_job, selection=ours),
            Reflector(self._worker, POD, self._pod, selection=Selection(namespace=NAMESPACE)),
        ]
        for reflector in reflectors:
            self._supervisor.spawn("watch", reflector.run())
        for reflector in reflectors:
            await reflector.synced.wait()
        users = Reflector(self._management, JOB, self._user_job, selection=Selection(namespace=NAMESPACE))
        self._supervisor.spawn("watch", users.run())
        await users.synced.wait()

    # --- what is seen --------------------------------------------------------------------------------------------

    def _workload(self, event: ApiEvent) -> None:
        if not isinstance(event, ObjectSeen) or not isinstance(event.object, Workload):
            return
        workload = event.object
        if is_true(workload.status.conditions, "Finished") or workload.status.admission is None:
            return
        for owner in workload.metadata.owner_references:
            if owner.name not in self._sizes:  # as Gatelift left it; after that our own answers are newer
                self._records[owner.name] = (workload, event.raw)

    def _worker_job(self, event: ApiEvent) -> None:
        if isinstance(event, ObjectSeen) and isinstance(event.object, Job):
            self._remote[event.object.metadata.name] = event.object

    def _user_job(self, event: ApiEvent) -> None:
        if not isinstance(event, ObjectSeen) or not isinstance(event.object, Job):
            return
        job = event.object
        name, pods = job.metadata.name, job.spec.parallelism or 0
        known = self._sizes.setdefault(name, sizes.counts_of(self._records[name][0])[MAIN])
        self._sizes[name] = pods
        if pods > known:
            self._supervisor.spawn(name, self._grow(job, pods, pods - known))
        elif pods < known:
            self._supervisor.spawn(name, self._shrink(name, pods))

    def _pod(self, event: ApiEvent) -> None:
        if not isinstance(event, ObjectSeen | ObjectGone) or not isinstance(event.object, Pod):
            return
        pod, name = event.object, event.object.metadata.labels.get(JOB_NAME, "")
        there = self._pods.setdefault(name, set())
        leaves = pod.metadata.deletion_timestamp is not None or pod.status.phase in OVER
        if isinstance(event, ObjectGone) or leaves:
            there.discard(pod.metadata.name)
            count, fewer = self._fewer.get(name, (-1, None))
            if fewer is not None and len(there) <= count and not fewer.done():
                fewer.set_result(None)
        elif pod.metadata.name not in there:
            there.add(pod.metadata.name)
            if sized_pods.is_gated(pod) and self._may_start[name]:
                self._may_start[name] -= 1
                self._supervisor.spawn(pod.metadata.name, let_go(self._worker, pod, event.raw))

    # --- what is written -----------------------------------------------------------------------------------------

    async def _grow(self, job: Job, pods: int, more: int) -> None:
        name = job.metadata.name
        record, raw = self._records[name]
        size = Size(number=sizes.number_of(record.metadata.annotations) + 1, counts={MAIN: pods})
        new = NextSlice(name=KIND.slice_name(job), size=size, epoch=epochs.of(record))
        body = slices.following(record, raw, new)
        target = workload_of(await self._management.create(WORKLOAD, NAMESPACE, body, seconds=PATIENCE))
        admitted = await self._status(target, admission(target, record, pods))
        self._records[name] = (workload_of(admitted), admitted.raw)
        self._may_start[name] += more
        await asyncio.gather(self._finish(record, target), self._set(name, size))

    async def _shrink(self, name: str, pods: int) -> None:
        record, raw = self._records[name]
        size = Size(number=sizes.number_of(record.metadata.annotations) + 1, counts={MAIN: pods})
        body = slices.resized(record, raw, size)
        where = _of(record)
        asked = await self._management.patch(where, body, PatchKind.MERGE, seconds=PATIENCE)
        fewer = asyncio.get_running_loop().create_future()
        self._fewer[name] = (pods, fewer)
        await self._set(name, size)
        await fewer
        known = workload_of(asked)
        lowered = size_writes.lowered(granted(known), size.counts)
        done = await self._status(known, size_writes.shrink_write(known, lowered, to_text(wall())))
        self._records[name] = (workload_of(done), done.raw)

    async def _finish(self, record: Workload, by: Workload) -> None:
        text = replaced(by.metadata.uid, by.metadata.owner_references[0].uid)
        await self._status(record, status_writes.finished_write(record, REPLACED, text, to_text(wall())))

    async def _set(self, name: str, size: Size) -> None:
        await set_size(self._worker, self._remote[name], size)

    async def _status(self, workload: Workload, body: bytes) -> Served:
        written = self._management.patch(_of(workload), body, PatchKind.REPLACE, subresource="status", seconds=PATIENCE)
        return await written


def admission(target: Workload, record: Workload, pods: int) -> bytes:
    """Return the status write by which a slice is the record."""
    more = size_writes.raised(granted(record), {MAIN: pods}, {})
    message = f"Quota reserved in ClusterQueue {QUEUE}, wait time since queued was 0s"
    meta = target.metadata
    reserve = Reserve(meta.uid, ObjectKey(meta.namespace, meta.name), more, (CHECK,), 0.0, "", message, "")
    return size_writes.growth_write(target, record, reserve, TERM, to_text(wall()))


def granted(record: Workload) -> Admission:
    """Return what a record is charged."""
    if record.status.admission is None:
        raise TypeError(f"nothing is granted to {record.metadata.name}")
    return record.status.admission


async def set_size(worker: Client, job: Job, size: Size) -> None:
    """Set a worker's Job to a size, with its mark."""
    body = KIND.size_patch(job, size)
    if body is not None:
        await worker.patch(job_ref(job.metadata.name), body, PatchKind.JSON, seconds=PATIENCE)


async def let_go(client: Client, pod: Pod, raw: bytes) -> None:
    """Take the gate of elastic work off a pod."""
    where = ObjectRef(POD, ObjectKey(NAMESPACE, pod.metadata.name))
    await client.patch(where, KIND.ungate_patch(pod, raw, START), PatchKind.JSON, seconds=PATIENCE)


def _of(workload: Workload) -> ObjectRef:
    return ObjectRef(WORKLOAD, ObjectKey(NAMESPACE, workload.metadata.name))


if __name__ == "__main__":
    uvloop.run(serve(sys.argv[1:], Floor))
