"""Kueue's generator loads, and the runner that plays them."""

from __future__ import annotations

import json
import os
from collections import Counter

import msgspec
import pytest
from bench.generator import BASELINE, LARGE_SCALE, Kind, Load, arrivals, scaled, workload_document
from bench.generator_runner import Runner
from bench.processes import rss_peak_bytes

from gatelift_kube.deciding.writes import ObjectSeen
from gatelift_kube.decoding import decoding
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.objects.meta import Condition
from gatelift_kube.process.tasks import spawn
from gatelift_kube.values.resources import WORKLOAD
from support.until import until

TINY = Load("tiny", 1, 1, (Kind("only", 1, 5, 100, 0.1, 0.01),))


class Recording:
    """Stands in for a client: keeps what is patched, as an API server that never says no."""

    def __init__(self) -> None:
        self.patched: list[bytes] = []

    async def patch(self, _ref: object, body: bytes, _kind: object, **_more: object) -> None:
        self.patched.append(body)


def workload(*conditions: Condition) -> Workload:
    (arrival,) = arrivals(TINY)
    made = decoding.read_object(WORKLOAD, workload_document(arrival, "ns"))
    assert isinstance(made, Workload)
    return msgspec.structs.replace(made, status=msgspec.structs.replace(made.status, conditions=conditions))


def test_the_loads_are_as_large_as_those_of_kueue() -> None:
    assert (BASELINE.workloads, BASELINE.cpus) == (15_000, 600)
    assert (LARGE_SCALE.workloads, LARGE_SCALE.cpus) == (50_000, 20_000)
    names = Counter(arrival.name for arrival in arrivals(BASELINE))
    assert len(names) == 15_000, "each workload has a name of its own"
    assert max(arrival.at for arrival in arrivals(BASELINE)) == pytest.approx(60.0)


def test_a_scaled_load_keeps_its_queues_and_its_pace() -> None:
    small = scaled(BASELINE, 0.1)
    assert small.workloads == 1_500
    assert [kind.every for kind in small.kinds] == [kind.every for kind in BASELINE.kinds]
    assert small.cpus == BASELINE.cpus


def test_a_workload_of_the_generator_is_complete_for_an_api_server() -> None:
    (arrival,) = arrivals(TINY)
    sent = json.loads(workload_document(arrival, "ns"))
    assert sent["metadata"] == {"name": "0-0-only-00000", "namespace": "ns"}
    (pod_set,) = sent["spec"]["podSets"]
    assert (pod_set["name"], pod_set["count"]) == ("main", 1)
    assert sent["spec"]["priority"] == 100


def test_the_highest_memory_of_a_process_is_read_and_is_nothing_once_it_has_ended() -> None:
    assert rss_peak_bytes(os.getpid()) > 2**20
    assert rss_peak_bytes(2**22 + 1) == 0, "no pid is so high"


async def test_a_run_that_was_preempted_starts_anew_and_ends_once() -> None:
    client = Recording()
    runner = Runner(client, TINY, client)  # type: ignore[arg-type]  # of the client it uses only what is recorded
    admitted = Condition("Admitted", "True")
    see(runner, workload())
    see(runner, workload(admitted))
    see(runner, workload(Condition("Admitted", "False"), Condition("Evicted", "True", "Preempted")))
    assert runner.story.preemptions == 1
    see(runner, workload(admitted))
    ends = spawn("ends", runner._finish())
    await until(lambda: bool(client.patched))
    ends.cancel()
    assert len(client.patched) == 1, "the first run's end was dropped"
    see(runner, workload(admitted, Condition("Finished", "True")))
    (life,) = runner.story.lives.values()
    assert (life.runs, runner.story.finished) == (2, 1)
    assert life.created < life.admitted <= life.finished
    figures = runner.story.figures(TINY)
    assert figures["preemptions"] == 1
    assert figures["wait_only_s"] >= 0


def see(runner: Runner, seen: Workload) -> None:
    runner._seen(ObjectSeen(resource=WORKLOAD, object=seen, raw=b""))
