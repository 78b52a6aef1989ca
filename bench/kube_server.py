"""An API server that answers at once from prebuilt bytes, for `bench.kube`: pages of pods, one watch, patches.

It runs in a process of its own and does no work per request, so that what is measured is the client.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any
from urllib.parse import parse_qs, urlsplit

import uvloop

PAGE = 500
WATCH_BLOCK = 200
"""Events written at a time; each is an HTTP chunk of its own, as a real API server sends them."""


def managed_fields() -> list[dict[str, Any]]:
    """Return what three writers leave behind on a pod."""
    return [
        {
            "manager": manager,
            "operation": "Update",
            "apiVersion": "v1",
            "time": "2026-11-21T04:15:00Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:metadata": {"f:labels": {".": {}, **{f"f:label-{n}": {} for n in range(8)}}},
                "f:spec": {f"f:field{n}": {".": {}, "f:value": {}} for n in range(12)},
            },
        }
        for manager in ("kube-controller-manager", "gatelift", "kubelet")
    ]


def pod(number: int) -> dict[str, Any]:
    """Return a pod as a real API server serves it: about 5 KB, a third of it managedFields."""
    name = f"job-{number // 10:05d}-{number % 10}-x{number * 7919 % 99991:05d}"
    container = {
        "name": "main",
        "image": "registry.example.com/team/trainer:1.2.3",
        "command": ["python", "-m", "trainer", f"--shard={number}"],
        "env": [{"name": f"SETTING_{n}", "value": f"value {n} of {name}"} for n in range(10)],
        "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}},
        "volumeMounts": [{"name": "token", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}],
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
    }
    conditions = [
        {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": "2026-11-21T04:15:00Z"}
        for kind in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    ]
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "name": name,
            "generateName": name[:-6],
            "namespace": f"team-{number % 20}",
            "uid": f"00000000-0000-4000-8000-{number:012d}",
            "resourceVersion": str(1000 + number),
            "generation": 1,
            "creationTimestamp": "2026-11-21T04:15:00Z",
            "labels": {f"label-{n}": f"value-{n}-{number % 50}" for n in range(8)},
            "annotations": {"gatelift.dev/epoch": "1", "example.com/note": "n" * 200},
            "ownerReferences": [
                {
                    "apiVersion": "batch/v1",
                    "kind": "Job",
                    "name": name[:-8],
                    "uid": f"00000000-0000-4000-9000-{number // 10:012d}",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
            "managedFields": managed_fields(),
        },
        "spec": {
            "containers": [container],
            "volumes": [{"name": "token", "projected": {"sources": [], "defaultMode": 420}}],
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "serviceAccountName": "default",
            "nodeName": f"node-{number % 100}",
            "schedulerName": "default-scheduler",
            "tolerations": [
                {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"},
                {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"},
            ],
            "priority": 0,
            "enableServiceLinks": True,
        },
        "status": {
            "phase": "Running",
            "conditions": conditions,
            "hostIP": "10.0.0.1",
            "podIP": f"10.1.{number // 250 % 250}.{number % 250}",
            "startTime": "2026-11-21T04:15:00Z",
            "qosClass": "Burstable",
        },
    }


def encoded(value: object) -> bytes:
    """Return compact JSON, as a real API server writes it."""
    return json.dumps(value, separators=(",", ":")).encode()


class PrebuiltServer:
    """Pages, watch and answers, all made before the first request."""

    def __init__(self, pods: int, events: int) -> None:
        bodies = [encoded(pod(number)) for number in range(pods)]
        self.pod_bytes = sum(map(len, bodies)) // len(bodies)
        self._pages = [self._page(bodies, start, pods) for start in range(0, pods, PAGE)]
        self._patched = _answer(bodies[0])
        lines = [b'{"type":"MODIFIED","object":' + encoded(_later(pod(n % pods), n)) + b"}\n" for n in range(events)]
        chunks = [b"%x\r\n%s\r\n" % (len(line), line) for line in lines]
        self._blocks = [b"".join(chunks[start : start + WATCH_BLOCK]) for start in range(0, events, WATCH_BLOCK)]

    def _page(self, bodies: list[bytes], start: int, pods: int) -> bytes:
        more = start + PAGE < pods
        metadata = {"resourceVersion": "900000", **({"continue": str(start + PAGE)} if more else {})}
        items = b",".join(bodies[start : start + PAGE])
        return _answer(
            b'{"kind":"PodList","apiVersion":"v1","metadata":' + encoded(metadata) + b',"items":[' + items + b"]}"
        )

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection until it is closed."""
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                line, *headers = head.split(b"\r\n")
                length = next((int(h.split(b":")[1]) for h in headers if h.lower().startswith(b"content-length:")), 0)
                if length:
                    await reader.readexactly(length)
                method, target, _ = line.split(b" ", 2)
                await self._answer_to(method, target.decode(), writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def _answer_to(self, method: bytes, target: str, writer: asyncio.StreamWriter) -> None:
        query = parse_qs(urlsplit(target).query)
        if method == b"PATCH":
            writer.write(self._patched)
        elif "watch" in query:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
            for block in self._blocks:
                writer.write(block)
                await writer.drain()
            writer.write(b"0\r\n\r\n")
        else:
            writer.write(self._pages[int(query.get("continue", ["0"])[0]) // PAGE])
        await writer.drain()


def _later(changed: dict[str, Any], number: int) -> dict[str, Any]:
    changed["metadata"]["resourceVersion"] = str(1_000_000 + number)
    return changed


def _answer(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


async def main() -> None:
    """Serve on a free port, print it, and end when standard input closes."""
    made = PrebuiltServer(int(sys.argv[1]), int(sys.argv[2]))
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    print(json.dumps({"port": server.sockets[0].getsockname()[1], "pod_bytes": made.pod_bytes}), flush=True)
    await asyncio.to_thread(sys.stdin.read)
    server.close()


if __name__ == "__main__":
    uvloop.run(main())
