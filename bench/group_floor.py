"""The write floor of groups: a script without logic that makes just the writes that a group needs, in Gatelift's order.

`python -m bench.group_floor MGMT_KUBECONFIG W1_KUBECONFIG`. As `write_floor`, but pods are gathered, and a group goes
to the worker as one: Workload, all pods gated, all let go, each shown as it runs and ends, Workload, all taken away.
Neighbours: `group_pair` writes the same as two processes.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from typing import Any

import uvloop

from bench import group_bodies
from bench.fleet import NAMESPACE
from bench.write_floor import ORIGIN, PATIENCE, Floor, pod_of, ref, serve
from gatelift_kinds.shared import markers
from gatelift_kube.api.client import Client
from gatelift_kube.deciding.writes import PatchKind
from gatelift_kube.decoding.decoding import Served
from gatelift_kube.objects.core import Pod
from gatelift_kube.values.resources import POD
from gatelift_wire.values.keys import PlacementKey


class GroupFloor(Floor):
    """Sees groups through, each once as many pods are there as the first one says."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._gathered: dict[str, list[tuple[Pod, bytes]]] = {}

    def _begin(self, pod: Pod, raw: bytes) -> None:
        group = group_bodies.KIND.workload_name(pod)
        gathered = self._gathered.setdefault(group, [])
        gathered.append((pod, raw))
        if len(gathered) == int(pod.metadata.annotations[markers.POD_GROUP_TOTAL_COUNT]):
            self._supervisor.spawn(group, self._see_through(self._gathered.pop(group)))

    async def _see_through(self, pods: list[tuple[Pod, bytes]]) -> None:
        cluster = next(self._turns)
        worker = self._workers[cluster]
        granted = group_bodies.grant(*pods[0], len(pods))
        workload = await self._admit(group_bodies.group_workload(pods), granted, cluster)
        remotes = {pod.metadata.name: self._expect(pod) for pod, _ in pods}
        members = [(pod.metadata.name, pod.metadata.uid) for pod, _ in pods]
        made = await make_gated(worker, pods[0], members, workload.metadata.uid)

        async def run(user: Served, created: Served) -> Served:
            await let_go(worker, created)
            return await self._show(user, remotes[pod_of(user).metadata.name])

        users = [Served(pod, raw) for pod, raw in pods]
        shown = await asyncio.gather(*(run(*each) for each in zip(users, made, strict=True)))
        await self._finish(workload)
        await asyncio.gather(*(self._leave(worker, user, remotes[pod_of(user).metadata.name]) for user in shown))


async def make_gated(
    worker: Client, like: tuple[Pod, bytes], members: Sequence[tuple[str, str]], uid: str
) -> list[Served]:
    """Make all pods of a group at a worker, each by its name and the UID of its user's; `uid`: of the Workload."""
    placed = group_bodies.placed(*like, len(members), PlacementKey(uid, 1), ORIGIN)
    bodies = (placed.body(*member) for member in members)
    return await asyncio.gather(*(worker.create(POD, NAMESPACE, body, seconds=PATIENCE) for body in bodies))


async def let_go(worker: Client, created: Served) -> None:
    """Take our gate off a pod of a worker."""
    pod = pod_of(created)
    await worker.patch(ref(pod), group_bodies.KIND.lift_patch(pod), PatchKind.JSON, seconds=PATIENCE)


if __name__ == "__main__":
    uvloop.run(serve(sys.argv[1:], GroupFloor))
