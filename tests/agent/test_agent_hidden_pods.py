"""HD-40. Pods of a Job that lost their labels: no watch shows them, and they count until somebody proves them gone."""

from __future__ import annotations

import pytest

from gatelift_kube.deciding.writes import Delete, ObjectGone, Patch, WriteError
from gatelift_kube.values.resources import JOB, POD
from gatelift_wire.values import messages as m
from support.agent.drivers import running_job
from support.agent.stage import Stage
from support.agent.values import KEY, ORIGIN, decode

OURS = {"gatelift.dev/origin": ORIGIN, "gatelift.dev/workload-uid": KEY.uid, "gatelift.dev/epoch": str(KEY.epoch)}


def _hide(stage: Stage) -> None:
    for pod in stage.store.look_all(("", "pods")):
        stage.change(POD, pod["metadata"]["name"], {"metadata": {"labels": dict.fromkeys(OURS)}})


def test_hd_40_labels_of_a_jobs_pods_are_put_back_and_they_are_counted() -> None:
    stage, _ = running_job()
    _hide(stage)
    stage.pass_seconds(5.0)
    assert all(OURS.items() <= pod["metadata"]["labels"].items() for pod in stage.store.look_all(("", "pods")))
    assert len(stage.machine.world.objects.all_children()) == 2
    assert (stage.state(), stage.peer.of(m.Evicted)) == ("Running", [])


@pytest.mark.parametrize("error", [WriteError.FORBIDDEN, WriteError.DENIED, WriteError.UNKNOWN])
def test_hd_40_a_job_that_somebody_deletes_is_not_over_while_pods_run_that_no_watch_shows(error: WriteError) -> None:
    stage, cluster = running_job()
    stage.fail = lambda write: error if isinstance(write, Patch) and write.ref.resource == POD else None
    _hide(stage)
    stage.change(JOB, "j", {"metadata": {"finalizers": None}})
    stage.remove(JOB, "j")
    stage.pass_seconds(600.0)
    assert stage.peer.of(m.Evicted) == []
    assert len(stage.written(Patch, POD)) < 300
    while cluster.react():
        pass
    stage.fail = lambda _write: None
    stage.pass_seconds(60.0)
    assert len(stage.peer.of(m.Evicted)) == 1


def test_hd_40_a_pod_of_a_job_that_is_really_gone_is_asked_for_once() -> None:
    stage, _ = running_job()
    [first, *_] = stage.store.look_all(("", "pods"))
    stage.remove(POD, first["metadata"]["name"], grace=0)
    stage.pass_seconds(60.0)
    assert len(stage.written(Patch, POD)) == 1
    assert len(stage.machine.world.objects.all_children()) == 1


def test_hd_204_a_late_word_about_a_pod_that_is_known_to_be_gone_keeps_nothing_from_its_end() -> None:
    """HD-204: the deletion is answered with 404 before the watch tells of it; the symptom: draining for ever."""
    stage, cluster = running_job()
    [first, *_] = stage.store.all(("", "pods"))
    late = ObjectGone(POD, decode(POD, first))
    stage.watching = False
    stage.remove(POD, first.name, grace=0)
    stage.watching = True
    stage.change(JOB, "j", {"metadata": {"finalizers": None}})
    stage.remove(JOB, "j")
    stage.pass_seconds(15.0)
    assert first.name in {write.ref.key.name for write in stage.written(Delete, POD)}
    assert stage.peer.of(m.Evicted) == []
    stage.post(late)
    while cluster.react():
        pass
    stage.pass_seconds(60.0)
    assert len(stage.peer.of(m.Evicted)) == 1


def test_hd_40_a_deposed_replica_puts_no_label_of_a_pod_back() -> None:
    stage, _ = running_job()
    stage.machine.world.leadership.valid_until = stage.now
    _hide(stage)
    stage.pass_seconds(60.0)
    assert stage.written(Patch, POD) == []
    stage.lead()
    stage.pass_seconds(5.0)
    assert all(OURS.items() <= pod["metadata"]["labels"].items() for pod in stage.store.look_all(("", "pods")))
