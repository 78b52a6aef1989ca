"""`gatelift get ...`: workloads, queues, clusters, placements, read with the caller's own rights."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from gatelift.cli import clusters, gathered
from gatelift.cli import pending as positions
from gatelift.cli.connection import run
from gatelift.cli.ghosts import ghost_of
from gatelift.cli.leader import tell_if_absent
from gatelift.cli.render import Output, Typed, age, show
from gatelift.cli.slices import ShownChains
from gatelift.cli.target import target_of
from gatelift.core import texts
from gatelift.core.records import epochs, record
from gatelift_admission.engine import POSITIONS_MAX
from gatelift_kinds.shared import made_there
from gatelift_kinds.shared.made_for import owners_of
from gatelift_kube.api.client import Client, Selection
from gatelift_kube.objects import conditions
from gatelift_kube.objects.kueue import AdmissionCheckState, ClusterQueue, LocalQueue, Workload
from gatelift_kube.values.resources import CLUSTER_QUEUE, LOCAL_QUEUE, WORKLOAD, Resource

WATCH_SECONDS = 1.0
"""How often `--watch` looks again: as often as the manager writes what only informs."""

app = typer.Typer(no_args_is_help=True, help="Show workloads, queues, who waits, clusters, placements.")

MAKERS_MAX = 3
"""Objects that are named of those for which a workload was made: a line of a table is for people."""

OutputOption = Annotated[Output, typer.Option("--output", "-o", help="table, json or yaml")]
NamespaceOption = Annotated[str, typer.Option("--namespace", "-n", help="Only this namespace; all without it.")]
WatchOption = Annotated[bool, typer.Option("--watch", "-w", help="Look again every second until stopped.")]


@app.command()
def workloads(
    context: typer.Context,
    namespace: NamespaceOption = "",
    output: OutputOption = Output.TABLE,
    watch: WatchOption = False,
) -> None:
    """Show workloads: where they are and what they wait for."""
    _run(context, lambda client: _workloads(client, namespace, output), watch)


@app.command()
def placements(
    context: typer.Context,
    namespace: NamespaceOption = "",
    output: OutputOption = Output.TABLE,
    watch: WatchOption = False,
) -> None:
    """Show placements: which attempt of which workload is on which cluster."""
    _run(context, lambda client: _placements(client, namespace, output), watch)


@app.command()
def queues(context: typer.Context, output: OutputOption = Output.TABLE, watch: WatchOption = False) -> None:
    """Show ClusterQueues and LocalQueues with what waits in them and what they use."""
    _run(context, lambda client: _queues(client, output), watch)


@app.command()
def pending(
    context: typer.Context,
    queue: Annotated[str, typer.Argument(help="Name of a ClusterQueue.")],
    most: Annotated[int, typer.Option("--limit", min=1, max=POSITIONS_MAX, help="How many are shown.")] = 50,
    output: OutputOption = Output.TABLE,
    watch: WatchOption = False,
    config: Annotated[
        Path | None, typer.Option("--config", help="The manager's file, where it is not in its ConfigMap.")
    ] = None,
) -> None:
    """Show who waits in a ClusterQueue, in the order in which they are served."""
    _run(context, lambda client: positions.pending(client, queue, most, output, config), watch)


@app.command("clusters")
def worker_clusters(context: typer.Context, output: OutputOption = Output.TABLE, watch: WatchOption = False) -> None:
    """Show worker clusters (same as `gatelift cluster list`)."""
    _run(context, lambda client: clusters.print_clusters(client, output), watch)


def _run(context: typer.Context, once: Callable[[Client], Awaitable[None]], watch: bool) -> None:
    async def repeated(client: Client) -> None:
        console = Console()
        while True:
            console.clear()  # does nothing where the output is no terminal
            await once(client)
            await asyncio.sleep(WATCH_SECONDS)

    run(target_of(context), repeated if watch else once)


async def every(client: Client, resource: Resource, kind: type[Any], namespace: str = "") -> AsyncIterator[Any]:
    """Yield all objects of a kind."""
    async for page in client.list(resource, Selection(namespace=namespace)):
        for served in page.items:
            if isinstance(served.object, kind):
                yield served.object


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadSituation:
    """Where a workload is in its life: one word, the reason of the condition that says so, and its message."""

    state: str
    reason: str = ""
    message: str = ""


def situation_of(workload: Workload) -> WorkloadSituation:
    """Return a workload's situation: Finished, Evicted, Admitted, QuotaReserved or Pending, the first that is true."""
    found = workload.status.conditions
    for type_ in (texts.FINISHED, texts.EVICTED):
        condition = conditions.find(found, type_)
        if condition is not None and condition.status == conditions.TRUE:
            return WorkloadSituation(state=type_, reason=condition.reason, message=condition.message)
    if conditions.is_true(found, texts.ADMITTED):
        return WorkloadSituation(state=texts.ADMITTED)
    reserved = conditions.find(found, texts.QUOTA_RESERVED)
    if reserved is None:
        return WorkloadSituation(state=texts.PENDING)
    if reserved.status == conditions.TRUE:
        waits = ", ".join(f"{each.name} {each.state}" for each in _open_checks(workload))
        return WorkloadSituation(
            state=texts.QUOTA_RESERVED, message=f"waits for admission checks: {waits}" if waits else ""
        )
    return WorkloadSituation(state=texts.PENDING, reason=reserved.reason, message=reserved.message)


def _open_checks(workload: Workload) -> list[AdmissionCheckState]:
    return [each for each in workload.status.admission_checks if each.state != texts.READY]


def placement_of(workload: Workload) -> record.Record:
    """Return the placement record of a workload as this command sees it."""
    return record.read(workload, travels=bool(owners_of(workload)))


def maker_of(workload: Workload) -> str:
    """Return for what a workload was made, as kubectl names it (`pod/hello`); "" where a person made it.

    Of many the first are named: whoever may make Workloads writes thousands.
    """
    owners = owners_of(workload)
    if gathered.is_marked(workload):
        pods = sum(each.count for each in workload.spec.pod_sets)  # its owners are those that are there just now
        return f"group {workload.metadata.name} ({pods} {'pod' if pods == 1 else 'pods'})"
    named = ", ".join(f"{owner.kind.lower()}/{owner.name}" for owner in owners[:MAKERS_MAX])
    return f"{named} and {len(owners) - MAKERS_MAX} more" if len(owners) > MAKERS_MAX else named


async def _workloads(client: Client, namespace: str, output: Output) -> None:
    now = dt.datetime.now(dt.UTC)
    rows = []
    found = [each async for each in every(client, WORKLOAD, Workload, namespace)]
    chains = ShownChains(found)
    for workload in found:
        situation = situation_of(workload)
        rows.append(
            (
                workload.metadata.namespace,
                workload.metadata.name,
                situation.state,
                placement_of(workload).cluster,
                workload.spec.queue_name,
                chains.pods(workload),
                age(workload.metadata.creation_timestamp, now),
                situation.reason,
                maker_of(workload),
                epochs.of(workload),
                situation.message or epochs.misspelt(workload),
            )
        )
    await tell_if_absent(client)
    show(
        ("Namespace", "Name", "State", "Cluster", "Queue", "Pods", "Age", "Reason", "For", "Epoch", "Message"),
        sorted(rows, key=lambda row: (str(row[0]), str(row[1]))),
        output,
        nothing=f"No workloads{f' in namespace {namespace}' if namespace else ''}. Label a pod or a Job with"
        " kueue.x-k8s.io/queue-name to make one.",
    )


async def _placements(client: Client, namespace: str, output: Output) -> None:
    rows = []
    async for workload in every(client, WORKLOAD, Workload, namespace):
        found = placement_of(workload)
        if not found.cluster or found.finished:
            continue
        pods = sum(record.granted(workload).values())
        rows.append(
            (
                found.cluster,
                workload.metadata.namespace,
                workload.metadata.name,
                found.epoch,
                pods,
                made_there.said(workload),
                found.policy.value,
                found.term or "",
                "ending" if found.evicted or workload.metadata.deletion_timestamp else "placed",
            )
        )
    await tell_if_absent(client)
    show(
        ("Cluster", "Namespace", "Name", "Epoch", "Pods", "MadeThere", "Policy", "Term", "State"),
        sorted(rows, key=lambda row: tuple(map(str, row[:3]))),
        output,
        nothing="No placements.",
    )


def _amounts(of: list[dict[str, str]]) -> Typed:
    return Typed(", ".join(f"{one['resource']}: {one['total']}" for one in of), of)


async def _queues(client: Client, output: Output) -> None:
    rows: list[tuple[object, ...]] = []
    found: list[tuple[str, str, Any]] = [
        ("ClusterQueue", "", queue) async for queue in every(client, CLUSTER_QUEUE, ClusterQueue)
    ]
    found += [("LocalQueue", queue.spec.cluster_queue, queue) async for queue in every(client, LOCAL_QUEUE, LocalQueue)]
    for kind, of, queue in found:
        active = conditions.find(queue.status.conditions, "Active")
        reserved = [
            {"flavor": flavor.name, "resource": resource.name, "total": str(resource.total)}
            for flavor in queue.status.flavors_reservation
            for resource in flavor.resources
        ]
        name = f"{queue.metadata.namespace}/{queue.metadata.name}" if queue.metadata.namespace else queue.metadata.name
        rows.append(
            (
                kind,
                name,
                of,
                queue.status.pending_workloads,
                queue.status.admitted_workloads,
                _amounts(reserved),
                _amounts(ghost_of(queue)),
                "" if active is None or active.status == "True" else active.message,
            )
        )
    await tell_if_absent(client)
    show(
        ("Kind", "Name", "ClusterQueue", "Pending", "Admitted", "Reserved", "Ghost", "Problem"),
        sorted(rows, key=lambda row: (str(row[0]), str(row[1]))),
        output,
        nothing="No queues. Apply a ResourceFlavor, a ClusterQueue and a LocalQueue first.",
    )
