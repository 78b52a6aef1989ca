"""Kueue's generator loads against the admission engine alone, on simulated time: no API server, no manager.

Baseline: 15,000 workloads on 30 ClusterQueues in 5 cohorts; large-scale: 50,000 on 1,000 in 10. Arrivals, run times,
priorities and policies are those of Kueue's performance suite. Objects are fed as a manager would feed them; a write
takes no time (or `--write` seconds each), an eviction ends after 5 ms. `sweep` is the curve of makespan against
preemptions over the period for which quota is kept from lower priorities, and over the time for which preemptors wait
for others to end, for free writes and for slow ones, with the time that the writes alone take beside it; `pace` plays
creates that are as slow as on a real API server, where the next large workload of a queue comes a moment after the one
before has ended, with preemptors that wait and without; `growth` is the cost of an admission in queues of 1,000 to
100,000 waiting workloads. `instructions` counts what of that can be counted under valgrind (which has to be there): one
cohort of the baseline, and admissions in queues of up to 4,000. Two builds of the engine compare by that to a part in a
thousand on a machine that is busy; `--against FOLDER` counts the one in another folder as well, in turn.

Run: `python -m bench.admission_memory [--only baseline,large,sweep,pace,growth] [--runs N]`, or `--only instructions`.
The last line is one JSON object; `wall_s`, `cpu_s` and `rss_mb` are those of the process, figures of a load are medians
over its runs. Times of the engine are CPU times, with the garbage collector tuned as in the daemons. `loop_turn_ns` is
what one turn of a plain loop took around each run: machines and hours differ by a factor of two,
`loop_turns_per_nomination` does not.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import re
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace

from bench.admission_core import ADMITTED, drain, fill
from bench.admission_play import EVICTION_S, Play
from bench.generator import BASELINE, LARGE_SCALE, Load
from gatelift_admission.engine import is_compiled
from gatelift_admission.values.model import PREEMPTION_PATIENCE, WAKE_PERIOD, WAKE_PERIOD_MAX, EngineSettings
from gatelift_kube.process import collector

PERIODS = (0.05, 0.2, 0.5, 1.0)
WRITES_S = (0.0, 0.002, 0.004)
"""Of a write, one after the other: free, a quiet API server on two cores, a busy one."""
MOST = (0.0, 1.0)
"""Up to which the period grows: 0 is a fixed one."""
PATIENCES = (0.0, 0.25, 0.5, 1.0, 2.0)
"""For which preemptors wait, each with the recommended periods."""
JITTER_S = 0.1
"""Runs of the sweep end up to so much later: without it, all gaps of a load are of one size."""
PACES = ((0.0, 0.0), (0.02, 0.0), (0.05, 0.05), (0.02, 0.1), (0.01, 0.15))
"""Seconds after which writes are seen, and by which creates take longer, with writes of `PACE_WRITE_S`."""
PACE_WRITE_S = 0.002
UNLIMITED = 1_000_000
"""CPUs of a queue that never runs out."""
LOOP_TURNS = 3_000_000
WAITING = (1_000, 10_000, 100_000)
GROWTH_QUEUES = (1, 30, 100)
COUNTED = {"baseline": "start", "growth": "filled"}
"""What is counted in a process of its own, and what is taken from it: all that was there before the first cycle."""
COUNTED_GROWTH = ((1_000, 1), (4_000, 30))
"""Waiting workloads and queues: few, since all takes thirty times as long."""
COUNTED_ADMITTED = 300
COUNTING = ("valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null")
_COUNT = re.compile(r"I +refs: +([0-9,]+)")


def loop_turn() -> float:
    """Return the CPU seconds of one turn of a plain loop: how fast this interpreter is on this machine just now."""
    before = time.process_time()
    total = 0
    for number in range(LOOP_TURNS):
        total += number
    return (time.process_time() - before) / LOOP_TURNS


def figures(
    load: Load,
    runs: int,
    settings: EngineSettings,
    jitter: float = 0.0,
    write: float = 0.0,
    lags: tuple[float, float] = (0.0, 0.0),
) -> dict[str, float]:
    """Play a load several times; returns the medians."""
    found: list[dict[str, float]] = []
    for _ in range(runs):
        turn = loop_turn()
        cpu = time.process_time()
        run = Play(load, settings, jitter, write, *lags)
        makespan = run.play()
        cpu = time.process_time() - cpu
        turn = (turn + loop_turn()) / 2
        one = {
            "loop_turn_ns": turn * 1e9,
            "loop_turns_per_nomination": run.deciding / run.nominations / turn,
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


def shown(found: dict[str, float]) -> str:
    """Return what is of interest of a run of the baseline."""
    waits = "/".join(f"{found[f'wait_{kind.name}_s']:.1f}" for kind in reversed(BASELINE.kinds))
    return f"{found['preemptions']:6.0f} preemptions, wait large/medium/small {waits} s"


def sweep(write: float) -> Iterator[tuple[str, float]]:
    """Yield makespan and preemptions of the baseline by settings, with writes of `write` seconds each; print them."""
    unlimited = replace(BASELINE, nominal=UNLIMITED)
    floor = Play(unlimited, EngineSettings(), write_seconds=write).play()
    print(f"writes of {write * 1e3:g} ms each: {floor:.1f} s without any limit of quota", flush=True)
    cases = [(period, most, PREEMPTION_PATIENCE) for most, period in itertools.product(MOST, PERIODS)]
    cases += [(WAKE_PERIOD, WAKE_PERIOD_MAX, patience) for patience in PATIENCES if patience != PREEMPTION_PATIENCE]
    for period, most, patience in cases:
        found = figures(BASELINE, 1, settings_of(period, most, patience), 0.0 if write else JITTER_S, write)
        name = f"{period:5} s" + (f" growing to {most} s" if most else "")
        makespan = found["makespan_s"]
        print(
            f"period {name:22}, patience {patience:4} s: makespan {makespan:6.1f} s ({makespan / floor:.2f}), "
            + shown(found),
            flush=True,
        )
        yield f"sweep_{write}_{period}_{most}_{patience}_makespan_s", makespan
        yield f"sweep_{write}_{period}_{most}_{patience}_preemptions", found["preemptions"]


def pace(period: float, most: float, patience: float) -> Iterator[tuple[str, float]]:
    """Yield makespan and preemptions of the baseline by how late writes are seen, without patience and with; print."""
    for one, lags in itertools.product((0.0, patience), PACES):
        found = figures(BASELINE, 1, settings_of(period, most, one), 0.0, PACE_WRITE_S, lags)
        print(
            f"patience {one} s, seen {lags[0] * 1e3:3.0f} ms later, creates {lags[1] * 1e3:3.0f} ms: "
            f"makespan {found['makespan_s']:6.1f} s, " + shown(found),
            flush=True,
        )
        yield f"pace_{one}_{lags[0]}_{lags[1]}_makespan_s", found["makespan_s"]
        yield f"pace_{one}_{lags[0]}_{lags[1]}_preemptions", found["preemptions"]


def settings_of(
    period: float = WAKE_PERIOD, most: float = WAKE_PERIOD_MAX, patience: float = PREEMPTION_PATIENCE
) -> EngineSettings:
    """Return the engine's settings, as they ship unless said otherwise."""
    return EngineSettings(wake_period=period, wake_period_max=most, preemption_patience=patience)


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


def play_counted(part: str) -> None:
    """Do what is counted, in this process."""
    if part == "baseline":
        Play(replace(BASELINE, cohorts=1), settings_of()).play()
    for waiting, queues in COUNTED_GROWTH if part in ("filled", "growth") else ():
        engine, _ = fill(waiting, queues)
        drain(engine, COUNTED_ADMITTED if part == "growth" else 0)


def count(part: str, folder: str, *, compiled: bool) -> int:
    """Return the instructions of a process that does a part on the engine in `folder` (empty: on this one)."""
    paths = [one for one in (folder, *os.environ.get("PYTHONPATH", "").split(os.pathsep)) if one]
    environment = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONPATH": os.pathsep.join(paths)}
    command = [*COUNTING, sys.executable, "-m", "bench.admission_memory", "--play", part]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    found = _COUNT.search(done.stderr)
    if done.returncode or found is None:
        raise RuntimeError(f"nothing was counted of {part}: {done.stderr[-2000:]}")
    if done.stdout.split() != [str(compiled)]:
        raise RuntimeError(f"the engine in {folder} should be compiled as this one is: {compiled}")
    return int(found[1].replace(",", ""))


def instructions(runs: int, against: str) -> Iterator[tuple[str, float]]:
    """Yield millions of instructions by part, and the ratio to those of the engine in the folder `against`, if any."""
    sides = ("", against) if against else ("",)
    cases = list(itertools.product(sides, COUNTED))
    before = {(side, part): count(COUNTED[part], side, compiled=is_compiled()) for side, part in cases}
    found: dict[tuple[str, str], list[int]] = {case: [] for case in cases}
    for _, (side, part) in itertools.product(range(runs), cases):
        found[side, part].append(count(part, side, compiled=is_compiled()) - before[side, part])
    for part in COUNTED:
        here = found["", part]
        yield f"instructions_{part}_millions", round(statistics.median(here) / 1e6, 1)
        if against:
            ratios = [one / other for one, other in zip(here, found[against, part], strict=True)]
            print(f"instructions of {part} to those in {against}: {' '.join(f'{one:.4f}' for one in ratios)}")
            yield f"instructions_{part}_ratio", round(statistics.median(ratios), 4)


def main() -> None:
    """Print the figures and, last, the JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="baseline,large,sweep,pace,growth")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--period", type=float, default=WAKE_PERIOD, help="seconds of collecting wake-ups")
    parser.add_argument("--most", type=float, default=WAKE_PERIOD_MAX, help="seconds up to which it grows")
    parser.add_argument("--patience", type=float, default=PREEMPTION_PATIENCE, help="seconds that preemptors wait")
    parser.add_argument("--write", type=float, default=0.0, help="seconds of a write; sweep: 0 for all")
    parser.add_argument("--against", default="", help="folder with another gatelift_admission: instructions compare")
    parser.add_argument("--play", default="", help=argparse.SUPPRESS)
    args = parser.parse_args()
    collector.tune()
    if args.play:
        print(is_compiled())
        play_counted(args.play)
        return
    only = args.only.split(",")
    load = os.getloadavg()[0]
    print(f"Python {platform.python_version()}, one process, {args.runs} runs each, medians; load before {load:.1f}")
    print(f"engine compiled: {is_compiled()}")
    print(f"wake-ups collected for {args.period} s, growing to {args.most} s, preemptors wait {args.patience} s")
    print(f"evictions end after {EVICTION_S} s")
    start = time.perf_counter()
    out: dict[str, float] = {"compiled": is_compiled()}
    for one in (BASELINE, LARGE_SCALE):
        if one.name in only:
            found = figures(one, args.runs, settings_of(args.period, args.most, args.patience), write=args.write)
            print(one.name, *(f"{name}={value}" for name, value in found.items()))
            out.update({f"{one.name}_{name}": value for name, value in found.items()})
    writes = (args.write,) if args.write else WRITES_S
    for write in writes if "sweep" in only else ():
        out.update(sweep(write))
    if "pace" in only:
        out.update(pace(args.period, args.most, args.patience))
    if "growth" in only:
        for name, value in growth(args.runs):
            print(f"{name}={value}")
            out[name] = value
    if "instructions" in only:
        out.update(instructions(args.runs, args.against))
    usage = resource.getrusage(resource.RUSAGE_SELF)
    out["wall_s"] = round(time.perf_counter() - start, 1)
    out["cpu_s"] = round(usage.ru_utime + usage.ru_stime, 1)
    out["rss_mb"] = round(usage.ru_maxrss / 1024, 1)
    print(json.dumps(out))


if __name__ == "__main__":
    main()
