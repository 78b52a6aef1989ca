"""A whole Gatelift on one machine: clusters, daemons and sample queues raised together, written down, ended together.

Used by `gatelift demo`, `up` and `down`. What outlives the process that raised it (`detached`) is found again by
`HOME/installation/daemons.json` for the daemons and by the state directory for the clusters.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from gatelift.cli.manifests import deploy_folder
from gatelift_sandbox import applying, children
from gatelift_sandbox.errors import SandboxError
from gatelift_sandbox.installation import Installation
from gatelift_sandbox.provider import Cluster, Provider, ProviderSettings, default_home, load
from gatelift_sandbox.state import SandboxState

MANAGEMENT = "management"
WORKERS_MAX = 5
"""Six real control planes are what a laptop bears; the providers' own limits are a little higher."""
DAEMONS = "daemons.json"
QUEUES = Path("samples/queues.yaml")
WORKER_PODS = 4
"""How many pods of the samples an agent admits: half of what a stand-in node has room for, and fewer than the sample
queue admits, so that a full queue needs both workers."""
POD_MILLICORES = 1000
"""What one pod of the samples asks for."""


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """The daemons of a detached installation, by name."""

    daemons: dict[str, children.Child] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class EnsemblePlan:
    """What is to be raised. `detached`: it outlives this process and ends by `end`."""

    provider: str
    workers: int = 2
    pod_millicores: int = POD_MILLICORES  # smaller where real nodes share this machine; quotas shrink with it
    detached: bool = False
    home: Path = field(default_factory=default_home)
    kubeconfigs: Path = Path("kubeconfigs")
    say: Callable[[str], None] = lambda _text: None

    @property
    def folder(self) -> Path:
        """Where configuration, identities and logs of the daemons are."""
        return folder_of(self.home)

    @property
    def worker_names(self) -> tuple[str, ...]:
        """Names of the worker clusters."""
        return tuple(f"worker-{number}" for number in range(1, self.workers + 1))


@dataclass(slots=True, kw_only=True)
class Ensemble:
    """What was raised."""

    plan: EnsemblePlan
    provider: Provider
    installation: Installation

    @property
    def management(self) -> Cluster:
        """The management cluster."""
        return self.installation.management

    @property
    def workers(self) -> tuple[Cluster, ...]:
        """The worker clusters."""
        return tuple(self.installation.workers)

    def save(self) -> None:
        """Write down which processes the daemons are, so that another process can end them."""
        living = {name: each.child for name, each in self.installation.daemons.items() if each.child is not None}
        path = self.plan.folder / DAEMONS
        path.touch(mode=0o600)
        path.write_bytes(msgspec.json.encode(Standing(daemons=living)))

    async def close(self) -> None:
        """End daemons and clusters; the logs of all of them stay to be read in the installation's folder."""
        await self.installation.stop()
        for cluster in (self.management, *self.workers):
            for log in sorted(cluster.logs.glob("*.log")) if cluster.logs is not None else ():
                shutil.copyfile(log, self.plan.folder / f"{cluster.name}-{log.name}")
        (self.plan.folder / DAEMONS).unlink(missing_ok=True)
        await self.provider.down([MANAGEMENT, *self.plan.worker_names])


def folder_of(home: Path) -> Path:
    """Return the folder of configuration, identities and logs of the daemons."""
    return home / "installation"


async def up(plan: EnsemblePlan) -> Ensemble:
    """Raise everything and wait until all workers are connected. SandboxError or KubeError: nothing is left running."""
    if not 1 <= plan.workers <= WORKERS_MAX:
        raise SandboxError(f"workers: {plan.workers} is not from 1 to {WORKERS_MAX}")
    settings = ProviderSettings(home=plan.home, kubeconfigs=plan.kubeconfigs, detached=plan.detached, say=plan.say)
    provider = load(plan.provider, settings)
    management, *workers = await provider.up([MANAGEMENT, *plan.worker_names])
    shutil.rmtree(plan.folder, ignore_errors=True)  # identities of an earlier CA would be refused
    installation = Installation(
        folder=plan.folder,
        management=management,
        workers=workers,
        agent_settings={name: {"capacity": _capacity(plan.pod_millicores)} for name in plan.worker_names},
        detached=plan.detached,
        say=plan.say,
    )
    raised = Ensemble(plan=plan, provider=provider, installation=installation)
    try:
        await _install(raised)
    except BaseException:  # a cancellation too leaves nothing running
        await raised.close()
        raise
    return raised


async def _install(raised: Ensemble) -> None:
    installation = raised.installation
    await installation.install()
    try:
        await asyncio.gather(installation.start_webhooks(), installation.start_manager())
        async with await installation.admin(installation.management) as client:
            await applying.apply(client, queues(raised.plan))
        await asyncio.gather(*(installation.start_agent(worker) for worker in installation.workers))
    finally:
        raised.save()
    await installation.wait_connected(*raised.plan.worker_names)


def queues(plan: EnsemblePlan) -> list[dict[str, Any]]:
    """Return the sample queues, dispatching to the plan's workers, with room for as many of its pods as they say."""
    documents = applying.documents((deploy_folder() / QUEUES).read_text(encoding="utf-8"))
    for document in documents:
        if document["kind"] == "MultiKueueConfig":
            document["spec"]["clusters"] = list(plan.worker_names)
        if document["kind"] == "ClusterQueue":
            for quota in _cpu_quotas(document):
                quota["nominalQuota"] = f"{quota['nominalQuota'] * plan.pod_millicores}m"
    return documents


def _cpu_quotas(cluster_queue: dict[str, Any]) -> list[dict[str, Any]]:
    groups = cluster_queue["spec"]["resourceGroups"]
    return [
        each for group in groups for flavor in group["flavors"] for each in flavor["resources"] if each["name"] == "cpu"
    ]


def _capacity(pod_millicores: int) -> list[dict[str, str]]:
    cpu = {"flavor": "default-flavor", "resource": "cpu", "nominal": f"{WORKER_PODS * pod_millicores}m"}
    return [cpu, {"flavor": "default-flavor", "resource": "memory", "nominal": "16Gi"}]


def is_up(home: Path) -> bool:
    """Return whether anything of ours is written down under this home."""
    return (folder_of(home) / DAEMONS).exists() or bool(SandboxState(home).entries())


async def end(home: Path, kubeconfigs: Path, say: Callable[[str], None]) -> list[str]:
    """End whatever is up under this home, of any provider and process; return the names of the clusters ended."""
    path = folder_of(home) / DAEMONS
    if path.exists():
        standing = _standing(path)
        say(f"ending {', '.join(standing.daemons) or 'no daemons'}")
        await asyncio.gather(*(children.stop(each) for each in standing.daemons.values()))
        path.unlink(missing_ok=True)
    ended: list[str] = []
    for name in sorted({entry.provider for entry in SandboxState(home).entries()}):
        provider = load(name, ProviderSettings(home=home, kubeconfigs=kubeconfigs, say=say))
        say(f"ending the clusters of provider {name}")
        ended += await provider.down()
    return ended


def _standing(path: Path) -> Standing:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Standing)
    except msgspec.MsgspecError as error:
        raise SandboxError(f"{path} is damaged ({error}): delete it, and end the daemons by hand") from error
