"""A group of pods in an end-to-end scenario: what its user makes, what he sees of it, and what really ran."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gatelift_kube.deciding.errors import NotFoundError
from gatelift_kube.values.resources import EVENT, POD, WORKLOAD, ObjectKey, ObjectRef
from gatelift_sandbox.behaviour import Behaviour
from gatelift_sandbox.records import RunRecord
from support.e2e.admission import Said, runs, said
from support.e2e.world import NAMESPACE, TRANSITION_SECONDS, WORKERS, Json, World

K = "kueue.x-k8s.io/"
MANAGED = f"{K}managed"
RETRIABLE = f"{K}retriable-in-group"
AT_HOME, AWAY = "at-home", "multi"
PLACES = pytest.mark.parametrize("queue", [AT_HOME, AWAY])
FOR_EVER = Behaviour()


class Group:
    """One of `total` pods, whose names begin with that of the group. `total` None: its pods do not say how many."""

    def __init__(self, world: World, base: str, queue: str = AT_HOME, total: int | None = 3) -> None:
        self.world = world
        self.name = world.name(base)
        self.queue = queue
        self.total = total

    # --- what its user does ----------------------------------------------------------------------------------------

    def pod(
        self,
        each: str,
        does: Behaviour = FOR_EVER,
        cpu: str = "100m",
        labels: Json | None = None,
        notes: Json | None = None,
        **spec: Any,
    ) -> Json:
        """Return the manifest of a pod of the group."""
        document = self.world.pod(f"{self.name}-{each}", queue=self.queue, cpu=cpu, does=does)
        meta = document["metadata"]
        meta["labels"] |= {f"{K}pod-group-name": self.name} | (labels or {})
        counted = {} if self.total is None else {f"{K}pod-group-total-count": str(self.total)}
        meta["annotations"] = meta.get("annotations", {}) | counted | (notes or {})
        document["spec"] |= spec
        return document

    async def make(self, names: str, does: Behaviour = FOR_EVER, **more: Any) -> None:
        """Make a pod for each letter."""
        for each in names:
            await self.world.create(self.pod(each, does, **more))

    async def delete(self, names: str) -> None:
        """Delete the pod of each letter."""
        for each in names:
            await self.world.delete(POD, f"{self.name}-{each}")

    async def patch(self, body: Json) -> None:
        """Patch the Workload."""
        await self.world.patch(WORKLOAD, self.name, body)

    async def remove(self) -> None:
        """Delete all that is left, and wait until nothing is: pods, Workload, and what workers have."""
        for pod in await self.pods():
            await self.world.delete(POD, pod["metadata"]["name"])
        await self.nobody_is_left()

    async def end(self) -> None:
        """Delete the Workload, which ends also pods that were evicted and wait to be replaced."""
        await self.world.delete(WORKLOAD, self.name)
        await self.nobody_is_left()

    # --- what is seen ----------------------------------------------------------------------------------------------

    async def pods(self, cluster: str = "mgmt") -> list[Json]:
        """Return the pods of the group in a cluster."""
        every = await self.world.every(cluster, POD)
        return [pod for pod in every if pod["metadata"]["name"].startswith(f"{self.name}-")]

    async def names(self, met: Callable[[Json], bool] = lambda _: True, cluster: str = "mgmt") -> str:
        """Return the letters of the pods that are so."""
        return "".join(sorted(self._letter(pod["metadata"]["name"]) for pod in await self.pods(cluster) if met(pod)))

    async def workload(self) -> Json | None:
        """Return the Workload of the group's name."""
        return await self.world.get("mgmt", WORKLOAD, self.name)

    async def uid(self) -> str:
        """Return the UID of the Workload."""
        found = await self.workload()
        assert found is not None
        return str(found["metadata"]["uid"])

    async def says(self, type_: str, *what: str) -> Json:
        """Wait until the Workload says so: status, reason, message, as far as given; return it."""

        async def look() -> Json | None:
            found = await self.workload()
            shown: Said | tuple[()] = (said(found, type_) if found is not None else None) or ()
            return found if shown[: len(what)] == what else None

        found: Json = await self.world.until(look, f"group {self.name} says {type_}={' '.join(what)}")
        return found

    async def holds(self, names: str, met: Callable[[Json], bool], what: str, cluster: str = "mgmt") -> None:
        """Wait until just the pods of these letters are so."""

        async def look() -> bool:
            return await self.names(met, cluster) == names

        await self.world.until(look, f"of group {self.name} just {names or 'none'} {what}")

    async def exist(self, names: str) -> None:
        """Wait until just these pods are there."""
        await self.holds(names, lambda _: True, "exist")

    async def are_held(self, names: str) -> None:
        """Wait until just these have our finalizer."""
        await self.holds(names, lambda pod: MANAGED in pod["metadata"].get("finalizers", []), "have our finalizer")

    async def are_shown(self, names: str, phase: str) -> None:
        """Wait until just these are in a phase at home."""
        await self.holds(names, lambda pod: pod["status"].get("phase") == phase, f"are {phase}")

    async def warned(self, each: str, reason: str) -> str:
        """Wait until a pod was told something by an event; return what."""

        async def look() -> str:
            for event in await self.world.every("mgmt", EVENT):
                about = event["regarding"] if "regarding" in event else event["involvedObject"]
                if about["name"] == f"{self.name}-{each}" and event["reason"] == reason:
                    return str(event.get("note") or event.get("message"))
            return ""

        found: str = await self.world.until(look, f"pod {self.name}-{each} is told {reason}")
        return found

    # --- what ran --------------------------------------------------------------------------------------------------

    def all_runs(self) -> list[RunRecord]:
        """Return the runs of its pods, in order of start."""
        return runs(self.world, self.name)

    def runs_of(self, each: str) -> list[RunRecord]:
        """Return the runs of one pod, in order of start."""
        return [run for run in self.all_runs() if run.name == f"{self.name}-{each}"]

    def running(self) -> str:
        """Return the letters of those that run now."""
        return "".join(sorted(self._letter(run.name) for run in self.all_runs() if run.stopped is None))

    async def seen_running(self) -> str:
        """Return the letters of those that any cluster shows as running, for kubelets that keep no record."""
        shown = {at: await self.names(_runs, at) for at in ("mgmt", *WORKERS)}
        return "".join(sorted(set("".join(shown.values()))))

    async def run(self, names: str) -> None:
        """Wait until just these run."""
        recorded = not any(cluster.capabilities.real_kubelet for cluster in self.world.clusters.values())

        async def look() -> bool:
            return (self.running() if recorded else await self.seen_running()) == names

        await self.world.until(look, f"of group {self.name} just {names or 'none'} run")

    async def nobody_is_left(self, seconds: float = TRANSITION_SECONDS) -> None:
        """Wait until no cluster has anything of it."""

        async def look() -> bool:
            return not await self.pods() and await self.workload() is None

        await self.world.until(look, f"nothing of group {self.name} is left", seconds)
        await self.world.nothing_left(self.name)

    def _letter(self, name: str) -> str:
        return name.removeprefix(f"{self.name}-")


def _runs(pod: Json) -> bool:
    return bool(pod["status"].get("phase") == "Running")


async def remove_at(world: World, cluster: str, name: str) -> None:
    """Remove a pod of a worker at once, as a person with all rights does, or who takes its node away."""
    ref = ObjectRef(POD, ObjectKey(NAMESPACE, name))
    found = await world.get(cluster, POD, name)
    if found is None:
        return
    try:
        await world.patch(POD, name, {"metadata": {"finalizers": None}}, cluster=cluster)
        await world.clients[cluster].delete(ref, grace_seconds=0)
    except NotFoundError:
        return


async def placed_at(group: Group) -> str:
    """Wait until a group is placed at a worker; return which."""

    async def look() -> str:
        return str(((await group.workload()) or {}).get("status", {}).get("clusterName") or "")

    found: str = await group.world.until(look, f"group {group.name} is placed")
    assert found in WORKERS
    return found
