"""`gatelift get pending QUEUE`: who waits in a ClusterQueue, in the order in which it is served (KEP-168).

What Kueue offers as an API of its own is read here from the objects, with the caller's own rights, like `explain`.
"""

from __future__ import annotations

from pathlib import Path

from gatelift.cli.connection import NOT_FOUND, UNREACHABLE, CliError
from gatelift.cli.render import Output, show
from gatelift.cli.replica import replica
from gatelift_kube.api.client import Client

COLUMNS = ("Position", "Namespace", "Name", "Priority", "LocalQueue", "In LocalQueue")


async def pending(client: Client, queue: str, most: int, output: Output, config: Path | None) -> None:
    """Print the first `most` workloads that wait in a ClusterQueue; positions count from 1."""
    found = await replica(client, config)
    if found.blind:
        raise CliError(f"you may not read {', '.join(found.unseen)}; ask for that right", UNREACHABLE)
    if queue not in found.engine.state.queues:
        raise CliError(f"no ClusterQueue {queue}: 'gatelift get queues' lists all", NOT_FOUND)
    rows = [
        (
            one.in_cluster_queue + 1,
            one.key.namespace,
            one.key.name,
            one.priority,
            one.local_queue,
            one.in_local_queue + 1,
        )
        for one in found.engine.pending_positions(queue, most)
    ]
    show(COLUMNS, rows, output, nothing=f"Nothing waits in ClusterQueue {queue}.")
