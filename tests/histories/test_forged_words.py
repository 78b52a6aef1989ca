"""Scripted histories (HD-230, HD-231): what is forged beside a word, or as one, under a leader that knows better."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gatelift_kube.values.resources import POD
from histories.test_forged_sessions import numbers, say_fenced, write
from histories.test_recovery import cordon, recovered, restored_before_one_ran, say, until_found
from histories.test_restored_again import fenced_before_the_backup, waits_for
from support.sim.history import History


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


def never_fenced() -> History:
    return restored_before_one_ran(for_good=False)


@pytest.mark.parametrize(
    ("begins", "beside"),
    [
        pytest.param(never_fenced, {}, id="never fenced"),
        pytest.param(fenced_before_the_backup, {}, id="fenced in the backup"),
        pytest.param(never_fenced, {"term": 0}, id="with a lower term"),
        pytest.param(never_fenced, {"term": 1000}, id="with a higher term"),
        pytest.param(never_fenced, {"session": 0, "fencedAfterThrough": 0}, id="with a lower session"),
    ],
)
def test_hd_231_no_word_for_a_recovery_is_forged_under_the_leader_that_waits_for_it(
    begins: Callable[[], History], beside: dict[str, int]
) -> None:
    """The symptom: recovered within seconds, and `Pod team/one may run more than once: a (1), b (1000)`."""
    history = begins()
    finding = until_found(history)
    say(history, finding)
    cordon(history, "b", on=False)
    waits_for(history, "a")
    true, term = numbers(history, "a"), history.status("a")["term"]
    assert term == history.leader.elector.term
    session = true["session"]
    forged: dict[str, int | str] = {"fencedAfter": finding.since, "fencedAfterThrough": session, **beside}
    write(history, "a", **forged)
    waits_for(history, "a")
    assert told(history)
    status = history.status("a")
    assert (numbers(history, "a"), status["term"]) == (true, term)
    assert (status.get("fencedAfter", ""), status.get("fencedAfterThrough", 0)) == ("", 0)
    history.delete("a", POD, "one")  # its machines are switched off, and a person says so
    history.passes(60.0)
    history.say_fenced("a", session)
    history.until("dispatch goes on", lambda: recovered(history))
    assert history.until_runs("one") == "b"
    status = history.status("a")
    assert (status["fencedAfter"], status["fencedAfterThrough"]) == (finding.since, session)
