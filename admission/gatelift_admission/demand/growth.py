"""What a slice asks for beside what its chain is charged already, and what the chain is charged with it (KEP-77).

By name of pod set and by resource; nothing is ever asked for that is less than nothing, so that what one pod set gives
back pays for no other. Neighbours: `assigner` asks for the difference, `reservation` grants the sum, `chains` says what
is charged.
"""

from __future__ import annotations

from gatelift_admission.demand.grants import GrantedPodSet
from gatelift_admission.values import amounts
from gatelift_admission.values.model import Amounts

Held = dict[str, GrantedPodSet]
"""What a chain is charged, by the name of the pod set."""


def beside(requests: Amounts, held: GrantedPodSet | None) -> Amounts:
    """Return what of the requests of a pod set is not charged yet."""
    if held is None:
        return requests
    return {name: max(0, amount - held.usage.get(name, 0)) for name, amount in requests.items()}


def together(held: GrantedPodSet | None, more: GrantedPodSet) -> GrantedPodSet:
    """Return what a pod set is charged with `more`: of both counts the higher one, which is never less than before."""
    if held is None:
        return more
    usage = dict(held.usage)
    for name, amount in more.usage.items():
        usage[name] = amounts.add(usage.get(name, 0), amount)
    flavors = {**held.flavors, **more.flavors}
    return GrantedPodSet(name=more.name, flavors=flavors, usage=usage, count=max(held.count, more.count))


def sticky(held: Held, names: list[str]) -> dict[str, str]:
    """Return the flavor that each resource has in one of these pod sets; those of one group have the same."""
    found: dict[str, str] = {}
    for name in names:
        one = held.get(name)
        if one is not None:
            found.update({resource: flavor for resource, flavor in one.flavors.items() if resource not in found})
    return found
