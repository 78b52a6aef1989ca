"""Asks an API server whether it is ready, as the user of a kubeconfig. Used by the providers while starting."""

from __future__ import annotations

import base64
import json
import ssl
import tempfile
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Self

import aiohttp
import yaml
from tenacity import stop_after_delay

from gatelift_kube.process.waiting import until
from gatelift_sandbox.errors import StartError

POLL_SECONDS = 0.05
"""An API server is up after two seconds: asking twenty times a second loses little and costs nothing."""
REQUEST_SECONDS_MAX = 5.0


class Probe:
    """One connection to an API server for yes-or-no questions; an async context manager."""

    def __init__(self, kubeconfig: Path) -> None:
        document = yaml.safe_load(kubeconfig.read_text())
        self._cluster: dict[str, Any] = document["clusters"][0]["cluster"]
        self._user: dict[str, Any] = document["users"][0]["user"]
        self._stack = AsyncExitStack()
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        headers = {"Authorization": f"Bearer {self._user['token']}"} if "token" in self._user else {}
        timeout = aiohttp.ClientTimeout(total=REQUEST_SECONDS_MAX)
        connector = aiohttp.TCPConnector(ssl=self._tls() if self._server.startswith("https:") else False)
        session = aiohttp.ClientSession(connector=connector, headers=headers, timeout=timeout, trust_env=False)
        self._session = await self._stack.enter_async_context(session)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def get(self, path: str) -> Any:
        """Return the decoded JSON at a path (text where it is not JSON), None if it cannot be had."""
        if self._session is None:
            raise RuntimeError("a Probe is an async context manager: enter it first")
        try:
            async with self._session.get(self._server + path) as response:
                body = await response.read()
        except (aiohttp.ClientError, TimeoutError, OSError):
            return None
        if not response.ok:
            return None
        try:
            return json.loads(body)
        except ValueError:
            return body.decode(errors="replace")

    async def wait(self, path: str, met: Callable[[Any], bool], seconds: float, failed: Callable[[], str]) -> None:
        """Wait until the answer at `path` satisfies `met`. `failed` may name a reason to give up at once, or ""."""

        async def satisfied() -> bool:
            answer = await self.get(path)
            if answer is not None and met(answer):
                return True
            if reason := failed():
                raise StartError(reason)
            return False

        if not await until(satisfied, POLL_SECONDS, stop_after_delay(seconds)):
            raise StartError(f"{self._server}{path} did not become ready in {seconds:.0f} s")

    @property
    def _server(self) -> str:
        return str(self._cluster["server"])

    def _tls(self) -> ssl.SSLContext:
        authority = base64.b64decode(self._cluster["certificate-authority-data"]).decode()
        context = ssl.create_default_context(cadata=authority)
        if "client-certificate-data" in self._user:
            with tempfile.TemporaryDirectory(prefix="gatelift-probe-") as folder:  # ssl reads keys from files only
                certificate, key = Path(folder, "crt"), Path(folder, "key")  # the folder is 0700
                certificate.write_bytes(base64.b64decode(self._user["client-certificate-data"]))
                key.write_bytes(base64.b64decode(self._user["client-key-data"]))
                context.load_cert_chain(certificate, key)
        return context
