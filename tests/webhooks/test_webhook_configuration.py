"""What the API server is asked to show us: narrow, complete, and the same after a round trip."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gatelift.webhooks import configuration
from gatelift.webhooks.configuration import Wanted
from gatelift_kinds.shared import unserved
from gatelift_kube.objects.meta import LabelSelector
from gatelift_sandbox.embedded import conditions

BASE = Wanted(namespace="gatelift-system")
SERVICE = {"namespace": "gatelift-system", "name": "gatelift-webhooks", "path": "/mutate-pod", "port": 443}
OUTSIDE = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["gatelift-system", "kube-system"]}


def names(webhooks: list[dict[str, Any]]) -> list[str]:
    return [one["name"] for one in webhooks]


def test_pods_and_jobs_are_mutated_when_made_and_validated_when_made_or_changed() -> None:
    for webhooks, operations in (
        (configuration.mutating(BASE), ["CREATE"]),
        (configuration.validating(BASE), ["CREATE", "UPDATE"]),
    ):
        assert [one["rules"][0]["resources"][0] for one in webhooks[:2]] == ["pods", "jobs"]
        assert [one["rules"][0]["operations"] for one in webhooks[:2]] == [operations, operations]


def test_kueues_kinds_are_validated_by_anybody_but_us_in_whatever_version_they_come() -> None:
    asked = configuration.validating(BASE)[2:-3]
    assert [(one["rules"][0]["resources"], one["rules"][0]["scope"]) for one in asked] == [
        (["clusterqueues"], "Cluster"),
        (["cohorts"], "Cluster"),
        (["resourceflavors"], "Cluster"),
        (["workloads", "workloads/status"], "Namespaced"),
        (["localqueues"], "Namespaced"),
        (["admissionchecks"], "Cluster"),
        (["multikueueconfigs"], "Cluster"),
        (["multikueueclusters"], "Cluster"),
        (["workerclusters"], "Cluster"),
    ]
    for one in asked:
        ours = one["rules"][0]["apiGroups"] == ["gatelift.dev"]
        assert one["rules"][0]["apiVersions"] == (["v1alpha1"] if ours else ["v1beta2"])
        assert one["matchPolicy"] == "Equivalent", "the API server converts older versions before it asks"
        conditions = {condition["name"]: condition["expression"] for condition in one["matchConditions"]}
        assert "'system:serviceaccounts:gatelift-system' in request.userInfo.groups" in conditions["not-gatelift"]
        assert "object.spec != oldObject.spec" in conditions["changed"]
        assert ("object.status != oldObject.status" in conditions["changed"]) is (
            "workloads" in one["rules"][0]["resources"]
        )


def test_is_40_what_is_only_warned_of_is_written_while_we_are_down() -> None:
    policies = {one["name"].split(".")[1]: one["failurePolicy"] for one in configuration.validating(BASE)[2:-3]}
    assert {name for name, policy in policies.items() if policy == "Ignore"} == set(configuration.WARNED)
    assert policies["clusterqueue"] == policies["workload"] == "Fail"


def test_hd_158_of_what_makes_pods_only_what_carries_a_queues_name_anew_is_asked_about() -> None:
    """So an outage of ours keeps nothing else from being made, scaled or rolled out."""
    asked = configuration.validating(BASE)[-3]
    rules = {
        (one["apiGroups"][0], one["resources"][0]): (one["apiVersions"], one["operations"]) for one in asked["rules"]
    }
    written = ["CREATE", "UPDATE"]
    assert [rules["apps", plural] for plural in ("deployments", "replicasets", "statefulsets", "daemonsets")] == [
        (["v1"], written)
    ] * 4
    assert rules["batch", "cronjobs"] == rules["", "replicationcontrollers"] == (["v1"], written)
    assert len(rules) == len(asked["rules"]) == len(unserved.MAKERS)
    key = "kueue.x-k8s.io/queue-name"
    assert asked["objectSelector"] == {"matchExpressions": [{"key": key, "operator": "Exists"}]}
    assert asked["namespaceSelector"]["matchExpressions"] == [OUTSIDE]
    anew = {one["name"]: one["expression"] for one in asked["matchConditions"]}["changed"]
    assert f"object.metadata.labels['{key}'] == oldObject.metadata.labels['{key}']" in anew


def test_hd_169_so_are_kinds_of_crds_in_whatever_version_whether_they_are_installed_or_not() -> None:
    asked = {one["resources"][0]: one for one in configuration.validating(BASE)[-3]["rules"]}
    kueues = {
        "jobsets": "jobset.x-k8s.io",
        **dict.fromkeys(["rayclusters", "rayjobs", "rayservices"], "ray.io"),
        **dict.fromkeys(["mpijobs", "pytorchjobs", "tfjobs", "xgboostjobs", "paddlejobs", "jaxjobs"], "kubeflow.org"),
        "trainjobs": "trainer.kubeflow.org",
        "appwrappers": "workload.codeflare.dev",
        "sparkapplications": "sparkoperator.k8s.io",
        "leaderworkersets": "leaderworkerset.x-k8s.io",
    }
    for plural, group in kueues.items():
        assert (asked[plural]["apiGroups"], asked[plural]["apiVersions"]) == ([group], ["*"])
        assert asked[plural]["scope"] == "Namespaced", "and no subresource: status and scale are their controllers'"


def test_hd_213_ephemeral_containers_are_asked_about_of_marked_pods_at_a_gate_alone() -> None:
    """Which kubelets never write; so an outage of ours keeps nobody from debugging anything else."""
    every = configuration.validating(replace(BASE, unmarked_namespaces=("a",)))
    asked = [one for one in every if one["rules"][0]["resources"][0] == "pods"]
    [marked] = [one for one in asked if one["name"] == "validate.pod.gatelift.dev"]
    found = [one for one in asked if "pods/ephemeralcontainers" in one["rules"][0]["resources"]]
    assert found == [marked]
    assert len(asked) > 1
    conditions = {one["name"]: one["expression"] for one in marked["matchConditions"]}
    assert "(has(oldObject.spec.schedulingGates) && object.spec != oldObject.spec)" in conditions["changed"]
    assert "queue-name" in conditions["marked"]
    assert all("/" not in one for each in configuration.mutating(BASE) for one in each["rules"][0]["resources"])


def test_only_marked_objects_are_asked_about() -> None:
    pods = configuration.mutating(BASE)[0]
    marked = {one["name"]: one["expression"] for one in pods["matchConditions"]}["marked"]
    for key in ("queue-name", "managed", "pod-group-name", "pod-suspending-parent"):
        assert f"'kueue.x-k8s.io/{key}' in object.metadata" in marked
        assert f"'kueue.x-k8s.io/{key}' in oldObject.metadata" in marked
    assert "oldObject != null" in marked


def test_hd_1_hd_132_hd_199_hd_212_hd_222_only_what_lets_a_queued_job_run_otherwise_is_asked_about_of_updates() -> None:
    (asked,) = [one for one in configuration.mutating(BASE) if "UPDATE" in one["rules"][0]["operations"]]
    assert asked["rules"][0]["resources"] == ["jobs"], "not its status, which is its controller's"
    assert asked["failurePolicy"] == "Fail"
    conditions = {one["name"]: one["expression"] for one in asked["matchConditions"]}
    was = "(has(oldObject.spec.podReplacementPolicy) && oldObject.spec.podReplacementPolicy == 'Failed')"
    places = [f"spec.template.spec.{place}" for place in ("nodeSelector", "tolerations")]
    moved, sized = (
        " || ".join(
            f"has(object.{one}) != has(oldObject.{one}) || (has(object.{one}) && object.{one} != oldObject.{one})"
            for one in fields
        )
        for fields in (places, ["spec.parallelism", "spec.completions"])
    )
    lowered = (
        "has(oldObject.metadata.annotations) && 'gatelift.dev/parallelism-before' in oldObject.metadata.annotations"
    )
    assert conditions["unsuspended-or-otherwise-than-let-go"] == (
        "(!((has(object.spec.suspend) && object.spec.suspend == true))"
        " && ((has(oldObject.spec.suspend) && oldObject.spec.suspend == true)"
        f" || ({was} && !({was.replace('oldObject', 'object')})) || ({lowered} && ({sized}))))"
        " || ((!((has(oldObject.spec.suspend) && oldObject.spec.suspend == true)) || (has(oldObject.spec.template.spec."
        "tolerations) && oldObject.spec.template.spec.tolerations.exists(t, has(t.key) && t.key.contains("
        f"'placed-as.gatelift.dev/')))) && ({moved}))"
    )
    assert "'system:serviceaccounts:gatelift-system' in request.userInfo.groups" in conditions["not-gatelift"]
    assert "queue-name" in conditions["marked"]


def test_changes_by_kubelets_and_controllers_are_not_asked_about() -> None:
    for one in configuration.validating(BASE):
        assert {condition["name"] for condition in one["matchConditions"]} & {"changed", "grown"}


@pytest.mark.parametrize(
    ("url", "client"),
    [
        pytest.param(
            "",
            {"service": SERVICE},
            id="the Service",
        ),
        pytest.param("https://host:1/", {"url": "https://host:1/mutate-pod"}, id="an address"),
    ],
)
def test_the_api_server_calls(url: str, client: dict[str, Any]) -> None:
    assert configuration.mutating(Wanted(namespace="gatelift-system", url=url))[0]["clientConfig"] == client


def test_the_bundle_goes_in_as_base64() -> None:
    pods = configuration.mutating(Wanted(namespace="n", ca_bundle=b"PEM"))[0]
    assert pods["clientConfig"]["caBundle"] == "UEVN"


def test_namespaces_with_a_default_queue_are_asked_about_besides() -> None:
    webhooks = configuration.mutating(Wanted(namespace="gatelift-system", unmarked_namespaces=("b", "a")))
    assert len(set(names(webhooks))) == 5
    extra = webhooks[1]
    wanted = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["a", "b"]}
    assert extra["namespaceSelector"] == {"matchExpressions": [OUTSIDE, wanted]}
    conditions = {one["name"]: one["expression"] for one in extra["matchConditions"]}
    assert conditions["unmarked"].startswith("request.operation == 'CREATE' && !(")


def test_a_selector_for_everything_never_reaches_kube_system_or_us() -> None:
    selector = LabelSelector(match_labels={"team": "a"})
    webhooks = configuration.mutating(Wanted(namespace="gatelift-system", unmarked_selector=selector))
    assert webhooks[1]["namespaceSelector"] == {"matchLabels": {"team": "a"}, "matchExpressions": [OUTSIDE]}


GATES: dict[str, Any] = {"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]}


@pytest.mark.parametrize(
    ("before", "after", "asked"),
    [
        pytest.param(GATES, {**GATES, "activeDeadlineSeconds": 9}, True, id="HD-203: the spec of what is at its gate"),
        pytest.param(GATES, GATES, False, id="HD-203: nothing of the spec, as its status or what a controller writes"),
        pytest.param({}, {"activeDeadlineSeconds": 9}, False, id="HD-203: the spec of what runs here"),
    ],
)
def test_of_a_pod_is_asked_about(before: dict[str, Any], after: dict[str, Any], asked: bool) -> None:
    (pods,) = [one for one in configuration.validating(BASE) if one["name"] == "validate.pod.gatelift.dev"]
    old: dict[str, Any] = {"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "q"}}, "spec": before}
    new = {"metadata": old["metadata"], "spec": after}
    user = {"username": "u", "groups": []}
    request = {"operation": "UPDATE", "kind": {"kind": "Pod"}, "userInfo": user}
    variables = {"object": new, "oldObject": old, "request": request}
    assert all(conditions.holds(each["expression"], variables) for each in pods["matchConditions"]) is asked


def labelled(count: int, **labels: str) -> dict[str, Any]:
    return {"labels": {f"l-{number}": "" for number in range(count)} | labels}


OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "n", "uid": "u"}
QUEUED, OF_A_RUN = {"kueue.x-k8s.io/queue-name": "q"}, {"gatelift.dev/origin": "o"}


@pytest.mark.parametrize(
    ("before", "after", "asked"),
    [
        pytest.param(labelled(1, **OF_A_RUN), labelled(99, **OF_A_RUN), True, id="many labels of a pod of a run"),
        pytest.param(labelled(1, **QUEUED), labelled(99, **QUEUED), True, id="many labels of a pod of a queue"),
        pytest.param(labelled(1), labelled(99), False, id="many labels of anybody's pod"),
        pytest.param(labelled(99, **OF_A_RUN), labelled(9, **OF_A_RUN), False, id="fewer labels"),
        pytest.param(labelled(1, **OF_A_RUN), labelled(9, **OF_A_RUN), False, id="a few labels"),
        pytest.param(
            {**labelled(0, **OF_A_RUN), "finalizers": ["batch.kubernetes.io/job-tracking"]},
            labelled(0, **OF_A_RUN),
            False,
            id="a controller takes its finalizer off",
        ),
        pytest.param(
            labelled(0, **OF_A_RUN),
            {**labelled(0, **OF_A_RUN), "finalizers": [f"example.com/{number}" for number in range(17)]},
            True,
            id="many finalizers",
        ),
        pytest.param(
            labelled(0, **OF_A_RUN),
            {**labelled(0, **OF_A_RUN), "ownerReferences": [OWNER]},
            False,
            id="a controller adopts it",
        ),
        pytest.param(
            {**labelled(0, **OF_A_RUN), "ownerReferences": [OWNER] * 9},
            labelled(0, **OF_A_RUN),
            False,
            id="its owners let go of it",
        ),
        pytest.param(
            labelled(0, **OF_A_RUN),
            {**labelled(0, **OF_A_RUN), "ownerReferences": [OWNER] * 9},
            True,
            id="many owners",
        ),
        pytest.param(
            {**labelled(0, **OF_A_RUN), "ownerReferences": [OWNER]},
            {**labelled(0, **OF_A_RUN), "ownerReferences": [OWNER | {"uid": "u" * 600}]},
            True,
            id="an owner with a UID that is none",
        ),
    ],
)
def test_hd_252_of_what_gets_larger_is_asked_about(before: dict[str, Any], after: dict[str, Any], asked: bool) -> None:
    (pods,) = [one for one in configuration.validating(BASE) if one["name"] == "grown.pod.gatelift.dev"]
    spec = {"containers": [{"image": "i"}]}
    old, new = {"metadata": before, "spec": spec}, {"metadata": after, "spec": spec}
    request = {"operation": "UPDATE", "kind": {"kind": "Pod"}, "userInfo": {"username": "u", "groups": []}}
    variables = {"object": new, "oldObject": old, "request": request}
    assert all(conditions.holds(each["expression"], variables) for each in pods["matchConditions"]) is asked


@pytest.mark.parametrize(
    ("before", "after", "asked"),
    [
        pytest.param({}, {"tolerations": [{"key": "k"}]}, True, id="another toleration"),
        pytest.param({}, {"containers": [{"image": "i" * 5000}]}, True, id="an image with a long name"),
        pytest.param({}, {"containers": [{"image": "i" * 500}]}, False, id="another image"),
    ],
)
def test_hd_252_of_a_spec_that_gets_larger_is_asked_about(
    before: dict[str, Any], after: dict[str, Any], asked: bool
) -> None:
    (pods,) = [one for one in configuration.validating(BASE) if one["name"] == "grown.pod.gatelift.dev"]
    meta, spec = labelled(0, **OF_A_RUN), {"containers": [{"image": "i"}]}
    old, new = {"metadata": meta, "spec": spec | before}, {"metadata": meta, "spec": spec | after}
    request = {"operation": "UPDATE", "kind": {"kind": "Pod"}, "userInfo": {"username": "u", "groups": []}}
    variables = {"object": new, "oldObject": old, "request": request}
    assert all(conditions.holds(each["expression"], variables) for each in pods["matchConditions"]) is asked
