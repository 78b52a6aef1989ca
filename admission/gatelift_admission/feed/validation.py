"""What may be written on ClusterQueue, LocalQueue, ResourceFlavor, Cohort and Workload: rules as pure functions.

Each returns all errors of an object, as (field, rule and way out). The webhooks refuse with them what the schemas of
the CRDs let through. Whatever came in around both is harmless to the engine: quotas that cannot be read bring none.
Limits are Kueue's. Neighbour: `validation_workload`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from gatelift_admission.values.amounts import QuantityError, nano, parse
from gatelift_kube.objects.core import Quantity
from gatelift_kube.objects.kueue import (
    ClusterQueue,
    ClusterQueueSpec,
    Cohort,
    FairSharing,
    FlavorQuotas,
    FlavorResource,
    LocalQueue,
    ResourceFlavor,
    ResourceGroup,
)

GROUPS_MAX: Final = 16
GROUP_RESOURCES_MAX: Final = 64
GROUP_FLAVORS_MAX: Final = 64
FLAVORS_MAX: Final = 256
RESOURCES_MAX: Final = 256
GROUP_CELLS_MAX: Final = 512
CHECKS_MAX: Final = 64
FLAVOR_LABELS_MAX: Final = 8
FLAVOR_TAINTS_MAX: Final = 8
FLAVOR_TOLERATIONS_MAX: Final = 8
NAME_MAX: Final = 253

_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_STRATEGIES: Final = ("StrictFIFO", "BestEffortFIFO")
_STOP: Final = (None, "None", "Hold", "HoldAndDrain")
_FUNGIBILITY: Final = ("MayStopSearch", "TryNextFlavor")
_PREFERENCES: Final = (None, "BorrowingOverPreemption", "PreemptionOverBorrowing")
_WITHIN: Final = ("Never", "LowerPriority", "LowerOrNewerEqualPriority")
_RECLAIM: Final = ("Never", "LowerPriority", "Any")
_BORROW: Final = ("Never", "LowerPriority")
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_OPERATORS: Final = ("", "Equal", "Exists")


@dataclass(frozen=True, slots=True, order=True)
class InvalidField:
    """One thing wrong with an object: the path of the field, and the rule with the way out."""

    field: str
    rule: str

    def __str__(self) -> str:
        return f"{self.field}: {self.rule}"


def cluster_queue_errors(queue: ClusterQueue) -> list[InvalidField]:
    """Return what is wrong with a ClusterQueue."""
    spec = queue.spec
    errors = _one_of("spec.queueingStrategy", spec.queueing_strategy, _STRATEGIES)
    errors += _one_of("spec.stopPolicy", spec.stop_policy, _STOP)
    if spec.cohort_name:
        errors += name_errors("spec.cohortName", spec.cohort_name)
    errors += _group_errors(spec.resource_groups, has_parent=bool(spec.cohort_name), may_lend_more=False)
    return errors + _policy_errors(spec) + _check_errors(spec) + _weight_errors(spec.fair_sharing)


def cohort_errors(cohort: Cohort) -> list[InvalidField]:
    """Return what is wrong with a Cohort; unlike a queue it may lend more than its own nominal quota."""
    spec = cohort.spec
    errors = name_errors("spec.parentName", spec.parent_name) if spec.parent_name else []
    if spec.parent_name and spec.parent_name == cohort.metadata.name:
        errors.append(InvalidField("spec.parentName", "a cohort cannot be its own parent: name another one or none"))
    errors += _group_errors(spec.resource_groups, has_parent=bool(spec.parent_name), may_lend_more=True)
    return errors + _weight_errors(spec.fair_sharing)


def local_queue_errors(queue: LocalQueue, old: LocalQueue | None = None) -> list[InvalidField]:
    """Return what is wrong with a LocalQueue, or with its change from `old`."""
    spec = queue.spec
    errors = name_errors("spec.clusterQueue", spec.cluster_queue) + _one_of("spec.stopPolicy", spec.stop_policy, _STOP)
    if old is not None and old.spec.cluster_queue != spec.cluster_queue:
        errors.append(InvalidField("spec.clusterQueue", "field is immutable: delete the LocalQueue and create it anew"))
    return errors


def resource_flavor_errors(flavor: ResourceFlavor) -> list[InvalidField]:
    """Return what is wrong with a ResourceFlavor."""
    spec = flavor.spec
    errors = _at_most("spec.nodeLabels", len(spec.node_labels), FLAVOR_LABELS_MAX)
    errors += _at_most("spec.nodeTaints", len(spec.node_taints), FLAVOR_TAINTS_MAX)
    errors += _at_most("spec.tolerations", len(spec.tolerations), FLAVOR_TOLERATIONS_MAX)
    for index, taint in enumerate(spec.node_taints):
        errors += _one_of(f"spec.nodeTaints[{index}].effect", taint.effect, _EFFECTS)
        if not taint.key:
            errors.append(InvalidField(f"spec.nodeTaints[{index}].key", "is required: name the taint's key"))
    pairs = [f"{taint.key}:{taint.effect}" for taint in spec.node_taints]
    errors += _unique("spec.nodeTaints", pairs, "taint (key and effect)")
    for index, toleration in enumerate(spec.tolerations):
        where = f"spec.tolerations[{index}]"
        errors += _one_of(f"{where}.operator", toleration.operator, _OPERATORS)
        errors += _one_of(f"{where}.effect", toleration.effect, ("", *_EFFECTS))
        if not toleration.key and toleration.operator != "Exists":
            errors.append(InvalidField(f"{where}.operator", "must be Exists when key is empty: set it, or name a key"))
        if toleration.operator == "Exists" and toleration.value:
            errors.append(InvalidField(f"{where}.value", "must be empty when operator is Exists: drop it"))
    return errors


def name_errors(field: str, name: str) -> list[InvalidField]:
    """Return what is wrong with the name of an object that `field` refers to."""
    if len(name) <= NAME_MAX and _NAME.fullmatch(name):
        return []
    rule = (
        f"{name[:64]!r} is no object name: use lower case letters, digits, '-' and '.', at most {NAME_MAX} characters"
    )
    return [InvalidField(field, rule)]


def quantity_errors(field: str, quantity: Quantity | None, resource: str) -> list[InvalidField]:
    """Return what is wrong with an optional quantity that must not be negative."""
    if quantity is None:
        return []
    try:
        amount = parse(quantity, resource)
    except QuantityError as error:
        return [InvalidField(field, str(error))]
    return [InvalidField(field, f"{quantity} is negative: write 0 or more")] if amount < 0 else []


def _one_of(field: str, value: str | None, allowed: tuple[str | None, ...]) -> list[InvalidField]:
    if value in allowed:
        return []
    named = ", ".join(one for one in allowed if one)
    return [InvalidField(field, f"{value!r} is not supported: use one of {named}")]


def _at_most(field: str, count: int, most: int) -> list[InvalidField]:
    return [InvalidField(field, f"has {count} items, at most {most} are allowed: remove some")] if count > most else []


def _unique(field: str, names: Iterable[str], what: str) -> list[InvalidField]:
    listed = list(names)
    twice = sorted({name for name in listed if listed.count(name) > 1})
    return [InvalidField(field, f"{what} {name!r} appears more than once: keep one") for name in twice]


def _group_errors(groups: tuple[ResourceGroup, ...], *, has_parent: bool, may_lend_more: bool) -> list[InvalidField]:
    where = "spec.resourceGroups"
    errors = _at_most(where, len(groups), GROUPS_MAX)
    flavors = [flavor.name for group in groups for flavor in group.flavors]
    resources = [name for group in groups for name in group.covered_resources]
    errors += _at_most(f"{where}[*].flavors", len(flavors), FLAVORS_MAX)
    errors += _at_most(f"{where}[*].coveredResources", len(resources), RESOURCES_MAX)
    errors += _unique(f"{where}[*].coveredResources", resources, "resource")
    errors += _unique(f"{where}[*].flavors", flavors, "flavor")
    for index, group in enumerate(groups):
        at = f"{where}[{index}]"
        errors += _at_most(f"{at}.coveredResources", len(group.covered_resources), GROUP_RESOURCES_MAX)
        errors += _at_most(f"{at}.flavors", len(group.flavors), GROUP_FLAVORS_MAX)
        errors += _at_most(
            f"{at}.flavors[*].resources", len(group.covered_resources) * len(group.flavors), GROUP_CELLS_MAX
        )
        for number, flavor in enumerate(group.flavors):
            errors += _flavor_errors(f"{at}.flavors[{number}]", flavor, group, has_parent, may_lend_more)
    return errors


def _flavor_errors(
    at: str, flavor: FlavorQuotas, group: ResourceGroup, has_parent: bool, may_lend_more: bool
) -> list[InvalidField]:
    errors = name_errors(f"{at}.name", flavor.name)
    names = tuple(one.name for one in flavor.resources)
    if names != group.covered_resources:
        rule = f"must list the covered resources in their order: {', '.join(group.covered_resources)}"
        errors.append(InvalidField(f"{at}.resources", rule))
    for index, one in enumerate(flavor.resources):
        errors += _cell_errors(f"{at}.resources[{index}]", one, has_parent, may_lend_more)
    return errors


def _cell_errors(at: str, one: FlavorResource, has_parent: bool, may_lend_more: bool) -> list[InvalidField]:
    errors = quantity_errors(f"{at}.nominalQuota", one.nominal_quota, one.name)
    errors += quantity_errors(f"{at}.borrowingLimit", one.borrowing_limit, one.name)
    errors += quantity_errors(f"{at}.lendingLimit", one.lending_limit, one.name)
    for field, limit in (("borrowingLimit", one.borrowing_limit), ("lendingLimit", one.lending_limit)):
        if limit is not None and not has_parent:
            errors.append(InvalidField(f"{at}.{field}", "needs a cohort: name one, or drop the limit"))
    if errors or one.lending_limit is None or may_lend_more:
        return errors
    if parse(one.lending_limit, one.name) > parse(one.nominal_quota, one.name):
        rule = f"must be at most nominalQuota ({one.nominal_quota}): lower it, or raise the quota"
        errors.append(InvalidField(f"{at}.lendingLimit", rule))
    return errors


def _policy_errors(spec: ClusterQueueSpec) -> list[InvalidField]:
    fungibility, preemption = spec.flavor_fungibility, spec.preemption
    at = "spec.flavorFungibility"
    errors = _one_of(f"{at}.whenCanBorrow", fungibility.when_can_borrow, _FUNGIBILITY)
    errors += _one_of(f"{at}.whenCanPreempt", fungibility.when_can_preempt, _FUNGIBILITY)
    errors += _one_of(f"{at}.preference", fungibility.preference, _PREFERENCES)
    both = (fungibility.when_can_borrow, fungibility.when_can_preempt)
    if fungibility.preference is not None and both != ("TryNextFlavor", "TryNextFlavor"):
        rule = "is only allowed if whenCanBorrow and whenCanPreempt are TryNextFlavor: set both, or drop it"
        errors.append(InvalidField(f"{at}.preference", rule))
    at = "spec.preemption"
    errors += _one_of(f"{at}.withinClusterQueue", preemption.within_cluster_queue, _WITHIN)
    errors += _one_of(f"{at}.reclaimWithinCohort", preemption.reclaim_within_cohort, _RECLAIM)
    errors += _one_of(f"{at}.borrowWithinCohort.policy", preemption.borrow_within_cohort.policy, _BORROW)
    if preemption.reclaim_within_cohort == "Never" and preemption.borrow_within_cohort.policy != "Never":
        rule = "must be Never while reclaimWithinCohort is Never: change one of them"
        errors.append(InvalidField(f"{at}.borrowWithinCohort.policy", rule))
    return errors


def _check_errors(spec: ClusterQueueSpec) -> list[InvalidField]:
    if spec.admission_checks_strategy is None:
        return []
    at = "spec.admissionChecksStrategy.admissionChecks"
    rules = spec.admission_checks_strategy.admission_checks
    known = {flavor.name for group in spec.resource_groups for flavor in group.flavors}
    errors = _at_most(at, len(rules), CHECKS_MAX) + _unique(at, (rule.name for rule in rules), "check")
    for index, rule in enumerate(rules):
        errors += name_errors(f"{at}[{index}].name", rule.name)
        errors += [
            InvalidField(
                f"{at}[{index}].onFlavors", f"{name!r} is no flavor of this ClusterQueue: add it, or drop it here"
            )
            for name in rule.on_flavors
            if name not in known
        ]
    return errors


def _weight_errors(fair: FairSharing | None) -> list[InvalidField]:
    """Return an error for a weight between 0 and one billionth, whose shares would not be finite."""
    if fair is None:
        return []
    errors = quantity_errors("spec.fairSharing.weight", fair.weight, "")
    if not errors and 0 < nano(fair.weight) <= 1:
        errors.append(InvalidField("spec.fairSharing.weight", "must be 0 or more than 1n: raise it"))
    return errors
