"""One embedded cluster: store, stand-in controllers, webhooks, TLS and HTTP, put together. Started and stopped."""

from __future__ import annotations

import asyncio
import secrets
import ssl
import tempfile
import uuid
from pathlib import Path

from gatelift_kube.process import clock
from gatelift_kube.process.tasks import spawn
from gatelift_sandbox import pki
from gatelift_sandbox.controllers.loop import ControllerLoop, all_controllers
from gatelift_sandbox.embedded.audit import AuditLog
from gatelift_sandbox.embedded.http import HttpServer
from gatelift_sandbox.embedded.identity import Tokens
from gatelift_sandbox.embedded.pipeline import Pipeline
from gatelift_sandbox.embedded.rbac import MASTERS
from gatelift_sandbox.embedded.seeding import RandomIdentities, seed
from gatelift_sandbox.embedded.store import Store
from gatelift_sandbox.embedded.webhooks import Webhooks
from gatelift_sandbox.faults import FaultPlan

STOP_SECONDS_MAX = 5.0
"""Controllers wait for webhooks at most; cancelled, they end at once."""
ADMIN = "gatelift-sandbox-admin"


class EmbeddedCluster:
    """A running embedded cluster; `start` it inside an event loop and `stop` it in the same."""

    def __init__(self, name: str, *, identities: RandomIdentities | None = None, audit_log: Path | None = None) -> None:
        self.name = name
        self._audit = AuditLog(audit_log)
        self.faults = FaultPlan()
        self.store = Store(identities or RandomIdentities())
        self.authority = pki.Authority(f"{name} sandbox CA")
        self.server = ""
        self._http: HttpServer | None = None
        self._webhooks = Webhooks(self.store, lambda: str(uuid.uuid4()))
        self._tokens = Tokens(secrets.token_bytes(32))
        seed(self.store, clock.wall())

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> None:
        """Serve; `server` is the URL from now on. OSError where the port is taken."""
        self._tls_settings = self._tls(host)
        self.pipeline = Pipeline(self.store, self._webhooks, clock.wall)
        controllers = all_controllers(self.authority.pem.decode())
        self._loop = ControllerLoop(self.pipeline, controllers, clock.wall)
        self._place = (host, port)
        await self.resume()
        self.server = f"https://{self._place[0]}:{self._place[1]}"

    async def resume(self) -> None:
        """Serve again at the same address, with the same objects; nothing happens while it serves."""
        if self._http is not None:
            return
        self._http = HttpServer(self.pipeline, self._tokens, self.faults, self._audit)
        host, port = self._place
        self._place = (host, await self._http.start(host, port, self._tls_settings))
        self._controllers = spawn(f"controllers of {self.name}", self._loop.run())

    async def suspend(self) -> None:
        """Stop serving and controlling, as if the API server had ended; the objects stay."""
        if self._http is None:
            return
        self._controllers.cancel()
        await asyncio.wait([self._controllers], timeout=STOP_SECONDS_MAX)
        http, self._http = self._http, None
        await http.stop()

    async def stop(self) -> None:
        """End all connections and controllers."""
        await self.suspend()
        await self._webhooks.close()
        self._audit.close()

    def kubeconfig(self, user: str = ADMIN, *groups: str) -> str:
        """Return a kubeconfig of a user; without groups that of an administrator."""
        client = self.authority.client(user, *(groups or (MASTERS,)))
        return pki.kubeconfig(name=self.name, server=self.server, authority=self.authority.pem, client=client)

    def _tls(self, host: str) -> ssl.SSLContext:
        signed = self.authority.server("kube-apiserver", host, "127.0.0.1", "localhost", "kubernetes.default.svc")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.verify_mode = ssl.CERT_OPTIONAL
        context.load_verify_locations(cadata=self.authority.pem.decode())
        with tempfile.TemporaryDirectory(prefix="gatelift-embedded-") as folder:  # ssl reads keys from files only
            certificate, key = Path(folder, "crt"), Path(folder, "key")
            certificate.write_bytes(signed.certificate)
            key.write_bytes(signed.key)
            context.load_cert_chain(certificate, key)
        return context
