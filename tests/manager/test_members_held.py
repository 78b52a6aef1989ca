"""A pod stays in the group that it runs for, whatever it says since, by what is known of Workloads (HD-422)."""

from __future__ import annotations

import json
from collections.abc import Sequence

import msgspec
import pytest

from gatelift.core.api.user_objects import names_of
from gatelift.core.records import record
from gatelift.core.records.knowledge import Knowledge
from gatelift.core.records.work import Owner
from gatelift_kinds.pod_group import document
from gatelift_kinds.registry import WITH_GROUPS
from gatelift_kube.objects.core import Pod
from gatelift_kube.objects.kueue import Workload, WorkloadSpec, WorkloadStatus
from gatelift_kube.objects.meta import ObjectMeta, OwnerReference
from gatelift_kube.values.resources import POD
from support.manager.builders import NAMESPACE
from support.manager.group_world import GROUP, K, a_member, pod_ref

OTHER = "other"


def take_pod(knowledge: Knowledge, name: str, group: str = GROUP, version: int = 1) -> None:
    """Take a version of a pod, whose UID is its name, that says it is of this group."""
    said = a_member(name, labels={f"{K}pod-group-name": group})
    said["metadata"] |= {"uid": name, "resourceVersion": str(version)}
    raw = json.dumps(said).encode()
    pod = msgspec.json.decode(raw, type=Pod)
    kind = WITH_GROUPS.of(POD, pod)
    assert kind is not None
    knowledge.put_owner(Owner(kind, pod, raw))


def take_workload(knowledge: Knowledge, names: Sequence[str], cluster: str = "a", version: int = 1) -> None:
    """Take a version of the group's Workload, which names these pods and was placed there."""
    meta = ObjectMeta(
        name=GROUP,
        namespace=NAMESPACE,
        uid="w",
        resource_version=str(version),
        annotations=document.own_marks(NAMESPACE, GROUP),
        owner_references=tuple(OwnerReference("v1", "Pod", each, each) for each in names),
    )
    seen = Workload(metadata=meta, spec=WorkloadSpec(), status=WorkloadStatus(cluster_name=cluster))
    names_said = names_of(WITH_GROUPS, seen)
    kind = WITH_GROUPS.of(POD, knowledge.owners[pod_ref("a")].object)
    assert len(names_said) == 1
    assert knowledge.put_workload(seen, (kind, record.read(seen, travels=True)), names_said)


def groups_of(knowledge: Knowledge) -> dict[str, str]:
    """Return of which group each pod is taken for."""
    return {ref.key.name: owner.workload.name for ref, owner in knowledge.owners.items()}


@pytest.fixture
def knowledge() -> Knowledge:
    """Return what is known of three pods of a group."""
    found = Knowledge(kinds=WITH_GROUPS)
    for name in "abc":
        take_pod(found, name)
    return found


def test_hd_422_a_pod_that_a_placed_workload_names_stays_in_its_group(knowledge: Knowledge) -> None:
    take_workload(knowledge, "abc")
    take_pod(knowledge, "b", OTHER, 2)
    assert groups_of(knowledge) == dict.fromkeys("abc", GROUP)


def test_hd_422_one_that_nobody_has_placed_goes_where_it_says(knowledge: Knowledge) -> None:
    take_workload(knowledge, "abc", cluster="")
    take_pod(knowledge, "b", OTHER, 2)
    assert groups_of(knowledge) == {"a": GROUP, "b": OTHER, "c": GROUP}


def test_hd_422_a_workload_that_has_a_winner_calls_its_pods_back_and_lets_them_go(knowledge: Knowledge) -> None:
    """Who leads next sees pods before Workloads, or that by which one got its winner."""
    take_pod(knowledge, "b", OTHER, 2)
    take_workload(knowledge, "abc", cluster="")
    assert (groups_of(knowledge)["b"], knowledge.take_moved()) == (OTHER, [])
    take_workload(knowledge, "abc", version=2)
    assert (groups_of(knowledge)["b"], len(knowledge.take_moved())) == (GROUP, 1)
    take_workload(knowledge, "abc", cluster="", version=3)
    assert (groups_of(knowledge)["b"], len(knowledge.take_moved())) == (OTHER, 1)


def test_hd_422_who_is_named_later_is_called_back_as_well(knowledge: Knowledge) -> None:
    """HD-439: of another version of a Workload only who is named since is looked up."""
    take_pod(knowledge, "c", OTHER, 2)
    take_workload(knowledge, "ab")
    assert groups_of(knowledge)["c"] == OTHER
    take_workload(knowledge, "abc", version=2)
    assert groups_of(knowledge) == dict.fromkeys("abc", GROUP)
