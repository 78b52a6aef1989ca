"""Sizes per pod set (KEP-77): a kind of two of them, each of which grows and shrinks by itself."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from gatelift_kinds.registry import BARE_KIND, JOB_KIND, POD_KIND, SERVED, WITH_SLICES, Registry
from gatelift_kinds.shared import markers, sizes, slices
from gatelift_kinds.shared.sizes import Size, SizeMark
from gatelift_kinds.shared.values import KindError, Placing, PodSetStart, Priority
from gatelift_kube.objects.core import Pod
from gatelift_kube.objects.kueue import Workload
from gatelift_sandbox.embedded.patching import json_patch
from gatelift_wire.values.keys import PlacementKey
from support.toys.elastic_training.kind import ElasticTrainingKind
from support.toys.training.kind import TrainingKind
from support.toys.training.objects import TRAINING, Training, a_group

KIND = ElasticTrainingKind()
Json = dict[str, Any]


def a_training(leader: int = 1, workers: int = 3) -> Json:
    notes = {markers.ELASTIC_JOB: "true"}
    spec = {"leader": a_group(cpu="2", replicas=leader), "workers": a_group(replicas=workers)}
    meta = {"name": "train", "namespace": "ns", "uid": "u", "resourceVersion": "1", "generation": 1}
    metadata = {**meta, "labels": {markers.QUEUE_NAME: "q"}, "annotations": notes}
    return {"apiVersion": TRAINING.api_version, "kind": TRAINING.kind, "metadata": metadata, "spec": spec}


def typed(document: Json) -> Training:
    return msgspec.convert(document, Training)


def raw(document: Json) -> bytes:
    return msgspec.json.encode(document)


def at_worker(leader: int = 1, workers: int = 3) -> Json:
    user = a_training(leader=5, workers=9)
    counts = {"leader": leader, "workers": workers}
    starts = tuple(PodSetStart(pod_set=name, count=count) for name, count in counts.items())
    placing = Placing(key=PlacementKey("wl", 1), origin="home", namespace="ns", starts=starts, size=1)
    (part,) = KIND.parts(typed(user), raw(user), counts)
    made: Json = json.loads(KIND.document(part, placing))
    made["metadata"] |= {"uid": "uid-w", "resourceVersion": "9"}
    return made


def a_member(name: str, pod_set: str, *, gated: bool = True) -> Pod:
    gates = [{"name": markers.ELASTIC_JOB}] if gated else []
    owner = {"apiVersion": TRAINING.api_version, "kind": TRAINING.kind, "name": "train", "uid": "uid-w"}
    meta = {"name": name, "uid": name, "labels": {markers.POD_SET: pod_set}}
    document = {
        "metadata": {**meta, "ownerReferences": [{**owner, "controller": True}]},
        "spec": {"schedulingGates": gates},
        "status": {"phase": "Pending" if gated else "Running"},
    }
    return msgspec.convert(document, Pod)


def test_sl_04_its_slices_have_both_pod_sets_and_each_count_goes_its_own_way() -> None:
    user = a_training()
    first = json.loads(KIND.workload_document(typed(user), raw(user), Priority()))
    first["metadata"] |= {"uid": "w-1", "resourceVersion": "1"}
    current = msgspec.convert(first, Workload)
    assert slices.size_of(current).counts == KIND.wanted(typed(user)) == {"leader": 1, "workers": 3}
    wanted = KIND.wanted(typed(a_training(leader=2, workers=1)))
    lowered = sizes.lowered(sizes.counts_of(current), wanted)
    assert (lowered, sizes.is_raised(lowered, wanted)) == ({"leader": 1, "workers": 1}, True)
    size = Size(number=2, counts=wanted)
    after = json.loads(slices.following(current, raw(first), slices.NextSlice(name="next", size=size, epoch=1)))
    assert [(one["name"], one["count"]) for one in after["spec"]["podSets"]] == [("leader", 2), ("workers", 1)]
    assert KIND.same_shape(current, typed(a_training(leader=2)))


def test_sl_05_both_are_made_gated_and_stay_so_when_it_is_lifted() -> None:
    made = at_worker()
    assert KIND.mark(typed(made)) == SizeMark(number=1, counts={"leader": 1, "workers": 3})
    lifted = json_patch(made, json.loads(KIND.lift_patch(typed(made))))
    for name in ("leader", "workers"):
        assert lifted["spec"][name]["template"]["spec"]["schedulingGates"] == [{"name": markers.ELASTIC_JOB}]
    assert KIND.lifted(typed(lifted))
    assert lifted["spec"]["workers"]["replicas"] == 3, "as many as are granted, and not as many as are wanted"


def test_sl_25_one_patch_sets_both_counts_with_the_mark() -> None:
    made = at_worker()
    size = Size(number=2, counts={"leader": 2, "workers": 1})
    body = KIND.size_patch(typed(made), size)
    assert body is not None
    after = json_patch(made, json.loads(body))
    assert (after["spec"]["leader"]["replicas"], after["spec"]["workers"]["replicas"]) == (2, 1)
    mark = KIND.mark(typed(after))
    assert mark is not None
    assert mark.size == size
    assert KIND.size_patch(typed(after), size) is None


def test_sl_25_pods_wait_and_are_too_many_in_their_own_pod_set() -> None:
    made = typed(at_worker())
    pods = [a_member("l", "leader"), a_member("w1", "workers"), a_member("w2", "workers", gated=False)]
    found = KIND.gated_pods(made, pods)
    assert {name: [one.metadata.name for one in each] for name, each in found.items()} == {
        "leader": ["l"],
        "workers": ["w1"],
    }
    surplus = KIND.surplus(made, pods, {"leader": 1, "workers": 0})
    assert [(one.pod_set, one.going_on, one.holding) for one in surplus] == [("leader", 0, 0), ("workers", 1, 1)]


@pytest.mark.parametrize("kind", [POD_KIND, JOB_KIND, BARE_KIND, TrainingKind()], ids=lambda kind: kind.name)
def test_sl_03_a_kind_that_says_nothing_of_sizes_has_no_elastic_objects(kind: Any) -> None:
    made = typed(at_worker())
    assert not kind.gated(made)
    assert not kind.resizes(made)
    assert kind.mark(made) is None
    for asked in (kind.wanted, kind.slice_name):
        with pytest.raises(KindError, match="nothing of this kind is elastic"):
            asked(made)


def test_sl_03_what_is_served_has_no_elastic_kind_and_the_registry_for_tests_differs_in_nothing_else() -> None:
    assert [each.name for each in WITH_SLICES] == [each.name for each in SERVED]
    others = [(a, b) for a, b in zip(WITH_SLICES, SERVED, strict=True) if a is not b]
    assert [b for _, b in others] == [JOB_KIND]
    registry = Registry(POD_KIND, JOB_KIND, KIND, BARE_KIND)
    assert registry.of(TRAINING, typed(a_training())) is KIND
