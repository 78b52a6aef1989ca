"""Groups of pods for the benches: as a user makes them, as the webhook leaves them, and how far one has come."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from bench.fleet import NAMESPACE, QUEUE, UNSCHEDULED
from bench.hands import by_hands
from bench.loader import CREATES_IN_FLIGHT, RUN_SECONDS, Watcher, Way, manifest, mutated
from gatelift_kinds.pod_group.kind import PodGroupKind
from gatelift_kinds.shared import markers
from gatelift_kube.api.client import Client
from gatelift_kube.values.resources import POD, ObjectKey, ObjectRef

KIND = PodGroupKind()


def member_name(group: str, number: int) -> str:
    """Return the name of one of a group's pods."""
    return f"{group}-{number:05}"


def members(
    group: str, total: int, *, queue: str = QUEUE, run_seconds: float | None = RUN_SECONDS, scheduled: bool = True
) -> list[dict[str, Any]]:
    """Return the pods of a group as a user writes them. Not `scheduled`: let go they stay as they are, for ever."""
    found = []
    for number in range(total):
        document = manifest(member_name(group, number), queue=queue, run_seconds=run_seconds)
        meta = document["metadata"]
        meta["labels"][markers.POD_GROUP_NAME] = group
        meta["annotations"][markers.POD_GROUP_TOTAL_COUNT] = str(total)
        if not scheduled:
            document["spec"]["schedulerName"] = UNSCHEDULED
        found.append(document)
    return found


def gated(documents: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return pods of a group as the webhook leaves them."""
    return [mutated(document, KIND) for document in documents]


async def delete(client: Client, names: Iterable[str]) -> None:
    """Delete pods of the user, as many at a time as are created."""
    refs = (ObjectRef(POD, ObjectKey(NAMESPACE, name)) for name in names)
    await by_hands(refs, client.delete, CREATES_IN_FLIGHT)


def have(watcher: Watcher, group: str, total: int, *sights: str) -> bool:
    """Say whether all pods of a group have been seen so."""
    wanted = set(sights)
    ways = (watcher.ways.get(member_name(group, number)) for number in range(total))
    return all(way is not None and wanted <= way.seen.keys() for way in ways)


def is_done(watcher: Watcher, group: str, total: int) -> bool:
    """Say whether nothing is left to happen with a group: its Workload is finished, and its pods are let go of."""
    of_all = watcher.ways.get(group)
    return of_all is not None and "finished" in of_all.seen and have(watcher, group, total, "released", "removed")


def per_second(ways: Mapping[str, Way], group: str, sight: str) -> float:
    """Return how many pods of a group were seen so in a second, from the first sight to the last."""
    times = sorted(way.seen[sight] for name, way in ways.items() if name != group and sight in way.seen)
    return (len(times) - 1) / (times[-1] - times[0])
