"""What the benches of groups make: pods, and the bodies that manager and agent write of them."""

from __future__ import annotations

import json
from typing import Any

from bench.loader import Way

from bench import bare_loop, group_bodies, group_load
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
