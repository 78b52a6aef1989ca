"""Counts the writes of manager and agents that land in a simulated world."""

from __future__ import annotations

from collections import Counter

import pytest

from gatelift_kube.deciding.writes import ApiWrite, Create, Patch, PatchKind
from gatelift_kube.values.resources import JOB, POD, WORKLOAD
from support.sim.port import ApiPort

Count = Counter[tuple[str, str, str]]
"""By cluster, verb and resource."""
OF_THE_WORK = frozenset({WORKLOAD.plural, POD.plural, JOB.plural})
"""Status of queues and clusters and the agents' own state are coalesced: they cost by time, not by workload."""


def counting(patch: pytest.MonkeyPatch) -> Count:
    """Return what will hold each write from now on, done or refused."""
    count: Count = Counter()
    land = ApiPort._land

    def counted(port: ApiPort, command: ApiWrite, *, answered: bool) -> None:
        resource = command.ref.resource.plural
        if resource in OF_THE_WORK:
            subresource = f"/{command.subresource}" if isinstance(command, Patch) and command.subresource else ""
            count[(port.cluster.name, verb_of(command), resource + subresource)] += 1
        land(port, command, answered=answered)

    patch.setattr(ApiPort, "_land", counted)
    return count


def verb_of(command: ApiWrite) -> str:
    """Return the verb that a role would have to name."""
    if isinstance(command, Patch):
        return "update" if command.kind is PatchKind.REPLACE else "patch"
    return "create" if isinstance(command, Create) else "delete"
