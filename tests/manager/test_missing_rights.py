"""IS-5: a right that the role lacks is named by log and readiness; what does not need it goes on."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import structlog
import yaml

from gatelift.app import Manager
from gatelift_kube.api.client import Client
from gatelift_kube.api.config import ClusterConfig
from gatelift_kube.deciding.errors import from_status
from gatelift_kube.deciding.lacked_rights import FORGOTTEN_SECONDS, LACKED_MAX, LackedRights, asked
from gatelift_kube.values.resources import ObjectKey, ObjectRef
from gatelift_sandbox import applying
from gatelift_sandbox.installation import Installation
from manager.test_manager_daemon import CLUSTER_ROLE, get, leader_of, running

pytestmark = pytest.mark.timeout(300)

Json = dict[str, Any]
ACCESS = Path(__file__).resolve().parents[2] / "deploy/manager/access.yaml"
RULES: list[Json] = next(
    each["rules"] for each in yaml.safe_load_all(ACCESS.read_text(encoding="utf-8")) if each["kind"] == "ClusterRole"
)
ROLE = ObjectRef(CLUSTER_ROLE, ObjectKey("", "gatelift-manager"))
KUEUE = "kueue.x-k8s.io"
WATCHED = sorted({what for rule in RULES if {"list", "watch"} <= {*rule["verbs"]} for what in rule["resources"]})
WRITES = [
    ("create", "workloads"),
    ("update", "workloads/status"),
    ("patch", "workloads"),
    ("patch", "clusterqueues"),
    ("patch", "resourceflavors"),
    ("patch", "clusterqueues/status"),
    ("patch", "localqueues/status"),
    ("patch", "pods"),
    ("patch", "jobs"),
    ("create", "events"),
]


def without(verb: str, resource: str = "") -> bytes:
    """Return the role of deploy/ without a verb, of one resource or of all."""
    rules: list[Json] = []
    for rule in RULES:
        for what in rule["resources"]:
            verbs = [one for one in rule["verbs"] if one != verb or what != (resource or what)]
            if verbs:
                rules.append({**rule, "resources": [what], "verbs": verbs})
    return json.dumps({"rules": rules}).encode()


def made(api_version: str, kind: str, name: str, namespace: str = "", **parts: Any) -> Json:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {}), **parts.pop("metadata", {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **parts}


def work(number: int) -> list[Json]:
    """Return a queue with all that belongs to it, and a pod and a Job that wait in it, as the webhooks make them."""
    name, version = f"n{number}", f"{KUEUE}/v1beta2"
    quota = {"name": name, "resources": [{"name": "cpu", "nominalQuota": "10"}]}
    group = {"coveredResources": ["cpu"], "flavors": [quota]}
    labels = {f"{KUEUE}/queue-name": name, f"{KUEUE}/managed": "true"}
    containers = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]
    gates = [{"name": f"{KUEUE}/admission"}]
    template = {"spec": {"restartPolicy": "Never", "containers": containers}}
    return [
        made(version, "ResourceFlavor", name, spec={}),
        made(version, "ClusterQueue", name, spec={"namespaceSelector": {}, "resourceGroups": [group]}),
        made(version, "LocalQueue", name, "default", spec={"clusterQueue": name}),
        made(
            "v1",
            "Pod",
            name,
            "default",
            metadata={"labels": labels, "finalizers": [f"{KUEUE}/managed"]},
            spec={"schedulingGates": gates, "containers": containers},
        ),
        made(
            "batch/v1",
            "Job",
            name,
            "default",
            metadata={"labels": {f"{KUEUE}/queue-name": name}},
            spec={"suspend": True, "template": template},
        ),
    ]


async def webhooks_gone(client: Client) -> None:
    """Take our webhooks out: nobody serves them here."""
    for plural in ("validatingwebhookconfigurations", "mutatingwebhookconfigurations"):
        path = f"/apis/admissionregistration.k8s.io/v1/{plural}"
        for each in json.loads(await client.raw("GET", path))["items"]:
            await client.raw("DELETE", f"{path}/{each['metadata']['name']}")


async def named(manager: Manager, right: str, code: int = 503) -> None:
    """Wait until the readiness names a right, or says that all is well."""
    said = (0, "")
    try:
        async with asyncio.timeout(60):
            while right not in said[1]:
                await asyncio.sleep(0.05)
                said = await get(manager.status_address, "/readyz")
    except TimeoutError:
        raise AssertionError(f"{right}: the readiness says {said}") from None
    assert said[0] == code


async def test_is_5_each_kind_that_may_be_listed_and_not_watched_is_named_and_the_manager_leads(
    cluster: tuple[Installation, ClusterConfig], tmp_path: Path
) -> None:
    """What was listed once counted as ready, and a watch that was refused for good was a line of the log alone."""
    installation, reached = cluster
    async with await installation.admin(installation.management) as client:
        await client.patch(ROLE, without("watch"))
        with structlog.testing.capture_logs() as logs:
            async with running(reached, tmp_path) as manager:
                await leader_of(manager)
                for kind in WATCHED:
                    await named(manager, f"watch {kind}")
                said = {one["problem"] for one in logs if one["event"] == "a right is missing"}
                assert {text.split(" may not watch ")[1].split(";")[0].split(".")[0] for text in said} >= {*WATCHED}


async def test_is_5_each_right_to_write_that_is_missing_is_named_and_all_else_goes_on(
    cluster: tuple[Installation, ClusterConfig], tmp_path: Path
) -> None:
    installation, reached = cluster
    async with await installation.admin(installation.management) as client, running(reached, tmp_path) as manager:
        await webhooks_gone(client)
        await leader_of(manager)
        await named(manager, "ok", 200)
        for number, (verb, resource) in enumerate(WRITES):
            await client.patch(ROLE, without(verb, resource))
            with structlog.testing.capture_logs() as logs:
                await applying.apply(client, work(number))
                if number:  # of a Job that goes, its Workload goes
                    await client.raw("DELETE", f"/apis/batch/v1/namespaces/default/jobs/n{number - 1}")
                plural, slash, below = resource.partition("/")
                await named(manager, f"{verb} {plural}{slash}{below}")
                assert any(
                    one["event"] == "a right is missing" and f"may not {verb} {resource}" in one["problem"]
                    for one in logs
                )


async def test_is_7_a_kind_whose_crd_is_missing_is_named_by_the_readiness_with_the_way_out(
    cluster: tuple[Installation, ClusterConfig], tmp_path: Path
) -> None:
    installation, reached = cluster
    async with await installation.admin(installation.management) as client:
        await client.raw("DELETE", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/cohorts.{KUEUE}")
    async with running(reached, tmp_path) as manager:
        await named(manager, "cohorts: this API server does not serve Cohort of kueue.x-k8s.io/v1beta2; its CRD is")
        await named(manager, "not listed yet: cohorts\n")
        _, text = await get(manager.status_address, "/readyz")
        assert text.strip().endswith("kubectl apply --server-side -k deploy/crds")


DENIED = 'User "system:serviceaccount:a:b" cannot {verb} resource "{what}" in API group "{of}" at the cluster scope'


def refusal(text: str) -> Any:
    return from_status(403, json.dumps({"reason": "Forbidden", "message": f"x is forbidden: {text}"}).encode())


def test_a_right_is_lacked_from_its_refusal_until_such_a_request_is_answered() -> None:
    rights = LackedRights()
    one = asked("PATCH", "/api/v1/namespaces/team/pods/p/status", "")
    line = rights.refused(one, refusal(DENIED.format(verb="patch", what="pods/status", of="")), 1.0)
    assert line == "system:serviceaccount:a:b may not patch pods/status; give it the roles of deploy/ of this version"
    other = asked("GET", "/apis/batch/v1/jobs", "watch=1&x=y")
    rights.refused(other, refusal(DENIED.format(verb="watch", what="jobs", of="batch")), 2.0)
    assert rights.told(3.0).startswith("rights are missing: patch pods/status, watch jobs.batch; ")
    rights.granted(asked("GET", "/apis/batch/v1/jobs", ""))
    rights.granted(asked("PATCH", "/api/v1/namespaces/team/pods/p", ""))
    assert "watch jobs.batch" in rights.told(3.0), "a list is no watch, and a pod is not its status"
    rights.granted(asked("PATCH", "/api/v1/namespaces/other/pods/q/status", "dryRun=All"))
    assert rights.told(3.0).startswith("rights are missing: watch jobs.batch; ")
    assert rights.told(2.0 + FORGOTTEN_SECONDS) == "", "nobody asks for it any more"


@pytest.mark.parametrize(
    "text",
    [
        "exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1",
        'ValidatingAdmissionPolicy "x" with binding "x" denied request: no',
        "violates PodSecurity",
    ],
)
def test_another_refusal_is_about_no_right(text: str) -> None:
    rights = LackedRights()
    assert rights.refused(asked("POST", "/api/v1/namespaces/team/pods", ""), refusal(text), 1.0) == ""
    assert rights.told(1.0) == ""


def test_what_is_lacked_is_bounded() -> None:
    rights = LackedRights()
    for number in range(3 * LACKED_MAX):
        request = asked("GET", f"/apis/g{number}/v1/things", "")
        rights.refused(request, refusal(DENIED.format(verb="list", what=f"things{number}", of="g")), 1.0)
    assert rights.told(1.0).count("list things") == LACKED_MAX
