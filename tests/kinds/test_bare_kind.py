"""A Workload without an owner: admitted, nothing made anywhere."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from gatelift_kinds.registry import BARE_KIND as KIND
from gatelift_kinds.registry import SERVED
from gatelift_kinds.shared.values import KindError, ObjectEnd, Part, Placing, PriorityNames
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.values.resources import JOB, NODE, POD, WORKLOAD
from support.manager.kind_objects import KEY, Json, condition, patched

OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}


def document(spec: Json | None = None, status: Json | None = None, **metadata: Any) -> Json:
    meta = {"name": "w", "namespace": "ns", "uid": "u", **metadata}
    return {"metadata": meta, "spec": {"queueName": "q", **(spec or {})}, "status": status or {}}


def typed(made: Json) -> Workload:
    return msgspec.convert(made, Workload)


def test_a_workload_is_ours_when_nobody_owns_it() -> None:
    assert KIND.managed(typed(document()))
    assert not KIND.managed(typed(document(ownerReferences=[OWNER])))


def test_it_is_its_own_workload() -> None:
    made = document()
    raw = json.dumps(made).encode()
    assert KIND.workload_name(typed(made)) == "w"
    assert KIND.queue_name(typed(made)) == "q"
    assert KIND.equivalent(typed(made), typed(made))
    assert KIND.parts(typed(made), raw) == ()
    assert KIND.counts(typed(made), ()) == ()


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("WorkloadPriorityClass", PriorityNames(workload_class="high", pod_priority=3)),
        ("PriorityClass", PriorityNames(pod_class="high", pod_priority=3)),
    ],
)
def test_its_priority_is_what_it_says(kind: str, names: PriorityNames) -> None:
    spec = {"priority": 3, "priorityClassRef": {"group": "g", "kind": kind, "name": "high"}}
    assert KIND.priority_names(typed(document(spec))) == names


@pytest.mark.parametrize(
    ("conditions", "outcome"),
    [
        ([condition("Finished", reason="Succeeded")], ObjectEnd(succeeded=True, message="M")),
        ([condition("Finished", reason="Failed")], ObjectEnd(succeeded=False, message="M")),
        ([condition("Finished", "False")], None),
        ([], None),
    ],
)
def test_it_ends_when_somebody_says_so(conditions: list[Json], outcome: ObjectEnd | None) -> None:
    assert KIND.outcome(typed(document(status={"conditions": conditions}))) == outcome


def test_the_finalizer_goes_when_it_is_there() -> None:
    made = document(finalizers=["kueue.x-k8s.io/resource-in-use"])
    step = KIND.release_step(typed(made))
    assert step is not None
    assert patched(made, step.body)["metadata"]["finalizers"] == []
    assert KIND.release_step(typed(document())) is None


def test_there_is_nothing_to_make_at_a_worker() -> None:
    placing = Placing(key=KEY, origin="home", namespace="ns")
    with pytest.raises(KindError, match="use a queue without a MultiKueue check"):
        KIND.document(Part(name="w", pod_set="main", metadata=b"{}", spec=b"{}"), placing)


def test_kinds_are_found_by_name_and_by_resource() -> None:
    assert [kind.name for kind in SERVED] == ["PodGroup", "Pod", "Job", "Workload"]
    assert set(SERVED.resources) == {POD, JOB, WORKLOAD}
    assert (SERVED.travelling, SERVED.makers) == ((POD, JOB), (JOB,))
    assert SERVED.any_of(NODE) is None
    assert SERVED.named("RayCluster") is None
