"""Creates single pods and says when each has gone its whole way, by watches: the same for Gatelift and for the floor.

A placement is done when its Workload is Finished, the user's pod is over and without our finalizer, and the worker's
pod was there and is gone. All times are arrivals of watch events in this process, on the monotonic clock.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from bench.fleet import NAMESPACE, POD_CPU, QUEUE
from bench.hands import by_hands
from gatelift_kinds.any_pod.kind import AnyPodKind
from gatelift_kinds.pod.kind import PodKind
from gatelift_kinds.shared import markers
from gatelift_kinds.shared.review import WebhookFacts
from gatelift_kube.api.client import Client, Selection
from gatelift_kube.api.reflector import Reflector
from gatelift_kube.deciding.writes import ApiEvent, ObjectGone, ObjectSeen
from gatelift_kube.objects.conditions import is_true
from gatelift_kube.objects.core import Pod
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.process.tasks import Supervisor
from gatelift_kube.values.resources import POD, WORKLOAD
from gatelift_sandbox.behaviour import Behaviour, shape
from gatelift_sandbox.embedded.patching import json_patch

CREATES_IN_FLIGHT = 16
"""Enough to keep the API server busy; more only wait there, and make everybody else wait with them."""
ROUND_SECONDS_MAX = 300.0
RUN_SECONDS = 0.5
"""Long enough that running and over are two states that everybody sees, so that all writes of the road are made."""
IMAGE = "registry.local/pause:1"
OVER = ("Succeeded", "Failed")
POD_KIND = PodKind()


BESIDE = "beside-"
"""With this begin the names of pods that are there besides, and are not followed."""


@dataclass(slots=True)
class Way:
    """What was seen of one pod, by name of the sight, and when."""

    seen: dict[str, float] = field(default_factory=dict)
    cluster: str = ""

    @property
    def done(self) -> bool:
        """Whether nothing is left to happen."""
        return {"finished", "released", "removed"} <= self.seen.keys()


class Watcher:
    """Follows pods and Workloads of the bench in all clusters.

    `ways` is by name of the user's pod. What is seen of a group's Workload is under the group's name.
    """

    def __init__(self, clients: Mapping[str, Client]) -> None:
        self.ways: dict[str, Way] = {}
        self.changed = asyncio.Event()
        self.clients = clients
        self._supervisor = Supervisor(self._failed)
        self._failure: BaseException | None = None

    async def start(self) -> None:
        """List and watch; returns when the first lists are complete."""
        reflectors = self.reflectors()
        for reflector in reflectors:
            self._supervisor.spawn("watch", reflector.run())
        for reflector in reflectors:
            await reflector.synced.wait()

    def reflectors(self) -> list[Reflector]:
        """Return what is followed."""
        selection = Selection(namespace=NAMESPACE)
        pods = [
            Reflector(client, POD, self.emit(name), selection=selection, with_raw=False)
            for name, client in self.clients.items()
        ]
        workloads = Reflector(self.clients["mgmt"], WORKLOAD, self.emit("mgmt"), selection=selection, with_raw=False)
        return [*pods, workloads]

    async def stop(self) -> None:
        """End the watches."""
        await self._supervisor.stop()

    def forget(self) -> None:
        """Drop what was seen, for a new round."""
        self.ways.clear()

    async def until(self, done: Callable[[], bool], seconds: float = ROUND_SECONDS_MAX) -> None:
        """Wait for something that watch events bring about. TimeoutError tells how far it came."""
        try:
            async with asyncio.timeout(seconds):
                while not done():
                    if self._failure is not None:
                        raise self._failure
                    self.changed.clear()
                    await self.changed.wait()
        except TimeoutError:
            raise TimeoutError(f"not within {seconds:g} s: {self.story()}") from None

    def story(self) -> str:
        """Return how many pods have got how far."""
        counts: dict[str, int] = {}
        for way in self.ways.values():
            last = max(way.seen, key=lambda name: way.seen[name], default="created")
            counts[last] = counts.get(last, 0) + 1
        return ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))

    def fail(self, error: BaseException) -> None:
        """Let whoever waits know that nothing more will come."""
        self._failure = error
        self.changed.set()

    def _failed(self, _name: str, error: BaseException) -> None:
        self.fail(error)

    def emit(self, cluster: str) -> Callable[[ApiEvent], None]:
        """Return what takes the events of a cluster."""

        def emit(event: ApiEvent) -> None:
            now = time.monotonic()
            match event:
                case ObjectSeen(object=Workload() as workload):
                    self._workload(workload, now)
                case ObjectSeen(object=Pod() as pod) if cluster == "mgmt":
                    self._user_pod(pod, now)
                case ObjectSeen(object=Pod() as pod):
                    self._worker_pod(pod, cluster, now)
                case ObjectGone(object=Pod() as pod):
                    self._mark(pod.metadata.name, "gone" if cluster == "mgmt" else "removed", now)
                case _:
                    return
            self.changed.set()

        return emit

    def _workload(self, workload: Workload, now: float) -> None:
        whose = _whose(workload)
        if not whose or whose.startswith(BESIDE):
            return
        conditions = workload.status.conditions
        self._mark(whose, "workload", now)
        self.ways[whose].cluster = workload.status.cluster_name or self.ways[whose].cluster
        for type_, name in (("QuotaReserved", "reserved"), ("Admitted", "admitted"), ("Finished", "finished")):
            if is_true(conditions, type_):
                self._mark(whose, name, now)

    def _user_pod(self, pod: Pod, now: float) -> None:
        name = pod.metadata.name
        if name.startswith(BESIDE):
            return
        self._mark(name, "created", now)
        if pod.metadata.deletion_timestamp is not None:
            self._mark(name, "deleted", now)
        if pod.status.phase in OVER:
            self._mark(name, "mirrored", now)
            if markers.MANAGED not in pod.metadata.finalizers:
                self._mark(name, "released", now)

    def _worker_pod(self, pod: Pod, cluster: str, now: float) -> None:
        name = pod.metadata.name
        self._mark(name, "applied", now)
        self.ways[name].cluster = cluster
        if not pod.spec.scheduling_gates:
            self._mark(name, "lifted", now)
        if pod.status.phase == "Running":
            self._mark(name, "running", now)
        if pod.status.phase in OVER:
            self._mark(name, "over", now)

    def _mark(self, pod: str, name: str, now: float) -> None:
        way = self.ways.get(pod)
        if way is None:
            way = self.ways[pod] = Way()
        way.seen.setdefault(name, now)


def _whose(workload: Workload) -> str:
    """Return the name of the pod that a Workload is for, or of the group; "" where it is for nobody."""
    if workload.metadata.annotations.get(markers.IS_GROUP_WORKLOAD):
        return workload.metadata.name
    return next((owner.name for owner in workload.metadata.owner_references), "")


@asynccontextmanager
async def watching(clients: Mapping[str, Client]) -> AsyncIterator[Watcher]:
    """Watch for the time of a block."""
    watcher = Watcher(clients)
    try:
        await watcher.start()
        yield watcher
    finally:
        await watcher.stop()


def manifest(name: str, *, queue: str = QUEUE, run_seconds: float | None = RUN_SECONDS) -> dict[str, Any]:
    """Return the pod as a user writes it; with None it runs until it is stopped."""
    document = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {markers.QUEUE_NAME: queue}},
        "spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "main", "resources": {"requests": {"cpu": POD_CPU}}}],
        },
    }
    return shape(document, Behaviour(run_seconds=run_seconds), real_kubelet=False, image=IMAGE)


def mutated(document: dict[str, Any], kind: AnyPodKind = POD_KIND) -> dict[str, Any]:
    """Return the pod as the webhook leaves it."""
    facts = WebhookFacts(local_queues={QUEUE: True})
    return json_patch(document, list(kind.defaults(document, facts)))


async def create(client: Client, documents: list[dict[str, Any]], in_flight: int = CREATES_IN_FLIGHT) -> None:
    """Create pods, so many at a time."""
    bodies = (json.dumps(document).encode() for document in documents)
    await by_hands(bodies, lambda body: client.create(POD, NAMESPACE, body), in_flight)
