"""The provider `embedded`: clusters as processes, their kubeconfigs, their end."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import stat
from pathlib import Path

import pytest

from gatelift_sandbox import children
from gatelift_sandbox.embedded.cluster import EmbeddedCluster
from gatelift_sandbox.embedded.provider import KUBELET, SERVER, EmbeddedProvider
from gatelift_sandbox.errors import AlreadyThereError, SandboxError, UnknownClusterError
from gatelift_sandbox.provider import ApiServerAction, NodeShape, ProviderSettings, load
from gatelift_sandbox.state import SandboxState
from support.servers.contract_api import Api, config

CONFIGS = "/api/v1/namespaces/default/configmaps"
TURNS = 20
"""Turns of the event loop after which a local connection has been taken."""
ANSWER_SECONDS = 30.0


def provider(home: Path, nodes: int = 0) -> EmbeddedProvider:
    made = load("embedded", ProviderSettings(home=home, kubeconfigs=home / "kubeconfigs", nodes=NodeShape(count=nodes)))
    assert isinstance(made, EmbeddedProvider)
    return made


async def test_a_cluster_comes_with_nodes_and_goes_without_a_trace(tmp_path: Path) -> None:
    clusters = provider(tmp_path, nodes=2)
    (cluster,) = await clusters.up(["one"])
    entry = SandboxState(tmp_path).entry("one")
    assert entry is not None
    assert stat.S_IMODE(cluster.kubeconfig.stat().st_mode) == 0o600
    async with Api.open(await asyncio.to_thread(cluster.kubeconfig.read_text)) as api:
        nodes = (await api.get("/api/v1/nodes")).ok()["items"]
        assert [node["metadata"]["name"] for node in nodes] == ["one-node-0", "one-node-1"]
    assert [each.name for each in await clusters.running()] == ["one"]
    assert set(clusters.memory_bytes("one")) == {SERVER, KUBELET}
    with pytest.raises(AlreadyThereError):
        await clusters.up(["one"])
    assert await clusters.down() == ["one"]
    assert not cluster.kubeconfig.exists()
    assert not any(map(children.alive, entry.children.values()))
    assert await clusters.running() == []


async def test_a_stopped_api_server_comes_back_with_its_objects(tmp_path: Path) -> None:
    clusters = provider(tmp_path)
    (cluster,) = await clusters.up(["one"])
    try:
        async with Api.open(await asyncio.to_thread(cluster.kubeconfig.read_text)) as api:
            await api.post(CONFIGS, config("a"))
            for down, up in (
                (ApiServerAction.STOP, ApiServerAction.START),
                (ApiServerAction.KILL, ApiServerAction.START),
                (ApiServerAction.PAUSE, ApiServerAction.RESUME),
            ):
                await clusters.api_server("one", down)
                await clusters.api_server("one", up)
                assert (await api.get(f"{CONFIGS}/a")).code == 200
    finally:
        await clusters.down()


async def test_a_cluster_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnknownClusterError, match="no cluster two of provider embedded"):
        await provider(tmp_path).api_server("two", ApiServerAction.STOP)


async def test_a_name_that_is_no_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match="cluster name 'Two_'"):
        await provider(tmp_path).up(["Two_"])


async def test_who_is_still_shaking_hands_when_the_api_server_stops_is_not_served_afterwards() -> None:
    cluster = EmbeddedCluster("stops")
    await cluster.start()
    try:
        host, port = cluster.server.removeprefix("https://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        for _ in range(TURNS):  # the server takes the connection; its handshake waits for the client
            await asyncio.sleep(0)
        await cluster.suspend()
        with contextlib.suppress(ConnectionError, ssl.SSLError, EOFError):
            await writer.start_tls(ssl.create_default_context(cadata=cluster.authority.pem.decode()))
            writer.write(b"GET /readyz HTTP/1.1\r\nHost: one\r\n\r\n")
            async with asyncio.timeout(ANSWER_SECONDS):
                assert b" 200 " not in await reader.read()
        writer.close()
        async with Api.open(cluster.kubeconfig()) as api:
            await cluster.resume()
            assert (await api.get("/readyz")).code == 200
    finally:
        await cluster.stop()
