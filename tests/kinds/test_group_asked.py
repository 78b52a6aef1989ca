"""Which pods of a group are compared with what it has quota for, and when they are read anew (BG-16)."""

from __future__ import annotations

from typing import Any

import msgspec

from gatelift_kinds.pod_group.asked import AskedOfPods
from gatelift_kinds.pod_group.roles import RoleFit
from gatelift_kinds.pod_group.shapes import shape_of
from gatelift_kube.objects.core import PodSpec, PodTemplate
from gatelift_kube.objects.kueue import PodSet, Workload, WorkloadSpec

Json = dict[str, Any]


def spec(cpu: str, **more: Any) -> Json:
    return {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}, **more}]}


def a_workload(cpu: str = "1", role: str = "r") -> Workload:
    template = PodTemplate(spec=msgspec.convert(spec(cpu), PodSpec))
    return Workload(spec=WorkloadSpec(pod_sets=(PodSet(name=role, count=3, template=template),)))


class Pods:
    """Pods with what they say, as a group has them."""

    def __init__(self) -> None:
        self.asked = AskedOfPods()
        self.specs: dict[str, Json] = {}

    def put(self, uid: str, of: Json, role: str = "r") -> str:
        self.specs[uid] = of
        return self.asked.put(uid, RoleFit(role), of, shape_of(of)).text

    def ask(self, workload: Workload | None, *, fast: bool = False) -> set[str]:
        self.asked.ask(workload, self.specs.__getitem__, fast=fast)
        return self.asked.unread


def test_bg_16_who_waits_already_is_read_anew_where_there_is_quota_for_another_shape_and_nobody_else_is() -> None:
    pods = Pods()
    assert [pods.put("a", spec("1")), pods.put("b", spec("2")), pods.put("c", spec("1"))] == ["", "", ""]
    assert pods.ask(a_workload()) == {"b"}
    assert pods.put("b", spec("2")).startswith("spec.requests.cpu: 2, declared 1")
    assert pods.ask(a_workload()) == set()


def test_bg_16_and_once_more_when_the_group_waits_again() -> None:
    pods = Pods()
    pods.ask(a_workload())
    assert pods.put("b", spec("2")) != ""
    assert pods.ask(None) == {"b"}
    assert pods.put("b", spec("2")) == ""


def test_what_the_role_hash_does_not_see_is_seen() -> None:
    """Limits count where nothing is requested, and a container that is restarted beside others adds to them."""
    pods = Pods()
    pods.ask(a_workload())
    assert pods.put("a", spec("1")) == ""
    assert pods.put("b", spec("1", resources={"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}})) != ""
    beside = {"initContainers": [{"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}}]}
    assert pods.put("c", {**spec("1"), **beside}).startswith("spec.requests.cpu: 2, declared 1")


def test_a_role_that_the_workload_does_not_have_is_told_with_fast_admission_and_is_too_many_without() -> None:
    pods = Pods()
    pods.ask(a_workload())
    assert pods.put("a", spec("2"), role="other") == ""
    pods.ask(a_workload(), fast=True)
    assert "its role is none of those" in pods.put("a", spec("2"), role="other")


def test_of_pods_that_went_nothing_is_remembered() -> None:
    pods = Pods()
    pods.ask(a_workload())
    pods.put("a", spec("2"))
    pods.asked.drop("a")
    assert (pods.asked._pods, pods.asked._likes, pods.asked._found) == ({}, {}, {})
    assert pods.ask(None) == set()
