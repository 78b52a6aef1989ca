"""The cases of `bench.kube`, each run in a process of its own: `python -m bench.kube_cases CASE URL AMOUNT`.

Prints one JSON object: seconds and CPU seconds of the work, or bytes kept.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import resource
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import uvloop

from gatelift_kube.api.client import Client
from gatelift_kube.api.config import ClusterConfig
from gatelift_kube.api.reflector import Reflector
from gatelift_kube.deciding.writes import ApiEvent, ObjectSeen
from gatelift_kube.process.tasks import spawn
from gatelift_kube.values.resources import POD, ObjectKey, ObjectRef

IN_FLIGHT = 64
PAGE = 500
BODY = b'{"metadata":{"labels":{"seen":"1"}}}'
PATCHED = ObjectRef(POD, ObjectKey("team-0", "job-00000-0-x00000"))


def measured(started: tuple[float, float]) -> dict[str, float]:
    """Return wall and CPU seconds since `started`."""
    return {"seconds": time.perf_counter() - started[0], "cpu": time.process_time() - started[1]}


def begin() -> tuple[float, float]:
    """Start the clocks."""
    return time.perf_counter(), time.process_time()


def rss_bytes() -> int:
    """Return the memory of this process that is in use now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


async def patches(count: int, one: Callable[[], Awaitable[object]]) -> dict[str, float]:
    """Run `one` so often, `IN_FLIGHT` at a time."""
    left = iter(range(count))

    async def worker() -> None:
        for _ in left:
            await one()

    await one()
    started = begin()
    await asyncio.gather(*(spawn(f"worker {n}", worker()) for n in range(IN_FLIGHT)))
    return measured(started)


async def our_list(url: str, amount: int) -> dict[str, float]:
    """List so many pods, typed."""
    async with Client.connect(ClusterConfig(server=url)) as client:
        read = 0
        await client.list_page(POD)
        started = begin()
        async with aclosing(client.list(POD)) as pages:
            async for page in pages:
                read += len(page.items)
                if read >= amount:
                    break
        return measured(started)


async def _our_watch(url: str, amount: int, *, with_raw: bool) -> dict[str, float]:
    """Follow so many changes through a reflector: decode, compare, keep, tell."""
    seen = 0
    watch_from: tuple[float, float] | None = None
    done: asyncio.Future[dict[str, float]] = asyncio.get_running_loop().create_future()

    def emit(event: ApiEvent) -> None:
        nonlocal seen, watch_from
        if not isinstance(event, ObjectSeen):
            watch_from = begin()  # synced: all that follows comes from the watch
        elif watch_from is not None:
            seen += 1
            if seen == amount and not done.done():
                done.set_result(measured(watch_from))

    async with Client.connect(ClusterConfig(server=url)) as client:
        task = spawn("reflector", Reflector(client, POD, emit, with_raw=with_raw).run())
        try:
            return await done
        finally:
            task.cancel()
            await asyncio.wait([task])


async def our_watch(url: str, amount: int) -> dict[str, float]:
    """Watch, typed objects only."""
    return await _our_watch(url, amount, with_raw=False)


async def our_watch_json(url: str, amount: int) -> dict[str, float]:
    """Watch, with each object's JSON less managedFields."""
    return await _our_watch(url, amount, with_raw=True)


async def our_patch(url: str, amount: int) -> dict[str, float]:
    """Patch, the answer typed."""
    async with Client.connect(ClusterConfig(server=url)) as client:
        return await patches(amount, lambda: client.patch(PATCHED, BODY))


async def our_memory(url: str, _amount: int) -> dict[str, float]:
    """Keep all pods in the cache of a reflector."""
    async with Client.connect(ClusterConfig(server=url)) as client:
        await client.list_page(POD, limit=1)
        gc.collect()
        before = rss_bytes()
        reflector = Reflector(client, POD, lambda _event: None)
        task = spawn("reflector", reflector.run())
        await reflector.synced.wait()
        task.cancel()
        await asyncio.wait([task])
        gc.collect()
        return {"bytes": rss_bytes() - before, "objects": len(reflector.cache)}


def _official(url: str) -> tuple[Any, Any]:
    from kubernetes.aio import client  # noqa: PLC0415 - its import is not part of our cases

    configuration = client.Configuration(host=url)
    api = client.ApiClient(configuration)
    return api, client.CoreV1Api(api)


async def official_list(url: str, amount: int) -> dict[str, float]:
    """List so many pods as models, in pages of the same size."""
    api, core = _official(url)
    async with api:
        page = await core.list_pod_for_all_namespaces(limit=PAGE)
        read, after = 0, ""
        started = begin()
        while read < amount:
            page = await core.list_pod_for_all_namespaces(limit=PAGE, _continue=after or None)
            read, after = read + len(page.items), page.metadata._continue  # noqa: SLF001 - the package's public name
        return measured(started)


async def official_watch(url: str, amount: int) -> dict[str, float]:
    """Watch as models, by the package's own Watch."""
    from kubernetes.aio import watch  # noqa: PLC0415 - its import is not part of our cases

    api, core = _official(url)
    async with api:
        seen = 0
        started = begin()
        async with watch.Watch() as following:  # type: ignore[no-untyped-call] # the package ships no types for it
            async for _ in following.stream(core.list_pod_for_all_namespaces, resource_version="1"):
                seen += 1
                if seen >= amount:
                    break
        return measured(started)


async def official_patch(url: str, amount: int) -> dict[str, float]:
    """Patch, the answer as a model."""
    api, core = _official(url)
    name, namespace, body = PATCHED.key.name, PATCHED.key.namespace, json.loads(BODY)
    async with api:
        return await patches(
            amount,
            lambda: core.patch_namespaced_pod(name, namespace, body, _content_type="application/merge-patch+json"),
        )


async def official_memory(url: str, amount: int) -> dict[str, float]:
    """Keep all pods as models."""
    api, core = _official(url)
    async with api:
        await core.list_pod_for_all_namespaces(limit=1)
        gc.collect()
        before = rss_bytes()
        kept: dict[str, Any] = {}
        after: str | None = None
        while len(kept) < amount:
            page = await core.list_pod_for_all_namespaces(limit=PAGE, _continue=after)
            kept.update((item.metadata.uid, item) for item in page.items)
            after = page.metadata._continue  # noqa: SLF001 - the package's public name
        del page
        gc.collect()
        return {"bytes": rss_bytes() - before, "objects": len(kept)}


CASES = {
    case.__name__: case
    for case in (
        our_list,
        our_watch,
        our_watch_json,
        our_patch,
        our_memory,
        official_list,
        official_watch,
        official_patch,
        official_memory,
    )
}


if __name__ == "__main__":
    os.environ.pop("http_proxy", None)
    print(json.dumps(uvloop.run(CASES[sys.argv[1]](sys.argv[2], int(sys.argv[3])))))
