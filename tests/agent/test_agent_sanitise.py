"""What is taken out of a spec before it is created here, and what may not be placed at all."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest

from gatelift_agent.core.refusing import policy as policies
from gatelift_agent.core.refusing.podspecs import SpecError
from gatelift_agent.core.refusing.sanitise import sanitise
from gatelift_agent.core.values.settings import Policy
from gatelift_kinds.kind import Kind
from gatelift_kinds.registry import JOB_KIND, POD_KIND, SERVED
from gatelift_kube.objects.core import Namespace
from gatelift_kube.objects.meta import ObjectMeta
from gatelift_wire.values.refusals import Refusal

TOKEN_VOLUME = {
    "name": "kube-api-access-x7k2p",
    "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}, {"configMap": {"name": "kube-root-ca.crt"}}]},
}
EVERY_POD_GETS = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
SPEC: dict[str, Any] = {
    "containers": [
        {
            "name": "main",
            "image": "app",
            "volumeMounts": [
                {"name": "data", "mountPath": "/data"},
                {"name": "kube-api-access-x7k2p", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"},
            ],
        }
    ],
    "initContainers": [
        {"name": "first", "volumeMounts": [{"name": "kube-api-access-x7k2p", "mountPath": "/var/run/secrets"}]}
    ],
    "volumes": [{"name": "data", "emptyDir": {}}, TOKEN_VOLUME],
    "nodeName": "node-of-elsewhere",
    "serviceAccountName": "default",
    "serviceAccount": "default",
    "priority": 1000,
    "preemptionPolicy": "PreemptLowerPriority",
    "schedulerName": "default-scheduler",
    "tolerations": [
        {"key": "node.kubernetes.io/not-ready", **EVERY_POD_GETS},
        {
            "key": "node.kubernetes.io/unreachable",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": 300,
        },
        {"key": "spot", "operator": "Exists"},
    ],
}


def kind_named(name: str) -> Kind[Any]:
    found = SERVED.named(name)
    assert found is not None
    return found


def _clean(spec: dict[str, Any], policy: Policy | None = None, kind: str = "Pod") -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(
        sanitise(kind_named(kind), msgspec.json.encode(spec), policy or Policy())
    )
    return found


def test_what_the_management_api_server_put_in_is_taken_out() -> None:
    clean = _clean(SPEC)
    assert "nodeName" not in clean
    assert clean["volumes"] == [{"name": "data", "emptyDir": {}}]
    assert clean["containers"][0]["volumeMounts"] == [{"name": "data", "mountPath": "/data"}]
    assert "volumeMounts" not in clean["initContainers"][0]
    assert clean["tolerations"] == [{"key": "spot", "operator": "Exists"}]
    assert "priority" not in clean
    assert "preemptionPolicy" not in clean
    assert "serviceAccount" not in clean
    assert clean["schedulerName"] == "default-scheduler"


def test_what_the_user_wrote_stays() -> None:
    spec = {
        "containers": [{"name": "main", "image": "app", "unknownToUs": {"deep": [1, 2.5, None]}}],
        "tolerations": [
            {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
        ],
        "volumes": [{"name": "kube-api-access-mine", "emptyDir": {}}],
        "serviceAccountName": "default",
    }
    assert _clean(spec) == spec


def test_the_pods_of_a_job_are_sanitised_in_its_template() -> None:
    clean = _clean({"parallelism": 3, "template": {"spec": SPEC}}, kind="Job")
    assert clean["parallelism"] == 3
    assert "nodeName" not in clean["template"]["spec"]


def test_a_service_account_is_mapped_by_the_allow_list() -> None:
    policy = Policy(service_accounts={"trainer": "batch", "default": "default"})
    assert _clean({**SPEC, "serviceAccountName": "trainer"}, policy)["serviceAccountName"] == "batch"
    assert _clean({"containers": []}, policy)["serviceAccountName"] == "default"


def test_an_overhead_that_a_runtime_class_brought_is_left_to_the_one_here() -> None:
    assert "overhead" not in _clean({"containers": [], "runtimeClassName": "kata", "overhead": {"cpu": "1"}})
    assert "overhead" in _clean({"containers": [], "overhead": {"cpu": "1"}})


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b'{"template":3}'])
def test_what_is_no_spec_of_a_job_is_refused(content: bytes) -> None:
    with pytest.raises(SpecError):
        sanitise(JOB_KIND, content, Policy())


def _pod(**fields: Any) -> dict[str, Any]:
    return {"containers": [{"name": "main", "image": "app"}], **fields}


def _container(**fields: Any) -> dict[str, Any]:
    return {"containers": [{"name": "main", "image": "app", **fields}]}


DENIED = {
    "host network": (_pod(hostNetwork=True), "spec.hostNetwork", Policy(host_network=True)),
    "host PID": (_pod(hostPID=True), "spec.hostPID", Policy(host_pid=True)),
    "host IPC": (_pod(hostIPC=True), "spec.hostIPC", Policy(host_ipc=True)),
    "host path": (
        _pod(volumes=[{"name": "root", "hostPath": {"path": "/"}}]),
        "spec.volumes[root].hostPath",
        Policy(host_path=True),
    ),
    "privileged": (
        _container(securityContext={"privileged": True}),
        "spec.containers[main].securityContext.privileged",
        Policy(privileged=True),
    ),
    "unmasked proc": (
        _container(securityContext={"procMount": "Unmasked"}),
        "spec.containers[main].securityContext.procMount",
        Policy(privileged=True),
    ),
    "host process of a container": (
        _container(securityContext={"windowsOptions": {"hostProcess": True}}),
        "spec.containers[main].securityContext.windowsOptions.hostProcess",
        Policy(privileged=True),
    ),
    "host process of a pod": (
        _pod(securityContext={"windowsOptions": {"hostProcess": True}}),
        "spec.securityContext.windowsOptions.hostProcess",
        Policy(privileged=True),
    ),
    "capability": (
        _container(securityContext={"capabilities": {"add": ["SYS_ADMIN"]}}),
        "spec.containers[main].securityContext.capabilities.add",
        Policy(capabilities=frozenset({"SYS_ADMIN"})),
    ),
    "host port": (
        _container(ports=[{"containerPort": 80, "hostPort": 80}]),
        "spec.containers[main].ports.hostPort",
        Policy(host_ports=True),
    ),
    "init container": (
        _pod(initContainers=[{"name": "first", "securityContext": {"privileged": True}}]),
        "spec.initContainers[first].securityContext.privileged",
        Policy(privileged=True),
    ),
    "service account": (
        _pod(serviceAccountName="admin"),
        "spec.serviceAccountName",
        Policy(service_accounts={"admin": "admin"}),
    ),
    "deprecated service account": (
        _pod(serviceAccount="admin"),
        "spec.serviceAccountName",
        Policy(service_accounts={"admin": "admin"}),
    ),
    "priority class": (
        _pod(priorityClassName="system-node-critical"),
        "spec.priorityClassName",
        Policy(priority_classes=frozenset({"system-node-critical"})),
    ),
}


@pytest.mark.parametrize("case", DENIED, ids=list(DENIED))
def test_it_is_denied_by_default_and_accepted_when_the_policy_says_so(case: str) -> None:
    spec, field, allowing = DENIED[case]
    content = msgspec.json.encode(spec)
    found = policies.spec_refusal(POD_KIND, content, Policy())
    assert found is not None
    refusal, text = found
    assert refusal is Refusal.POLICY
    assert text.startswith(f"{field}: ")
    assert "policy." in text
    assert "\n" not in text
    assert policies.spec_refusal(POD_KIND, content, allowing) is None


def test_a_jobs_violation_names_the_whole_path() -> None:
    content = msgspec.json.encode({"template": {"spec": _pod(hostNetwork=True)}})
    found = policies.spec_refusal(JOB_KIND, content, Policy())
    assert found is not None
    assert found[1].startswith("spec.template.spec.hostNetwork: ")


def test_many_violations_are_named_up_to_a_limit() -> None:
    spec = _pod(hostNetwork=True, hostPID=True, hostIPC=True, priorityClassName="high", serviceAccountName="admin")
    found = policies.spec_refusal(POD_KIND, msgspec.json.encode(spec), Policy())
    assert found is not None
    assert "(and 2 more)" in found[1]


def test_a_plain_pod_is_accepted() -> None:
    assert policies.spec_refusal(POD_KIND, msgspec.json.encode(copy.deepcopy(SPEC)), Policy()) is None


def test_what_is_no_spec_is_invalid() -> None:
    found = policies.spec_refusal(POD_KIND, b"[]", Policy())
    assert found is not None
    assert found[0] is Refusal.INVALID


def _namespace(name: str = "team-a", accept: str = "", *, deleting: bool = False) -> Namespace:
    stamp = "2026-01-01T00:00:00Z" if deleting else None
    labels = {"gatelift.dev/accept": accept} if accept else {}
    return Namespace(metadata=ObjectMeta(name=name, labels=labels, deletion_timestamp=stamp))


@pytest.mark.parametrize(
    ("name", "namespace", "refusal"),
    [
        ("team-a", _namespace(accept="true"), None),
        ("team-a", _namespace(), Refusal.NAMESPACE_NOT_ALLOWED),
        ("team-a", _namespace(accept="yes"), Refusal.NAMESPACE_NOT_ALLOWED),
        ("team-a", None, Refusal.NAMESPACE_MISSING),
        ("team-a", _namespace(accept="true", deleting=True), Refusal.NAMESPACE_MISSING),
        ("kube-system", _namespace("kube-system", "true"), Refusal.NAMESPACE_NOT_ALLOWED),
    ],
)
def test_a_namespace_accepts_by_its_label(name: str, namespace: Namespace | None, refusal: Refusal | None) -> None:
    found = policies.namespace_refusal(name, namespace, Policy())
    assert (found[0] if found else None) is refusal


def test_at_local_every_namespace_is_the_users_own() -> None:
    assert policies.namespace_refusal("anything", None, Policy(any_namespace=True)) is None
