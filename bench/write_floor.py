"""The write floor: a script without logic that makes just the writes that single pods need, in Gatelift's order.

`python -m bench.write_floor MGMT_KUBECONFIG W1_KUBECONFIG W2_KUBECONFIG`. It stands in for manager, agents and webhooks
alike, with the same Kubernetes client, the same watches and the same bodies: pods come already mutated, go to the
workers in turn, and nothing is checked, remembered or reported. Prints `ready` once its lists are complete and ends
with its standard input.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Protocol

import uvloop

from bench.fleet import CHECK, FLAVOR, NAMESPACE, POD_CPU, QUEUE, WORKERS
from bench.generator import workload_of
from gatelift.core.records import admission_writes, status_writes
from gatelift_admission.values.model import Reserve
from gatelift_agent.core.refusing.sanitise import sanitise
from gatelift_agent.core.values.settings import Policy
from gatelift_kinds.pod.kind import PodKind
from gatelift_kinds.shared.patches import without_finalizer
from gatelift_kinds.shared.values import Part, Placing, Priority
from gatelift_kube.api.client import Client, Selection
from gatelift_kube.api.config import from_kubeconfig
from gatelift_kube.api.reflector import Reflector
from gatelift_kube.deciding.writes import ApiEvent, ObjectSeen, PatchKind
from gatelift_kube.decoding.decoding import Served
from gatelift_kube.objects.core import Pod, raw_status
from gatelift_kube.objects.kueue import Admission, PodSetAssignment, Workload
from gatelift_kube.process.clock import wall
from gatelift_kube.process.tasks import Supervisor
from gatelift_kube.values.resources import POD, WORKLOAD, ObjectKey, ObjectRef
from gatelift_kube.values.timestamps import to_text
from gatelift_wire.values.keys import FINALIZER_REPORT, LABEL_ORIGIN, PlacementKey
from gatelift_wire.values.messages import DisconnectPolicy

CONNECTIONS = 64
PATIENCE = 120.0
"""Seconds a write may take: all workloads are written at once, so the last ones wait long for their turn."""
ORIGIN = "write-floor"
MANAGED = "kueue.x-k8s.io/managed=true"
OVER = ("Succeeded", "Failed")
KIND = PodKind()


@dataclass(slots=True)
class Remote:
    """What was seen of a worker's pod: its status as it ran, and as it was over; `pod`: itself, then."""

    running: asyncio.Future[bytes] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    over: asyncio.Future[bytes] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    pod: Pod | None = None

    def is_seen(self, phase: str, status: bytes) -> None:
        """Take how it is."""
        if phase == "Running" and not self.running.done():
            self.running.set_result(status)
        if phase in OVER and not self.over.done():
            self.over.set_result(status)


class Floor:
    """Follows pods and writes."""

    def __init__(self, management: Client, workers: dict[str, Client], supervisor: Supervisor) -> None:
        self._management = management
        self._workers = workers
        self._supervisor = supervisor
        self._turns = itertools.cycle(workers)
        self._seen: set[str] = set()
        self._remotes: dict[str, Remote] = {}

    async def start(self) -> None:
        """Watch what manager and agents watch of the objects that are written; the rest never changes."""
        managed, ours = Selection(labels=MANAGED), Selection(namespace=NAMESPACE, labels=LABEL_ORIGIN)
        reflectors = [
            Reflector(self._management, POD, self._user_pod, selection=managed),
            Reflector(self._management, WORKLOAD, _ignore),
            *(Reflector(client, POD, self._worker_pod, selection=ours) for client in self._workers.values()),
        ]
        for reflector in reflectors:
            self._supervisor.spawn("watch", reflector.run())
        for reflector in reflectors:
            await reflector.synced.wait()

    def _user_pod(self, event: ApiEvent) -> None:
        if not isinstance(event, ObjectSeen) or not isinstance(event.object, Pod):
            return
        pod = event.object
        if pod.metadata.uid not in self._seen and pod.metadata.deletion_timestamp is None:
            self._seen.add(pod.metadata.uid)
            self._begin(pod, event.raw)

    def _begin(self, pod: Pod, raw: bytes) -> None:
        self._supervisor.spawn(pod.metadata.name, self._place(pod, raw, next(self._turns)))

    def _worker_pod(self, event: ApiEvent) -> None:
        if not isinstance(event, ObjectSeen) or not isinstance(event.object, Pod):
            return
        pod, remote = event.object, self._remotes.get(event.object.metadata.name)
        if remote is None:
            return
        remote.pod = pod
        remote.is_seen(pod.status.phase, raw_status(event.raw))

    async def _place(self, pod: Pod, raw: bytes, cluster: str) -> None:
        worker, remote = self._workers[cluster], self._expect(pod)
        grant = PodSetAssignment(name="main", flavors={"cpu": FLAVOR}, resource_usage={"cpu": POD_CPU}, count=1)
        workload = await self._admit(KIND.workload_document(pod, raw, Priority()), grant, cluster)
        await _apply_and_lift(worker, pod, raw, workload)
        user = await self._show(Served(pod, raw), remote)
        await self._finish(workload)
        await self._leave(worker, user, remote)

    def _expect(self, pod: Pod) -> Remote:
        remote = self._remotes[pod.metadata.name] = Remote()
        return remote

    async def _show(self, user: Served, remote: Remote) -> Served:
        user = await self._mirror(user, await remote.running)
        return await self._mirror(user, await remote.over)

    async def _finish(self, workload: Workload) -> None:
        await self._patch_workload(workload, status_writes.finished_write(workload, "Succeeded", "", to_text(wall())))

    async def _leave(self, worker: Client, user: Served, remote: Remote) -> None:
        await self._release(user)
        if remote.pod is not None:
            await remove(worker, remote.pod)
        del self._remotes[pod_of(user).metadata.name]

    async def _release(self, user: Served) -> None:
        pod = pod_of(user)
        release = KIND.release_step(pod)
        if release is not None:
            await self._management.patch(ref(pod), release.body, release.kind, seconds=PATIENCE)

    async def _admit(self, body: bytes, grant: PodSetAssignment, cluster: str) -> Workload:
        return await self._reserve(await self._make_workload(body), grant, cluster)

    async def _make_workload(self, body: bytes) -> Workload:
        return workload_of(await self._management.create(WORKLOAD, NAMESPACE, body, seconds=PATIENCE))

    async def _reserve(self, workload: Workload, grant: PodSetAssignment, cluster: str) -> Workload:
        choice = admission_writes.Choice(cluster=cluster, epoch=1, term=1, policy=DisconnectPolicy.WAIT, check=CHECK)
        message = f"Quota reserved in ClusterQueue {QUEUE}, wait time since queued was 0s"
        meta = workload.metadata
        key, admission = ObjectKey(meta.namespace, meta.name), Admission(QUEUE, (grant,))
        reserve = Reserve(meta.uid, key, admission, (CHECK,), 0.0, "", message, "")
        written = admission_writes.admission_write(workload, reserve, choice, to_text(wall()))
        return await self._patch_workload(workload, written)

    async def _patch_workload(self, workload: Workload, body: bytes) -> Workload:
        where = ObjectRef(WORKLOAD, ObjectKey(NAMESPACE, workload.metadata.name))
        written = self._management.patch(where, body, PatchKind.REPLACE, subresource="status", seconds=PATIENCE)
        return workload_of(await written)

    async def _mirror(self, user: Served, status: bytes) -> Served:
        body = KIND.mirror_patch(pod_of(user), user.raw, status)
        if body is None:
            return user
        return await self._management.patch(ref(pod_of(user)), body, subresource="status", seconds=PATIENCE)


async def _apply_and_lift(worker: Client, pod: Pod, raw: bytes, workload: Workload) -> None:
    (part,) = KIND.parts(pod, raw)
    sane = Part(name=part.name, pod_set=part.pod_set, metadata=part.metadata, spec=sanitise(KIND, part.spec, Policy()))
    placing = Placing(key=PlacementKey(workload.metadata.uid, 1), origin=ORIGIN, namespace=NAMESPACE)
    created = await worker.create(POD, NAMESPACE, KIND.document(sane, placing), seconds=PATIENCE)
    await worker.patch(ref(pod), KIND.lift_patch(pod_of(created)), PatchKind.JSON, seconds=PATIENCE)


async def remove(worker: Client, pod: Pod) -> None:
    """Take what holds a pod of a worker off it, and delete it, unless it is being deleted."""
    unhold = without_finalizer(pod.metadata, FINALIZER_REPORT)
    if unhold is not None:
        await worker.patch(ref(pod), unhold, PatchKind.JSON, seconds=PATIENCE)
    if pod.metadata.deletion_timestamp is None:
        await worker.delete(ref(pod), uid=pod.metadata.uid, seconds=PATIENCE)


def ref(pod: Pod) -> ObjectRef:
    """Return what names a pod, at home and at a worker alike."""
    return ObjectRef(POD, ObjectKey(NAMESPACE, pod.metadata.name))


def pod_of(served: Served) -> Pod:
    """Return the pod of an answer."""
    if not isinstance(served.object, Pod):
        raise TypeError(f"the answer is no Pod: {served.object!r}")
    return served.object


def _ignore(_event: ApiEvent) -> None:
    """Take an event and do nothing: the manager reads this watch, too."""


def _fail(ended: asyncio.Future[None]) -> Callable[[str, BaseException], None]:
    def fail(task: str, error: BaseException) -> None:
        if not ended.done():
            ended.set_exception(RuntimeError(f"{task}: {type(error).__name__}: {error}"))

    return fail


Begin = Callable[[list[Client], Supervisor, AsyncExitStack], Awaitable[None]]
"""Starts what writes, with a client for each cluster; returns once its lists are complete."""


class Script(Protocol):
    """What writes, once it has started."""

    async def start(self) -> None:
        """Return when its lists are complete."""


async def serve(
    kubeconfigs: list[str], floor_of: Callable[[Client, dict[str, Client], Supervisor], Script] = Floor
) -> None:
    """Write until standard input ends. RuntimeError names the first write that failed."""

    async def begin(clients: list[Client], supervisor: Supervisor, _stack: AsyncExitStack) -> None:
        await floor_of(clients[0], dict(zip(WORKERS, clients[1:], strict=False)), supervisor).start()

    await live(kubeconfigs, begin)


async def live(kubeconfigs: list[str], begin: Begin) -> None:
    """Do as `serve` does with whatever `begin` starts."""
    ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    supervisor = Supervisor(_fail(ended))
    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(
                Client.connect(await from_kubeconfig(path), connections=CONNECTIONS, user_agent="write-floor")
            )
            for path in kubeconfigs
        ]
        stack.push_async_callback(supervisor.stop)
        await begin(clients, supervisor, stack)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        asyncio.get_running_loop().add_reader(sys.stdin.fileno(), _end, ended)
        await ended


def _end(ended: asyncio.Future[None]) -> None:
    asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
    if not ended.done():
        ended.set_result(None)


if __name__ == "__main__":
    uvloop.run(serve(sys.argv[1:]))
