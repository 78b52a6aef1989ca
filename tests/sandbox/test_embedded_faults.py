"""Failures on request, over HTTP, and the embedded server as a client with a broken network sees it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import aiohttp
import pytest

from gatelift_sandbox.embedded.cluster import EmbeddedCluster
from gatelift_sandbox.faults import FAULTS_MAX, FaultAction, FaultPlan, PlannedFault
from support.servers.contract_api import Api, config
from support.until import until

PLAN = "/sandbox/faults"
CONFIGS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    cluster = EmbeddedCluster("faulty")
    await cluster.start()
    yield cluster
    await cluster.stop()


@pytest.fixture
async def api(cluster: EmbeddedCluster) -> AsyncIterator[Api]:
    async with Api.open(cluster.kubeconfig()) as api:
        for furniture in ("serviceaccounts/default", "configmaps/kube-root-ca.crt"):
            await api.until(f"/api/v1/namespaces/default/{furniture}", lambda _: True)
        yield api


async def test_so_many_requests_fail_as_asked_for_and_the_next_succeeds(api: Api) -> None:
    fault = {"action": "refuse", "code": 429, "verb": "create", "resource": "configmaps", "count": 2, "retryAfter": 3}
    waiting = (await api.post(PLAN, fault)).ok()["waiting"]
    assert [(each["code"], each["count"]) for each in waiting] == [(429, 2)]
    for _ in range(2):
        said = await api.post(CONFIGS, config("a"))
        assert (said.code, said.reason) == (429, "TooManyRequests")
    assert (await api.post(CONFIGS, config("a"))).code == 201
    assert (await api.get(PLAN)).ok() == {"waiting": [], "used": 2}


@pytest.mark.parametrize("code", [401, 403, 404, 409, 410, 429, 500, 503, 504])
async def test_any_refusal_can_be_asked_for(api: Api, cluster: EmbeddedCluster, code: int) -> None:
    cluster.faults.add(PlannedFault(action=FaultAction.REFUSE, code=code, verb="get", name="a"))
    said = await api.get(f"{CONFIGS}/a")
    assert said.code == code
    assert said.message == "asked for by a fault of the sandbox"


async def test_other_requests_are_not_hit(api: Api, cluster: EmbeddedCluster) -> None:
    cluster.faults.add(
        PlannedFault(action=FaultAction.REFUSE, verb="patch", resource="pods/status", namespace="default")
    )
    assert (await api.post(CONFIGS, config("a"))).code == 201
    assert len(cluster.faults.waiting()) == 1


async def test_a_cut_request_is_not_done(api: Api, cluster: EmbeddedCluster) -> None:
    cluster.faults.add(PlannedFault(action=FaultAction.CUT, verb="create"))
    with pytest.raises(aiohttp.ClientError):
        await api.post(CONFIGS, config("a"))
    assert (await api.get(f"{CONFIGS}/a")).code == 404


async def test_a_lost_answer_is_that_of_a_write_that_happened(api: Api, cluster: EmbeddedCluster) -> None:
    cluster.faults.add(PlannedFault(action=FaultAction.LOSE_ANSWER, verb="create"))
    with pytest.raises(aiohttp.ClientError):
        await api.post(CONFIGS, config("a"))
    assert (await api.get(f"{CONFIGS}/a")).code == 200


async def test_a_delayed_request_is_done_late(api: Api, cluster: EmbeddedCluster) -> None:
    cluster.faults.add(PlannedFault(action=FaultAction.DELAY, verb="create", seconds=0.05))
    assert (await api.post(CONFIGS, config("a"))).code == 201
    assert cluster.faults.used == 1


async def test_dropped_watches_end_and_can_go_on(api: Api) -> None:
    start = (await api.get(CONFIGS)).ok()["metadata"]["resourceVersion"]
    async with api.watch(CONFIGS, resourceVersion=start) as following:
        await api.post(PLAN, {}, drop="watches", resource="configmaps")
        assert await following() is None
    await api.post(CONFIGS, config("a"))
    async with api.watch(CONFIGS, resourceVersion=start) as following:
        assert (await following())["object"]["metadata"]["name"] == "a"


async def test_a_dropped_history_makes_old_versions_expire(api: Api) -> None:
    start = (await api.get(CONFIGS)).ok()["metadata"]["resourceVersion"]
    await api.post(CONFIGS, config("a"))
    await api.post(PLAN, {}, drop="history")
    async with api.watch(CONFIGS, resourceVersion=start) as following:
        event = await following()
        assert event["type"] == "ERROR"
        assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")
        assert await following() is None


async def test_bookmarks_come_where_nothing_else_does(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gatelift_sandbox.embedded.http.BOOKMARK_SECONDS", 0.02)
    start = (await api.get(CONFIGS)).ok()["metadata"]["resourceVersion"]
    async with api.watch(CONFIGS, resourceVersion=start, allowWatchBookmarks="true") as following:
        mark = await following()
    assert mark["type"] == "BOOKMARK"
    assert mark["object"]["metadata"]["resourceVersion"] == start
    assert mark["object"]["kind"] == "ConfigMap"


async def test_a_client_that_goes_takes_its_watch_along(api: Api, cluster: EmbeddedCluster) -> None:
    kind = next(each for each in cluster.store.kinds if each.resource.plural == "leases")
    path = "/apis/coordination.k8s.io/v1/leases"
    async with Api.open(cluster.kubeconfig()) as other, other.watch(path, resourceVersion="1"):
        await until(lambda: cluster.store._shelf(kind.storage).history._watches)
    await until(lambda: not cluster.store._shelf(kind.storage).history._watches)


async def test_faults_are_for_administrators(api: Api, cluster: EmbeddedCluster) -> None:
    async with Api.open(cluster.kubeconfig("somebody", "team")) as other:
        assert (await other.post(PLAN, {"action": "refuse"})).code == 403


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        ({"action": "explode"}, "action"),
        ({"action": "refuse", "code": 200}, "code: 200 is not one of"),
        ({"action": "delay", "seconds": 1e9}, "seconds: 1000000000.0 is not between"),
        ({"action": "refuse", "count": 0}, "count: 0 is not above 0"),
    ],
)
async def test_a_fault_that_makes_no_sense_is_refused(api: Api, fault: dict[str, object], text: str) -> None:
    said = await api.post(PLAN, fault)
    assert said.code == 400
    assert text in said.message


def test_the_number_of_waiting_faults_is_bounded() -> None:
    plan = FaultPlan()
    for _ in range(FAULTS_MAX):
        plan.add(PlannedFault(action=FaultAction.CUT))
    with pytest.raises(ValueError, match="wait already"):
        plan.add(PlannedFault(action=FaultAction.CUT))
    plan.clear()
    assert plan.take("get", "pods", "", "") is None


async def test_a_suspended_server_comes_back_at_its_address_with_its_objects(
    api: Api, cluster: EmbeddedCluster
) -> None:
    await api.post(CONFIGS, config("a"))
    address = cluster.server
    await cluster.suspend()
    with pytest.raises(aiohttp.ClientError):
        await api.get(f"{CONFIGS}/a")
    await cluster.resume()
    assert cluster.server == address
    assert (await api.get(f"{CONFIGS}/a")).code == 200
