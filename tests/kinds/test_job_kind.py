"""A Job: its Workload, the worker's copy, the handshake of stopping, its status on the way back, reclaim."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from gatelift_kinds.registry import JOB_KIND as KIND
from gatelift_kinds.shared.values import MergeConflictError, ObjectEnd, PatchStep, Placing, PodSetStart, Priority
from gatelift_kinds.shared.workload_document import needs_digest
from gatelift_kube.objects.core import Toleration
from gatelift_sandbox.embedded.failures import RequestRefusedError
from gatelift_wire.values.keys import PlacementKey
from support.manager.kind_objects import (
    KEY,
    QUEUED,
    WALL,
    Json,
    a_job,
    a_pod,
    condition,
    job,
    merged,
    patched,
    pod,
    raw,
    workload,
)

START = PodSetStart(
    pod_set="main",
    node_selector={"pool": "a"},
    tolerations=(Toleration(key="gpu", operator="Exists"),),
    labels={"kueue.x-k8s.io/local-queue-name": "q"},
    annotations={"kueue.x-k8s.io/workload": "w"},
)
PLACING = Placing(key=KEY, origin="home", namespace="ns", starts=(START,))
MULTIKUEUE = {"managedBy": "kueue.x-k8s.io/multikueue"}
SUSPENDED = condition("Suspended", reason="JobSuspended")
RESUMED = condition("Suspended", "False", reason="JobResumed")


def elsewhere(*, suspend: bool = False, **status: object) -> Json:
    return {**a_job(suspend=suspend, **MULTIKUEUE), "status": status}


def mirrored(user: Json, **reported: object) -> Json | None:
    body = KIND.mirror_patch(job(user), raw(user), raw(dict(reported)))
    return None if body is None else merged(user, body)


def of_worker(user: Json | None = None) -> Json:
    user = user or a_job()
    (part,) = KIND.parts(job(user), raw(user))
    made: Json = json.loads(KIND.document(part, PLACING))
    made["metadata"] |= {"uid": "uid-w", "resourceVersion": "9", "generation": 1}
    return {**made, "status": {}}


@pytest.mark.parametrize(
    ("labels", "spec", "ours"),
    [
        pytest.param(QUEUED, {}, True, id="a queue"),
        pytest.param({}, {}, False, id="no queue"),
        pytest.param(QUEUED, MULTIKUEUE, True, id="run elsewhere"),
        pytest.param(QUEUED, {"managedBy": "kubernetes.io/job-controller"}, True, id="the built-in controller by name"),
        pytest.param(QUEUED, {"managedBy": "example.com/other"}, False, id="somebody else's"),
    ],
)
def test_a_job_is_ours_by(labels: dict[str, str], spec: Json, ours: bool) -> None:
    document = a_job(**spec)
    document["metadata"]["labels"] = labels
    assert KIND.managed(job(document)) is ours


@pytest.mark.parametrize(
    ("parallelism", "completions", "count"),
    [(3, 5, 3), (5, 3, 3), (None, None, 1), (4, None, 4), (None, 2, 1), (0, 2, 0)],
)
def test_the_pod_set_counts_what_runs_at_once(parallelism: int | None, completions: int | None, count: int) -> None:
    user = a_job()
    user["spec"] |= {"parallelism": parallelism, "completions": completions}
    made = workload(KIND.workload_document(job(user), raw(user), Priority()))
    assert [(one.name, one.count) for one in made.spec.pod_sets] == [("main", count)]


def test_the_workload_has_the_template_without_what_the_api_server_generated() -> None:
    user = a_job()
    (pod_set,) = json.loads(KIND.workload_document(job(user), raw(user), Priority()))["spec"]["podSets"]
    assert pod_set["template"] == {"metadata": {"labels": {"app": "x"}}, "spec": user["spec"]["template"]["spec"]}


def test_another_parallelism_is_another_workload() -> None:
    user = a_job()
    made = workload(KIND.workload_document(job(user), raw(user), Priority()))
    assert KIND.equivalent(made, job(user))
    assert not KIND.equivalent(made, job(a_job(parallelism=4)))


@pytest.mark.parametrize(
    ("conditions", "outcome"),
    [
        pytest.param([condition("Complete")], ObjectEnd(succeeded=True, message="M"), id="complete"),
        pytest.param([condition("Failed")], ObjectEnd(succeeded=False, message="M"), id="failed"),
        pytest.param([condition("Complete", "False")], None, id="not complete"),
        pytest.param([condition("FailureTarget")], None, id="about to fail"),
        pytest.param([], None, id="nothing said"),
    ],
)
def test_conditions_say_how_a_job_ended(conditions: list[Json], outcome: ObjectEnd | None) -> None:
    assert KIND.outcome(job({**a_job(), "status": {"conditions": conditions}})) == outcome


@pytest.mark.parametrize(
    ("parallelism", "completions", "status", "reclaimed"),
    [
        pytest.param(3, 10, {"succeeded": 5}, 0, id="more to do than slots"),
        pytest.param(3, 10, {"succeeded": 8}, 1, id="the tail needs two of three"),
        pytest.param(3, 3, {"succeeded": 1}, 1, id="as many slots as completions"),
        pytest.param(5, 3, {"succeeded": 1}, 1, id="more slots than completions: two still run"),
        pytest.param(3, 3, {"succeeded": 3}, 3, id="all done"),
        pytest.param(3, 3, {}, 0, id="nothing done"),
        pytest.param(2, 5, {"succeeded": 4}, 1, id="lowered to what was granted"),
        pytest.param(3, None, {"succeeded": 1}, 1, id="a work queue ends with its first success"),
        pytest.param(1, 4, {"succeeded": 3}, 0, id="one at a time, one to go"),
    ],
)
def test_the_tail_of_a_job_is_reclaimed(
    parallelism: int, completions: int | None, status: Json, reclaimed: int
) -> None:
    document = {**a_job(parallelism=parallelism, completions=completions), "status": status}
    expected = (("main", reclaimed),) if reclaimed else ()
    assert KIND.reclaimable(job(document)) == expected


def test_failed_indexes_need_no_pod_and_retried_failures_do() -> None:
    indexed = a_job(parallelism=4, completions=4, completionMode="Indexed")
    indexed["status"] = {"succeeded": 1, "completedIndexes": "0", "failedIndexes": "2-3", "failed": 9}
    assert KIND.reclaimable(job(indexed)) == (("main", 3),)
    plain = {**a_job(parallelism=4, completions=4), "status": {"succeeded": 1, "failed": 9}}
    assert KIND.reclaimable(job(plain)) == (("main", 1),)


@pytest.mark.parametrize("text", ["\u0660-\u0663", "0-" + "9" * 5000, "-3", "0-3-5", "a"])
def test_indexes_that_are_no_numbers_free_nothing(text: str) -> None:
    indexed = a_job(parallelism=4, completions=4, completionMode="Indexed")
    indexed["status"] = {"completedIndexes": text}
    assert KIND.reclaimable(job(indexed)) == ()


# --- at the worker ---


def test_the_workers_job_is_suspended_and_its_pods_are_marked() -> None:
    made = of_worker(a_job(managedBy="kueue.x-k8s.io/multikueue", ttlSecondsAfterFinished=5))
    spec = made["spec"]
    assert spec["suspend"] is True
    assert spec.keys().isdisjoint({"managedBy", "ttlSecondsAfterFinished", "selector"})
    owner = {"gatelift.dev/origin": "home", "gatelift.dev/workload-uid": "wl-uid", "gatelift.dev/epoch": "3"}
    assert made["metadata"]["labels"] == {"team": "a", **owner}
    assert made["metadata"]["finalizers"] == ["gatelift.dev/report"]
    template = spec["template"]
    assert template["metadata"]["labels"] == {
        "app": "x",
        "kueue.x-k8s.io/local-queue-name": "q",
        "kueue.x-k8s.io/podset": "main",
        **owner,
    }
    assert "finalizers" not in template["metadata"]
    assert template["spec"]["nodeSelector"] == {"zone": "z", "pool": "a"}
    mark = {"key": "home.placed-as.gatelift.dev/j", "operator": "Equal", "value": "wl-uid.3", "effect": "NoSchedule"}
    assert template["spec"]["tolerations"] == [{"key": "gpu", "operator": "Exists"}, mark]


def test_a_selector_made_by_hand_is_sent_as_it_is_so_that_the_agent_refuses_it() -> None:
    made = of_worker(a_job(manualSelector=True))
    assert made["spec"]["selector"] == a_job()["spec"]["selector"]


def test_a_template_that_contradicts_the_flavor_is_refused() -> None:
    user = a_job()
    user["spec"]["template"]["spec"]["nodeSelector"] = {"pool": "b"}
    with pytest.raises(MergeConflictError, match=r"spec\.template\.spec\.nodeSelector\[pool\]"):
        of_worker(user)


def test_unsuspending_is_the_lift() -> None:
    before = of_worker()
    assert KIND.liftable(job(before), KEY)
    after = patched(before, KIND.lift_patch(job(before)))
    assert KIND.lifted(job(after))
    moved = {**before, "metadata": {**before["metadata"], "resourceVersion": "10"}}
    with pytest.raises(RequestRefusedError):
        patched(moved, KIND.lift_patch(job(before)))


def test_a_job_that_was_never_let_go_is_stopped_by_one_write_that_changes_it() -> None:
    before = of_worker()
    assert not KIND.stopped(job(before), (), KEY)
    step = KIND.stop_step(job(before), KEY)
    assert isinstance(step, PatchStep)
    after = merged(before, step.body)
    assert after["metadata"]["labels"] != before["metadata"]["labels"]
    assert KIND.stop_step(job(after), KEY) is None
    assert KIND.stopped(job(after), (), KEY)
    assert not KIND.liftable(job(after), KEY)


def test_a_job_that_ran_is_stopped_when_its_controller_has_said_so_anew() -> None:
    running = of_worker()
    running["spec"]["suspend"] = False
    running["metadata"]["generation"] = 2
    running["status"] = {"conditions": [SUSPENDED], "startTime": WALL, "active": 0}  # the controller is behind
    first = KIND.stop_step(job(running), KEY)
    assert isinstance(first, PatchStep)
    suspended = merged(running, first.body)
    suspended["metadata"]["generation"] = 3
    assert not KIND.stopped(job(suspended), (), KEY)
    second = KIND.stop_step(job(suspended), KEY)
    assert isinstance(second, PatchStep)
    assert second.subresource == "status"
    asked = merged(suspended, second.body)
    assert KIND.stop_step(job(asked), KEY) is None
    assert not KIND.stopped(job(asked), (), KEY)
    asked["status"]["conditions"].append(SUSPENDED)
    assert KIND.stopped(job(asked), (), KEY)


@pytest.mark.parametrize("said", ["FailureTarget", "SuccessCriteriaMet"])
@pytest.mark.parametrize("at_home", [False, True])
def test_hd_298_a_job_that_has_announced_its_end_is_suspended_and_keeps_its_start_time(
    said: str, *, at_home: bool
) -> None:
    ends = run_at_home(a_job()) if at_home else of_worker()
    ends["spec"]["suspend"] = False
    ends["metadata"]["generation"] = 2
    ends["status"] = {"conditions": [condition(said)], "startTime": WALL, "terminating": 1}

    def next_step(document: Json) -> object:
        return (
            KIND.local_stop_step(job(document), raw(document), KEY) if at_home else KIND.stop_step(job(document), KEY)
        )

    first = next_step(ends)
    assert isinstance(first, PatchStep)
    suspended = merged(ends, first.body)
    assert suspended["spec"]["suspend"]
    assert next_step(suspended) is None
    assert not KIND.stopped(job(suspended), (), KEY)
    suspended["status"] = {"conditions": [condition(said), condition("Failed")], "startTime": WALL}
    assert KIND.stopped(job(suspended), (), KEY)


def test_hd_70_a_job_that_is_let_go_again_after_it_was_stopped_is_stopped_with_a_handshake_anew() -> None:
    again = of_worker()
    again["spec"]["suspend"] = False
    again["metadata"].update(generation=4, labels={"gatelift.dev/stopping": f"{KEY.uid}.3"})
    asked = condition("gatelift.dev/StopAsked") | {"reason": f"Epoch3_{KEY.uid.replace('-', '_')}"}
    again["status"] = {"conditions": [asked, SUSPENDED], "active": 0}  # the controller has not seen it yet
    steps = []
    while (step := KIND.stop_step(job(again), KEY)) is not None:
        assert isinstance(step, PatchStep)
        steps.append(step.subresource)
        again = merged(again, step.body)
        assert not KIND.stopped(job(again), (), KEY), "what its controller said is of before"
    assert steps == ["status", "", "status"]
    again["status"]["conditions"].append(SUSPENDED)
    assert KIND.stopped(job(again), (), KEY)


@pytest.mark.parametrize(
    ("active", "terminating", "pods"),
    [
        pytest.param(1, 0, (), id="the controller counts an active pod"),
        pytest.param(0, 1, (), id="the controller counts a terminating pod"),
        pytest.param(0, 0, (a_pod(gates=()),), id="a pod is still there"),
    ],
)
def test_a_suspended_job_is_not_stopped_while(active: int, terminating: int, pods: tuple[Json, ...]) -> None:
    document = of_worker()
    document["metadata"]["labels"] = {"gatelift.dev/stopping": f"{KEY.uid}.3"}
    document["status"] = {"active": active, "terminating": terminating}
    assert not KIND.stopped(job(document), tuple(map(pod, pods)), KEY)


def test_a_finished_job_needs_no_stop() -> None:
    document = {**of_worker(), "status": {"conditions": [condition("Complete")]}}
    assert KIND.stop_step(job(document), KEY) is None
    assert KIND.stopped(job(document), (), KEY)


def test_counts_of_ended_pods_survive_the_pods() -> None:
    document = {**of_worker(), "status": {"succeeded": 4, "failed": 1}}
    running = a_pod(gates=())
    running["spec"]["nodeName"] = "n"
    running["status"]["phase"] = "Running"
    (told,) = KIND.counts(job(document), (pod(running),))
    assert (told.active, told.succeeded, told.failed, told.remaining) == (1, 4, 1, 1)


# --- local ---


def run_at_home(document: Json, placing: Placing = PLACING) -> Json:
    after = patched(document, KIND.local_lift_patch(job(document), raw(document), placing))
    after["metadata"]["generation"] += 1
    return after


def test_hd_154_a_job_at_home_that_needs_something_else_than_was_admitted_is_not_let_go() -> None:
    document = a_job()
    start = replace(START, needs=needs_digest(job(document).spec.template.spec))
    placing = replace(PLACING, starts=(start,))
    assert run_at_home(document, placing)["spec"]["suspend"] is False
    document["spec"]["template"]["spec"]["nodeSelector"] = {"zone": "z"}
    assert run_at_home(document, placing)["spec"]["suspend"] is False, "where it shall run is no need"
    document["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "5"}}
    with pytest.raises(MergeConflictError, match="resources were changed since the Job was admitted"):
        run_at_home(document, placing)


def test_a_stop_at_home_applies_to_the_version_it_was_decided_on_and_cannot_land_in_the_next_placement() -> None:
    document = run_at_home(a_job())
    document["metadata"]["resourceVersion"] = "7"
    step = KIND.local_stop_step(job(document), raw(document), KEY)
    assert isinstance(step, PatchStep)
    body = json.loads(step.body)
    assert (body["spec"]["suspend"], body["metadata"]["resourceVersion"]) == (True, "7")
    elsewhere = KIND.stop_step(job({**of_worker(), "spec": {**of_worker()["spec"], "suspend": False}}), KEY)
    assert isinstance(elsewhere, PatchStep)
    assert "resourceVersion" not in json.loads(elsewhere.body)["metadata"], "there each placement has a Job of its own"


def stop_at_home(document: Json) -> tuple[Json, int]:
    """Carry out all steps, with a Job controller that answers at once."""
    for count in range(10):
        step = KIND.local_stop_step(job(document), raw(document), KEY)
        if step is None:
            return document, count
        assert isinstance(step, PatchStep)
        apply = patched if step.kind.value.startswith("application/json-patch") else merged
        document = apply(document, step.body)
        if step.subresource == "status":
            document["status"]["conditions"].append(SUSPENDED)
    raise AssertionError("the steps do not end")


def test_the_template_is_as_before_after_a_run_at_home() -> None:
    before = a_job()
    running = run_at_home(before)
    assert running["spec"]["suspend"] is False
    assert running["spec"]["template"]["spec"]["nodeSelector"] == {"zone": "z", "pool": "a"}
    running["status"] = {"startTime": WALL, "conditions": [RESUMED], "active": 3}
    after, steps = stop_at_home(running)
    assert steps == 3
    assert after["spec"] == {**before["spec"], "podReplacementPolicy": "Failed"}, "which may stay"
    assert "startTime" not in after["status"]


def test_a_job_can_run_at_home_again_with_another_epoch() -> None:
    running = run_at_home(a_job())
    running["status"] = {"startTime": WALL, "conditions": [RESUMED]}
    stopped, _ = stop_at_home(running)
    again = PlacementKey("wl-uid", 4)
    assert KIND.liftable(job(stopped), again)
    second = run_at_home(stopped, Placing(key=again, origin="home", namespace="ns", starts=(START,)))
    assert second["metadata"]["labels"]["gatelift.dev/epoch"] == "4"
    assert "gatelift.dev/stopping" not in second["metadata"]["labels"]


def test_a_job_that_waits_at_home_is_marked_and_left_suspended() -> None:
    after, steps = stop_at_home(a_job())
    assert steps == 1
    assert KIND.stopped(job(after), (), KEY)
    assert after["spec"] == a_job()["spec"]


# --- the way back ---


def test_a_placed_job_is_unsuspended_at_home_once_so_that_its_status_can_be_shown() -> None:
    waiting = elsewhere(suspend=True)
    step = KIND.placed_step(job(waiting), KEY)
    assert step is not None
    assert json.loads(step.body) == {
        "metadata": {"uid": "uid-j", "resourceVersion": "7", "annotations": {"gatelift.dev/shown": str(KEY)}},
        "spec": {"suspend": False},
    }
    after = merged(waiting, step.body)
    assert KIND.placed_step(job(after), KEY) is None
    after["spec"]["suspend"] = True
    assert KIND.placed_step(job(after), KEY) is None, "its user did that"
    assert KIND.placed_step(job(after), KEY._replace(epoch=9)) is not None, "an earlier run's mark says nothing"
    assert KIND.placed_step(job(a_job()), KEY) is None


def test_a_suspended_job_takes_no_status_yet() -> None:
    assert mirrored(elsewhere(suspend=True), active=1) is None


def test_a_running_jobs_status_is_shown() -> None:
    after = mirrored(
        elsewhere(),
        active=2,
        ready=1,
        startTime=WALL,
        conditions=[RESUMED],
        uncountedTerminatedPods={"succeeded": ["x"]},
    )
    assert after is not None
    assert after["status"] == {"active": 2, "ready": 1, "startTime": WALL, "conditions": [RESUMED]}
    assert mirrored(after, active=2, ready=1, startTime=WALL, conditions=[RESUMED], uncountedTerminatedPods={}) is None


def test_counters_never_fall_when_a_second_run_begins() -> None:
    after = mirrored(elsewhere(succeeded=2, failed=3), active=1, failed=1)
    assert after is not None
    assert (after["status"]["succeeded"], after["status"]["failed"]) == (2, 3)


def test_the_coming_end_is_shown_with_the_end_only() -> None:
    coming = condition("SuccessCriteriaMet")
    assert mirrored(elsewhere(), conditions=[coming]) is None
    after = mirrored(elsewhere(), conditions=[coming, condition("Complete")])
    assert after is not None
    assert [one["type"] for one in after["status"]["conditions"]] == ["SuccessCriteriaMet", "Complete"]


def test_our_handshake_is_not_shown() -> None:
    assert mirrored(elsewhere(), conditions=[condition("gatelift.dev/StopAsked")]) is None


def test_an_evicted_job_is_suspended_and_shows_no_run() -> None:
    shown = elsewhere(active=2, ready=2, terminating=0, startTime=WALL, succeeded=1, conditions=[RESUMED])
    spec, status = KIND.unplaced_steps(job(shown), raw(shown), WALL)
    after = merged(merged(shown, spec.body), status.body)
    assert after["spec"]["suspend"] is True
    assert after["status"].keys() == {"succeeded", "conditions"}
    assert [(one["type"], one["status"]) for one in after["status"]["conditions"]] == [("Suspended", "True")]
    assert KIND.unplaced_steps(job(after), raw(after), WALL) == ()


def test_a_job_that_never_showed_a_run_is_left_alone() -> None:
    waiting = elsewhere(suspend=True)
    assert KIND.unplaced_steps(job(waiting), raw(waiting), WALL) == ()


def test_a_finished_job_is_not_reset() -> None:
    done = elsewhere(conditions=[condition("Complete")], succeeded=1)
    assert KIND.unplaced_steps(job(done), raw(done), WALL) == ()


@pytest.mark.parametrize(
    ("succeeded", "said"),
    [(True, ["SuccessCriteriaMet", "Complete"]), (False, ["FailureTarget", "Failed"])],
)
def test_the_smallest_end_of_a_job_is_its_conditions_and_no_pod(succeeded: bool, said: list[str]) -> None:
    user = elsewhere(active=2, ready=1, succeeded=1, startTime=WALL)
    body = KIND.end_patch(job(user), raw(user), ObjectEnd(succeeded=succeeded, message="so"), WALL)
    assert body is not None
    after = merged(user, body)["status"]
    assert [one["type"] for one in after["conditions"]] == said
    assert {one["message"] for one in after["conditions"]} == {"so"}
    assert "active" not in after
    assert after["succeeded"] == 1, "counters never fall"
    assert ("completionTime" in after) is succeeded
    assert KIND.end_patch(job({**user, "status": after}), raw(user), ObjectEnd(succeeded=succeeded), WALL) is None


def test_a_suspended_job_takes_no_end() -> None:
    user = elsewhere(suspend=True)
    assert KIND.end_patch(job(user), raw(user), ObjectEnd(succeeded=True), WALL) is None
