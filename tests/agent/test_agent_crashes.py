"""The agent is thrown away at every point of the way: it converges, lifts nothing twice, loses no final report."""

from __future__ import annotations

import pytest

from gatelift_kube.resources import JOB, POD
from gatelift_kube.writes import Patch
from support.agent_drivers import Cluster, Manager, play
from support.agent_stage import Stage


def _run(kind: str, *, before: int | None = None, after: int | None = None) -> tuple[Stage, Manager, Cluster]:
    stage = Stage()
    stage.crash_before, stage.crash_after = before, after
    manager, cluster = Manager(stage, kind, "p" if kind == "Pod" else "j"), Cluster(stage)
    play(stage, manager, cluster)
    return stage, manager, cluster


def _commands(kind: str) -> int:
    stage, _, _ = _run(kind)
    return stage.performed


def _check(stage: Stage, manager: Manager, cluster: Cluster) -> None:
    assert [each.succeeded for each in manager.finished[:1]] == [True]
    assert len({each.key for each in manager.finished}) == 1
    assert stage.store.look_all(("", "pods")) == [] or all(
        "gatelift.dev/report" not in pod["metadata"].get("finalizers", []) for pod in stage.store.look_all(("", "pods"))
    )
    assert stage.document(POD, "p") is None
    assert stage.document(JOB, "j") is None
    assert stage.machine.world.placements == {}
    epochs = {epoch for _, epoch in cluster.started}
    assert len(epochs) == 1, f"ran in epochs {epochs}"
    assert len(cluster.started) == len({uid for uid, _ in cluster.started})


def _lifts(stage: Stage) -> int:
    return sum(
        1 for write in stage.written(Patch) if b"schedulingGates" in write.body or b'"value":false' in write.body
    )


@pytest.mark.parametrize("kind", ["Pod", "Job"])
def test_without_a_crash_everything_happens_once(kind: str) -> None:
    stage, manager, cluster = _run(kind)
    _check(stage, manager, cluster)
    assert _lifts(stage) == 1
    assert manager.epoch == 1


@pytest.mark.parametrize("kind", ["Pod", "Job"])
def test_a_crash_before_any_command_is_carried_out_is_survived(kind: str) -> None:
    for point in range(1, _commands(kind) + 1):
        stage, manager, cluster = _run(kind, before=point)
        _check(stage, manager, cluster)


@pytest.mark.parametrize("kind", ["Pod", "Job"])
def test_a_crash_after_any_command_whose_answer_is_lost_is_survived(kind: str) -> None:
    for point in range(1, _commands(kind) + 1):
        stage, manager, cluster = _run(kind, after=point)
        _check(stage, manager, cluster)
