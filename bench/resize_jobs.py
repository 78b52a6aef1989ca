"""Elastic Jobs for the benches: as a user makes them, as the webhook leaves them, and what is seen of their sizes.

All times are arrivals of watch events in this process, on the monotonic clock.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from bench.fleet import NAMESPACE, POD_CPU, QUEUE, UNSCHEDULED, Fleet
from bench.hands import by_hands
from bench.loader import CREATES_IN_FLIGHT, IMAGE, OVER, Watcher
from gatelift_kinds.job.elastic_kind import ElasticJobKind
from gatelift_kinds.shared import markers, sized_pods, sizes
from gatelift_kinds.shared.review import WebhookFacts
from gatelift_kube.api.client import Client, Selection
from gatelift_kube.api.reflector import Reflector
from gatelift_kube.deciding.writes import ApiEvent, ObjectGone, ObjectSeen
from gatelift_kube.objects.batch import Job
from gatelift_kube.objects.conditions import is_true
from gatelift_kube.objects.core import Pod
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.values.resources import JOB, ObjectKey, ObjectRef
from gatelift_sandbox.behaviour import Behaviour, shape
from gatelift_sandbox.embedded.patching import json_patch

KIND = ElasticJobKind()
COMPLETIONS = 100_000
"""Of Jobs that no bench sees to their end."""
FOR_EVER = Behaviour()
PATIENCE = 120.0
"""Seconds a user's write may take: all are made at once, and a webhook is asked about each."""
JOB_NAME = "batch.kubernetes.io/job-name"


def manifest(name: str, pods: int, *, queue: str = QUEUE, scheduled: bool = False) -> dict[str, Any]:
    """Return a Job as its user writes it. Not `scheduled`: no pod that is let go runs, and none of them ends."""
    spec: dict[str, Any] = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        "containers": [{"name": "main", "resources": {"requests": {"cpu": POD_CPU}}}],
    }
    if not scheduled:
        spec["schedulerName"] = UNSCHEDULED
    template = shape({"metadata": {}, "spec": spec}, FOR_EVER, real_kubelet=False, image=IMAGE)
    return {
        "apiVersion": JOB.api_version,
        "kind": JOB.kind,
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "labels": {markers.QUEUE_NAME: queue},
            "annotations": {markers.ELASTIC_JOB: "true"},
        },
        "spec": {"parallelism": pods, "completions": COMPLETIONS, "backoffLimit": 0, "template": template},
    }


def mutated(document: dict[str, Any]) -> dict[str, Any]:
    """Return the Job as the webhook leaves it, in a queue that dispatches."""
    facts = WebhookFacts(local_queues={QUEUE: True})
    return json_patch(document, list(KIND.defaults(document, facts)))


async def create(client: Client, documents: Iterable[dict[str, Any]]) -> None:
    """Make Jobs, some at a time."""
    bodies = (json.dumps(document).encode() for document in documents)
    await by_hands(bodies, lambda body: client.create(JOB, NAMESPACE, body, seconds=PATIENCE), CREATES_IN_FLIGHT)


async def resize(client: Client, names: Iterable[str], pods: int) -> None:
    """Ask for another size of Jobs as their users do, some at a time."""
    body = json.dumps({"spec": {"parallelism": pods}}).encode()
    await by_hands(names, lambda name: client.patch(ref(name), body, seconds=PATIENCE), CREATES_IN_FLIGHT)


def ref(name: str) -> ObjectRef:
    """Return where a Job is, at home and at a worker alike."""
    return ObjectRef(JOB, ObjectKey(NAMESPACE, name))


@dataclass(slots=True)
class Chain:
    """What is seen of one elastic Job. `last`: when each sight was had, the latest time.

    `made` and `lifted` are of its pods where it runs, `leaving` is one that is not to run any more; `charged` is what
    its slices say, `finished` that one of them is past.
    """

    last: dict[str, float] = field(default_factory=dict)
    wanted: int = 0
    given: int = 0
    """To how many pods the Job is set where it runs."""
    pods: dict[str, bool] = field(default_factory=dict)
    """Those that may still run, by name: whether they are let go."""
    lifted: dict[str, float] = field(default_factory=dict)
    slices: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Those that are not past: pods that each asks for, and pods that it is charged."""

    def user_job(self, job: Job, now: float) -> None:
        """Take the user's Job."""
        pods = job.spec.parallelism or 0
        if pods != self.wanted:
            self.wanted, self.last["wanted"] = pods, now

    def worker_job(self, job: Job, now: float) -> None:
        """Take the Job where it runs."""
        pods = job.spec.parallelism or 0
        if pods != self.given:
            self.given, self.last["given"] = pods, now

    def pod(self, pod: Pod, now: float) -> None:
        """Take one of its pods."""
        name = pod.metadata.name
        if pod.metadata.deletion_timestamp is not None or pod.status.phase in OVER:
            self.pod_leaves(name, now)
            return
        if name not in self.pods:
            self.last["made"] = now
        self.pods[name] = not sized_pods.is_gated(pod)
        if self.pods[name] and name not in self.lifted:
            self.lifted[name] = self.last["lifted"] = now

    def pod_leaves(self, name: str, now: float) -> None:
        """Take that a pod is not to run any more."""
        if self.pods.pop(name, None) is not None:
            self.last["leaving"] = now

    def slice(self, workload: Workload, now: float) -> None:
        """Take one of its Workloads."""
        name = workload.metadata.name
        if is_true(workload.status.conditions, "Finished"):
            if self.slices.pop(name, None) is not None:
                self.last["finished"] = now
            return
        admission = workload.status.admission
        charged = sum(one.count or 0 for one in admission.pod_set_assignments) if admission is not None else 0
        before = self.slices.get(name)
        self.slices[name] = (sum(sizes.counts_of(workload).values()), charged)
        if before is None or before[1] != charged:
            self.last["charged"] = now

    def is_of(self, pods: int) -> bool:
        """Say whether it is of a size in every respect: wanted, charged, let go, and nothing besides."""
        if self.wanted != pods or list(self.slices.values()) != [(pods, pods)]:
            return False
        return len(self.pods) == pods and all(self.pods.values())

    @property
    def moved(self) -> float:
        """Return when anything of it was seen last."""
        return max(self.last.values(), default=0.0)


class Chains(Watcher):
    """Follows elastic Jobs besides the pods that its elder follows. `home`: they run in the management cluster."""

    def __init__(self, made: Fleet, *, home: bool = False) -> None:
        super().__init__(made.clients)
        self.chains: dict[str, Chain] = {}
        self._home = home

    def reflectors(self) -> list[Reflector]:
        """Watch Jobs as well."""
        selection = Selection(namespace=NAMESPACE)
        jobs = [
            Reflector(client, JOB, self.emit(name), selection=selection, with_raw=False)
            for name, client in self.clients.items()
        ]
        return [*super().reflectors(), *jobs]

    def emit(self, cluster: str) -> Callable[[ApiEvent], None]:
        """Take what is of an elastic Job, and leave the rest to the elder."""
        others, runs_there = super().emit(cluster), (cluster == "mgmt") is self._home

        def emit(event: ApiEvent) -> None:
            if self._take(event, cluster, runs_there=runs_there):
                self.changed.set()
            else:
                others(event)

        return emit

    def _take(self, event: ApiEvent, cluster: str, *, runs_there: bool) -> bool:
        now = time.monotonic()
        match event:
            case ObjectSeen(object=Job() as job):
                chain = self._chain(job.metadata.name)
                if cluster == "mgmt":
                    chain.user_job(job, now)
                if runs_there:
                    chain.worker_job(job, now)
            case ObjectSeen(object=Workload() as workload) if markers.ELASTIC_JOB in workload.metadata.annotations:
                for owner in workload.metadata.owner_references:
                    self._chain(owner.name).slice(workload, now)
            case ObjectSeen(object=Pod() as pod) if name := pod.metadata.labels.get(JOB_NAME, ""):
                if runs_there:
                    self._chain(name).pod(pod, now)
            case ObjectGone(object=Pod() as pod) if name := pod.metadata.labels.get(JOB_NAME, ""):
                if runs_there:
                    self._chain(name).pod_leaves(pod.metadata.name, now)
            case ObjectGone(object=Job() as job):
                if cluster == "mgmt":
                    self.chains.pop(job.metadata.name, None)
            case _:
                return False
        return True

    def _chain(self, name: str) -> Chain:
        found = self.chains.get(name)
        if found is None:
            found = self.chains[name] = Chain()
        return found

    async def all_of(self, names: Iterable[str], pods: int) -> None:
        """Wait until Jobs are of a size in every respect."""
        wanted = list(names)

        def are() -> bool:
            while wanted and (one := self.chains.get(wanted[-1])) is not None and one.is_of(pods):
                wanted.pop()  # once is enough: nobody asks for another size meanwhile
            return not wanted

        await self.until(are)

    def seen(self, pod: str) -> Mapping[str, float]:
        """Return the sights of a pod of no Job."""
        way = self.ways.get(pod)
        return way.seen if way is not None else {}

    def story(self) -> str:
        """Return how many Jobs are of which size, and how the rest of them stands."""
        counts: dict[str, int] = {}
        for chain in self.chains.values():
            let_go = sum(chain.pods.values())
            said = (
                f"wanted {chain.wanted}, given {chain.given}, slices {sorted(chain.slices.values())}, let go {let_go}"
            )
            counts[f"{said} of {len(chain.pods)}"] = counts.get(f"{said} of {len(chain.pods)}", 0) + 1
        return "; ".join(f"{count} with {said}" for said, count in sorted(counts.items())) or super().story()


@asynccontextmanager
async def following(made: Fleet, *, home: bool = False) -> AsyncIterator[Chains]:
    """Watch for the time of a block."""
    watcher = Chains(made, home=home)
    try:
        await watcher.start()
        yield watcher
    finally:
        await watcher.stop()
