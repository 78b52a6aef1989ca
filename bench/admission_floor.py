"""The write floor of `admission_load`: admits each workload as soon as it is seen, and decides nothing.

`python -m bench.admission_floor KUBECONFIG`. The manager's client, rights, watch and bodies: one status write for each
workload. Prints `ready` once its list is complete and ends with its standard input.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import AsyncExitStack

import uvloop

from bench.generator import FLAVOR
from gatelift.core.records import admission_writes
from gatelift_admission.values.model import Reserve
from gatelift_kube.api.client import Client
from gatelift_kube.api.config import from_kubeconfig
from gatelift_kube.api.reflector import Reflector
from gatelift_kube.deciding.writes import ApiEvent, ObjectSeen, PatchKind
from gatelift_kube.objects.kueue import Admission, PodSetAssignment, Workload
from gatelift_kube.process.clock import wall
from gatelift_kube.process.tasks import Supervisor
from gatelift_kube.values.resources import WORKLOAD, ObjectKey, ObjectRef
from gatelift_kube.values.timestamps import to_text

CONNECTIONS = 64
WRITE_SECONDS = 60.0


def admission_body(workload: Workload) -> bytes:
    """Return the write that admits a workload of the generator."""
    queue = workload.spec.queue_name
    asked = workload.spec.pod_sets[0].template.spec.containers[0].resources.requests["cpu"]
    grant = PodSetAssignment(name="main", flavors={"cpu": FLAVOR}, resource_usage={"cpu": asked}, count=1)
    message = f"Quota reserved in ClusterQueue {queue}, wait time since queued was 0s"
    meta = workload.metadata
    key, admission = ObjectKey(meta.namespace, meta.name), Admission(queue, (grant,))
    reserve = Reserve(meta.uid, key, admission, (), 0.0, "", message, "")
    return admission_writes.admission_write(workload, reserve, 1, to_text(wall()))


class Floor:
    """Follows Workloads and admits them."""

    def __init__(self, client: Client, supervisor: Supervisor) -> None:
        self._client = client
        self._supervisor = supervisor
        self._seen: set[str] = set()
        self._waiting: asyncio.Queue[Workload] = asyncio.Queue()  # at most the workloads of the load

    async def start(self) -> None:
        """Watch, and start writing."""
        reflector = Reflector(self._client, WORKLOAD, self._event, with_raw=True)
        self._supervisor.spawn("watch", reflector.run())
        await reflector.synced.wait()
        for number in range(CONNECTIONS):
            self._supervisor.spawn(f"writes {number}", self._admit())

    def _event(self, event: ApiEvent) -> None:
        if isinstance(event, ObjectSeen) and isinstance(event.object, Workload):
            uid = event.object.metadata.uid
            if uid not in self._seen:
                self._seen.add(uid)
                self._waiting.put_nowait(event.object)

    async def _admit(self) -> None:
        while True:
            workload = await self._waiting.get()
            body = admission_body(workload)
            ref = ObjectRef(WORKLOAD, ObjectKey(workload.metadata.namespace, workload.metadata.name))
            await self._client.patch(ref, body, PatchKind.REPLACE, subresource="status", seconds=WRITE_SECONDS)


async def serve(kubeconfig: str) -> None:
    """Write until standard input ends. RuntimeError names the first write that failed."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()

    def fail(task: str, error: BaseException) -> None:
        if not ended.done():
            ended.set_exception(RuntimeError(f"{task}: {type(error).__name__}: {error}"))

    def end() -> None:
        loop.remove_reader(sys.stdin.fileno())
        if not ended.done():
            ended.set_result(None)

    supervisor = Supervisor(fail)
    async with AsyncExitStack() as stack:
        config = await from_kubeconfig(kubeconfig)
        client = await stack.enter_async_context(
            Client.connect(config, connections=CONNECTIONS, user_agent="write-floor")
        )
        stack.push_async_callback(supervisor.stop)
        await Floor(client, supervisor).start()
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        loop.add_reader(sys.stdin.fileno(), end)
        await ended


if __name__ == "__main__":
    uvloop.run(serve(sys.argv[1]))
