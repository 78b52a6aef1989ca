"""What is remembered of vanished placements: bounded, and never forgotten for room (HD-41)."""

from __future__ import annotations

from gatelift.core.api.user_objects import UserObject
from gatelift.core.clusters.cluster_facts import Facts
from gatelift.core.clusters.cluster_status import differs, predecessors
from gatelift.core.clusters.foreign_runs import ANY
from gatelift.core.records.gone import Evidence
from gatelift.core.state.predecessors import REMEMBERED_MAX, Memory, Predecessors
from gatelift_kube.objects.gatelift import Predecessor, WorkerCluster, WorkerClusterStatus
from gatelift_wire.values.keys import PlacementKey

FACTS = Evidence(written_revision=1)


def a_memory(number: int) -> Memory:
    return Memory(UserObject("Job", "team", f"j{number}"), PlacementKey(f"w-{number}", 1), 3, FACTS)


def a_predecessor(number: int) -> Predecessor:
    return Predecessor(kind="Job", namespace="team", name=f"j{number}", workload_uid=f"w-{number}", epoch=1, session=3)


def test_hd_41_more_than_are_remembered_are_remembered_as_one_that_stands_for_all_objects() -> None:
    memory = Predecessors()
    for number in range(REMEMBERED_MAX + 10):
        memory.put("a", a_memory(number))
    assert memory.count("a") == REMEMBERED_MAX + 1
    assert memory.at(UserObject("Job", "elsewhere", "never-placed")) == (("a", PlacementKey(ANY.name, 1)),)
    memory.drop("a", PlacementKey(ANY.name, 1))
    assert memory.at(UserObject("Job", "elsewhere", "never-placed")) == ()
    assert memory.at(UserObject("Job", "team", "j0")) == (("a", PlacementKey("w-0", 1)),)


def test_nothing_is_kept_of_what_has_ended_but_that_it_has() -> None:
    memory = Predecessors()
    memory.put("a", a_memory(1))
    assert memory.drop("a", PlacementKey("w-1", 1)) is not None
    assert memory.drop("a", PlacementKey("w-1", 1)) is None
    assert (memory.by_cluster, memory.by_place) == ({}, {})
    assert list(memory.ended) == [("a", PlacementKey("w-1", 1))]


def test_a_later_session_of_a_known_placement_is_noted_and_never_lowered() -> None:
    memory = Predecessors()
    memory.put("a", a_memory(1))
    later = a_memory(1)
    later.session = 7
    assert not memory.put("a", later)
    assert not memory.put("a", a_memory(1))
    assert memory.by_cluster["a"][PlacementKey("w-1", 1)].session == 7


def test_what_an_earlier_leader_wrote_stays_in_the_status_until_it_is_known_to_be_over() -> None:
    found = WorkerCluster(status=WorkerClusterStatus(predecessors=(a_predecessor(1), a_predecessor(2))))
    facts = Facts(predecessors=(a_predecessor(3),))
    assert predecessors(found, facts) == (a_predecessor(3), a_predecessor(1), a_predecessor(2))
    facts.predecessors_over = frozenset({PlacementKey("w-1", 1)})
    assert predecessors(found, facts) == (a_predecessor(3), a_predecessor(2))
    assert differs(found, facts)
    assert predecessors(found, Facts()) == found.status.predecessors
