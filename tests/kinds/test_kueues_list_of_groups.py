"""Kueue's own scenarios of what it reads of a group's pods: PC-n and PU-n, by the reference's list.

Those that are missing here, or end otherwise, are in `docs/keps.md` with the reason.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from gatelift_kinds.pod_group.gathering import GatheredPods
from gatelift_kinds.registry import POD_GROUP_KIND, POD_KIND
from gatelift_kinds.shared.names import workload_name
from gatelift_kinds.shared.values import KindError, Priority
from gatelift_kube.objects.kueue import Workload
from support.kinds.groups import GROUP, TOTAL, K, typed
from support.kinds.groups import a_pod as served
from support.manager.webhook_documents import FACTS, GATED, Q, defaulted
from support.manager.webhook_documents import a_pod as a_new_pod

Json = dict[str, Any]
READY = {"type": "Ready", "status": "True"}


def a_pod(name: str, *, group: str = "g", total: int = 3, notes: Json | None = None, **more: Any) -> Json:
    found = served(name, notes={TOTAL: str(total), **(notes or {})}, **more)
    if not group:
        del found["metadata"]["labels"][GROUP]
    return found


def a_group(*pods: Json) -> GatheredPods:
    group = GatheredPods("ns", "g", lambda _: True)
    for each in pods:
        put(group, each)
    return group


def put(group: GatheredPods, pod: Json) -> None:
    group.put(typed(pod), msgspec.json.encode(pod))


def runs(name: str, phase: str = "Running", *, ready: bool = True, role: str = "r", **more: Any) -> Json:
    status = {"phase": phase, "conditions": [READY] if ready else []}
    return a_pod(name, notes={f"{K}role-hash": role}, status=status, schedulingGates=[], nodeName="n", **more)


def its_workload(*roles: str) -> Workload:
    pods = [a_pod(f"w{at}", total=len(roles), notes={f"{K}role-hash": each}) for at, each in enumerate(roles)]
    group = a_group(*pods)
    return msgspec.json.decode(group.workload_document(Priority(value=0)), type=Workload)


@pytest.mark.parametrize(
    ("conditions", "ready"), [([READY], True), ([], False)], ids=["PC-001 with the condition", "PC-002 without it"]
)
def test_a_single_pod_is_ready(conditions: list[Json], ready: bool) -> None:
    assert POD_KIND.pods_ready(typed(a_pod("p", status={"phase": "Running", "conditions": conditions}))) is ready


@pytest.mark.parametrize(
    ("pods", "ready"),
    [
        pytest.param([runs("a"), runs("b"), runs("c")], True, id="PC-003 three of three"),
        pytest.param([runs("a")], False, id="PC-004 one that is there"),
        pytest.param(
            [runs("a"), runs("b", ready=False), runs("c", "Pending", ready=False)], False, id="PC-005 one of three"
        ),
    ],
)
def test_a_group_is_ready(pods: list[Json], ready: bool) -> None:
    assert a_group(*pods).pods_ready(its_workload("r", "r", "r")) is ready


@pytest.mark.parametrize("total", [None, "x"], ids=["PC-006 absent", "PC-007 malformed"])
def test_of_a_group_whose_size_is_unknown_nothing_is_made(total: str | None) -> None:
    found = a_pod("a", status={"phase": "Running", "conditions": [READY]})
    if total is None:
        found["metadata"]["annotations"].pop(TOTAL, None)
    else:
        found["metadata"]["annotations"][TOTAL] = total
    group = a_group(found)
    assert group.lacks() is not None
    with pytest.raises(KindError):
        group.workload_document(Priority(value=0))


@pytest.mark.parametrize(("roles", "made"), [(18, True), (19, False)], ids=["PC-009 eighteen", "PC-010 nineteen"])
def test_a_workload_has_so_many_roles_at_most(roles: int, made: bool) -> None:
    group = a_group(*(a_pod(f"p{at}", total=roles, notes={f"{K}role-hash": f"r{at:02}"}) for at in range(roles)))
    lacks = group.lacks()
    if made:
        document = json.loads(group.workload_document(Priority(value=0)))
        assert [each["name"] for each in document["spec"]["podSets"]] == [f"r{at:02}" for at in range(roles)]
    else:
        assert lacks is not None
        assert "has at most 18" in lacks.text


def test_pc_027_pc_028_of_annotations_of_provisioning_those_of_the_right_prefix_go_on() -> None:
    notes = {"provreq.kueue.x-k8s.io/class": "x", "provreq-kueue.x-k8s.io/class": "y"}
    pod = a_pod("p", group="", notes=notes)
    document = json.loads(POD_KIND.workload_document(typed(pod), msgspec.json.encode(pod), Priority(value=0)))
    group = json.loads(a_group(a_pod("p", total=1, notes=notes)).workload_document(Priority(value=0)))
    for each in (document, group):
        found = [name for name in each["metadata"]["annotations"] if name.startswith("provreq")]
        assert found == ["provreq.kueue.x-k8s.io/class"]


def test_pc_057_succeeded_pods_are_counted_by_role_and_failed_ones_are_not() -> None:
    group = a_group(runs("a", "Failed", role="x"), runs("b", role="y"), runs("c", "Succeeded", role="z"))
    workload = its_workload("x", "y", "z")
    assert group.over(workload, {"x": 1, "y": 1, "z": 1}) == {"z": 1}


def test_pc_058_of_a_serving_group_none_are() -> None:
    serving = runs("c", "Succeeded", role="z")
    serving["metadata"]["annotations"][f"{K}pod-group-serving"] = "true"
    assert a_group(serving).over(its_workload("z"), {"z": 1}) == {}


def failed(name: str, minute: int, *, finalizer: bool = True) -> Json:
    """Return a pod whose containers ended so many minutes after the hour."""
    found = runs(name, "Failed", ready=False)
    at = f"2026-01-01T00:{minute:02}:00Z"
    reason = {"type": "ContainersReady", "status": "False", "reason": "PodFailed", "lastTransitionTime": at}
    found["status"]["conditions"] = [reason]
    found["metadata"]["finalizers"] = [f"{K}managed"] if finalizer else []
    return found


def named(group: GatheredPods, workload: Workload) -> Workload:
    """Return the Workload as it names all pods of the group."""
    of = {"apiVersion": "v1", "kind": "Pod"}
    owners = [{**of, "name": pod.metadata.name, "uid": uid} for uid, (pod, _) in group._pods.items()]
    document = msgspec.to_builtins(workload)
    document["metadata"]["ownerReferences"] = owners
    return msgspec.convert(document, Workload)


def test_pc_075_those_that_failed_longest_ago_are_let_go_first_and_as_many_as_there_are_replacements() -> None:
    group = a_group(runs("a"), failed("x", 3), failed("y", 1), failed("z", 2), runs("r1"), runs("r2"))
    found = group.replaced(named(group, its_workload("r", "r", "r", "r")))
    assert sorted(each.name for each in found) == ["y", "z"]


def test_pc_077_one_that_was_let_go_already_is_replaced_by_the_one_that_came() -> None:
    group = a_group(failed("x", 1), failed("y", 2, finalizer=False), runs("r1"))
    found = group.replaced(named(group, its_workload("r", "r")))
    assert [each.name for each in found] == []


def test_pc_093_one_that_was_never_bound_and_is_deleted_has_to_be_replaced() -> None:
    waiting = a_pod("b", notes={f"{K}role-hash": "r"})
    waiting["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:05Z"
    found = a_group(runs("a"), waiting).waiting_condition(its_workload("r", "r"))
    assert found is not None
    assert (found.status, found.reason) == ("True", "PodsFailed")


def test_pc_107_a_single_pods_workload_has_kueues_name() -> None:
    assert workload_name("Pod", "", "name", "uid").startswith("pod-name-")
    assert len(workload_name("Pod", "", "name", "uid")) == len("pod-name-") + 5


def test_pc_123_pc_124_a_pod_is_of_the_group_that_it_names_and_else_of_none() -> None:
    assert POD_GROUP_KIND.selects(typed(a_pod("p", group="g")))
    assert POD_GROUP_KIND.workload_name(typed(a_pod("p", group="g"))) == "g"
    assert not POD_GROUP_KIND.selects(typed(a_pod("p", group="")))


@pytest.mark.parametrize("gated", [True, False], ids=["PU-006 one that has it", "PU-007 one that has none"])
def test_a_gate_is_there_once(gated: bool) -> None:
    found = defaulted(POD_KIND, a_new_pod(Q, **(GATED if gated else {})), FACTS)
    assert [each["name"] for each in found["spec"]["schedulingGates"]] == [f"{K}admission"]
