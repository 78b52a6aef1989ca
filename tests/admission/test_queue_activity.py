"""The condition Active of queues: the reason of the first problem, the texts of all, in Kueue's order and words."""

from __future__ import annotations

import pytest

from gatelift_admission.entries.checks import MULTIKUEUE_CONTROLLER, PROVISIONING_CONTROLLER
from gatelift_admission.queues.models import Active, cluster_queue_active
from gatelift_admission.values.model import Inadmissible
from gatelift_kube.objects.kueue import (
    AdmissionCheck,
    AdmissionCheckRule,
    AdmissionCheckSpec,
    AdmissionChecksStrategy,
    ClusterQueue,
    Cohort,
    CohortSpec,
    ConditionsStatus,
)
from gatelift_kube.objects.meta import Condition, ObjectMeta
from support.twin.admission_objects import (
    cluster_queue,
    flavor,
    group,
    local_queue,
    pod_set,
    reserved,
    rest,
    simple_engine,
)
from support.twin.admission_objects import workload as a_workload

GROUP = group(f={"cpu": 1})
FLAVORS = {"f": flavor("f")}


def check(name: str, controller: str = "example.com/x", *, active: bool = True) -> AdmissionCheck:
    condition = Condition("Active", "True" if active else "False")
    return AdmissionCheck(ObjectMeta(name=name), AdmissionCheckSpec(controller), ConditionsStatus((condition,)))


CHECKS = {
    one.metadata.name: one
    for one in (
        check("on"),
        check("off", active=False),
        check("mk1", MULTIKUEUE_CONTROLLER),
        check("mk2", MULTIKUEUE_CONTROLLER),
        check("prov", PROVISIONING_CONTROLLER),
    )
}


def requiring(*rules: AdmissionCheckRule, **spec: object) -> ClusterQueue:
    return cluster_queue("cq", GROUP, admission_checks_strategy=AdmissionChecksStrategy(rules), **spec)


def rules(*names: str) -> tuple[AdmissionCheckRule, ...]:
    return tuple(AdmissionCheckRule(name) for name in names)


@pytest.mark.parametrize(
    ("queue", "reason", "text"),
    [
        (cluster_queue("cq", GROUP, stop_policy="Hold"), "Stopped", "is stopped"),
        (
            cluster_queue("cq", group(z={"cpu": 1}, a={"cpu": 1}, f={"cpu": 1})),
            "FlavorNotFound",
            "references missing ResourceFlavor(s): a,z",
        ),
        (
            requiring(*rules("y", "on", "x")),
            "AdmissionCheckNotFound",
            "references missing AdmissionCheck(s): x,y",
        ),
        (requiring(*rules("on", "off")), "AdmissionCheckInactive", "references inactive AdmissionCheck(s): off"),
        (
            requiring(*rules("mk2", "on", "mk1")),
            "MultipleMultiKueueAdmissionChecks",
            "Cannot use multiple MultiKueue AdmissionChecks on the same ClusterQueue, found: mk1,mk2",
        ),
        (
            requiring(AdmissionCheckRule("mk1", ("f",))),
            "MultiKueueAdmissionCheckAppliedPerFlavor",
            "Cannot specify MultiKueue AdmissionCheck per flavor, found: mk1",
        ),
        (
            requiring(*rules("mk1", "prov")),
            "MultiKueueWithProvisioningRequest",
            "Cannot use both MultiKueue and ProvisioningRequest AdmissionChecks together, found: mk1, prov",
        ),
        (
            requiring(*rules("off", "x"), stop_policy="HoldAndDrain"),
            "Stopped",
            "is stopped, references missing AdmissionCheck(s): x, references inactive AdmissionCheck(s): off",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and " " not in value else "",
)
def test_a_cluster_queue_says_why_it_does_not_admit(queue: ClusterQueue, reason: str, text: str) -> None:
    wanted = Active(status=False, reason=reason, message=f"Can't admit new workloads: {text}.")
    assert cluster_queue_active(queue, FLAVORS, CHECKS) == wanted


def test_a_cluster_queue_without_a_problem_is_ready() -> None:
    wanted = Active(status=True, reason="Ready", message="Can admit new workloads")
    assert cluster_queue_active(requiring(*rules("on", "mk1")), FLAVORS, CHECKS) == wanted


def test_a_cluster_queue_that_is_being_deleted_says_only_that() -> None:
    meta = ObjectMeta(name="cq", deletion_timestamp="2026-01-01T00:00:00Z")
    queue = ClusterQueue(meta, cluster_queue("cq", GROUP, stop_policy="Hold").spec)
    message = "Can't admit new workloads; clusterQueue is terminating"
    assert cluster_queue_active(queue, {}, {}) == Active(status=False, reason="Terminating", message=message)


def test_queues_below_a_cycle_of_cohorts_admit_nothing_until_it_is_broken() -> None:
    engine = simple_engine(
        cluster_queue("below", group(default={"cpu": 1}), cohort_name="a"),
        local_queue("lq2", "below"),
        a_workload("w", pod_set(requests={"cpu": "1"}), queue="lq2"),
        a_workload("other", pod_set(requests={"cpu": "1"})),
    )
    engine.cohort_changed(Cohort(ObjectMeta(name="a"), CohortSpec("b")))
    engine.cohort_changed(Cohort(ObjectMeta(name="b"), CohortSpec("a")))
    decisions = rest(engine)
    assert reserved(decisions) == ["other"]
    said = [(one.uid, one.reason, one.message) for one in decisions if isinstance(one, Inadmissible)]
    assert said == [("w", "Suspended", "ClusterQueue below is inactive")]
    figures = engine.cluster_queue_status("below")
    assert figures is not None
    assert (figures.active.status, figures.active.reason) == (False, "CohortCycle"), "Kueue shows it as active"
    engine.cohort_changed(Cohort(ObjectMeta(name="b"), CohortSpec()))
    assert reserved(rest(engine, 1.0)) == ["w"]
    figures = engine.cluster_queue_status("below")
    assert figures is not None
    assert figures.active.status


def test_what_is_in_a_namespace_that_is_gone_is_not_admitted() -> None:
    engine = simple_engine(a_workload("w", pod_set(requests={"cpu": "1"})))
    engine.namespace_removed("ns")
    assert reserved(rest(engine)) == []
    engine.namespace_changed("ns", {})
    assert reserved(rest(engine, 1.0)) == ["w"]


# --- a cycle of cohorts ---


def parents(**above: str) -> dict[str, Cohort]:
    return {name: Cohort(ObjectMeta(name=name), CohortSpec(parent_name=parent)) for name, parent in above.items()}


CYCLES = [
    pytest.param(parents(a="a"), "a", id="its own parent"),
    pytest.param(parents(a="b", b="a"), "a,b", id="two"),
    pytest.param(parents(a="b", b="c", c="b"), "b,c", id="above it"),
    pytest.param(
        parents(a="n0", **{f"n{i}": f"n{(i + 1) % 9}" for i in range(9)}),
        "n0,n1,n2,n3,n4,n5,n6,n7,...",
        id="more than are named",
    ),
]


@pytest.mark.parametrize(("cohorts", "named"), CYCLES)
def test_hd_110_a_cluster_queue_below_a_cycle_of_cohorts_is_not_active_and_names_them(
    cohorts: dict[str, Cohort], named: str
) -> None:
    text = f"is below a cycle of Cohorts, spec.parentName of which leads back: {named}"
    wanted = Active(status=False, reason="CohortCycle", message=f"Can't admit new workloads: {text}.")
    assert cluster_queue_active(cluster_queue("cq", GROUP, cohort_name="a"), FLAVORS, CHECKS, cohorts) == wanted


@pytest.mark.parametrize("cohorts", [{}, parents(a="b"), parents(a="b", b=""), parents(b="c", c="b")])
def test_hd_110_one_that_is_below_none_is_ready(cohorts: dict[str, Cohort]) -> None:
    assert cluster_queue_active(cluster_queue("cq", GROUP, cohort_name="a"), FLAVORS, CHECKS, cohorts).status
