"""What people read of what was made again and waits for its predecessor, and what ends that. Pure.

The reasons are in `texts`. Neighbour: `successors` (decides).
"""

from __future__ import annotations


def predecessor_unreachable(kind: str, namespace: str, name: str, cluster: str, epoch: int) -> str:
    """Return why what was made again waits for its predecessor on a cluster that is not connected, and the ways out."""
    return (
        f'{_predecessor(kind, namespace, name, epoch)} may be running on cluster "{cluster}", which is not connected: '
        f"this one goes on when the cluster is back and has stopped it, or when a person who made sure that nothing "
        f"runs there says: gatelift cluster fenced {cluster}"
    )


def predecessor_stopping(kind: str, namespace: str, name: str, cluster: str, epoch: int) -> str:
    """Return why what was made again waits for its predecessor on a cluster that is connected."""
    return (
        f'{_predecessor(kind, namespace, name, epoch)} is being stopped on cluster "{cluster}"; then this one goes on'
    )


def predecessor_unexplained(kind: str, namespace: str, name: str, cluster: str) -> str:
    """Return why what is queued waits for a run of its place that no Workload explains, and the way out."""
    return (
        f'Something that no Workload explains runs as {kind} {namespace}/{name} on cluster "{cluster}", perhaps since '
        f"before a restore: this one goes on when that has ended; gatelift recover --stop {cluster} ends it"
    )


def predecessor_foreign(kind: str, namespace: str, name: str, cluster: str) -> str:
    """Return why what another management cluster left at a worker is waited for, and the ways out."""
    return (
        f'{kind} {namespace}/{name} of another management cluster may be running on cluster "{cluster}": this one goes '
        f"on when that is gone there, or when a person says: gatelift cluster foreign {cluster} --ignore"
    )


def _predecessor(kind: str, namespace: str, name: str, epoch: int) -> str:
    return f"An earlier run of {kind} {namespace}/{name} (epoch {epoch})"
