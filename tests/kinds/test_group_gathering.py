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


def role_of(workload: Workload) -> str:
    return workload.spec.pod_sets[0].name


def become(group: GatheredPods, workload: Workload, **phases: str) -> None:
    """Have pods be let go, and be in a phase; "" still waits, "gone" is not there any more."""
    for name, phase in phases.items():
        if phase == "gone":
            group.drop(f"uid-{name}")
        elif phase:
            put(group, lifted(name, phase, notes={f"{K}role-hash": role_of(workload)}))


@pytest.mark.parametrize(
    ("phases", "granted", "over"),
    [
        ({"a": "Succeeded", "b": "Running", "c": "Running"}, 3, 1),
        ({"a": "Succeeded", "b": "Failed", "c": "Running"}, 3, 1),
        ({"a": "Succeeded", "b": "Running", "c": "Running"}, 2, 1),
        ({"a": "Succeeded", "b": "Succeeded", "c": "Running"}, 2, 2),
        ({"a": "Succeeded"}, None, 1),
        ({"a": "Failed", "b": "Failed", "c": "Failed"}, 3, 0),
    ],
)
def test_re_10_who_succeeded_is_counted_from_what_was_asked_for(
    phases: dict[str, str], granted: int | None, over: int
) -> None:
    group = a_group(*three())
    workload = its_workload(group)
    become(group, workload, **phases)
    record = {role_of(workload): granted} if granted is not None else {}
    assert group.over(workload, record) == ({role_of(workload): over} if over else {})


def test_re_10_what_may_run_is_charged_whatever_a_workload_says_that_it_asks_for() -> None:
    """Whoever may edit it around the policy makes it ask for fewer: two run by a grant of two, and one succeeded."""
    group = a_group(*three())
    workload = its_workload(group)
    become(group, workload, a="Succeeded", b="Running", c="Running")
    lowered = msgspec.structs.replace(workload.spec.pod_sets[0], count=2)
    tampered = msgspec.structs.replace(workload, spec=msgspec.structs.replace(workload.spec, pod_sets=(lowered,)))
    assert group.over(tampered, {role_of(workload): 2}) == {}


def test_re_10_a_group_that_serves_gives_nothing_back() -> None:
    serves = {f"{K}pod-group-serving": "true"}
    group = a_group(*(a_pod(name, notes=serves) for name in "abc"))
    workload = its_workload(group)
    put(group, lifted("a", "Succeeded", notes=serves | {f"{K}role-hash": role_of(workload)}))
    assert group.over(workload, {role_of(workload): 3}) == {}


@pytest.mark.parametrize(("granted", "names"), [(2, "bc"), (1, "b"), (3, "bc"), (0, "")])
def test_what_was_granted_is_let_go_and_who_succeeded_before_was_not_granted_again(granted: int, names: str) -> None:
    group = a_group(*three())
    workload = its_workload(group)
    become(group, workload, a="Succeeded")
    parts = group.parts(workload, {role_of(workload): granted})
    assert [one.called.name for one in parts] == list(names)


LEFT = [
    ("nobody is over", {}, {}, 0),
    ("one is over", {}, {"a": "Failed"}, 1),
    ("one succeeded, and one failed", {}, {"a": "Failed", "b": "Succeeded"}, 2),
    ("one had failed before", {"a": "Failed"}, {}, 0),
    ("one had failed before, and another is over", {"a": "Failed"}, {"b": "Failed"}, 1),
    ("one vanished: its node may run it", {}, {"a": "gone"}, 0),
    ("who waits was perhaps let go by now", {"a": ""}, {"b": "Failed"}, 1),
]


@pytest.mark.parametrize(("before", "then", "left"), [pytest.param(*row[1:], id=f"QR-7 {row[0]}") for row in LEFT])
def test_qr_7_who_is_over_since_the_end_began(before: dict[str, str], then: dict[str, str], left: int) -> None:
    group = a_group(*three())
    workload = its_workload(group)
    become(group, workload, **{"a": "Running", "b": "Running", "c": "Running", **before})
    granted = {role_of(workload): 3}
    assert group.left(workload, granted, 1) == {}
    become(group, workload, **then)
    assert group.left(workload, granted, 1) == ({role_of(workload): left} if left else {})


def test_qr_7_who_comes_while_it_stops_is_let_go_in_no_epoch_before_the_next() -> None:
    group = a_group(*three())
    workload = its_workload(group)
    become(group, workload, a="Running", b="Running", c="Running")
    granted = {role_of(workload): 3}
    group.left(workload, granted, 1)
    for name in "def":
        put(group, a_pod(name))
    become(group, workload, a="Failed", b="Failed")
    assert group.left(workload, granted, 1) == {role_of(workload): 2}
