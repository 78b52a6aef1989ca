"""A tenant who makes and deletes pods without end in one namespace, with no more rights than to edit there.

`python -m bench.hostile_tenant KUBECONFIG TOLD`: prints `ready`, goes on until its standard
input ends, and keeps what it has made and deleted in the file `TOLD` (as `hostile_worker` does: a pod is a frame).
"""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
from pathlib import Path

from bench.hostile_worker import Told, keep
from bench.loader import manifest, mutated
from gatelift_kube.api.client import Client
from gatelift_kube.api.config import from_kubeconfig
from gatelift_kube.process.tasks import spawn
from gatelift_kube.values.resources import POD, ObjectKey, ObjectRef

EVIL = "evil"
HANDS = 8
"""So many pods are made, and then deleted, at a time: it is he who waits for the API server."""
PODS_PER_SECOND = 30.0
"""At most: more than the manager may make writes there. What he has left over is cleaned up before the next round."""


async def makes_and_deletes(client: Client, path: Path) -> None:
    """Make a pod and delete it, and the next one, without an end."""
    told, numbers = Told(), itertools.count()
    keep(path, told)

    async def hand() -> None:
        while True:
            document = mutated(manifest(f"churn-{next(numbers):07}"))
            document["metadata"]["namespace"] = EVIL
            body = json.dumps(document).encode()
            made = await client.create(POD, EVIL, body)
            name = json.loads(made.raw)["metadata"]["name"]
            await client.delete(ObjectRef(POD, ObjectKey(EVIL, name)))
            told.frames += 1
            told.size += len(body)
            keep(path, told)
            await asyncio.sleep(HANDS / PODS_PER_SECOND)

    await asyncio.gather(*(spawn(f"hand {number}", hand()) for number in range(HANDS)))


async def serve(kubeconfig: str, path: Path) -> None:
    """Do so until standard input ends. Few writes are what he competes for: he takes little CPU."""
    async with Client.connect(await from_kubeconfig(kubeconfig), user_agent="hostile-tenant") as client:
        churning = spawn("churn", makes_and_deletes(client, path))
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.read)
        churning.cancel()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], Path(sys.argv[2])))
