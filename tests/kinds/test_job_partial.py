"""A Job that does with fewer pods at once: its Workload, the worker's copy, its own spec while it runs and after."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gatelift_kinds.job.rules import corrected, validate_create, validate_update
from gatelift_kinds.registry import JOB_KIND as KIND
from gatelift_kinds.shared.review import WebhookFacts
from gatelift_kinds.shared.values import MergeConflictError, PatchStep, Placing, PodSetStart, Priority
from support.manager.kind_objects import KEY, WALL, Json, a_job, job, merged, patched, raw, workload

MIN = "kueue.x-k8s.io/job-min-parallelism"
SYNC = "kueue.x-k8s.io/job-completions-equal-parallelism"
BEFORE = "gatelift.dev/parallelism-before"
ELSEWHERE = {"managedBy": "kueue.x-k8s.io/multikueue"}


def a_modest_job(minimum: str = "2", *, sync: bool = False, **spec: Any) -> Json:
    document = a_job(**{"parallelism": 5, "completions": 8, **spec})
    document["metadata"]["annotations"] = {MIN: minimum, **({SYNC: "true"} if sync else {})}
    return document


def workload_document(document: Json) -> Json:
    made: Json = json.loads(KIND.workload_document(job(document), raw(document), Priority()))
    return made


def at_home(document: Json, count: int) -> Json:
    placing = Placing(key=KEY, origin="home", namespace="ns", starts=(PodSetStart(pod_set="main", count=count),))
    return patched(document, KIND.local_lift_patch(job(document), raw(document), placing))


@pytest.mark.parametrize(
    ("minimum", "spec", "least"),
    [
        pytest.param("2", {}, 2, id="fewer"),
        pytest.param("5", {}, None, id="all"),
        pytest.param("0", {}, None, id="none"),
        pytest.param("x", {}, None, id="no number"),
        pytest.param("3", {"completions": 3}, None, id="as many as there is to do"),
        pytest.param("2", {"completions": 3}, 2, id="fewer than there is to do"),
    ],
)
def test_the_pod_set_says_with_how_few_it_can_do(minimum: str, spec: Json, least: int | None) -> None:
    [pod_set] = workload_document(a_modest_job(minimum, **spec))["spec"]["podSets"]
    assert pod_set.get("minCount") == least


def test_an_elastic_job_is_never_admitted_in_part() -> None:
    document = a_modest_job()
    document["metadata"]["annotations"]["kueue.x-k8s.io/elastic-job"] = "true"
    assert "minCount" not in workload_document(document)["spec"]["podSets"][0]


def test_a_workload_is_made_anew_when_the_least_changes() -> None:
    made = workload(json.dumps(workload_document(a_modest_job("2"))).encode())
    assert KIND.equivalent(made, job(a_modest_job("2")))
    assert not KIND.equivalent(made, job(a_modest_job("3")))


def test_the_workers_job_runs_as_many_pods_as_were_granted() -> None:
    document = a_modest_job()
    [part] = KIND.parts(job(document), raw(document), {"main": 3})
    spec = json.loads(part.spec)
    assert (spec["parallelism"], spec["completions"]) == (3, 8)
    [whole] = KIND.parts(job(document), raw(document), {"main": 5})
    assert json.loads(whole.spec)["parallelism"] == 5
    unasked = a_job(parallelism=5)
    [same] = KIND.parts(job(unasked), raw(unasked), {"main": 3})
    assert json.loads(same.spec)["parallelism"] == 5, "a Job that did not ask for it is never lowered"


def test_completions_follow_where_they_are_to_equal_parallelism() -> None:
    document = a_modest_job(sync=True, completions=5, completionMode="Indexed")
    [part] = KIND.parts(job(document), raw(document), {"main": 3})
    assert (json.loads(part.spec)["parallelism"], json.loads(part.spec)["completions"]) == (3, 3)
    plain = a_modest_job(sync=True, completions=5)
    [kept] = KIND.parts(job(plain), raw(plain), {"main": 3})
    assert json.loads(kept.spec)["completions"] == 5, "only an Indexed Job's completions may change"


@pytest.mark.parametrize("sync", [False, True])
def test_the_users_job_shows_it_while_it_runs_elsewhere_and_is_as_before_after_that(sync: bool) -> None:
    before = a_modest_job(sync=sync, completions=5, completionMode="Indexed", suspend=True, **ELSEWHERE)
    step = KIND.placed_step(job(before), KEY, {"main": 3})
    assert step is not None
    running = merged(before, step.body)
    assert (running["spec"]["suspend"], running["spec"]["parallelism"]) == (False, 3)
    assert running["spec"]["completions"] == (3 if sync else 5)
    assert KIND.placed_step(job(running), KEY, {"main": 3}) is None
    assert KIND.equivalent(workload(json.dumps(workload_document(before)).encode()), job(running))
    [part] = KIND.parts(job(running), raw(running), {"main": 3})
    assert json.loads(part.spec)["parallelism"] == 3, "a template that is sent again is the same"
    after = running
    for back in KIND.unplaced_steps(job(running), raw(running), WALL):
        if not back.subresource:
            after = merged(after, back.body)
    assert after["spec"] == before["spec"]
    assert BEFORE not in after["metadata"]["annotations"]
    assert not KIND.unplaced_steps(job(after), raw(after), WALL)


@pytest.mark.parametrize("sync", [False, True])
def test_at_home_it_is_lowered_with_the_start_and_put_back_with_the_template(sync: bool) -> None:
    before = a_modest_job(sync=sync, completions=5, completionMode="Indexed")
    running = at_home(before, 3)
    assert (running["spec"]["suspend"], running["spec"]["parallelism"]) == (False, 3)
    assert running["spec"]["completions"] == (3 if sync else 5)
    running["metadata"]["generation"] = 2
    running["status"] = {"startTime": WALL, "conditions": [], "active": 3}
    after = running
    for _ in range(5):
        step = KIND.local_stop_step(job(after), raw(after), KEY)
        if step is None:
            break
        assert isinstance(step, PatchStep)
        after = (patched if "json-patch" in step.kind.value else merged)(after, step.body)
        if step.subresource == "status":
            after["status"]["conditions"].append({"type": "Suspended", "status": "True", "reason": "JobSuspended"})
    assert after["spec"] == {**before["spec"], "podReplacementPolicy": "Failed"}
    assert BEFORE not in after["metadata"]["annotations"]


def stopped_at_home(document: Json) -> Json:
    """Return a Job as it is after it was stopped at home and its pods are gone."""
    after = {**document, "metadata": {**document["metadata"], "generation": 3}}
    after["status"] = {"startTime": WALL, "conditions": [], "active": 0}
    while (step := KIND.local_stop_step(job(after), raw(after), KEY)) is not None:
        assert isinstance(step, PatchStep)
        after = (patched if "json-patch" in step.kind.value else merged)(after, step.body)
        if step.subresource == "status":
            after["status"]["conditions"].append({"type": "Suspended", "status": "True", "reason": "JobSuspended"})
    return after


def back_at_home(document: Json) -> Json:
    """Return a user's Job as it is when it runs elsewhere no more."""
    for back in KIND.unplaced_steps(job(document), raw(document), WALL):
        if not back.subresource:
            document = merged(document, back.body)
    return document


@pytest.mark.parametrize("home", [True, False], ids=["at home", "elsewhere"])
@pytest.mark.parametrize(
    ("said", "size"),
    [
        pytest.param({"parallelism": 3}, (3, 6), id="fewer pods"),
        pytest.param({"parallelism": 6}, (6, 6), id="as many as asked for"),
        pytest.param({"parallelism": 2, "completions": 2}, (2, 2), id="and completions"),
        pytest.param({"parallelism": 9, "completions": 9}, (9, 9), id="more pods"),
        pytest.param({}, (6, 6), id="nothing"),
    ],
)
@pytest.mark.parametrize("sync", [False, True])
def test_hd_218_what_its_user_changes_as_he_suspends_it_is_not_put_back(
    sync: bool, said: Json, size: tuple[int, int], home: bool
) -> None:
    before = a_modest_job(sync=sync, parallelism=6, completions=6, completionMode="Indexed", suspend=True)
    if home:
        runs = at_home(before, 4)
    else:
        before["spec"] |= ELSEWHERE
        step = KIND.placed_step(job(before), KEY, {"main": 4})
        assert step is not None
        runs = merged(before, step.body)
    assert runs["spec"]["parallelism"] == 4
    edited = merged(runs, json.dumps({"spec": {**said, "suspend": True}}).encode())
    [pod_set] = workload_document(edited)["spec"]["podSets"]
    assert pod_set["count"] == min(size), "it is queued anew so"
    after = (stopped_at_home if home else back_at_home)(edited)
    assert BEFORE not in after["metadata"]["annotations"]
    assert (after["spec"]["parallelism"], after["spec"]["completions"]) == size


def test_hd_218_a_note_without_what_it_was_lowered_to_is_put_back_as_it_was() -> None:
    runs = at_home(a_modest_job(parallelism=6, completions=6), 4)
    runs["metadata"]["annotations"][BEFORE] = '{"parallelism":6,"completions":6}'
    assert stopped_at_home(merged(runs, b'{"spec": {"suspend": true}}'))["spec"]["parallelism"] == 6


def test_all_pods_ready_are_as_many_as_run_at_once_now() -> None:
    running = at_home(a_modest_job(), 3)
    assert KIND.pods_ready(job({**running, "status": {"ready": 3}}))
    assert not KIND.pods_ready(job({**running, "status": {"ready": 2}}))
    assert KIND.pods_ready(job({**running, "status": {"ready": 1, "succeeded": 2}}))


def test_a_job_that_runs_with_the_least_may_be_suspended() -> None:
    running = at_home(a_modest_job("3"), 3)
    stopped = merged(running, b'{"spec": {"suspend": true}}')
    facts = WebhookFacts()
    assert not validate_update(running, stopped, facts).errors
    del stopped["metadata"]["annotations"][BEFORE]
    assert validate_update(running, stopped, facts).errors, "with three pods of its own the least would have to be two"


def test_a_mark_that_cannot_be_read_counts_as_none() -> None:
    document = a_modest_job()
    document["metadata"]["annotations"][BEFORE] = "five"
    assert workload_document(document)["spec"]["podSets"][0]["count"] == 5


@pytest.mark.parametrize(
    "said",
    [
        '{"parallelism":1}',
        '{"parallelism":1,"completions":8}',
        '{"parallelism":9,"completions":1}',
        '{"parallelism":9}',
    ],
)
def test_hd_131_an_annotation_never_makes_a_job_smaller_than_its_spec(said: str) -> None:
    document = a_modest_job()
    document["spec"].update(suspend=True, **ELSEWHERE)
    document["metadata"]["annotations"][BEFORE] = said
    assert workload_document(document)["spec"]["podSets"][0]["count"] == 5
    [step] = [one for one in KIND.unplaced_steps(job(document), raw(document), WALL) if not one.subresource]
    after = merged(document, step.body)
    assert after["spec"] == document["spec"], "nor is it put back to that"
    assert BEFORE not in after["metadata"]["annotations"]


def test_hd_131_what_is_let_go_is_compared_with_what_was_granted() -> None:
    document = a_job(parallelism=5, completions=8)
    document["metadata"]["annotations"] = {BEFORE: '{"parallelism":1}'}
    with pytest.raises(MergeConflictError, match=r"spec\.parallelism: 5 pods .* 1 were admitted"):
        at_home(document, 1)
    with pytest.raises(MergeConflictError, match=r"spec\.parallelism: 5 pods .* 1 were admitted"):
        document_at_worker(document, 1)
    assert document_at_worker(document, 5)["spec"]["parallelism"] == 5


def document_at_worker(document: Json, count: int) -> Json:
    placing = Placing(key=KEY, origin="home", namespace="ns", starts=(PodSetStart(pod_set="main", count=count),))
    [part] = KIND.parts(job(document), raw(document), {"main": count})
    made: Json = json.loads(KIND.document(part, placing))
    return made


@pytest.mark.parametrize(
    "name", [pytest.param(BEFORE, id="size"), pytest.param("gatelift.dev/template-before", id="HD-195 template")]
)
@pytest.mark.parametrize("was", [None, '{"parallelism":5}'])
@pytest.mark.parametrize("said", [None, '{"parallelism":1}', '{"parallelism":7}'])
def test_hd_131_nobody_but_gatelift_writes_what_a_job_had_before(was: str | None, said: str | None, name: str) -> None:
    old, new = a_job(parallelism=5, suspend=True), a_job(parallelism=5, suspend=True)
    for document, value in ((old, was), (new, said)):
        document["metadata"]["annotations"] = {} if value is None else {name: value}
    errors = [str(one) for one in validate_update(old, new, WebhookFacts()).errors]
    assert bool(errors) == (was != said)
    assert all(one.startswith(f"metadata.annotations[{name}]: Invalid value") for one in errors)
    assert all("written by Gatelift alone" in one and "leave it" in one for one in errors)
    assert not validate_update(old, new, WebhookFacts(by_agent=True)).errors
    assert validate_create(new, WebhookFacts()).allowed == (said is None)


def test_hd_132_a_pod_is_replaced_when_it_has_ended_whatever_the_job_says() -> None:
    document = a_job(parallelism=5, completions=8, podReplacementPolicy="TerminatingOrFailed")
    assert at_home(document, 5)["spec"]["podReplacementPolicy"] == "Failed"
    assert document_at_worker(document, 5)["spec"]["podReplacementPolicy"] == "Failed"


def test_hd_132_a_job_that_runs_goes_on_so() -> None:
    document = at_home(a_job(parallelism=5, completions=8), 5)
    document["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "q"
    edited = merged(document, b'{"spec": {"podReplacementPolicy": "TerminatingOrFailed"}}')
    correction = corrected(document, edited, WebhookFacts())
    assert correction.operations == ({"op": "add", "path": "/spec/podReplacementPolicy", "value": "Failed"},)
    assert "podReplacementPolicy: stays Failed" in correction.warnings[0]
    assert not corrected(document, document, WebhookFacts()).operations
    assert not corrected(document, edited, WebhookFacts(by_agent=True)).operations


def running_with_fewer(count: int = 4, *, sync: bool = False) -> tuple[Json, Json]:
    """Return a Job as its manifest says it, and as it runs with fewer pods at once."""
    document = a_modest_job("2", sync=sync, parallelism=6, completions=6, completionMode="Indexed")
    document["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "q"}
    return document, at_home(document, count)


def after_webhooks(old: Json, new: Json, facts: WebhookFacts = WebhookFacts()) -> Json:  # noqa: B008 - frozen
    """Return what is stored of an update of which nothing is refused."""
    stored = patched(new, json.dumps(corrected(old, new, facts).operations).encode())
    assert not validate_update(old, stored, facts).errors
    return stored


@pytest.mark.parametrize("sync", [False, True])
def test_hd_212_a_manifest_that_is_applied_again_changes_nothing_of_a_job_that_runs_with_fewer(sync: bool) -> None:
    manifest, runs = running_with_fewer(sync=sync)
    said = {key: manifest["spec"][key] for key in ("parallelism", "completions")}
    applied = merged(runs, json.dumps({"spec": said}).encode())
    assert applied != runs
    assert after_webhooks(runs, applied) == runs
    [warning] = corrected(runs, applied, WebhookFacts()).warnings
    assert "spec.parallelism: stays 4 while the Job runs" in warning
    assert "suspend it" in warning
    assert not corrected(runs, runs, WebhookFacts()).warnings


@pytest.mark.parametrize("wanted", [3, 5, 7, None])
def test_hd_212_another_size_is_refused_once_as_ever(wanted: int | None) -> None:
    _, runs = running_with_fewer()
    edited = merged(runs, json.dumps({"spec": {"parallelism": wanted}}).encode())
    assert not corrected(runs, edited, WebhookFacts()).operations
    verdict = validate_update(runs, edited, WebhookFacts())
    [error] = [str(one) for one in verdict.errors]
    assert "is immutable while a partially admitted Job runs: suspend it first" in error
    assert not verdict.warnings, "it is not stopped by what is not taken"


def test_hd_212_a_job_that_is_suspended_gatelifts_own_writes_and_a_note_of_less_are_left_alone() -> None:
    manifest, runs = running_with_fewer()
    size = {"parallelism": 6}
    stops = merged(runs, json.dumps({"spec": {**size, "suspend": True}}).encode())
    assert not corrected(runs, stops, WebhookFacts()).operations
    back = merged(runs, json.dumps({"spec": size}).encode())
    assert not corrected(runs, back, WebhookFacts(by_agent=True)).operations
    runs["metadata"]["annotations"][BEFORE] = '{"parallelism":2}'
    lower = merged(runs, b'{"spec": {"parallelism": 2, "completions": null}}')
    assert not corrected(runs, lower, WebhookFacts()).operations, "no lowering of ours says so"
    assert manifest["spec"]["parallelism"] == 6
