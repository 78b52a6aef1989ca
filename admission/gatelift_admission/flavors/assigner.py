"""Flavor assignment: which flavor each resource of each pod set would be charged to, and how well that fits.

Pod sets go in order, resources by name, one search per resource group; usage that earlier pod sets of the same workload
were given counts. Those of one `podSetGroupName` count as one, and each flavor has to suit them all. The rules (modes,
fungibility, cursor, texts) are those of Kueue's flavor assigner. What preemption could do for a cell is asked of
`Market.ask`; a queue that may not preempt has no need to ask, the answer is *no candidates*. Neighbours: `tree` for
quota, `matching` for nodes, `preemption.oracle` answers, `cycle` calls `assign`.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from gatelift_admission import texts
from gatelift_admission.flavors.matching import flavor_objection
from gatelift_admission.quota.tree import Tree, TreeNode
from gatelift_admission.values import amounts
from gatelift_admission.values.model import Amounts, Cell, PodSetDemand, Usage, cell_of
from gatelift_kube.objects.kueue import ClusterQueueSpec, FlavorFungibility, ResourceFlavor

Cursor = tuple[dict[str, int], ...]
"""Per pod set and resource: index of the flavor tried last, -1 once the last flavor of the group was reached."""
Option = tuple[tuple[Cell, int], ...]
"""Cells and amounts that all have to be available for one flavor to fit."""
Pins = tuple[dict[str, str], ...]
"""Per pod set: the one flavor that each resource may be given."""


class Mode(enum.IntEnum):
    """How well an assignment fits, worst first. NO_CANDIDATES: within quota, but others hold it and stay."""

    NO_FIT = 0
    NO_CANDIDATES = 1
    PREEMPT = 2
    RECLAIM = 3
    FIT = 4


Ask = Callable[[Cell, int], tuple[Mode, int]]
"""What preemption could make of an amount in a cell: NO_CANDIDATES, PREEMPT or RECLAIM; and the borrowing level."""
SEVERITY: Final = {texts.WAITING_FOR_QUOTA: 0, texts.EXCEEDS_MAX_QUOTA: 1, texts.NO_MATCHING_FLAVOR: 2}


@dataclass(frozen=True, slots=True)
class Group:
    """A resource group: its resources and its flavors in the order in which they are tried."""

    resources: frozenset[str]
    flavors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Catalogue:
    """What a ClusterQueue offers, prepared once per change of its spec."""

    groups: tuple[Group, ...]
    by_resource: Mapping[str, Group]
    fungibility: FlavorFungibility
    can_preempt_while_borrowing: bool
    has_choice: bool

    @classmethod
    def of(cls, spec: ClusterQueueSpec, *, fair_sharing: bool = False) -> Catalogue:
        """Prepare the catalogue of a ClusterQueue; the first group that names a resource serves it."""
        groups = tuple(
            Group(frozenset(group.covered_resources), tuple(flavor.name for flavor in group.flavors))
            for group in spec.resource_groups
        )
        by_resource = {name: group for group in reversed(groups) for name in group.resources}
        borrows = spec.preemption.borrow_within_cohort.policy != "Never"
        borrows = borrows or (fair_sharing and spec.preemption.reclaim_within_cohort != "Never")
        return cls(
            groups, by_resource, spec.flavor_fungibility, borrows, any(len(group.flavors) > 1 for group in groups)
        )


@dataclass(frozen=True, slots=True)
class Trial:
    """One flavor tried for one group of one pod set; mode and level are those of its worst resource."""

    flavor: str
    mode: Mode
    level: int
    reasons: tuple[str, ...]
    reason: str
    option: Option
    """What has to be available for this flavor; empty when no release of quota can help."""
    borrowing: int = 0
    """The highest level over its resources."""
    short: tuple[Cell, ...] = ()
    """Cells in which somebody would have to leave."""
    lowest: Mode = Mode.FIT
    """The worst mode of a resource, whatever its level: what the pod set is in, where the level counts first."""

    def text(self) -> str:
        """Return the attempt as the QuotaReserved event lists it."""
        mode = {Mode.FIT: "Fit", Mode.NO_FIT: "NoFit"}.get(self.mode)
        parts = [mode or f"preemptionMode={_PREEMPTION_MODE[self.mode]}"]
        if self.level:
            parts.append(f"borrow={self.level}")
        return f"{self.flavor}({';'.join([*parts, *self.reasons])})"


_PREEMPTION_MODE: Final = {Mode.NO_CANDIDATES: "NoCandidates", Mode.PREEMPT: "Preempt", Mode.RECLAIM: "Reclaim"}


@dataclass(slots=True)
class AssignedPodSet:
    """One pod set with its flavors; `flavors` is empty when nothing was found (or nothing was requested)."""

    name: str
    count: int
    requests: Amounts
    flavors: dict[str, str] = field(default_factory=dict)
    mode: Mode = Mode.FIT
    level: int = 0
    short: tuple[Cell, ...] = ()
    reasons: list[str] = field(default_factory=list)
    reason: str = ""
    attempts: list[Trial] = field(default_factory=list)
    tried: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Assignment:
    """The outcome for a whole workload."""

    pod_sets: list[AssignedPodSet] = field(default_factory=list)
    usage: Usage = field(default_factory=dict)
    mode: Mode = Mode.FIT
    borrowing: int = 0
    needs: frozenset[Cell] = frozenset()
    """Cells in which somebody would have to leave."""
    lacks: tuple[Option, ...] = ()
    """The options of the first search that failed: one of them must become available before the workload can fit."""
    lacks_anything: bool = False
    """Earlier pod sets had a choice of flavors, so any release in the queue's cells may change the outcome."""
    out_of_reach: int = 0
    """How many would have to leave who cannot be stopped now, where that is all that would help."""

    @property
    def reason(self) -> str:
        """Return the reason of the condition: the most severe one over pod sets."""
        found = [one.reason for one in self.pod_sets if one.reason]
        return max(found, key=lambda reason: SEVERITY[reason], default=texts.NO_MATCHING_FLAVOR)

    @property
    def message(self) -> str:
        """Return the assignment message: one part per pod set that does not fit."""
        parts = [texts.cannot_assign(one.name, one.reasons) for one in self.pod_sets if one.reasons]
        text = "; ".join(parts)
        if self.out_of_reach:
            text = texts.out_of_reach(text, self.out_of_reach)
        return texts.cut(text, texts.CONDITION_MESSAGE_MAX)

    @property
    def considered(self) -> str:
        """Return the flavors tried, per pod set, for the QuotaReserved event."""
        parts = [
            f"{one.name}: {', '.join(attempt.text() for attempt in one.attempts)}"
            for one in self.pod_sets
            if one.attempts
        ]
        return " | ".join(parts)

    @property
    def cursor(self) -> Cursor:
        """Return where the next search would go on."""
        return tuple(one.tried for one in self.pod_sets)

    @property
    def pins(self) -> Pins:
        """Return the flavors that were found, as the only ones for another search."""
        return tuple(dict(one.flavors) for one in self.pod_sets)

    @property
    def has_more_flavors(self) -> bool:
        """Return whether a search ended before the last flavor of its group."""
        return any(index != -1 for one in self.pod_sets for index in one.tried.values())

    def forget_cursor(self) -> None:
        """Let the next search begin at the first flavor: what was found depends on others of the same round."""
        for one in self.pod_sets:
            one.tried.clear()


@dataclass(frozen=True, slots=True)
class Market:
    """Where flavors are looked for: the tree, the queue's node and catalogue, and the flavor objects."""

    tree: Tree
    node: TreeNode
    catalogue: Catalogue
    flavors: Mapping[str, ResourceFlavor]
    ignore_undeclared: bool = False
    ask: Ask | None = None
    """None: preemption is out of the question."""
    pins: Pins | None = None
    """If set, no other flavors are considered."""


def assign(market: Market, pod_sets: tuple[PodSetDemand, ...], cursor: Cursor = ()) -> Assignment:
    """Find flavors for all pod sets; stops at the first pod set that cannot fit."""
    result = Assignment()
    listed: list[tuple[int, AssignedPodSet]] = []
    for members in _groups(pod_sets):
        together = _assign_group(market, members, pod_sets, cursor, result)
        result.pod_sets += together
        listed += zip(members, together, strict=True)
        for assigned in together:
            result.mode = min(result.mode, assigned.mode)
            result.borrowing = max(result.borrowing, assigned.level)
            result.needs = result.needs.union(assigned.short)
            for resource, flavor in assigned.flavors.items():
                cell = cell_of(flavor, resource)
                result.usage[cell] = amounts.add(result.usage.get(cell, 0), assigned.requests[resource])
        if result.mode is Mode.NO_FIT:
            break
    if len(listed) > 1:
        result.pod_sets = [one for _, one in sorted(listed, key=_place)]  # a group may have others in between
    return result


def _place(item: tuple[int, AssignedPodSet]) -> int:
    return item[0]


def _groups(pod_sets: tuple[PodSetDemand, ...]) -> list[tuple[int, ...]]:
    """Return the indices of those that get their flavors together, in the order of the first of each."""
    if len(pod_sets) == 1:
        return [(0,)]
    found: dict[str, tuple[int, ...]] = {}
    for index, one in enumerate(pod_sets):
        key = f"group {one.group}" if one.group else str(index)
        found[key] = (*found.get(key, ()), index)
    return list(found.values())


def _assign_group(
    market: Market, members: tuple[int, ...], pod_sets: tuple[PodSetDemand, ...], cursor: Cursor, result: Assignment
) -> list[AssignedPodSet]:
    """Find flavors for what the members of a group request together; each is given those of its own resources."""
    listed = []
    for index in members:
        requests = pod_sets[index].totals()
        if "pods" in market.catalogue.by_resource:
            requests["pods"] = pod_sets[index].count
        listed.append(AssignedPodSet(pod_sets[index].name, pod_sets[index].count, requests))
    tried: dict[str, int] = {}
    for index in reversed(members):  # the first that asks for a resource says where its search goes on
        if index < len(cursor):
            tried.update(cursor[index])
    if len(members) == 1:
        _assign_pod_set(market, members, pod_sets, tried, result, listed[0])
        return listed
    whole = AssignedPodSet("", 0, _together(listed))
    _assign_pod_set(market, members, pod_sets, tried, result, whole)
    for one in listed:
        one.flavors = {name: flavor for name, flavor in whole.flavors.items() if name in one.requests}
        one.tried = {name: index for name, index in whole.tried.items() if name in one.requests}
        one.mode, one.level, one.short = whole.mode, whole.level, whole.short
        one.reasons, one.reason, one.attempts = list(whole.reasons), whole.reason, list(whole.attempts)
    return listed


def _together(listed: list[AssignedPodSet]) -> Amounts:
    total: Amounts = {}
    for one in listed:
        for name, amount in one.requests.items():
            total[name] = amounts.add(total.get(name, 0), amount)
    return total


def _assign_pod_set(
    market: Market,
    members: tuple[int, ...],
    pod_sets: tuple[PodSetDemand, ...],
    tried: Mapping[str, int],
    result: Assignment,
    out: AssignedPodSet,
) -> None:
    """Find flavors for what `out` requests, which have to suit all members."""
    requests, by_resource = out.requests, market.catalogue.by_resource
    for resource in sorted(requests):
        if resource in out.flavors:
            continue
        group = by_resource.get(resource)
        if group is None:
            if requests[resource] == 0 or market.ignore_undeclared:
                continue
            _fail(out, [texts.resource_unavailable(resource)], texts.NO_MATCHING_FLAVOR)
            break
        wanted = [name for name in sorted(requests) if name in group.resources]
        search = _Search(market, members, pod_sets, {name: requests[name] for name in wanted}, result.usage)
        best = search.run(group, tried.get(resource, -1) + 1)
        out.attempts += search.attempts
        out.tried.update(dict.fromkeys(wanted, search.last))
        if (best is None or best.lowest is not Mode.FIT) and not result.lacks:
            result.lacks = tuple(attempt.option for attempt in search.attempts if attempt.option)
            result.lacks_anything = bool(result.pod_sets) and market.catalogue.has_choice
        if best is None:
            _fail(out, search.reasons(), search.reason())
            break
        _take(out, wanted, best, search)


def _fail(out: AssignedPodSet, reasons: list[str], reason: str) -> None:
    out.flavors = {}
    out.tried = {}  # without a flavor there is no cursor: else a hopeless pod set would be tried for ever
    out.short = ()
    out.mode = Mode.NO_FIT
    out.reasons = reasons
    out.reason = reason


def _take(out: AssignedPodSet, wanted: list[str], best: Trial, search: _Search) -> None:
    out.flavors.update(dict.fromkeys(wanted, best.flavor))
    out.mode = min(out.mode, best.lowest)
    out.level = max(out.level, best.borrowing)
    out.short += best.short
    if best.lowest is not Mode.FIT:
        out.reasons += search.reasons()
        out.reason = max(out.reason or texts.WAITING_FOR_QUOTA, search.reason(), key=lambda one: SEVERITY[one])


class _Search:
    """One search through the flavors of one resource group for one pod set, or for those that get them together."""

    __slots__ = ("assumed", "attempts", "last", "market", "members", "pod_sets", "wanted")

    def __init__(
        self,
        market: Market,
        members: tuple[int, ...],
        pod_sets: tuple[PodSetDemand, ...],
        wanted: Amounts,
        assumed: Usage,
    ) -> None:
        self.market = market
        self.members = members
        self.pod_sets = pod_sets
        self.wanted = wanted
        self.assumed = assumed
        self.attempts: list[Trial] = []
        self.last = -1

    def run(self, group: Group, start: int) -> Trial | None:
        """Try flavors from index `start` on; return the best attempt, None if nothing is possible."""
        best: Trial | None = None
        fungibility = self.market.catalogue.fungibility
        end = len(group.flavors) - 1
        for index in range(start if start <= end else 0, end + 1):
            attempt = self._attempt(group.flavors[index])
            self.attempts.append(attempt)
            self.last = -1 if index == end else index
            if not _try_next(fungibility, attempt):
                return attempt
            # By the worst mode: where the level counts first, one in which somebody would have to leave is no fit.
            found = (attempt.lowest, attempt.level)
            if attempt.mode is not Mode.NO_FIT and (
                best is None or _preferred(fungibility, found, (best.lowest, best.level))
            ):
                best = attempt
        return best

    def reasons(self) -> list[str]:
        """Return why flavors were turned down, each text once."""
        return list(dict.fromkeys(text for attempt in self.attempts for text in attempt.reasons))

    def reason(self) -> str:
        """Return the mildest reason over the flavors tried."""
        found = [attempt.reason for attempt in self.attempts if attempt.reason]
        return min(found, key=lambda reason: SEVERITY[reason], default=texts.NO_MATCHING_FLAVOR)

    def _attempt(self, flavor: str) -> Trial:
        pins = self.market.pins
        if pins is not None:
            resource = next(iter(self.wanted))
            pinned = next(
                (pins[one].get(resource) for one in self.members if one < len(pins) and resource in pins[one]), None
            )
            if pinned != flavor:
                return Trial(
                    flavor, Mode.NO_FIT, 0, (texts.not_pinned(flavor, resource),), texts.NO_MATCHING_FLAVOR, ()
                )
        known = self.market.flavors.get(flavor)
        objection = texts.flavor_not_found(flavor) if known is None else self._objection(known)
        if objection is not None:
            return Trial(flavor, Mode.NO_FIT, 0, (objection,), texts.NO_MATCHING_FLAVOR, ())
        return self._quota(flavor)

    def _objection(self, flavor: ResourceFlavor) -> str | None:
        """Return why a flavor does not suit a member, None if it suits all."""
        for index in self.members:
            found = flavor_objection(flavor, self.pod_sets[index])
            if found is not None:
                return found
        return None

    def _quota(self, flavor: str) -> Trial:
        tree, node = self.market.tree, self.market.node
        worst = (Mode.FIT, 0)
        borrowing, lowest = 0, Mode.FIT
        reasons: list[str] = []
        needs: list[tuple[Cell, int]] = []
        short: list[Cell] = []
        exceeds = False
        for resource, request in self.wanted.items():
            cell = cell_of(flavor, resource)
            assumed = self.assumed.get(cell, 0)
            value = amounts.add(assumed, request)
            free = tree.free(node, cell)
            most = tree.potential(node, cell)
            if value > most:
                worst, exceeds = (Mode.NO_FIT, 0), True
                before, bound = (amounts.to_text(amount, resource) for amount in (assumed, most))
                asked = amounts.to_quantity(request, resource)  # nobody asks for everything: a request is a quantity
                reasons.append(texts.insufficient_maximum(resource, flavor, before, asked, bound))
                continue
            level, below_root = tree.lowest_fit(node, cell, value)
            mode = Mode.FIT
            needs.append((cell, value))
            if value > free:
                more = amounts.to_text(amounts.sub(value, free), resource)
                reasons.append(texts.insufficient_unused(resource, flavor, more))
                mode, level = self._beyond_free(cell, value, level, below_root=below_root)
                if mode is not Mode.NO_FIT:
                    short.append(cell)
            borrowing, lowest = max(borrowing, level), min(lowest, mode)
            if _preferred(self.market.catalogue.fungibility, worst, (mode, level)):
                worst = (mode, level)
        mode, level = worst
        reason = (
            ""
            if mode is Mode.FIT and lowest is Mode.FIT
            else texts.EXCEEDS_MAX_QUOTA
            if exceeds
            else texts.WAITING_FOR_QUOTA
        )
        option = () if exceeds else tuple(needs)
        return Trial(flavor, mode, level, tuple(reasons), reason, option, borrowing, tuple(short), lowest)

    def _beyond_free(self, cell: Cell, value: int, level: int, *, below_root: bool) -> tuple[Mode, int]:
        """Return what preemption could make of it, NO_FIT where it may not help, and the borrowing level."""
        market = self.market
        if market.node.nominal(cell) < value and not below_root and not market.catalogue.can_preempt_while_borrowing:
            return Mode.NO_FIT, level
        return market.ask(cell, value) if market.ask is not None else (Mode.NO_CANDIDATES, level)


def _try_next(fungibility: FlavorFungibility, attempt: Trial) -> bool:
    if attempt.mode is Mode.NO_FIT or attempt.mode is Mode.NO_CANDIDATES:
        return True
    if attempt.mode is not Mode.FIT and fungibility.when_can_preempt == "TryNextFlavor":
        return True
    return attempt.level > 0 and fungibility.when_can_borrow == "TryNextFlavor"


def _preferred(fungibility: FlavorFungibility, new: tuple[Mode, int], old: tuple[Mode, int]) -> bool:
    """Return whether a mode at a borrowing level beats another one strictly."""
    for mode in (Mode.NO_FIT, Mode.NO_CANDIDATES):
        if new[0] is mode:
            return old[0] < mode or (old[0] is mode and mode is not Mode.NO_FIT and new[1] < old[1])
        if old[0] is mode:
            return True
    if fungibility.preference == "PreemptionOverBorrowing":
        return (-new[1], new[0]) > (-old[1], old[0])
    return (new[0], -new[1]) > (old[0], -old[1])
