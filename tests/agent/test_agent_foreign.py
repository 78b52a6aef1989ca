"""HD-35: what another management cluster left at the worker is left alone, counted and told."""

from __future__ import annotations

from typing import Any

from gatelift_kube.values.resources import JOB, POD
from gatelift_wire.values import limits
from gatelift_wire.values import messages as m
from support.agent.drivers import Cluster
from support.agent.stage import Stage
from support.agent.values import JOB_SPEC, NAMESPACE_NAME, POD_SPEC


def _labels(origin: str, number: int = 1) -> dict[str, str]:
    return {
        "gatelift.dev/origin": origin,
        "gatelift.dev/workload-uid": f"old-{number}",
        "gatelift.dev/epoch": "1",
    }


def _left(stage: Stage, resource: Any, name: str, number: int = 1) -> None:
    spec = POD_SPEC if resource == POD else JOB_SPEC
    meta = {"name": name, "namespace": NAMESPACE_NAME, "labels": _labels("former", number)}
    stage.create(resource, {"metadata": meta, "spec": spec})


def _told(stage: Stage) -> list[tuple[str, str, int]]:
    stage.pass_seconds(2.0)
    said = stage.peer.of(m.Capacity)[-1].foreign
    return [(one.kind, one.name, one.count) for one in said]


def test_hd_35_what_may_run_is_told_when_the_session_opens_and_when_it_changes() -> None:
    stage = Stage()
    _left(stage, POD, "p-old")
    _left(stage, JOB, "j-old")
    stage.start()
    assert _told(stage) == [("Job", "j-old", 1), ("Pod", "p-old", 1)]
    stage.remove(POD, "p-old", grace=0)
    assert _told(stage) == [("Job", "j-old", 1)]
    stage.place()
    assert _told(stage) == [("Job", "j-old", 1)]
    assert stage.document(JOB, "j-old") is not None


def test_what_is_over_or_without_an_origin_is_not_foreign() -> None:
    stage = Stage()
    _left(stage, POD, "p-old")
    stage.start()
    stage.run("p-old")
    stage.finish("p-old")
    assert _told(stage) == []


def test_more_than_the_wire_names_are_counted() -> None:
    stage = Stage()
    for number in range(limits.FOREIGN_MAX + 10):
        _left(stage, POD, f"p-{number:04}", number)
    stage.start()
    told = _told(stage)
    assert len(told) == limits.FOREIGN_MAX
    assert told[-1] == ("", "", 11)


def test_hd_35_what_was_taken_off_a_job_of_another_origin_is_told_as_that_job_also_without_labels() -> None:
    stage = Stage()
    mark = {"key": "former.placed-as.gatelift.dev/j-old", "operator": "Equal", "value": "old.1", "effect": "NoSchedule"}
    meta = {"name": "j-old-x", "namespace": NAMESPACE_NAME}
    stage.create(POD, {"metadata": meta, "spec": {**POD_SPEC, "tolerations": [mark]}})
    stage.start()
    assert _told(stage) == [("Job", "j-old", 1)]


def test_hd_35_a_pod_of_ours_that_somebody_labels_as_anothers_is_not_told() -> None:
    stage = Stage()
    stage.start()
    stage.place(kind="Job", name="j")
    cluster = Cluster(stage, finishes=False)
    while cluster.react():
        pass
    for pod in stage.store.look_all(("", "pods")):
        stage.change(POD, pod["metadata"]["name"], {"metadata": {"labels": {"gatelift.dev/origin": "former"}}})
    assert _told(stage) == []
