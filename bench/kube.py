"""Our Kubernetes client against the official one: decode rate of lists and watches, patches a second, memory.

`python -m bench.kube [--runs N]`. Both talk to the same server, a process of its own that answers at once from prebuilt
bytes (`kube_server`), so the figures are ceilings of the clients, not of an API server. The official client is
`kubernetes.aio` as shipped, models and all, as its documentation uses it. Each run is a fresh process.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from importlib.metadata import version
from typing import Any

PODS = 10_000
EVENTS = 10_000
LISTED = 5_000
PATCHES = {"our": 5_000, "official": 2_000}
"""The official client is given less to do, for the patience of whoever waits; rates do not depend on it."""
RUN_SECONDS_MAX = 300

CASES: tuple[tuple[str, str, str, int], ...] = (
    ("list, objects/s", "our_list", "official_list", LISTED),
    ("watch, events/s", "our_watch", "official_watch", EVENTS),
    ("watch with JSON, events/s", "our_watch_json", "", EVENTS),
    ("patch, 64 in flight, /s", "our_patch", "official_patch", 0),
)


def run(case: str, url: str, amount: int) -> dict[str, float]:
    """Run one case once in a fresh process."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.kube_cases", case, url, str(amount)],
        check=True,
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS_MAX,
    )
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def rate(case: str, url: str, amount: int, runs: int) -> dict[str, float]:
    """Return the median rate by the clock and by CPU time, and the spread of the runs."""
    amount = amount or PATCHES[case.split("_", maxsplit=1)[0]]
    results = [run(case, url, amount) for _ in range(runs)]
    rates = [amount / result["seconds"] for result in results]
    return {
        "per_second": round(statistics.median(rates)),
        "per_cpu_second": round(statistics.median(amount / result["cpu"] for result in results)),
        "lowest": round(min(rates)),
        "highest": round(max(rates)),
    }


def memory(case: str, url: str, runs: int) -> float:
    """Return the median MB that 10,000 pods take."""
    results = [run(case, url, PODS) for _ in range(runs)]
    return round(statistics.median(result["bytes"] / result["objects"] for result in results) * 10_000 / 1e6, 1)


def conditions(runs: int, pod_bytes: int) -> dict[str, Any]:
    """Return what the figures depend on."""
    return {
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
        "aiohttp": version("aiohttp"),
        "msgspec": version("msgspec"),
        "kubernetes": version("kubernetes"),
        "uvloop": version("uvloop"),
        "runs": runs,
        "pod_bytes": pod_bytes,
        "page": 500,
        "transport": "HTTP on loopback, no TLS",
    }


def measure(url: str, runs: int) -> dict[str, Any]:
    """Run all cases, printing each line as it is known."""
    figures: dict[str, Any] = {}
    print(f"{'':28}{'ours':>12}{'official':>12}{'times':>8}   spread of ours")
    for title, ours, official, amount in CASES:
        our = rate(ours, url, amount, runs)
        other = rate(official, url, amount, runs) if official else None
        figures[ours.removeprefix("our_")] = {"ours": our, "official": other}
        against = f"{other['per_second']:>12,.0f}{our['per_second'] / other['per_second']:>8.1f}" if other else " " * 20
        print(f"{title:28}{our['per_second']:>12,.0f}{against}   {our['lowest']:,.0f} to {our['highest']:,.0f}")
    kept, other_kept = memory("our_memory", url, runs), memory("official_memory", url, runs)
    figures["memory_mb_per_10000_pods"] = {"ours": kept, "official": other_kept}
    print(f"{'memory, MB/10,000 pods':28}{kept:>12,.1f}{other_kept:>12,.1f}{other_kept / kept:>8.1f}")
    return figures


def main() -> int:
    """Measure, print a table, the conditions, and one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3, help="runs of each case, each in a fresh process (default 3)")
    runs: int = parser.parse_args().runs
    print(f"Building {PODS:,} pods and {EVENTS:,} watch events; about two minutes in all")
    with subprocess.Popen(
        [sys.executable, "-m", "bench.kube_server", str(PODS), str(EVENTS)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        try:
            if server.stdout is None:
                raise RuntimeError("the server has no output")
            ready = json.loads(server.stdout.readline())
            said = conditions(runs, ready["pod_bytes"])
            print("Conditions: " + ", ".join(f"{name} {value}" for name, value in said.items()))
            figures = measure(f"http://127.0.0.1:{ready['port']}", runs)
        finally:
            server.kill()
    print(json.dumps({"bench": "kube", "conditions": said, "figures": figures}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
