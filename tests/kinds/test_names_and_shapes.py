"""Names and hashes that Kueue's own vectors fix."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift_kinds.job.indexes import count_below
from gatelift_kinds.shared import markers
from gatelift_kinds.shared.names import workload_name
from gatelift_kinds.shared.role_hash import role_hash, shape

DEMO_UID = "78d1e61a-c399-4c09-800f-a0bbfb5fe71e"


def asking(**requests: str) -> dict[str, Any]:
    return {"containers": [{"name": "c", "resources": {"requests": requests}}]}


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        pytest.param(("Job", "batch", "name", "uid"), "job-name-ef3a1", id="kind, group, name and uid"),
        pytest.param(("Job", "batch", "name", "uid", "1"), "job-name-2514c", id="an extra part tells versions apart"),
        pytest.param(
            ("Job", "batch", "demo-slice", DEMO_UID, "1"), "job-demo-slice-e7080", id="SL-04 the KEP's, generation 1"
        ),
        pytest.param(
            ("Job", "batch", "demo-slice", DEMO_UID, "3"), "job-demo-slice-75e0c", id="SL-04 the KEP's, generation 3"
        ),
    ],
)
def test_workload_names_are_kueues(arguments: tuple[str, ...], name: str) -> None:
    assert workload_name(*arguments) == name


def test_a_long_owner_name_is_cut_before_the_digits() -> None:
    name = workload_name("Pod", "", "a" * 300, "uid")
    assert len(name) == 253
    assert name.startswith("pod-aaa")
    assert name[-6] == "-"


def test_owners_that_differ_beyond_the_cut_have_different_names() -> None:
    assert workload_name("Pod", "", "a" * 300 + "x", "uid") != workload_name("Pod", "", "a" * 300 + "y", "uid")


@pytest.mark.parametrize(
    ("spec", "digits"),
    [
        pytest.param(asking(cpu="1"), "dc85db45", id="one container asking for a CPU"),
        pytest.param(asking(cpu="1", memory="1Gi"), "4ebdd4a6", id="CPU and memory"),
        pytest.param(asking(), "a9f06f3a", id="no request"),
    ],
)
def test_role_hashes_are_kueues(spec: dict[str, Any], digits: str) -> None:
    assert role_hash(spec) == digits


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"volumes": [{"name": "v"}]}, id="volumes"),
        pytest.param({"serviceAccountName": "sa"}, id="service account"),
        pytest.param({"schedulingGates": [{"name": "g"}]}, id="gates"),
        pytest.param({"preemptionPolicy": "Never"}, id="preemption policy"),
        pytest.param({"nodeSelector": {}}, id="an empty selector is none"),
        pytest.param({"tolerations": None}, id="null is absent"),
    ],
)
def test_the_role_hash_does_not_look_at(change: dict[str, Any]) -> None:
    assert role_hash({**asking(cpu="1"), **change}) == role_hash(asking(cpu="1"))


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"nodeSelector": {"a": "b"}}, id="node selector"),
        pytest.param({"priority": 0}, id="a priority of 0 is not an absent one"),
        pytest.param({"resources": {"requests": {"cpu": "1"}}}, id="pod-level requests"),
        pytest.param({"resources": {}}, id="pod-level resources without requests"),
        pytest.param({"runtimeClassName": "x"}, id="runtime class"),
        pytest.param({"initContainers": [{"name": "i"}]}, id="init containers"),
    ],
)
def test_the_role_hash_tells_apart(change: dict[str, Any]) -> None:
    assert role_hash({**asking(cpu="1"), **change}) != role_hash(asking(cpu="1"))


def test_pod_level_resources_are_left_out_of_the_shape_when_absent() -> None:
    assert "resources" not in shape(asking())["spec"]


@pytest.mark.parametrize(
    ("limit", "lists", "count"),
    [
        pytest.param(10, ("0-3,5", ""), 5, id="intervals and single indexes"),
        pytest.param(10, ("0-3", "2-5"), 6, id="completed and failed are united"),
        pytest.param(3, ("0-9",), 3, id="indexes from the completions on do not count"),
        pytest.param(10, ("0-2,x,4-y,-,7",), 4, id="malformed parts count for nothing"),
        pytest.param(10, ("",), 0, id="an empty list"),
        pytest.param(10, ("5-3",), 0, id="a reversed interval"),
    ],
)
def test_ended_indexes_are_counted(limit: int, lists: tuple[str, ...], count: int) -> None:
    assert count_below(limit, *lists) == count


def test_markers_of_kueue_and_of_ours_stay_at_home() -> None:
    labels = {
        "app": "x",
        "kueue.x-k8s.io/queue-name": "q",
        "gatelift.dev/origin": "forged",
        "kueue.x-k8s.io/managed": "true",
        "kueue.x-k8s.io.example.com/mine": "yes",
        "kubectl.kubernetes.io/last-applied-configuration": "{}",
    }
    assert markers.travelling(labels) == {"app": "x", "kueue.x-k8s.io.example.com/mine": "yes"}


@pytest.mark.parametrize(
    ("labels", "annotations", "name"),
    [
        pytest.param({}, {}, "", id="none"),
        pytest.param({markers.POD_GROUP_NAME: "l"}, {}, "l", id="the label"),
        pytest.param({markers.POD_GROUP_NAME: "l"}, {markers.POD_GROUP_NAME: "a"}, "a", id="the annotation wins"),
        pytest.param({markers.POD_GROUP_NAME: "l"}, {markers.POD_GROUP_NAME: ""}, "l", id="an empty one is none"),
    ],
)
def test_the_group_name_is_read_from(labels: dict[str, str], annotations: dict[str, str], name: str) -> None:
    assert markers.group_name(labels, annotations) == name


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("60", 60),
        ("2147483648", 2**31 - 1),
        ("9" * 60, None),
        ("0", None),
        ("-1", None),
        ("1.5", None),
        ("x", None),
        ("", None),
        ("\u0661", None),
    ],
)
def test_the_execution_limit_is_a_positive_whole_number(text: str, seconds: int | None) -> None:
    assert markers.max_execution_seconds({markers.MAX_EXECUTION_SECONDS: text}) == seconds
