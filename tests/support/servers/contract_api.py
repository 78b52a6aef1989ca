"""A bare HTTP client for the contract suite: says exactly what it is told, and shows the answer as it came."""

from __future__ import annotations

import asyncio
import base64
import json
import secrets
import ssl
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import yaml

MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
CALL_SECONDS = 40.0
WAIT_SECONDS = 120.0
"""A real server takes up what was written within a second, a token out of its cache after 10 s, a namespace away after
6 s or 14 s; a machine that is wanted by many takes many times as long for all of it."""
POLL_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Said:
    """An answer: its code, its document, its warnings."""

    code: int
    body: Any
    warnings: list[str] = field(default_factory=list)
    content_type: str = ""

    @property
    def reason(self) -> str:
        """The reason of a refusal."""
        return str(self.body.get("reason", ""))

    @property
    def message(self) -> str:
        """The message of a refusal."""
        return str(self.body.get("message", ""))

    def ok(self) -> Any:
        """Return the document; AssertionError for a refusal."""
        assert self.code < 300, (self.code, self.body)
        return self.body


class Api:
    """One API server as one user."""

    def __init__(self, kubeconfig: str, session: aiohttp.ClientSession) -> None:
        document = yaml.safe_load(kubeconfig)
        self.kubeconfig = kubeconfig
        self.server = str(document["clusters"][0]["cluster"]["server"])
        self._session = session

    @classmethod
    @asynccontextmanager
    async def open(cls, kubeconfig: str, token: str = "") -> AsyncIterator[Api]:
        """Connect; with a `token` instead of the kubeconfig's certificate."""
        document = yaml.safe_load(kubeconfig)
        user = document["users"][0]["user"]
        authority = base64.b64decode(document["clusters"][0]["cluster"]["certificate-authority-data"]).decode()
        tls = ssl.create_default_context(cadata=authority)
        if not token:
            identify(tls, user)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        timeout = aiohttp.ClientTimeout(total=CALL_SECONDS)
        connector = aiohttp.TCPConnector(ssl=tls)
        async with aiohttp.ClientSession(connector=connector, headers=headers, timeout=timeout) as session:
            yield cls(kubeconfig, session)

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        media: str = "application/json",
        accept: str = "",
        **query: str,
    ) -> Said:
        """Send a request and return its answer."""
        headers = {"Content-Type": media} if body is not None else {}
        headers |= {"Accept": accept} if accept else {}
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        async with self._session.request(
            method, self.server + path, data=data, headers=headers, params=query
        ) as response:
            raw = await response.read()
            warnings = response.headers.getall("Warning", [])
            kind = response.headers.get("Content-Type", "")
            shown = json.loads(raw) if kind.startswith("application/json") and raw else raw.decode(errors="replace")
            return Said(response.status, shown, list(warnings), kind)

    async def get(self, path: str, **query: str) -> Said:
        """GET."""
        return await self.call("GET", path, **query)

    async def post(self, path: str, body: Any, **query: str) -> Said:
        """POST."""
        return await self.call("POST", path, body, **query)

    async def put(self, path: str, body: Any, **query: str) -> Said:
        """PUT."""
        return await self.call("PUT", path, body, **query)

    async def patch(self, path: str, body: Any, media: str = MERGE, **query: str) -> Said:
        """PATCH, a merge patch unless said otherwise."""
        return await self.call("PATCH", path, body, media=media, **query)

    async def delete(self, path: str, body: Any = None, **query: str) -> Said:
        """DELETE."""
        return await self.call("DELETE", path, body, **query)

    async def namespace(self, **labels: str) -> str:
        """Make a namespace in which pods can be created, furnished by its controllers; return its path."""
        name = f"contract-{secrets.token_hex(4)}"
        (await self.post("/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})).ok()
        for furniture in ("serviceaccounts/default", "configmaps/kube-root-ca.crt"):  # by two controllers
            await self.until(f"/api/v1/namespaces/{name}/{furniture}", lambda _: True)
        return f"/api/v1/namespaces/{name}"

    async def until(self, path: str, met: Callable[[Any], object], seconds: float = WAIT_SECONDS) -> Any:
        """Return the document at a path as soon as it satisfies `met`; AssertionError after `seconds`."""
        last: Any = None
        try:
            async with asyncio.timeout(seconds):
                while True:
                    said = await self.get(path)
                    last = said.body
                    if said.code == 200 and met(said.body):
                        return said.body
                    await asyncio.sleep(POLL_SECONDS)
        except TimeoutError:
            raise AssertionError(f"{path} did not become so: {json.dumps(last)[:2000]}") from None

    async def until_gone(self, path: str, seconds: float = WAIT_SECONDS) -> None:
        """Return as soon as nothing is at a path any more."""
        await until_said(lambda: self.get(path), lambda said: said.code == 404, f"{path} is gone", seconds)

    @asynccontextmanager
    async def watch(self, path: str, accept: str = "", **query: str) -> AsyncIterator[Callable[[], Any]]:
        """Watch a path; what it yields returns the next event (AssertionError if none comes)."""
        headers = {"Accept": accept} if accept else {}
        params = {"watch": "true", **query}
        async with self._session.get(self.server + path, headers=headers, params=params) as response:
            assert response.status == 200, await response.text()

            async def following() -> Any:
                async with asyncio.timeout(WAIT_SECONDS):
                    line = await response.content.readline()
                return json.loads(line) if line else None

            connection = response.connection
            try:
                yield following
            finally:
                if connection is not None and connection.transport is not None:
                    connection.transport.abort()  # said politely, the end of TLS outlasts the test's event loop


async def until_said(
    ask: Callable[[], Awaitable[Said]], met: Callable[[Said], object], what: str, seconds: float = WAIT_SECONDS
) -> Said:
    """Ask until the answer is as wanted: a real server takes up rules, definitions, webhooks a little later."""
    said: Said | None = None
    try:
        async with asyncio.timeout(seconds):
            while True:
                said = await ask()
                if met(said):
                    return said
                await asyncio.sleep(POLL_SECONDS)
    except TimeoutError:
        raise AssertionError(f"not within {seconds:g} s: {what}; last answer: {said}") from None


def identify(tls: ssl.SSLContext, user: dict[str, Any]) -> None:
    """Load the client certificate of a kubeconfig's user; ssl reads keys from files only."""
    with tempfile.TemporaryDirectory() as folder:
        certificate, key = Path(folder, "crt"), Path(folder, "key")
        certificate.write_bytes(base64.b64decode(user["client-certificate-data"]))
        key.write_bytes(base64.b64decode(user["client-key-data"]))
        tls.load_cert_chain(certificate, key)


def pod(name: str, **spec: Any) -> dict[str, Any]:
    """Return a small pod."""
    containers = [{"name": "main", "image": "registry.example/app:1"}]
    return {"metadata": {"name": name}, "spec": {"containers": containers, **spec}}


def job(name: str, **spec: Any) -> dict[str, Any]:
    """Return a small Job."""
    template = {"spec": {**pod("")["spec"], "restartPolicy": "Never"}}
    return {"metadata": {"name": name}, "spec": {"template": template, **spec}}


def config(name: str, **data: str) -> dict[str, Any]:
    """Return a ConfigMap."""
    return {"metadata": {"name": name}, "data": data}


def condition(document: Any, kind: str) -> dict[str, Any]:
    """Return a condition of an object's status, empty where it has none."""
    conditions = document.get("status", {}).get("conditions") or []  # null in a definition that was just made
    found = (c for c in conditions if c["type"] == kind)
    return next(found, {})
