"""HD-129: a pod that no gate holds back at home is run nowhere else, whatever its labels say."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift_kube.values.resources import WORKLOAD
from support.manager.builders import a_pod, a_setting
from support.manager.world import World, a_world

OF_A_JOB = {"apiVersion": "batch/v1", "kind": "Job", "name": "maker", "uid": "uid-maker", "controller": True}


def a_users_pod(*, gated: bool, **metadata: Any) -> World:
    """Let a user create a pod with Kueue's label, around the webhook or as it leaves it."""
    world = a_world(a_setting(cpu=8))
    document = a_pod().document()
    document["metadata"] |= metadata
    if not gated:
        del document["spec"]["schedulingGates"]
    world.api.apply(document)
    world.advance(5.0)
    return world


def test_hd_129_a_pod_of_a_job_that_nobody_gated_is_no_workload_whatever_its_label_says() -> None:
    world = a_users_pod(gated=False, ownerReferences=[OF_A_JOB], finalizers=[])
    assert not [ref for ref in world.api.objects if ref.resource == WORKLOAD]
    assert world.runs == []


@pytest.mark.parametrize("owners", [[], [OF_A_JOB]], ids=["alone", "of a Job, with the finalizer"])
def test_hd_129_a_pod_that_is_not_held_back_at_home_goes_to_no_worker_and_says_why(owners: list[Any]) -> None:
    world = a_users_pod(gated=False, ownerReferences=owners)
    assert world.runs == [], "it runs at home as well"
    why = world.condition(world.find("Workload"), "QuotaReserved")
    assert (why["status"], why["reason"]) == ("False", "Misconfigured")
    assert "spec.schedulingGates: without kueue.x-k8s.io/admission the pod runs where it is" in why["message"]


def test_hd_129_a_pod_of_a_job_that_was_taken_over_runs_once() -> None:
    assert len(a_users_pod(gated=True, ownerReferences=[OF_A_JOB]).runs) == 1
