"""The agent's webhook for what drivers make at its worker: asked over TLS, as an API server asks it."""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import aiohttp
import pytest

from gatelift_agent.adapters import members_gate
from gatelift_agent.adapters.kubernetes import WorkerApi
from gatelift_agent.adapters.members_gate import CONFIGURATION, NAME, GateSettings, MembersGate
from gatelift_kube.api.client import Client
from gatelift_kube.deciding.budget import budget
from gatelift_kube.deciding.writes import ObjectGone, ObjectSeen
from gatelift_kube.process.clock import monotonic
from gatelift_kube.process.tasks import Supervisor, spawn
from gatelift_kube.values.resources import POD, SECRET
from support.servers.fake_apiserver import FakeApiServer
from support.until import until

Json = dict[str, Any]
SETTINGS = GateSettings(
    namespace="gatelift-system", address="127.0.0.1:0", url="https://127.0.0.1:1", names=("127.0.0.1",)
)
NOW = datetime(2026, 1, 1, tzinfo=UTC)
NAMED = {"kueue.x-k8s.io/pod-group-name": "crew", "kueue.x-k8s.io/pod-group-role": "workers"}


@pytest.fixture
async def gate(client: Client) -> AsyncIterator[MembersGate]:
    made = MembersGate(client, SETTINGS)
    await made.start()
    keeps = spawn("gate", made.run())
    yield made
    keeps.cancel()
    await made.stop()


async def asked(server: FakeApiServer, gate: MembersGate, body: bytes) -> tuple[int, str]:
    """Ask as an API server does, which trusts the bundle of the configuration alone."""
    secret = server.find(SECRET, NAME, "gatelift-system")
    assert secret is not None
    trust = ssl.create_default_context(cadata=base64.b64decode(secret["data"]["ca.crt"]).decode())
    url = f"https://127.0.0.1:{gate.port}{members_gate.PATH}"
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trust, force_close=True)) as session,
        session.post(url, data=body) as answer,
    ):
        return answer.status, await answer.text()


def a_review(labels: Json) -> bytes:
    pod = {"metadata": {"name": "w", "labels": labels}, "spec": {"containers": []}}
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "u", "object": pod}}
    return json.dumps(review).encode()


async def test_dw_6_a_pod_that_names_a_group_and_a_role_is_let_in_with_its_gate(
    server: FakeApiServer, gate: MembersGate
) -> None:
    status, text = await asked(server, gate, a_review(NAMED))
    response = json.loads(text)["response"]
    patch = json.loads(base64.b64decode(response["patch"]))
    assert (status, response["allowed"], response["uid"]) == (200, True, "u")
    assert [each["path"] for each in patch] == ["/metadata/labels/gatelift.dev~1made-here", "/spec/schedulingGates"]


async def test_any_other_pod_is_let_in_as_it_is(server: FakeApiServer, gate: MembersGate) -> None:
    _, text = await asked(server, gate, a_review({"app": "web"}))
    assert json.loads(text)["response"] == {"uid": "u", "allowed": True}


@pytest.mark.parametrize("body", [b"", b"{}", b"[1]", b'{"apiVersion":"v1","kind":"Pod","request":{"uid":"u"}}'])
async def test_what_is_no_review_is_refused(server: FakeApiServer, gate: MembersGate, body: bytes) -> None:
    status, _ = await asked(server, gate, body)
    assert status == 400


async def test_the_configuration_gets_what_the_api_server_is_to_trust(server: FakeApiServer, client: Client) -> None:
    """HD-380: who comes while nobody answers is not let in."""
    server.put(CONFIGURATION, NAME, webhooks=[])
    gate = MembersGate(client, SETTINGS)
    await gate.start()
    keeps = spawn("gate", gate.run())
    await until(lambda: not gate.problem, "the configuration is written")
    found = server.find(CONFIGURATION, NAME)
    secret = server.find(SECRET, NAME, "gatelift-system")
    assert found is not None
    assert secret is not None
    (webhook,) = found["webhooks"]
    assert webhook["clientConfig"] == {"url": "https://127.0.0.1:1/members", "caBundle": secret["data"]["ca.crt"]}
    assert webhook["failurePolicy"] == "Fail"
    keeps.cancel()
    await gate.stop()


async def test_where_nothing_asks_it_that_is_told(server: FakeApiServer, gate: MembersGate) -> None:
    await until(lambda: "nothing asks the gate" in gate.problem, "it is told")


async def test_the_api_shows_newcomers_and_leaves_the_others_to_the_watch_of_our_label(
    server: FakeApiServer, client: Client
) -> None:
    """What bears our label is called gone by one watch alone: the other one loses it as it is taken in.

    The look for what is hidden may show a newcomer once more, and never before the watch that says that it went.
    """
    server.selects_labels = True
    heard: list[Any] = []
    supervisor = Supervisor(lambda _name, _error: None)
    api = WorkerApi(
        client,
        heard.append,
        supervisor,
        own_namespace="gatelift-system",
        limits=budget(),
        clock=monotonic,
        instance="i",
        adopts=True,
    )
    mark = {"gatelift.dev/made-here": "crew"}
    server.put(POD, "new", "team", metadata={"labels": mark})
    server.put(POD, "taken", "team", metadata={"labels": {**mark, "gatelift.dev/origin": "o"}})
    api.watch_namespaces(["team"])
    await until(lambda: sorted(set(_names(heard, ObjectSeen))) == ["new", "taken"], "both are shown")
    server.remove(POD, "taken", "team")
    server.remove(POD, "new", "team")
    await until(lambda: _names(heard, ObjectGone) == ["new", "taken"], "both are called gone, each once")
    api.stop_watching()
    await supervisor.stop()


def _names(heard: list[Any], word: type[Any]) -> list[str]:
    return sorted(each.object.metadata.name for each in heard if isinstance(each, word) and each.resource == POD)
