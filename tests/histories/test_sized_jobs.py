"""Scripted histories of elastic Jobs on the real cores: 3 -> 10 -> 4, whatever fails at each step (KEP-77).

The outside account (`SizeAccount`) judges each write: no more may run than is charged, and none of the first three pods
is ever touched while it grows.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gatelift_kube.values.resources import JOB, POD
from support.sim.sized_history import SizedHistory

STEPS = pytest.mark.parametrize("step", range(1, 25, 2))
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
