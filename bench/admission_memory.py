"""Kueue's generator loads against the admission engine alone, on simulated time: no API server, no manager.

Baseline: 15,000 workloads on 30 ClusterQueues in 5 cohorts; large-scale: 50,000 on 1,000 in 10. Arrivals, run times,
priorities and policies are those of Kueue's performance suite. Objects are fed as a manager would feed them; a write
takes no time, an eviction ends after 5 ms. `sweep` is the curve of makespan against preemptions over the period for
which wake-ups are collected; `growth` the cost of an admission in queues of 1,000 to 100,000 waiting workloads.

Run: `python -m bench.admission_memory [--only baseline,large,sweep,growth] [--runs N]`. The last line is one JSON
object; `wall_s`, `cpu_s` and `rss_mb` are those of the process, figures of a load are medians over its runs. Times of
the engine are CPU times, with the garbage collector tuned as in the daemons.
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import json
import os
import platform
import resource
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random

from msgspec.structs import replace

from bench.admission_core import ADMITTED, drain, fill
from bench.generator import BASELINE, FLAVOR, LARGE_SCALE, Arrival, Kind, Load, arrivals, cluster_queues, workload_spec
from gatelift_admission.engine import Engine
from gatelift_admission.model import WAKE_PERIOD, WAKE_PERIOD_MAX, Preempt, Reserve, Settings
from gatelift_kube import collector
from gatelift_kube.objects.kueue import LocalQueue, LocalQueueSpec, ResourceFlavor, Workload, WorkloadStatus
from gatelift_kube.objects.meta import Condition, ObjectMeta

EVICTION_S = 0.005
"""From the decision to preempt to the victim's quota being free."""
CYCLE_S = 0.001
"""Events within a millisecond are decided upon together."""
START = 1767225600
PERIODS = (0.0, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
MOST = (0.0, 1.0)
"""Up to which the period grows: 0 is a fixed one."""
JITTER_S = 0.1
"""Runs of the sweep end up to so much later: without it, all gaps of a load are of one size."""
WAITING = (1_000, 10_000, 100_000)
GROWTH_QUEUES = (1, 30, 100)


@dataclass(slots=True)
class Run:
    """One load under way."""

    load: Load
    settings: Settings
    jitter: float = 0.0
    random: Random = field(default_factory=lambda: Random(1))  # noqa: S311 - reproducible, not secret
    engine: Engine = field(init=False)
    events: list[tuple[float, int, str, Workload, Kind]] = field(default_factory=list)
    created: dict[str, float] = field(default_factory=dict)
    admitted: dict[str, tuple[float, Kind]] = field(default_factory=dict)
    running: dict[str, tuple[Workload, Kind, int]] = field(default_factory=dict)
    waiting: dict[str, tuple[Workload, Kind]] = field(default_factory=dict)
    version: int = 1
    nominations: int = 0
    preemptions: int = 0
    admissions: int = 0
    intake: float = 0.0
    """CPU seconds of taking objects in."""
    deciding: float = 0.0
    """CPU seconds of cycles; what came in is read there."""
    longest: float = 0.0
    calls: int = 0
    used: float = 0.0
    """CPU seconds of quota that runs which came to their end have used."""

    def play(self) -> float:
        """Play to the end; returns the simulated seconds."""
        self.engine = Engine(self.settings)
        self.engine.wall_clock(float(START), 0.0)
        self._structure()
        now = 0.0
        while True:
            times = [self.events[0][0]] if self.events else []
            deadline = self.engine.next_deadline()
            if deadline is not None:
                times.append(deadline)
            if not times:
                return now
            now = max(now, (int(min(times) / CYCLE_S) + 1) * CYCLE_S)
            while self.events and self.events[0][0] <= now:
                _, _, what, workload, kind = heapq.heappop(self.events)
                self._happen(what, workload, kind, now)
            self._decide(now)
            if not self.events and not self.waiting and not self.running:
                return now

    def _structure(self) -> None:
        load, engine = self.load, self.engine
        engine.namespace_changed("ns", {})
        engine.flavor_changed(ResourceFlavor(ObjectMeta(name=FLAVOR)))
        for queue in cluster_queues(load):
            name = queue.metadata.name
            engine.cluster_queue_changed(queue)
            engine.local_queue_changed(LocalQueue(ObjectMeta(name=name, namespace="ns"), LocalQueueSpec(name)))
        for arrival in arrivals(load):
            self._later(arrival.at, "create", _workload(arrival), arrival.kind)

    def _later(self, at: float, what: str, workload: Workload, kind: Kind) -> None:
        self.version += 1
        heapq.heappush(self.events, (at, self.version, what, workload, kind))

    def _happen(self, what: str, workload: Workload, kind: Kind, now: float) -> None:
        uid = workload.metadata.uid
        self.version += 1
        if what == "create":
            self.created[uid] = now
            self.waiting[uid] = workload, kind
            self._feed(workload, now)
            return
        known = self.running.get(uid)
        if known is None or (what == "finish" and known[0] is not workload):
            return  # it was evicted meanwhile, or this is the end of an earlier run
        del self.running[uid]
        if what == "finish":
            self.used += kind.runs * kind.cpu
            status = replace(workload.status, conditions=(*workload.status.conditions, Condition("Finished", "True")))
            self._feed(_changed(workload, status, self.version), now)
        else:
            self.waiting[uid] = workload, kind
            gone = (
                Condition("QuotaReserved", "False", "Pending", "Preempted"),
                Condition("Evicted", "True", "Preempted"),
            )
            self._feed(_changed(workload, WorkloadStatus(conditions=gone), self.version), now)

    def _feed(self, workload: Workload, now: float) -> None:
        before = time.process_time()
        self.engine.workload_changed(workload, now)
        self.intake += time.process_time() - before

    def _decide(self, now: float) -> None:
        more = True
        while more:
            before = time.process_time()
            result = self.engine.cycle(now)
            spent = time.process_time() - before
            self.deciding += spent
            self.longest = max(self.longest, spent)
            self.calls += 1
            more = result.more
            self.nominations += result.nominations
            for one in result.decisions:
                if isinstance(one, Reserve):
                    self._admitted(one, now)
                elif isinstance(one, Preempt):
                    self.preemptions += 1
                    workload, kind, _ = self.running[one.uid]
                    self._later(now + EVICTION_S, "evicted", workload, kind)

    def _admitted(self, one: Reserve, now: float) -> None:
        workload, kind = self.waiting.pop(one.uid)
        self.version += 1
        self.admissions += 1
        at = datetime.fromtimestamp(START + int(now), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        told = (
            Condition("QuotaReserved", "True", "QuotaReserved", "", at),
            Condition("Admitted", "True", "Admitted", "", at),
        )
        status = WorkloadStatus(conditions=told, admission=one.admission)
        written = _changed(workload, status, self.version)
        self.running[one.uid] = written, kind, self.version
        self.admitted[one.uid] = now, kind
        self._feed(written, now)
        self._later(now + kind.runs + self.random.random() * self.jitter, "finish", written, kind)


def _workload(arrival: Arrival) -> Workload:
    at = datetime.fromtimestamp(START + int(arrival.at), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    name = arrival.name
    meta = ObjectMeta(name=name, namespace="ns", uid=name, resource_version="1", creation_timestamp=at)
    return Workload(meta, workload_spec(arrival))


def _changed(workload: Workload, status: WorkloadStatus, version: int) -> Workload:
    return Workload(replace(workload.metadata, resource_version=str(version)), workload.spec, status)


def figures(load: Load, runs: int, period: float, most: float = 0.0, jitter: float = 0.0) -> dict[str, float]:
    """Play a load several times; returns the medians."""
    found: list[dict[str, float]] = []
    for _ in range(runs):
        cpu = time.process_time()
        run = Run(load, Settings(wake_period=period, wake_period_max=most), jitter)
        makespan = run.play()
        cpu = time.process_time() - cpu
        one = {
            "makespan_s": makespan,
            "engine_cpu_s": run.intake + run.deciding,
            "cpu_s": cpu,
            "nominations": run.nominations,
            "nominations_per_s": run.nominations / run.deciding,
            "admissions_per_s": run.admissions / (run.intake + run.deciding),
            "us_per_admission": (run.intake + run.deciding) / run.admissions * 1e6,
            "preemptions": run.preemptions,
            "longest_call_ms": run.longest * 1e3,
            "usage_percent": 100 * run.used / (load.cpus * makespan),
        }
        for kind in load.kinds:
            waits = [at - run.created[uid] for uid, (at, of) in run.admitted.items() if of is kind]
            one[f"wait_{kind.name}_s"] = statistics.fmean(waits)
        found.append(one)
    return {name: round(statistics.median(one[name] for one in found), 3) for name in found[0]}


def growth(runs: int) -> Iterator[tuple[str, float]]:
    """Yield CPU microseconds per admitted workload, and nominations per CPU second, by queues and waiting workloads."""
    for queues in GROWTH_QUEUES:
        for waiting in WAITING:
            each = []
            for _ in range(runs):
                engine, _ = fill(waiting, queues)
                _, nominations, deciding, _ = drain(engine, ADMITTED)
                each.append((deciding / ADMITTED * 1e6, nominations / deciding))
            yield f"us_per_admitted_{queues}q_{waiting}", round(statistics.median(one for one, _ in each), 1)
            yield f"nominations_per_s_{queues}q_{waiting}", round(statistics.median(one for _, one in each))


def main() -> None:
    """Print the figures and, last, the JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="baseline,large,sweep,growth")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--period", type=float, default=WAKE_PERIOD, help="seconds of collecting wake-ups")
    parser.add_argument("--most", type=float, default=WAKE_PERIOD_MAX, help="seconds up to which it grows")
    args = parser.parse_args()
    collector.tune()
    only = args.only.split(",")
    load = os.getloadavg()[0]
    print(f"Python {platform.python_version()}, one process, {args.runs} runs each, medians; load before {load:.1f}")
    print(f"wake-ups collected for {args.period} s, growing to {args.most} s; evictions end after {EVICTION_S} s")
    start = time.perf_counter()
    out: dict[str, float] = {}
    for one in (BASELINE, LARGE_SCALE):
        if one.name in only:
            found = figures(one, args.runs, args.period, args.most)
            print(one.name, *(f"{name}={value}" for name, value in found.items()))
            out.update({f"{one.name}_{name}": value for name, value in found.items()})
    for most, period in itertools.product(MOST, PERIODS) if "sweep" in only else ():
        found = figures(BASELINE, 1, period, most, JITTER_S)
        name = f"{period:5} s" + (f" growing to {most} s" if most else "")
        waits = "/".join(f"{found[f'wait_{kind.name}_s']:.1f}" for kind in reversed(BASELINE.kinds))
        print(
            f"period {name:22}: makespan {found['makespan_s']:6.1f} s, {found['preemptions']:6.0f} preemptions, "
            f"wait large/medium/small {waits} s"
        )
        out[f"sweep_{period}_{most}_makespan_s"] = found["makespan_s"]
        out[f"sweep_{period}_{most}_preemptions"] = found["preemptions"]
    if "growth" in only:
        for name, value in growth(args.runs):
            print(f"{name}={value}")
            out[name] = value
    usage = resource.getrusage(resource.RUSAGE_SELF)
    out["wall_s"] = round(time.perf_counter() - start, 1)
    out["cpu_s"] = round(usage.ru_utime + usage.ru_stime, 1)
    out["rss_mb"] = round(usage.ru_maxrss / 1024, 1)
    print(json.dumps(out))


if __name__ == "__main__":
    main()
