"""What the command line tells of slices of elastic work (KEP-77): sizes, what a growth waits for, what came before.

Read of the Workloads alone, as all of it. Whose a chain is, is taken as the manager takes it: by what a Workload says,
where it has the same owner and namespace. Neighbours: `listing` and `explain` print it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gatelift.cli.render import Typed
from gatelift.core import texts
from gatelift.core.records import record
from gatelift.core.records.slice_condition import SLICE
from gatelift_kinds.shared import slices
from gatelift_kinds.shared.made_for import owners_of
from gatelift_kinds.shared.sizes import SizeError, counts_of, number_of, told
from gatelift_kube.api.client import Client
from gatelift_kube.deciding.errors import ForbiddenError, NotFoundError
from gatelift_kube.objects import conditions
from gatelift_kube.objects.gatelift import WorkerCluster
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.values.resources import WORKER_CLUSTER, ObjectKey, ObjectRef

PAST_MAX = 5
"""Past slices that are named, the latest; of more it is said how many."""
ChainName = tuple[str, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceExplanation:
    """What is told of a slice; the fields are keys of `-o json`."""

    size: str
    resizes: str
    growth: str
    home: tuple[str, ...]
    past: tuple[str, ...]


def chain_name(workload: Workload) -> ChainName | None:
    """Return what all slices of a chain have in common; None where a Workload is no slice."""
    if not slices.asks(workload.metadata.annotations) or not slices.origin_of(workload):
        return None
    owner = "".join(each.uid for each in owners_of(workload))
    return workload.metadata.namespace, owner, slices.chain_of(workload)


class ShownChains:
    """The slices of some Workloads, by their chains."""

    def __init__(self, workloads: Iterable[Workload]) -> None:
        self._chains: dict[ChainName, list[Workload]] = {}
        for each in workloads:
            name = chain_name(each)
            if name is not None:
                self._chains.setdefault(name, []).append(each)

    def of(self, workload: Workload) -> list[Workload]:
        """Return all slices of the chain of a Workload, by their numbers."""
        name = chain_name(workload)
        return sorted(self._chains.get(name, []), key=_number) if name is not None else []

    def target(self, workload: Workload) -> Workload | None:
        """Return the slice that waits to take the place of this one."""
        return next((each for each in reversed(self.of(workload)) if _waits(each) and _replaces(each, workload)), None)

    def before(self, workload: Workload) -> Workload | None:
        """Return the slice in whose place this one waits."""
        of = reversed(self.of(workload)) if _waits(workload) else ()
        return next((each for each in of if not _over(each) and _replaces(workload, each)), None)

    def pods(self, workload: Workload) -> Typed:
        """Return how many pods a Workload has, or asks for; of one that is resized how many it has and is to have."""
        wanted = sum(counts_of(workload).values())
        before, target = self.before(workload), self.target(workload)
        has = record.granted(before if before is not None else workload)
        granted = sum(has.values()) if has and not _over(workload) else None
        if target is not None and granted is not None:  # what is queued again asks for its own pods first
            wanted = sum(counts_of(target).values())
        resized = granted is not None and granted != wanted and chain_name(workload) is not None
        shown = wanted if granted is None or resized else granted
        return Typed(
            f"{granted} -> {wanted}" if resized else str(shown),
            {"granted": granted, "wanted": wanted},
        )


def explanation_of(chains: ShownChains, workload: Workload) -> SliceExplanation | None:
    """Return what is told of a slice; None of any other Workload."""
    if chain_name(workload) is None:
        return None
    target = workload if _waits(workload) else chains.target(workload)
    growth = _growth(target) if target is not None and chains.before(target) is not None else ""
    pods = chains.pods(workload)
    past = [_past(each) for each in chains.of(workload) if _over(each) and each.metadata.uid != workload.metadata.uid]
    more = (f"and {len(past) - PAST_MAX} more before",) if len(past) > PAST_MAX else ()
    return SliceExplanation(
        size=_size(workload),
        resizes=f"{pods} pods" if "->" in pods else "",
        growth=growth,
        home=(),
        past=(*reversed(past[-PAST_MAX:]), *more),
    )


async def home_of(client: Client, cluster: str) -> tuple[str, ...]:
    """Return what is known of the cluster that a growth is of: its agent, its condition where it takes no work."""
    try:
        found = (await client.get(ObjectRef(WORKER_CLUSTER, ObjectKey("", cluster)))).object
    except (NotFoundError, ForbiddenError):
        return ()  # `unreachable` says that
    if not isinstance(found, WorkerCluster):
        return ()
    version = f", agent {found.status.agent_version}" if found.status.agent_version else ""
    lines = [f"it grows on cluster {cluster}{version}: no other one is asked"]
    if found.spec.cordoned:
        lines.append(f"cluster {cluster} is cordoned: it takes no growth either")
    return tuple(lines)


def _growth(target: Workload) -> str:
    said = conditions.find(target.status.conditions, texts.QUOTA_RESERVED)
    why = (
        f"{said.reason}: {said.message}" if said is not None and said.status != conditions.TRUE else "about to be asked"
    )
    return f"Workload {target.metadata.name} waits: {why}"


def _size(workload: Workload) -> str:
    said = conditions.find(workload.status.conditions, SLICE)
    if said is not None:
        return said.message
    number = _number(workload)[0]
    return f"size {number or 'that cannot be read'}, {told(counts_of(workload))}"


def _past(workload: Workload) -> str:
    over = conditions.find(workload.status.conditions, texts.FINISHED)
    return f"{workload.metadata.name}: {_size(workload)} ({over.reason if over is not None else ''})"


def _waits(workload: Workload) -> bool:
    return workload.status.admission is None and not _over(workload)


def _over(workload: Workload) -> bool:
    return conditions.is_true(workload.status.conditions, texts.FINISHED)


def _replaces(target: Workload, current: Workload) -> bool:
    return chain_name(target) == chain_name(current) and slices.replaces(target, current)


def _number(workload: Workload) -> tuple[int, str]:
    try:
        return number_of(workload.metadata.annotations), workload.metadata.uid
    except SizeError:
        return 0, workload.metadata.uid
