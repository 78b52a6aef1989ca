"""The bench of resizes: its Jobs, what it takes for a size, and what it makes of what it has seen."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from bench.audit import Request
from bench.resize_jobs import Chain
from bench.resize_rates import Rounds, Run

from bench import resize, resize_jobs, resize_latency, resize_memory, resize_rates, resize_writes
from gatelift_kinds.shared import markers, sizes
from gatelift_kinds.shared.values import Priority
from gatelift_kube.decoding import decoding
from gatelift_kube.decoding.decoding import Served
from gatelift_kube.objects.batch import Job
from gatelift_kube.objects.core import Pod
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.values.resources import JOB, POD, WORKLOAD


def a_job(pods: int = 3) -> tuple[Job, bytes]:
    document = resize_jobs.mutated(resize_jobs.manifest("j", pods))
    document["metadata"] |= {"uid": "u", "generation": 1}
    raw = json.dumps(document).encode()
    found = decoding.read_object(JOB, raw)
    assert isinstance(found, Job)
    return found, raw


def a_pod(name: str, *, gated: bool, **meta: Any) -> Pod:
    gates = [{"name": markers.ELASTIC_JOB}] if gated else []
    document = {"metadata": {"name": name, **meta}, "spec": {"schedulingGates": gates}}
    found = decoding.read_object(POD, json.dumps(document).encode())
    assert isinstance(found, Pod)
    return found


def a_slice(name: str, count: int, charged: int | None, *, finished: bool = False) -> Workload:
    status: dict[str, Any] = {"conditions": [{"type": "Finished", "status": "True"}] if finished else []}
    if charged is not None:
        status["admission"] = {"clusterQueue": "q", "podSetAssignments": [{"name": "main", "count": charged}]}
    document = {"metadata": {"name": name}, "spec": {"podSets": [{"name": "main", "count": count}]}, "status": status}
    found = decoding.read_object(WORKLOAD, json.dumps(document).encode())
    assert isinstance(found, Workload)
    return found


def test_sl_60_its_jobs_come_as_the_webhook_leaves_them() -> None:
    job, _ = a_job()
    assert resize_jobs.KIND.resizes(job)
    assert job.spec.suspend


def test_a_job_is_of_a_size_when_pods_charge_and_wish_agree_and_nothing_is_besides() -> None:
    chain, (job, _) = Chain(), a_job(2)
    chain.user_job(job, 1.0)
    chain.worker_job(job, 2.0)
    chain.slice(a_slice("s1", 1, 1), 2.0)
    chain.slice(a_slice("s2", 2, 2), 3.0)
    chain.pod(a_pod("a", gated=False), 3.0)
    chain.pod(a_pod("b", gated=True), 4.0)
    assert not chain.is_of(2), "the slice before is open, and a pod waits"
    chain.pod(a_pod("b", gated=False), 5.0)
    assert not chain.is_of(2)
    chain.slice(a_slice("s1", 1, 1, finished=True), 6.0)
    assert chain.is_of(2)
    assert chain.last == {
        "wanted": 1.0, "given": 2.0, "charged": 3.0, "made": 4.0, "lifted": 5.0, "finished": 6.0,
    }  # fmt: skip
    assert resize_latency.steps(chain)["wish_to_last_lifted"] == 4000.0
    chain.pod(a_pod("b", gated=False, deletionTimestamp="2026-01-01T00:00:00Z"), 7.0)
    chain.pod_leaves("b", 8.0)
    assert (chain.is_of(2), chain.last["leaving"]) == (False, 7.0), "what leaves has left once"
    assert resize_rates.settled(chain) == 6.0


def test_a_rate_is_of_what_was_let_go_between_the_first_and_the_last() -> None:
    assert resize_rates.rate([10.0, 10.5, 11.0]) == 2.0


def test_rounds_come_to_ratios_of_medians() -> None:
    found = Rounds()
    cpu = {"manager": 2.0, "agent": 1.0, "floor": 3.0, "machine": 9.0}
    for way, ours in (("grow", 70.0), ("shrink", 50.0)):
        found.runs["gatelift", way] = [Run(per_second=each, cpu_ms=cpu) for each in (ours, 1.0, 1000.0)]
        found.runs["floor", way] = [Run(per_second=100.0, cpu_ms=cpu)]
    rates = {
        ("gatelift", "worker"): 90.0,
        ("bare", "worker"): 100.0,
        ("gatelift", "home"): 170.0,
        ("bare", "home"): 200.0,
    }
    found.lifts = {key: [Run(per_second=each, cpu_ms=cpu)] for key, each in rates.items()}
    figures = resize_rates.figures(found)
    assert {name: figures[name] for name in resize_rates.GOALS} == {
        "ratio": 0.7, "shrink_ratio": 0.5, "lifts_ratio": 0.9, "home_lifts_ratio": 0.85,
    }  # fmt: skip
    assert (figures["gatelift_grow_manager_ms"], figures["floor_grow_floor_ms"]) == (2.0, 3.0)
    assert figures["agent_worker_lift_ms"] == 1.0
    shown = resize.shown({"rates": figures})
    assert any(line.startswith("ratio") and "0.7 at least" in line for line in shown)


def test_cpu_is_told_by_process() -> None:
    used = {"manager": 1.0, "agent-w1": 2.0, "mgmt/etcd": 4.0, "webhooks": 0.5}
    shares = resize_rates.shares(used, 10)
    assert (shares["manager"], shares["agent"], shares["machine"]) == (100.0, 200.0, 750.0)


def test_what_a_resize_writes_is_told_apart_from_what_people_are_told_and_from_what_is_besides() -> None:
    own = {
        "mgmt": Counter(
            {
                Request("manager", "create", "workloads"): 1,
                Request("manager", "update", "workloads/status"): 2,
                Request("manager", "patch", "jobs/status"): 4,
                Request("manager", "create", "events"): 3,
                Request("manager", "get", "jobs"): 1,
                Request("loader", "patch", "jobs"): 1,
            }
        ),
        "workers": Counter({Request("agent", "patch", "jobs"): 1, Request("agent", "patch", "pods"): 7}),
    }
    figures = resize_writes.figures(own, resize_writes.expected("grow", 7))
    assert [each["found"] for each in figures["writes"].values()] == [3, 1, 7]
    assert figures["told"] == {"mgmt manager create events": 3, "mgmt manager patch jobs/status": 4}
    assert figures["besides"] == {"mgmt manager get jobs": 1}


def test_the_slices_whose_memory_is_measured_are_one_chain() -> None:
    job, raw = a_job()
    body = resize_jobs.KIND.workload_document(job, raw, Priority())
    found = []
    for number in range(2, 4):
        document = json.loads(body)
        document["metadata"] |= {"uid": f"w{number}"}
        served = json.dumps(document).encode()
        workload = decoding.read_object(WORKLOAD, served)
        assert isinstance(workload, Workload)
        found.append(workload)
        body = resize_memory.next_slice(job, Served(workload, served), number)
    last = json.loads(body)
    assert last["metadata"]["annotations"]["gatelift.dev/chain"] == "w2"
    assert sizes.number_of(found[1].metadata.annotations) == 2
    assert len({one.metadata.name for one in found} | {last["metadata"]["name"]}) == 3
