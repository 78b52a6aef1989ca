"""Flavor assignment: which flavor each resource of each pod set would be charged to, and how well that fits.

Pod sets go in order, resources by name, one search per resource group; usage that earlier pod sets of the same workload
were given counts. Those of one `podSetGroupName` count as one, and each flavor has to suit them all. The rules (modes,
fungibility, cursor, texts) are those of Kueue's flavor assigner. Neighbours: `search` looks through the flavors of one
group, `assignment` is what comes out, `nomination` calls `assign`.
"""

from __future__ import annotations

from collections.abc import Mapping

from gatelift_admission import texts
from gatelift_admission.demand.growth import beside, sticky
from gatelift_admission.flavors.assignment import SEVERITY, AssignedPodSet, Assignment, Cursor, Mode, Trial
from gatelift_admission.flavors.search import Market, Search
from gatelift_admission.values import amounts
from gatelift_admission.values.model import Amounts, PodSetDemand, cell_of
from gatelift_kube.objects.core import POD_COUNT


def assign(market: Market, pod_sets: tuple[PodSetDemand, ...], cursor: Cursor = ()) -> Assignment:
    """Find flavors for all pod sets; stops at the first pod set that cannot fit."""
    found = _Assigning(market, pod_sets)
    result = found.result
    result.held = market.held
    listed: list[tuple[int, AssignedPodSet]] = []
    for members in _groups(pod_sets):
        together = found.group(members, cursor)
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


class _Assigning:
    """One assignment under way."""

    __slots__ = ("market", "pod_sets", "result")

    def __init__(self, market: Market, pod_sets: tuple[PodSetDemand, ...]) -> None:
        self.market = market
        self.pod_sets = pod_sets
        self.result = Assignment()

    def group(self, members: tuple[int, ...], cursor: Cursor) -> list[AssignedPodSet]:
        """Find flavors for what the members of a group request together; each is given those of its own resources."""
        pod_sets, listed = self.pod_sets, []
        for index in members:
            requests = pod_sets[index].totals()
            if POD_COUNT in self.market.catalogue.by_resource:
                requests[POD_COUNT] = pod_sets[index].count
            if self.market.held is not None:
                requests = beside(requests, self.market.held.get(pod_sets[index].name))
            listed.append(AssignedPodSet(pod_sets[index].name, pod_sets[index].count, requests))
        tried: dict[str, int] = {}
        for index in reversed(members):  # the first that asks for a resource says where its search goes on
            if index < len(cursor):
                tried.update(cursor[index])
        if self.market.held is not None:
            self._keep(members, listed)
        if len(members) == 1:
            self._find(members, tried, listed[0])
            return listed
        whole = AssignedPodSet("", 0, _together(listed))
        for one in listed:
            whole.flavors.update(one.flavors)
        self._find(members, tried, whole)
        for one in listed:
            one.flavors = {name: flavor for name, flavor in whole.flavors.items() if name in one.requests}
            one.tried = {name: index for name, index in whole.tried.items() if name in one.requests}
            one.mode, one.level, one.short = whole.mode, whole.level, whole.short
            one.reasons, one.reason, one.attempts = list(whole.reasons), whole.reason, list(whole.attempts)
        return listed

    def _keep(self, members: tuple[int, ...], listed: list[AssignedPodSet]) -> None:
        """Give the members the flavors that they have in resource groups of which they ask for nothing more.

        These are not searched: what runs stays where it is, whatever has become of its flavor.
        """
        catalogue, held = self.market.catalogue, self.market.held or {}
        known = sticky(held, [self.pod_sets[index].name for index in members])
        more = {name for one in listed for name, amount in one.requests.items() if amount}
        for group in catalogue.groups:
            if group.resources.isdisjoint(more):
                for one in listed:
                    one.flavors.update(
                        {name: known[name] for name in one.requests if name in group.resources and name in known}
                    )

    def _find(self, members: tuple[int, ...], tried: Mapping[str, int], out: AssignedPodSet) -> None:
        """Find flavors for what `out` requests, which have to suit all members."""
        market, result, requests = self.market, self.result, out.requests
        by_resource = market.catalogue.by_resource
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
            search = Search(market, members, self.pod_sets, {name: requests[name] for name in wanted}, result.usage)
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


def _together(listed: list[AssignedPodSet]) -> Amounts:
    total: Amounts = {}
    for one in listed:
        for name, amount in one.requests.items():
            total[name] = amounts.add(total.get(name, 0), amount)
    return total


def _fail(out: AssignedPodSet, reasons: list[str], reason: str) -> None:
    out.flavors = {}
    out.tried = {}  # without a flavor there is no cursor: else a hopeless pod set would be tried for ever
    out.short = ()
    out.mode = Mode.NO_FIT
    out.reasons = reasons
    out.reason = reason


def _take(out: AssignedPodSet, wanted: list[str], best: Trial, search: Search) -> None:
    out.flavors.update(dict.fromkeys(wanted, best.flavor))
    out.mode = min(out.mode, best.lowest)
    out.level = max(out.level, best.borrowing)
    out.short += best.short
    if best.lowest is not Mode.FIT:
        out.reasons += search.reasons()
        out.reason = max(out.reason or texts.WAITING_FOR_QUOTA, search.reason(), key=lambda one: SEVERITY[one])
