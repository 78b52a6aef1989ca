"""HD-158, HD-169, IS-41: a queue's name on what makes pods is refused where it would hold none of them."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift_kinds.shared import markers, unserved
from gatelift_kinds.shared.review import Verdict

Q = {markers.QUEUE_NAME: "q"}
KINDS = tuple(unserved.BY_KIND)
BEFORE = {"Deployment", "ReplicaSet", "StatefulSet", "CronJob"}
HD_169 = dict.fromkeys(set(KINDS) - BEFORE, "HD-169")
POD_TEMPLATES = dict.fromkeys(
    ["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "ReplicationController"], "label on spec.template.metadata"
)
NOWHERE = dict.fromkeys(
    ["TrainJob", "AppWrapper", "SparkApplication"], "leave the label out, and put it on the template"
)
WAYS_OUT = {
    **POD_TEMPLATES,
    **NOWHERE,
    "CronJob": "label on spec.jobTemplate.metadata.labels, where it queues its Jobs",
    "JobSet": "label on spec.replicatedJobs[*].template.metadata.labels, where it queues its Jobs",
    "RayCluster": "spec.headGroupSpec.template.metadata.labels and spec.workerGroupSpecs[*].template.metadata.labels",
    "RayJob": "spec.rayClusterSpec.workerGroupSpecs[*].template.metadata.labels",
    "RayService": "spec.rayClusterConfig.headGroupSpec.template.metadata.labels",
    "MPIJob": "spec.mpiReplicaSpecs[*].template.metadata.labels, where it queues its pods",
    "PyTorchJob": "spec.pytorchReplicaSpecs[*].template.metadata.labels",
    "TFJob": "spec.tfReplicaSpecs[*].template.metadata.labels",
    "XGBoostJob": "spec.xgbReplicaSpecs[*].template.metadata.labels",
    "PaddleJob": "spec.paddleReplicaSpecs[*].template.metadata.labels",
    "JAXJob": "spec.jaxReplicaSpecs[*].template.metadata.labels",
    "LeaderWorkerSet": "spec.leaderWorkerTemplate.workerTemplate.metadata.labels",
}


def made(labels: dict[str, str] | None, *template: str, label: dict[str, str] | None = None) -> dict[str, Any]:
    """Return an object with labels, and with labels on the part at a path."""
    document: dict[str, Any] = {"metadata": {"labels": labels}, "spec": None}
    part = document
    for name in template:
        part[name] = part = {}
    if template:
        part["metadata"] = {"labels": label}
    return document


@pytest.mark.parametrize("kind", [pytest.param(kind, id=f"{HD_169.get(kind, 'HD-158')} {kind}") for kind in KINDS])
def test_a_new_label_that_nobody_keeps_is_refused_with_the_way_out(kind: str) -> None:
    for old in ({}, made(None), made({markers.QUEUE_NAME: "another"})):
        (error,) = unserved.verdict(kind, old, made(Q)).errors
        assert str(error).startswith(f"metadata.labels[{markers.QUEUE_NAME}]: Forbidden: kind {kind} is not queued")
        assert WAYS_OUT[kind] in str(error)


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_labelled_before_may_be_changed_in_all_else_and_lose_the_label(kind: str) -> None:
    assert unserved.verdict(kind, made(Q), made(Q)).allowed
    assert unserved.verdict(kind, made(Q), made(None)).allowed
    assert unserved.verdict(kind, {}, made(None)).allowed


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_name_is_no_queue(kind: str) -> None:
    for old in ({}, made(None), made(Q)):
        assert unserved.verdict(kind, old, made({markers.QUEUE_NAME: ""})).allowed


@pytest.mark.parametrize("kind", KINDS)
def test_is_41_what_exists_scales_and_rolls_out_with_the_label_it_had(kind: str) -> None:
    before, after = made(Q), {**made(Q), "spec": {"replicas": 9}}
    assert unserved.verdict(kind, before, after).allowed


def owned(api_version: str, kind: str, *, controller: bool | None = True) -> dict[str, Any]:
    owner = {"apiVersion": api_version, "kind": kind, "name": "o", "uid": "u", "controller": controller}
    return {"metadata": {"labels": Q, "ownerReferences": [owner]}, "spec": None}


OPERATOR, CLUSTERS, PERSON = (
    "system:serviceaccount:ray-system:kuberay-operator",
    "system:serviceaccount:kube-system:deployment-controller",
    "mallory",
)
JUDGED = (("ray.io/v1", "RayJob"), ("apps/v1", "Deployment"), ("batch/v1", "Job"))
NOT_JUDGED = (("v1", "ConfigMap"), ("example.com/v1", "Database"), ("other.io/v1", "RayJob"), ("", ""))
EXEMPT = {
    **{(owner, CLUSTERS): "silent" for owner in JUDGED},
    **{(owner, "system:kube-controller-manager"): "silent" for owner in JUDGED},
    **{(owner, OPERATOR): "warned" for owner in JUDGED},
    **{(owner, PERSON): "refused" for owner in JUDGED},
    **{(owner, CLUSTERS): "warned" for owner in NOT_JUDGED},
    **{(owner, OPERATOR): "refused" for owner in NOT_JUDGED},
    **{(owner, PERSON): "refused" for owner in NOT_JUDGED},
    **{(owner, "system:serviceaccounts:kube-system:x"): "refused" for owner in NOT_JUDGED},
}


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "ReplicaSet", "RayCluster", "CronJob"])
@pytest.mark.parametrize(("owner", "username"), EXEMPT, ids=str)
def test_is_41_an_owner_that_somebody_writes_takes_nothing_past_the_refusal(
    kind: str, owner: tuple[str, str], username: str
) -> None:
    """A RayJob that was labelled under Kueue hands its labels on to the RayCluster that it makes; its operator is told.

    A ConfigMap made nothing, and the resource of an operator is queued by nobody: Kueue would queue what it makes.
    """
    said = unserved.verdict(kind, {}, owned(*owner), frozenset(), username)
    found = "refused" if not said.allowed else "warned" if said.warnings else "silent"
    assert found == EXEMPT[owner, username]
    assert all(f"kind {kind} is not queued" in warning for warning in said.warnings)


def test_is_41_a_reference_to_what_is_no_controller_takes_nothing_past_the_refusal() -> None:
    for username in (CLUSTERS, OPERATOR):
        child = owned("ray.io/v1", "RayJob", controller=None)
        assert not unserved.verdict("RayCluster", {}, child, frozenset(), username).allowed


def test_is_41_what_a_resource_makes_that_another_controller_queues_is_left_alone_as_in_kueue() -> None:
    elsewhere = frozenset({("Database", "example.com")})
    assert unserved.verdict("Deployment", {}, owned("example.com/v1", "Database"), elsewhere, PERSON) == Verdict()
    assert not unserved.verdict("Deployment", {}, owned("other.com/v1", "Database"), elsewhere, PERSON).allowed


def test_is_41_kinds_that_another_controller_queues_are_that_ones_business() -> None:
    elsewhere = frozenset({("JobSet", "jobset.x-k8s.io"), ("RayJob", "another.io")})
    assert unserved.verdict("JobSet", {}, made(Q), elsewhere).allowed
    assert not unserved.verdict("RayJob", {}, made(Q), elsewhere).allowed, "the same name in another group"
    assert not unserved.verdict("MPIJob", {}, made(Q), elsewhere).allowed


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("Deployment", ("spec", "template")),
        ("ReplicaSet", ("spec", "template")),
        ("StatefulSet", ("spec", "template")),
        ("DaemonSet", ("spec", "template")),
        ("ReplicationController", ("spec", "template")),
        ("CronJob", ("spec", "jobTemplate")),
        ("CronJob", ("spec", "jobTemplate", "spec", "template")),
        ("LeaderWorkerSet", ("spec", "leaderWorkerTemplate", "workerTemplate")),
        ("MPIJob", ("spec", "mpiReplicaSpecs", "Worker", "template")),
        ("PyTorchJob", ("spec", "pytorchReplicaSpecs", "Master", "template")),
        ("RayJob", ("spec", "rayClusterSpec", "headGroupSpec", "template")),
    ],
)
def test_what_makes_queued_pods_or_jobs_may_say_so_itself(kind: str, path: tuple[str, ...]) -> None:
    assert unserved.verdict(kind, {}, made(Q, *path, label=Q)).allowed
    assert not unserved.verdict(kind, {}, made(Q, *path, label={"app": "x"})).allowed


def test_hd_169_each_part_that_makes_pods_or_jobs_has_to_say_so() -> None:
    """What one part queues, another would run without quota."""
    queued, not_queued = {"metadata": {"labels": Q}}, {"metadata": {"labels": {"app": "x"}}}
    pods_queued = {"metadata": {}, "spec": {"template": queued}}

    def job_set(*templates: Any) -> dict[str, Any]:
        return {"metadata": {"labels": Q}, "spec": {"replicatedJobs": [{"template": each} for each in templates]}}

    assert unserved.verdict("JobSet", {}, job_set(queued, pods_queued)).allowed
    assert not unserved.verdict("JobSet", {}, job_set(queued, not_queued)).allowed
    assert not unserved.verdict("JobSet", {}, job_set()).allowed
    ray = {"headGroupSpec": {"template": queued}, "workerGroupSpecs": [{"template": not_queued}]}
    assert not unserved.verdict("RayCluster", {}, {"metadata": {"labels": Q}, "spec": ray}).allowed


@pytest.mark.parametrize("kind", [each.kind for each in unserved.EXTENSIONS])
@pytest.mark.parametrize("spec", [None, 1, [], {"replicatedJobs": 1}, {"replicatedJobs": ["x", {"template": []}]}])
def test_any_spec_of_an_extension_gives_an_answer(kind: str, spec: Any) -> None:
    assert not unserved.verdict(kind, {}, {"metadata": {"labels": Q}, "spec": spec}).allowed
