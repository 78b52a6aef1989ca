"""The running daemon: reviews over TLS, its certificate, its configurations, what happens when something is missing."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import aiohttp
import pytest

from gatelift.config import Configuration
from gatelift.webhooks import app
from gatelift.webhooks import server as server_module
from gatelift.webhooks.app import Daemon, settings_of
from gatelift.webhooks.bodies import REQUEST_BYTES_MAX
from gatelift.webhooks.configuration import DEFINITION, MUTATING, NAME, SECRET_NAME, SHOWN, UNSERVED, VALIDATING, WARNED
from gatelift.webhooks.injection import NOBODY_ASKS
from gatelift.webhooks.metrics import WebhookMetrics
from gatelift_kinds.shared.names import workload_name
from gatelift_kube.api.client import Client
from gatelift_kube.objects import selectors
from gatelift_kube.serving.certificates import SERVING_LIFETIME, Material
from gatelift_kube.serving.material_store import MaterialStore
from gatelift_kube.values.resources import LOCAL_QUEUE, SECRET, WORKLOAD, ObjectKey
from support.manager.webhook_requests import Json, K, operations, queued
from support.servers.fake_apiserver import FakeApiServer
from support.until import until

from .conftest import NOW, SETTINGS, Asking


def webhooks(server: FakeApiServer, resource: Any = MUTATING) -> list[Json]:
    found = server.find(resource, NAME)
    assert found is not None
    made: list[Json] = found["webhooks"]
    return made


async def test_a_queued_pod_is_taken_over(asking: Asking) -> None:
    response = await asking.review("/mutate-pod", "Pod", queued())
    assert response["allowed"]
    assert operations(response)["/spec/schedulingGates"] == [{"name": f"{K}admission"}]


async def test_a_job_of_a_multikueue_queue_is_managed_elsewhere(asking: Asking) -> None:
    far = operations(await asking.review("/mutate-job", "Job", queued("far")))
    near = operations(await asking.review("/mutate-job", "Job", queued("near")))
    assert far["/spec/managedBy"] == f"{K}multikueue"
    assert "/spec/managedBy" not in near
    assert near["/spec/suspend"] is True


async def test_a_refusal_names_field_rule_and_way_out(asking: Asking) -> None:
    response = await asking.review("/validate-pod", "Pod", queued("NO"))
    assert not response["allowed"]
    assert response["status"]["message"].startswith('metadata.labels[kueue.x-k8s.io/queue-name]: Invalid value: "NO"')


async def test_a_change_is_judged_by_what_was_before(asking: Asking) -> None:
    running = {**queued(), "spec": {"suspend": False}}
    moved = {**queued("far"), "spec": {"suspend": False}}
    assert (await asking.review("/validate-job", "Job", running, running))["allowed"]
    assert not (await asking.review("/validate-job", "Job", moved, running))["allowed"]


async def test_a_cluster_queue_that_breaks_a_rule_of_kueues_is_refused(asking: Asking) -> None:
    rule = {"name": "c", "onFlavors": ["f"]}
    queue = {"metadata": {"name": "q"}, "spec": {"admissionChecksStrategy": {"admissionChecks": [rule]}}}
    response = await asking.review("/validate-clusterqueue", "ClusterQueue", queue, namespace="")
    assert not response["allowed"]
    assert response["status"]["message"] == (
        "spec.admissionChecksStrategy.admissionChecks[0].onFlavors: Invalid value: "
        "'f' is no flavor of this ClusterQueue: add it, or drop it here"
    )
    assert (await asking.review("/validate-cohort", "Cohort", {"spec": {}}, namespace=""))["allowed"]


async def test_our_own_agents_objects_are_left_alone(asking: Asking) -> None:
    groups = {"groups": ["system:serviceaccounts:gatelift-system"]}
    assert operations(await asking.review("/mutate-pod", "Pod", queued(), userInfo=groups)) == {}


async def test_pods_of_kube_system_are_left_alone(asking: Asking) -> None:
    assert operations(await asking.review("/mutate-pod", "Pod", queued(), namespace="kube-system")) == {}


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        pytest.param("/mutate-pod", b"{", 400, id="no JSON"),
        pytest.param("/mutate-pod", b"{}", 400, id="no review"),
        pytest.param("/mutate-pod", b'{"kind":"\xff"}', 400, id="no text"),
        pytest.param("/mutate-nothing", b"{}", 404, id="no such kind"),
        pytest.param("/validate-pod", b" " * (REQUEST_BYTES_MAX + 1), 413, id="too large"),
    ],
)
async def test_what_is_no_review_gets(asking: Asking, path: str, body: bytes, status: int) -> None:
    assert (await asking.post(path, body))[0] == status
    assert (await asking.review("/mutate-pod", "Pod", queued()))["allowed"]


async def test_an_object_sent_to_the_path_of_another_kind_is_no_review(asking: Asking) -> None:
    body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
    request = {"uid": "u", "operation": "CREATE", "kind": {"kind": "Job"}, "object": {}}
    status, text = await asking.post("/mutate-pod", json.dumps({**body, "request": request}).encode())
    assert (status, text.strip()) == (400, "Job was sent to the path of Pod")


async def test_an_object_of_a_wrong_type_is_denied_and_the_daemon_lives(asking: Asking) -> None:
    response = await asking.review("/mutate-pod", "Pod", {"metadata": {"labels": []}})
    assert not response["allowed"]
    assert "$.metadata.labels" in response["status"]["message"]
    assert (await asking.review("/mutate-pod", "Pod", queued()))["allowed"]


def test_reviews_are_counted_by_kind_step_and_status() -> None:
    metrics = WebhookMetrics()
    for status, seconds in ((200, 0.002), (200, 0.004), (400, 0.001)):
        metrics.taken("Pod", "mutate", status, seconds)
    value = metrics.registry.get_sample_value
    about = {"kind": "Pod", "step": "mutate"}
    assert value("gatelift_webhook_reviews_total", {**about, "status": "200"}) == 2
    assert value("gatelift_webhook_reviews_total", {**about, "status": "400"}) == 1
    assert value("gatelift_webhook_review_seconds_count", about) == 3


# --- what holds quota keeps its queue ---


def workload_of(server: FakeApiServer, kind: str, name: str, **conditions: str) -> None:
    """Put the Workload of a pod or Job, with conditions by their status."""
    group = "batch" if kind == "Job" else ""
    said = [{"type": one, "status": status} for one, status in conditions.items()]
    server.put(WORKLOAD, workload_name(kind, group, name, f"uid-{name}"), "team", status={"conditions": said})


def named(queue: str | None, **spec: Any) -> Json:
    labels = {f"{K}managed": "true", **({f"{K}queue-name": queue} if queue else {})}
    gates = {"schedulingGates": [{"name": f"{K}admission"}]}
    return {"metadata": {"name": "x", "uid": "uid-x", "labels": labels}, "spec": {"containers": [], **gates, **spec}}


HELD = [
    pytest.param({"QuotaReserved": "True"}, False, id="it holds quota"),
    pytest.param({"QuotaReserved": "False"}, True, id="it waits"),
    pytest.param({"QuotaReserved": "True", "Finished": "True"}, True, id="it is over"),
    pytest.param(None, True, id="it has no Workload"),
]


@pytest.mark.parametrize(("conditions", "allowed"), HELD)
@pytest.mark.parametrize("kind", ["Pod", "Job"])
async def test_hd_109_a_queues_name_stays_while_the_workload_holds_quota(
    asking: Asking, server: FakeApiServer, kind: str, conditions: dict[str, str] | None, allowed: bool
) -> None:
    if conditions is not None:
        workload_of(server, kind, "x", **conditions)
    old = named("near", suspend=True)
    for queue in ("other", None):
        response = await asking.review(f"/validate-{kind.lower()}", kind, named(queue, suspend=True), old)
        assert response["allowed"] is allowed
        if not allowed:
            assert "holds quota: make the object anew, or deactivate the Workload" in response["status"]["message"]


async def test_hd_109_other_changes_ask_for_no_workload_and_one_that_cannot_be_read_is_said(
    asking: Asking, server: FakeApiServer
) -> None:
    old = named("near")
    assert (await asking.review("/validate-pod", "Pod", named("near", nodeName="n"), old))["allowed"]
    assert not server.asked("GET", "/workloads/")
    path = WORKLOAD.path("team", workload_name("Pod", "", "x", "uid-x"))
    server.fault("GET", path, status=403)
    response = await asking.review("/validate-pod", "Pod", named("other"), old)
    assert not response["allowed"]
    assert "cannot be read now" in response["status"]["message"]


# --- certificate and configurations ---


async def test_both_configurations_get_bundle_and_address(asking: Asking, server: FakeApiServer) -> None:
    secret = server.find(SECRET, SECRET_NAME, "gatelift-system")
    assert secret is not None
    for resource, verb in ((MUTATING, "mutate"), (VALIDATING, "validate")):
        made = webhooks(server, resource)
        kinds = ["pod", "job", *(["job"] if verb == "mutate" else [*SHOWN, UNSERVED])]
        asked = [f"{verb}-{kind}" for kind in kinds] + ([] if verb == "mutate" else ["grown-pod", "grown-job"])
        assert [one["clientConfig"]["url"] for one in made] == [f"https://127.0.0.1:1/{one}" for one in asked]
        assert {one["clientConfig"]["caBundle"] for one in made} == {secret["data"]["ca.crt"]}
        ignored = {one["name"] for one in made if one["failurePolicy"] == "Ignore"}
        assert ignored == ({f"validate.{name}.gatelift.dev" for name in WARNED} if verb == "validate" else set())


def a_definition(server: FakeApiServer, plural: str, name: str) -> str:
    """Put a definition as it is applied: by the Service, without a bundle."""
    service = {"namespace": "gatelift-system", "name": "gatelift-webhooks", "path": "/convert", "port": 443}
    webhook = {"clientConfig": {"service": service}, "conversionReviewVersions": ["v1"]}
    labels = {"app.kubernetes.io/name": name}
    full = f"{plural}.kueue.x-k8s.io"
    spec = {"group": "kueue.x-k8s.io", "conversion": {"strategy": "Webhook", "webhook": webhook}}
    server.put(DEFINITION, full, metadata={"labels": labels}, spec=spec)
    return full


async def test_our_definitions_get_bundle_and_address_and_those_of_kueue_are_left_alone(
    client: Client, server: FakeApiServer
) -> None:
    ours, theirs = a_definition(server, "clusterqueues", "gatelift"), a_definition(server, "workloads", "kueue")
    before = server.find(DEFINITION, theirs)
    daemon = Daemon(client, SETTINGS)
    await daemon.start()
    try:
        await until(lambda: not daemon.missing())
    finally:
        await daemon.stop()
    secret, found = server.find(SECRET, SECRET_NAME, "gatelift-system"), server.find(DEFINITION, ours)
    assert secret is not None
    assert found is not None
    assert found["spec"]["conversion"]["webhook"]["clientConfig"] == {
        "url": "https://127.0.0.1:1/convert",
        "caBundle": secret["data"]["ca.crt"],
    }
    assert server.find(DEFINITION, theirs) == before


async def test_versions_are_converted_as_soon_as_the_port_is_open(asking: Asking) -> None:
    queue = {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ClusterQueue", "metadata": {}, "spec": {"cohort": "a"}}
    request = {"uid": "u", "desiredAPIVersion": "kueue.x-k8s.io/v1beta2", "objects": [queue]}
    body = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request}
    status, text = await asking.post("/convert", json.dumps(body).encode())
    assert status == 200
    assert json.loads(text)["response"]["convertedObjects"][0]["spec"] == {"cohortName": "a"}
    assert (await asking.post("/convert", b"{}"))[0] == 400


async def test_what_is_right_is_not_written_again(asking: Asking, server: FakeApiServer, daemon: Daemon) -> None:
    before = len(server.asked("PATCH", "webhookconfigurations"))
    reads = len(server.asked("GET", "webhookconfigurations"))
    daemon._wake.set()
    await until(lambda: len(server.asked("GET", "webhookconfigurations")) >= reads + 2)
    daemon._wake.set()
    await until(lambda: len(server.asked("GET", "webhookconfigurations")) >= reads + 4, "the first look is over")
    assert len(server.asked("PATCH", "webhookconfigurations")) == before


async def test_what_somebody_breaks_is_mended(server: FakeApiServer, daemon: Daemon) -> None:
    server.put(MUTATING, NAME, webhooks=[])
    daemon._wake.set()
    await until(lambda: len(webhooks(server)) == 3)


async def test_namespaces_with_a_default_queue_are_asked_about_in_full(server: FakeApiServer, daemon: Daemon) -> None:
    server.put(LOCAL_QUEUE, "default", "team", spec={"clusterQueue": "near"})
    await until(lambda: len(webhooks(server)) == 5)
    unmarked = [one for one in webhooks(server) if "default" in one["name"]]
    for one in unmarked:
        assert {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["team"]} in one["namespaceSelector"][
            "matchExpressions"
        ]
    server.remove(LOCAL_QUEUE, "default", "team")
    await until(lambda: len(webhooks(server)) == 3)


async def test_reviews_wait_until_everything_has_been_read(client: Client, server: FakeApiServer) -> None:
    server.fault("GET", "/localqueues", times=10_000, status=500, body={"kind": "Status", "code": 500})
    daemon = Daemon(client, SETTINGS)
    await daemon.start()
    asking = Asking(server, daemon)
    try:
        status, text = await asking.post("/mutate-pod", b"{}")
        assert status == 503
        assert "localqueues" in text
        await until(lambda: daemon.missing() == "not read yet: localqueues", "all else is there")
        assert webhooks(server) == []
    finally:
        await daemon.stop()


async def test_missing_configurations_do_not_end_the_daemon(client: Client, server: FakeApiServer) -> None:
    server.remove(MUTATING, NAME)
    daemon = Daemon(client, SETTINGS)
    await daemon.start()
    try:
        await until(lambda: not daemon.missing())
        assert not daemon.failed.is_set()
        assert webhooks(server, VALIDATING)
    finally:
        await daemon.stop()


def clock(*moments: datetime) -> Callable[[], datetime]:
    """Return a clock that shows these moments one after the other, and the last for ever."""
    left = list(moments)
    return lambda: left.pop(0) if len(left) > 1 else left[0]


async def test_two_replicas_share_one_certificate(client: Client) -> None:
    one, two = (MaterialStore(client, ObjectKey("gatelift-system", SECRET_NAME), ("x",), clock(NOW)) for _ in range(2))
    assert await one.current() == await two.current()


async def test_the_replica_that_comes_second_reads_the_firsts(client: Client, server: FakeApiServer) -> None:
    first = await MaterialStore(client, ObjectKey("gatelift-system", SECRET_NAME), ("x",), clock(NOW)).current()
    server.fault("GET", SECRET_NAME, status=404, body={"kind": "Status", "code": 404, "reason": "NotFound"})
    assert await MaterialStore(client, ObjectKey("gatelift-system", SECRET_NAME), ("x",), clock(NOW)).current() == first


async def test_a_broken_secret_is_made_anew(client: Client, server: FakeApiServer) -> None:
    server.put(SECRET, SECRET_NAME, "gatelift-system", data={"ca.crt": "AAAA"})
    material = await MaterialStore(client, ObjectKey("gatelift-system", SECRET_NAME), ("x",), clock(NOW)).current()
    kept = server.find(SECRET, SECRET_NAME, "gatelift-system")
    assert kept is not None
    assert Material.from_data(kept["data"]) == material


async def test_a_running_daemon_renews_its_certificate(server: FakeApiServer, client: Client) -> None:
    moments = [NOW]
    daemon = Daemon(client, SETTINGS, lambda: moments[0])
    await daemon.start()
    try:
        await until(lambda: not daemon.missing())
        before = daemon._material
        moments[0] = NOW + SERVING_LIFETIME - timedelta(days=1)
        daemon._wake.set()
        await until(lambda: daemon._material != before)
        assert before is not None
        assert daemon._material is not None
        assert daemon._material.bundle == before.bundle
    finally:
        await daemon.stop()


async def test_is_26_guarded_metrics_are_served_by_tls_to_who_shows_a_token_alone(
    client: Client, server: FakeApiServer
) -> None:
    settings = replace(SETTINGS, status_address="127.0.0.1:0", guards_metrics=True, metrics_address="127.0.0.1:0")
    daemon = Daemon(client, settings)
    await daemon.start()
    try:
        async with aiohttp.ClientSession() as session:
            async with session.get(f"http://{daemon.status_address}/metrics") as answer:
                assert answer.status == 404
            async with session.get(f"https://{daemon.metrics_address}/metrics", ssl=False) as answer:
                assert answer.status == 401
    finally:
        await daemon.stop()


@pytest.mark.parametrize("off", ["", "0"])
async def test_is_26_guarded_metrics_without_a_port_are_served_nowhere(
    client: Client, server: FakeApiServer, off: str
) -> None:
    daemon = Daemon(client, replace(SETTINGS, status_address="127.0.0.1:0", guards_metrics=True, metrics_address=off))
    await daemon.start()
    try:
        assert daemon.metrics_address == ""
        url = f"http://{daemon.status_address}/metrics"
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            assert answer.status == 404
    finally:
        await daemon.stop()


async def test_health_and_readiness_are_served_in_the_clear(client: Client, server: FakeApiServer) -> None:
    settings = replace(SETTINGS, status_address="127.0.0.1:0")
    daemon = Daemon(client, settings)
    await daemon.start()
    try:
        await until(lambda: not daemon.missing())
        async with aiohttp.ClientSession() as session:
            for path in ("/healthz", "/readyz"):
                async with session.get(f"http://{daemon.status_address}{path}") as answer:
                    assert (answer.status, await answer.text()) == (200, "ok\n")
            async with session.get(f"http://{daemon.status_address}/metrics") as answer:
                assert "gatelift_webhook_reviews_total" in await answer.text()
    finally:
        await daemon.stop()


async def test_hd_575_readiness_says_that_nothing_asks_the_webhooks(client: Client, server: FakeApiServer) -> None:
    """HD-575: a configuration that somebody deletes has queued pods run without a gate, and `/readyz` said ok."""
    server.remove(VALIDATING, NAME)
    daemon = Daemon(client, replace(SETTINGS, status_address="127.0.0.1:0"))
    await daemon.start()

    async def ready() -> str:
        async with aiohttp.ClientSession() as session, session.get(f"http://{daemon.status_address}/readyz") as answer:
            assert answer.status == 200, "a rollout goes on"
            return await answer.text()

    try:
        await until(lambda: not daemon.missing())
        assert await ready() == f"ok, but {NOBODY_ASKS} (ValidatingWebhookConfiguration {NAME})\n"
        server.put(VALIDATING, NAME, webhooks=[])
        daemon._wake.set()
        await until(lambda: len(webhooks(server, VALIDATING)) > 0)
        await until(lambda: not daemon._injection.unasked())
        assert await ready() == "ok\n"
    finally:
        await daemon.stop()


# --- settings ---


@pytest.mark.parametrize(
    ("file", "labels", "selected"),
    [
        pytest.param({}, {"kubernetes.io/metadata.name": "team"}, True, id="any namespace by default"),
        pytest.param({}, {"kubernetes.io/metadata.name": "kube-system"}, False, id="not kube-system"),
        pytest.param({}, {"kubernetes.io/metadata.name": "gatelift-system"}, False, id="not our own"),
        pytest.param(
            {"managedJobsNamespaceSelector": {"matchLabels": {"a": "b"}}}, {"a": "b"}, True, id="what the file selects"
        ),
        pytest.param(
            {"managedJobsNamespaceSelector": {"matchLabels": {"a": "b"}}}, {}, False, id="not what it does not select"
        ),
    ],
)
def test_namespaces_are_selected_as_the_file_says(file: Json, labels: dict[str, str], selected: bool) -> None:
    settings = settings_of(Configuration.model_validate(file))
    assert selectors.matches(settings.namespace_selector, labels) is selected


def test_the_gate_of_default_priority_classes_is_a_feature_gate() -> None:
    assert settings_of(Configuration()).default_priority_class
    off = Configuration.model_validate({"featureGates": {app.DEFAULT_CLASS_GATE: False}})
    assert not settings_of(off).default_priority_class


def test_idle_connections_are_closed_by_the_api_server_and_not_by_us() -> None:
    go_default_transport_seconds = 90.0
    assert go_default_transport_seconds < server_module.KEEPALIVE_SECONDS
