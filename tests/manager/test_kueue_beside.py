"""IS-44: a Kueue that runs beside us is found in whatever namespace it is, by its Lease that moves."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import structlog

from gatelift.adapters.standing import KUEUE_LEASE, KUEUE_WEBHOOKS, StartRefusedError, refuse_beside_kueue
from gatelift_kube.client import Client
from gatelift_kube.resources import LEASE, ObjectKey
from support.fake_apiserver import FakeApiServer

OWN = ObjectKey("gatelift-system", "gatelift-manager")
LONG_AGO = timedelta(hours=1)


def lease(age: timedelta, holder: str | None = "kueue-0") -> dict[str, Any]:
    renewed = datetime.now(UTC) - age
    return {"holderIdentity": holder, "renewTime": f"{renewed:%Y-%m-%dT%H:%M:%S.%fZ}"}


def pausing(meanwhile: Callable[[], object] = lambda: None) -> Callable[[float], Awaitable[None]]:
    async def pause(_seconds: float) -> None:
        meanwhile()

    return pause


@pytest.mark.parametrize("namespace", ["kueue-system", "queueing"])
async def test_is_44_a_lease_that_was_renewed_just_now_refuses_the_start(
    server: FakeApiServer, client: Client, namespace: str
) -> None:
    server.put(LEASE, KUEUE_LEASE, namespace, spec=lease(timedelta()))
    with pytest.raises(StartRefusedError, match=f"Lease {namespace}/.*kubectl -n {namespace} scale deployment"):
        await refuse_beside_kueue(client, OWN, pausing())


async def test_is_44_a_lease_that_moves_refuses_it_whatever_clock_it_is_written_by(
    server: FakeApiServer, client: Client
) -> None:
    server.put(LEASE, KUEUE_LEASE, "queueing", spec=lease(LONG_AGO))

    def renewed() -> None:
        server.put(LEASE, KUEUE_LEASE, "queueing", spec=lease(LONG_AGO - timedelta(seconds=2)))

    with pytest.raises(StartRefusedError, match="held by kueue-0"):
        await refuse_beside_kueue(client, OWN, pausing(renewed))


@pytest.mark.parametrize("holder", ["kueue-0", "", None])
async def test_is_44_one_that_was_left_behind_does_not(
    server: FakeApiServer, client: Client, holder: str | None
) -> None:
    server.put(LEASE, KUEUE_LEASE, "queueing", spec=lease(LONG_AGO, holder))
    server.put(LEASE, "of-somebody-else", "queueing", spec=lease(timedelta()))
    await refuse_beside_kueue(client, OWN, pausing())


async def test_is_44_our_own_lease_is_no_kueues_by_whatever_name(server: FakeApiServer, client: Client) -> None:
    own = ObjectKey("gatelift-system", KUEUE_LEASE)
    server.put(LEASE, own.name, own.namespace, spec=lease(timedelta()))
    await refuse_beside_kueue(client, own, pausing())


async def test_is_44_webhooks_without_a_kueue_are_warned_of_with_the_way_out(
    server: FakeApiServer, client: Client
) -> None:
    server.put(KUEUE_WEBHOOKS[0].resource, KUEUE_WEBHOOKS[0].key.name, webhooks=[])
    with structlog.testing.capture_logs() as logs:
        await refuse_beside_kueue(client, OWN, pausing())
    (said,) = logs
    assert said["log_level"] == "warning"
    assert said["way_out"] == "kubectl delete mutatingwebhookconfiguration kueue-mutating-webhook-configuration"
