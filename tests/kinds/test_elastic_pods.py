"""Pods of an elastic Job (KEP-77): whose turn it is at the gate, how it is let go, and who is too many."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gatelift_kinds.job import elastic
from gatelift_kinds.registry import ELASTIC_JOB_KIND as KIND
from gatelift_kinds.shared import markers
from gatelift_kinds.shared.values import MergeConflictError, PodSetStart
from support.kinds.elastic_jobs import ELASTIC, GATE, MULTIKUEUE, an_elastic, at_worker
from support.manager.kind_objects import Json, a_job, a_pod, job, patched, pod, raw


def a_member(name: str, *, gates: tuple[str, ...] = (ELASTIC,), owner: str = "uid-w", **more: Any) -> Json:
    document = a_pod(name, gates=tuple({"name": gate} for gate in gates))
    document["metadata"] |= {
        "labels": {markers.POD_SET: more.pop("pod_set", "main")},
        "creationTimestamp": more.pop("created", "2026-01-01T00:00:00Z"),
        "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": owner, "controller": True}],
        **more.pop("metadata", {}),
    }
    document["status"] |= more
    return document


def names(obj: Json, *pods: Json) -> list[str]:
    found = KIND.gated_pods(job(obj), [pod(one) for one in pods])
    assert found.keys() == {"main"}
    return [one.metadata.name for one in found["main"]]


def test_sl_25_pods_of_indexes_are_let_go_by_lowest_index_and_others_oldest_first() -> None:
    made = at_worker(an_elastic(**MULTIKUEUE))
    index = "batch.kubernetes.io/job-completion-index"
    indexed = [a_member(f"p{n}", metadata={"annotations": {index: str(n)}}) for n in (10, 2, 0)]
    assert names(made, *indexed) == ["p0", "p2", "p10"]
    young, old = a_member("a", created="2026-01-01T00:00:09Z"), a_member("b", created="2026-01-01T00:00:01Z")
    assert names(made, young, old) == ["b", "a"]


def test_sl_25_let_go_is_no_pod_of_another_no_pod_set_no_gate_or_that_is_deleted() -> None:
    made = at_worker(an_elastic(**MULTIKUEUE))
    unlabelled = a_member("unlabelled")
    unlabelled["metadata"]["labels"] = {}
    pods = (
        a_member("own"),
        unlabelled,
        a_member("foreign", owner="uid-x"),
        a_member("of another set", pod_set="workers"),
        a_member("let go", gates=("mine",)),
        a_member("deleted", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}),
        a_member("over", phase="Failed"),
        a_member("gated besides", gates=("mine", ELASTIC), created="2026-01-02T00:00:00Z"),
    )
    assert names(made, *pods) == ["own", "gated besides"]


def test_sl_05_one_gate_is_taken_off_with_what_is_added_for_this_version_and_no_other() -> None:
    """Whose turn it is the agent decides."""
    waiting = a_member("p", gates=("mine", ELASTIC, markers.TOPOLOGY_GATE))
    waiting["metadata"]["annotations"] = {markers.WORKLOAD: "before"}
    start = PodSetStart(pod_set="main", node_selector={"pool": "a"}, annotations={markers.WORKLOAD: "now"})
    after = patched(waiting, KIND.ungate_patch(pod(waiting), raw(waiting), start))
    assert [gate["name"] for gate in after["spec"]["schedulingGates"]] == ["mine", markers.TOPOLOGY_GATE]
    assert after["spec"]["nodeSelector"] == {"pool": "a"}
    assert after["metadata"]["annotations"] == {markers.WORKLOAD: "now"}, "an earlier slice stamped the template"
    body = json.loads(KIND.ungate_patch(pod(waiting), raw(waiting), start))
    assert [one["path"] for one in body[:2]] == ["/metadata/uid", "/metadata/resourceVersion"]
    waiting["spec"]["nodeSelector"] = {"pool": "b"}
    with pytest.raises(MergeConflictError):
        KIND.ungate_patch(pod(waiting), raw(waiting), start)


def surplus(count: int, *pods: Json) -> tuple[int, int]:
    (found,) = KIND.surplus(job(an_elastic()), [pod(one) for one in pods], {"main": count})
    return found.going_on, found.holding


def test_sl_25_surplus_is_what_is_let_go_above_the_count_until_it_leaves_or_has_stopped() -> None:
    bound = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    running = [a_member(f"r{n}", gates=(), phase="Running") for n in range(3)]
    leaving = a_member("leaving", gates=(), phase="Running", metadata=bound)
    leaving["spec"]["nodeName"] = "n"
    over = a_member("over", gates=(), phase="Succeeded")
    waiting = a_member("waiting")
    assert surplus(3, *running, over, waiting) == (0, 0), "who is over or waits is none"
    assert surplus(3, *running, leaving) == (0, 1), "who leaves still holds its node"
    assert surplus(2, *running, leaving) == (1, 2)
    assert surplus(0, *running) == (3, 3)
    unlabelled = a_member("unlabelled", gates=(), phase="Running")
    unlabelled["metadata"]["labels"] = {}
    assert surplus(3, *running, unlabelled) == (1, 1), "who runs and says nothing is counted"


def test_sl_05_a_gate_of_a_users_own_makes_nothing_elastic() -> None:
    document = a_job()
    document["spec"]["template"]["spec"]["schedulingGates"] = [GATE]
    assert not KIND.gated(job(document))
    assert not elastic.is_gated(job(document))
