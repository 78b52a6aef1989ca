"""Which clusters can take a workload, and which suits it best: filter, then score. From what the manager knows of them.

What only an agent can tell is not asked here: that is its bid. Neighbour: `dispatch` asks those that are left, best
first.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from gatelift.core.clusters.link_values import ClusterView, LinkState
from gatelift.core.records.attempts import Attempt
from gatelift.core.records.work import Owner
from gatelift.core.rules import targets
from gatelift.core.state import ghosts
from gatelift.core.state.case import Case
from gatelift.core.state.core import Core
from gatelift_admission.values import amounts
from gatelift_kinds.shared.cluster_selector import ANNOTATION_CLUSTER_SELECTOR, parse_selector
from gatelift_kinds.shared.slices import asks
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.objects.selectors import matches
from gatelift_wire.values.keys import ANNOTATION_CLUSTER, VERSION_OF_SIZES
from gatelift_wire.values.messages import PodSetRequest

NO_CREDIT = "takes no more placements at the moment"


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirements:
    """What a workload asks of a cluster."""

    kind: str
    namespace: str
    pod_sets: tuple[PodSetRequest, ...]
    only: str = ""
    selector: str = ""
    sized: bool = False
    """It is elastic: who runs it has to know of sizes."""

    def totals(self) -> dict[str, int]:
        """Return the requests of all pod sets together."""
        sums: dict[str, int] = {}
        for pod_set in self.pod_sets:
            for name, amount in pod_set.requests:
                sums[name] = sums.get(name, 0) + amount
        return sums


def wanted(workload: Workload, owner: Owner, attempt: Attempt) -> Requirements:
    """Return what the workload asks of a cluster, from its admission and its owner's annotations."""
    marks = owner.object.metadata.annotations
    return Requirements(
        kind=owner.kind.name,
        namespace=workload.metadata.namespace,
        pod_sets=pod_set_requests(attempt, workload),
        only=marks.get(ANNOTATION_CLUSTER, ""),
        selector=marks.get(ANNOTATION_CLUSTER_SELECTOR, ""),
        sized=owner.kind.sliced and asks(workload.metadata.annotations),
    )


def pod_set_requests(attempt: Attempt, workload: Workload) -> tuple[PodSetRequest, ...]:
    """Return what each pod set was granted, as the wire carries it."""
    admission = attempt.reserve.admission if attempt.reserve is not None else workload.status.admission
    if admission is None:
        return ()
    counts = {pod_set.name: pod_set.count for pod_set in workload.spec.pod_sets}
    return tuple(
        PodSetRequest(
            name=one.name,
            count=one.count if one.count is not None else counts.get(one.name, 0),
            requests=tuple(
                (name, amounts.parse(quantity, name)) for name, quantity in sorted(one.resource_usage.items())
            ),
            flavors=tuple(sorted(one.flavors.items())),
        )
        for one in admission.pod_set_assignments
    )


def unfit(view: ClusterView | None, want: Requirements) -> str:
    """Return why a cluster cannot be asked at all, "" when it can; what only a bid can tell is not asked here."""
    if view is None:
        return "no WorkerCluster of that name"
    if unusable(view):
        return unusable(view)
    if want.kind not in view.kinds:
        return f"does not serve kind {want.kind}"
    if want.sized and too_old(view):
        return too_old(view)
    if view.allowed_namespaces and want.namespace not in view.allowed_namespaces:
        return f"namespace {want.namespace} is not in spec.allowedNamespaces of WorkerCluster {view.name}"
    if want.only and want.only != view.name:
        return f"the workload asks for cluster {want.only}"
    if want.selector and not _selects(want.selector, view):
        return f"the workload asks for clusters with {want.selector}"
    shut = view.accepted_namespaces is not None and want.namespace not in view.accepted_namespaces
    return _too_small(view, want) or (closed(want.namespace) if shut else "")


def too_old(view: ClusterView) -> str:
    """Return why an agent is said nothing of sizes of elastic work, "" where it knows them."""
    if view.version >= VERSION_OF_SIZES:
        return ""
    return (
        f"its agent speaks version {view.version} of the protocol, and sizes of elastic work need {VERSION_OF_SIZES}: "
        "upgrade it"
    )


def unusable(view: ClusterView) -> str:
    """Return why a cluster takes no work at all now, "" when it may."""
    if view.state is not LinkState.CONNECTED or not view.open:
        return "not connected"
    if not view.api_reachable:
        return "its agent does not reach its API server"
    if view.cordoned or view.draining:
        return (view.why_cordoned or "cordoned") if view.cordoned else "draining"
    return ""


def closed(namespace: str) -> str:
    """Return what the manager knows of a namespace in which a cluster takes no work: not whether it is there at all."""
    return f"namespace {namespace} is not there, or accepts no work (label gatelift.dev/accept=true)"


def _selects(selector: str, view: ClusterView) -> bool:
    try:
        return matches(parse_selector(selector), dict(view.labels))
    except ValueError:
        return False


def _too_small(view: ClusterView, want: Requirements) -> str:
    for name, amount in sorted(want.totals().items()):
        room = view.capacity.get(name)
        if room is not None and room.nominal < amount:
            have, need = amounts.to_text(room.nominal, name), amounts.to_text(amount, name)
            return f"never fits: {need} {name} asked, {have} in all"
    return ""


class ClusterRank(NamedTuple):
    """The sort key of a cluster.

    Fits without preemption, ends of this workload, real room (KEP-6143), answers, keeps what it takes, free share,
    weight, failures, load.
    """

    full: bool
    ended: int
    haunted: bool
    silent: bool
    in_vain: bool
    used: float
    lightness: int
    failures: float
    load: int
    name: str


def rank(view: ClusterView, want: Requirements, failures: float, load: int = 0, ended: int = 0) -> ClusterRank:
    """Return how well a cluster suits a workload, the best one sorts first.

    `load` counts what is there already, and what was asked and is not made yet: capacity is reported late, and not at
    all by a worker without quota of its own, so that without it the first name would get everything.
    """
    fits, free = True, 1.0
    for name, amount in want.totals().items():
        room = view.capacity.get(name)
        if room is None:
            continue
        fits = fits and room.largest_fit >= amount
        if room.nominal > 0:
            free = min(free, max(0, room.nominal - room.used) / room.nominal)
    used, failed = -round(free, 3), round(failures, 2)
    return ClusterRank(not fits, ended, False, False, False, used, -view.weight, failed, load, view.name)


def is_haunted(core: Core, view: ClusterView, want: Requirements) -> bool:
    """Say whether what a workload asks of a cluster may still be occupied by those whose quota is free already."""
    left = ghosts.at(core, view.name)
    for name, amount in want.totals().items():
        room, ghost = view.capacity.get(name), left.get(name, 0)
        if amount and ghost and (room is None or room.largest_fit - ghost < amount):
            return True
    return False


def taken_last(case: Case, owner: Owner, clusters: Iterable[str]) -> frozenset[str]:
    """Return of clusters those that are to be taken last: they may still be occupied, or they keep nothing."""
    core = case.core
    namespace = case.known.metadata.namespace
    in_vain = frozenset(name for name in clusters if core.failures.is_in_vain(name, namespace, case.now))
    if not core.ledger.early:
        return in_vain
    want = wanted(case.known, owner, case.attempt)
    views = ((name, core.view(name)) for name in clusters)
    return in_vain.union(name for name, view in views if view is not None and is_haunted(core, view, want))


def room_at(core: Core, view: ClusterView, now: float) -> int:
    """Return how many more offers a cluster takes: by what it grants, and by what it has not answered yet."""
    credit = view.credits - len(core.placements.unapplied(view.name))
    return max(0, min(credit, core.open_offers.room(view.name, now)))


def candidates(case: Case, owner: Owner) -> tuple[list[ClusterRank], list[str]]:
    """Return the clusters to ask, best first, and those that only lack credit at the moment.

    Why each of the others is not among them is kept in `attempt.why_not`. Where nobody else is left, those are asked in
    which the namespace takes no work: their agents say whether it is missing, and are asked again when they change.
    """
    core, attempt, now = case.core, case.attempt, case.now
    want = wanted(case.known, owner, attempt)
    checks = attempt.reserve.checks if attempt.reserve is not None else ()
    goal = targets.targets(core, checks)
    ranked: list[ClusterRank] = []
    shut: list[ClusterRank] = []
    short: list[str] = []
    if goal.problem:
        attempt.not_used(goal.check, goal.problem)
    for name in goal.clusters:
        view = core.view(name)
        why, mute = _why_not(core, attempt, want, name, now)
        if view is not None and (mute or not why) and room_at(core, view, now) <= 0:
            short += [] if why else [name]
            why, mute = why or NO_CREDIT, False
        if why:
            attempt.not_used(name, why)
        if view is not None and (mute or not why):
            load = len(core.placements.at(name)) + len(core.placements.unapplied(name))
            failures, ended = core.failures.weight(name, now), core.failures.ended(attempt.uid, name, now)
            ranks = rank(view, want, failures, load, ended)
            ranks = ranks._replace(
                haunted=is_haunted(core, view, want),
                silent=core.open_offers.is_silent(name),
                in_vain=core.failures.is_in_vain(name, want.namespace, now),
            )
            (shut if mute else ranked).append(ranks)
    return sorted(ranked) or ([] if short else sorted(shut)), short


def _why_not(core: Core, attempt: Attempt, want: Requirements, name: str, now: float) -> tuple[str, bool]:
    """Return why a cluster is not asked, "" when it is; and whether only its agent can say what is so there."""
    why = unfit(core.view(name), want)
    if why and why != closed(want.namespace):
        return why, False
    refused = core.failures.avoided(attempt.uid, name, now)
    return refused or why, bool(why) and not refused
