"""Elastic Jobs in an installation that serves them: the world, Jobs of a size, and what is seen of their chains."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import yaml

from gatelift.cli.manifests import deploy_folder
from gatelift_kube.api.client import Client
from gatelift_kube.values.resources import JOB, POD, WORKLOAD
from gatelift_sandbox import applying
from gatelift_sandbox.behaviour import Behaviour
from support.e2e import sliced_program
from support.e2e import world as e2e_world
from support.e2e.admission import said
from support.e2e.policies_in_force import policies_in_force
from support.e2e.world import TRANSITION_SECONDS, WORKERS, Json, World

ELASTIC = "kueue.x-k8s.io/elastic-job"
GATE = {"name": ELASTIC}
HOME = "mgmt"
AT_HOME = "at-home"
"""The queue that dispatches nowhere."""
FOR_EVER = Behaviour()
MANY = 100
"""Completions of a Job that no test sees to its end."""


@asynccontextmanager
async def sliced_world(folder: Path) -> AsyncIterator[World]:
    """Make a world whose daemons serve elastic Jobs, with the policies of these on every cluster."""
    environment = {"PYTHONPATH": os.pathsep.join(sys.path)}
    made = await e2e_world.make("local", folder, environment=environment, program=sliced_program.PROGRAM)
    try:
        await asyncio.gather(*(_guarded(client) for client in made.clients.values()))
        yield made
    finally:
        await e2e_world.end(made)


@asynccontextmanager
async def serving_slices(world: World) -> AsyncIterator[None]:
    """Have the daemons of a world that is there serve elastic Jobs meanwhile: all of them are started anew for that."""
    installation = world.installation
    await asyncio.gather(*(_guarded(client) for client in world.clients.values()))
    environment, installation.environment = installation.environment, {"PYTHONPATH": os.pathsep.join(sys.path)}
    try:
        await _started_by(world, (installation.program, sliced_program.PROGRAM))
        yield
    finally:
        installation.environment = environment
        await _started_by(world, (sliced_program.PROGRAM, installation.program))


async def _started_by(world: World, change: tuple[Sequence[str], Sequence[str]]) -> None:
    (before, after), installation = change, world.installation
    for daemon in installation.daemons.values():
        daemon.command[1 : 1 + len(before)] = after
        await installation.restart(daemon)
    await installation.wait_connected(*WORKERS)


async def _guarded(client: Client) -> None:
    text = (deploy_folder() / "components" / "elastic-jobs" / "policies.yaml").read_text(encoding="utf-8")
    await applying.apply(client, yaml.safe_load_all(text))
    await policies_in_force(client)


class ElasticJob:
    """A Job that asks to be elastic, in one world."""

    def __init__(self, world: World, base: str, queue: str, cpu: str = "100m") -> None:
        self.world = world
        self.name = world.name(base)
        self._queue, self._cpu = queue, cpu

    async def create(self, pods: int, **spec: Any) -> None:
        """Create it as its user does."""
        document = self.world.job(self.name, pods=pods, queue=self._queue, cpu=self._cpu, does=FOR_EVER)
        document["metadata"]["annotations"] = {ELASTIC: "true"}
        document["spec"] |= {"completions": MANY, **spec}
        await self.world.create(document)

    async def resize(self, pods: int) -> None:
        """Ask for another size."""
        await self.world.patch(JOB, self.name, {"spec": {"parallelism": pods}})

    # --- what is there -----------------------------------------------------------------------------------------

    async def pods(self, cluster: str) -> list[Json]:
        """Return its pods that do not terminate, oldest first."""
        every = await self.world.every(cluster, POD)
        mine = [one for one in every if _job_of(one) == self.name and "deletionTimestamp" not in one["metadata"]]
        return sorted(mine, key=lambda one: (one["metadata"]["creationTimestamp"], one["metadata"]["name"]))

    async def runs(self, cluster: str, count: int, waiting: int = 0, seconds: float = TRANSITION_SECONDS) -> list[Json]:
        """Wait until so many of its pods run there and so many wait at the gate, and no others; return who runs."""

        async def look() -> list[Json] | None:
            found = await self.pods(cluster)
            running = [one for one in found if one["status"].get("phase") == "Running"]
            gated = [one for one in found if GATE in one["spec"].get("schedulingGates", ())]
            right = len(running) == count and len(gated) == waiting and len(found) == count + waiting
            return (running or found or [{}]) if right else None

        text = f"{count} pods of {self.name} run in {cluster}, and {waiting} wait"
        found: list[Json] = await self.world.until(look, text, seconds)
        return [one for one in found if one]

    async def worker(self) -> str:
        """Wait until it is placed; return the worker."""

        async def look() -> str | None:
            for name in WORKERS:
                if await self.world.get(name, JOB, self.name) is not None:
                    return name
            return None

        found: str = await self.world.until(look, f"Job {self.name} is at a worker")
        return found

    async def slices(self) -> list[Json]:
        """Return its Workloads, past ones too, by the numbers of their sizes."""
        mine = [
            one
            for one in await self.world.every(HOME, WORKLOAD)
            if any(owner["name"] == self.name for owner in one["metadata"].get("ownerReferences", ()))
        ]
        return sorted(mine, key=number)

    async def where(self) -> str:
        """Return the cluster on which it runs: its worker, or home."""
        at_home = self._queue == AT_HOME
        return HOME if at_home else await self.worker()

    async def settled(self, count: int, seconds: float = TRANSITION_SECONDS) -> Json:
        """Wait until one slice is left that is not finished, which wants and is charged so many; return it."""

        async def look() -> Json | None:
            live = [one for one in await self.slices() if not finished(one)]
            if len(live) != 1 or wanted(live[0]) != count or charged(live[0]) != count:
                return None
            return live[0]

        found: Json = await self.world.until(look, f"{self.name} is of {count} pods, wanted and charged", seconds)
        return found

    async def waits(self, count: int) -> tuple[Json, Json]:
        """Wait until a growth to so many waits, and says why; return what runs, and what waits."""

        async def look() -> tuple[Json, Json] | None:
            live = [one for one in await self.slices() if not finished(one)]
            if len(live) != 2 or wanted(live[1]) != count or not (said(live[1], "QuotaReserved") or ("", "", ""))[2]:
                return None
            return live[0], live[1]

        found: tuple[Json, Json] = await self.world.until(look, f"a growth of {self.name} to {count} waits")
        return found

    async def remove(self) -> None:
        """Delete it, and wait until nothing is left of it anywhere: pods, copies, and all slices."""
        await self.world.delete(JOB, self.name)
        await self.world.gone(HOME, JOB, self.name)
        await self.world.nothing_left(self.name)
        await self.world.no_workload(self.name, "Job")

        async def absent() -> bool:
            return not await self.pods(HOME)

        await self.world.until(absent, f"no pod of {self.name} is left at home")


def _job_of(pod: Json) -> str:
    found: str = pod["metadata"].get("labels", {}).get("batch.kubernetes.io/job-name", "")
    return found


def number(workload: Json) -> int:
    """Return the number of a slice's size."""
    return int(workload["metadata"].get("annotations", {}).get("gatelift.dev/size", "1"))


def wanted(workload: Json) -> int:
    """Return for how many pods a slice asks."""
    (pod_set,) = workload["spec"]["podSets"]
    return int(pod_set["count"])


def charged(workload: Json) -> int:
    """Return for how many pods a slice is charged, 0 where it has no quota."""
    assignments = workload.get("status", {}).get("admission", {}).get("podSetAssignments", ())
    return sum(int(one["count"]) for one in assignments)


def finished(workload: Json) -> bool:
    """Say whether a slice is past."""
    return (said(workload, "Finished") or ("",))[0] == "True"


def identity(pod: Json) -> tuple[str, str, tuple[int, ...]]:
    """Return what is another one where a pod was stopped, made anew, or restarted."""
    counts = tuple(one["restartCount"] for one in pod["status"].get("containerStatuses", ()))
    return pod["metadata"]["uid"], pod["status"]["startTime"], counts


def untouched(before: list[Json], after: list[Json]) -> bool:
    """Say whether all pods of before run on as they were."""
    return {identity(one) for one in before} <= {identity(one) for one in after}


@asynccontextmanager
async def refusing(world: World, cluster: str, rule: Json, expression: str) -> AsyncIterator[None]:
    """Have an API server refuse writes meanwhile, whoever asks: what comes next stands still for as long as it takes.

    `rule` says of what, `expression` which of these are refused (CEL, over `object` and `oldObject`).
    """
    client, name = world.clients[cluster], world.name("stand-still")
    head = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": name}}
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [{"apiVersions": ["*"], "operations": ["UPDATE"], **rule}]},
        "validations": [{"expression": f"!({expression})", "message": f"refused by {name}"}],
    }
    documents = [
        {**head, "kind": "ValidatingAdmissionPolicy", "spec": spec},
        {
            **head,
            "kind": "ValidatingAdmissionPolicyBinding",
            "spec": {"policyName": name, "validationActions": ["Deny"]},
        },
    ]
    await applying.apply(client, documents)
    try:
        await policies_in_force(client)
        yield
    finally:
        for document in documents:
            await client.delete(applying.reference(document))
        await policies_in_force(client)


def no_finish(job: ElasticJob) -> tuple[Json, str]:
    """Return what refuses that a slice of a Job is finished."""
    of_job = f"object.metadata.name.startsWith('job-{job.name}-')"
    expression = f"{of_job} && object.status.conditions.exists(c, c.type == 'Finished')"
    return {"apiGroups": ["kueue.x-k8s.io"], "resources": ["workloads/status"]}, expression


def no_lift(job: ElasticJob) -> tuple[Json, str]:
    """Return what refuses that a pod of a Job is let go."""
    of_job = f"object.metadata.name.startsWith('{job.name}-')"
    expression = f"{of_job} && has(oldObject.spec.schedulingGates) && !has(object.spec.schedulingGates)"
    return {"apiGroups": [""], "resources": ["pods"]}, expression


def no_size(job: ElasticJob) -> tuple[Json, str]:
    """Return what refuses that a Job is set to another size."""
    expression = f"object.metadata.name == '{job.name}' && object.spec.parallelism != oldObject.spec.parallelism"
    return {"apiGroups": ["batch"], "resources": ["jobs"]}, expression
