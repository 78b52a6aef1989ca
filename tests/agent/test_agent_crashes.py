"""The agent is thrown away at every point of the way: it converges, lifts nothing twice, loses no final report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

import pytest

from gatelift_kube.deciding.writes import Patch
from gatelift_kube.values.resources import JOB, POD
from support.agent.drivers import Cluster, Manager, play
from support.agent.stage import Stage

Play = tuple[Stage, Manager, Cluster]
ORDERS = pytest.mark.parametrize("answers_first", [False, True], ids=["watch first", "answer first"])
NEVER: Mapping[str, int] = MappingProxyType({})
KINDS = pytest.mark.parametrize("kind", ["Pod", "Job"])


def _run(kind: str, *, answers_first: bool = False, evicts: bool = False, crash: Mapping[str, int] = NEVER) -> Play:
    stage = Stage()
    stage.answers_first = answers_first
    stage.crash_before, stage.crash_after = crash.get("before"), crash.get("after")
    manager = Manager(stage, kind, "p" if kind == "Pod" else "j", evicts=evicts)
    cluster = Cluster(stage, runs_on_in_epoch="1" if evicts else "")
    play(stage, manager, cluster)
    return stage, manager, cluster


def _points(kind: str, *, answers_first: bool, evicts: bool = False) -> Iterator[dict[str, int]]:
    stage, _, _ = _run(kind, answers_first=answers_first, evicts=evicts)
    for point in range(1, stage.performed + 1):
        yield {"before": point}
        yield {"after": point}


def _check(stage: Stage, manager: Manager, cluster: Cluster, epochs: int = 1) -> None:
    assert [each.succeeded for each in manager.finished[:1]] == [True]
    assert len({each.key for each in manager.finished}) == 1
    assert stage.store.look_all(("", "pods")) == [] or all(
        "gatelift.dev/report" not in pod["metadata"].get("finalizers", []) for pod in stage.store.look_all(("", "pods"))
    )
    assert stage.document(POD, "p") is None
    assert stage.document(JOB, "j") is None
    assert stage.machine.world.placements == {}
    ran = {epoch for _, epoch in cluster.started}
    assert len(ran) <= epochs, f"ran in epochs {ran}"
    assert len(cluster.started) == len({uid for uid, _ in cluster.started})


def _lifts(stage: Stage) -> int:
    return sum(
        1 for write in stage.written(Patch) if b"schedulingGates" in write.body or b'"value":false' in write.body
    )


@KINDS
@ORDERS
def test_without_a_crash_everything_happens_once(kind: str, answers_first: bool) -> None:
    stage, manager, cluster = _run(kind, answers_first=answers_first)
    _check(stage, manager, cluster)
    assert _lifts(stage) == 1
    assert manager.epoch == 1


@KINDS
@ORDERS
def test_a_crash_at_any_point_of_the_way_is_survived(kind: str, answers_first: bool) -> None:
    for crash in _points(kind, answers_first=answers_first):
        stage, manager, cluster = _run(kind, answers_first=answers_first, crash=crash)
        assert stage.process > 1, "it has crashed"
        _check(stage, manager, cluster)


@KINDS
@ORDERS
def test_a_crash_at_any_point_of_an_eviction_is_survived(kind: str, answers_first: bool) -> None:
    """Two epochs never run at the same time: the cluster checks it whenever a pod starts."""
    for crash in _points(kind, answers_first=answers_first, evicts=True):
        stage, manager, cluster = _run(kind, answers_first=answers_first, evicts=True, crash=crash)
        _check(stage, manager, cluster, epochs=2)
        assert manager.epoch >= 2
        assert manager.ended
