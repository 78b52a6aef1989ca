"""Which pods a worker's webhook gates: those that name a group and a role, and are nobody's yet."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift_kinds.shared.gate_of_members import operations

K = "kueue.x-k8s.io/"
NAMED = {f"{K}pod-group-name": "crew", f"{K}pod-group-role": "workers"}
GATE = {"name": f"{K}admission"}


def a_pod(labels: Any = None, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "w", "labels": NAMED if labels is None else labels}, "spec": spec}


def test_dw_6_it_gets_the_gate_and_the_mark_of_its_group() -> None:
    assert operations(a_pod()) == (
        {"op": "add", "path": "/metadata/labels/gatelift.dev~1made-here", "value": "crew"},
        {"op": "add", "path": "/spec/schedulingGates", "value": [GATE]},
    )


def test_gates_of_its_own_stay_and_ours_is_put_on_once() -> None:
    own = {"name": "example.com/own"}
    assert operations(a_pod(schedulingGates=[own]))[-1]["value"] == [own, GATE]
    assert len(operations(a_pod(schedulingGates=[GATE]))) == 1


def test_a_mark_that_its_maker_wrote_is_replaced() -> None:
    (mark, _) = operations(a_pod({**NAMED, "gatelift.dev/made-here": "another"}))
    assert mark["value"] == "crew"


def test_hd_484_who_names_its_group_by_the_annotation_is_of_that_one_as_at_home() -> None:
    """It came without our gate, and ran uncharged beside its group."""
    role = {f"{K}pod-group-role": "workers"}
    added = {"op": "add", "path": "/metadata/labels/kueue.x-k8s.io~1pod-group-name", "value": "crew"}
    mark = {"op": "add", "path": "/metadata/labels/gatelift.dev~1made-here", "value": "crew"}
    gate = {"op": "add", "path": "/spec/schedulingGates", "value": [GATE]}
    for labels in (role, {**role, f"{K}pod-group-name": "other"}):
        pod = a_pod(labels)
        pod["metadata"]["annotations"] = {f"{K}pod-group-name": "crew"}
        assert operations(pod) == (added, mark, gate)
    pod["metadata"]["annotations"] = {f"{K}pod-group-name": 7}
    assert operations(pod)[0]["value"] == "other", "what is no text is read by nobody"


@pytest.mark.parametrize(
    "pod",
    [
        a_pod({f"{K}pod-group-name": "crew"}),
        a_pod({f"{K}pod-group-role": "workers"}),
        a_pod({**NAMED, f"{K}pod-group-role": ""}),
        a_pod({**NAMED, "gatelift.dev/origin": "o"}),
        a_pod({}),
        {"metadata": None, "spec": None},
        {"metadata": {"labels": {f"{K}pod-group-name": 7, f"{K}pod-group-role": []}}},
        {},
    ],
    ids=["no role", "no group", "an empty role", "a run's own", "no labels", "nulls", "other types", "nothing"],
)
def test_all_others_come_as_they_are(pod: dict[str, Any]) -> None:
    assert operations(pod) == ()
