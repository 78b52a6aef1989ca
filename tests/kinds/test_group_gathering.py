"""What is asked of all pods of a group together, and of a Workload of theirs."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from gatelift_kinds.pod_group.gathering import GatheredPods
from gatelift_kinds.shared.values import Priority
from gatelift_kube.objects.kueue import Workload, WorkloadStatus
from gatelift_kube.objects.meta import Condition
from support.kinds.groups import K, a_pod, typed

WAITING = "WaitingForReplacementPods"
EVICTED = Condition(type="Evicted", status="True", reason="Preempted", message="why")


def a_group(*pods: dict[str, Any]) -> GatheredPods:
    group = GatheredPods("ns", "g", lambda _: True)
    for each in pods:
        put(group, each)
    return group


def put(group: GatheredPods, pod: dict[str, Any]) -> None:
    group.put(typed(pod), msgspec.json.encode(pod))


def lifted(name: str, phase: str = "Running", **more: Any) -> dict[str, Any]:
    """Return a pod that was let go, with what its flavor added."""
    return a_pod(name, status={"phase": phase}, schedulingGates=[], nodeName="n", nodeSelector={"disk": "ssd"}, **more)


def its_workload(group: GatheredPods, *conditions: Condition) -> Workload:
    found = msgspec.json.decode(group.workload_document(Priority(value=0)), type=Workload)
    return msgspec.structs.replace(found, status=WorkloadStatus(conditions=conditions))


def three() -> list[dict[str, Any]]:
    return [a_pod(name) for name in "abc"]


def said(status: str) -> Condition:
    return Condition(type=WAITING, status=status, reason="PodsFailed", message="m")


@pytest.mark.parametrize(
    ("conditions", "waits"),
    [((), False), ((said("True"),), True), ((said("False"),), False), ((EVICTED,), False)],
    ids=["nothing is said", "it says so still", "it says that it does not", "evicted, and all are there"],
)
def test_pg_16_a_group_waits_while_its_workload_says_so(conditions: tuple[Condition, ...], waits: bool) -> None:
    group = a_group(*three())
    assert group.waits(its_workload(group, *conditions)) is waits


def test_pg_16_a_group_waits_while_a_member_is_missing_whatever_its_workload_says() -> None:
    group = a_group(*three())
    workload = its_workload(group, said("False"))
    put(group, lifted("b", "Failed"))
    assert group.waits(workload)
    found = group.waiting_condition(workload)
    assert found is not None
    assert (found.status, found.reason) == ("True", "PodsFailed")


def test_what_is_leaving_is_missing_once_it_is_evicted() -> None:
    group = a_group(*three())
    workloads = its_workload(group), its_workload(group, EVICTED)
    pod = lifted("b", notes={f"{K}role-hash": workloads[0].spec.pod_sets[0].name})
    pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:05Z"
    put(group, pod)
    assert [group.waits(each) for each in workloads] == [False, True]


def test_hd_305_a_pod_that_was_let_go_is_no_template_while_another_of_its_role_waits() -> None:
    group = a_group(*three())
    before = its_workload(group)
    note = {f"{K}role-hash": before.spec.pod_sets[0].name}
    put(group, lifted("a", "Succeeded", notes=note))
    assert group.matches(before)
    assert its_workload(group).spec.pod_sets == before.spec.pod_sets


def test_hd_305_a_role_of_which_all_have_succeeded_asks_for_what_it_did() -> None:
    group = a_group(*three())
    before = its_workload(group)
    note = {f"{K}role-hash": before.spec.pod_sets[0].name}
    for name in "abc":
        put(group, lifted(name, "Succeeded", notes=note))
    assert (group.asks_for(before), group.matches(before)) == (True, True)


def test_hd_305_of_a_group_that_was_admitted_by_its_first_pod_the_template_is_one_that_waits() -> None:
    fast = {f"{K}pod-group-fast-admission": "true"}
    group = a_group(a_pod("a", notes=fast))
    before = its_workload(group)
    put(group, lifted("a", "Succeeded", notes=fast | {f"{K}role-hash": before.spec.pod_sets[0].name}))
    put(group, a_pod("b", notes=fast))
    assert its_workload(group).spec.pod_sets == before.spec.pod_sets
