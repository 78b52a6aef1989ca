"""The admission engine in memory: cost per admitted workload against queue length, nominations per second.

One ClusterQueue (or a cohort of 100), workloads of a few shapes all waiting from the start; whatever is reserved is
finished in order, so that each release has to find the next. Times are CPU times, with the garbage collector tuned as
in the daemons. Run: `python -m bench.admission_core`. The last line is one JSON object of medians.
"""

from __future__ import annotations

import json
import platform
import statistics
import time
from collections import deque

from gatelift_admission.engine import Engine
from gatelift_admission.values.model import Reserve
from gatelift_kube.objects.core import Container, PodSpec, PodTemplate, ResourceRequirements
from gatelift_kube.objects.kueue import (
    ClusterQueue,
    ClusterQueueSpec,
    FlavorQuotas,
    FlavorResource,
    LocalQueue,
    LocalQueueSpec,
    PodSet,
    ResourceFlavor,
    ResourceGroup,
    Workload,
    WorkloadSpec,
)
from gatelift_kube.objects.meta import LabelSelector, ObjectMeta
from gatelift_kube.process import collector

RUNS = 3
ADMITTED = 900
SHAPES = 3


def fill(waiting: int, queues: int) -> tuple[Engine, float]:
    """Return an engine with `waiting` workloads read into `queues` queues, and the CPU seconds that took."""
    engine = Engine()
    engine.namespace_changed("ns", {})
    engine.flavor_changed(ResourceFlavor(ObjectMeta(name="default")))
    group = ResourceGroup(("cpu",), (FlavorQuotas("default", (FlavorResource("cpu", "20", "100"),)),))
    for number in range(queues):
        spec = ClusterQueueSpec("cohort", namespace_selector=LabelSelector(), resource_groups=(group,))
        engine.cluster_queue_changed(ClusterQueue(ObjectMeta(name=f"cq{number}"), spec))
        local = LocalQueue(ObjectMeta(name=f"lq{number}", namespace="ns"), LocalQueueSpec(f"cq{number}"))
        engine.local_queue_changed(local)
    sets = [
        PodSet(template=PodTemplate(spec=PodSpec((Container("c", ResourceRequirements({"cpu": str(cpu)})),))))
        for cpu in (1, 5, 20)
    ]
    workloads = [
        Workload(
            ObjectMeta(name=f"w{number}", namespace="ns", uid=f"w{number:07}", resource_version="1"),
            WorkloadSpec((sets[number % SHAPES],), f"lq{number % queues}", priority=50 * (number % SHAPES)),
        )
        for number in range(waiting)
    ]
    start = time.process_time()
    for one in workloads:
        engine.workload_changed(one, 0.0)
    return engine, time.process_time() - start


def drain(engine: Engine, count: int) -> tuple[float, int, float, float]:
    """Admit `count` workloads after all were read and told why they wait.

    Returns CPU seconds of reading, nominations, CPU seconds of deciding, seconds of the longest call.
    """
    running: deque[str] = deque()
    reading = time.process_time()
    more = True
    while more:
        first = engine.cycle(0.0)
        running += [one.uid for one in first.decisions if isinstance(one, Reserve)]
        more = first.more
    read = time.process_time() - reading
    start = time.process_time()
    admitted = nominations = 0
    longest = 0.0
    while admitted < count:
        before = time.perf_counter()
        result = engine.cycle(0.0)
        longest = max(longest, time.perf_counter() - before)
        nominations += result.nominations
        reserved = [one.uid for one in result.decisions if isinstance(one, Reserve)]
        admitted += len(reserved)
        running += reserved
        if not result.more:
            engine.workload_removed(running.popleft())
    return read, nominations, time.process_time() - start, longest


def main() -> None:
    """Print the table and, last, the JSON line."""
    collector.tune()
    print(f"Python {platform.python_version()}, one process, {RUNS} runs each, medians; {ADMITTED} workloads admitted")
    figures: dict[str, float] = {}
    for queues in (1, 100):
        for waiting in (1_000, 10_000, 100_000):
            runs = []
            for _ in range(RUNS):
                engine, intake = fill(waiting, queues)
                reading, nominations, deciding, longest = drain(engine, ADMITTED)
                runs.append((intake + reading, nominations / deciding, deciding / ADMITTED, longest))
            read, rate, each, longest = (statistics.median(one) for one in zip(*runs, strict=True))
            print(
                f"{queues:4} queues, {waiting:7} waiting: read {read * 1e6 / waiting:5.1f} us each, "
                f"admitted {each * 1e6:6.1f} us each, {rate:8.0f} nominations/s, longest call {longest * 1e3:5.1f} ms"
            )
            figures[f"us_per_admitted_{queues}q_{waiting}"] = round(each * 1e6, 1)
            figures[f"read_s_{queues}q_{waiting}"] = round(read, 3)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
