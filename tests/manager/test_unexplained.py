"""What is charged to a cluster and unknown to who serves it now: who counts as that, and what is said of how many."""

from __future__ import annotations

import dataclasses

import pytest

from gatelift.core.api.user_objects import UserObject
from gatelift.core.clusters.link_values import ClusterView, LinkState
from gatelift.core.clusters.unheard import NOTHING_UNDECIDED
from gatelift.core.dispatching import endings, unexplained
from gatelift.core.records.attempt_states import AttemptState
from gatelift.core.records.attempts import Attempt
from gatelift.core.records.gone import Evidence
from gatelift.core.state.core import Core
from gatelift.core.state.predecessors import Memory
from gatelift_kube.values.resources import ObjectKey
from gatelift_wire.values.keys import PlacementKey
from support.manager.world import World

RESTORED = ClusterView(name="a", open=True, session=5, resynced_session=5, unproven=True, unproven_through=4)
"""Found in doubt in session 5: what was placed in one up to 4 it cannot be expected to know."""
PROVEN = dataclasses.replace(RESTORED, unproven=False, unproven_through=0)


class OneCluster:
    """The links, as far as the module asks them: one cluster, in the state that the test says."""

    def __init__(self, view: ClusterView | None) -> None:
        self.view = view

    def state(self, cluster: str) -> ClusterView | None:
        return self.view if cluster == "a" else None


def placed(name: str, state: AttemptState = AttemptState.LOST, *, heard: int = 0, listed: int = 0) -> Attempt:
    attempt = Attempt(uid=name, workload=ObjectKey("team", name), epoch=1)
    attempt.state, attempt.cluster, attempt.heard_session, attempt.listed_session = state, "a", heard, listed
    return attempt


def a_core(view: ClusterView | None, *attempts: Attempt, remembered: tuple[int, ...] = ()) -> Core:
    """Return a core that has these placements on `a`, and remembers vanished ones, heard of last in these sessions."""
    core = World().machine.core
    core.links = OneCluster(view)  # type: ignore[assignment]
    core.rebuilt = True
    for attempt in attempts:
        core.begin_attempt(attempt)
        core.placements.put("a", attempt.uid, "team")
    for number, session in enumerate(remembered):
        place = UserObject(kind="Pod", namespace="team", name=f"gone-{number}")
        core.predecessors.put(
            "a", Memory(place, PlacementKey(f"gone-{number}", 1), session, Evidence(written_revision=1))
        )
    core.sessions.resync("a", 5)
    return core


@pytest.mark.parametrize(
    ("attempt", "view", "is_so"),
    [
        pytest.param(placed("w", heard=3), RESTORED, True, id="heard of before the doubt alone"),
        pytest.param(placed("w", heard=5), RESTORED, False, id="heard of since"),
        pytest.param(placed("w", heard=3, listed=5), RESTORED, False, id="listed since"),
        pytest.param(placed("w", heard=5, listed=3), RESTORED, False, id="listed before, heard of since"),
        pytest.param(placed("w"), RESTORED, True, id="never heard of"),
        pytest.param(placed("w"), PROVEN, False, id="nobody doubts who serves the cluster"),
    ],
)
def test_hd_121_unexplained_is_what_nobody_in_doubt_has_shown(attempt: Attempt, view: ClusterView, is_so: bool) -> None:
    assert unexplained.is_unexplained(attempt, view) is is_so


@pytest.mark.parametrize(
    ("view", "resynced", "is_so"),
    [
        pytest.param(RESTORED, 5, True, id="of the present session"),
        pytest.param(dataclasses.replace(RESTORED, resynced_session=6), 5, False, id="a newer one is on its way"),
        pytest.param(dataclasses.replace(RESTORED, open=False), 5, False, id="closed"),
    ],
)
def test_hd_121_an_inventory_counts_as_compared_in_its_own_open_session(
    view: ClusterView, resynced: int, is_so: bool
) -> None:
    core = a_core(view)
    core.sessions.resync("a", resynced)
    assert unexplained.is_compared(core, view) is is_so


def test_hd_121_what_is_lost_and_what_is_remembered_from_before_the_doubt_is_counted() -> None:
    attempts = placed("one"), placed("two", AttemptState.RUNNING, heard=5)
    core = a_core(RESTORED, *attempts, remembered=(3, 4, 5))
    assert unexplained.count(core, "a") == 3


def test_hd_121_nothing_is_said_of_how_many_before_the_inventory_is_compared() -> None:
    assert unexplained.count(a_core(dataclasses.replace(RESTORED, resynced_session=6), placed("one")), "a") is None
    assert unexplained.count(a_core(None, placed("one")), "a") is None


def test_hd_121_where_nobody_is_in_doubt_nothing_waits_for_a_word() -> None:
    assert unexplained.count(a_core(PROVEN, placed("one"), remembered=(0,)), "a") == 0


def test_hd_121_a_further_inventory_may_decide_what_was_heard_of_since_the_doubt() -> None:
    attempts = placed("one"), placed("two", heard=5), placed("three", AttemptState.RUNNING, heard=5)
    assert unexplained.undecided(a_core(RESTORED, *attempts, remembered=(3, 5)), "a").placements == 2


def test_hd_121_a_further_inventory_may_decide_all_that_is_lost_where_nobody_is_in_doubt() -> None:
    assert unexplained.undecided(a_core(PROVEN, placed("one"), placed("two"), remembered=(0, 5)), "a").placements == 4
    assert unexplained.undecided(a_core(None, placed("one")), "a") == NOTHING_UNDECIDED


def test_hd_122_a_persons_word_ends_nothing_before_the_inventory_was_compared() -> None:
    lost = placed("one", heard=3)
    doubted = dataclasses.replace(RESTORED, state=LinkState.CONNECTED, fenced_through=4, fenced_by="a person")
    core = a_core(doubted, lost)
    core.sessions.resync("a", 4)
    endings.fenced(core, lost)
    assert core.attempts["one"].state is AttemptState.LOST, "what is listed goes on"
    core.sessions.resync("a", 5)
    endings.fenced(core, lost)
    assert lost.state is AttemptState.ENDED


def test_hd_122_a_persons_word_about_a_lost_cluster_waits_for_no_inventory() -> None:
    lost = placed("one", heard=3)
    core = a_core(ClusterView(name="a", state=LinkState.LOST, session=4, fenced_through=4, fenced_by="a person"), lost)
    endings.fenced(core, lost)
    assert lost.state is AttemptState.ENDED
