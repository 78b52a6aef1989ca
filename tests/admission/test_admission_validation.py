"""Validation: each rule with the field it names; what is right passes."""

from __future__ import annotations

import msgspec
import pytest

from gatelift_admission.feed.validation import (
    InvalidField,
    cluster_queue_errors,
    cohort_errors,
    local_queue_errors,
    resource_flavor_errors,
)
from gatelift_admission.feed.validation_workload import elastic_errors, workload_change_errors, workload_errors
from gatelift_kube.objects.core import Taint, Toleration
from gatelift_kube.objects.kueue import (
    Admission,
    AdmissionCheckRule,
    AdmissionChecksStrategy,
    AdmissionCheckState,
    BorrowWithinCohort,
    ClusterQueue,
    Cohort,
    CohortSpec,
    FairSharing,
    FlavorFungibility,
    FlavorQuotas,
    FlavorResource,
    PodSetAssignment,
    PodSetUpdate,
    Preemption,
    PriorityClassRef,
    ReclaimablePod,
    ResourceGroup,
    Workload,
    WorkloadStatus,
)
from gatelift_kube.objects.meta import Condition, ObjectMeta
from support.twin.admission_objects import cluster_queue, flavor, group, local_queue, pod_set, reserved_status, workload


def fields(errors: list[InvalidField]) -> list[str]:
    return [error.field for error in errors]


def cell(*quotas: FlavorResource, **spec: object) -> ClusterQueue:
    resources = tuple(one.name for one in quotas)
    return cluster_queue("cq", ResourceGroup(resources, (FlavorQuotas("f", quotas),)), **spec)


GROUPS = "spec.resourceGroups"
CELL = f"{GROUPS}[0].flavors[0].resources[0]"
CHECKS = "spec.admissionChecksStrategy.admissionChecks"


def checks(*rules: AdmissionCheckRule) -> ClusterQueue:
    return cluster_queue("cq", group(f={"cpu": 1}), admission_checks_strategy=AdmissionChecksStrategy(rules))


@pytest.mark.parametrize(
    ("queue", "field"),
    [
        (cluster_queue("cq", queueing_strategy="Fifo"), "spec.queueingStrategy"),
        (cluster_queue("cq", stop_policy="Stop"), "spec.stopPolicy"),
        (cluster_queue("cq", cohort_name="Team A"), "spec.cohortName"),
        (cell(FlavorResource("cpu", "-1")), f"{CELL}.nominalQuota"),
        (cell(FlavorResource("cpu", "1x")), f"{CELL}.nominalQuota"),
        (cell(FlavorResource("cpu", 1, borrowing_limit=1)), f"{CELL}.borrowingLimit"),
        (cell(FlavorResource("cpu", 1, lending_limit=1)), f"{CELL}.lendingLimit"),
        (cell(FlavorResource("cpu", 1, lending_limit=2), cohort_name="team"), f"{CELL}.lendingLimit"),
        (cluster_queue("cq", group(f={"cpu": 1}), group(g={"cpu": 1})), f"{GROUPS}[*].coveredResources"),
        (cluster_queue("cq", group(f={"cpu": 1}), group(f={"gpu": 1})), f"{GROUPS}[*].flavors"),
        (
            cluster_queue("cq", ResourceGroup(("cpu", "gpu"), group(f={"gpu": 1, "cpu": 1}).flavors)),
            f"{GROUPS}[0].flavors[0].resources",
        ),
        (cluster_queue("cq", *(group(**{f"f{n}": {f"r{n}": 1}}) for n in range(17))), GROUPS),
        (cluster_queue("cq", group(**{f"f{n}": {"cpu": 1} for n in range(65)})), f"{GROUPS}[0].flavors"),
        (
            cluster_queue("cq", flavor_fungibility=FlavorFungibility(preference="BorrowingOverPreemption")),
            "spec.flavorFungibility.preference",
        ),
        (
            cluster_queue("cq", preemption=Preemption(borrow_within_cohort=BorrowWithinCohort("LowerPriority"))),
            "spec.preemption.borrowWithinCohort.policy",
        ),
        (cluster_queue("cq", preemption=Preemption("Always")), "spec.preemption.withinClusterQueue"),
        (checks(AdmissionCheckRule("c", ("other",))), f"{CHECKS}[0].onFlavors"),
        (checks(AdmissionCheckRule("c"), AdmissionCheckRule("c")), CHECKS),
        (cluster_queue("cq", fair_sharing=FairSharing("1n")), "spec.fairSharing.weight"),
        (cluster_queue("cq", fair_sharing=FairSharing("-1")), "spec.fairSharing.weight"),
    ],
)
def test_a_cluster_queue_that_breaks_a_rule_is_told_which_field(queue: ClusterQueue, field: str) -> None:
    assert fields(cluster_queue_errors(queue)) == [field]


def test_a_cluster_queue_within_the_rules_passes() -> None:
    full = cell(FlavorResource("cpu", 4, 2, 3), FlavorResource("gpu", 0), cohort_name="team", stop_policy="Hold")
    assert cluster_queue_errors(full) == []
    assert cluster_queue_errors(cluster_queue("cq", fair_sharing=FairSharing(0))) == []


def test_a_cohort_may_lend_more_than_its_own_quota_but_not_be_its_own_parent() -> None:
    lending = ResourceGroup(("cpu",), (FlavorQuotas("f", (FlavorResource("cpu", 1, None, 5),)),))
    assert cohort_errors(Cohort(ObjectMeta(name="a"), CohortSpec("b", (lending,)))) == []
    assert fields(cohort_errors(Cohort(ObjectMeta(name="a"), CohortSpec("", (lending,))))) == [f"{CELL}.lendingLimit"]
    assert fields(cohort_errors(Cohort(ObjectMeta(name="a"), CohortSpec("a")))) == ["spec.parentName"]


def test_a_local_queue_keeps_its_cluster_queue() -> None:
    assert local_queue_errors(local_queue("lq", "cq")) == []
    assert fields(local_queue_errors(local_queue("lq", "b"), local_queue("lq", "a"))) == ["spec.clusterQueue"]
    assert fields(local_queue_errors(local_queue("lq", "b", stop="x"))) == ["spec.stopPolicy"]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"node_labels": {f"k{n}": "" for n in range(9)}}, "spec.nodeLabels"),
        ({"node_taints": (Taint("a", "NoSchedule"), Taint("a", "NoSchedule", "x"))}, "spec.nodeTaints"),
        ({"node_taints": (Taint("a", "Never"),)}, "spec.nodeTaints[0].effect"),
        ({"node_taints": (Taint("", "NoSchedule"),)}, "spec.nodeTaints[0].key"),
        ({"tolerations": (Toleration("a", "Like"),)}, "spec.tolerations[0].operator"),
        ({"tolerations": (Toleration("", "Equal"),)}, "spec.tolerations[0].operator"),
        ({"tolerations": (Toleration("a", "Exists", "b"),)}, "spec.tolerations[0].value"),
    ],
)
def test_a_flavor_that_breaks_a_rule_is_told_which_field(spec: dict[str, object], field: str) -> None:
    assert fields(resource_flavor_errors(flavor("f", **spec))) == [field]


def test_two_taints_of_one_key_and_different_effects_pass() -> None:
    taints = (Taint("a", "NoSchedule"), Taint("a", "NoExecute"))
    assert resource_flavor_errors(flavor("f", node_taints=taints, tolerations=(Toleration("", "Exists"),))) == []


SET = pod_set(count=3, requests={"cpu": "1"})
GRANTED = Admission("cq", (PodSetAssignment("main", {"cpu": "f"}, {"cpu": "3"}, 3),))


def granted(usage: str = "3", name: str = "main", count: int = 3) -> WorkloadStatus:
    return reserved_status(Admission("cq", (PodSetAssignment(name, {"cpu": "f"}, {"cpu": usage}, count),)))


@pytest.mark.parametrize(
    ("made", "field"),
    [
        (workload("a"), "spec.podSets"),
        (workload("a", *(pod_set(f"s{n}") for n in range(19))), "spec.podSets"),
        (workload("a", SET, SET), "spec.podSets"),
        (workload("a", pod_set(count=-1)), "spec.podSets[0].count"),
        (workload("a", msgspec.structs.replace(SET, min_count=4)), "spec.podSets[0].minCount"),
        (
            workload("a", *(msgspec.structs.replace(SET, name=name, min_count=1) for name in "ab")),
            "spec.podSets",
        ),
        (
            workload("a", pod_set(requests={"cpu": "-1"})),
            "spec.podSets[0].template.spec.containers[0].resources.requests[cpu]",
        ),
        (
            workload("a", pod_set(requests={"pods": "1"})),
            "spec.podSets[0].template.spec.containers[0].resources.requests[pods]",
        ),
        pytest.param(
            workload("a", SET, status=WorkloadStatus(reclaimable_pods=(ReclaimablePod("main", 4),))),
            "status.reclaimablePods[0].count",
            id="RP-043 more than the pod set has",
        ),
        (
            workload("a", SET, status=WorkloadStatus(reclaimable_pods=(ReclaimablePod("x", 1),))),
            "status.reclaimablePods[0].name",
        ),
        (
            workload("a", SET, status=WorkloadStatus(conditions=(Condition("QuotaReserved", "True"),))),
            "status.admission",
        ),
        (workload("a", SET, status=granted(usage="4m")), "status.admission.podSetAssignments[0].resourceUsage[cpu]"),
        (workload("a", SET, status=granted(usage="x")), "status.admission.podSetAssignments[0].resourceUsage[cpu]"),
        (workload("a", SET, status=granted(name="x")), "status.admission.podSetAssignments[0].name"),
        (
            workload(
                "a",
                SET,
                status=WorkloadStatus(
                    admission_checks=(AdmissionCheckState("c", pod_set_updates=(PodSetUpdate("x"),)),)
                ),
            ),
            "status.admissionChecks[0].podSetUpdates[0].name",
        ),
        pytest.param(
            workload("a", pod_set(pod_group="g" * 318)), "spec.podSets[0].topologyRequest.podSetGroupName", id="IS-31"
        ),
    ],
)
def test_a_workload_that_breaks_a_rule_is_told_which_field(made: Workload, field: str) -> None:
    assert fields(workload_errors(made)) == [field]


def test_sl_07_an_elastic_workload_is_not_admitted_in_part() -> None:
    """EJ-074; what is served asks about none."""
    notes = {"kueue.x-k8s.io/elastic-job": "true"}
    partly = pod_set(count=3, min_count=1)
    made = workload("a", partly, annotations=notes)
    assert fields(elastic_errors(made)) == ["spec.podSets[0].minCount"]
    assert elastic_errors(workload("a", partly)) == workload_errors(made) == []
    assert elastic_errors(workload("a", pod_set(count=3), annotations=notes)) == []


def test_a_workload_within_the_rules_passes() -> None:
    assert workload_errors(workload("a", SET, status=granted())) == []


BEFORE = workload("a", SET, status=granted())


def changed(**spec: object) -> Workload:
    return msgspec.structs.replace(BEFORE, spec=msgspec.structs.replace(BEFORE.spec, **spec))


def with_status(**status: object) -> Workload:
    return msgspec.structs.replace(BEFORE, status=msgspec.structs.replace(BEFORE.status, **status))


@pytest.mark.parametrize(
    ("new", "field"),
    [
        (changed(pod_sets=(pod_set(count=2),)), "spec.podSets"),
        (changed(queue_name="other"), "spec.queueName"),
        (changed(priority_class_ref=PriorityClassRef("g", "k", "n")), "spec.priorityClassRef"),
        (changed(maximum_execution_time_seconds=5), "spec.maximumExecutionTimeSeconds"),
        (with_status(admission=Admission("other", GRANTED.pod_set_assignments)), "status.admission"),
    ],
)
def test_what_is_fixed_while_quota_is_reserved_cannot_change(new: Workload, field: str) -> None:
    assert fields(workload_change_errors(new, BEFORE)) == [field]
    assert workload_change_errors(BEFORE, BEFORE) == []


def test_what_others_keep_in_an_admission_is_not_ours_to_judge() -> None:
    assignments = tuple(msgspec.structs.replace(one, more={"level": "rack"}) for one in GRANTED.pod_set_assignments)
    more = msgspec.structs.replace(GRANTED, more={"by": "another"}, pod_set_assignments=assignments)
    assert workload_change_errors(with_status(admission=more), BEFORE) == []
    assert workload_change_errors(BEFORE, with_status(admission=more)) == []


def test_reclaimable_counts_do_not_fall_while_quota_is_reserved() -> None:
    """RP-040, RP-041, RP-042: of what others write; our own accounts are not asked about."""
    some = with_status(reclaimable_pods=(ReclaimablePod("main", 2),))
    assert workload_change_errors(some, BEFORE) == []
    assert fields(workload_change_errors(BEFORE, some)) == ["status.reclaimablePods"]
    assert workload_change_errors(workload("a", SET), some) == []


def test_the_updates_of_a_ready_check_are_fixed() -> None:
    ready = with_status(admission_checks=(AdmissionCheckState("c", "Ready"),))
    more = with_status(admission_checks=(AdmissionCheckState("c", "Ready", pod_set_updates=(PodSetUpdate("main"),)),))
    assert fields(workload_change_errors(more, ready)) == ["status.admissionChecks[0].podSetUpdates"]


def test_a_cluster_is_chosen_once_and_from_those_nominated() -> None:
    nominated = with_status(nominated_cluster_names=("east", "west"))
    assert workload_change_errors(with_status(cluster_name="east"), nominated) == []
    assert fields(workload_change_errors(with_status(cluster_name="north"), nominated)) == ["status.clusterName"]
    both = with_status(cluster_name="east", nominated_cluster_names=("east",))
    assert fields(workload_change_errors(both, nominated)) == ["status"]
    east, west = with_status(cluster_name="east"), with_status(cluster_name="west")
    assert fields(workload_change_errors(west, east)) == ["status.clusterName"]


def test_an_error_reads_as_field_rule_and_way_out() -> None:
    (error,) = cluster_queue_errors(cluster_queue("cq", stop_policy="Stop"))
    assert str(error) == "spec.stopPolicy: 'Stop' is not supported: use one of None, Hold, HoldAndDrain"
