"""The webhooks daemon against a fake API server, asked over real TLS."""

from __future__ import annotations

import base64
import io
import json
import ssl
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from gatelift.webhooks.app import Daemon, WebhookSettings
from gatelift.webhooks.configuration import MUTATING, NAME, SECRET_NAME, VALIDATING
from gatelift_kube.api.client import Client
from gatelift_kube.objects.meta import LabelSelector, LabelSelectorRequirement
from gatelift_kube.values.resources import ADMISSION_CHECK, CLUSTER_QUEUE, LOCAL_QUEUE, NAMESPACE, SECRET
from support.servers.fake_apiserver import FakeApiServer
from support.until import until

Json = dict[str, Any]
NOT_SYSTEM = LabelSelectorRequirement(
    key="kubernetes.io/metadata.name", operator="NotIn", values=("kube-system", "gatelift-system")
)
SETTINGS = WebhookSettings(
    host="127.0.0.1",
    port=0,
    url="https://127.0.0.1:1",
    names=("127.0.0.1",),
    namespace_selector=LabelSelector(match_expressions=(NOT_SYSTEM,)),
)
NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Asking:
    """Sends reviews as the API server does, trusting only the bundle of the daemon's Secret."""

    def __init__(self, server: FakeApiServer, daemon: Daemon) -> None:
        self._server = server
        self._daemon = daemon

    def trust(self, certificate: Path | None = None) -> ssl.SSLContext:
        """`certificate` is a file with key and certificate to show."""
        secret = self._server.find(SECRET, SECRET_NAME, "gatelift-system")
        assert secret is not None
        context = ssl.create_default_context(cadata=base64.b64decode(secret["data"]["ca.crt"]).decode())
        if certificate is not None:
            context.load_cert_chain(certificate)
        return context

    async def post(self, path: str, body: bytes, certificate: Path | None = None) -> tuple[int, str]:
        url = f"https://127.0.0.1:{self._daemon.port}{path}"
        connector = aiohttp.TCPConnector(ssl=self.trust(certificate), force_close=True)
        async with (
            aiohttp.ClientSession(connector=connector) as session,
            session.post(url, data=io.BytesIO(body)) as answer,
        ):
            return answer.status, await answer.text()

    async def review(
        self, path: str, kind: str, new: Json, old: Json | None = None, *, group: str = "", **request: Any
    ) -> Json:
        operation = "CREATE" if old is None else "UPDATE"
        body = {
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "request": {
                "uid": "u",
                "operation": operation,
                "kind": {"kind": kind, "group": group},
                "namespace": "team",
                "object": new,
                "oldObject": old,
                **request,
            },
        }
        status, text = await self.post(path, json.dumps(body).encode())
        assert status == 200, text
        response: Json = json.loads(text)["response"]
        assert response["uid"] == "u"
        return response


@pytest.fixture
async def server() -> AsyncIterator[FakeApiServer]:
    made = FakeApiServer()
    await made.start()
    made.put(NAMESPACE, "team")
    made.put(MUTATING, NAME, webhooks=[])
    made.put(VALIDATING, NAME, webhooks=[])
    made.put(
        ADMISSION_CHECK,
        "mk",
        spec={"controllerName": "kueue.x-k8s.io/multikueue"},
    )
    elsewhere = {"admissionChecksStrategy": {"admissionChecks": [{"name": "mk"}]}}
    made.put(CLUSTER_QUEUE, "far", spec=elsewhere)
    made.put(CLUSTER_QUEUE, "near", spec={})
    made.put(LOCAL_QUEUE, "far", "team", spec={"clusterQueue": "far"})
    made.put(LOCAL_QUEUE, "near", "team", spec={"clusterQueue": "near"})
    yield made
    await made.stop()


@pytest.fixture
async def daemon(client: Client) -> AsyncIterator[Daemon]:
    made = Daemon(client, SETTINGS)
    await made.start()
    await until(lambda: not made.missing(), "the daemon is ready")
    yield made
    await made.stop()


@pytest.fixture
def asking(server: FakeApiServer, daemon: Daemon) -> Asking:
    return Asking(server, daemon)
