"""IS-46: which container failed first, as the status of its pod says."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from gatelift_kinds.shared import failed_container
from gatelift_kinds.shared.failed_container import PodFailure
from gatelift_kube.objects.core import Pod
from gatelift_wire.values.limits import LAST_WORDS_MAX
from gatelift_wire.values.rules import measure
from gatelift_wire.values.told import FailedContainer


def ended(code: int, at: str = "2026-01-01T00:00:05Z", **more: Any) -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "finishedAt": at, **more}}


def container(name: str = "main", **states: Any) -> dict[str, Any]:
    return {"name": name, **states}


def told(name: str = "p", **status: Any) -> PodFailure | None:
    document = {"metadata": {"name": name}, "spec": {"nodeName": "node-1"}, "status": status}
    raw = msgspec.json.encode(document)
    return failed_container.of_pod(msgspec.json.decode(raw, type=Pod), raw)


def test_is_46_pod_node_exit_code_reason_and_last_words_are_told() -> None:
    found = told(
        phase="Failed", containerStatuses=[container(state=ended(3, reason="Error", message="no such file\n"))]
    )
    assert found is not None
    assert found.container == FailedContainer(
        pod="p", node="node-1", container="main", exit_code=3, reason="Error", message="no such file\n"
    )


def test_is_46_the_first_of_several_is_told_by_when_it_ended() -> None:
    found = told(
        phase="Failed",
        containerStatuses=[
            container("late", state=ended(143, "2026-01-01T00:00:09Z")),
            container("well", state=ended(0, "2026-01-01T00:00:01Z")),
            container("early", state=ended(2, "2026-01-01T00:00:04Z")),
        ],
    )
    assert found is not None
    assert found.container.container == "early"


def test_is_46_a_container_that_was_started_anew_has_failed() -> None:
    found = told(phase="Running", containerStatuses=[container(state={"running": {}}, lastState=ended(7))])
    assert found is not None
    assert found.container.exit_code == 7


def test_is_46_a_pod_that_failed_comes_before_one_that_went_on() -> None:
    went_on = told("a", phase="Running", containerStatuses=[container(lastState=ended(7, "2026-01-01T00:00:01Z"))])
    failed = told("b", phase="Failed", containerStatuses=[container(state=ended(1, "2026-01-01T00:00:02Z"))])
    later = told("c", phase="Failed", containerStatuses=[container(state=ended(1, "2026-01-01T00:00:03Z"))])
    assert failed_container.first(went_on, failed) is failed
    assert failed_container.first(failed, later) is failed
    assert failed_container.first(None, later) is later
    assert failed_container.first(later, None) is later


def test_is_46_a_pod_without_a_container_that_failed_says_why_itself() -> None:
    found = told(phase="Failed", reason="Evicted", message="The node was low on resource: memory")
    assert found is not None
    assert found.container == FailedContainer(
        pod="p", node="node-1", reason="Evicted", message="The node was low on resource: memory"
    )


def test_is_46_the_end_of_long_words_is_told_and_no_character_is_cut_in_two() -> None:
    found = told(phase="Failed", containerStatuses=[container(state=ended(1, message="é" * 3000 + " at last"))])
    assert found is not None
    assert found.container.message.endswith("é at last")
    assert found.container.message.startswith("... é")
    assert len(found.container.message.encode()) <= LAST_WORDS_MAX


@pytest.mark.parametrize(
    "status",
    [
        {"phase": "Succeeded", "containerStatuses": [container(state=ended(0))]},
        {"phase": "Running", "containerStatuses": [container(state={"running": {}})]},
        {"phase": "Failed", "containerStatuses": "none"},
        {"phase": "Failed", "containerStatuses": [container(state={"terminated": {"exitCode": "one"}})]},
        {"phase": "Failed", "containerStatuses": [{"name": 3}]},
    ],
)
def test_is_46_a_status_without_a_failure_or_none_at_all_tells_nothing(status: dict[str, Any]) -> None:
    assert told(**status) is None


@pytest.mark.parametrize("name", ["a/b", "..", "x" * 64, "\x1b[2J", "", "A"])
def test_is_46_what_is_told_is_always_taken_by_the_wire(name: str) -> None:
    states = [container(name, state=ended(-(2**31) + 1, reason=name * 9, message=name * 900 + "\u0301" * 900))]
    found = told(phase="Failed", containerStatuses=states)
    assert found is not None
    assert measure(found.container)
    assert found.container.container == ""
