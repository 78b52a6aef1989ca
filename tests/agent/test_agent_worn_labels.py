"""HD-43: our labels on what was never placed here, and orphans of ours, at the next start of the agent."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift_agent.core.values.settings import AgentMode
from gatelift_kube.deciding.writes import Delete
from gatelift_kube.values.resources import JOB, POD
from gatelift_wire.values import messages as m
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.refusals import Refusal
from support.agent.drivers import Cluster
from support.agent.stage import Stage
from support.agent.values import KEY, MANAGED, NAMESPACE_NAME, ORIGIN, POD_SPEC, UNSEEN_SECONDS, commit_messages

LABELS = {"gatelift.dev/origin": ORIGIN, "gatelift.dev/workload-uid": KEY.uid, "gatelift.dev/epoch": "1"}


def tenants(stage: Stage, name: str = "a-tenants", **labels: str) -> dict[str, Any]:
    """Let a tenant make a pod that wears our labels, and let it run."""
    meta = {"name": name, "namespace": NAMESPACE_NAME, "labels": {**LABELS, **labels}}
    stage.create(POD, {"metadata": meta, "spec": dict(POD_SPEC)})
    stage.settle()
    stage.run(name)
    return stage.pod(name)


def listed(stage: Stage) -> list[tuple[str, str, bool]]:
    return [(entry.name, entry.state, entry.lifted) for entry in stage.peer.inventories[-1]]


def say_again(stage: Stage, kind: str = "Pod", name: str = "p") -> None:
    stage.send(*commit_messages(KEY, kind, name))


def test_hd_43_a_pod_beside_ours_does_not_keep_it_from_its_end() -> None:
    stage = Stage()
    stage.start()
    before = tenants(stage)
    stage.place()
    stage.run()
    stage.restart()
    say_again(stage)
    stage.finish()
    assert len(stage.peer.of(m.Finished)) == 1
    stage.send(m.Forget(key=KEY))
    assert stage.document(POD, "p") is None
    assert stage.pod("a-tenants") == before, "it is left alone"


def test_hd_43_where_only_a_tenants_pod_is_found_nothing_is_left_of_the_placement() -> None:
    stage = Stage()
    stage.start()
    before = tenants(stage)
    stage.restart()
    assert listed(stage) == [("a-tenants", "Running", True)]
    say_again(stage)
    [refused] = stage.peer.of(m.Refused)
    assert refused.refusal is Refusal.EPOCH_STALE
    assert stage.state() == "none"
    stage.pass_seconds(5.0)
    assert stage.pod("a-tenants") == before
    assert stage.written(Delete, POD) == []


def test_hd_43_a_pod_of_a_tenant_does_not_hide_a_job_of_ours() -> None:
    stage = Stage()
    stage.start()
    tenants(stage)
    stage.place(kind="Job", name="j")
    cluster = Cluster(stage, finishes=False)
    while cluster._jobs():
        pass
    stage.restart()
    assert listed(stage) == [("j", "Running", True)], "what bears our other marks comes first"
    say_again(stage, "Job", "j")
    stage.send(m.Stop(key=KEY, reason="Evicted"))
    assert stage.job()["spec"]["suspend"] is True


def test_hd_43_a_job_that_is_found_behind_a_tenants_pod_is_taken_when_it_is_named() -> None:
    """HD-43: the tenant's pod bears all our marks."""
    stage = Stage()
    stage.start()
    made = tenants(stage)
    meta = {"finalizers": ["gatelift.dev/report"], "annotations": {"gatelift.dev/pod-set": "main"}}
    stage.change(POD, made["metadata"]["name"], {"metadata": meta})
    stage.pass_seconds(1.0)
    stage.place(kind="Job", name="j")
    cluster = Cluster(stage, finishes=False)
    while cluster._jobs():
        pass
    stage.restart()
    assert listed(stage) == [("a-tenants", "Running", True)]
    say_again(stage, "Job", "j")
    assert stage.state() == "Running"
    stage.send(m.Stop(key=KEY, reason="Evicted"))
    assert stage.job()["spec"]["suspend"] is True


def test_hd_43_at_local_only_the_users_own_object_is_kept() -> None:
    stage = Stage(mode=AgentMode.LOCAL)
    stage.start()
    queued = {"kueue.x-k8s.io/queue-name": "queue", MANAGED: "true"}
    gated = {**POD_SPEC, "schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]}
    stage.create(POD, {"metadata": {"name": "p", "namespace": NAMESPACE_NAME, "labels": queued}, "spec": gated})
    stage.settle()
    stage.place()
    stage.run()
    tenants(stage, **queued)
    stage.restart()
    stage.commit()
    stage.finish()
    assert len(stage.peer.of(m.Finished)) == 1
    assert stage.state() == "Reported"


def orphaned(stage: Stage) -> Cluster:
    """Run a Job, and let a person delete it with the policy Orphan."""
    cluster = Cluster(stage, finishes=False)
    stage.place(kind="Job", name="j")
    while cluster.react():
        pass
    stage.hold = lambda write: write.ref.resource in {POD, JOB}
    stage.remove(JOB, "j", propagation="Orphan")
    for pod in stage.store.look_all(("", "pods")):
        stage.change(POD, pod["metadata"]["name"], {"metadata": {"ownerReferences": None}})
    stage.hold = lambda _write: False
    stage.held.clear()
    stage.change(JOB, "j", {"metadata": {"finalizers": None}})
    return cluster


def test_hd_43_orphans_of_ours_are_charged_until_they_have_ended() -> None:
    stage = Stage()
    stage.start()
    cluster = orphaned(stage)
    assert stage.document(JOB, "j") is None
    stage.restart()
    assert listed(stage) == [("j", "Draining", False)]
    assert stage.peer.of(m.Evicted) == []
    stage.pass_seconds(11.0)
    assert len(stage.written(Delete, POD)) == 2
    assert stage.peer.of(m.Evicted) == []
    while cluster.react():
        pass
    stage.pass_seconds(UNSEEN_SECONDS)
    assert len(stage.peer.of(m.Evicted)) == 1


@pytest.mark.parametrize(
    "labels",
    [{}, {"batch.kubernetes.io/job-name": "j"}, {"job-name": "j"}, {"batch.kubernetes.io/controller-uid": "u"}],
    ids=["three labels", "a Job's name", "its former spelling", "a Job's UID"],
)
@pytest.mark.parametrize("mode", list(AgentMode), ids=lambda mode: mode.value)
def test_hd_43_no_pod_that_wears_labels_ends_the_core(mode: AgentMode, labels: dict[str, str]) -> None:
    stage = Stage(mode=mode)
    stage.start()
    tenants(stage, **labels)
    stage.restart()
    assert stage.machine.world.ready
    if mode is AgentMode.REMOTE:
        other = PlacementKey("w-2", 1)
        stage.place(other, name="q")
        assert stage.state(other) == "Running"
