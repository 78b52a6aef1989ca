"""What a workload was granted: flavor and usage per pod set, and what of that is due while some pods need none.

One value for each reservation, shared by all that were granted the same. Neighbours: `reservation` makes it of an
assignment, `intake` of an object's `status.admission`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from gatelift_admission.demand.requests import pod_requests, reclaimable_counts
from gatelift_admission.values import amounts
from gatelift_admission.values.model import Amounts, Cell, Usage, cell_of
from gatelift_admission.values.transformations import Transformation
from gatelift_kube.objects.kueue import Admission, Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantedPodSet:
    """One pod set of a reservation: flavor and usage per resource for `count` pods."""

    name: str
    flavors: dict[str, str]
    usage: Amounts
    count: int

    def reduced(self, count: int) -> GrantedPodSet:
        """Return what `count` of the granted pods have."""
        if count >= self.count or self.count <= 0:
            return self
        used = max(0, count)
        usage = {name: amount // self.count * used for name, amount in self.usage.items()}
        return GrantedPodSet(name=self.name, flavors=self.flavors, usage=usage, count=used)

    def cells(self, count: int) -> Usage:
        """Return the usage of `count` of the granted pods (`usage // granted * count`, Kueue's integer rule)."""
        if count >= self.count:
            return {cell_of(flavor, name): self.usage.get(name, 0) for name, flavor in self.flavors.items()}
        return {
            cell_of(flavor, name): self.usage.get(name, 0) // self.count * count
            for name, flavor in self.flavors.items()
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """A reservation. Nobody changes what is in it: it is charged to many as it is."""

    written: Admission
    """How an object says it."""
    pod_sets: tuple[GrantedPodSet, ...]
    usage: Usage
    """Of all pods that were granted."""
    cells: Collection[Cell]
    """Every cell that was granted, also where nothing of it is used: Kueue asks for flavors, not for amounts."""

    @classmethod
    def of(cls, written: Admission, pod_sets: tuple[GrantedPodSet, ...]) -> Grant:
        """Return what these pod sets make together."""
        usage = usage_of(pod_sets, {one.name: one.count for one in pod_sets})
        granted = frozenset(cell_of(flavor, name) for one in pod_sets for name, flavor in one.flavors.items())
        whole = len(granted) == len(usage)
        return cls(written=written, pod_sets=pod_sets, usage=usage, cells=usage if whole else granted)

    @property
    def queue(self) -> str:
        """Return the name of the ClusterQueue; empty for nothing."""
        return self.written.cluster_queue

    def due(self, workload: Workload) -> Usage:
        """Return the usage of the pods that still need quota (KEP-78).

        The granted less the reclaimable. These are counted from what the pod set has, so those that it has and was
        not granted come off first: a reservation that was made after some pods were done leaves those out already.
        A count of the pod set that is lowered frees nothing, since nothing says that a pod has gone.
        """
        reclaimable = reclaimable_counts(workload)
        return self.of_pods(self.counts_due(workload)) if reclaimable else self.usage

    def counts_due(self, workload: Workload) -> dict[str, int]:
        """Return how many pods of each pod set still need quota."""
        reclaimable = reclaimable_counts(workload)
        counts = {one.name: one.count for one in workload.spec.pod_sets}
        return {
            one.name: one.count - max(0, reclaimable.get(one.name, 0) - max(0, counts.get(one.name, 0) - one.count))
            for one in self.pod_sets
        }

    def of_pods(self, counts: Mapping[str, int]) -> Usage:
        """Return the usage of so many of the granted pods, by pod set; others count zero."""
        return usage_of(self.pod_sets, counts)


def usage_of(pod_sets: tuple[GrantedPodSet, ...], counts: Mapping[str, int]) -> Usage:
    """Return the usage of so many pods of each pod set, saturating; cells without usage are left out."""
    usage: Usage = {}
    for one in pod_sets:
        count = counts.get(one.name, 0)
        if count <= 0:
            continue
        for cell, amount in one.cells(count).items():
            if amount > 0:
                usage[cell] = amounts.add(usage.get(cell, 0), amount)
    return usage


NOTHING: Final = Grant(written=Admission(""), pod_sets=(), usage={}, cells=())


def read(workload: Workload, known: Grant) -> Grant:
    """Return the reservation of an object: `known`, if it says just that, and all of it by itself (each count).

    Raises `amounts.QuantityError` on a malformed quantity.
    """
    admission = workload.status.admission
    if admission is None:
        return NOTHING
    if admission == known.written and all(one.count is not None for one in admission.pod_set_assignments):
        return known
    return of_record(workload, admission)


def of_record(workload: Workload, admission: Admission) -> Grant:
    """Return a reservation as it is written. Raises `amounts.QuantityError` on a malformed quantity."""
    counts = {pod_set.name: pod_set.count for pod_set in workload.spec.pod_sets}
    pod_sets = tuple(
        GrantedPodSet(
            name=one.name,
            flavors=one.flavors,
            usage={name: amounts.parse(quantity, name) for name, quantity in one.resource_usage.items()},
            count=one.count if one.count is not None else counts.get(one.name, 0),
        )
        for one in admission.pod_set_assignments
    )
    return Grant.of(admission, pod_sets)


def covers(grant: Grant, workload: Workload, transformations: tuple[Transformation, ...]) -> bool:
    """Return whether each pod set was granted what its pods request by their own spec, for as many as were granted.

    Compared is what no configuration decides, since that may have changed since: no defaults of the namespace, no
    resource that has no flavor, none that a transformation takes or yields. Raises `amounts.QuantityError`.
    """
    changed = {name for one in transformations for name in (one.input, *one.outputs)}
    granted = {one.name: one for one in grant.pod_sets}
    for pod_set in workload.spec.pod_sets:
        found = granted.get(pod_set.name)
        if found is None:
            return False
        for name, amount in pod_requests(pod_set.template.spec).items():
            compared = name in found.flavors and name not in changed
            if compared and min(amount * found.count, amounts.AMOUNT_MAX) > found.usage.get(name, 0):
                return False
    return True
