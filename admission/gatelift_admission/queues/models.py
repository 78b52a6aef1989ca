"""ClusterQueues and LocalQueues as the engine keeps them, and whether they admit (condition Active).

Pure functions from specs and what else exists to activity. Neighbours: `state` holds the models, `statuses` turns
them into the status that people see.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gatelift_admission import texts
from gatelift_admission.entries import checks
from gatelift_admission.flavors.catalogue import Catalogue
from gatelift_admission.queues.pending import PendingQueue
from gatelift_admission.quota.fairness import WEIGHT_ONE
from gatelift_admission.quota.nodes import Quota, TreeNodeSpec
from gatelift_admission.values.amounts import QuantityError, nano, parse
from gatelift_admission.values.model import Cell, cell_of
from gatelift_kube.objects.kueue import (
    AdmissionCheck,
    ClusterQueue,
    ClusterQueueSpec,
    Cohort,
    FairSharing,
    LocalQueue,
    ResourceFlavor,
    ResourceGroup,
)
from gatelift_kube.values.resources import ObjectKey

CYCLE_SHOWN_MAX = 8
"""Cohorts of a cycle that are named: each may be mended, and the text has to fit into a condition."""
NO_COHORTS: Mapping[str, Cohort] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Active:
    """The condition Active of a queue."""

    status: bool
    reason: str
    message: str


@dataclass(slots=True, eq=False)
class QueueModel:
    """A ClusterQueue."""

    name: str
    object: ClusterQueue
    catalogue: Catalogue
    cells: frozenset[Cell]
    pending: PendingQueue
    active: Active
    cyclic: bool = False
    root: str = ""
    """Of its tree as built last."""

    @property
    def spec(self) -> ClusterQueueSpec:
        """Return its spec."""
        return self.object.spec

    @property
    def admits(self) -> bool:
        """Return whether the cycle takes heads of it."""
        return self.active.status and not self.cyclic


@dataclass(slots=True, eq=False)
class LocalModel:
    """A LocalQueue."""

    key: ObjectKey
    object: LocalQueue

    @property
    def stopped(self) -> bool:
        """Return whether it takes no new workloads."""
        return is_stopped(self.object.spec.stop_policy)


def is_stopped(policy: str | None) -> bool:
    """Return whether a stopPolicy other than None is set."""
    return policy not in {None, "", "None"}


def quotas(groups: tuple[ResourceGroup, ...]) -> dict[Cell, Quota]:
    """Return the quota cells of resource groups. Raises `amounts.QuantityError` on a malformed quantity."""
    return {
        cell_of(flavor.name, one.name): Quota(
            nominal=parse(one.nominal_quota, one.name),
            borrowing=None if one.borrowing_limit is None else parse(one.borrowing_limit, one.name),
            lending=None if one.lending_limit is None else parse(one.lending_limit, one.name),
        )
        for group in groups
        for flavor in group.flavors
        for one in flavor.resources
    }


def quota_error(groups: tuple[ResourceGroup, ...]) -> str:
    """Return why the quotas of resource groups cannot be read, empty if they can."""
    try:
        quotas(groups)
    except QuantityError as error:
        return str(error)
    return ""


def readable_quotas(groups: tuple[ResourceGroup, ...]) -> dict[Cell, Quota]:
    """Return the quota cells of resource groups, none if one of them cannot be read."""
    return {} if quota_error(groups) else quotas(groups)


def node_spec(queue: ClusterQueue) -> TreeNodeSpec:
    """Return the queue's place in the quota tree; one whose quotas cannot be read brings none."""
    spec = queue.spec
    return TreeNodeSpec(
        name=queue.metadata.name,
        parent=spec.cohort_name,
        quotas=readable_quotas(spec.resource_groups),
        weight=weight_of(spec.fair_sharing),
    )


def weight_of(fair: FairSharing | None) -> int:
    """Return a weight in billionths: one where none is set, or where it cannot be read (the webhook refuses that)."""
    if fair is None:
        return WEIGHT_ONE
    try:
        return nano(fair.weight)
    except QuantityError:
        return WEIGHT_ONE


def cohort_cycle(first: str, cohorts: Mapping[str, Cohort]) -> tuple[str, ...]:
    """Return the cohorts above a queue that are in a cycle, in order, () where there is none; `first`: its cohort."""
    above: dict[str, None] = {}
    name = first
    while name and name not in above:
        above[name] = None
        known = cohorts.get(name)
        name = known.spec.parent_name if known is not None else ""
    chain = tuple(above)
    return chain[chain.index(name) :] if name else ()


def cluster_queue_active(
    queue: ClusterQueue,
    flavors: Mapping[str, ResourceFlavor],
    known_checks: Mapping[str, AdmissionCheck],
    cohorts: Mapping[str, Cohort] = NO_COHORTS,
) -> Active:
    """Return the condition Active: the reason of the first problem, the texts of all.

    A queue below a cycle of cohorts admits nothing; Kueue has no reason for that, and shows it as active.
    """
    if queue.metadata.deletion_timestamp is not None:
        return Active(status=False, reason="Terminating", message=texts.CQ_TERMINATING)
    problems = []
    if is_stopped(queue.spec.stop_policy):
        problems.append(("Stopped", "is stopped"))
    names = [flavor.name for group in queue.spec.resource_groups for flavor in group.flavors]
    missing = sorted({name for name in names if name not in flavors})
    if missing:
        problems.append(("FlavorNotFound", f"references missing ResourceFlavor(s): {','.join(missing)}"))
    problems += _check_problems(queue.spec, known_checks)
    unreadable = quota_error(queue.spec.resource_groups)
    if unreadable:
        problems.append(("Unknown", unreadable))
    cycle = cohort_cycle(queue.spec.cohort_name, cohorts)
    if cycle:
        named = ",".join(cycle[:CYCLE_SHOWN_MAX]) + (",..." if len(cycle) > CYCLE_SHOWN_MAX else "")
        problems.append(("CohortCycle", f"is below a cycle of Cohorts, spec.parentName of which leads back: {named}"))
    if not problems:
        return Active(status=True, reason="Ready", message=texts.CQ_READY)
    listed = ", ".join(text for _, text in problems)
    return Active(status=False, reason=problems[0][0], message=f"Can't admit new workloads: {listed}.")


def _check_problems(spec: ClusterQueueSpec, known: Mapping[str, AdmissionCheck]) -> list[tuple[str, str]]:
    rules = checks.rules(spec)
    if not rules:
        return []
    missing = sorted(name for name in rules if name not in known)
    inactive = sorted(name for name in rules if name in known and not _check_active(known[name]))
    controllers = {name: known[name].spec.controller_name for name in sorted(rules) if name in known}
    dispatching = [name for name, controller in controllers.items() if controller == checks.MULTIKUEUE_CONTROLLER]
    provisioning = [name for name, controller in controllers.items() if controller == checks.PROVISIONING_CONTROLLER]
    per_flavor = [name for name in dispatching if rules[name]]
    found = []
    if missing:
        found.append(("AdmissionCheckNotFound", f"references missing AdmissionCheck(s): {','.join(missing)}"))
    if inactive:
        found.append(("AdmissionCheckInactive", f"references inactive AdmissionCheck(s): {','.join(inactive)}"))
    if len(dispatching) > 1:
        text = (
            f"Cannot use multiple MultiKueue AdmissionChecks on the same ClusterQueue, found: {','.join(dispatching)}"
        )
        found.append(("MultipleMultiKueueAdmissionChecks", text))
    if per_flavor:
        text = f"Cannot specify MultiKueue AdmissionCheck per flavor, found: {','.join(per_flavor)}"
        found.append(("MultiKueueAdmissionCheckAppliedPerFlavor", text))
    if dispatching and provisioning:
        text = (
            "Cannot use both MultiKueue and ProvisioningRequest AdmissionChecks together, found: "
            f"{','.join(dispatching)}, {','.join(provisioning)}"
        )
        found.append(("MultiKueueWithProvisioningRequest", text))
    return found


def _check_active(check: AdmissionCheck) -> bool:
    return any(one.type == "Active" and one.status == "True" for one in check.status.conditions)


def local_queue_active(queue: LocalQueue, cluster_queue: Active | None) -> Active:
    """Return the condition Active of a LocalQueue. `cluster_queue`: that of its ClusterQueue, None where none is."""
    if is_stopped(queue.spec.stop_policy):
        return Active(status=False, reason="Stopped", message=texts.LQ_STOPPED)
    if cluster_queue is None:
        return Active(status=False, reason="ClusterQueueDoesNotExist", message=texts.LQ_NO_CLUSTER_QUEUE)
    if not cluster_queue.status:
        return Active(status=False, reason="ClusterQueueIsInactive", message=texts.LQ_NO_CLUSTER_QUEUE)
    return Active(status=True, reason="Ready", message=texts.LQ_READY)
