"""Kueue's kinds on a real API server: the rules on them, and their older version. CRDs and the webhooks daemon only."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import pytest_asyncio

from gatelift.webhooks.ancestry import KnownKinds
from gatelift.webhooks.configuration import DEFINITION, MUTATING, NAME, VALIDATING, Wanted, mutating, validating
from gatelift_kube.values.resources import CLUSTER_QUEUE
from support.e2e.policies_in_force import policies_in_force
from support.e2e.rules import webhooks_alone
from support.manager.validation_cases import NAMESPACE, Case, cases, old_and_new, smallest
from support.servers.contract_api import MERGE, Api, Said, until_said

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(600)]

Json = dict[str, Any]
CASES = [pytest.param(one, id=one.rule) for one in cases()]
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
CONFIGURATION = f"/apis/{VALIDATING.api_version}/{VALIDATING.plural}/{NAME}"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def api(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Api]:
    async with webhooks_alone(tmp_path_factory.mktemp("rules"), "rules") as (installation, cluster, made):
        # Nobody here is Gatelift: what else is wrong with a status is to be seen.
        (await made.delete(f"{POLICIES}/gatelift-workload-status")).ok()
        async with await installation.admin(cluster) as client:
            await policies_in_force(client)  # and this one no more
        await until_refused(made)
        yield made


def place(case: Case) -> str:
    """Return the path of the kind's objects."""
    space = f"/namespaces/{NAMESPACE}" if case.resource.namespaced else ""
    return f"/apis/{case.resource.api_version}{space}/{case.resource.plural}"


@asynccontextmanager
async def standing(api: Api, case: Case) -> AsyncIterator[None]:
    """Have the object that there is before the change, if any."""
    old, _ = old_and_new(case, {})
    if old is None:
        yield
        return
    try:
        if case.around:
            await made_around_the_webhooks(api, place(case), old)
        else:
            (await api.post(place(case), old)).ok()
        if "status" in old and not case.around:
            (await api.patch(f"{place(case)}/it/status", {"status": old["status"]})).ok()
        yield
    finally:
        await gone(api, f"{place(case)}/it")


async def gone(api: Api, path: str) -> None:
    """Delete an object, if it was made, and wait until it is gone: the next case has one of its name."""
    await api.delete(path)
    await api.until_gone(path)


async def until_accepted(answered: Callable[[], Awaitable[Said]], what: str) -> None:
    """Ask until the API server accepts."""
    await until_said(answered, lambda said: said.code < 300, what)


async def made_around_the_webhooks(api: Api, path: str, document: Json) -> None:
    """Make an object that a webhook would refuse: as soon as the API server has seen that there is none.

    The webhooks daemon looks after its configuration and may bring it back at any moment, so it is taken away again.
    Afterwards they are asked as ever.
    """
    configured = (await api.get(CONFIGURATION)).ok()

    async def without_webhooks() -> Said:
        (await api.call("PATCH", CONFIGURATION, {"webhooks": []}, media=MERGE)).ok()
        return await api.post(path, document)

    try:
        await until_accepted(without_webhooks, "the object is made while nothing asks the webhooks")
    finally:
        (await api.call("PATCH", CONFIGURATION, {"webhooks": configured["webhooks"]}, media=MERGE)).ok()
        await until_refused(api)


async def until_refused(api: Api) -> None:
    """Wait until the API server asks the webhooks, which takes it a moment after their configuration was written.

    That nobody answers it yet, or that the kind is not served yet, is no refusal.
    """
    document = copy.deepcopy(smallest(CLUSTER_QUEUE))
    document["metadata"]["name"] = "refused"
    document["spec"]["fairSharing"] = {"weight": "1n"}
    await until_said(
        lambda: api.post(f"/apis/{CLUSTER_QUEUE.api_version}/{CLUSTER_QUEUE.plural}", document, dryRun="All"),
        lambda said: "validate.clusterqueue.gatelift.dev" in said.message and "must be 0 or more" in said.message,
        "the webhooks are asked, and refuse",
    )


async def asked(api: Api, case: Case, change: Json) -> Said:
    """Ask the API server for a change, or for a new object, without its being carried out."""
    old, new = old_and_new(case, change)
    if old is None:
        return await api.post(place(case), new, dryRun="All")
    path = f"{place(case)}/it/status" if "status" in change else f"{place(case)}/it"
    stored = (await api.get(f"{place(case)}/it")).ok()
    part = "status" if "status" in change else "spec"
    return await api.put(path, {**stored, part: new[part]}, dryRun="All")


@pytest.mark.parametrize("case", CASES)
async def test_the_api_server_accepts_what_keeps_the_rule_and_says_what_breaks_it(api: Api, case: Case) -> None:
    async with standing(api, case):
        (await asked(api, case, case.accepted)).ok()
        said = await asked(api, case, case.refused)
        assert said.code in {400, 422}, said
        assert case.server in said.message


async def test_the_webhooks_keep_their_configuration_up_to_date_with_their_own_rights(api: Api) -> None:
    webhooks = (await api.get(CONFIGURATION)).ok()["webhooks"]
    assert {one["name"] for one in webhooks} >= {"validate.clusterqueue.gatelift.dev", "validate.workload.gatelift.dev"}
    assert all(one["clientConfig"]["caBundle"] for one in webhooks)


async def test_hd_376_the_api_server_takes_the_conditions_by_which_an_owner_is_asked_about(api: Api) -> None:
    external = KnownKinds(("RayCluster.v1.ray.io", "RayJob.v1.ray.io")).external
    makers = ("system:serviceaccount:ray-system:kuberay-operator",)
    wanted = Wanted(namespace="gatelift-system", url="https://127.0.0.1:1", external=external, makers=makers)
    for resource, webhooks in ((VALIDATING, validating(wanted)), (MUTATING, mutating(wanted))):
        meta = {"name": "tried", "labels": {}}
        document = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta, "webhooks": webhooks}
        (await api.post(f"/apis/{resource.api_version}/{resource.plural}", document, dryRun="All")).ok()


async def test_hd_377_bg_33_an_annotation_that_alone_is_changed_is_reviewed(api: Api) -> None:
    document = copy.deepcopy(smallest(CLUSTER_QUEUE))
    document["metadata"]["name"] = "annotated"
    path = f"/apis/{CLUSTER_QUEUE.api_version}/{CLUSTER_QUEUE.plural}"
    (await api.post(path, document)).ok()
    try:
        for value, code in (("true", 200), ("yes", 422)):
            change = {"metadata": {"annotations": {"gatelift.dev/release-partial": value}}}
            said = await api.call("PATCH", f"{path}/annotated", change, media=MERGE)
            assert said.code == code, said
    finally:
        await gone(api, f"{path}/annotated")


OLD, NEW = "/apis/kueue.x-k8s.io/v1beta1", "/apis/kueue.x-k8s.io/v1beta2"
OLD_QUEUE = {
    "apiVersion": "kueue.x-k8s.io/v1beta1",
    "kind": "ClusterQueue",
    "metadata": {"name": "older"},
    "spec": {
        "cohort": "team",
        "admissionChecks": ["a"],
        "flavorFungibility": {"whenCanBorrow": "Borrow"},
        "resourceGroups": [
            {
                "coveredResources": ["cpu"],
                "flavors": [{"name": "f", "resources": [{"name": "cpu", "nominalQuota": 2, "borrowingLimit": 1}]}],
            }
        ],
    },
}


async def test_a_manifest_of_the_older_version_is_stored_as_the_newer_one_and_shown_as_either(api: Api) -> None:
    await until_converted(api, f"{OLD}/clusterqueues", OLD_QUEUE)
    try:
        await shown_as_either(api)
    finally:
        await gone(api, f"{NEW}/clusterqueues/older")


async def until_converted(api: Api, path: str, document: Json) -> None:
    """Wait until a kind is taken in the older version: the API server hears late of whom it asks to convert it."""
    await until_accepted(lambda: api.post(path, document, dryRun="All"), f"{path} takes the older version")


async def shown_as_either(api: Api) -> None:
    made = await api.post(f"{OLD}/clusterqueues", OLD_QUEUE)
    assert made.ok()["spec"]["cohort"] == "team"
    assert any("deprecated" in warning for warning in made.warnings)
    newer = (await api.get(f"{NEW}/clusterqueues/older")).ok()["spec"]
    assert newer["cohortName"] == "team"
    assert newer["admissionChecksStrategy"] == {"admissionChecks": [{"name": "a"}]}
    assert newer["flavorFungibility"] == {"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "TryNextFlavor"}
    again = (await api.call("PATCH", f"{OLD}/clusterqueues/older", {"spec": {"cohort": "other"}}, media=MERGE)).ok()
    assert again["spec"]["cohort"] == "other"
    assert (await api.get(f"{NEW}/clusterqueues/older")).ok()["spec"]["cohortName"] == "other"
    listed = (await api.get(f"{OLD}/clusterqueues")).ok()["items"]
    assert [one["spec"]["cohort"] for one in listed if one["metadata"]["name"] == "older"] == ["other"]


async def test_rules_hold_for_the_older_version_too(api: Api) -> None:
    await until_converted(api, f"{OLD}/clusterqueues", OLD_QUEUE)
    alone = copy.deepcopy(OLD_QUEUE)
    del alone["spec"]["cohort"]  # type: ignore[attr-defined]  # a plain document
    said = await api.post(f"{OLD}/clusterqueues", alone, dryRun="All")
    assert "borrowingLimit needs a cohort" in said.message
    wrong = copy.deepcopy(OLD_QUEUE)
    wrong["spec"]["fairSharing"] = {"weight": "1n"}  # type: ignore[index]  # a plain document
    said = await api.post(f"{OLD}/clusterqueues", wrong, dryRun="All")
    assert "spec.fairSharing.weight: Invalid value: must be 0 or more than 1n: raise it" in said.message


async def test_every_kind_of_kueues_is_served_in_the_older_version(api: Api) -> None:
    template = {"spec": {"containers": [{"name": "c"}]}}
    source = "kueue.x-k8s.io/workloadpriorityclass"
    specs: dict[str, tuple[str, Json]] = {
        "localqueues": ("LocalQueue", {"spec": {"clusterQueue": "cq"}}),
        "resourceflavors": ("ResourceFlavor", {"spec": {"nodeLabels": {"a": "b"}}}),
        "cohorts": ("Cohort", {"spec": {"parentName": "a"}}),
        "admissionchecks": ("AdmissionCheck", {"spec": {"controllerName": "a/b", "retryDelayMinutes": 15}}),
        "workloadpriorityclasses": ("WorkloadPriorityClass", {"value": 3}),
        "multikueueconfigs": ("MultiKueueConfig", {"spec": {"clusters": ["a"]}}),
        "multikueueclusters": ("MultiKueueCluster", {"spec": {"kubeConfig": {"location": "s"}}}),
        "workloads": (
            "Workload",
            {
                "spec": {
                    "priority": 1,
                    "priorityClassName": "x",
                    "priorityClassSource": source,
                    "podSets": [{"template": template}],
                }
            },
        ),
    }
    for plural, (kind, parts) in specs.items():
        space = f"/namespaces/{NAMESPACE}" if plural in {"localqueues", "workloads"} else ""
        document = {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": kind, "metadata": {"name": "older"}, **parts}
        await until_converted(api, f"{OLD}{space}/{plural}", document)
        (await api.post(f"{OLD}{space}/{plural}", document)).ok()
        (await api.get(f"{NEW}{space}/{plural}/older")).ok()
        (await api.get(f"{OLD}{space}/{plural}/older")).ok()
    workload = (await api.get(f"{NEW}/namespaces/{NAMESPACE}/workloads/older")).ok()
    assert workload["spec"]["priorityClassRef"]["kind"] == "WorkloadPriorityClass"


# --- what makes pods ----------------------------------------------------------------------------------------------

Q = {"kueue.x-k8s.io/queue-name": "q"}
GROUPS = {"CronJob": "batch/v1", "ReplicationController": "v1", "JobSet": "jobset.x-k8s.io/v1alpha2"}
_PODS = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "registry.local/worker:1"}]}}


def a_maker(kind: str, labels: Json, below: Json) -> tuple[str, Json]:
    """Return the path of a kind that makes pods, and an object with labels on itself and on its template."""
    if kind == "CronJob":
        template: Json = {"metadata": {"labels": below}, "spec": {"template": _PODS}}
        spec = {"schedule": "0 0 * * *", "suspend": True, "jobTemplate": template}
    else:
        labelled = {
            "metadata": {"labels": {"app": "it", **below}},
            "spec": {**_PODS["spec"], "restartPolicy": "Always"},
        }
        selector: Json = {"app": "it"} if kind == "ReplicationController" else {"matchLabels": {"app": "it"}}
        spec = {"selector": selector, "template": labelled} | ({} if kind == "DaemonSet" else {"replicas": 0})
    if kind == "JobSet":
        template = {"metadata": {"labels": below}, "spec": {"template": _PODS}}
        spec = {"replicatedJobs": [{"name": "one", "template": template}]}
    group = GROUPS.get(kind, "apps/v1")
    metadata = {"name": f"it-{kind.lower()}", "labels": labels}
    path = f"{'/api' if group == 'v1' else '/apis'}/{group}/namespaces/{NAMESPACE}/{kind.lower()}s"
    return path, {"apiVersion": group, "kind": kind, "metadata": metadata, "spec": spec}


async def have_job_sets(api: Api) -> None:
    """Have a CRD of JobSets, as whoever installs them has one."""
    any_object = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": any_object, "status": any_object}}
    version = {
        "name": "v1alpha2",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
    group, names = "jobset.x-k8s.io", {"kind": "JobSet", "plural": "jobsets", "singular": "jobset"}
    definition = {
        "apiVersion": DEFINITION.api_version,
        "kind": DEFINITION.kind,
        "metadata": {
            "name": f"jobsets.{group}",
            # What the API server asks for under this domain; nobody approves a CRD of a test.
            "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"},
        },
        "spec": {"group": group, "names": names, "scope": "Namespaced", "versions": [version]},
    }
    said = await api.post(f"/apis/{DEFINITION.api_version}/{DEFINITION.plural}", definition)
    assert said.code in {201, 409}, said
    path = f"/apis/{GROUPS['JobSet']}/namespaces/{NAMESPACE}/jobsets"
    await until_accepted(lambda: api.get(path), "JobSets are served")


HD_169 = [pytest.param(kind, id=f"HD-169 {kind}") for kind in ("DaemonSet", "ReplicationController", "JobSet")]


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "ReplicaSet", "CronJob", *HD_169])
async def test_hd_158_a_queues_name_that_holds_nothing_is_refused_and_nothing_else_is_asked_about(
    api: Api, kind: str
) -> None:
    if kind == "JobSet":
        await have_job_sets(api)
    path, labelled = a_maker(kind, Q, {})
    said = await api.post(path, labelled, dryRun="All")
    assert said.code == 403
    assert f"kind {kind} is not queued by this version" in said.message
    labelled["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "own", "uid": "u", "controller": True}
    ]
    assert (await api.post(path, labelled, dryRun="All")).code == 403, (
        "IS-41: an owner that somebody wrote made nothing"
    )
    (await api.post(path, a_maker(kind, Q, Q)[1], dryRun="All")).ok()
    it = f"{path}/it-{kind.lower()}"
    try:
        (await api.post(path, a_maker(kind, {}, {})[1])).ok()
        (await api.patch(it, {"metadata": {"labels": {"team": "x"}}})).ok()
        said = await api.patch(it, {"metadata": {"labels": Q}})
        assert said.code == 403
    finally:
        await gone(api, it)


@pytest.mark.parametrize("kind", ["DaemonSet", "JobSet"])
async def test_hd_169_what_had_the_label_before_is_changed_shown_and_deleted_as_ever(api: Api, kind: str) -> None:
    if kind == "JobSet":
        await have_job_sets(api)
    path, labelled = a_maker(kind, Q, {})
    it = f"{path}/it-{kind.lower()}"
    try:
        await made_around_the_webhooks(api, path, labelled)
        other = a_maker(kind, Q, {})[1]
        other["metadata"]["name"] = "another"
        assert (await api.post(path, other, dryRun="All")).code == 403, "what is new is refused again"
        (await api.patch(f"{it}/status", {"status": {"observedGeneration": 1}})).ok()
        (await api.patch(it, {"metadata": {"labels": {"team": "x"}, "finalizers": ["example.com/held"]}})).ok()
        (await api.delete(it)).ok()
        (await api.patch(it, {"metadata": {"finalizers": []}})).ok()
    finally:
        await api.patch(it, {"metadata": {"finalizers": []}})  # where it failed before
        await gone(api, it)
