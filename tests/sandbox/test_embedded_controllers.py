"""Stand-in scheduler, Job controller and collectors on a bare store, on the test's clock."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift_kube.values import resources as known
from gatelift_sandbox.controllers.job_pods import indexes, ranges
from gatelift_sandbox.embedded.builtin import CORE_EVENT
from support.servers.embedded_rig import Rig, condition, job, pod


@pytest.fixture
def rig() -> Rig:
    return Rig()


def node_of(rig: Rig, name: str) -> str:
    return str(rig.get(known.POD, name)["spec"].get("nodeName", ""))


def reason(rig: Rig, name: str) -> str:
    return str(condition(rig.get(known.POD, name), "PodScheduled").get("message", ""))


def test_a_new_namespace_is_furnished(rig: Rig) -> None:
    rig.create(known.NAMESPACE, {"metadata": {"name": "team"}})
    rig.settle()
    assert rig.get(known.SERVICE_ACCOUNT, "default", "team")
    assert rig.get(known.CONFIG_MAP, "kube-root-ca.crt", "team")["data"] == {"ca.crt": "PEM"}


def test_a_pod_goes_where_most_is_free(rig: Rig) -> None:
    rig.node("n1", cpu="4")
    rig.node("n2", cpu="8")
    rig.create(known.POD, pod("a", cpu="2"))
    rig.settle()
    assert node_of(rig, "a") == "n1"  # both are free: the first by name
    rig.create(known.POD, pod("b", cpu="2"))
    rig.settle()
    assert node_of(rig, "b") == "n2"


def test_a_pod_that_fits_nowhere_says_why_and_is_bound_when_room_is_made(rig: Rig) -> None:
    rig.node("n1", cpu="2")
    rig.create(known.POD, pod("a", cpu="2"))
    rig.create(known.POD, pod("b", cpu="1"))
    rig.settle()
    assert reason(rig, "b") == "0/1 nodes are available: 1 Insufficient cpu."
    assert condition(rig.get(known.POD, "b"), "PodScheduled")["reason"] == "Unschedulable"
    rig.phase("a", "Succeeded")
    rig.settle()
    assert node_of(rig, "b") == "n1"
    assert condition(rig.get(known.POD, "b"), "PodScheduled")["status"] == "True"


def test_a_pod_that_still_does_not_fit_is_written_once(rig: Rig) -> None:
    rig.create(known.POD, pod("a"))
    rig.settle()
    assert reason(rig, "a") == "no nodes available to schedule pods"
    before = rig.store.version
    rig.settle(60)
    assert rig.store.version == before


def test_a_waiting_pod_is_bound_when_a_node_comes(rig: Rig) -> None:
    rig.create(known.POD, pod("a"))
    rig.settle()
    rig.node("n1")
    rig.settle()
    assert node_of(rig, "a") == "n1"


def test_a_gated_pod_waits_until_its_gate_is_lifted(rig: Rig) -> None:
    rig.node("n1")
    rig.create(known.POD, pod("a", schedulingGates=[{"name": "example.com/gate"}]))
    rig.settle()
    assert condition(rig.get(known.POD, "a"), "PodScheduled")["reason"] == "SchedulingGated"
    rig.patch(known.POD, "a", {"spec": {"schedulingGates": None}})
    rig.settle()
    assert node_of(rig, "a") == "n1"


def test_pods_of_higher_priority_go_first(rig: Rig) -> None:
    rig.create(known.PRIORITY_CLASS, {"metadata": {"name": "high"}, "value": 10})
    rig.create(known.POD, pod("low", cpu="2"))
    rig.create(known.POD, pod("high", cpu="2", priorityClassName="high"))
    rig.node("n1", cpu="2")
    rig.settle()
    assert (node_of(rig, "high"), node_of(rig, "low")) == ("n1", "")


def affinity(operator: str, *values: str) -> dict[str, Any]:
    expression = {"key": "size", "operator": operator, "values": list(values)}
    needed = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": needed}}}


@pytest.mark.parametrize(
    ("spec", "bound"),
    [
        ({"nodeSelector": {"size": "3"}}, True),
        ({"nodeSelector": {"size": "4"}}, False),
        (affinity("In", "3", "4"), True),
        (affinity("NotIn", "3"), False),
        (affinity("Exists"), True),
        (affinity("DoesNotExist"), False),
        (affinity("Gt", "2"), True),
        (affinity("Lt", "2"), False),
        ({"schedulerName": "other"}, False),
    ],
)
def test_a_pod_goes_only_where_it_wants(rig: Rig, spec: Any, bound: bool) -> None:
    rig.node("n1")
    rig.patch(known.NODE, "n1", {"metadata": {"labels": {"size": "3"}}})
    rig.create(known.POD, pod("a", **spec))
    rig.settle()
    assert bool(node_of(rig, "a")) is bound


@pytest.mark.parametrize(
    ("node", "tolerations", "message"),
    [
        ({"unschedulable": True}, [], "0/1 nodes are available: 1 node(s) were unschedulable."),
        (
            {"taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]},
            [],
            "0/1 nodes are available: 1 node(s) had untolerated taint {k: v}.",
        ),
        ({"taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]}, [{"key": "k", "value": "v"}], ""),
        ({"taints": [{"key": "k", "effect": "NoExecute"}]}, [{"operator": "Exists"}], ""),
        ({"taints": [{"key": "k", "effect": "PreferNoSchedule"}]}, [], ""),
    ],
)
def test_a_node_may_refuse_pods(rig: Rig, node: Any, tolerations: Any, message: str) -> None:
    rig.node("n1", **node)
    rig.create(known.POD, pod("a", tolerations=tolerations))
    rig.settle()
    assert reason(rig, "a") == message
    assert bool(node_of(rig, "a")) is not bool(message)


def test_the_number_of_pods_on_a_node_is_bounded(rig: Rig) -> None:
    rig.node("n1", cpu="100")
    for index in range(11):
        rig.create(known.POD, pod(f"p{index:02}", cpu="1m"))
    rig.settle()
    assert reason(rig, "p10") == "0/1 nodes are available: 1 Too many pods."


def test_a_failed_pod_is_replaced_after_a_growing_pause(rig: Rig) -> None:
    rig.create(known.JOB, job("j", backoffLimit=5))
    rig.settle()
    for pause in (0.5, 1.0, 2.0):
        (active,) = (p for p in rig.all(known.POD) if p["status"]["phase"] == "Pending")
        rig.phase(active["metadata"]["name"], "Failed")
        rig.settle()
        assert all(p["status"]["phase"] == "Failed" for p in rig.all(known.POD))
        rig.settle(pause)
    assert rig.get(known.JOB, "j")["status"]["failed"] == 3
    assert rig.get(known.JOB, "j")["status"]["active"] == 1


def test_a_finished_job_lives_as_long_as_it_says(rig: Rig) -> None:
    rig.create(known.JOB, job("j", ttlSecondsAfterFinished=60))
    rig.settle()
    (made,) = rig.all(known.POD)
    rig.phase(made["metadata"]["name"], "Succeeded")
    rig.settle()
    assert condition(rig.get(known.JOB, "j"), "Complete")["status"] == "True"
    rig.settle(59)
    assert len(rig.all(known.JOB)) == 1
    rig.settle(2)
    assert rig.all(known.JOB) == []
    assert rig.all(known.POD) == []


def test_a_bound_pod_of_a_suspended_job_is_terminating_until_its_kubelet_says_so(rig: Rig) -> None:
    rig.node("n1")
    rig.create(known.JOB, job("j"))
    rig.settle()
    rig.patch(known.JOB, "j", {"spec": {"suspend": True}})
    rig.settle()
    (made,) = rig.all(known.POD)
    assert made["metadata"]["deletionTimestamp"]
    status = rig.get(known.JOB, "j")["status"]
    assert (status.get("active", 0), status["terminating"], status.get("failed", 0)) == (0, 1, 0)
    rig.delete(known.POD, made["metadata"]["name"], grace_seconds=0)
    rig.settle()
    assert rig.get(known.JOB, "j")["status"]["terminating"] == 0


def test_a_deleted_pod_of_a_running_job_counts_as_failed_and_is_replaced(rig: Rig) -> None:
    rig.create(known.JOB, job("j"))
    rig.settle()
    (made,) = rig.all(known.POD)
    rig.delete(known.POD, made["metadata"]["name"])
    rig.settle()
    rig.settle(1)
    status = rig.get(known.JOB, "j")["status"]
    assert (status["failed"], status["active"]) == (1, 1)
    (other,) = rig.all(known.POD)
    assert other["metadata"]["name"] != made["metadata"]["name"]


def test_a_large_job_gets_all_its_pods(rig: Rig) -> None:
    rig.create(known.JOB, job("j", parallelism=1200, completions=1200))
    rig.settle()
    assert len(rig.all(known.POD)) == 1200
    assert rig.get(known.JOB, "j")["status"]["active"] == 1200


def test_a_pod_whose_job_was_deleted_loses_its_finalizer_and_goes(rig: Rig) -> None:
    rig.create(known.JOB, job("j"))
    rig.settle()
    rig.delete(known.JOB, "j", propagation="Background")
    rig.settle()
    assert rig.all(known.POD) == []


def test_controllers_say_what_they_do_in_events(rig: Rig) -> None:
    rig.node("n1")
    rig.create(known.JOB, job("j"))
    rig.settle()
    (made,) = rig.all(known.POD)
    rig.phase(made["metadata"]["name"], "Succeeded")
    rig.settle()
    reasons = {(e["involvedObject"]["kind"], e["reason"]) for e in rig.all(CORE_EVENT)}
    assert reasons == {("Job", "SuccessfulCreate"), ("Pod", "Scheduled"), ("Job", "Completed")}


@pytest.mark.parametrize(("text", "numbers"), [("", set()), ("1", {1}), ("0,2-4", {0, 2, 3, 4}), ("0,1", {0, 1})])
def test_completed_indexes_are_written_as_ranges(text: str, numbers: set[int]) -> None:
    assert indexes(text) == numbers
    assert ranges(numbers) == text


def test_the_same_seed_gives_the_same_history() -> None:
    logs = []
    for _ in range(2):
        rig = Rig(number=3)
        rig.node("n1")
        rig.create(known.JOB, job("j", parallelism=3, completions=3))
        rig.settle()
        logs.append([s.raw for s in rig.store.list(rig.store.kinds.of(known.POD)).items])
    assert logs[0] == logs[1]
