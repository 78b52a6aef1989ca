"""A running Gatelift for end-to-end tests: one management cluster, two workers, all daemons as processes.

Tests speak to it as users do: they create objects in the management cluster, and look at objects in all clusters.
Everything waited for has a limit, and what is missing is said.

Nothing is ordered between two objects or two clusters but what the protocol promises: what a test asserts of an object
it asserts of the one reading that it waited for. What lasts for a moment only is asked of the history (`showed`).
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from gatelift_kube.api.client import Client
from gatelift_kube.deciding.errors import AlreadyExistsError, ConflictError, KubeError, NotFoundError
from gatelift_kube.deciding.retry import is_transient
from gatelift_kube.process.tasks import spawn
from gatelift_kube.values.resources import JOB, NODE, POD, WORKLOAD, ObjectKey, ObjectRef, Resource
from gatelift_sandbox import applying, behaviour, records
from gatelift_sandbox.behaviour import Behaviour
from gatelift_sandbox.installation import PROGRAM, Installation
from gatelift_sandbox.provider import Cluster, NodeShape, Provider, ProviderSettings, load
from support.e2e import log_tails
from support.e2e.history import History
from support.e2e.keeper import Keeper
from support.e2e.policies_in_force import policies_in_force
from support.e2e.queues import QUEUES, SENDING_QUEUES

NAMESPACE = "team-a"
WORKERS = ("w1", "w2")
GPU = "vendor.com/gpu"
"""A resource that nodes have besides those of Kubernetes, under the name of KEP-976's stories."""
TRANSITION_SECONDS = 120.0
"""Any one step (admitted, running, cleaned up) takes about a second; a loaded machine gets two minutes."""

USER_SECONDS = 50.0
"""What a person waits for an answer to a write; below the 60 s after which API servers give up."""

MODULE_SECONDS = 600
"""Time limit of a test: above the waits of any of them on a machine that is five times slower, and the start of the
clusters besides, which the first one pays for. A test that hangs is told by its own waits long before."""

POLL_SECONDS = 0.1

GRACE_SECONDS = 10
"""Grace period of the pods made here."""

LEASE = (6, 4, 0.5)
"""Length, trust and retry in seconds of the leader leases here: a killed process is outwaited in a third of the usual
time, and a busy machine still renews in time, since each renews on a thread of its own."""

PROVIDER_ENVIRONMENT = "GATELIFT_E2E_PROVIDER"
"""Names the provider of the scenarios."""

REQUIRED = os.environ.get("GATELIFT_REQUIRE_E2E") == "1"
"""Whoever sets it wants to hear of what cannot be run here as a failure, not as a test that was skipped."""

Json = dict[str, Any]


@dataclass(slots=True)
class World:
    """The clusters, the installation, and what a test does with them."""

    provider: Provider
    installation: Installation
    clients: dict[str, Client]
    clusters: dict[str, Cluster]
    history: History
    keeper: Keeper
    background: list[asyncio.Task[None]] = field(default_factory=list)
    made: list[tuple[str, ObjectRef]] = field(default_factory=list)
    """What the scenario that runs has made, and where: for who tidies up after it, should it fail."""
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    # --- objects ---------------------------------------------------------------------------------------------------

    def name(self, base: str) -> str:
        """Return a name that no other test of this run uses."""
        return f"{base}-{next(self._numbers)}"

    async def get(self, cluster: str, resource: Resource, name: str, namespace: str = NAMESPACE) -> Json | None:
        """Return an object as JSON, None when it is not there."""
        key = ObjectKey(namespace if resource.namespaced else "", name)
        try:
            served = await self.clients[cluster].get(ObjectRef(resource, key))
        except NotFoundError:
            return None
        found: Json = json.loads(served.raw)
        return found

    async def every(self, cluster: str, resource: Resource, namespace: str = NAMESPACE) -> list[Json]:
        """Return all objects of a kind in a namespace, as JSON."""
        path, end = resource.path(namespace if resource.namespaced else ""), time.monotonic() + TRANSITION_SECONDS
        while True:
            try:
                items: list[Json] = json.loads(await self.clients[cluster].raw("GET", path))["items"]
            except KubeError as error:  # a busy server's; what cannot be read is no finding
                if not is_transient(error) or time.monotonic() > end:
                    raise
                await asyncio.sleep(POLL_SECONDS)
            else:
                return items

    async def create(self, document: Mapping[str, Any], cluster: str = "mgmt") -> Json:
        """Create an object as a user does, who tries again when webhooks or the API server did not answer in time."""
        ref = applying.reference(document, NAMESPACE)
        tries = itertools.count()

        async def made() -> Json | None:
            again = next(tries) > 0
            try:
                return await self.create_once(document, cluster)
            except AlreadyExistsError:
                if not again:
                    raise
                return await self.get(cluster, ref.resource, ref.key.name)  # only its answer was lost

        found: Json = await self.until(made, f"{document['kind']} {document['metadata']['name']} is created")
        return found

    async def create_once(self, document: Mapping[str, Any], cluster: str = "mgmt") -> Json:
        """Create an object by one request."""
        ref = applying.reference(document, NAMESPACE)
        body = json.dumps(document).encode()
        self.made.append((cluster, ref))
        served = await self.clients[cluster].create(ref.resource, ref.key.namespace, body, seconds=USER_SECONDS)
        made: Json = json.loads(served.raw)
        return made

    async def patch(
        self, resource: Resource, name: str, body: Mapping[str, Any], cluster: str = "mgmt", subresource: str = ""
    ) -> None:
        """Merge-patch an object as a user does; again, which changes nothing more, where no answer came in time.

        An API server gives up a patch that names no version when others write the object again and again: once more.
        """
        ref = ObjectRef(resource, ObjectKey(NAMESPACE if resource.namespaced else "", name))
        text = json.dumps(body).encode()
        of_a_version = "resourceVersion" in body.get("metadata", {})

        async def done() -> bool:
            try:
                await self.clients[cluster].patch(ref, text, subresource=subresource, seconds=USER_SECONDS)
            except ConflictError:
                if of_a_version:
                    raise
                return False
            return True

        await self.until(done, f"{resource.kind} {name} is patched")

    async def delete(self, resource: Resource, name: str, cluster: str = "mgmt") -> None:
        """Delete an object as a user does; one that is gone is fine."""
        found = await self.get(cluster, resource, name)
        if found is None:
            return
        ref = ObjectRef(resource, ObjectKey(NAMESPACE if resource.namespaced else "", name))

        async def done() -> bool:
            with contextlib.suppress(NotFoundError, ConflictError):
                await self.clients[cluster].delete(ref, uid=found["metadata"]["uid"], seconds=USER_SECONDS)
            return True

        await self.until(done, f"{resource.kind} {name} is deleted")

    async def remove(self, resource: Resource, *names: str) -> None:
        """Delete users' pods or Jobs, and wait until nothing is left of them: objects, work, Workloads and quota."""
        for name in names:
            await self.delete(resource, name)
        for name in names:
            await self.gone("mgmt", resource, name)
        await self.nothing_left(*names)
        for name in names:
            await self.no_workload(name, resource.kind)

    @contextlib.asynccontextmanager
    async def draining(self, cluster: str, name: str) -> AsyncIterator[float]:
        """Cordon the node of a pod and evict the pod, as a drain does; yield when that was. Uncordons at the end.

        The embedded server knows no eviction yet: there the pod is deleted, which is what an eviction comes to.
        """
        pod = await self.get(cluster, POD, name)
        assert pod is not None, f"pod {name} is on {cluster}"
        node = pod["spec"]["nodeName"]
        await self.patch(NODE, node, {"spec": {"unschedulable": True}}, cluster=cluster)
        try:
            began = time.monotonic()
            if self.clusters[cluster].capabilities.real_api_server:
                path = POD.path(NAMESPACE, name, "eviction")
                eviction = json.dumps({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}})

                async def evicted() -> bool:
                    with contextlib.suppress(NotFoundError):  # only its answer was lost
                        await self.clients[cluster].raw("POST", path, body=eviction.encode())
                    return True

                await self.until(evicted, f"pod {name} is evicted from {cluster}")
            else:
                await self.delete(POD, name, cluster=cluster)
            yield began
        finally:
            await self.patch(NODE, node, {"spec": {"unschedulable": None}}, cluster=cluster)

    def pod(self, name: str, queue: str = "multi", cpu: str = "500m", does: Behaviour | None = None) -> Json:
        """Return the manifest of a pod that queues and behaves so."""
        spec = {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": GRACE_SECONDS,
            "containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}],
        }
        metadata = {"name": name, "namespace": NAMESPACE, "labels": {"kueue.x-k8s.io/queue-name": queue}}
        document = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        return self.shaped(document, does)

    def job(
        self, name: str, pods: int = 5, queue: str = "multi", cpu: str = "200m", does: Behaviour | None = None
    ) -> Json:
        """Return the manifest of a Job that queues, all of whose pods behave so."""
        template = {
            "metadata": {},
            "spec": {
                "restartPolicy": "Never",
                "terminationGracePeriodSeconds": GRACE_SECONDS,
                "containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}],
            },
        }
        return {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"kueue.x-k8s.io/queue-name": queue}},
            "spec": {
                "parallelism": pods,
                "completions": pods,
                "backoffLimit": 0,
                "template": self.shaped(template, does),
            },
        }

    def shaped(self, template: Json, does: Behaviour | None) -> Json:
        """Return a pod, or a template of pods, that behaves so on the kubelets that are here."""
        real = self.clusters["w1"].capabilities.real_kubelet
        image = os.environ.get("GATELIFT_TEST_IMAGE", "registry.local/pause:1")
        return behaviour.shape(template, does or Behaviour(run_seconds=0.5), real_kubelet=real, image=image)

    # --- waiting ---------------------------------------------------------------------------------------------------

    async def until(self, look: Callable[[], Any], what: str, seconds: float = TRANSITION_SECONDS) -> Any:
        """Await `look()` until it returns something true; fail saying what did not come.

        An answer that only a busy server gives counts as a look that saw nothing. Where a manager gave up its lead the
        time begins anew: nothing happens until the next one leads, which takes a machine that busy as long again.
        """
        end, restarts = time.monotonic() + seconds, len(self.keeper.restarts)
        trouble = ""
        while True:
            if len(self.keeper.restarts) > restarts:
                end, restarts = time.monotonic() + seconds, len(self.keeper.restarts)
            for task in self.background:
                if task.done():
                    task.result()  # raises: these run as long as the world does
            try:
                found = await look()
            except KubeError as error:
                if not is_transient(error):
                    raise
                found, trouble = None, f" (once: {error})"
            if found:
                return found
            if time.monotonic() > end:
                raise AssertionError(f"not within {seconds:g} s: {what}{trouble}\n{await self.story()}")
            await asyncio.sleep(POLL_SECONDS)

    async def gone(self, cluster: str, resource: Resource, name: str, seconds: float = TRANSITION_SECONDS) -> None:
        """Wait until an object is not there any more."""

        async def absent() -> bool:
            return await self.get(cluster, resource, name) is None

        await self.until(absent, f"{resource.kind} {name} is gone from {cluster}", seconds)

    async def sends_elsewhere(self, *queues: str) -> None:
        """Wait until the webhooks know by their own watches that work of these queues leaves: they mark Jobs so."""
        for queue in queues:
            probe = json.dumps(self.job(f"probe-{queue}", queue=queue)).encode()

            async def marked(probe: bytes = probe) -> bool:
                served = await self.clients["mgmt"].create(JOB, NAMESPACE, probe, dry_run=True, seconds=USER_SECONDS)
                return bool(json.loads(served.raw)["spec"].get("managedBy"))

            await self.until(marked, f"the webhooks know that LocalQueue {queue} sends work to other clusters")

    async def no_workload(self, name: str, kind: str = "Pod") -> None:
        """Wait until an object has no Workload any more, and so no quota."""

        async def absent() -> bool:
            return await self.workload_of(name, kind) is None

        await self.until(absent, f"the Workload of {kind} {name} is gone")

    async def workload_of(self, name: str, kind: str = "Pod") -> Json | None:
        """Return the Workload that was made for an object."""
        for workload in await self.every("mgmt", WORKLOAD):
            owners = workload["metadata"].get("ownerReferences", [])
            if any(owner["name"] == name and owner["kind"] == kind for owner in owners):
                return workload
        return None

    async def showed(
        self, name: str, met: Callable[[Json], bool], what: str, kind: str = "Pod", after: Json | None = None
    ) -> Json:
        """Wait until the Workload of an object is so, or was so once, however short; return its first such version.

        `after`: a version of it; only what was written later counts.
        """

        async def look() -> Json | None:
            return self.history.first(kind, name, met, after)

        found: Json = await self.until(look, what)
        return found

    async def condition(self, name: str, type_: str, kind: str = "Pod", status: str = "True") -> Json:
        """Wait until the Workload of an object has a condition; return the Workload."""

        async def look() -> Json | None:
            workload = await self.workload_of(name, kind)
            if workload is None:
                return None
            conditions = workload.get("status", {}).get("conditions", [])
            return workload if any(each["type"] == type_ and each["status"] == status for each in conditions) else None

        found: Json = await self.until(look, f"{type_}={status} on the Workload of {kind} {name}")
        return found

    async def phase(self, name: str, *phases: str, cluster: str = "mgmt") -> Json:
        """Wait until a pod is in one of these phases; return it."""

        async def look() -> Json | None:
            pod = await self.get(cluster, POD, name)
            return pod if pod is not None and pod["status"].get("phase") in phases else None

        found: Json = await self.until(look, f"pod {name} in {cluster} is {' or '.join(phases)}")
        return found

    async def running_on(self, name: str) -> str:
        """Wait until a pod runs on a worker; return which."""

        async def look() -> str | None:
            for worker in WORKERS:
                pod = await self.get(worker, POD, name)
                if pod is not None and pod["status"].get("phase") == "Running":
                    return worker
            return None

        found: str = await self.until(look, f"pod {name} runs on a worker")
        return found

    async def nothing_left(self, *names: str, seconds: float = TRANSITION_SECONDS) -> None:
        """Wait until no worker has any of these pods or Jobs, or a pod of such a Job."""

        async def clean() -> bool:
            for worker in WORKERS:
                for resource in (POD, JOB):
                    for item in await self.every(worker, resource):
                        if any(is_of(item["metadata"]["name"], name) for name in names):
                            return False
            return True

        await self.until(clean, f"no worker has anything of {', '.join(names)}", seconds)

    def overlaps(self) -> list[Any]:
        """Return where two epochs of one workload ran at the same time, by the records of the stand-in kubelets."""
        paths = [cluster.record for cluster in self.clusters.values() if cluster.record and cluster.record.exists()]
        return list(records.overlaps(records.read(*paths)))

    async def story(self) -> str:
        """Return what a person would look at when something did not happen; the logs are shown beside it."""
        lines = [f"managers that gave up their lead and were started again: {self.keeper.restarts}"]
        try:
            for workload in await self.every("mgmt", WORKLOAD):
                status = workload.get("status", {})
                lines.append(f"Workload {workload['metadata']['name']} epoch {workload['metadata'].get('annotations')}")
                lines += [
                    f"    {each['type']}={each['status']} {each.get('reason')}: {each.get('message')}"
                    for each in status.get("conditions", [])
                ]
            for cluster in self.clients:
                for pod in await self.every(cluster, POD):
                    gates = pod["spec"].get("schedulingGates")
                    phase = pod.get("status", {}).get("phase")
                    lines.append(f"{cluster}: Pod {pod['metadata']['name']} {phase} gates={gates}")
        except KubeError as error:
            lines.append(f"and more cannot be said: {error}")
        return "\n".join(lines)


def is_of(name: str, given: str) -> bool:
    """Return whether an object's name is the one given, or that of a pod of a Job of the given name."""
    return name == given or name.startswith(f"{given}-")


def _manager_lease() -> Json:
    length, trust, retry = LEASE
    return {"leaseDuration": f"{length}s", "renewDeadline": f"{trust}s", "retryPeriod": f"{retry * 1000:g}ms"}


def _agent_lease() -> Json:
    length, trust, retry = LEASE
    return {"leaseSeconds": length, "renewSeconds": trust, "retrySeconds": retry}


async def make(
    provider_name: str,
    folder: Path,
    *,
    crds: Path | None = None,
    environment: Mapping[str, str] | None = None,
    program: Sequence[str] = PROGRAM,
) -> World:
    """Start clusters and daemons, apply the queues, and wait until both workers are connected."""
    home, kubeconfigs = folder / "state", folder / "kubeconfigs"
    nodes = NodeShape(cpu="16", extended={GPU: "4"})
    settings = ProviderSettings(home=home, kubeconfigs=kubeconfigs, nodes=nodes, audit=True)
    provider = load(provider_name, settings)
    made = await provider.up(["mgmt", *WORKERS])
    clusters = {cluster.name: cluster for cluster in made}
    capacity = [
        {"flavor": "default-flavor", "resource": "cpu", "nominal": "8"},
        {"flavor": "default-flavor", "resource": "memory", "nominal": "32Gi"},
        {"flavor": "default-flavor", "resource": GPU, "nominal": "4"},
        {"flavor": "small-flavor", "resource": "cpu", "nominal": "1"},
    ]
    installation = Installation(
        folder=folder / "installation",
        management=clusters["mgmt"],
        workers=[clusters[name] for name in WORKERS],
        namespaces=["default", NAMESPACE],
        crds=crds,
        agent_settings={name: {"capacity": capacity, "leaderElection": _agent_lease()} for name in WORKERS},
        manager_settings={"gatelift": {"debugInvariants": True}, "leaderElection": _manager_lease()},
        environment=environment or {},
        program=program,
    )
    clients: dict[str, Client] = {}
    background: list[asyncio.Task[None]] = []
    try:
        await installation.install()
        clients |= {name: await installation.admin(cluster) for name, cluster in clusters.items()}
        history, keeper = History(clients["mgmt"], NAMESPACE), Keeper(installation)
        world = World(provider, installation, clients, clusters, history, keeper, background)
        background.append(spawn("history", history.follow()))
        await installation.start_webhooks()
        await applying.apply(clients["mgmt"], yaml.safe_load_all(QUEUES))
        await installation.start_manager()
        background.append(spawn("keeper", keeper.follow()))  # agents that enrol wait for a manager that gave up, too
        await asyncio.gather(*(installation.start_agent(clusters[name]) for name in WORKERS))
        await installation.wait_connected(*WORKERS)
        real = [name for name, cluster in clusters.items() if cluster.capabilities.real_api_server]
        await asyncio.gather(*(policies_in_force(clients[name]) for name in real))
        await world.sends_elsewhere(*SENDING_QUEUES)
    except BaseException as error:
        await _cancelled(background)
        for client in clients.values():
            await client.aclose()
        await installation.stop()
        await provider.down()
        error.add_note(log_tails.told(installation.folder))
        raise
    return world


async def end(world: World) -> None:
    """Stop everything that `make` started."""
    await _cancelled(world.background)
    for client in world.clients.values():
        await client.aclose()
    await world.installation.stop()
    await world.provider.down()


async def _cancelled(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
