"""IS-44: a Kueue that runs beside us is found in whatever namespace it is, by its Lease that moves."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import structlog

from gatelift.adapters.kueue_beside import KUEUE_LEASE, KUEUE_WEBHOOKS, StartRefusedError, refuse_beside_kueue
from gatelift_kube.api.client import Client
from gatelift_kube.values.resources import LEASE, POD
from support.servers.fake_apiserver import FakeApiServer, status_of

REVIEWS = "subjectaccessreviews"
LONG_AGO = timedelta(hours=1)


def lease(age: timedelta, holder: str | None = "kueue-0") -> dict[str, Any]:
    renewed = datetime.now(UTC) - age
    return {"holderIdentity": holder, "renewTime": f"{renewed:%Y-%m-%dT%H:%M:%S.%fZ}"}


@pytest.fixture
def may_admit(server: FakeApiServer) -> None:
    """Whoever is asked about may write the status of Workloads."""
    server.fault("POST", REVIEWS, times=9, status=201, body={"status": {"allowed": True}})


@pytest.fixture
def may_not(server: FakeApiServer) -> None:
    """Nobody may."""
    server.fault("POST", REVIEWS, times=9, status=201, body={"status": {"allowed": False}})


def asked_about(server: FakeApiServer) -> list[tuple[str, str]]:
    """Return the accounts that were asked about, and the verb and resource."""
    specs = [json.loads(each.body)["spec"] for each in server.asked("POST", REVIEWS)]
    return [(spec["user"], "{verb} {resource}/{subresource}".format(**spec["resourceAttributes"])) for spec in specs]


def pausing(meanwhile: Callable[[], object] = lambda: None) -> Callable[[float], Awaitable[None]]:
    async def pause(_seconds: float) -> None:
        meanwhile()

    return pause


@pytest.mark.usefixtures("may_admit")
@pytest.mark.parametrize("namespace", ["kueue-system", "queueing", "gatelift-system"])
async def test_is_44_a_lease_that_was_renewed_just_now_refuses_the_start(
    server: FakeApiServer, client: Client, namespace: str
) -> None:
    server.put(LEASE, KUEUE_LEASE, namespace, spec=lease(timedelta()))
    with pytest.raises(StartRefusedError, match=f"Lease {namespace}/.*kubectl -n {namespace} scale deployment"):
        await refuse_beside_kueue(client, pausing())


@pytest.mark.usefixtures("may_admit")
async def test_is_44_a_lease_that_moves_refuses_it_whatever_clock_it_is_written_by(
    server: FakeApiServer, client: Client
) -> None:
    server.put(LEASE, KUEUE_LEASE, "queueing", spec=lease(LONG_AGO))

    def renewed() -> None:
        server.put(LEASE, KUEUE_LEASE, "queueing", spec=lease(LONG_AGO - timedelta(seconds=2)))

    with pytest.raises(StartRefusedError, match="held by kueue-0"):
        await refuse_beside_kueue(client, pausing(renewed))


@pytest.mark.usefixtures("may_admit")
async def test_is_44_one_that_starts_while_we_look_refuses_it_too(server: FakeApiServer, client: Client) -> None:
    server.put(LEASE, KUEUE_LEASE, "left-behind", spec=lease(LONG_AGO))

    def starts() -> None:
        server.put(LEASE, KUEUE_LEASE, "queueing", spec=lease(LONG_AGO))

    with pytest.raises(StartRefusedError, match="Lease queueing/"):
        await refuse_beside_kueue(client, pausing(starts))


@pytest.mark.usefixtures("may_admit")
@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(lease(LONG_AGO), id="held long ago"),
        pytest.param({**lease(LONG_AGO), "renewTime": None}, id="never renewed"),
        pytest.param(lease(timedelta(), ""), id="given back just now"),
        pytest.param(lease(timedelta(), None), id="never held"),
    ],
)
async def test_is_44_one_that_was_left_behind_does_not(
    server: FakeApiServer, client: Client, spec: dict[str, Any]
) -> None:
    server.put(LEASE, KUEUE_LEASE, "queueing", spec=spec)
    server.put(LEASE, "of-somebody-else", "queueing", spec=lease(timedelta()))
    await refuse_beside_kueue(client, pausing())


async def test_is_44_webhooks_without_a_kueue_are_warned_of_with_the_way_out(
    server: FakeApiServer, client: Client
) -> None:
    server.put(KUEUE_WEBHOOKS[0].resource, KUEUE_WEBHOOKS[0].key.name, webhooks=[])
    with structlog.testing.capture_logs() as logs:
        await refuse_beside_kueue(client, pausing())
    (said,) = logs
    assert said["log_level"] == "warning"
    assert said["way_out"] == "kubectl delete mutatingwebhookconfiguration kueue-mutating-webhook-configuration"


async def test_is_44_who_may_not_look_is_told_so(server: FakeApiServer, client: Client) -> None:
    for part in ("leases", KUEUE_WEBHOOKS[0].key.name, KUEUE_WEBHOOKS[1].key.name):
        server.fault("GET", part, status=403, body=status_of(403, "Forbidden", "not for you"))
    with structlog.testing.capture_logs() as logs:
        await refuse_beside_kueue(client, pausing())
    assert [one["event"] for one in logs] == [
        "cannot look for a Kueue controller",
        "cannot look for Kueue's webhooks",
        "cannot look for Kueue's webhooks",
    ]
    assert all("not for you" in one["problem"] for one in logs)


TO_COME = timedelta(days=-365)


@pytest.mark.usefixtures("may_not")
@pytest.mark.parametrize("age", [timedelta(), TO_COME], ids=["renewed just now", "renewed in a year"])
async def test_is_55_a_lease_of_somebody_who_may_not_admit_is_warned_of_and_refuses_nothing(
    server: FakeApiServer, client: Client, age: timedelta
) -> None:
    """IS-55: with the role `edit` in one namespace a tenant kept every manager from starting."""
    server.put(LEASE, KUEUE_LEASE, "team-a", spec=lease(age))

    def renewed() -> None:
        server.put(LEASE, KUEUE_LEASE, "team-a", spec=lease(age + timedelta(seconds=-2)))

    with structlog.testing.capture_logs() as logs:
        await refuse_beside_kueue(client, pausing(renewed))
    (said,) = logs
    assert said["log_level"] == "warning"
    assert said["way_out"] == f"kubectl -n team-a delete lease {KUEUE_LEASE}"
    account = "system:serviceaccount:team-a:kueue-controller-manager"
    assert asked_about(server) == [(account, "update workloads/status")]


@pytest.mark.usefixtures("may_admit")
async def test_is_55_asked_about_is_the_account_of_the_pod_that_holds_the_lease(
    server: FakeApiServer, client: Client
) -> None:
    server.put(LEASE, KUEUE_LEASE, "queueing", spec=lease(timedelta(), "kueue-7f9c_0a1b"))
    server.put(POD, "kueue-7f9c", "queueing", spec={"serviceAccountName": "of-a-chart"})
    with pytest.raises(StartRefusedError, match="held by kueue-7f9c_0a1b"):
        await refuse_beside_kueue(client, pausing())
    assert [user for user, _ in asked_about(server)] == ["system:serviceaccount:queueing:of-a-chart"]


@pytest.mark.usefixtures("may_not")
@pytest.mark.parametrize("holder", ["a/b", "..", "_", "x" * 300])
async def test_is_55_a_holder_that_is_no_pod_is_asked_about_all_the_same(
    server: FakeApiServer, client: Client, holder: str
) -> None:
    server.put(LEASE, KUEUE_LEASE, "team-a", spec=lease(timedelta(), holder))
    await refuse_beside_kueue(client, pausing())
    assert [user for user, _ in asked_about(server)] == ["system:serviceaccount:team-a:kueue-controller-manager"]


async def test_is_55_where_nobody_may_ask_a_kueue_is_believed(server: FakeApiServer, client: Client) -> None:
    server.put(LEASE, KUEUE_LEASE, "queueing", spec=lease(timedelta()))
    server.fault("POST", REVIEWS, status=403)
    with pytest.raises(StartRefusedError, match="held by kueue-0"):
        await refuse_beside_kueue(client, pausing())


async def test_is_55_a_time_to_come_is_no_renewal(server: FakeApiServer, client: Client) -> None:
    server.put(LEASE, KUEUE_LEASE, "kueue-system", spec=lease(TO_COME))
    await refuse_beside_kueue(client, pausing())
