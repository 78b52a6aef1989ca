"""HD-184, HD-189: of whom a recovery asks, by name: bounded, known to the next leader; and what is no word to stop."""

from __future__ import annotations

import msgspec
import pytest

from gatelift.core.state.recovery_asked import ANY, ASKED_MAX, AskedClusters, served_by
from gatelift.core.state.recovery_values import ANNOTATION_STOP_UNEXPLAINED, Found, is_told_to_stop
from gatelift_kube.objects.gatelift import WorkerCluster


def cluster(name: str, uid: str = "", **status: object) -> WorkerCluster:
    document = {"metadata": {"name": name, "uid": uid or f"{name}-1"}, "status": {"session": 3, **status}}
    return msgspec.convert(document, WorkerCluster)


def test_hd_184_a_name_is_gone_when_its_object_is_another_one_or_none() -> None:
    asked = AskedClusters()
    asked.add(cluster("a"))
    asked.add(cluster("a", "a-2"))
    assert not asked.is_gone("a", cluster("a"))
    assert asked.is_gone("a", cluster("a", "a-2"))
    assert asked.is_gone("a", None)
    assert not asked.is_gone("b", None), "nobody has asked about it"


def test_hd_184_who_served_it_is_told_from_all_others() -> None:
    asked = AskedClusters()
    asked.add(cluster("a", clusterUid="c-1", agentLease="ns/agent"))
    asked.add(cluster("doubted", clusterUid="c-1", agentLease="ns/agent", replacedSession=2, settledSession=2))
    asked.add(cluster("silent"))
    assert asked.is_same("a", served_by("c-1", "ns/agent"))
    assert not asked.is_same("a", served_by("c-2", "ns/agent"))
    assert not asked.is_same("a", served_by("c-1", "ns/other"))
    assert not asked.is_same("doubted", served_by("c-1", "ns/agent")), "what ran there before it nobody can tell"
    assert not asked.is_same("silent", served_by("", ""))


def test_hd_184_local_and_what_had_no_session_are_not_asked_about() -> None:
    asked = AskedClusters()
    for found in (cluster("local"), cluster("new", session=0)):
        asked.add(found)
        assert not asked.gone(found)
    assert not asked.by_name


def test_hd_184_names_are_bounded_and_what_is_deleted_above_that_stands_under_one_for_all() -> None:
    asked = AskedClusters()
    for number in range(ASKED_MAX + 5):
        asked.add(cluster(f"c{number}"))
    assert len(asked.by_name) == ASKED_MAX
    assert asked.gone(cluster("c1")) == "c1"
    assert asked.gone(cluster(f"c{ASKED_MAX + 1}")) == ANY
    assert asked.gone(cluster(f"c{ASKED_MAX + 2}")) == ANY
    assert len(asked.by_name) == ASKED_MAX + 1
    assert asked.is_gone(ANY, None)


def test_hd_184_the_next_leader_recalls_what_is_written() -> None:
    asked = AskedClusters()
    asked.recall({"a": Found(uid="a-1", served="x"), ANY: Found(gone=True), "seen": Found(heard=True)})
    assert set(asked.by_name) == {"a", ANY}
    assert asked.is_same("a", "x")


@pytest.mark.parametrize(
    ("said", "session", "stops"),
    [("3", 3, True), ("2", 3, False), ("", 0, False), ("0", 0, False), ("x", 0, False), ("9" * 19, 3, False)],
)
def test_hd_189_a_word_to_stop_names_the_last_session_and_nothing_is_none(
    said: str, session: int, *, stops: bool
) -> None:
    """HD-189: an object that was made anew has had no session, and nobody has said anything of it."""
    found = cluster("a", session=session)
    if said:
        found.metadata.annotations[ANNOTATION_STOP_UNEXPLAINED] = said
    assert is_told_to_stop(found) is stops
