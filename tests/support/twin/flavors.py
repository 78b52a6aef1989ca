"""Which flavor each resource of a workload gets, and how well it fits (2.5).

Neighbours: `matching` and `quota` answer, the oracle (`targets`, `sharing`) simulates preemption, `partial` and
`entries` call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from gatelift_admission.values.amounts import to_text
from gatelift_admission.values.model import PodSetDemand
from gatelift_kube.objects.kueue import ClusterQueueSpec, ResourceGroup
from support.twin.arithmetic import minus, plus
from support.twin.matching import affinity_matches, untolerated
from support.twin.quota import Cell, Usage, available, lowest_fitting, potential
from support.twin.records import Cursor, Granted, QueueView, Snapshot, Work

NO_FIT, NO_CANDIDATES, PREEMPT, RECLAIM, FIT = range(5)
"""Fine modes, worst to best (2.5)."""
Oracle = Callable[[Cell, int], tuple[int, int]]
"""(cell, amount) -> (NO_CANDIDATES, PREEMPT or RECLAIM, borrowing level afterwards)."""
Pins = Mapping[tuple[str, str], str]
"""(pod set, resource) -> the one flavor that may be taken (2.7 step 2)."""
SEVERITIES = ("WaitingForQuota", "ExceedsMaxQuota", "NoMatchingFlavor")
"""Fine reasons of a NoFit, mildest to most severe (3.1)."""


@dataclass(slots=True)
class Choice:
    """One resource of one pod set: its flavor, how well it fits, at which borrowing level, and the cursor."""

    flavor: str
    mode: int
    level: int
    tried: int


@dataclass(slots=True)
class PodSetResult:
    """One pod set: what it asks for, the flavor of each resource (none = no fit), texts and the fine reason."""

    name: str
    count: int
    requests: dict[str, int]
    choices: dict[str, Choice] = field(default_factory=dict)
    failed: bool = False
    texts: list[str] = field(default_factory=list)
    severity: str | None = None
    worst: int = FIT
    """That of its group, if it is in one."""

    def mode(self) -> int:
        """Return the worst mode of its resources; a pod set that asks for nothing fits."""
        own = min((one.mode for one in self.choices.values()), default=FIT)
        return NO_FIT if self.failed else min(own, self.worst)


@dataclass(slots=True)
class Assignment:
    """The result for a workload (2.5, Result); `deferred` is mode DeferredFit (2.7 step 2)."""

    pod_sets: list[PodSetResult]
    cursor: Cursor
    deferred: bool = False
    out_of_reach: int = 0
    """How many of those in the way cannot be stopped now, where nobody else would do."""

    def mode(self) -> str:
        """Return NoFit, Preempt, DeferredFit or Fit."""
        worst = min((one.mode() for one in self.pod_sets), default=FIT)
        if worst == FIT:
            return "DeferredFit" if self.deferred else "Fit"
        return "NoFit" if worst == NO_FIT else "Preempt"

    def usage(self) -> Usage:
        """Return the full requests on all assigned cells."""
        total: Usage = {}
        for one in self.pod_sets:
            for resource, choice in one.choices.items():
                cell = (choice.flavor, resource)
                total[cell] = plus(total.get(cell, 0), one.requests[resource])
        return total

    def borrowing(self) -> int:
        """Return the highest borrowing level."""
        return max((one.level for ps in self.pod_sets for one in ps.choices.values()), default=0)

    def cells_in_need(self) -> set[Cell]:
        """Return the cells whose mode is Preempt (2.6)."""
        choices = [(name, one) for ps in self.pod_sets for name, one in ps.choices.items()]
        return {(one.flavor, name) for name, one in choices if NO_FIT < one.mode < FIT}

    def pins(self) -> dict[tuple[str, str], str]:
        """Return the flavors of this assignment, for a re-computation that keeps them (2.7 step 2)."""
        return {(ps.name, name): one.flavor for ps in self.pod_sets for name, one in ps.choices.items()}

    def message(self) -> str:
        """Return the assignment message (3.1); pod sets that fit contribute nothing."""
        text = "; ".join(
            f"couldn't assign flavors to pod set {ps.name}: {', '.join(sorted(ps.texts))}"
            for ps in self.pod_sets
            if ps.mode() != FIT and ps.texts
        )
        if not self.out_of_reach:
            return text
        number = f"{self.out_of_reach} workload(s)"
        return f"{text}. Waits for {number} on clusters that are not connected, which cannot be preempted now"

    def reason(self) -> str:
        """Return the fine-grained reason (3.1): the most severe over pod sets that do not fit."""
        found = [ps.severity for ps in self.pod_sets if ps.mode() != FIT and ps.severity is not None]
        return max(found, key=SEVERITIES.index, default="NoMatchingFlavor")


@dataclass(slots=True)
class Search:
    """One call of the assigner for one workload: what it reads, and what earlier pod sets assumed."""

    snapshot: Snapshot
    view: QueueView
    oracle: Oracle
    pins: Pins | None = None
    assumed: Usage = field(default_factory=dict)
    held: dict[str, Granted] | None = None
    """What the chain of a slice is charged already, by pod set."""


def totals(pods: PodSetDemand, count: int, spec: ClusterQueueSpec) -> dict[str, int]:
    """Return what `count` pods request (2.1, 2.6): scaled by integer division; `pods` only if the queue covers it."""
    found = {name: min(2**63 - 1, amount * pods.count) for name, amount in pods.per_pod.items()}
    if count != pods.count:
        found = {name: amount // pods.count * count for name, amount in found.items()}
    if any("pods" in group.covered_resources for group in spec.resource_groups):
        found["pods"] = count
    return dict(sorted(found.items()))


def assign(search: Search, work: Work, cursor: Cursor, counts: list[int] | None = None) -> Assignment:
    """Assign flavors to all pod sets in order (2.5); one that cannot be served ends the search."""
    wanted = counts or [pods.count for pods in work.pod_sets]
    result = Assignment([], {})
    done: dict[int, PodSetResult] = {}
    for indices in _groups(work.pod_sets):
        members = [work.pod_sets[index] for index in indices]
        for index, pods in zip(indices, members, strict=True):
            known = (search.held or {}).get(pods.name)
            asked = totals(pods, wanted[index], search.view.spec)
            asked = {
                name: max(0, amount - (known.usage.get(name, 0) if known else 0)) for name, amount in asked.items()
            }
            done[index] = PodSetResult(pods.name, wanted[index], asked)
        whole = PodSetResult("", 0, _summed([done[index] for index in indices]))
        starts: dict[str, int] = {}
        for index in indices[:1] if search.snapshot.as_kueue else indices:
            for (number, name), position in cursor.items():
                if number == index and name not in starts:
                    starts[name] = position
        _keep(search, members, whole)
        _assign_pod_set(search, members, whole, starts)
        for index in indices:
            _share(whole, done[index])
        if whole.failed:
            break  # no flavor, so no cursor either: what failed is tried from the first flavor again
        for index in indices:
            result.cursor.update({(index, name): choice.tried for name, choice in done[index].choices.items()})
        for name, choice in whole.choices.items():
            cell = (choice.flavor, name)
            search.assumed[cell] = plus(search.assumed.get(cell, 0), whole.requests[name])
    result.pod_sets = [done[index] for index in sorted(done)]
    return result


def _original(search: Search, pods: list[PodSetDemand]) -> dict[str, str]:
    """Return the flavors that pod sets of a chain have."""
    found: dict[str, str] = {}
    for one in pods:
        known = (search.held or {}).get(one.name)
        found = {**(known.flavors if known is not None else {}), **found}
    return found


def _keep(search: Search, pods: list[PodSetDemand], one: PodSetResult) -> None:
    """Leave the flavors of a resource group of which nothing more is asked for as they are."""
    known = _original(search, pods)
    for group in search.view.spec.resource_groups if search.held is not None else ():
        names = [name for name in one.requests if name in group.covered_resources]
        if not any(one.requests[name] for name in names):
            one.choices.update({name: Choice(known[name], FIT, 0, -1) for name in names if name in known})


def _groups(pod_sets: tuple[PodSetDemand, ...]) -> list[list[int]]:
    """Return who is treated as one (2.5): pod sets of one podSetGroupName, in the order of the first of each."""
    found: list[list[int]] = []
    for index, pods in enumerate(pod_sets):
        known = next((one for one in found if pods.group and pod_sets[one[0]].group == pods.group), None)
        if known is None:
            found.append([index])
        else:
            known.append(index)
    return found


def _summed(listed: list[PodSetResult]) -> dict[str, int]:
    """Return what pod sets request together."""
    total: dict[str, int] = {}
    for one in listed:
        for name, amount in one.requests.items():
            total[name] = plus(total.get(name, 0), amount)
    return dict(sorted(total.items()))


def _share(whole: PodSetResult, one: PodSetResult) -> None:
    """Give a member what was found for its group: the flavors of its own resources, all texts."""
    chosen = {} if whole.failed else whole.choices
    one.choices = {name: choice for name, choice in chosen.items() if name in one.requests}
    one.failed, one.texts, one.severity, one.worst = whole.failed, list(whole.texts), whole.severity, whole.mode()


def _assign_pod_set(search: Search, pods: list[PodSetDemand], one: PodSetResult, starts: Mapping[str, int]) -> None:
    """Serve the resources in name order, one call per resource group (2.5)."""
    for resource in one.requests:
        if resource in one.choices:
            continue
        group = next((g for g in search.view.spec.resource_groups if resource in g.covered_resources), None)
        if group is None:
            if one.requests[resource] == 0 or search.snapshot.ignore_undeclared:
                continue
            one.failed, one.severity = True, "NoMatchingFlavor"
            one.texts = [f"resource {resource} unavailable in ClusterQueue"]
            return
        found = _serve_group(search, pods, one, group, starts.get(resource, -1) + 1)
        if found.best is None:
            one.failed, one.severity, one.texts = True, found.severity(), found.texts()
            return
        one.choices.update(found.best)
        if min(choice.mode for choice in found.best.values()) < FIT:
            one.texts += found.texts()
            one.severity = max(filter(None, (one.severity, found.severity())), key=SEVERITIES.index)


@dataclass(slots=True)
class GroupSearch:
    """What trying the flavors of one group brought: the best, and per flavor its rejections (severity, text)."""

    best: dict[str, Choice] | None = None
    rejections: list[list[tuple[str, str]]] = field(default_factory=list)

    def texts(self) -> list[str]:
        """Return all texts of all flavors tried."""
        return [text for one in self.rejections for _, text in one]

    def severity(self) -> str:
        """Return the mildest over flavors of the most severe of each (3.1); nothing tried: NoMatchingFlavor."""
        worst = [max((kind for kind, _ in one), key=SEVERITIES.index) for one in self.rejections if one]
        return min(worst, key=SEVERITIES.index, default="NoMatchingFlavor")


def _serve_group(
    search: Search, pods: list[PodSetDemand], one: PodSetResult, group: ResourceGroup, start: int
) -> GroupSearch:
    """Try the flavors of a group from the cursor on (2.5)."""
    found = GroupSearch()
    best_pair = (NO_FIT, 0)
    spec = search.view.spec
    wanted = [name for name in one.requests if name in group.covered_resources]
    tried = -1
    # A cursor from before the group lost flavors may point behind its end: the text is silent, both start over then.
    for index in range(start if start < len(group.flavors) else 0, len(group.flavors)):
        tried = -1 if index == len(group.flavors) - 1 else index
        name = group.flavors[index].name
        obstacle = _obstacle(search, pods, name, wanted) or _other_flavor(search, pods, name, wanted)
        if obstacle:
            found.rejections.append([("NoMatchingFlavor", obstacle)])
            continue
        rejections: list[tuple[str, str]] = []
        choices = {r: _try_cell(search, (name, r), one.requests[r], rejections) for r in wanted}
        found.rejections.append(rejections)
        pairs = [(choice.mode, choice.level) for choice in choices.values()]
        pair = pairs[0]
        for other in pairs[1:]:
            pair = other if preferred(spec, pair, other) else pair
        if not try_next(spec, *pair):
            found.best = choices
            break
        if not search.snapshot.as_kueue:
            pair = (min(mode for mode, _ in pairs), pair[1])  # whoever has to leave counts at every level (decision 14)
        if pair[0] > NO_FIT and (found.best is None or preferred(spec, pair, best_pair)):
            found.best, best_pair = choices, pair
    for choice in (found.best or {}).values():
        choice.tried = tried
    return found


def _obstacle(search: Search, pods: list[PodSetDemand], name: str, wanted: list[str]) -> str:
    """Return why a flavor is skipped (2.5), in the order of the list there; empty if it is not."""
    for resource in wanted:
        if search.pins is not None and name not in {search.pins.get((one.name, resource)) for one in pods}:
            return f"skipping flavor {name} as it is not found in the nomination mapping for resource {resource}"
    flavor = search.snapshot.flavors.get(name)
    if flavor is None:
        return f"flavor {name} not found"
    for one in pods:
        taint = untolerated(flavor, one)
        if taint is not None:
            return f"untolerated taint {{{taint.key} {taint.value} {taint.effect} <nil>}} in flavor {name}"
        if not affinity_matches(flavor, one):
            return f"flavor {name} doesn't match node affinity"
    return ""


def _other_flavor(search: Search, pods: list[PodSetDemand], name: str, wanted: list[str]) -> str:
    """Return why a flavor is skipped by a slice whose chain has another one; empty if it is not."""
    original = next((_original(search, pods)[one] for one in wanted if one in _original(search, pods)), "")
    if original in ("", name):
        return ""
    return f"could not assign {name} flavor since the original workload is assigned: {original}"


def _try_cell(search: Search, cell: Cell, request: int, rejections: list[tuple[str, str]]) -> Choice:
    """Return how one resource fits one flavor (2.5, for each requested resource)."""
    node, (flavor, resource) = search.view.node, cell
    assumed = search.assumed.get(cell, 0)
    value = plus(assumed, request)
    highest = potential(node, cell)
    if value > highest:
        text = (
            f"insufficient quota for {resource} in flavor {flavor}, previously considered podsets requests "
            f"({to_text(assumed, resource)}) + current podset request ({to_text(request, resource)}) > maximum "
            f"capacity ({to_text(highest, resource)})"
        )
        rejections.append(("ExceedsMaxQuota", text))
        return Choice(flavor, NO_FIT, 0, -1)
    level, below_root = lowest_fitting(node, cell, value)
    free = available(node, cell)
    if value <= free:
        return Choice(flavor, FIT, level, -1)
    missing = to_text(minus(value, free), resource)
    rejections.append(
        ("WaitingForQuota", f"insufficient unused quota for {resource} in flavor {flavor}, {missing} more needed")
    )
    if node.nominal.get(cell, 0) >= value or below_root or may_preempt_while_borrowing(search.snapshot, search.view):
        mode, level = search.oracle(cell, value)
        return Choice(flavor, mode, level, -1)
    return Choice(flavor, NO_FIT, level, -1)


def may_preempt_while_borrowing(snapshot: Snapshot, view: QueueView) -> bool:
    """Return whether the queue may preempt while it borrows (2.5)."""
    policies = view.spec.preemption
    if snapshot.fair is not None and policies.reclaim_within_cohort != "Never":
        return True
    return policies.borrow_within_cohort.policy != "Never"


def try_next(spec: ClusterQueueSpec, mode: int, level: int) -> bool:
    """Return shouldTryNext (2.5)."""
    rules = spec.flavor_fungibility
    if mode in (NO_FIT, NO_CANDIDATES):
        return True
    if mode in (PREEMPT, RECLAIM) and rules.when_can_preempt == "TryNextFlavor":
        return True
    return level > 0 and rules.when_can_borrow == "TryNextFlavor"


def preferred(spec: ClusterQueueSpec, left: tuple[int, int], right: tuple[int, int]) -> bool:
    """Return whether (mode, level) `left` beats `right` (2.5): what is viable first, then by the preference."""
    (mode, level), (other_mode, other_level) = left, right
    if (mode > NO_CANDIDATES) != (other_mode > NO_CANDIDATES):
        return mode > NO_CANDIDATES
    if NO_FIT in (mode, other_mode):
        return mode > other_mode
    if spec.flavor_fungibility.preference == "PreemptionOverBorrowing":
        return (-level, mode) > (-other_level, other_mode)
    return (mode, -level) > (other_mode, -other_level)
