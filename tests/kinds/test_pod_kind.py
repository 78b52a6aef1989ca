"""A single Pod: its Workload, its way to a worker and back, its start and end."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from gatelift_kinds.registry import POD_KIND as KIND
from gatelift_kinds.shared.pods import count_pods
from gatelift_kinds.shared.values import (
    DeleteStep,
    MergeConflictError,
    ObjectEnd,
    PatchStep,
    Placing,
    PodSetStart,
    Priority,
)
from gatelift_kube.deciding.writes import PatchKind
from gatelift_kube.objects.core import Toleration
from gatelift_kube.objects.kueue import PriorityClassRef
from gatelift_sandbox.embedded.failures import RequestRefusedError
from gatelift_wire.values.keys import PlacementKey
from support.manager.kind_objects import GATE, KEY, QUEUED, WALL, Json, a_pod, merged, patched, pod, raw, workload

USER_GATE = {"name": "example.com/mine"}
START = PodSetStart(
    pod_set="main",
    node_selector={"pool": "a"},
    tolerations=(Toleration(key="gpu", operator="Exists"), Toleration(key="own", operator="Exists")),
    labels={"kueue.x-k8s.io/local-queue-name": "q"},
    annotations={"kueue.x-k8s.io/workload": "w"},
)
PLACING = Placing(key=KEY, origin="home", namespace="ns", starts=(START,))
RUNNING: Json = {
    "phase": "Running",
    "podIP": "10.0.0.9",
    "observedGeneration": 2,
    "conditions": [
        {"type": "PodScheduled", "status": "True", "observedGeneration": 2},
        {"type": "Ready", "status": "True"},
    ],
    "containerStatuses": [{"name": "c", "ready": True}],
    "qosClass": "Guaranteed",
}


def a_container(**requests: str) -> Json:
    return {"name": "c", "image": "i", "resources": {"requests": requests}}


def document_of(user: Json, placing: Placing = PLACING) -> Json:
    (part,) = KIND.parts(pod(user), raw(user))
    made: Json = json.loads(KIND.document(part, placing))
    return made


def test_names_of_a_job_stay_at_home_and_a_completion_index_travels() -> None:
    """HD-45. At the worker they would say that a Job there made the pod."""
    job = {"job-name": "j", "controller-uid": "u"}
    index = {"batch.kubernetes.io/job-completion-index": "3"}
    labels = {**QUEUED, **job, **{f"batch.kubernetes.io/{key}": value for key, value in job.items()}, **index}
    made = document_of(a_pod(labels=labels))["metadata"]["labels"]
    assert not {key for key in made if "job-name" in key or "controller-uid" in key}
    assert made.items() >= index.items()


def mirrored(user: Json, reported: Json) -> Json | None:
    body = KIND.mirror_patch(pod(user), raw(user), raw(reported))
    return None if body is None else merged(user, body)


@pytest.mark.parametrize(
    ("labels", "ours"),
    [
        pytest.param({"kueue.x-k8s.io/managed": "true"}, True, id="the webhook's label"),
        pytest.param(QUEUED, True, id="a queue and the gate: the label was taken off"),
        pytest.param(
            {**QUEUED, "kueue.x-k8s.io/pod-group-name": "g"}, False, id="without the label, a member of a group"
        ),
        pytest.param(
            {"kueue.x-k8s.io/managed": "true", "kueue.x-k8s.io/pod-group-name": "g"}, False, id="a member of a group"
        ),
    ],
)
def test_a_pod_is_ours_by(labels: dict[str, str], ours: bool) -> None:
    """PC-022."""
    assert KIND.managed(pod(a_pod(labels=labels))) is ours


def test_the_workload_is_as_kueue_makes_it() -> None:
    """PC-018."""
    notes = {"provreq.kueue.x-k8s.io/x": "1", "example.com/y": "2", "gatelift.dev/disconnect": "failover"}
    user = a_pod(annotations=notes, labels={**QUEUED, "kueue.x-k8s.io/max-exec-time-seconds": "60"})
    priority = Priority(
        value=7, ref=PriorityClassRef(group="kueue.x-k8s.io", kind="WorkloadPriorityClass", name="high")
    )
    made = json.loads(KIND.workload_document(pod(user), raw(user), priority))
    assert made["metadata"] == {
        "name": KIND.workload_name(pod(user)),
        "namespace": "ns",
        "labels": {"kueue.x-k8s.io/job-uid": "uid-p"},
        "annotations": {
            "provreq.kueue.x-k8s.io/x": "1",
            "gatelift.dev/disconnect": "failover",
            "gatelift.dev/epoch": "1",
            "gatelift.dev/owner": '{"apiVersion":"v1","kind":"Pod","name":"p","uid":"uid-p"}',
        },
        "finalizers": ["kueue.x-k8s.io/resource-in-use"],
        "ownerReferences": [
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": "p",
                "uid": "uid-p",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }
    (pod_set,) = made["spec"].pop("podSets")
    assert made["spec"] == {
        "active": True,
        "queueName": "q",
        "priority": 7,
        "priorityClassRef": {"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": "high"},
        "maximumExecutionTimeSeconds": 60,
    }
    assert (pod_set["name"], pod_set["count"]) == ("main", 1)
    assert pod_set["template"]["spec"] == user["spec"]


def test_a_uid_longer_than_a_label_value_gets_no_label() -> None:
    user = a_pod(uid="u" * 64)
    assert "labels" not in json.loads(KIND.workload_document(pod(user), raw(user), Priority()))["metadata"]


@pytest.mark.parametrize(
    ("change", "same"),
    [
        pytest.param({}, True, id="the pod it was made for"),
        pytest.param({"containers": [a_container(cpu="2")]}, False, id="other requests"),
        pytest.param({"containers": [{**a_container(cpu="1"), "image": "other"}]}, True, id="another image"),
        pytest.param({"nodeSelector": {"a": "b"}}, False, id="another selector while it is gated"),
        pytest.param({"nodeSelector": {"a": "b"}, "schedulingGates": []}, True, id="a flavor's, after the lift"),
        pytest.param({"priority": 5}, False, id="another priority"),
    ],
)
def test_a_workload_describes(change: Json, same: bool) -> None:
    user = a_pod()
    made = workload(KIND.workload_document(pod(user), raw(user), Priority()))
    assert KIND.equivalent(made, pod({**user, "spec": {**user["spec"], **change}})) is same


def test_the_execution_limit_belongs_to_what_is_described() -> None:
    user = a_pod()
    made = workload(KIND.workload_document(pod(user), raw(user), Priority()))
    assert not KIND.equivalent(made, pod(a_pod(labels={"kueue.x-k8s.io/max-exec-time-seconds": "5"})))


@pytest.mark.parametrize(
    ("phase", "outcome"),
    [
        ("Succeeded", ObjectEnd(succeeded=True, message="done")),
        ("Failed", ObjectEnd(succeeded=False, message="done")),
        ("Running", None),
        ("Pending", None),
    ],
)
def test_the_phase_says_how_a_pod_ended(phase: str, outcome: ObjectEnd | None) -> None:
    assert KIND.outcome(pod({**a_pod(), "status": {"phase": phase, "message": "done"}})) == outcome


def test_outcomes_have_kueues_reasons() -> None:
    assert (ObjectEnd(succeeded=True).reason, ObjectEnd(succeeded=False).reason) == ("Succeeded", "Failed")


# --- at the worker ---


def test_the_workers_pod_is_held_back_and_marked() -> None:
    made = document_of(a_pod(gates=(GATE, USER_GATE), annotations={"example.com/note": "n"}))
    assert made["metadata"] == {
        "name": "p",
        "namespace": "ns",
        "labels": {
            "app": "x",
            "kueue.x-k8s.io/local-queue-name": "q",
            "kueue.x-k8s.io/podset": "main",
            "gatelift.dev/origin": "home",
            "gatelift.dev/workload-uid": "wl-uid",
            "gatelift.dev/epoch": "3",
        },
        "annotations": {"example.com/note": "n", "kueue.x-k8s.io/workload": "w"},
        "finalizers": ["gatelift.dev/report"],
    }
    assert made["spec"]["schedulingGates"] == [USER_GATE, GATE]
    assert made["spec"]["nodeSelector"] == {"pool": "a"}
    assert [one["key"] for one in _unmarked(made)] == ["own", "gpu"]


def test_a_user_cannot_forge_the_marks_of_ownership() -> None:
    made = document_of(a_pod(labels={"gatelift.dev/origin": "other", "gatelift.dev/epoch": "99"}))
    assert made["metadata"]["labels"]["gatelift.dev/origin"] == "home"
    assert made["metadata"]["labels"]["gatelift.dev/epoch"] == "3"


def test_a_selector_that_contradicts_the_flavor_is_told_with_both_values() -> None:
    user = a_pod()
    user["spec"]["nodeSelector"] = {"pool": "b"}
    with pytest.raises(MergeConflictError, match=r"spec\.nodeSelector\[pool\]: 'b' .* 'a' of the flavor"):
        document_of(user)


@pytest.mark.parametrize(
    ("gates", "extra", "liftable"),
    [
        pytest.param((GATE,), {}, True, id="only ours"),
        pytest.param((GATE, USER_GATE), {}, False, id="the user's gate first"),
        pytest.param((), {}, False, id="lifted already"),
        pytest.param((GATE,), {"deletionTimestamp": WALL}, False, id="being deleted"),
        pytest.param((GATE,), {"labels": {"gatelift.dev/stopping": f"{KEY.uid}.3"}}, False, id="stopped in this epoch"),
        pytest.param(
            (GATE,), {"labels": {"gatelift.dev/stopping": f"{KEY.uid}.2"}}, True, id="stopped in an earlier one"
        ),
    ],
)
def test_a_pod_can_be_lifted_with(gates: tuple[Json, ...], extra: Json, liftable: bool) -> None:
    assert KIND.liftable(pod(a_pod(gates=gates, **extra)), KEY) is liftable


def test_the_lift_takes_our_gate_and_nothing_else() -> None:
    before = a_pod(gates=(USER_GATE, GATE))
    after = patched(before, KIND.lift_patch(pod(before)))
    assert after["spec"]["schedulingGates"] == [USER_GATE]
    assert KIND.lifted(pod(after))
    assert not KIND.lifted(pod(before))


@pytest.mark.parametrize("field", ["uid", "resourceVersion"])
def test_a_late_lift_fails_on_another(field: str) -> None:
    body = KIND.lift_patch(pod(a_pod()))
    moved = a_pod()
    moved["metadata"][field] = "other"
    with pytest.raises(RequestRefusedError):
        patched(moved, body)


def test_the_users_gates_go_when_the_user_removes_them_and_ours_stays() -> None:
    before = a_pod(gates=(USER_GATE, GATE, {"name": "example.com/kept"}))
    body = KIND.user_gates_patch(pod(before), ("example.com/kept",))
    assert body is not None
    assert patched(before, body)["spec"]["schedulingGates"] == [GATE, {"name": "example.com/kept"}]
    assert KIND.user_gates_patch(pod(before), ("example.com/kept", "example.com/mine")) is None


def test_a_workers_pod_is_stopped_by_deletion_once() -> None:
    assert KIND.stop_step(pod(a_pod()), KEY) == DeleteStep()
    assert KIND.stop_step(pod(a_pod(deletionTimestamp=WALL)), KEY) is None


@pytest.mark.parametrize(
    ("node", "phase", "metadata", "stopped"),
    [
        pytest.param("", "Pending", {"deletionTimestamp": WALL}, True, id="deleted before it was bound"),
        pytest.param("n", "Running", {"deletionTimestamp": WALL}, False, id="terminating on a node"),
        pytest.param("n", "Failed", {}, True, id="over"),
        pytest.param("", "Pending", {}, False, id="gated, nothing written to it"),
        pytest.param("", "Pending", {"labels": {"gatelift.dev/stopping": f"{KEY.uid}.3"}}, True, id="gated and marked"),
        pytest.param(
            "",
            "Pending",
            {"labels": {"gatelift.dev/stopping": f"{KEY.uid}.2"}},
            False,
            id="marked in another epoch",
        ),
    ],
)
def test_a_pod_counts_as_stopped_when(node: str, phase: str, metadata: Json, stopped: bool) -> None:
    document = a_pod(**metadata)
    document["spec"]["nodeName"] = node
    document["status"]["phase"] = phase
    assert KIND.stopped(pod(document), (), KEY) is stopped


# --- local ---


def _unmarked(document: Json) -> list[Json]:
    """Return the tolerations of a pod without its mark, which is the last one."""
    tolerations: list[Json] = document["spec"]["tolerations"]
    *others, mark = tolerations
    assert mark["key"].partition("/")[0].endswith(".placed-as.gatelift.dev")
    return others


def test_the_local_lift_merges_everything_in_one_patch() -> None:
    before = a_pod(annotations={"kept": "yes"})
    after = patched(before, KIND.local_lift_patch(pod(before), raw(before), PLACING))
    assert after["spec"]["schedulingGates"] == []
    assert after["spec"]["nodeSelector"] == {"pool": "a"}
    assert _unmarked(after) == [{"key": "own", "operator": "Exists"}, {"key": "gpu", "operator": "Exists"}]
    assert after["metadata"]["labels"]["gatelift.dev/epoch"] == "3"
    assert after["metadata"]["labels"]["app"] == "x"
    own = {"kueue.x-k8s.io/workload": "w", "gatelift.dev/placed-on": "local"}
    assert after["metadata"]["annotations"] == {"kept": "yes", **own}


def test_stopping_a_gated_pod_at_home_marks_it_and_leaves_it_to_its_user() -> None:
    before = a_pod()
    step = KIND.local_stop_step(pod(before), raw(before), KEY)
    assert isinstance(step, PatchStep)
    after = patched(before, step.body)
    assert KIND.stopped(pod(after), (), KEY)
    assert KIND.local_stop_step(pod(after), raw(after), KEY) is None
    assert KIND.liftable(pod(after), PlacementKey("wl-uid", 4))


@pytest.mark.parametrize("annotations", [{}, {"kept": "yes"}])
def test_hd_133_the_mark_on_a_gated_pod_fails_on_one_that_was_changed_since(annotations: dict[str, str]) -> None:
    """Its gate may be gone by then; and without its version the mark would replace annotations that it did not see."""
    before = a_pod(annotations=annotations)
    step = KIND.local_stop_step(pod(before), raw(before), KEY)
    assert isinstance(step, PatchStep)
    since = copy.deepcopy(before)
    since["metadata"]["resourceVersion"] = "4712"
    with pytest.raises(RequestRefusedError):
        patched(since, step.body)


def test_stopping_a_lifted_pod_at_home_deletes_it() -> None:
    before = a_pod(gates=())
    assert KIND.local_stop_step(pod(before), raw(before), KEY) == DeleteStep()


# --- the way back ---


def test_is_21_the_status_is_shown_without_addresses() -> None:
    """PM-002."""
    after = mirrored(a_pod(), RUNNING)
    assert after is not None
    assert after["status"]["phase"] == "Running"
    assert "podIP" not in after["status"]
    assert {one["type"]: one["status"] for one in after["status"]["conditions"]} == {
        "PodScheduled": "True",
        "Ready": "True",
    }


def test_generations_of_the_workers_pod_and_its_class_of_service_stay_there() -> None:
    after = mirrored(a_pod(), RUNNING)
    assert after is not None
    assert "observedGeneration" not in json.dumps(after)
    assert after["status"]["qosClass"] == "Burstable"


def test_a_pod_that_is_unscheduled_there_stays_gated_here() -> None:
    """PM-003."""
    reported = {
        "phase": "Pending",
        "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
    }
    assert mirrored(a_pod(), reported) is None


def test_nothing_is_written_when_nothing_visible_changes() -> None:
    once = mirrored(a_pod(), RUNNING)
    assert once is not None
    assert mirrored(once, RUNNING) is None


def test_what_vanished_there_vanishes_here() -> None:
    once = mirrored(a_pod(), RUNNING)
    assert once is not None
    again = mirrored(once, {"phase": "Failed", "reason": "Evicted", "conditions": RUNNING["conditions"]})
    assert again is not None
    assert again["status"]["phase"] == "Failed"
    assert "containerStatuses" not in again["status"]


def test_the_mirror_is_tied_to_this_very_pod() -> None:
    body = KIND.mirror_patch(pod(a_pod()), raw(a_pod()), raw(RUNNING))
    assert body is not None
    assert json.loads(body)["metadata"] == {"uid": "uid-p"}


def test_after_an_eviction_the_pod_waits_at_its_gate_again() -> None:
    shown = mirrored(a_pod(), RUNNING)
    assert shown is not None
    (step,) = KIND.unplaced_steps(pod(shown), raw(shown), WALL)
    assert step.subresource == "status"
    after = merged(shown, step.body)
    assert after["status"]["phase"] == "Pending"
    (told,) = after["status"]["conditions"]
    assert (told["type"], told["status"], told["reason"]) == ("PodScheduled", "False", "SchedulingGated")
    assert after["status"].keys() == {"phase", "conditions", "qosClass"}
    assert KIND.unplaced_steps(pod(after), raw(after), WALL) == ()


def test_a_pod_that_shows_no_run_needs_no_reset() -> None:
    assert KIND.unplaced_steps(pod(a_pod()), raw(a_pod()), WALL) == ()


def test_dropping_our_finalizer_keeps_those_of_others() -> None:
    """PC-064, PI-003."""
    before = a_pod(finalizers=["example.com/a", "kueue.x-k8s.io/managed", "example.com/b"])
    step = KIND.release_step(pod(before))
    assert step is not None
    assert step.kind is PatchKind.JSON
    assert patched(before, step.body)["metadata"]["finalizers"] == ["example.com/a", "example.com/b"]
    assert KIND.release_step(pod(a_pod(finalizers=[]))) is None


def test_a_single_pod_gives_nothing_back_before_it_ends() -> None:
    assert KIND.reclaimable(pod(a_pod())) == ()


@pytest.mark.parametrize(
    ("phase", "node", "metadata", "counts"),
    [
        pytest.param("Running", "n", {}, {"active": 1, "ready": 1, "remaining": 1}, id="running"),
        pytest.param("Running", "n", {"deletionTimestamp": WALL}, {"terminating": 1, "remaining": 1}, id="terminating"),
        pytest.param("Pending", "", {"deletionTimestamp": WALL}, {}, id="deleted unbound"),
        pytest.param("Succeeded", "n", {}, {"succeeded": 1}, id="succeeded"),
        pytest.param("Failed", "n", {}, {"failed": 1}, id="failed"),
    ],
)
def test_a_pod_is_counted_as(phase: str, node: str, metadata: Json, counts: dict[str, Any]) -> None:
    document = a_pod(**metadata)
    document["spec"]["nodeName"] = node
    document["status"] = {"phase": phase, "conditions": [{"type": "Ready", "status": "True"}]}
    told = count_pods("main", (pod(document),))
    names = ("active", "ready", "succeeded", "failed", "terminating", "remaining")
    assert {name: getattr(told, name) for name in names if getattr(told, name)} == counts
    assert KIND.counts(pod(document), ()) == ()  # its report says the same


def test_the_smallest_end_of_a_pod_keeps_what_the_management_cluster_said_and_drops_what_containers_showed() -> None:
    user = {**a_pod(), "status": {**RUNNING, "phase": "Running"}}
    body = KIND.end_patch(pod(user), raw(user), ObjectEnd(succeeded=False, message="killed"), WALL)
    assert body is not None
    after = merged(user, body)["status"]
    assert (after["phase"], after["message"]) == ("Failed", "killed")
    assert "containerStatuses" not in after
    assert [(one["type"], one["status"]) for one in after["conditions"]] == [
        ("PodScheduled", "True"),
        ("Ready", "False"),
    ]
    assert KIND.end_patch(pod({**user, "status": after}), raw(user), ObjectEnd(succeeded=False), WALL) is None
