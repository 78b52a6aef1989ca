"""The command line in this process, against a fake API server that runs in a thread of its own."""

from __future__ import annotations

import asyncio
import datetime as dt
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from typer.testing import CliRunner

from gatelift.cli.main import app
from gatelift_kube.values.resources import LEASE, LOCAL_QUEUE, WORKLOAD
from gatelift_kube.values.timestamps import to_text
from support.servers.fake_apiserver import FakeApiServer

SECONDS = 60.0
"""Starting and stopping a server takes milliseconds, on a machine that has them."""


@dataclass(frozen=True)
class Said:
    """What a verb printed, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def line(self) -> str:
        """The one line on standard error."""
        (only,) = self.err.splitlines()
        return only


@dataclass(frozen=True)
class Stage:
    """A server, and a kubeconfig that names it."""

    server: FakeApiServer
    kubeconfig: Path

    def run(self, *arguments: str) -> Said:
        """Run a verb as its user does."""
        return say("--kubeconfig", str(self.kubeconfig), *arguments)

    def workload(self, name: str, *, status: dict[str, Any] | None = None, **metadata: Any) -> None:
        """Put a Workload of a pod of this name into namespace `team`."""
        owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": f"uid-of-{name}", "controller": True}
        metadata = {"ownerReferences": [owner], "creationTimestamp": "2026-01-01T00:00:00Z", **metadata}
        self.server.put(
            WORKLOAD, f"pod-{name}", "team", metadata=metadata, spec={"queueName": "main"}, status=status or {}
        )

    def local_queue(self, name: str, message: str) -> None:
        """Put an inactive LocalQueue into namespace `team`."""
        condition = {"type": "Active", "status": "False", "reason": "Missing", "message": message}
        status = {"conditions": [condition], "pendingWorkloads": 2}
        self.server.put(LOCAL_QUEUE, name, "team", spec={"clusterQueue": "all"}, status=status)


def leads(server: FakeApiServer, renewed: dt.datetime) -> None:
    """Put the manager's Lease there, renewed at a moment for an hour."""
    spec = {"holderIdentity": "manager-1", "leaseDurationSeconds": 3600, "renewTime": to_text(renewed.timestamp())}
    server.put(LEASE, "gatelift-manager", "gatelift-system", spec=spec)


def say(*arguments: str) -> Said:
    """Run the command line with these arguments."""
    result = CliRunner(env={"COLUMNS": "200", "PROVIDER": None}).invoke(app, arguments)
    return Said(result.exit_code, result.stdout, result.stderr)


@contextmanager
def staged(folder: Path) -> Iterator[Stage]:
    """Serve in a thread until the block ends."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="fake API server")
    thread.start()
    server = asyncio.run_coroutine_threadsafe(_started(), loop).result(SECONDS)
    try:
        yield Stage(server, _kubeconfig(folder, server.url))
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result(SECONDS)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(SECONDS)
        loop.close()


async def _started() -> FakeApiServer:
    server = FakeApiServer()
    await server.start()
    leads(server, dt.datetime.now(dt.UTC))
    return server


def _kubeconfig(folder: Path, url: str) -> Path:
    path = folder / "kubeconfig.yaml"
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "here", "cluster": {"server": url}}],
        "users": [{"name": "me", "user": {"token": "t"}}],
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
        "current-context": "here",
    }
    path.write_text(yaml.safe_dump(document))
    return path


def condition(type_: str, status: str, reason: str, message: str = "", at: str = "2026-01-01T00:00:01Z") -> Any:
    """Return a condition as the API has it."""
    return {"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": at}


def admitted(cluster: str, epoch: int = 1) -> dict[str, Any]:
    """Return the status of a workload that is placed on a worker cluster."""
    assignment = {"name": "main", "flavors": {"cpu": "fast"}, "resourceUsage": {"cpu": "2"}, "count": 2}
    marks = {"gatelift.dev/term": "3", "gatelift.dev/epoch": str(epoch), "gatelift.dev/disconnect": "wait"}
    update = {"name": "main", "annotations": marks}
    return {
        "conditions": [
            condition("QuotaReserved", "True", "QuotaReserved", "Quota reserved in ClusterQueue all"),
            condition("Admitted", "True", "Admitted", "The workload is admitted", "2026-01-01T00:00:02Z"),
        ],
        "admission": {"clusterQueue": "all", "podSetAssignments": [assignment]},
        "admissionChecks": [{"name": "mk", "state": "Ready", "message": "on it", "podSetUpdates": [update]}],
        "clusterName": cluster,
    }
