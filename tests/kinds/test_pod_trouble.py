"""IS-45: what keeps a pod from running is read from its status in one line, bounded, the same while it lasts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gatelift_kinds.pod.kind import PodKind
from gatelift_kinds.shared import pod_trouble
from gatelift_kinds.shared.pod_trouble import CRASH, IMAGE, UNSCHEDULABLE, Trouble, first, of_failed, of_status
from gatelift_kube.objects.core import Pod
from gatelift_kube.objects.meta import Condition
from support.manager import kind_objects

SAID = Condition(
    type=pod_trouble.CONDITION,
    status="True",
    reason=UNSCHEDULABLE,
    message="no node",
    last_transition_time="2026-01-01T00:00:00Z",
)
GATED = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}


def waiting(reason: str, **more: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "shop/app:1", "state": {"waiting": {"reason": reason}}, **more}
    return {"phase": "Pending", "containerStatuses": [container]}


def of(status: dict[str, Any]) -> tuple[str, str] | None:
    found = of_status("p", json.dumps(status).encode())
    return (found.reason, found.text) if found is not None else None


def unscheduled(reason: str, message: str = "") -> dict[str, Any]:
    said = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
    return {"phase": "Pending", "conditions": [said]}


ENDED = {"lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}, "restartCount": 4}
CRASHES = "container main ended with exit code 137 (OOMKilled), and is started again and again"


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param(
            unscheduled("Unschedulable", "0/3 nodes are available: 3 Insufficient cpu."),
            (UNSCHEDULABLE, "0/3 nodes are available: 3 Insufficient cpu."),
            id="is-45-no-node",
        ),
        pytest.param(unscheduled("SchedulingGated"), None, id="is-45-a-gate-is-no-trouble"),
        pytest.param(
            waiting("ImagePullBackOff"),
            (IMAGE, 'container main: image "shop/app:1" cannot be pulled or used'),
            id="is-45-image",
        ),
        pytest.param(waiting("ContainerCreating"), None, id="is-45-what-passes-is-no-trouble"),
        pytest.param(waiting("CrashLoopBackOff", **ENDED), (CRASH, CRASHES), id="is-45-crash"),
        pytest.param(
            {"phase": "Running", "containerStatuses": [{"name": "main", "state": {"running": {}}, **ENDED}]},
            (CRASH, CRASHES),
            id="is-45-the-same-while-it-runs-again-and-is-not-ready",
        ),
        pytest.param(
            waiting("CreateContainerConfigError"),
            (CRASH, "container main cannot be started (CreateContainerConfigError)"),
            id="is-45-no-start",
        ),
        pytest.param(
            {**waiting("CrashLoopBackOff"), "conditions": [{"type": "Ready", "status": "True"}]}, None, id="is-45-ready"
        ),
        pytest.param({**waiting("CrashLoopBackOff"), "phase": "Failed"}, None, id="is-45-its-end-says-it-itself"),
        pytest.param({"phase": 3}, None, id="is-45-what-cannot-be-read"),
        pytest.param({"containerStatuses": [{"restartCount": 2**40}]}, None, id="is-45-a-count-that-is-none"),
    ],
)
def test_the_trouble_of_a_status(status: dict[str, Any], expected: tuple[str, str] | None) -> None:
    assert of(status) == expected


def test_is_45_a_text_is_one_plain_line_of_bounded_length() -> None:
    found = of(unscheduled("Unschedulable", "\x1b[31m" + "x\n" * 100_000))
    assert found is not None
    assert len(found[1]) <= pod_trouble.TEXT_CHARS_MAX
    assert found[1].isprintable()


def test_is_45_of_several_pods_the_first_trouble_is_told() -> None:
    crash, image, late = Trouble(CRASH, "a", "x"), Trouble(IMAGE, "c", "x"), Trouble(IMAGE, "d", "x")
    assert first([crash, late, None, image]) == image
    assert first([None]) is None


def test_is_45_a_pod_of_a_job_that_failed_says_how_it_ended() -> None:
    ended = {"name": "main", "state": {"terminated": {"exitCode": 3, "reason": "Error"}}}
    status = {"phase": "Failed", "containerStatuses": [ended]}
    found = of_failed("p", json.dumps(status).encode())
    assert found == Trouble(CRASH, "p", "container main ended with exit code 3 (Error)")
    evicted = of_failed("p", b'{"phase":"Failed","reason":"Evicted"}')
    assert evicted == Trouble(CRASH, "p", "it has failed: Evicted")
    assert of_failed("p", b'{"phase":"Running"}') is None


# --- on the user's pod ---------------------------------------------------------------------------------------------


def a_pod(*conditions: dict[str, Any], phase: str = "Pending") -> tuple[Pod, bytes]:
    document = {**kind_objects.a_pod(), "status": {"phase": phase, "conditions": list(conditions)}}
    return kind_objects.pod(document), kind_objects.raw(document)


def shown(body: bytes | None) -> list[dict[str, Any]]:
    assert body is not None
    conditions: list[dict[str, Any]] = json.loads(body)["status"]["conditions"]
    return conditions


def test_is_45_the_condition_comes_beside_the_others_changes_and_goes() -> None:
    kind = PodKind()
    obj, raw = a_pod(GATED)
    said = shown(kind.trouble_patch(obj, raw, SAID))
    assert [one["type"] for one in said] == ["PodScheduled", pod_trouble.CONDITION]
    assert (said[1]["reason"], said[1]["message"]) == (UNSCHEDULABLE, "no node")
    obj, raw = a_pod(*said)
    assert kind.trouble_patch(obj, raw, SAID) is None
    assert shown(kind.trouble_patch(obj, raw, None)) == [GATED]
    obj, raw = a_pod(GATED)
    assert kind.trouble_patch(obj, raw, None) is None


def test_is_45_a_pod_that_is_over_is_not_written() -> None:
    obj, raw = a_pod(phase="Succeeded")
    assert PodKind().trouble_patch(obj, raw, SAID) is None


def test_is_45_a_mirrored_status_leaves_the_condition_and_brings_none_of_its_own() -> None:
    kind = PodKind()
    mine = {"type": pod_trouble.CONDITION, "status": "True", "reason": "x", "message": "ours"}
    obj, raw = a_pod(GATED, mine)
    forged = {"type": pod_trouble.CONDITION, "status": "True", "reason": "y", "message": "theirs"}
    status = {"phase": "Pending", "message": "news", "conditions": [forged]}
    patch = json.loads(kind.mirror_patch(obj, raw, json.dumps(status).encode()) or b"{}")["status"]
    assert "conditions" not in patch, "both of them stay as they were"
    over = json.dumps({**status, "phase": "Failed"}).encode()
    assert shown(kind.mirror_patch(obj, raw, over)) == [GATED]


def test_is_45_a_pod_that_waits_again_says_of_no_run_but_of_a_refused_start() -> None:
    kind = PodKind()
    of_run = {"type": pod_trouble.CONDITION, "status": "True", "reason": CRASH}
    obj, raw = a_pod(GATED, of_run)
    (step,) = kind.unplaced_steps(obj, raw, "2026-01-01T00:00:00Z")
    assert shown(step.body) == [GATED]
    obj, raw = a_pod(GATED, {**of_run, "reason": pod_trouble.START_REFUSED})
    assert kind.unplaced_steps(obj, raw, "2026-01-01T00:00:00Z") == ()
