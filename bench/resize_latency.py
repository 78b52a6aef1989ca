"""How long one resize takes with nothing else to do: from wish to last pod, from surplus to the next. See `resize`.

Times are arrivals of watch events, as in `latency`; quota shows that it is free only by what it is used for, so the
second step holds the next one's offer, bid and status write.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import yaml

from bench import resize_jobs
from bench.fleet import POD_CPU, Fleet, queue
from bench.group_latency import PAUSE_SECONDS, STEP_SECONDS_MAX
from bench.latency import summary
from bench.loader import create, manifest
from bench.resize_jobs import Chain, Chains, following
from gatelift_sandbox import applying

BEFORE, MORE = 5, 10
ROOM = "room"
WIDE = 12
"""Pods for which there is room in that queue."""
WARM_UP = 2
STEPS: tuple[tuple[str, str, str], ...] = (
    ("wish_to_admitted", "wanted", "charged"),
    ("admitted_to_set", "charged", "given"),
    ("set_to_last_made", "given", "made"),
    ("last_made_to_last_lifted", "made", "lifted"),
    ("wish_to_last_lifted", "wanted", "lifted"),
)
"""Name, cause, effect, as `Chain.last` has them. Pods are made by the Job controller."""
GOALS = {"wish_to_last_lifted": (300.0, 1000.0), "surplus_stopped_to_next_reserved": (150.0, None)}
"""p50 and p99 wanted, in ms."""


def steps(chain: Chain) -> dict[str, float]:
    """Return the milliseconds of each step of the latest growth; a watch that was faster than another one gives 0."""
    return {name: max(0.0, 1000 * (chain.last[effect] - chain.last[cause])) for name, cause, effect in STEPS}


async def growths(made: Fleet, watcher: Chains, samples: int) -> dict[str, list[float]]:
    """Have one Job grow by ten pods, and shrink again, so often."""
    client, found = made.clients["mgmt"], {name: list[float]() for name, _, _ in STEPS}
    await resize_jobs.create(client, [resize_jobs.manifest("ten", BEFORE, scheduled=True)])
    await watcher.all_of(["ten"], BEFORE)
    for number in range(WARM_UP + samples):
        await asyncio.sleep(PAUSE_SECONDS)
        await resize_jobs.resize(client, ["ten"], BEFORE + MORE)
        await watcher.all_of(["ten"], BEFORE + MORE)
        if number >= WARM_UP:
            for name, took in steps(watcher.chains["ten"]).items():
                found[name].append(took)
        await asyncio.sleep(PAUSE_SECONDS)
        await resize_jobs.resize(client, ["ten"], BEFORE)
        await watcher.all_of(["ten"], BEFORE)
    return found


async def handovers(made: Fleet, watcher: Chains, samples: int) -> list[float]:
    """Return ms from the end of a Job's surplus pod to the reservation of a pod that waits for its room."""
    client, found = made.clients["mgmt"], list[float]()
    await applying.apply(client, yaml.safe_load_all(queue(ROOM, f"{WIDE * int(POD_CPU.removesuffix('m'))}m")))
    await resize_jobs.create(client, [resize_jobs.manifest("wide", WIDE, queue=ROOM, scheduled=True)])
    await watcher.all_of(["wide"], WIDE)
    for number in range(WARM_UP + samples):
        heir = f"heir{number:04}"
        await create(client, [manifest(heir, queue=ROOM, run_seconds=0.1)], in_flight=1)
        await watcher.until(lambda heir=heir: "workload" in watcher.seen(heir), STEP_SECONDS_MAX)  # type: ignore[misc]  # default binds
        await asyncio.sleep(PAUSE_SECONDS)
        await resize_jobs.resize(client, ["wide"], WIDE - 1)
        await watcher.until(lambda heir=heir: "finished" in watcher.seen(heir), STEP_SECONDS_MAX)  # type: ignore[misc]  # default binds
        if number >= WARM_UP:
            stopped = watcher.chains["wide"].last["leaving"]
            found.append(max(0.0, 1000 * (watcher.seen(heir)["reserved"] - stopped)))
        await asyncio.sleep(PAUSE_SECONDS)
        await resize_jobs.resize(client, ["wide"], WIDE)
        await watcher.all_of(["wide"], WIDE)
    return found


async def measure(made: Fleet, samples: int) -> dict[str, Any]:
    """Return the summary of each step."""
    async with following(made) as watcher:
        await made.start()
        grown = await growths(made, watcher, samples)
        found = {name: _summary(values) for name, values in grown.items()}
        found["surplus_stopped_to_next_reserved"] = _summary(await handovers(made, watcher, samples))
        await made.stop()
    await made.clean()
    return found


def _summary(values: Sequence[float]) -> dict[str, float]:
    return {**summary(values), "samples": len(values)}
