"""What the engine is asked about workloads and queues, and answers from what it knows. Nothing of that changes by it.

Neighbours: `engine` is asked all of it, `statuses` works out figures, `explain` says what one workload lacks.
"""

from __future__ import annotations

from collections.abc import Mapping

from gatelift_admission.demand import grants
from gatelift_admission.demand.growth import beside
from gatelift_admission.entries.entry import Entry, Phase
from gatelift_admission.state.known import State
from gatelift_admission.told import elsewhere, explain, statuses
from gatelift_admission.told.explain import Explanation
from gatelift_admission.told.statuses import QueueFigures
from gatelift_admission.values.amounts import QuantityError, to_quantity
from gatelift_admission.values.model import Amounts, Usage
from gatelift_kube.objects.kueue import PodSetResources
from gatelift_kube.values.resources import ObjectKey


class EngineAnswers:
    """What can be asked of the engine. `state` is all that it knows."""

    __slots__ = ("state",)

    def __init__(self, state: State) -> None:
        """Answer from this state."""
        self.state = state

    def charged(self, uid: str) -> dict[tuple[str, str], int]:
        """Return what a workload is charged now, by (flavor, resource)."""
        entry = self.state.entries.get(uid)
        return dict(entry.charged) if entry is not None else {}

    def usage_of(self, uid: str, counts: Mapping[str, int]) -> Usage:
        """Return what so many of the granted pods of a workload ask for, charged or not; nothing without a grant."""
        entry = self.state.entries.get(uid)
        return entry.grant.of_pods(counts) if entry is not None else {}

    def of_one_pod(self, uid: str) -> dict[str, Amounts]:
        """Return what one pod of each pod set of a workload requests now, by its object; nothing where that is unknown.

        Of a pod set that was granted no pods its reservation does not tell it.
        """
        entry: Entry | None = self.state.entries.get(uid)
        if entry is None:
            return {}
        reading = self.state.reader.read(entry.workload, self.state.namespace_defaults(entry.key.namespace))
        return {one.name: one.per_pod for one in reading.pod_sets}

    def record_of(self, chain: str) -> str:
        """Return the UID of the slice that holds the charge of a chain, "" where none does."""
        found = self.state.chains.record(chain)
        return found.uid if found is not None else ""

    def charged_queue(self, uid: str) -> str:
        """Return in which ClusterQueue a workload is charged now, "" for none."""
        entry: Entry | None = self.state.entries.get(uid)
        return entry.charged_queue if entry is not None else ""

    def is_adrift(self, uid: str) -> bool:
        """Say whether a workload runs beside its record and nobody can tell in which ClusterQueue it was charged."""
        return uid in self.state.adrift

    def phase(self, uid: str) -> Phase | None:
        """Return where a workload stands, None if it is not known."""
        entry: Entry | None = self.state.entries.get(uid)
        return entry.phase if entry is not None else None

    def cluster_queue_status(self, name: str) -> QueueFigures | None:
        """Return the status of a ClusterQueue without times, None if there is none of that name."""
        return statuses.cluster_queue_status(self.state, name)

    def local_queue_status(self, key: ObjectKey) -> QueueFigures | None:
        """Return the status of a LocalQueue without times, None if there is none of that key."""
        return statuses.local_queue_status(self.state, key)

    def queue_is_used(self, name: str) -> bool:
        """Say whether anything is reserved or charged in a ClusterQueue, which need not exist as an object."""
        return statuses.queue_is_used(self.state, name)

    def flavor_is_used(self, name: str) -> bool:
        """Say whether a ClusterQueue names a ResourceFlavor, or anything is charged in it."""
        return statuses.flavor_is_used(self.state, name)

    def charged_in(self, name: str) -> str | None:
        """Return in which cohorts a ClusterQueue is charged, as `debts.CHARGED_IN` on it says so, "" for none.

        None while what it says of that itself could not be taken (`Engine.recall`): it is to go on saying so.
        """
        return None if self.state.debts.unrecalled else self.state.debts.charged_in(self.state.ensure(), name)

    def cohort_share(self, name: str) -> int | None:
        """Return the weighted share of a cohort; None where there is no fair sharing or no cohort of that name."""
        return statuses.cohort_share(self.state, name)

    def pending_split(self, cluster_queue: str) -> tuple[int, int]:
        """Return how many of a ClusterQueue's pending workloads are active and how many are inadmissible."""
        return statuses.pending_split(self.state, cluster_queue)

    def idle_by_local_queue(self) -> dict[ObjectKey, int]:
        """Return how many of each LocalQueue's pending workloads are inadmissible, 0 where it is not named."""
        return statuses.idle_by_local_queue(self.state)

    def most(self, name: str) -> Usage:
        """Return what a ClusterQueue could ever have of each flavor and resource; nothing if there is none."""
        return statuses.most(self.state, name)

    def fits_elsewhere_alone(self, uid: str) -> bool:
        """Return whether a slice that grows its chain never can in the flavors of that, and all of it could in others.

        In those others as things are now: whoever gives up what runs for it is to know where it goes.
        """
        return elsewhere.fits_elsewhere_alone(self.state, uid)

    def covers(self, uid: str) -> bool:
        """Return whether what is reserved for a workload is enough for what its pods request by its object now.

        False where somebody changed what it asks for beside a reservation; True for what holds none.
        """
        entry = self.state.entries.get(uid)
        if entry is None or not entry.grant.pod_sets:
            return True
        try:
            return grants.covers(entry.grant, entry.workload, self.state.settings.transformations)
        except QuantityError:
            return True  # nothing can be made of a template whose quantities cannot be read

    def requests(self, uid: str) -> tuple[PodSetResources, ...]:
        """Return what a waiting workload was considered for: all counted pods of each pod set, canonical quantities.

        Of a slice that grows its chain it is what that is not charged already.
        """
        entry = self.state.entries.get(uid)
        if entry is None or not entry.queue:
            return ()
        held = self.state.chains.held(entry) or {}
        asked = [(one.name, beside(one.totals(), held.get(one.name))) for one in entry.pod_sets]
        return tuple(
            PodSetResources(name, {resource: to_quantity(amount, resource) for resource, amount in found.items()})
            for name, found in asked
        )

    def explain(self, uid: str) -> Explanation | None:
        """Return where a workload stands and what it lacks now, None if it is not known."""
        return explain.explain(self.state, uid)
