"""The stand-in kubelet as a process: `python -m gatelift_sandbox.kubelet --kubeconfig FILE --nodes 1 --cpu 8 ...`."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
import sys
from pathlib import Path

import uvloop

from gatelift_kube.api.client import Client
from gatelift_kube.api.config import from_kubeconfig
from gatelift_kube.deciding.errors import KubeError
from gatelift_kube.process.tasks import spawn
from gatelift_sandbox.kubelet import loop
from gatelift_sandbox.kubelet.documents import NodeSettings

NODES_MAX = 1000
"""More heartbeats than this keep a core busy by themselves."""


def main() -> int:
    """Play nodes until SIGTERM."""
    given = _arguments()
    nodes = given.nodes
    if not 1 <= nodes <= NODES_MAX:
        _say(f"--nodes {nodes}: must be from 1 to {NODES_MAX}")
        return 2
    capacity = {"cpu": given.cpu, "memory": given.memory, "pods": str(given.pods)}
    for extra in given.extended:
        name, _, amount = extra.partition("=")
        capacity[name] = amount
    settings = loop.KubeletSettings(
        cluster=given.cluster,
        nodes=[NodeSettings(name=f"{given.cluster}-node-{number}", capacity=capacity) for number in range(nodes)],
        record=given.record,
        say=_say,
    )
    try:
        uvloop.run(_until_told(given.kubeconfig, settings))
    except KubeError as failure:
        _say(str(failure))
        return 1
    return 0


async def _until_told(kubeconfig: Path, settings: loop.KubeletSettings) -> None:
    config = await from_kubeconfig(str(kubeconfig))
    async with Client.connect(config, user_agent="gatelift-sandbox-kubelet") as client:
        playing = spawn("kubelet", loop.run(client, settings))
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, playing.cancel)
        with contextlib.suppress(asyncio.CancelledError):
            await playing


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m gatelift_sandbox.kubelet", description=__doc__)
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--cluster", default="sandbox", help="name of the cluster: in the record and before node names")
    parser.add_argument("--nodes", type=int, default=1)
    parser.add_argument("--cpu", default="8")
    parser.add_argument("--memory", default="32Gi")
    parser.add_argument("--pods", type=int, default=110)
    parser.add_argument("--extended", action="append", default=[], metavar="NAME=AMOUNT", help="nvidia.com/gpu=4")
    parser.add_argument("--record", type=Path, help="file to which each run of a pod is appended")
    return parser.parse_args()


def _say(line: str) -> None:
    sys.stderr.write(f"kubelet: {line}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
