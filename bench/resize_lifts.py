"""A loop that sets a Job to a size and lets each of its pods go as it comes: what an agent does, and nothing else.

`python -m bench.resize_lifts KUBECONFIG JOB PODS IN_FLIGHT`. With an agent's client and rights, and so many writes
under way as an agent has. It ends when so many pods are let go. Of a Job that is of this size already, its mark alone
is written: all pods wait, and are let go at once.
"""

from __future__ import annotations

import asyncio
import sys

import uvloop

from bench.fleet import NAMESPACE
from bench.resize_floor import let_go, set_size
from bench.resize_jobs import JOB_NAME, KIND
from bench.resize_jobs import ref as job_ref
from gatelift_kinds.shared import markers, sized_pods
from gatelift_kinds.shared.sizes import Size
from gatelift_kube.api.client import Client, Selection
from gatelift_kube.api.config import from_kubeconfig
from gatelift_kube.api.reflector import Reflector
from gatelift_kube.deciding.writes import ApiEvent, ObjectSeen
from gatelift_kube.objects.batch import Job
from gatelift_kube.objects.core import Pod
from gatelift_kube.process.tasks import Supervisor
from gatelift_kube.values.resources import POD

SECONDS_MAX = 300.0


class Loop:
    """Lets pods go, so many at a time."""

    def __init__(self, client: Client, name: str, pods: int, in_flight: int) -> None:
        self._client, self._name, self._pods = client, name, pods
        self._waiting: asyncio.Queue[tuple[Pod, bytes]] = asyncio.Queue()
        self._seen: set[str] = set()
        self._in_flight = in_flight
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.let_go = 0

    async def run(self) -> None:
        """Do all of it."""
        supervisor = Supervisor(self._failed)
        try:
            served = await self._client.get(job_ref(self._name))
            if not isinstance(served.object, Job):
                raise TypeError(f"the answer is no Job: {served.object!r}")
            pods = Reflector(self._client, POD, self._pod, selection=Selection(namespace=NAMESPACE))
            supervisor.spawn("watch", pods.run())
            await pods.synced.wait()
            number = (KIND.mark(served.object) or Size(number=1, counts={})).number + 1
            await set_size(
                self._client, served.object, Size(number=number, counts={markers.DEFAULT_POD_SET: self._pods})
            )
            for hand in range(self._in_flight):
                supervisor.spawn(f"hand {hand}", self._hand())
            async with asyncio.timeout(SECONDS_MAX):
                await self._ended
        finally:
            await supervisor.stop()

    def _pod(self, event: ApiEvent) -> None:
        if not isinstance(event, ObjectSeen) or not isinstance(event.object, Pod):
            return
        pod = event.object
        if pod.metadata.labels.get(JOB_NAME) != self._name or pod.metadata.uid in self._seen:
            return
        self._seen.add(pod.metadata.uid)
        if sized_pods.is_gated(pod):
            self._waiting.put_nowait((pod, event.raw))
        else:
            self._count()

    async def _hand(self) -> None:
        while True:
            pod, raw = await self._waiting.get()
            await let_go(self._client, pod, raw)
            self._count()

    def _count(self) -> None:
        self.let_go += 1
        if self.let_go >= self._pods and not self._ended.done():
            self._ended.set_result(None)

    def _failed(self, task: str, error: BaseException) -> None:
        if not self._ended.done():
            self._ended.set_exception(RuntimeError(f"{task}: {type(error).__name__}: {error}"))


async def main(kubeconfig: str, name: str, pods: int, in_flight: int) -> None:
    """Run against one API server."""
    async with Client.connect(await from_kubeconfig(kubeconfig), user_agent="resize-lifts") as client:
        await Loop(client, name, pods, in_flight).run()


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
