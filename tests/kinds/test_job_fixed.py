"""HD-170: what a run that has begun takes no notice of is not taken without a word."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from gatelift_kinds.job import fixed as job_fixed
from gatelift_kinds.job.rules import validate_update
from gatelift_kinds.shared import markers
from support.manager.webhook_documents import ELSEWHERE, FACTS, Json, Q, a_job, told

AWAY: Json = {"managedBy": markers.MULTIKUEUE_MANAGER}
LEAST = markers.JOB_MIN_PARALLELISM
HOLDS = replace(ELSEWHERE, reserved_by="job-x-12345")


def changed(before: Json, **spec: Any) -> Json:
    after: Json = json.loads(json.dumps(before))
    after["spec"] |= spec
    return after


def with_least(before: Json, least: str | None) -> Json:
    after: Json = json.loads(json.dumps(before))
    after["metadata"]["annotations"] = {} if least is None else {LEAST: least}
    return after


@pytest.mark.parametrize("field", [pytest.param(each, id=f"HD-170 {each}") for each in job_fixed.FIELDS])
@pytest.mark.parametrize("was", [{}, {"it": 7}], ids=["given", "changed"])
def test_a_job_that_runs_on_a_worker_keeps_what_only_the_worker_would_act_on(field: str, was: Json) -> None:
    running = a_job(Q, suspend=False, parallelism=2, **{**AWAY, **({field: 7} if was else {})})
    refused = (
        f'spec.{field}: Invalid value: "3": is not passed on to the cluster where the Job runs: '
        "suspend it first, and it is queued again as it is then; or make a new Job"
    )
    assert told(validate_update(running, changed(running, **{field: 3}), ELSEWHERE)) == [refused]


@pytest.mark.parametrize("field", job_fixed.FIELDS)
def test_at_home_its_own_controller_acts_on_it(field: str) -> None:
    running = a_job(Q, suspend=False, parallelism=2)
    assert validate_update(running, changed(running, **{field: 3}), FACTS).allowed


@pytest.mark.parametrize("spec", [AWAY, {}], ids=["on a worker", "at home"])
@pytest.mark.parametrize(("was", "now"), [(None, "1"), ("1", "2"), ("1", None)])
def test_hd_170_with_how_few_pods_a_job_may_do_is_not_asked_while_it_runs(
    spec: Json, was: str | None, now: str | None
) -> None:
    running = with_least(a_job(Q, suspend=False, parallelism=4, **spec), was)
    said = f'"{now or ""}": is immutable while the Job runs: suspend it first'
    assert told(validate_update(running, with_least(running, now), FACTS)) == [
        f"metadata.annotations[{LEAST}]: Invalid value: {said}"
    ]


def test_what_suspends_it_in_the_same_write_may_change_it() -> None:
    running = a_job(Q, suspend=False, parallelism=4, **AWAY)
    after = with_least(changed(running, suspend=True, backoffLimit=1, activeDeadlineSeconds=9), "2")
    assert validate_update(running, after, ELSEWHERE).allowed


def test_hd_170_what_waits_may_be_changed_and_is_warned_of_when_it_may_be_starting() -> None:
    waiting = a_job(Q, suspend=True, parallelism=4, **AWAY)
    after = with_least(changed(waiting, activeDeadlineSeconds=9), "2")
    free = validate_update(waiting, after, ELSEWHERE)
    assert (free.errors, free.warnings) == ((), ())
    held = validate_update(waiting, after, HOLDS)
    assert not held.errors
    late = "its Workload job-x-12345 holds quota: if that is being started now, this counts from its next start on"
    assert held.warnings == (f"spec.activeDeadlineSeconds: {late}", f"metadata.annotations[{LEAST}]: {late}")


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(a_job(None, suspend=False, parallelism=2, **AWAY), id="in no queue"),
        pytest.param(
            {
                **a_job(Q, suspend=False, parallelism=2, **AWAY),
                "status": {"conditions": [{"type": "Complete", "status": "True"}]},
            },
            id="over",
        ),
    ],
)
def test_what_is_none_of_ours_or_over_is_left_alone(document: Json) -> None:
    assert validate_update(document, changed(document, activeDeadlineSeconds=9), ELSEWHERE).allowed


def test_so_is_what_an_agent_writes_and_everything_else() -> None:
    running = a_job(Q, suspend=False, parallelism=2, **AWAY)
    assert validate_update(running, changed(running, backoffLimit=1), replace(ELSEWHERE, by_agent=True)).allowed
    assert validate_update(running, changed(running, ttlSecondsAfterFinished=1), ELSEWHERE).allowed
    both = with_least(changed(running, backoffLimit=1), None)
    assert validate_update(both, both, ELSEWHERE).allowed
