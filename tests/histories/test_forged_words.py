"""Scripted histories (HD-230): what is forged around a word, under a leader that has written there and knows better."""

from __future__ import annotations

import pytest

from histories.test_forged_sessions import numbers, say_fenced, write
from support.history import History


def told(history: History) -> bool:
    return any("is put back" in line and "which no leader has written" in line for line in history.world.time.trace)


def lost() -> tuple[History, str]:
    """Return a history in which `one` runs on a cluster that is lost, and its leader has written that."""
    history = History()
    history.pod("one")
    where = history.until_runs("one")
    history.passes(5.0)
    history.cut(where)
    history.until_lost(where)
    history.passes(10.0)
    return history, where


@pytest.mark.parametrize("lowered", [0, None], ids=["lower", "taken away"])
def test_hd_230_no_lower_term_makes_a_forged_word_count_under_the_leader_that_has_written_there(
    lowered: int | None,
) -> None:
    """The symptom: `(1, 'a') may run and is not charged`, and two runs; nothing was told, nothing put back."""
    history, where = lost()
    leader, true, term = history.leader, numbers(history, where), history.status(where)["term"]
    assert true["session"] > 0
    write(history, where, fencedThroughSession=true["session"], term=lowered)
    history.passes(120.0)
    assert history.runs("one") == {where}
    assert (numbers(history, where), history.status(where)["term"]) == (true, term)
    assert told(history)
    assert (history.leader, leader.elector.term) == (leader, term)
    say_fenced(history, where)  # which is still heard, when a person says it
    history.until("one runs elsewhere", lambda: bool(history.runs("one") - {where}))


def test_hd_230_a_lower_term_alone_is_written_over_and_ends_nothing() -> None:
    history, where = lost()
    term = history.status(where)["term"]
    write(history, where, term=0)
    history.until("it is written over", lambda: history.status(where)["term"] == term, 10.0)
    history.passes(60.0)
    history.mend(where)
    history.until_connected(where)
    assert history.runs("one") == {where}
    assert history.containers("one") == 1
