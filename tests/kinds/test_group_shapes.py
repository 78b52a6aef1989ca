"""Which role a pod of a group has, its template as it travels, and the first difference of two shapes."""
# ruff: noqa: E501 - a row of a table is one line

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from gatelift_kinds.pod_group.declaration import Declaration, declared
from gatelift_kinds.pod_group.marks import read
from gatelift_kinds.pod_group.roles import fit
from gatelift_kinds.pod_group.shapes import mismatch, quota_digest, role_of, shape_of, template_of
from gatelift_kinds.registry import POD_GROUP_KIND
from gatelift_kinds.shared.values import MergeConflictError, Placing, PodSetStart
from gatelift_wire.values.keys import PlacementKey
from support.kinds.groups import GATE, GROUP, ROLE, SETS, TOTAL, K, a_pod, typed

Json = dict[str, Any]
DEFAULT_TOLERATIONS = [
    {"key": f"node.kubernetes.io/{name}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for name in ("not-ready", "unreachable")
]
DECLARED: Json = {
    "containers": [{"name": "w", "resources": {"requests": {"cpu": "1000m", "memory": "1Gi"}}}],
    "nodeSelector": {"pool": "a"},
    "tolerations": [{"key": "gpu", "operator": "Exists"}],
    "runtimeClassName": "kata",
}


def as_served(name: str, **spec: Any) -> Json:
    """Return a pod with what an API server puts in: token volume, tolerations, priority."""
    volume = f"kube-api-access-{name}"
    token = {"name": volume, "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}
    made = a_pod(name, **spec)
    made["spec"] |= {
        "volumes": [{"name": "data", "emptyDir": {}}, token],
        "tolerations": [*made["spec"].get("tolerations", []), *DEFAULT_TOLERATIONS],
        "priority": 0,
        "preemptionPolicy": "PreemptLowerPriority",
        "serviceAccount": "default",
    }
    made["spec"]["containers"] = [
        {**each, "volumeMounts": [{"name": volume, "mountPath": "/token"}]} for each in made["spec"]["containers"]
    ]
    return made


def as_it_comes(**change: Any) -> Json:
    """Return the spec of a pod that is as it was declared, with what an API server puts in."""
    spec: Json = as_served("w", **copy.deepcopy(DECLARED))["spec"]
    spec["containers"][0]["resources"]["requests"]["cpu"] = "1"
    return {**spec, "overhead": {"cpu": "100m"}, **change}


def test_equal_pods_have_one_template_whatever_the_api_server_put_into_each() -> None:
    one, other = (template_of(json.dumps(as_served(name)).encode()) for name in ("a", "b"))
    assert one == other
    spec = json.loads(one.spec)
    assert spec == {"containers": [{"name": "c"}], "volumes": [{"name": "data", "emptyDir": {}}]}
    assert GROUP not in json.loads(one.metadata)["labels"]


def test_a_users_own_gate_stays_in_the_template_and_ours_goes() -> None:
    pod = a_pod(schedulingGates=[{"name": "mine"}, GATE])
    assert json.loads(template_of(json.dumps(pod).encode()).spec)["schedulingGates"] == [{"name": "mine"}]


def test_metadata_have_a_digest_of_their_own() -> None:
    one, other = (template_of(json.dumps(a_pod("p", labels=labels)).encode()) for labels in ({}, {"app": "x"}))
    assert one.spec_digest == other.spec_digest
    assert one.metadata_digest != other.metadata_digest


def test_the_written_role_counts_and_the_shape_is_of_the_spec() -> None:
    spec = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}
    assert role_of(spec, "") == shape_of(spec) == "dc85db45"
    assert role_of(spec, "leader") == "leader"


def test_what_an_api_server_puts_into_a_pod_is_no_difference() -> None:
    spec = as_it_comes()
    before = copy.deepcopy(spec)
    assert mismatch(DECLARED, spec) == ""
    assert spec == before, "what is compared is not changed"


CHANGES = [
    ("another request", {"containers": [{"name": "w", "resources": {"requests": {"cpu": "2", "memory": "1Gi"}}}]}, "requests.cpu: 2, declared 1"),
    ("a container more", {"containers": [*DECLARED["containers"], {"name": "x", "resources": {"requests": {"memory": "1Gi"}}}]}, "requests.memory: 2Gi, declared 1Gi"),
    ("a device more", {"containers": [{"name": "w", "resources": {"requests": {"cpu": "1", "memory": "1Gi", "example.com/gpu": "1"}}}]}, "requests.example.com/gpu: 1, declared 0"),
    ("another selector", {"nodeSelector": {"pool": "b"}}, 'nodeSelector: {"pool":"b"}, declared {"pool":"a"}'),
    ("no selector", {"nodeSelector": None}, 'nodeSelector: none, declared {"pool":"a"}'),
    ("another runtime class", {"runtimeClassName": "gvisor"}, "runtimeClassName: gvisor, declared kata"),
    ("another priority class", {"priorityClassName": "high"}, "priorityClassName: high, declared none"),
    ("no toleration", {"tolerations": DEFAULT_TOLERATIONS}, 'tolerations: {"key":"gpu","operator":"Exists"} is declared'),
    ("a toleration more", {"tolerations": [*DECLARED["tolerations"], {"key": "x", "value": "y"}]}, 'tolerations: {"key":"x","operator":"Equal","value":"y"}, not declared'),
    ("a quantity that is none", {"containers": [{"name": "w", "resources": {"requests": {"cpu": "much"}}}]}, "cannot be compared ("),
]  # fmt: skip


@pytest.mark.parametrize(("change", "text"), [pytest.param(*row[1:], id=f"DW-3 {row[0]}") for row in CHANGES])
def test_the_first_difference_is_named(change: Json, text: str) -> None:
    assert mismatch(DECLARED, as_it_comes(**change)).startswith(text)


def test_a_class_that_the_driver_was_given_as_well_is_no_difference() -> None:
    assert mismatch(DECLARED, as_it_comes(priorityClassName="by-default"), "by-default") == ""


STORY = json.dumps([{"name": "driver", "count": 1}, {"name": "workers", "count": 2, "template": {"spec": DECLARED}}])
DRIVER = as_served("driver")["spec"]


def the_sets() -> Declaration:
    found = declared(STORY).declaration
    assert found is not None
    return found


def says(labels: Json | None = None, notes: Json | None = None) -> Any:
    return read({GROUP: "g", **(labels or {})}, notes or {})


def test_dw_1_the_driver_is_of_its_own_set_and_a_worker_of_the_one_that_it_names() -> None:
    assert fit(says(notes={SETS: STORY}), DRIVER, the_sets()) == ("driver", "")
    assert fit(says({ROLE: "workers"}), as_it_comes(), the_sets(), DRIVER) == ("workers", "")
    assert fit(says({ROLE: "driver"}), DRIVER, the_sets(), DRIVER) == ("driver", "")


UNFIT = [
    ("DW-3 another shape", {ROLE: "workers"}, as_it_comes(nodeSelector={}), "spec.nodeSelector: none, declared"),
    ("BG-26 the document's own role", {ROLE: "worker"}, as_it_comes(), f"metadata.labels[{ROLE}]: worker is declared by no set"),
    ("BG-27 no role", {}, as_it_comes(), f"metadata.labels[{ROLE}]: is missing: the sets of the group are declared"),
]  # fmt: skip


@pytest.mark.parametrize(("labels", "spec", "text"), [pytest.param(*row[1:], id=row[0]) for row in UNFIT])
def test_who_fits_no_declared_set_is_told_why(labels: Json, spec: Json, text: str) -> None:
    found = fit(says(labels), spec, the_sets(), DRIVER)
    assert found.role == ""
    assert found.text.startswith(text)


def test_bg_27_a_role_in_a_group_that_nobody_has_declared_yet_waits() -> None:
    found = fit(says({ROLE: "workers"}), as_it_comes())
    assert found.role == ""
    assert "no pod of the group declares its sets" in found.text


def test_in_a_group_without_declared_sets_the_hash_is_the_role() -> None:
    assert fit(says(notes={TOTAL: "3"}), {"containers": [{"name": "c"}]}).role == "a9f06f3a"


def test_who_was_let_go_keeps_its_role_whatever_its_flavor_added() -> None:
    spec = as_it_comes(nodeSelector={"pool": "a", "flavor": "x"})
    assert fit(says({ROLE: "workers"}), spec, the_sets(), DRIVER).role == ""
    assert fit(says({ROLE: "workers"}), spec, the_sets(), DRIVER, lifted=True).role == "workers"
    assert fit(says({f"{K}podset": "r"}), spec, lifted=True).role == "r"
    assert fit(says({f"{K}podset": "r"}), spec).role == role_of(spec, ""), "at its gate that label says nothing"


def test_what_quota_is_counted_by_is_the_same_for_a_declared_template_and_its_pod() -> None:
    asked, comes = (typed({**a_pod(), "spec": spec}).spec for spec in (DECLARED, as_it_comes()))
    assert quota_digest(asked) == quota_digest(comes)
    assert quota_digest(asked) != quota_digest(typed(a_pod()).spec)


def test_bg_16_a_pod_that_needs_more_than_its_role_was_admitted_for_is_not_let_go() -> None:
    """Two unlike pods may bear one hash, which a user wrote."""
    small, large = (
        as_served("p", containers=[{"name": "c", "resources": {"requests": {"cpu": cpu}}}]) for cpu in ("1", "9")
    )
    for each in (small, large):
        each["metadata"]["annotations"][f"{K}role-hash"] = "mine"
        each["metadata"]["resourceVersion"] = "1"
    start = PodSetStart(pod_set="mine", needs=quota_digest(typed(small).spec))
    placing = Placing(key=PlacementKey("u", 1), origin="o", namespace="ns", starts=(start,))
    assert POD_GROUP_KIND.local_lift_patch(typed(small), json.dumps(small).encode(), placing)
    with pytest.raises(MergeConflictError, match="asks for something else than the group was admitted for"):
        POD_GROUP_KIND.local_lift_patch(typed(large), json.dumps(large).encode(), placing)
