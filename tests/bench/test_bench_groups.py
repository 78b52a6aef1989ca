"""What the benches of groups make: pods, and the bodies that manager and agent write of them."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from bench.audit import Request
from bench.group_rates import Run
from bench.loader import Watcher, Way

from bench import bare_loop, group_bodies, group_load, group_memory, group_rates, group_runs, group_writes
from gatelift_kinds.shared.values import Priority
from gatelift_kube.decoding import decoding
from gatelift_kube.objects.core import Pod
from gatelift_kube.values.resources import POD


def served(count: int) -> list[tuple[Pod, bytes]]:
    """Return the pods of a group as an API server has them."""
    found = []
    for number, document in enumerate(group_load.gated(group_load.members("crew", count))):
        document["metadata"] |= {"uid": f"u{number}", "creationTimestamp": f"2026-01-01T00:00:{number:02}Z"}
        raw = json.dumps(document).encode()
        pod = decoding.read_object(POD, raw)
        assert isinstance(pod, Pod)
        found.append((pod, raw))
    return found


def test_the_floors_workload_of_a_group_is_the_managers() -> None:
    pods = served(3)
    gathered = group_bodies.KIND.gathering(pods[0][0])
    for pod, raw in pods:
        gathered.put(pod, raw)
    assert gathered.lacks() is None
    assert json.loads(group_bodies.group_workload(pods)) == json.loads(gathered.workload_document(Priority()))


def test_a_group_is_granted_what_all_its_pods_ask_for() -> None:
    (pod, raw), *_ = served(3)
    granted = group_bodies.grant(pod, raw, 3)
    assert (granted.resource_usage, granted.count) == ({"cpu": "30m"}, 3)


def test_the_bare_loops_pods_are_gated_and_marked_as_an_agents() -> None:
    first, second = (json.loads(body) for body in bare_loop.bodies("crew", 2))
    meta: dict[str, Any] = first["metadata"]
    assert first["spec"]["schedulingGates"] == [{"name": "kueue.x-k8s.io/admission"}]
    assert meta["finalizers"] == ["gatelift.dev/report"]
    assert meta["annotations"]["gatelift.dev/objects"] == "2"
    assert meta["annotations"]["gatelift.dev/kind"] == "PodGroup"
    assert first["spec"]["schedulerName"] == "nobody"
    assert [meta["name"], second["metadata"]["name"]] == ["crew-00000", "crew-00001"]


def test_a_rate_is_of_the_pods_between_the_first_sight_and_the_last() -> None:
    ways = {f"crew-{number}": Way(seen={"applied": 10.0 + number / 4}) for number in range(5)}
    ways["crew"] = Way(seen={"applied": 99.0})
    assert group_load.per_second(ways, "crew", "applied") == 4.0


def watched(**ways: tuple[str, ...]) -> Watcher:
    """Return a watcher that has seen so much."""
    watcher = Watcher({})
    for name, sights in ways.items():
        watcher.ways[name.replace("_", "-")] = Way(seen=dict.fromkeys(sights, 1.0))
    return watcher


def test_a_group_is_done_when_its_workload_and_all_its_pods_are() -> None:
    member = ("created", "released", "removed")
    assert group_load.is_done(watched(crew=("finished",), crew_00000=member, crew_00001=member), "crew", 2)
    assert not group_load.is_done(watched(crew=("finished",), crew_00000=member), "crew", 2), "one was never seen"
    assert not group_load.is_done(watched(crew=("finished",), crew_00000=("created",)), "crew", 1)
    assert not group_load.is_done(watched(crew=("admitted",), crew_00000=member), "crew", 1)


def test_rounds_of_groups_come_to_ratios_of_medians_and_growth_from_the_smallest_to_the_largest() -> None:
    found = group_rates.Rounds()
    for size, manager in ((50, 2.0), (1000, 3.0)):
        for per_second in (80.0, 90.0, 10.0):
            cpu = {"manager": manager, "agent": 1.0, "floor": 0.0, "machine": 20.0}
            found.runs.setdefault(("gatelift", size), []).append(Run(per_second=per_second, cpu_ms=cpu))
        for side, used in (("floor", 1.0), ("pair", 2.0)):
            cpu = {"manager": 0.0, "agent": 0.0, "floor": used, "machine": 10.0}
            found.runs[side, size] = [Run(per_second=100.0, cpu_ms=cpu)]
    found.rates = {("bare", "applied"): [200.0], ("bare", "lifted"): [100.0]}
    found.rates |= {("gatelift", "applied"): [150.0], ("gatelift", "lifted"): [95.0]}
    figures = group_rates.figures(found, [50, 1000])
    assert {name: figures[name] for name in group_rates.GOALS} == {
        "ratio": 0.8,
        "creates_ratio": 0.75,
        "lifts_ratio": 0.95,
        "manager_growth": 1.5,
        "agent_growth": 1.0,
        "cpu_to_floor": 2.0,
    }
    assert figures["sizes"]["50"]["machine_cpu_ratio"] == 0.5
    assert figures["sizes"]["1000"]["cpu_to_script"] == 4.0


def test_writes_of_a_group_are_counted_by_member_and_those_to_its_workload_in_all() -> None:
    own = {
        "mgmt": Counter(
            {
                Request("manager", "create", "workloads"): 1,
                Request("manager", "patch", "workloads/status"): 4,
                Request("manager", "patch", "pods/status"): 20,
                Request("manager", "patch", "pods"): 10,
                Request("loader", "create", "pods"): 10,
            }
        ),
        "workers": Counter({Request("agent", "create", "pods"): 10, Request("agent", "patch", "pods"): 20}),
    }
    figures = group_writes.figures(own, 10)
    assert figures["to_the_workload"] == 5
    assert figures["per_member"] == {
        "mgmt pods": {"wanted": 3, "found": 3.0},
        "workers pods": {"wanted": 4, "found": 3.0},
    }


def test_what_was_found_is_shown_beside_what_is_wanted() -> None:
    rates = dict.fromkeys(group_rates.GOALS, 0.85) | {
        "sizes": {"50": {"per_second": 30.0}},
        "gatelift_lifted_per_second": 70.0,
        "bare_lifted_per_second": 75.0,
    }
    lines = group_runs.shown({"rates": rates})
    assert any(line.startswith("creates_ratio") and "0.85" in line and "0.9 at least" in line for line in lines)
    assert "lifts a second 70.0, of the bare loop 75.0" in lines
    assert group_runs.sizes_of("200,50") == [50, 200]


def test_groups_whose_memory_is_measured_are_whole() -> None:
    assert list(group_memory.groups(250)) == ["crew0000", "crew0001"]
    assert len(group_memory.pods_of("crew0000")) == group_memory.MEMBERS
