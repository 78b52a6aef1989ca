"""IS-42: a MultiKueueCluster says what is so: its credentials are unused, and by what command its cluster comes in."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift.adapters.multikueue_clusters import tell
from gatelift_kube.api.client import Client
from gatelift_kube.values.resources import MULTIKUEUE_CLUSTER, WORKER_CLUSTER
from support.manager.cli_stage import condition
from support.servers.fake_apiserver import FakeApiServer

SOURCE = {"clusterSource": {"kubeConfig": {"location": "a-secret"}}}


def said(server: FakeApiServer, name: str = "a") -> tuple[str, str, str]:
    found = server.find(MULTIKUEUE_CLUSTER, name)
    assert found is not None
    (only,) = found["status"]["conditions"]
    assert only["type"] == "Active"
    return only["status"], only["reason"], only["message"]


async def test_is_42_one_without_an_agent_names_the_command(server: FakeApiServer, client: Client) -> None:
    server.put(MULTIKUEUE_CLUSTER, "a", spec=SOURCE)
    await tell(client)
    status, reason, message = said(server)
    assert (status, reason) == ("False", "NoAgent")
    assert "gatelift cluster add a" in message
    assert "spec.clusterSource is not used" in message


@pytest.mark.parametrize(
    ("conditions", "status", "reason"),
    [
        pytest.param([], "False", "NotConnected", id="an agent that never connected"),
        pytest.param([condition("Connected", "False", "Lost")], "False", "NotConnected", id="one that is lost"),
        pytest.param([condition("Connected", "True", "Connected")], "True", "Active", id="one that is connected"),
    ],
)
async def test_is_42_one_with_an_agent_is_as_active_as_that_is_connected(
    server: FakeApiServer, client: Client, conditions: list[Any], status: str, reason: str
) -> None:
    server.put(MULTIKUEUE_CLUSTER, "a", spec=SOURCE)
    server.put(WORKER_CLUSTER, "a", spec={}, status={"conditions": conditions})
    await tell(client)
    assert said(server)[:2] == (status, reason)


async def test_is_42_nothing_is_written_twice(server: FakeApiServer, client: Client) -> None:
    server.put(MULTIKUEUE_CLUSTER, "a", spec=SOURCE)
    await tell(client)
    await tell(client)
    assert len(server.asked("PATCH", "/multikueueclusters/a")) == 1


async def test_is_42_where_kueues_kinds_are_not_there_is_nothing_to_tell(server: FakeApiServer, client: Client) -> None:
    server.fault("GET", "/multikueueclusters", status=404)
    await tell(client)
