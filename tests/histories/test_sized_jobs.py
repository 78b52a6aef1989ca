"""Scripted histories of elastic Jobs on the real cores: 3 -> 10 -> 4, whatever fails at each step (KEP-77).

The outside account (`SizeAccount`) judges each write: no more may run than is charged, and none of the first three pods
is ever touched while it grows.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gatelift_kube.values.resources import JOB, POD
from support.sim.history import ON_TERMINAL
from support.sim.sized_history import NAME, SizedHistory

STEPS = pytest.mark.parametrize("step", range(1, 25, 4))
"""Hundredths of a second after the user's change: the slice is made after one, the last pod is let go after twenty."""
QUEUES = pytest.mark.parametrize("queue", ["travels", "stays"])


def kill_the_agent(history: SizedHistory, cluster: str) -> None:
    history.kill_agent(cluster)


def kill_the_manager(history: SizedHistory, _: str) -> None:
    history.kill_leader()


def cut_it_off(history: SizedHistory, cluster: str) -> None:
    history.cut(cluster)
    history.passes(20.0)
    history.mend(cluster)


def lose_it(history: SizedHistory, cluster: str) -> None:
    history.cut(cluster)
    history.until_lost(cluster)
    history.passes(30.0)
    history.mend(cluster)


def break_its_stream(history: SizedHistory, cluster: str) -> None:
    history.cut(cluster)
    history.passes(2.0)
    history.mend(cluster)


BROKEN = pytest.mark.parametrize("broken", [kill_the_agent, kill_the_manager, break_its_stream, cut_it_off, lose_it])


@QUEUES
def test_sl_50_3_10_4(monkeypatch: pytest.MonkeyPatch, queue: str) -> None:
    """SL-50, MK-001, MK-015 to MK-020: only its cluster is asked, and its Job grows only then."""
    history = SizedHistory(monkeypatch, queue=queue)
    where = history.begins(3)
    history.resize(10)
    history.rests(10)
    history.account.first = set()
    history.resize(4)
    history.rests(4)
    assert [one[0] for one in history.slices()] == [1, 3], "lowered in place"
    others = [name for name in history.workers if name != where]
    assert not any(history.objects(name, JOB) or history.objects(name, POD) for name in others)


@STEPS
@BROKEN
def test_sl_54_a_growth_comes_to_its_end_whatever_breaks(
    monkeypatch: pytest.MonkeyPatch, step: int, broken: Callable[[SizedHistory, str], None]
) -> None:
    history = SizedHistory(monkeypatch)
    where = history.begins(3)
    history.resize(10)
    history.passes(step / 100)
    broken(history, where)
    history.rests(10, 600.0)


@STEPS
@BROKEN
def test_sl_54_a_shrink_comes_to_its_end_whatever_breaks(
    monkeypatch: pytest.MonkeyPatch, step: int, broken: Callable[[SizedHistory, str], None]
) -> None:
    history = SizedHistory(monkeypatch)
    where = history.begins(10, stops_in=5.0)
    history.account.first = set()
    history.resize(4)
    history.passes(step / 4)
    broken(history, where)
    history.rests(4, 600.0)


def test_sl_53_a_growth_waits_for_a_home_cluster_that_is_lost_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    history = SizedHistory(monkeypatch)
    where = history.begins(3)
    history.cut(where)
    history.until_lost(where)
    history.resize(10)
    history.until("it says so", lambda: history.messages() != [], 60.0)
    history.passes(30.0)
    assert history.messages() == [f'It grows what runs on cluster "{where}", and waits for that: not connected']
    assert history.slices() == [(1, 3, 3, ""), (2, 10, None, "")]
    assert (history.running(), history.leader.charges("travels")) == (3, 600)
    history.mend(where)
    history.rests(10)


def test_sl_53_a_shrink_lowers_the_count_and_keeps_the_charge_while_its_cluster_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """SL-53, SL-41: never at the mere change of a count, nor by time (D5)."""
    history = SizedHistory(monkeypatch)
    where = history.begins(10)
    history.cut(where)
    history.until_lost(where)
    history.account.first = set()
    history.resize(4)
    history.passes(600.0)
    assert history.slices() == [(2, 4, 10, "")]
    assert (history.running(), history.leader.charges("travels")) == (10, 2000)
    history.mend(where)
    history.rests(4)


def test_sl_53_both_wait_and_both_are_done_on_return(monkeypatch: pytest.MonkeyPatch) -> None:
    """Down and up while it is cut off: no pod of those that are wanted all the time is touched."""
    history = SizedHistory(monkeypatch)
    where = history.begins(6)
    history.cut(where)
    history.until_lost(where)
    history.resize(4)
    history.passes(20.0)
    history.resize(9)
    history.passes(20.0)
    history.account.first = set()
    history.mend(where)
    history.rests(9)
    assert len(history.account.began & history.account.pods.keys()) >= 4


def test_sl_55_pods_that_end_during_a_cut_are_replaced_and_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    history = SizedHistory(monkeypatch)
    where = history.begins(3)
    history.resize(10)
    history.rests(10)
    history.cut(where)
    history.until_lost(where)
    history.account.first = set()
    before = set(history.account.pods)
    for pod in history.objects(where)[:4]:
        history.delete(where, POD, pod["metadata"]["name"])
    history.until("ten run again", lambda: history.running() == 10 and len(before & history.account.pods.keys()) == 6)
    history.mend(where)
    history.passes(60.0)
    history.rests(10)


@pytest.mark.parametrize("again", range(1, 13))
def test_sl_56_an_agent_that_missed_its_size_hears_it_again(monkeypatch: pytest.MonkeyPatch, again: int) -> None:
    """SL-56, SL-43: its process dies on the way, and the next one knows the mark of before, or the new one."""
    history = SizedHistory(monkeypatch)
    where = history.begins(3)
    history.resize(10)
    history.agent(where).dies_after_write(again)
    history.passes(10.0)
    if not history.world.alive(where):
        history.world.start_agent(where)
    history.rests(10, 400.0)


def waiting(history: SizedHistory) -> None:
    """Let another user queue a Job that has room only once most of the elastic one is gone."""
    history.job("other", history.queue, pods=6, cpu="200m", seconds=600.0)
    history.passes(10.0)
    assert not history.shows("other", "Admitted", "Job")


@QUEUES
@pytest.mark.parametrize("rule", ["", ON_TERMINAL], ids=["OnTerminating", "OnTerminal"])
def test_sl_21_sl_22_who_waits_gets_the_room_by_the_release_rule(
    monkeypatch: pytest.MonkeyPatch, queue: str, rule: str
) -> None:
    """SL-20, SL-21, SL-22 (#6384): pods take 25 s to stop; by `OnTerminal` nobody gets their room before."""
    history = SizedHistory(monkeypatch, queue=queue, file=rule)
    history.begins(10, stops_in=25.0)
    waiting(history)
    history.account.first = set()
    history.resize(4)
    history.passes(15.0)
    assert history.shows("other", "Admitted", "Job") is not bool(rule)
    history.until("it is admitted", lambda: history.shows("other", "Admitted", "Job"), 60.0)
    assert history.account.may_run() <= history.account.charged()
    history.rests(4)
    assert history.slices() == [(2, 4, 4, "")], "the same Workload with a lower count"


@QUEUES
def test_sl_23_to_zero_and_up_again(monkeypatch: pytest.MonkeyPatch, queue: str) -> None:
    history = SizedHistory(monkeypatch, queue=queue)
    history.begins(3)
    history.account.first = set()
    history.resize(0)
    history.rests(0)
    assert not history.shows(NAME, "Finished", "Job")
    history.resize(5)
    history.rests(5)
    history.resize(0)
    history.rests(0)


@QUEUES
def test_sl_24_what_is_reclaimed_is_not_charged_again_with_another_size(
    monkeypatch: pytest.MonkeyPatch, queue: str
) -> None:
    """SL-24: no more are charged than are left to run, and in the end none."""
    history = SizedHistory(monkeypatch, queue=queue)
    history.begins(3, runs=20.0, completions=12)
    history.account.first = set()
    history.resize(6)
    history.until("it is over", lambda: history.shows(NAME, "Finished", "Job"), 300.0)
    assert history.leader.charges(queue) == 0


@QUEUES
def test_ej_049_an_indexed_job_with_indexes_that_are_done_is_lowered(
    monkeypatch: pytest.MonkeyPatch, queue: str
) -> None:
    """EJ-049, SL-25: completions go down with its pods; it comes to its end, and nothing is charged then."""
    history = SizedHistory(monkeypatch, queue=queue)
    history.begins(6, runs=20.0, completions=6, completionMode="Indexed")
    history.account.first = set()
    history.passes(5.0)
    assert history.home.change(JOB, NAME, {"spec": {"parallelism": 4, "completions": 4}}) is not None
    history.until("four run", lambda: history.account.may_run() == 4, 60.0)
    history.until("it is over", lambda: history.shows(NAME, "Finished", "Job"), 300.0)
    assert (history.account.may_run(), history.leader.charges(queue)) == (0, 0)
    assert [one[:2] for one in history.slices()] == [(2, 4)]


def test_sl_14_ten_changes_in_a_moment_come_to_the_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    history = SizedHistory(monkeypatch)
    history.begins(3)
    for pods in (5, 8, 4, 9, 6, 10, 3, 7, 12, 10):
        history.resize(pods)
        history.passes(0.03)
    history.account.first = set()
    history.rests(10)
    assert len(history.account.began & history.account.pods.keys()) == 3
