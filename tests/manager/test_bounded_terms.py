"""HD-207, HD-208: terms and counters that nobody can have come to, where they stand in WorkerClusters."""

from __future__ import annotations

import msgspec
import pytest

from gatelift.core.api.counter import Proof
from gatelift.core.clusters.link_values import CounterProved
from gatelift.core.state.recovery_values import (
    ANNOTATION_RECOVER,
    ANNOTATION_RECOVERY,
    COUNTER_FOUND_MAX,
    Finding,
    RecoverWord,
    Told,
    floors,
    told,
)
from gatelift_kube.deciding.election import COUNTED_MAX, COUNTER_MAX, FLOOR_MAX, TERM_BELIEVED_MAX, TERM_MAX
from gatelift_kube.objects.gatelift import WorkerCluster
from support.manager.builders import a_setting
from support.manager.world import a_world

SINCE = "2026-01-01T00:00:00Z"
TERMS = [TERM_BELIEVED_MAX + 1, TERM_MAX, 2**62]


def cluster(name: str, term: int, **annotations: str) -> WorkerCluster:
    metadata = {"name": name, "annotations": annotations}
    return msgspec.convert({"metadata": metadata, "spec": {}, "status": {"term": term}}, WorkerCluster)


def local(counter: int, term: int) -> WorkerCluster:
    finding = Finding(why="restored", since=SINCE, counter=counter, term=term)
    found = msgspec.json.encode(Told(finding=finding)).decode()
    said = msgspec.json.encode(RecoverWord(since=SINCE, epochs=1000)).decode()
    return cluster("local", 0, **{ANNOTATION_RECOVERY: found, ANNOTATION_RECOVER: said})


@pytest.mark.parametrize("term", TERMS)
def test_hd_207_a_term_in_a_cluster_that_nobody_can_have_come_to_is_no_floor(term: int) -> None:
    """The symptom: the next take wrote one more, which no API server takes, and it was never lowered again."""
    assert floors([cluster("a", 7), cluster("b", term)]) == (7, 0)
    assert floors([cluster("a", TERM_BELIEVED_MAX)]) == (TERM_BELIEVED_MAX, 0)


@pytest.mark.parametrize("term", TERMS)
def test_hd_207_nor_is_one_of_a_finding_and_the_finding_stands(term: int) -> None:
    found = told(local(5000, term))
    assert found is not None
    assert found.finding == Finding(why="restored", since=SINCE, counter=5000, term=0)
    assert floors([cluster("a", 7), local(5000, term)])[0] == 7


@pytest.mark.parametrize("term", TERMS)
def test_hd_207_a_term_that_an_agent_only_says_raises_no_recovery_above_what_can_be_written(term: int) -> None:
    world = a_world(a_setting())
    world.upcall(CounterProved(cluster="a", proof=Proof.RESTORED, counter=500, term=8))
    world.upcall(CounterProved(cluster="b", proof=Proof.RESTORED, counter=600, term=term))
    finding = world.machine.core.caution.recovery.finding
    assert finding is not None
    assert (finding.counter, finding.term) == (600, 8)


@pytest.mark.parametrize("counter", [COUNTER_FOUND_MAX, COUNTER_FOUND_MAX + 1, 2**62, 2**63])
def test_hd_208_what_a_recovery_goes_on_from_can_be_read_and_so_can_all_that_is_counted_after_it(counter: int) -> None:
    """The symptom: a finding above what is read was dropped, or its floor read as 0."""
    found = told(local(counter, 7))
    assert found is not None
    assert found.finding is not None
    assert found.finding.counter == COUNTER_FOUND_MAX
    floor = floors([local(counter, 7)])[1]
    assert found.finding.counter < floor <= FLOOR_MAX < COUNTER_MAX - COUNTED_MAX
