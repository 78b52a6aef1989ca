"""The walk from a pod to what owns it: whose pod is left alone, and who is charged by itself."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator
from typing import Any

import pytest

from gatelift.config import Configuration
from gatelift.webhooks import ancestors
from gatelift.webhooks.ancestors import Ancestors
from gatelift.webhooks.ancestry import HOPS_MAX, KnownKinds, OwnerStanding, Walk
from gatelift.webhooks.app import Daemon, settings_of
from gatelift.webhooks.configuration import VALIDATING, Wanted, mutating, validating
from gatelift.webhooks.review import Question
from gatelift_kube.api.client import Client
from gatelift_kube.deciding.writes import EmitEvent
from gatelift_kube.objects.meta import ObjectMeta, OwnerReference
from gatelift_kube.process.tasks import spawn
from gatelift_kube.values.resources import EVENT, JOB, LOCAL_QUEUE, Resource
from support.manager.webhook_requests import Json, K, operations, queued
from support.servers.fake_apiserver import FakeApiServer
from support.until import until

from .conftest import SETTINGS, Asking

RAY_CLUSTER = Resource("ray.io", "v1", "RayCluster", "rayclusters")
RAY_JOB = Resource("ray.io", "v1", "RayJob", "rayjobs")
DEPLOYMENT = Resource("apps", "v1", "Deployment", "deployments")
REPLICA_SET = Resource("apps", "v1", "ReplicaSet", "replicasets")
OPERATOR = "system:serviceaccount:ray-system:kuberay-operator"
BY_OPERATOR: Json = {"username": OPERATOR}
BY_TENANT: Json = {"username": "a-tenant"}
BY_REPLICA_SETS: Json = {"username": "system:serviceaccount:kube-system:replicaset-controller"}
KINDS_OF_KUEUE = {
    "PW-008": "RayCluster.v1.ray.io",
    "PW-009": "MPIJob.v2beta1.kubeflow.org",
    "PW-010": "PyTorchJob.v1.kubeflow.org",
    "PW-011": "TFJob.v1.kubeflow.org",
    "PW-012": "XGBoostJob.v1.kubeflow.org",
    "PW-013": "PaddleJob.v1.kubeflow.org",
}
SETTING = dataclasses.replace(
    SETTINGS,
    external_frameworks=("RayJob.v1.ray.io", *KINDS_OF_KUEUE.values()),
    pod_makers=(OPERATOR,),
)


@pytest.fixture
async def walking(client: Client, server: FakeApiServer) -> AsyncIterator[Asking]:
    """Ask in a namespace in which a queue `default` queues every pod."""
    server.put(LOCAL_QUEUE, "default", "team", spec={"clusterQueue": "near"})
    daemon = Daemon(client, SETTING)
    await daemon.start()
    await until(lambda: not daemon.missing(), "the daemon is ready")
    yield Asking(server, daemon)
    await daemon.stop()


def owner(resource: Resource, name: str, uid: str = "") -> Json:
    kind = {"apiVersion": resource.api_version, "kind": resource.kind}
    return {**kind, "name": name, "uid": uid or f"uid-{name}", "controller": True}


def put(server: FakeApiServer, resource: Resource, name: str, *, queue: str = "", above: Json | None = None) -> None:
    labels = {f"{K}queue-name": queue} if queue else {}
    server.put(resource, name, "team", metadata={"labels": labels, "ownerReferences": [above] if above else []})


def pod_of(*owners: Json) -> Json:
    return {"metadata": {"ownerReferences": list(owners)}, "spec": {"containers": []}}


async def taken(asking: Asking, pod: Json, user: Json, **request: Any) -> tuple[bool, str]:
    """Return whether the pod is queued by itself, and what its maker is told."""
    response = await asking.review("/mutate-pod", "Pod", pod, userInfo=user, **request)
    assert response["allowed"]
    return bool(operations(response)), " ".join(response.get("warnings", []))


@pytest.mark.parametrize("case", KINDS_OF_KUEUE)
async def test_pg_24_a_pod_that_the_operator_makes_for_a_queued_owner_is_left_alone(
    walking: Asking, server: FakeApiServer, case: str
) -> None:
    """PW-008 to PW-013: RayCluster, MPIJob, PyTorchJob, TFJob, XGBoostJob, PaddleJob."""
    kind, version, group = KINDS_OF_KUEUE[case].split(".", 2)
    resource = Resource(group, version, kind, f"{kind.lower()}s")
    put(server, resource, "it", queue="near")
    pod = pod_of(owner(resource, "it"))
    assert await taken(walking, pod, BY_OPERATOR) == (False, "")
    assert (await walking.review("/validate-pod", "Pod", pod, userInfo=BY_OPERATOR))["allowed"]
    put(server, resource, "free")
    assert await taken(walking, pod_of(owner(resource, "free")), BY_OPERATOR) == (True, "")


async def test_kep_976s_pods_of_a_raycluster_are_skipped_through_the_rayjob_above_it(
    walking: Asking, server: FakeApiServer
) -> None:
    """PG-24: of kinds that others queue nobody but those who are vouched for writes who owns them."""
    put(server, RAY_JOB, "job", queue="near")
    put(server, RAY_CLUSTER, "cluster", above=owner(RAY_JOB, "job"))
    assert await taken(walking, pod_of(owner(RAY_CLUSTER, "cluster")), BY_OPERATOR) == (False, "")


@pytest.mark.parametrize(
    "user",
    [
        BY_TENANT,
        {"username": "system:serviceaccount:team:kuberay-operator"},
        {"username": "system:serviceaccount:kube-system:job-controller"},
        {},
    ],
)
async def test_hd_375_one_that_anybody_else_makes_is_charged_by_itself_and_told(
    walking: Asking, server: FakeApiServer, user: Json
) -> None:
    put(server, RAY_CLUSTER, "it", queue="near")
    queued_itself, told = await taken(walking, pod_of(owner(RAY_CLUSTER, "it")), user)
    assert queued_itself
    assert "RayCluster it is queued, but nobody whom gatelift.podMakers names" in told


async def test_hd_375_what_a_tenant_may_put_between_makes_no_pod_of_its_controller_anybody_elses(
    walking: Asking, server: FakeApiServer
) -> None:
    """A ReplicaSet that names a queued RayCluster: its pods are made by the cluster's own controller."""
    put(server, RAY_CLUSTER, "it", queue="near")
    put(server, REPLICA_SET, "between", above=owner(RAY_CLUSTER, "it"))
    for user in (BY_REPLICA_SETS, BY_OPERATOR):
        queued_itself, told = await taken(walking, pod_of(owner(REPLICA_SET, "between")), user)
        assert queued_itself
        assert "RayCluster it is queued, but" in told


async def test_hd_143_nor_does_a_queued_job_further_up_count(walking: Asking, server: FakeApiServer) -> None:
    put(server, JOB, "j", queue="near")
    put(server, RAY_CLUSTER, "it", above=owner(JOB, "j"))
    assert (await taken(walking, pod_of(owner(RAY_CLUSTER, "it")), BY_OPERATOR))[0]


async def test_an_owner_of_another_uid_is_not_the_owner(walking: Asking, server: FakeApiServer) -> None:
    """PG-24."""
    put(server, RAY_CLUSTER, "it", queue="near")
    assert (await taken(walking, pod_of(owner(RAY_CLUSTER, "it", "uid-of-an-earlier-one")), BY_OPERATOR))[0]


async def test_hd_375_one_whose_owner_is_missing_or_may_not_be_read_is_charged_by_itself_and_told(
    walking: Asking, server: FakeApiServer
) -> None:
    """PW-007: Kueue refuses it. An owner of kind Job that is missing is refused here, too."""
    assert await taken(walking, pod_of(owner(RAY_CLUSTER, "gone")), BY_OPERATOR) == (
        True,
        "metadata.ownerReferences: RayCluster gone is not there: the pod is queued and charged by itself",
    )
    assert "is not there" in (await taken(walking, pod_of(owner(RAY_CLUSTER, "..")), BY_OPERATOR))[1]
    server.fault("GET", "/rayclusters/it", status=403)
    queued_itself, told = await taken(walking, pod_of(owner(RAY_CLUSTER, "it")), BY_OPERATOR)
    assert queued_itself
    assert "for want of the rights in deploy/components/owners" in told


async def test_hd_375_what_could_not_be_read_is_asked_again(walking: Asking, server: FakeApiServer) -> None:
    pod = pod_of(owner(RAY_CLUSTER, "it"))
    assert (await taken(walking, pod, BY_OPERATOR))[0]
    put(server, RAY_CLUSTER, "it", queue="near")
    assert not (await taken(walking, pod, BY_OPERATOR))[0]


async def test_an_owner_is_read_once_for_all_pods_of_the_operator_and_for_each_pod_of_anybody_else(
    walking: Asking, server: FakeApiServer
) -> None:
    put(server, RAY_CLUSTER, "it", queue="near")
    for _ in range(3):
        await taken(walking, pod_of(owner(RAY_CLUSTER, "it")), BY_OPERATOR)
    assert len(server.asked("GET", "/rayclusters/it")) == 1
    for _ in range(2):
        await taken(walking, pod_of(owner(RAY_CLUSTER, "it")), BY_TENANT)
    assert len(server.asked("GET", "/rayclusters/it")) == 3


async def test_more_than_ten_owners_are_an_event_at_the_owner_and_none_on_a_dry_run(
    walking: Asking, server: FakeApiServer
) -> None:
    """PG-24: JobNestingTooDeep."""
    for number in range(HOPS_MAX + 2):
        put(server, RAY_CLUSTER, f"c{number}", above=owner(RAY_CLUSTER, f"c{number + 1}"))
    put(server, RAY_CLUSTER, f"c{HOPS_MAX + 2}", queue="near")
    pod = pod_of(owner(RAY_CLUSTER, "c0"))
    queued_itself, told = await taken(walking, pod, BY_OPERATOR, dryRun=True)
    assert queued_itself
    assert "more than 10 owners one above the other" in told
    await taken(walking, pod, BY_TENANT)
    assert not server.asked("POST", "/events")
    await taken(walking, pod, BY_OPERATOR)
    await until(lambda: bool(server.asked("POST", "/events")), "the event is there")
    (event,) = server.all(EVENT)
    assert (event["reason"], event["regarding"]["name"], event["type"]) == ("JobNestingTooDeep", "c0", "Warning")


async def test_ten_owners_are_looked_at(walking: Asking, server: FakeApiServer) -> None:
    """PG-24."""
    for number in range(HOPS_MAX - 1):
        put(server, RAY_CLUSTER, f"c{number}", above=owner(RAY_CLUSTER, f"c{number + 1}"))
    put(server, RAY_CLUSTER, f"c{HOPS_MAX - 1}", queue="near")
    assert not (await taken(walking, pod_of(owner(RAY_CLUSTER, "c0")), BY_OPERATOR))[0]


async def test_owners_that_own_each_other_end_the_walk(walking: Asking, server: FakeApiServer) -> None:
    """PG-24: a circle."""
    put(server, RAY_CLUSTER, "a", above=owner(RAY_CLUSTER, "b"))
    put(server, RAY_CLUSTER, "b", above=owner(RAY_CLUSTER, "a"))
    assert await taken(walking, pod_of(owner(RAY_CLUSTER, "a")), BY_OPERATOR) == (True, "")
    assert len(server.asked("GET", "/rayclusters/")) == 2


async def test_without_external_frameworks_nothing_is_read(asking: Asking, server: FakeApiServer) -> None:
    put(server, RAY_CLUSTER, "it", queue="near")
    pod = queued(ownerReferences=[owner(RAY_CLUSTER, "it")])
    assert (await taken(asking, pod, BY_OPERATOR))[0]
    assert not server.asked("GET", "/rayclusters/")


async def test_nor_where_pods_are_not_queued(walking: Asking, server: FakeApiServer) -> None:
    put(server, RAY_CLUSTER, "it", queue="near")
    pod = pod_of(owner(RAY_CLUSTER, "it"))
    assert not (await taken(walking, pod, BY_TENANT, namespace="kube-system"))[0]
    assert not server.asked("GET", "/rayclusters/")


async def test_a_walk_that_takes_too_long_ends_on_the_safe_side(
    client: Client, server: FakeApiServer, monkeypatch: Any
) -> None:
    """PG-24: three seconds in all, the wait for a place to read included."""
    monkeypatch.setattr(ancestors, "READ_SECONDS_MAX", 0.0)
    put(server, RAY_CLUSTER, "it", queue="near")
    told: list[EmitEvent] = []
    known = Ancestors(client, KnownKinds(["RayCluster.v1.ray.io"]), frozenset({OPERATOR}), record=told.append)
    question = asked_by(OPERATOR, pod_of(owner(RAY_CLUSTER, "it")))
    found = await known.of(question)
    assert found.standing is OwnerStanding.UNREAD
    known.tell(question, found)
    assert [event.reason for event in told] == ["OwnerNotRead"]


async def test_whose_answers_are_not_kept_takes_no_place_of_those_who_are_believed(
    client: Client, server: FakeApiServer
) -> None:
    put(server, RAY_CLUSTER, "it", queue="near")
    known = Ancestors(client, KnownKinds(["RayCluster.v1.ray.io"]), frozenset({OPERATOR}))
    pod = pod_of(owner(RAY_CLUSTER, "it"))
    for _ in range(ancestors.READS_MAX):
        await known._reads[False].acquire()
    waiting = spawn("a walk of a tenant's", known.of(asked_by("a-tenant", pod)))
    assert (await known.of(asked_by(OPERATOR, pod))).standing is OwnerStanding.OWNERS
    known._reads[False].release()
    assert (await waiting).standing is OwnerStanding.CLAIMED


async def test_the_memory_of_walks_is_bounded(client: Client, server: FakeApiServer, monkeypatch: Any) -> None:
    monkeypatch.setattr(ancestors, "KEPT_MAX", 2)
    known = Ancestors(client, KnownKinds(["RayCluster.v1.ray.io"]), frozenset({OPERATOR}))
    for name in ("a", "b", "c"):
        put(server, RAY_CLUSTER, name)
        await known.of(asked_by(OPERATOR, pod_of(owner(RAY_CLUSTER, name))))
    assert len(known._kept) == 2


def asked_by(username: str, pod: Json) -> Question:
    return Question(
        uid="u", operation="CREATE", kind="Pod", namespace="team", new=pod, old={}, groups=(), username=username
    )


@pytest.mark.parametrize("version", ["v1", "../v1", "", "v1/namespaces/other/rayclusters/x?"])
def test_hd_375_no_version_that_somebody_wrote_leads_to_another_path(version: str) -> None:
    reference = OwnerReference(api_version=f"jobset.x-k8s.io/{version}", kind="JobSet", name="x", uid="u")
    walk = Walk(KnownKinds(["RayCluster.v1.ray.io"]), reference, vouched=True)
    assert (walk.asks is not None) is (version == "v1")


def test_owners_of_all_kinds_that_kueue_knows_are_walked_over_and_of_no_other() -> None:
    """PG-24."""
    known = KnownKinds(["RayCluster.v1.ray.io"])
    for api_version, kind in [("apps/v1", "ReplicaSet"), ("v1", "Pod"), ("batch/v1", "Job"), ("ray.io/v1", "RayJob")]:
        walk = Walk(known, OwnerReference(api_version=api_version, kind=kind, name="x", uid="u"), vouched=True)
        assert walk.asks is not None
        walk.read(ObjectMeta(name="x", uid="u"))
        assert walk.end.standing is OwnerStanding.NOBODYS
    other = OwnerReference(api_version="example.com/v1", kind="Database", name="x", uid="u")
    assert Walk(known, other, vouched=True).asks is None


@pytest.mark.parametrize(
    ("kind", "plural"), [("PipelineRun", "pipelineruns"), ("Policy", "policies"), ("Process", "processes")]
)
def test_a_kind_of_no_table_has_the_usual_plural(kind: str, plural: str) -> None:
    (resource,) = KnownKinds([f"{kind}.v1.example.com"]).external
    assert resource.plural == plural


@pytest.mark.parametrize(
    ("user", "allowed"),
    [
        (BY_TENANT, False),
        ({"username": "system:serviceaccount:team:builder"}, False),
        (BY_OPERATOR, True),
        ({"username": "system:serviceaccount:kube-system:generic-garbage-collector"}, True),
    ],
)
async def test_hd_376_only_who_is_vouched_for_writes_that_one_external_kind_owns_another(
    walking: Asking, server: FakeApiServer, user: Json, *, allowed: bool
) -> None:
    """Else a RayCluster of a tenant's, which names a queued RayJob, would run uncharged with all its pods."""
    mine = {"metadata": {"ownerReferences": [owner(RAY_JOB, "job")]}, "spec": {}}
    response = await walking.review("/validate-owned", "RayCluster", mine, userInfo=user, group="ray.io")
    assert response["allowed"] is allowed
    if not allowed:
        assert response["status"]["message"] == (
            "metadata.ownerReferences: Forbidden: only accounts that gatelift.podMakers names may say that RayJob job "
            "is its controller, since its pods are charged there: leave the owner out"
        )


async def test_hd_376_what_names_none_or_named_it_before_may_be_changed(walking: Asking) -> None:
    mine = {"metadata": {"ownerReferences": [owner(RAY_JOB, "job")]}}
    response = await walking.review("/validate-owned", "RayCluster", mine, mine, userInfo=BY_TENANT, group="ray.io")
    assert response["allowed"]
    forms: list[Any] = [{}, {"ownerReferences": None}, {"ownerReferences": "x"}, {"ownerReferences": [1]}, []]
    for metadata in forms:
        new = {"metadata": metadata}
        asked = await walking.review("/validate-owned", "MPIJob", new, userInfo=BY_TENANT, group="kubeflow.org")
        assert asked["allowed"]
    of_others = {"metadata": {"ownerReferences": [owner(DEPLOYMENT, "d")]}}
    response = await walking.review("/validate-owned", "RayCluster", of_others, userInfo=BY_TENANT, group="ray.io")
    assert response["allowed"]


def test_hd_376_who_is_vouched_for_is_not_asked_about_and_without_external_kinds_nobody() -> None:
    plain = Wanted(namespace="gatelift-system")
    assert not [one for one in validating(plain) if one["name"] == "validate.owned.gatelift.dev"]
    assert {one["sideEffects"] for one in mutating(plain)} == {"None"}
    external = dataclasses.replace(plain, external=(RAY_CLUSTER,), makers=(OPERATOR,))
    assert {one["sideEffects"] for one in mutating(external) if one["name"].startswith("mutate")} == {"NoneOnDryRun"}
    (owned,) = [one for one in validating(external) if one["name"] == "validate.owned.gatelift.dev"]
    assert owned["rules"] == [
        {
            "apiGroups": ["ray.io"],
            "apiVersions": ["*"],
            "operations": ["CREATE", "UPDATE"],
            "resources": ["rayclusters"],
            "scope": "Namespaced",
        }
    ]
    conditions = {one["name"]: one["expression"] for one in owned["matchConditions"]}
    assert f"request.userInfo.username == '{OPERATOR}'" in conditions["not-vouched-for"]
    assert owned["failurePolicy"] == "Fail"
    assert VALIDATING.kind == "ValidatingWebhookConfiguration"


def test_hd_377_a_clusterqueue_whose_annotations_alone_are_changed_is_shown() -> None:
    wanted = validating(Wanted(namespace="gatelift-system"))
    (queue,) = [one for one in wanted if one["name"] == "validate.clusterqueue.gatelift.dev"]
    changed = {one["name"]: one["expression"] for one in queue["matchConditions"]}["changed"]
    assert "object.metadata.annotations != oldObject.metadata.annotations" in changed


def test_the_file_names_who_makes_pods() -> None:
    file = Configuration.model_validate(
        {"integrations": {"externalFrameworks": ["RayCluster.v1.ray.io"]}, "gatelift": {"podMakers": [OPERATOR]}}
    )
    settings = settings_of(file)
    assert settings.pod_makers == (OPERATOR,)
    for name in (
        "kuberay-operator",
        "system:serviceaccount:*:x",
        "system:anonymous",
        "system:serviceaccount:a:b' || 'x",
    ):
        with pytest.raises(ValueError, match="is no service account; write system:serviceaccount:NAMESPACE:NAME"):
            Configuration.model_validate({"gatelift": {"podMakers": [name]}})
