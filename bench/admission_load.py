"""Kueue's generator loads on a real API server, with the manager as it ships, against a write floor in the same run.

`python -m bench.admission_load [--load baseline|large] [--scale 0.1] [--qps N] [--restart N]`. `--scale` plays a share
of the load: as many queues at the same pace for a shorter time; 1 is Kueue's whole load (baseline: 15,000 workloads on
30 queues). `--qps` lifts the manager's own limit of writes (300 a second as it ships). `--restart N` measures instead
how long a manager takes from having taken the lead to its first decision with N workloads waiting.

The floor is the same generator and runner with a script in the manager's place that admits at sight. Each side has a
control plane of its own. `policy_s` is what the admission engine makes of the load where writes take no time.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import uvloop

from bench.admission_memory import figures as in_memory
from bench.admission_memory import settings_of
from bench.admission_restart import restart
from bench.admission_site import Site, last_words, site
from bench.generator import BASELINE, LARGE_SCALE, Load, scaled
from bench.generator_runner import Runner
from bench.processes import cpu_seconds, rss_peak_bytes
from bench.side_scripts import beside
from gatelift_sandbox import children

SCALE = 0.1
PLAY_SECONDS_MAX = 1800.0
"""Kueue's runner gives up on its largest load after as long."""
LOADS = {load.name: load for load in (BASELINE, LARGE_SCALE)}


async def played(
    here: Site, load: Load, runner: Runner, pid: int, name: str, lives: Callable[[], bool] = lambda: True
) -> dict[str, float]:
    """Play the load while a process admits; return what came of it, and what it cost whom."""
    before, own, used = here.usage(), time.process_time(), cpu_seconds(pid)
    try:
        story = await runner.play(PLAY_SECONDS_MAX, lives)
    except (TimeoutError, RuntimeError) as error:
        raise RuntimeError(f"{name}: {error}\n{last_words(here.installation)}") from error
    spent = here.usage().since(before)
    found = story.figures(load) | {
        "cpu_s": round(cpu_seconds(pid) - used, 1),
        "rss_mb": round(rss_peak_bytes(pid) / 2**20, 1),
        "api_server_cpu_s": round(spent.of("kube-apiserver"), 1),
        "etcd_cpu_s": round(spent.of("etcd"), 1),
        "runner_cpu_s": round(time.process_time() - own, 1),
        "conflicts": story.conflicts,
    }
    print(name, *(f"{key}={value}" for key, value in found.items()), flush=True)
    return found


async def manager_round(load: Load, qps: float) -> dict[str, float]:
    """Play a load with the manager."""
    async with site(load, qps) as here:
        process = await here.manager()
        lives = partial(children.alive, process)
        return await played(here, load, Runner(here.client, load, here.ends), process.pid, "manager", lives)


async def floor_round(load: Load) -> dict[str, float]:
    """Play a load with the script that admits at sight."""
    async with site(load) as here:
        runner = Runner(here.client, load, here.ends)
        kubeconfig = here.installation.kubeconfig(here.management, "gatelift-manager")
        async with beside("bench.admission_floor", str(kubeconfig), fail=partial(runner.fail, "floor")) as pid:
            return await played(here, load, runner, pid, "floor")


async def measure(load: Load, qps: float, *, with_floor: bool) -> dict[str, Any]:
    """Play the load by the engine alone, by the floor and by the manager."""
    if not with_floor:
        return await manager_round(load, qps)
    alone = in_memory(load, 1, settings_of())
    print(f"engine alone: makespan {alone['makespan_s']} s, {alone['preemptions']:.0f} preemptions", flush=True)
    floor = await floor_round(load)
    ours = await manager_round(load, qps)
    return {
        **ours,
        "ratio": round(ours["wall_s"] / floor["wall_s"], 2),
        "policy_s": alone["makespan_s"],
        "policy_preemptions": alone["preemptions"],
        **{f"floor_{name}": value for name, value in floor.items()},
    }


def main() -> int:
    """Measure, print, and print the JSON line last."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--load", choices=sorted(LOADS), default=BASELINE.name)
    parser.add_argument("--scale", type=float, default=SCALE, help="share of the load's workloads, 1 for all")
    parser.add_argument("--qps", type=float, default=0.0, help="the manager's writes a second, 0 as it ships")
    parser.add_argument("--restart", type=int, default=0, help="workloads that wait while a manager starts anew")
    parser.add_argument("--no-floor", action="store_true", help="play it with the manager only")
    args = parser.parse_args()
    load = scaled(LOADS[args.load], args.scale)
    said = {
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "load_before": round(os.getloadavg()[0], 2),
        "api": "real kube-apiserver and etcd alone, no fsync",
        "qps": args.qps or "as shipped",
        "queues": load.cohorts * load.queues,
    }
    if args.restart:
        said |= {"waiting": args.restart}
        found = uvloop.run(restart(load, args.restart, args.qps))
    else:
        said |= {"load": load.name, "scale": args.scale, "workloads": load.workloads}
        print("Conditions: " + ", ".join(f"{name} {value}" for name, value in said.items()), flush=True)
        found = uvloop.run(measure(load, args.qps, with_floor=not args.no_floor))
    print(json.dumps({"bench": "admission_load", "conditions": said, "figures": found}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
