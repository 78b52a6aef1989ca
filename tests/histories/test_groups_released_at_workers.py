"""Scripted histories: quota of members at a worker comes back by its agent's word, as they are over or are stopped."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift_kinds.registry import WITH_GROUPS
from gatelift_kube.values.resources import CLUSTER_QUEUE, POD, WORKLOAD
from support.manager.group_world import GROUP
from support.sim import groups
from support.sim.agent import SimAgent
from support.sim.groups import run_there
from support.sim.history import History
from support.sim.manager import SimManager
from support.sim.objects import is_released

ABC = ["a", "b", "c"]
TERMINAL = {"gatelift.dev/release": "OnTerminal"}
PARTIAL = TERMINAL | {"gatelift.dev/release-partial": "true"}


@pytest.fixture(autouse=True)
def with_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have managers and agents serve groups."""
    monkeypatch.setattr(SimManager, "kinds", WITH_GROUPS)
    monkeypatch.setattr(SimAgent, "registry", WITH_GROUPS)


def a_world(annotations: dict[str, str] | None = None, **told: Any) -> History:
    history = History(shown=False, **told)
    history.edit("home", CLUSTER_QUEUE, "travels", {"metadata": {"annotations": annotations or {}}})
    return history


def placed(history: History, *, takes: tuple[float, float, float] = (0.0, 0.0, 0.0), seconds: float = 0.0) -> str:
    """Have a group of three run at a worker, which take so long to stop; `a` succeeds after so many seconds, if any."""
    for name, long in zip(ABC, takes, strict=True):
        groups.make(history, name, takes=long, seconds=seconds if name == "a" else 0.0, grace=90)
    history.until("all three run", lambda: run_there(history) == ABC, 60.0)
    return groups.cluster_of(history)


def charges(history: History) -> int:
    return history.leader.charges("travels")


def reclaimed(history: History) -> list[int]:
    return [one["count"] for one in groups.workload(history)["status"].get("reclaimablePods", [])]


def deactivate(history: History) -> None:
    history.edit("home", WORKLOAD, GROUP, {"spec": {"active": False}})


def one_is_over(history: History) -> str:
    cluster = placed(history, seconds=10.0)
    history.until("one has succeeded", lambda: groups.phases(history)["a"] == "Succeeded", 60.0)
    history.passes(2.0)
    assert (charges(history), reclaimed(history)) == (1000, [1])
    return cluster


def lead_anew(history: History) -> None:
    history.kill_leader()
    history.until("another leads", history.leads, 120.0)


@pytest.mark.parametrize("away", [False, True])
def test_re_10_another_leader_counts_as_much_from_its_first_moment(*, away: bool) -> None:
    history = a_world()
    cluster = one_is_over(history)
    if away:
        history.cut(cluster)
    lead_anew(history)
    for _ in range(60):
        assert charges(history) == 1000
        history.passes(0.5)
    history.mend(cluster)
    for _ in range(60):
        assert charges(history) == 1000
        history.passes(0.5)
    assert reclaimed(history) == [1]


@pytest.mark.parametrize("another_leads", [False, True])
@pytest.mark.parametrize("away", [False, True])
def test_hd_369_an_end_that_somebody_shows_at_home_frees_nothing_of_what_runs(
    *, another_leads: bool, away: bool
) -> None:
    history = a_world()
    cluster = placed(history)
    if away:
        history.cut(cluster)
    history.world.members.forged.add("a")
    history.edit("home", POD, "a", {"status": {"phase": "Succeeded"}}, "status")
    if another_leads:
        lead_anew(history)
    for _ in range(60):
        assert charges(history) == 1500
        history.passes(0.5)
    history.mend(cluster)
    for _ in range(60):
        assert charges(history) == 1500
        history.passes(0.5)
    assert run_there(history) == ABC
    assert groups.phases(history)["a"] == "Running"


def test_qr_1_8_of_a_group_that_is_evicted_there_all_is_free_once_each_deletion_is_accepted() -> None:
    history = a_world()
    placed(history, takes=(20.0, 30.0, 40.0))
    deactivate(history)
    history.until("it is free", lambda: charges(history) == 0, 5.0)
    assert (run_there(history), is_released(groups.workload(history))) == (ABC, True)


def test_qr_4_8_one_member_that_runs_there_keeps_the_quota_of_all() -> None:
    """QR-8."""
    history = a_world(TERMINAL)
    placed(history, takes=(5.0, 5.0, 40.0))
    deactivate(history)
    history.until("one is left", lambda: run_there(history) == ["c"], 20.0)
    history.passes(10.0)
    assert (charges(history), is_released(groups.workload(history))) == (1500, False)
    history.until("it has stopped", lambda: charges(history) == 0, 60.0)
    assert run_there(history) == []


def test_qr_7_8_where_its_queue_says_partial_each_member_gives_its_own_share_back_as_it_is_over_there() -> None:
    history = a_world(PARTIAL)
    placed(history, takes=(5.0, 20.0, 40.0))
    deactivate(history)
    history.until("one is over", lambda: run_there(history) == ["b", "c"], 20.0)
    history.until("its share is free", lambda: charges(history) == 1000, 2.0)
    groups.make(history, "d")
    assert charges(history) == 1000, "who comes now runs in no epoch before the next"
    history.until("another one is over", lambda: run_there(history) == ["c"], 30.0)
    history.until("its share is free, too", lambda: charges(history) == 500, 2.0)
    assert not is_released(groups.workload(history))
    history.until("all is free", lambda: charges(history) == 0, 60.0)
    assert run_there(history) == []


@pytest.mark.parametrize("who", ["leader", "agent", "cut"])
def test_qr_7_8_no_more_is_freed_than_is_known_to_be_over_whoever_begins_anew(who: str) -> None:
    history = a_world(PARTIAL)
    cluster = placed(history, takes=(5.0, 60.0, 80.0))
    deactivate(history)
    history.until("one is over", lambda: run_there(history) == ["b", "c"], 20.0)
    if who == "leader":
        lead_anew(history)
    elif who == "agent":
        history.kill_agent(cluster)
    else:
        history.cut(cluster)
        history.until_lost(cluster)
        history.mend(cluster)
    while run_there(history):
        assert charges(history) >= 500 * len(run_there(history))
        history.passes(0.5)
    history.until("all is free", lambda: charges(history) == 0, 120.0)


def test_qr_7_8_who_was_removed_by_force_keeps_its_share_until_its_node_is_heard_of() -> None:
    """P10: it may run on."""
    history = a_world(PARTIAL)
    cluster = placed(history, takes=(60.0, 60.0, 60.0))
    deactivate(history)
    history.passes(3.0)
    history.edit(cluster, POD, "a", {"metadata": {"finalizers": []}})
    history.cluster(cluster).delete(POD, "a", grace_seconds=0)
    history.passes(1.0)
    assert charges(history) == 1500


@pytest.mark.parametrize("after", [0.0, 0.1, 0.5, 1.0, 2.0])
def test_hd_370_a_member_deleted_before_a_new_leader_has_said_who_is_there_leaves_all_the_same(after: float) -> None:
    history = a_world()
    placed(history)
    lead_anew(history)
    history.passes(after)
    history.delete("home", POD, "a")
    history.until("it has gone", lambda: groups.names(history) == ["b", "c"], 120.0)
    assert run_there(history) == ["b", "c"]


def test_hd_369_what_its_worker_says_to_run_stays_at_home_until_it_has_stopped_there() -> None:
    history = a_world()
    placed(history, takes=(20.0, 0.0, 0.0))
    history.world.members.forged.add("a")
    history.edit("home", POD, "a", {"status": {"phase": "Succeeded"}}, "status")
    lead_anew(history)
    history.until("it is shown as it is", lambda: groups.phases(history)["a"] == "Running", 60.0)
    history.delete("home", POD, "a")
    history.passes(10.0)
    assert run_there(history) == ABC
    assert groups.names(history) == ABC
    history.until("it has gone", lambda: groups.names(history) == ["b", "c"], 60.0)
    assert run_there(history) == ["b", "c"]


def test_hd_432_what_each_that_succeeded_there_gave_back_stays_given_back_as_the_last_of_them_ends() -> None:
    """Others were granted it by then: charged once more, a queue had admitted more than it has."""
    history = a_world()
    for name, seconds in zip(ABC, (5.0, 6.0, 6.0), strict=True):
        groups.make(history, name, seconds=seconds)
    history.until("all three run", lambda: run_there(history) == ABC, 60.0)
    seen = [charges(history)]
    while not groups.condition(history, "Finished")[0]:
        history.passes(0.01)
        seen.append(charges(history))
    assert seen == sorted(seen, reverse=True)
    assert set(seen) == {1500, 1000, 500, 0}
