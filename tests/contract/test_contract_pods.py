"""Pods: defaults, gates, what may change, binding. On the embedded and the real API server."""

from __future__ import annotations

from typing import Any

import pytest

from support.servers.contract_api import JSON_PATCH, Api, Said, condition, config, pod, until_said

pytestmark = pytest.mark.contract

GATE = {"name": "example.com/gate"}


async def test_a_pod_gets_the_defaults_of_its_spec(api: Api) -> None:
    space = await api.namespace()
    made = (await api.post(f"{space}/pods", pod("a"))).ok()
    spec = made["spec"]
    assert spec["restartPolicy"] == "Always"
    assert spec["terminationGracePeriodSeconds"] == 30
    assert spec["dnsPolicy"] == "ClusterFirst"
    assert spec["schedulerName"] == "default-scheduler"
    assert spec["securityContext"] == {}
    assert spec["enableServiceLinks"] is True
    assert spec["serviceAccountName"] == spec["serviceAccount"] == "default"
    assert (spec["priority"], spec["preemptionPolicy"]) == (0, "PreemptLowerPriority")
    (container,) = spec["containers"]
    mounts = container.pop("volumeMounts")
    assert container == {
        "name": "main",
        "image": "registry.example/app:1",
        "imagePullPolicy": "IfNotPresent",
        "resources": {},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    }
    assert mounts[0]["mountPath"] == "/var/run/secrets/kubernetes.io/serviceaccount"
    assert made["metadata"]["generation"] == 1


async def test_a_pod_mounts_a_token_of_its_service_account(api: Api) -> None:
    space = await api.namespace()
    made = (await api.post(f"{space}/pods", pod("a"))).ok()
    (volume,) = made["spec"]["volumes"]
    assert volume["name"].startswith("kube-api-access-")
    assert volume["projected"]["defaultMode"] == 420
    kinds = [next(iter(source)) for source in volume["projected"]["sources"]]
    assert kinds == ["serviceAccountToken", "configMap", "downwardAPI"]
    bare = (await api.post(f"{space}/pods", pod("b", automountServiceAccountToken=False))).ok()
    assert "volumes" not in bare["spec"]


async def test_a_pod_tolerates_lost_nodes_for_five_minutes(api: Api) -> None:
    space = await api.namespace()
    mine = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 7}
    made = (await api.post(f"{space}/pods", pod("a", tolerations=[mine]))).ok()
    seconds = {t["key"]: t["tolerationSeconds"] for t in made["spec"]["tolerations"]}
    assert seconds == {"node.kubernetes.io/not-ready": 7, "node.kubernetes.io/unreachable": 300}


async def test_requests_default_to_limits(api: Api) -> None:
    space = await api.namespace()
    document = pod("a")
    document["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}}
    made = (await api.post(f"{space}/pods", document)).ok()
    assert made["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1", "memory": "1Gi"}
    assert made["status"]["qosClass"] == "Burstable"


@pytest.mark.parametrize(
    ("resources", "quality"),
    [
        ({}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
        ({"limits": {"cpu": "1"}}, "Burstable"),
    ],
)
async def test_the_quality_of_service_follows_from_the_resources(api: Api, resources: Any, quality: str) -> None:
    space = await api.namespace()
    document = pod("a")
    document["spec"]["containers"][0]["resources"] = resources
    assert (await api.post(f"{space}/pods", document)).ok()["status"]["qosClass"] == quality


@pytest.mark.parametrize(
    ("spec", "field", "text"),
    [
        ({"containers": []}, "spec.containers", "Required value"),
        ({"containers": [{"image": "x"}]}, "spec.containers[0].name", "Required value"),
        ({"containers": [{"name": "a"}]}, "spec.containers[0].image", "Required value"),
        ({"containers": [{"name": "A_b", "image": "x"}]}, "spec.containers[0].name", 'Invalid value: "A_b"'),
        (
            {"containers": [{"name": "a", "image": "x"}, {"name": "a", "image": "x"}]},
            "spec.containers[1].name",
            'Duplicate value: "a"',
        ),
        (
            {"restartPolicy": "Sometimes"},
            "spec.restartPolicy",
            'Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"',
        ),
        ({"nodeSelector": {"a b": "c"}}, "spec.nodeSelector", 'Invalid value: "a b"'),
        ({"schedulingGates": [{"name": "a b"}]}, "spec.schedulingGates[0]", 'Invalid value: "a b"'),
        ({"schedulingGates": [GATE, GATE]}, "spec.schedulingGates[1]", 'Duplicate value: "example.com/gate"'),
        (
            {"schedulingGates": [GATE], "nodeName": "n"},
            "spec.nodeName",
            "Forbidden: cannot be set until all schedulingGates",
        ),
        (
            {
                "containers": [
                    {"name": "a", "image": "x", "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}}
                ]
            },
            "spec.containers[0].resources.requests",
            'Invalid value: "2": must be less than or equal to cpu limit of 1',
        ),
        (
            {"containers": [{"name": "a", "image": "x", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}]},
            "spec.containers[0].volumeMounts[0].name",
            'Not found: "v"',
        ),
    ],
)
async def test_a_pod_that_breaks_a_rule_is_invalid(api: Api, spec: Any, field: str, text: str) -> None:
    space = await api.namespace()
    said = await api.post(f"{space}/pods", pod("a", **spec))
    assert (said.code, said.reason) == (422, "Invalid")
    found = [c for c in said.body["details"]["causes"] if c["field"] == field and c["message"].startswith(text)]
    assert found, said.body["details"]["causes"]


async def test_an_amount_that_is_no_quantity_is_a_bad_request(api: Api) -> None:
    space = await api.namespace()
    document = pod("a")
    document["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "lots"}}
    said = await api.post(f"{space}/pods", document)
    assert (said.code, said.reason) == (400, "BadRequest")
    assert "quantities must match the regular expression" in said.message


async def test_a_gated_pod_says_so_from_the_start(api: Api) -> None:
    space = await api.namespace()
    made = (await api.post(f"{space}/pods", pod("a", schedulingGates=[GATE]))).ok()
    assert made["status"]["phase"] == "Pending"
    gated = condition(made, "PodScheduled")
    assert (gated["status"], gated["reason"]) == ("False", "SchedulingGated")
    assert gated["message"] == "Scheduling is blocked due to non-empty scheduling gates"


async def test_gates_can_be_removed_and_not_added(api: Api) -> None:
    space = await api.namespace()
    other = {"name": "example.com/other"}
    await api.post(f"{space}/pods", pod("a", schedulingGates=[GATE]))
    said = await api.patch(f"{space}/pods/a", {"spec": {"schedulingGates": [GATE, other]}})
    assert (said.code, said.reason) == (422, "Invalid")
    assert said.message == (
        'Pod "a" is invalid: spec.schedulingGates[1].name: Forbidden: only deletion is allowed,'
        " but found new scheduling gate 'example.com/other'"
    )
    lifted = (await api.patch(f"{space}/pods/a", {"spec": {"schedulingGates": None}})).ok()
    assert "schedulingGates" not in lifted["spec"]
    assert lifted["metadata"]["generation"] == 2
    assert (await api.patch(f"{space}/pods/a", {"spec": {"schedulingGates": [GATE]}})).code == 422


async def test_a_gate_is_lifted_by_a_json_patch_that_tests_uid_and_version(api: Api) -> None:
    space = await api.namespace()
    made = (await api.post(f"{space}/pods", pod("a", schedulingGates=[GATE]))).ok()
    operations = [
        {"op": "test", "path": "/metadata/uid", "value": made["metadata"]["uid"]},
        {"op": "test", "path": "/metadata/resourceVersion", "value": made["metadata"]["resourceVersion"]},
        {"op": "test", "path": "/spec/schedulingGates/0/name", "value": GATE["name"]},
        {"op": "remove", "path": "/spec/schedulingGates/0"},
    ]

    async def lift() -> Said:
        said = await api.patch(f"{space}/pods/a", operations, JSON_PATCH)
        if said.code == 422:  # the scheduler's status write came in between on a real cluster
            latest = (await api.get(f"{space}/pods/a")).ok()
            operations[1]["value"] = latest["metadata"]["resourceVersion"]
        return said

    said = await until_said(lift, lambda said: said.code != 422, "the gate is lifted")
    assert "schedulingGates" not in said.ok()["spec"]


async def test_where_a_gated_pod_may_run_can_be_narrowed(api: Api) -> None:
    space = await api.namespace()
    await api.post(f"{space}/pods", pod("a", schedulingGates=[GATE], nodeSelector={"a": "b"}))
    assert (await api.patch(f"{space}/pods/a", {"spec": {"nodeSelector": {"c": "d"}}})).ok()["spec"][
        "nodeSelector"
    ] == {
        "a": "b",
        "c": "d",
    }
    said = await api.patch(f"{space}/pods/a", {"spec": {"nodeSelector": {"a": "x"}}})
    assert (said.code, said.reason) == (422, "Invalid")
    assert "only additions to spec.nodeSelector are allowed (no mutations or deletions)" in said.message


async def test_a_pod_without_gates_keeps_its_node_selector(api: Api) -> None:
    space = await api.namespace()
    await api.post(f"{space}/pods", pod("a", schedulerName="nobody"))
    said = await api.patch(f"{space}/pods/a", {"spec": {"nodeSelector": {"c": "d"}}})
    assert (said.code, said.reason) == (422, "Invalid")
    assert said.message.startswith('Pod "a" is invalid: spec: Forbidden: pod updates may not change fields other than')


async def test_tolerations_can_be_added_and_not_taken_away(api: Api) -> None:
    space = await api.namespace()
    made = (await api.post(f"{space}/pods", pod("a", schedulerName="nobody"))).ok()
    more = [*made["spec"]["tolerations"], {"key": "x", "operator": "Exists"}]
    assert len((await api.patch(f"{space}/pods/a", {"spec": {"tolerations": more}})).ok()["spec"]["tolerations"]) == 3
    assert (await api.patch(f"{space}/pods/a", {"spec": {"tolerations": more[:-1]}})).code == 422


async def test_the_toleration_of_lost_nodes_comes_back(api: Api) -> None:
    space = await api.namespace()
    await api.post(f"{space}/pods", pod("a", schedulerName="nobody"))
    assert len((await api.patch(f"{space}/pods/a", {"spec": {"tolerations": []}})).ok()["spec"]["tolerations"]) == 2


async def test_an_image_can_be_changed_and_nothing_else_of_a_container(api: Api) -> None:
    space = await api.namespace()
    made = (await api.post(f"{space}/pods", pod("a", schedulerName="nobody"))).ok()
    containers = made["spec"]["containers"]
    containers[0]["image"] = "registry.example/app:2"
    assert (await api.patch(f"{space}/pods/a", {"spec": {"containers": containers}})).code == 200
    containers[0]["command"] = ["run"]
    assert (await api.patch(f"{space}/pods/a", {"spec": {"containers": containers}})).code == 422


async def test_a_pod_is_bound_once(api: Api) -> None:
    space = await api.namespace()
    await api.post(f"{space}/pods", pod("a", schedulerName="nobody"))
    binding = {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n1"}}
    assert (await api.post(f"{space}/pods/a/binding", binding)).code == 201
    bound = (await api.get(f"{space}/pods/a")).ok()
    assert bound["spec"]["nodeName"] == "n1"
    assert condition(bound, "PodScheduled")["status"] == "True"
    said = await api.post(f"{space}/pods/a/binding", binding)
    assert (said.code, said.reason) == (409, "Conflict")
    assert 'pod a is already assigned to node "n1"' in said.message


async def test_a_gated_pod_is_not_bound(api: Api) -> None:
    space = await api.namespace()
    await api.post(f"{space}/pods", pod("a", schedulingGates=[GATE]))
    binding = {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n1"}}
    said = await api.post(f"{space}/pods/a/binding", binding)
    assert (said.code, said.reason) == (409, "Conflict")
    assert "non-empty .spec.schedulingGates" in said.message


async def test_the_status_path_changes_status_and_metadata_but_no_spec_and_no_owner(api: Api) -> None:
    space = await api.namespace()
    owner = (await api.post(f"{space}/configmaps", config("owner"))).ok()["metadata"]
    await api.post(f"{space}/pods", pod("a", schedulerName="nobody"))
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["uid"]}
    patch = {
        "metadata": {"labels": {"a": "b"}, "ownerReferences": [reference]},
        "spec": {"nodeName": "n"},
        "status": {"phase": "Running", "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}]},
    }
    changed = (await api.patch(f"{space}/pods/a/status", patch)).ok()
    assert changed["status"]["phase"] == "Running"
    assert changed["metadata"]["labels"] == {"a": "b"}
    assert "ownerReferences" not in changed["metadata"]
    assert "nodeName" not in changed["spec"]
    assert changed["metadata"]["generation"] == 1


async def test_the_object_path_changes_no_status(api: Api) -> None:
    space = await api.namespace()
    await api.post(f"{space}/pods", pod("a", schedulerName="nobody"))
    changed = (await api.patch(f"{space}/pods/a", {"status": {"phase": "Running"}})).ok()
    assert changed["status"]["phase"] == "Pending"


async def test_a_priority_class_gives_its_value(api: Api) -> None:
    space = await api.namespace()
    name = space.rpartition("/")[2]
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    await api.post(classes, {"metadata": {"name": name}, "value": 77, "preemptionPolicy": "Never"})
    said = await until_said(
        lambda: api.post(f"{space}/pods", pod("a", priorityClassName=name)),
        lambda said: said.code != 403,
        "the class is known to who admits pods",
    )
    made = said.ok()
    assert (made["spec"]["priority"], made["spec"]["preemptionPolicy"]) == (77, "Never")
    said = await api.post(f"{space}/pods", pod("b", priorityClassName="no-such-class"))
    assert (said.code, said.reason) == (403, "Forbidden")
    assert "no PriorityClass with name no-such-class was found" in said.message
    said = await api.post(f"{space}/pods", pod("c", priority=5))
    assert (said.code, said.reason) == (403, "Forbidden")
    assert "the integer value of priority (5) must not be provided in pod spec" in said.message
    await api.delete(f"{classes}/{name}")


async def test_a_pod_of_a_missing_service_account_is_forbidden(api: Api) -> None:
    space = await api.namespace()
    said = await api.post(f"{space}/pods", pod("a", serviceAccountName="nobody"))
    assert (said.code, said.reason) == (403, "Forbidden")
    assert 'serviceaccount "nobody" not found' in said.message


async def test_empty_lists_of_a_pod_are_left_out(api: Api) -> None:
    space = await api.namespace()
    made = (await api.post(f"{space}/pods", pod("a", schedulingGates=[], nodeSelector={}, nodeName=""))).ok()
    assert not {"schedulingGates", "nodeSelector", "nodeName"} & made["spec"].keys()
