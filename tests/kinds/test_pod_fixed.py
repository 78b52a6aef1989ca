"""HD-203: no change of the user's pod, of which a run elsewhere takes no notice, is taken without a word."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from gatelift_kinds.pod.rules import validate_update
from support.manager.webhook_documents import ELSEWHERE, FACTS, GATED, Json, Q, a_pod, told

HOLDS = replace(ELSEWHERE, reserved_by="pod-x-12345")
RUNS = replace(HOLDS, runs_on="west")
TOLERATION: Json = {"key": "a", "operator": "Exists"}
CHANGES = [
    pytest.param({"activeDeadlineSeconds": 9}, "activeDeadlineSeconds", ': "9"', id="HD-203 a deadline"),
    pytest.param({"tolerations": [TOLERATION]}, "tolerations", "", id="HD-203 a toleration"),
    pytest.param({"nodeSelector": {"a": "b"}}, "nodeSelector", "", id="HD-203 a node selector"),
    pytest.param({"affinity": {"nodeAffinity": {}}}, "affinity", "", id="HD-203 an affinity"),
    pytest.param({"containers": [{"name": "c", "image": "b"}]}, "containers[0].image", ': "b"', id="HD-203 an image"),
    pytest.param(
        {"initContainers": [{"name": "i"}, {"name": "j", "image": "b"}]},
        "initContainers[1].image",
        ': "b"',
        id="HD-203 an image of an init container",
    ),
]


def a_gated(**spec: Any) -> Json:
    init = [{"name": "i"}, {"name": "j", "image": "a"}]
    return a_pod(Q, containers=[{"name": "c", "image": "a"}], **{**GATED, "initContainers": init, **spec})


def changed(before: Json, spec: Json) -> Json:
    after: Json = json.loads(json.dumps(before))
    after["spec"] |= spec
    return after


@pytest.mark.parametrize(("spec", "path", "value"), CHANGES)
def test_what_is_changed_while_it_runs_elsewhere_is_refused_with_the_way_out(spec: Json, path: str, value: str) -> None:
    old = a_gated()
    said = told(validate_update(old, changed(old, spec), RUNS))
    assert list(said) == [
        (
            f"spec.{path}: Invalid value{value}: is not passed on to the cluster where the pod runs: "
            "make a new pod, or deactivate its Workload first (spec.active: false)"
        )
    ]


@pytest.mark.parametrize(("spec", "path", "value"), CHANGES)
def test_while_it_may_be_starting_it_is_warned_of(spec: Json, path: str, value: str) -> None:
    old = a_gated()
    held = validate_update(old, changed(old, spec), HOLDS)
    late = "its Workload pod-x-12345 holds quota: if that is being started now, this counts from its next start on"
    assert (held.errors, held.warnings) == ((), (f"spec.{path}: {late}",))
    free = validate_update(old, changed(old, spec), ELSEWHERE)
    assert (free.errors, free.warnings) == ((), ())


@pytest.mark.parametrize(("spec", "path", "value"), CHANGES)
def test_what_runs_here_its_own_kubelet_acts_on(spec: Json, path: str, value: str) -> None:
    here = a_gated(schedulingGates=[])
    assert validate_update(here, changed(here, spec), FACTS).allowed


def test_what_gatelift_writes_and_everything_else_is_left_alone() -> None:
    old = a_gated(tolerations=[TOLERATION])
    deadline = changed(old, {"activeDeadlineSeconds": 9})
    assert validate_update(old, deadline, replace(RUNS, by_agent=True)).allowed
    assert validate_update(deadline, deadline, RUNS).allowed
    assert validate_update(old, changed(old, {"nodeSelector": {}, "affinity": None}), RUNS).allowed, (
        "nothing is nothing"
    )
    own_gate = changed(old, {"schedulingGates": [*GATED["schedulingGates"], {"name": "mine"}]})
    assert validate_update(own_gate, old, RUNS).allowed, "a gate of the user's own is taken off there, too"


DEBUG = {"ephemeralContainers": [{"name": "debugger", "image": "tools"}]}


def test_hd_213_an_ephemeral_container_of_what_runs_elsewhere_is_refused_with_the_cluster_to_debug_it_in() -> None:
    old = a_gated()
    (text,) = told(validate_update(old, changed(old, DEBUG), RUNS))
    assert text == (
        "spec.ephemeralContainers: Invalid value: is not passed on to the cluster where the pod runs: "
        "debug it there, in worker cluster west (status.clusterName of its Workload)"
    )


def test_hd_213_of_what_waits_it_is_warned_of_and_of_what_runs_here_it_is_a_matter_of_the_kubelet() -> None:
    old = a_gated()
    held = validate_update(old, changed(old, DEBUG), HOLDS)
    assert held.allowed
    assert len(held.warnings) == 1
    here = a_gated(schedulingGates=[])
    verdict = validate_update(here, changed(here, DEBUG), RUNS)
    assert (verdict.errors, verdict.warnings) == ((), ())
