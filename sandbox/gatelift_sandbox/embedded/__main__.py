"""One embedded cluster as a process: `python -m gatelift_sandbox.embedded --name NAME --kubeconfig FILE`.

Writes the admin kubeconfig when it serves. SIGTERM ends it; SIGUSR1 takes the API server down (data and address stay),
SIGUSR2 brings it back. The provider `embedded` starts and signals it.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from pathlib import Path

import uvloop

from gatelift_kube.process import collector
from gatelift_kube.process.tasks import spawn
from gatelift_sandbox import pki
from gatelift_sandbox.embedded.cluster import EmbeddedCluster


def main() -> int:
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser(prog="python -m gatelift_sandbox.embedded", description=__doc__)
    parser.add_argument("--name", default="sandbox")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0: any free one")
    parser.add_argument("--kubeconfig", type=Path, required=True, help="where to write the admin's kubeconfig")
    parser.add_argument("--audit-log", type=Path, help="where to write a line for each request")
    given = parser.parse_args()
    collector.tune()  # decoded documents are many and short-lived
    try:
        uvloop.run(_serve(given))
    except OSError as failure:
        sys.stderr.write(f"embedded cluster {given.name}: cannot serve: {failure}\n")
        return 1
    return 0


async def _serve(given: argparse.Namespace) -> None:
    cluster = EmbeddedCluster(given.name, audit_log=given.audit_log)
    await cluster.start(given.host, given.port)
    pki.write_private(given.kubeconfig, cluster.kubeconfig())
    ended = asyncio.Event()
    wanted: asyncio.Queue[bool] = asyncio.Queue(maxsize=SWITCHES_MAX)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    loop.add_signal_handler(signal.SIGUSR1, _ask, wanted, False)
    loop.add_signal_handler(signal.SIGUSR2, _ask, wanted, True)
    switching = spawn("API server switch", _switch(cluster, wanted))
    try:
        await ended.wait()
    finally:
        switching.cancel()
        await cluster.stop()


SWITCHES_MAX = 16
"""Signals waiting to be obeyed; whoever sends more than that does not wait for an answer."""


def _ask(wanted: asyncio.Queue[bool], up: bool) -> None:
    if not wanted.full():
        wanted.put_nowait(up)


async def _switch(cluster: EmbeddedCluster, wanted: asyncio.Queue[bool]) -> None:
    while True:
        if await wanted.get():
            await cluster.resume()
        else:
            await cluster.suspend()


if __name__ == "__main__":
    sys.exit(main())
