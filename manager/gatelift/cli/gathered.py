"""What `gatelift explain` tells of work that is several objects (pods of a group), from the objects themselves.

They are put together as the manager does it, with the caller's own rights, also before there is a Workload. Neighbour:
`explain` prints it.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from gatelift.cli.render import Typed, age
from gatelift.core import texts
from gatelift_kinds.kind import Kind
from gatelift_kinds.registry import SERVED
from gatelift_kinds.shared import made_there, markers
from gatelift_kinds.shared.gathered import Gathered, Replaced, StoppingObject
from gatelift_kinds.shared.placed_on import PLACED_ON
from gatelift_kube.api.client import Client, Selection
from gatelift_kube.deciding.errors import ForbiddenError
from gatelift_kube.objects.conditions import is_true
from gatelift_kube.objects.gatelift import LOCAL_CLUSTER
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.values.resources import ObjectKey, Resource

SHOWN_MAX = 8
"""Lines of one sort: a person wants to know whom it is about, and how many more."""
TAKEN_OVER = Selection(labels=f"{markers.MANAGED}={markers.MANAGED_VALUE}")


@dataclass(frozen=True, slots=True, kw_only=True)
class GatheredExplanation:
    """What is told of all objects of one work; the fields are keys of `-o json`."""

    objects: str
    lacks: str
    replaced: tuple[str, ...]
    leaving: tuple[str, ...]
    made_there: str = ""
    not_seen: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundWork:
    """A work of several objects: where its Workload belongs, and all that is known of it.

    `placed`: of each that says so, by UID, on which cluster it is placed, and whether it is over.
    """

    key: ObjectKey
    gathered: Gathered
    placed: dict[str, tuple[str, bool]] = field(default_factory=dict)


def is_marked(workload: Workload) -> bool:
    """Say whether a Workload says that it is of several objects."""
    return workload.metadata.annotations.get(markers.IS_GROUP_WORKLOAD) == "true"


async def found_at(client: Client, key: ObjectKey, member: str = "") -> FoundWork | None:
    """Return the work of several objects whose Workload belongs there, or that has an object of the name `member`.

    None where there is none. ForbiddenError: the caller may not list them.
    """
    works: dict[str, FoundWork] = {}
    wanted = ""
    for resource, kinds in _gathering().items():
        selection = Selection(namespace=key.namespace, labels=TAKEN_OVER.labels)
        async for page in client.list(resource, selection, with_raw=True):
            for served in page.items:
                kind = next((one for one in kinds if one.selects(served.object)), None)
                if kind is None:
                    continue
                name = kind.workload_name(served.object)
                if served.object.metadata.name == member:
                    wanted = name
                known = works.get(name)
                if known is None:
                    gathered = kind.gathering(served.object)
                    if gathered is None:
                        continue
                    known = works[name] = FoundWork(key=ObjectKey(key.namespace, name), gathered=gathered)
                known.gathered.put(served.object, served.raw)
                _note(known, kind, served.object)
    return works.get(key.name) or works.get(wanted)


async def explained(client: Client, workload: Workload, now: dt.datetime) -> GatheredExplanation | None:
    """Return what is told of the objects of a Workload; None where it is of one object."""
    if not is_marked(workload):
        return None
    meta = workload.metadata
    try:
        found = await found_at(client, ObjectKey(meta.namespace, meta.name))
    except ForbiddenError:
        return GatheredExplanation(objects="", lacks="", replaced=(), leaving=(), not_seen="you may not list its pods")
    if found is None:
        return None
    _settle(found, workload)
    return explanation_of(found.gathered, workload, now)


def _note(work: FoundWork, kind: Kind[Any], obj: Any) -> None:
    where = obj.metadata.annotations.get(PLACED_ON, "")
    if where:
        work.placed[obj.metadata.uid] = where, kind.outcome(obj) is not None


def _settle(work: FoundWork, workload: Workload) -> None:
    """Count objects as let go that are at their gate here and run at the worker of their Workload, as they show."""
    cluster = workload.status.cluster_name
    if not cluster or cluster == LOCAL_CLUSTER:
        return
    nobody = msgspec.structs.replace(workload.metadata, owner_references=())
    work.gathered.is_at_worker(cluster, msgspec.structs.replace(workload, metadata=nobody))
    for uid, (where, over) in work.placed.items():
        if where == cluster:
            (work.gathered.stopped_elsewhere if over else work.gathered.runs_elsewhere)(uid)


def explanation_of(gathered: Gathered, workload: Workload | None, now: dt.datetime) -> GatheredExplanation:
    """Return what is told of all objects at a moment."""
    told = gathered.told(workload)
    if workload is not None and is_true(workload.status.conditions, texts.FINISHED):
        told = replace(told, lacks="", replaced=())  # nobody is replaced any more
    standing = ", ".join(f"{count} {word}" for word, count in told.standing)
    wanted = f"{told.wanted} {'pod' if told.wanted == 1 else 'pods'}" if told.wanted else "pods"
    return GatheredExplanation(
        objects=Typed(f"{wanted}: {standing or 'none there'}", {"wanted": told.wanted, **dict(told.standing)}),
        lacks=told.lacks,
        replaced=tuple(Typed(_of_place(each), each._asdict()) for each in told.replaced),
        leaving=tuple(Typed(_of_leaving(each, now), each._asdict()) for each in told.leaving),
        made_there=made_there.said(workload) if workload is not None else "",
    )


def lines(told: GatheredExplanation | None) -> list[tuple[str, str]]:
    """Return what is told as lines for people."""
    if told is None:
        return []
    return [
        ("members", told.objects),
        ("made", f"by its driver where it runs: {told.made_there}" if told.made_there else ""),
        ("lacks", told.lacks),
        *_some("replaced", told.replaced),
        *_some("leaving", told.leaving),
        ("not seen", told.not_seen),
    ]


def _some(name: str, all_of: tuple[str, ...]) -> list[tuple[str, str]]:
    shown = all_of[:SHOWN_MAX]
    left = len(all_of) - len(shown)
    return [
        *(("" if index else name, each) for index, each in enumerate(shown)),
        *([("", f"and {left} more")] if left else []),
    ]


def _of_place(one: Replaced) -> str:
    if one.why == "leaving":
        return f"{one.by} waits at its gate until {one.name} has stopped"
    if not one.is_taken:
        return f"{one.name} failed, and nobody is there to take its place"
    return f"{one.name} failed, and {one.by or 'another pod'} {'takes' if one.by else 'has'} its place"


def _of_leaving(one: StoppingObject, now: dt.datetime) -> str:
    return f"{one.name} has been stopping for {age(one.since, now)}"


def _gathering() -> dict[Resource, list[Kind[object]]]:
    """Return the kinds whose works have several objects, by resource."""
    found: dict[Resource, list[Kind[object]]] = {}
    for kind in SERVED:
        if kind.gathers:
            found.setdefault(kind.resource, []).append(kind)
    return found
