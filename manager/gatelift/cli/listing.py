"""`gatelift get ...`: workloads, queues, clusters, placements, read with the caller's own rights."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Annotated, Any

import typer
from rich.console import Console

from gatelift.cli import clusters
from gatelift.cli.clusters import target_of
from gatelift.cli.connection import run
from gatelift.cli.render import Output, age, show
from gatelift.core import record
from gatelift_kube import conditions
from gatelift_kube.client import Client, Selection
from gatelift_kube.objects.kueue import ClusterQueue, LocalQueue, Workload
from gatelift_kube.resources import CLUSTER_QUEUE, LOCAL_QUEUE, WORKLOAD, Resource

WATCH_SECONDS = 1.0
"""How often `--watch` looks again: as often as the manager writes what only informs."""

app = typer.Typer(no_args_is_help=True, help="Show workloads, queues, clusters, placements.")

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


@app.command("clusters")
def worker_clusters(context: typer.Context, output: OutputOption = Output.TABLE, watch: WatchOption = False) -> None:
    """Show worker clusters (same as `gatelift cluster list`)."""
    _run(context, lambda client: clusters.print_clusters(client, output), watch)


def _run(context: typer.Context, once: Callable[[Client], Awaitable[None]], watch: bool) -> None:
    async def repeated(client: Client) -> None:
        while True:
            Console().clear()
            await once(client)
            await asyncio.sleep(WATCH_SECONDS)

    run(target_of(context), repeated if watch else once)


async def every(client: Client, resource: Resource, kind: type[Any], namespace: str = "") -> AsyncIterator[Any]:
    """Yield all objects of a kind."""
    async for page in client.list(resource, Selection(namespace=namespace)):
        for served in page.items:
            if isinstance(served.object, kind):
                yield served.object


def state_of(workload: Workload) -> tuple[str, str]:
    """Return a workload's life-cycle class and the message of the condition that says why."""
    found = workload.status.conditions
    for type_ in ("Finished", "Evicted"):
        condition = conditions.find(found, type_)
        if condition is not None and condition.status == "True":
            return (f"{type_} ({condition.reason})", condition.message)
    if conditions.is_true(found, "Admitted"):
        return "Admitted", ""
    reserved = conditions.find(found, "QuotaReserved")
    if reserved is not None and reserved.status == "True":
        return "QuotaReserved", "waits for a cluster or for admission checks"
    return "Pending", reserved.message if reserved is not None else ""


async def _workloads(client: Client, namespace: str, output: Output) -> None:
    now = dt.datetime.now(dt.UTC)
    rows = []
    async for workload in every(client, WORKLOAD, Workload, namespace):
        state, why = state_of(workload)
        travels = bool(workload.metadata.owner_references)
        rows.append(
            (
                workload.metadata.namespace,
                workload.metadata.name,
                workload.spec.queue_name,
                state,
                record.read(workload, travels=travels).cluster if state == "Admitted" else "",
                record.epoch_of(workload),
                age(workload.metadata.creation_timestamp, now),
                why,
            )
        )
    show(
        ("Namespace", "Name", "Queue", "State", "Cluster", "Epoch", "Age", "Message"),
        sorted(rows, key=lambda row: (str(row[0]), str(row[1]))),
        output,
        nothing="No workloads. Label a pod or a Job with kueue.x-k8s.io/queue-name to make one.",
    )


async def _placements(client: Client, namespace: str, output: Output) -> None:
    rows = []
    async for workload in every(client, WORKLOAD, Workload, namespace):
        found = record.read(workload, travels=bool(workload.metadata.owner_references))
        if not found.cluster or found.finished:
            continue
        pods = (
            sum(each.count or 0 for each in workload.status.admission.pod_set_assignments)
            if (workload.status.admission)
            else 0
        )
        rows.append(
            (
                found.cluster,
                workload.metadata.namespace,
                workload.metadata.name,
                found.epoch,
                pods,
                found.policy.value,
                found.term or "",
                "ending" if found.evicted or workload.metadata.deletion_timestamp else "placed",
            )
        )
    show(
        ("Cluster", "Namespace", "Name", "Epoch", "Pods", "Policy", "Term", "State"),
        sorted(rows, key=lambda row: tuple(map(str, row[:3]))),
        output,
        nothing="No placements.",
    )


async def _queues(client: Client, output: Output) -> None:
    rows: list[tuple[object, ...]] = []
    found: list[tuple[str, str, Any]] = [
        ("ClusterQueue", "", queue) async for queue in every(client, CLUSTER_QUEUE, ClusterQueue)
    ]
    found += [("LocalQueue", queue.spec.cluster_queue, queue) async for queue in every(client, LOCAL_QUEUE, LocalQueue)]
    for kind, of, queue in found:
        active = conditions.find(queue.status.conditions, "Active")
        usage = ", ".join(
            f"{resource.name}: {resource.total}"
            for flavor in queue.status.flavors_reservation
            for resource in flavor.resources
        )
        name = f"{queue.metadata.namespace}/{queue.metadata.name}" if queue.metadata.namespace else queue.metadata.name
        rows.append(
            (
                kind,
                name,
                of,
                queue.status.pending_workloads,
                queue.status.admitted_workloads,
                usage,
                "" if active is None or active.status == "True" else active.message,
            )
        )
    show(
        ("Kind", "Name", "ClusterQueue", "Pending", "Admitted", "Reserved", "Problem"),
        sorted(rows, key=lambda row: (str(row[0]), str(row[1]))),
        output,
        nothing="No queues. Apply a ResourceFlavor, a ClusterQueue and a LocalQueue first.",
    )
