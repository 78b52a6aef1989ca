"""Jobs: defaults, rules, and what their controller makes of them. On the embedded and the real control plane.

The tests play the kubelet: they bind pods and write their status.
"""

from __future__ import annotations

from typing import Any

import pytest

from support.servers.contract_api import Api, condition, job

pytestmark = pytest.mark.contract

TRACKING = "batch.kubernetes.io/job-tracking"


class Place:
    """A namespace with its Jobs and pods."""

    def __init__(self, api: Api, space: str) -> None:
        self.api = api
        self.jobs = f"/apis/batch/v1{space.removeprefix('/api/v1')}/jobs"
        self.pods = f"{space}/pods"

    @classmethod
    async def make(cls, api: Api) -> Place:
        """Return a new one."""
        return cls(api, await api.namespace())

    async def has_pods(self, count: int) -> list[Any]:
        """Wait until that many pods are there that are not being deleted."""

        def met(found: Any) -> bool:
            return len([p for p in found["items"] if "deletionTimestamp" not in p["metadata"]]) == count

        found = await self.api.until(self.pods, met)
        return [p for p in found["items"] if "deletionTimestamp" not in p["metadata"]]

    async def ends(self, pod: Any, phase: str) -> None:
        """Write the phase of a pod, as its kubelet would."""
        (await self.api.patch(f"{self.pods}/{pod['metadata']['name']}/status", {"status": {"phase": phase}})).ok()

    async def stops(self, pod: Any) -> None:
        """Bind a pod, and delete it with a grace that nobody waits for."""
        path = await self.is_bound(pod)
        (await self.api.delete(path)).ok()

    async def is_bound(self, pod: Any) -> str:
        """Bind a pod to a node without a kubelet: deleted, it stops for ever. Return its path."""
        path, node = f"{self.pods}/{pod['metadata']['name']}", f"node-of-{pod['metadata']['name']}"
        closed = {"metadata": {"name": node}, "spec": {"unschedulable": True}}
        (await self.api.post("/api/v1/nodes", closed)).ok()
        target = {"metadata": {"name": pod["metadata"]["name"]}, "target": {"kind": "Node", "name": node}}
        (await self.api.post(f"{path}/binding", target)).ok()
        return path

    async def status(self, met: Any) -> Any:
        """Wait for a status of Job `a`."""
        return (await self.api.until(f"{self.jobs}/a", lambda found: met(found.get("status", {}))))["status"]


def is_true(status: Any, kind: str) -> bool:
    """Return whether a condition is True."""
    return bool(condition({"status": status}, kind).get("status") == "True")


async def test_a_job_gets_defaults_a_selector_and_labels_of_its_own(api: Api) -> None:
    place = await Place.make(api)
    made = (await api.post(place.jobs, job("a", suspend=True))).ok()
    spec, uid = made["spec"], made["metadata"]["uid"]
    expected = {"parallelism": 1, "completions": 1, "backoffLimit": 6, "completionMode": "NonIndexed", "suspend": True}
    assert {key: spec[key] for key in expected} == expected
    assert spec["podReplacementPolicy"] == "TerminatingOrFailed"
    assert spec["manualSelector"] is False
    assert spec["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    labels = {
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": "a",
        "controller-uid": uid,
        "job-name": "a",
    }
    assert spec["template"]["metadata"]["labels"] == labels
    assert made["metadata"]["labels"] == labels
    assert made["metadata"]["generation"] == 1
    assert spec["template"]["spec"]["schedulerName"] == "default-scheduler"


async def test_limits_stand_in_for_requests_in_the_pods_of_a_job_and_not_in_its_template(api: Api) -> None:
    place = await Place.make(api)
    document = job("a")
    document["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "1"}}
    made = (await api.post(place.jobs, document)).ok()
    assert made["spec"]["template"]["spec"]["containers"][0]["resources"] == {"limits": {"cpu": "1"}}
    (one,) = await place.has_pods(1)
    assert one["spec"]["containers"][0]["resources"] == {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}


async def test_hd_152_limits_of_a_job_come_before_the_default_of_a_limit_range(api: Api, real: str | None) -> None:
    place = await Place.make(api)
    item = {"type": "Container", "default": {"cpu": "2"}, "defaultRequest": {"cpu": "100m", "memory": "1Mi"}}
    ranges = place.pods.removesuffix("/pods") + "/limitranges"
    (await api.post(ranges, {"metadata": {"name": "a"}, "spec": {"limits": [item]}})).ok()
    document = job("a")
    document["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "1"}}
    (await api.post(place.jobs, document)).ok()
    (one,) = await place.has_pods(1)
    requests = one["spec"]["containers"][0]["resources"]["requests"]
    assert requests["cpu"] == "1"
    assert "memory" in requests or real is None  # the embedded server has no LimitRanger


async def test_parallelism_alone_leaves_completions_open(api: Api) -> None:
    place = await Place.make(api)
    made = (await api.post(place.jobs, job("a", suspend=True, parallelism=3))).ok()
    assert made["spec"]["parallelism"] == 3
    assert "completions" not in made["spec"]


async def test_labels_of_the_template_become_the_jobs(api: Api) -> None:
    place = await Place.make(api)
    document = job("a", suspend=True)
    document["spec"]["template"]["metadata"] = {"labels": {"app": "x"}}
    made = (await api.post(place.jobs, document)).ok()
    assert made["metadata"]["labels"] == made["spec"]["template"]["metadata"]["labels"]
    assert made["metadata"]["labels"]["app"] == "x"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"parallelism": -1}, "spec.parallelism: Invalid value: -1: must be greater than or equal to 0"),
        ({"completions": -1}, "spec.completions: Invalid value: -1: must be greater than or equal to 0"),
        ({"backoffLimit": -1}, "spec.backoffLimit: Invalid value: -1: must be greater than or equal to 0"),
        (
            {"managedBy": "me"},
            'spec.managedBy: Invalid value: "me": must be a domain-prefixed path (such as "acme.io/foo")',
        ),
        (
            {"completionMode": "Indexed", "parallelism": 1},
            "spec.completions: Required value: when completion mode is Indexed",
        ),
    ],
)
async def test_a_job_that_breaks_a_rule_is_invalid(api: Api, spec: Any, message: str) -> None:
    place = await Place.make(api)
    said = await api.post(place.jobs, job("a", **spec))
    assert (said.code, said.reason) == (422, "Invalid")
    assert said.message == f'Job.batch "a" is invalid: {message}'


async def test_a_job_needs_a_restart_policy(api: Api) -> None:
    place = await Place.make(api)
    document = job("a")
    del document["spec"]["template"]["spec"]["restartPolicy"]
    said = await api.post(place.jobs, document)
    assert said.message == (
        'Job.batch "a" is invalid: spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"'
    )


@pytest.mark.parametrize(
    ("patch", "field"),
    [
        ({"managedBy": "example.com/me"}, "spec.managedBy"),
        ({"completions": 3}, "spec.completions"),
        ({"completionMode": "Indexed"}, "spec.completionMode"),
        ({"selector": {"matchLabels": {"a": "b"}}}, "spec.selector"),
        ({"template": {"spec": {"restartPolicy": "OnFailure"}}}, "spec.template"),
    ],
)
async def test_what_a_job_is_made_of_stays(api: Api, patch: Any, field: str) -> None:
    place = await Place.make(api)
    await api.post(place.jobs, job("a", suspend=True))
    said = await api.patch(f"{place.jobs}/a", {"spec": patch})
    assert (said.code, said.reason) == (422, "Invalid")
    assert field in said.message
    assert "field is immutable" in said.message


async def test_where_a_suspended_jobs_pods_run_may_change(api: Api) -> None:
    place = await Place.make(api)
    await api.post(place.jobs, job("a", suspend=True))
    template = {
        "metadata": {"labels": {"more": "yes"}, "annotations": {"x": "y"}},
        "spec": {"nodeSelector": {"a": "b"}, "tolerations": [{"key": "k", "operator": "Exists"}]},
    }
    changed = (await api.patch(f"{place.jobs}/a", {"spec": {"template": template}})).ok()
    assert changed["spec"]["template"]["spec"]["nodeSelector"] == {"a": "b"}
    assert changed["metadata"]["generation"] == 2


async def test_where_a_running_jobs_pods_run_may_not_change(api: Api) -> None:
    place = await Place.make(api)
    await api.post(place.jobs, job("a"))
    await place.has_pods(1)
    said = await api.patch(f"{place.jobs}/a", {"spec": {"template": {"spec": {"nodeSelector": {"a": "b"}}}}})
    assert (said.code, said.reason) == (422, "Invalid")


async def test_a_suspended_job_says_so_and_has_no_pods(api: Api) -> None:
    place = await Place.make(api)
    await api.post(place.jobs, job("a", suspend=True))
    status = await place.status(lambda s: is_true(s, "Suspended"))
    suspended = condition({"status": status}, "Suspended")
    assert (suspended["reason"], suspended["message"]) == ("JobSuspended", "Job suspended")
    assert "startTime" not in status
    assert (await api.get(place.pods)).ok()["items"] == []


async def test_a_job_of_another_manager_is_left_alone(api: Api) -> None:
    place = await Place.make(api)
    await api.post(place.jobs, job("b", managedBy="example.com/other"))
    await api.post(place.jobs, job("a"))
    (pod,) = await place.has_pods(1)
    assert pod["metadata"]["ownerReferences"][0]["name"] == "a"
    assert (await api.get(f"{place.jobs}/b")).ok()["status"] == {}


async def test_a_jobs_pods_are_owned_labelled_and_tracked(api: Api) -> None:
    place = await Place.make(api)
    made = (await api.post(place.jobs, job("a", parallelism=2, completions=2))).ok()
    pods = await place.has_pods(2)
    for pod in pods:
        about = pod["metadata"]
        assert about["name"].startswith("a-")
        assert about["generateName"] == "a-"
        assert about["finalizers"] == [TRACKING]
        assert about["labels"] == made["spec"]["template"]["metadata"]["labels"]
        assert about["ownerReferences"] == [
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "name": "a",
                "uid": made["metadata"]["uid"],
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ]
    status = await place.status(lambda s: s.get("active") == 2)
    assert status["startTime"]
    assert (status["ready"], status["terminating"]) == (0, 0)


async def test_a_job_completes_when_enough_pods_have_succeeded(api: Api) -> None:
    place = await Place.make(api)
    await api.post(place.jobs, job("a", parallelism=1, completions=2))
    (first,) = await place.has_pods(1)
    await place.ends(first, "Succeeded")
    await place.status(lambda s: s.get("succeeded") == 1 and s.get("active") == 1)
    pods = (await api.get(place.pods)).ok()["items"]
    (second,) = (p for p in pods if p["metadata"]["name"] != first["metadata"]["name"])
    await place.ends(second, "Succeeded")
    status = await place.status(lambda s: is_true(s, "Complete"))
    assert status["succeeded"] == 2
    assert "active" not in status
    assert status["completionTime"]
    assert status["uncountedTerminatedPods"] == {}
    complete = condition({"status": status}, "Complete")
    assert complete["reason"] == "CompletionsReached"
    assert complete["message"] == "Reached expected number of succeeded pods"
    assert is_true(status, "SuccessCriteriaMet")
    for pod in (await api.get(place.pods)).ok()["items"]:
        assert "finalizers" not in pod["metadata"]


async def test_a_ready_pod_is_counted_as_ready(api: Api) -> None:
    place = await Place.make(api)
    await api.post(place.jobs, job("a"))
    (pod,) = await place.has_pods(1)
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    await api.patch(f"{place.pods}/{pod['metadata']['name']}/status", {"status": ready})
    status = await place.status(lambda s: s.get("ready") == 1)
    assert status["active"] == 1


async def test_a_job_fails_when_its_backoff_limit_is_passed(api: Api) -> None:
    place = await Place.make(api)
    await api.post(place.jobs, job("a", backoffLimit=0))
    (pod,) = await place.has_pods(1)
    await place.ends(pod, "Failed")
    status = await place.status(lambda s: is_true(s, "Failed"))
    assert status["failed"] == 1
    failed = condition({"status": status}, "Failed")
    assert failed["reason"] == "BackoffLimitExceeded"
    assert failed["message"] == "Job has reached the specified backoff limit"
    assert is_true(status, "FailureTarget")
    assert "completionTime" not in status


async def test_a_failed_pod_is_replaced(api: Api) -> None:
    place = await Place.make(api)
    await api.post(place.jobs, job("a", backoffLimit=3))
    (pod,) = await place.has_pods(1)
    await place.ends(pod, "Failed")
    pods = await place.has_pods(2)
    assert sorted(p["status"]["phase"] for p in pods) == ["Failed", "Pending"]
    await place.status(lambda s: s.get("failed") == 1 and s.get("active") == 1)


async def test_hd_132_a_running_job_may_be_told_to_replace_pods_when_they_have_ended(api: Api) -> None:
    place = await Place.make(api)
    await api.post(place.jobs, job("a", backoffLimit=3, parallelism=1, completions=2))
    (first,) = await place.has_pods(1)
    # A controller hears of Jobs and of pods by two watches: the second pod shows that it has heard of the policy.
    (await api.patch(f"{place.jobs}/a", {"spec": {"podReplacementPolicy": "Failed", "parallelism": 2}})).ok()
    names = {pod["metadata"]["name"] for pod in await place.has_pods(2)}
    await place.stops(first)
    status = await place.status(lambda s: s.get("terminating") == 1)
    assert (status["active"], "failed" in status) == (1, False)
    (beside,) = await place.has_pods(1)
    assert {first["metadata"]["name"], beside["metadata"]["name"]} == names
    await place.ends(first, "Failed")
    second = {pod["metadata"]["name"] for pod in await place.has_pods(2)} - names
    assert len(second) == 1
    await place.status(lambda s: s.get("failed") == 1 and s.get("active") == 2 and not s.get("terminating"))


async def test_a_job_that_has_failed_counts_pods_that_stop_and_says_so_when_they_have(api: Api) -> None:
    place = await Place.make(api)
    await api.post(place.jobs, job("a", podReplacementPolicy="Failed", activeDeadlineSeconds=15))
    (pod,) = await place.has_pods(1)
    await place.stops(pod)
    status = await place.status(lambda s: is_true(s, "FailureTarget") and s.get("failed") == 1)
    assert status["terminating"] == 1
    assert not is_true(status, "Failed")
    await place.ends(pod, "Failed")
    await place.status(lambda s: is_true(s, "Failed") and not s.get("terminating"))


async def test_hd_298_a_job_that_announces_its_end_says_no_suspension_and_needs_a_start_time(
    api: Api,
) -> None:
    place = await Place.make(api)
    await api.post(place.jobs, job("a", backoffLimit=0, parallelism=2, completions=2))
    first, second = await place.has_pods(2)
    await place.is_bound(second)
    await place.status(lambda s: s.get("active") == 2)
    await place.ends(first, "Failed")
    await place.status(lambda s: is_true(s, "FailureTarget") and s.get("terminating") == 1)
    (await api.patch(f"{place.jobs}/a", {"spec": {"suspend": True}})).ok()
    (await api.patch(f"{place.jobs}/a/status", {"status": {"startTime": None}})).ok()
    found = (await api.get(f"{place.jobs}/a")).ok()
    assert "startTime" not in found["status"]
    failed = {"type": "Failed", "status": "True", "lastTransitionTime": found["metadata"]["creationTimestamp"]}
    ended = {"terminating": None, "conditions": [*found["status"]["conditions"], failed]}
    refused = await api.patch(f"{place.jobs}/a/status", {"status": ended})
    assert refused.code == 422
    assert "startTime is required for finished job" in refused.message
    start = found["metadata"]["creationTimestamp"]
    (await api.patch(f"{place.jobs}/a/status", {"status": {"startTime": start}})).ok()
    await place.ends(second, "Failed")
    status = await place.status(lambda s: is_true(s, "Failed"))
    assert not is_true(status, "Suspended")


async def test_a_pod_that_stops_and_never_had_a_node_has_failed(api: Api) -> None:
    place = await Place.make(api)
    await api.post(place.jobs, job("a", backoffLimit=3, podReplacementPolicy="Failed"))
    (first,) = await place.has_pods(1)
    (await api.delete(f"{place.pods}/{first['metadata']['name']}")).ok()
    await place.status(lambda s: s.get("failed") == 1)
    (second,) = await place.has_pods(1)
    assert second["metadata"]["name"] != first["metadata"]["name"]


async def test_suspending_deletes_the_pods_and_counts_no_failure(api: Api) -> None:
    place = await Place.make(api)
    await api.post(place.jobs, job("a", parallelism=2, completions=2))
    await place.has_pods(2)
    await place.status(lambda s: s.get("active") == 2)
    await api.patch(f"{place.jobs}/a", {"spec": {"suspend": True}})
    await place.has_pods(0)
    status = await place.status(lambda s: is_true(s, "Suspended") and "active" not in s)
    assert "failed" not in status


async def test_resuming_starts_anew(api: Api) -> None:
    place = await Place.make(api)
    await api.post(place.jobs, job("a", suspend=True))
    await place.status(lambda s: is_true(s, "Suspended"))
    await api.patch(f"{place.jobs}/a", {"spec": {"suspend": False}})
    await place.has_pods(1)
    status = await place.status(lambda s: s.get("active") == 1)
    resumed = condition({"status": status}, "Suspended")
    assert (resumed["status"], resumed["reason"], resumed["message"]) == ("False", "JobResumed", "Job resumed")
    assert status["startTime"]


async def test_less_parallelism_deletes_surplus_pods(api: Api) -> None:
    place = await Place.make(api)
    await api.post(place.jobs, job("a", parallelism=3, completions=5))
    await place.has_pods(3)
    await api.patch(f"{place.jobs}/a", {"spec": {"parallelism": 1}})
    await place.has_pods(1)
    status = await place.status(lambda s: s.get("active") == 1)
    assert "failed" not in status


async def test_an_indexed_job_numbers_its_pods(api: Api) -> None:
    place = await Place.make(api)
    await api.post(place.jobs, job("a", completionMode="Indexed", parallelism=2, completions=3))
    pods = await place.has_pods(2)
    index = "batch.kubernetes.io/job-completion-index"
    numbered = {p["metadata"]["annotations"][index]: p for p in pods}
    assert sorted(numbered) == ["0", "1"]
    assert numbered["1"]["metadata"]["labels"][index] == "1"
    assert numbered["1"]["spec"]["hostname"] == "a-1"
    (container,) = numbered["1"]["spec"]["containers"]
    assert container["env"][0]["name"] == "JOB_COMPLETION_INDEX"
    await place.ends(numbered["1"], "Succeeded")
    status = await place.status(lambda s: s.get("completedIndexes") == "1")
    assert status["succeeded"] == 1


async def test_sl_25_an_indexed_job_that_shrinks_loses_its_highest_indexes_and_what_they_completed(api: Api) -> None:
    place = await Place.make(api)
    await api.post(place.jobs, job("a", completionMode="Indexed", parallelism=4, completions=4))
    index = "batch.kubernetes.io/job-completion-index"
    numbered = {p["metadata"]["annotations"][index]: p for p in await place.has_pods(4)}
    await place.ends(numbered["3"], "Succeeded")
    await place.status(lambda s: s.get("completedIndexes") == "3")
    (await api.patch(f"{place.jobs}/a", {"spec": {"parallelism": 2, "completions": 2}})).ok()
    status = await place.status(lambda s: s.get("active") == 2 and not s.get("completedIndexes"))
    assert not status.get("succeeded")
    found = (await api.get(place.pods)).body["items"]
    stay = [p for p in found if "deletionTimestamp" not in p["metadata"] and p["status"].get("phase") != "Succeeded"]
    assert sorted(p["metadata"]["annotations"][index] for p in stay) == ["0", "1"]


async def test_a_job_that_is_active_for_too_long_fails(api: Api) -> None:
    place = await Place.make(api)
    await api.post(place.jobs, job("a", activeDeadlineSeconds=1))
    status = await place.status(lambda s: is_true(s, "Failed"))
    assert condition({"status": status}, "Failed")["reason"] == "DeadlineExceeded"


async def test_deleting_a_job_in_the_background_deletes_its_pods(api: Api) -> None:
    place = await Place.make(api)
    await api.post(place.jobs, job("a"))
    await place.has_pods(1)
    await api.delete(f"{place.jobs}/a", {"propagationPolicy": "Background"})
    await api.until(place.pods, lambda found: found["items"] == [])


async def test_deleting_a_job_in_the_foreground_waits_for_its_pods(api: Api) -> None:
    place = await Place.make(api)
    await api.post(place.jobs, job("a"))
    (pod,) = await place.has_pods(1)
    # Its collector waits for the pods that it knows; it has heard of one when the Job's controller, beside it, has.
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    (await api.patch(f"{place.pods}/{pod['metadata']['name']}/status", {"status": ready})).ok()
    await place.status(lambda s: s.get("ready") == 1)
    await api.delete(f"{place.jobs}/a", {"propagationPolicy": "Foreground"})
    await api.until_gone(f"{place.jobs}/a")
    assert (await api.get(place.pods)).ok()["items"] == []


async def test_a_finished_job_goes_when_its_time_to_live_is_over(api: Api) -> None:
    place = await Place.make(api)
    await api.post(place.jobs, job("a", ttlSecondsAfterFinished=0))
    (pod,) = await place.has_pods(1)
    await place.ends(pod, "Succeeded")
    await api.until_gone(f"{place.jobs}/a")


async def test_a_finished_job_stays_finished(api: Api) -> None:
    place = await Place.make(api)
    await api.post(place.jobs, job("a"))
    (pod,) = await place.has_pods(1)
    await place.ends(pod, "Succeeded")
    await place.status(lambda s: is_true(s, "Complete"))
    said = await api.patch(f"{place.jobs}/a/status", {"status": {"conditions": []}})
    assert (said.code, said.reason) == (422, "Invalid")


async def test_the_status_of_a_job_managed_elsewhere_can_be_mirrored(api: Api) -> None:
    place = await Place.make(api)
    await api.post(place.jobs, job("a", managedBy="kueue.x-k8s.io/multikueue"))
    running = {"startTime": "2026-01-01T00:00:00Z", "active": 1, "ready": 1}
    status = (await api.patch(f"{place.jobs}/a/status", {"status": running})).ok()["status"]
    assert (status["active"], status["ready"]) == (1, 1)
    moment = "2026-01-01T00:01:00Z"
    complete = [
        {"type": kind, "status": "True", "lastProbeTime": moment, "lastTransitionTime": moment, "reason": "R"}
        for kind in ("SuccessCriteriaMet", "Complete")
    ]
    done = {"active": None, "ready": None, "succeeded": 1, "completionTime": moment, "conditions": complete}
    status = (await api.patch(f"{place.jobs}/a/status", {"status": done})).ok()["status"]
    assert is_true(status, "Complete")
    assert (await api.get(place.pods)).ok()["items"] == []
