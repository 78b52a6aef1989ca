"""HD-180: what persons said before a restore says nothing of what it lost: of a cluster, or of an earlier restore."""

from __future__ import annotations

import pytest

from gatelift.core.state.recovery_values import RecoveryStage
from gatelift_kube.values.resources import POD
from histories.test_recovery import (
    cordon,
    enrol_another,
    found,
    recovered,
    say,
    settled,
    until_found,
    waits_for_a_word_about_the_former,
)
from support.sim.history import History
from support.sim.restoring import Backup, backup, restore


def fenced_before_the_backup() -> History:
    """Return a restored history: a was fenced in the backup and `one` waited; it ran on a since, which is cut off."""
    history = History()
    for name in ("a", "b"):
        cordon(history, name)
    history.pod("one")
    history.passes(5.0)
    history.cut("a")
    history.until_lost("a")
    history.say_fenced("a")
    history.passes(5.0)
    kept = backup(history)
    history.mend("a")
    history.until_connected("a")
    cordon(history, "a", on=False)
    assert history.until_runs("one") == "a"
    history.passes(90.0)
    history.cut("a")
    restore(history, kept)
    return history


def waits_for(history: History, cluster: str) -> None:
    """Hold that nothing is placed before that cluster is heard or declared fenced anew, and that people read so."""
    history.passes(150.0)
    assert history.runs("one") == {cluster}
    assert found(history).stage is RecoveryStage.WAITING
    waits = history.leader.machine.core.caution.halted
    assert f"waits for {cluster} to say what runs there, or to be declared fenced" in waits


def test_hd_180_a_word_of_before_the_backup_does_not_answer_for_what_ran_there_since() -> None:
    """HD-180: the same session is named by both words; only the one that knows of the restore counts."""
    history = fenced_before_the_backup()
    session = history.status("a")["session"]
    assert history.status("a")["fencedThroughSession"] == session
    finding = until_found(history)
    say(history, finding)
    cordon(history, "b", on=False)
    waits_for(history, "a")
    history.kill_leader()
    history.until("another leads", history.leads)
    waits_for(history, "a")
    history.delete("a", POD, "one")  # its machines are switched off
    history.passes(60.0)
    history.say_fenced("a", session)
    history.until("dispatch goes on", lambda: recovered(history))
    assert history.until_runs("one") == "b"
    status = history.status("a")
    assert (status["fencedAfter"], status["fencedAfterThrough"]) == (finding.since, session)


def test_hd_180_a_cluster_that_was_fenced_in_the_backup_answers_itself_when_it_is_back() -> None:
    history = fenced_before_the_backup()
    say(history, until_found(history))
    cordon(history, "b", on=False)
    waits_for(history, "a")
    history.mend("a")
    history.until("dispatch goes on", lambda: recovered(history))
    history.passes(100.0)
    assert history.runs("one") == {"a"}


def test_hd_180_another_cluster_under_its_name_is_asked_about() -> None:
    """HD-180: the word of before the backup covers the sessions before the doubt, and not what was lost."""
    history = fenced_before_the_backup()
    history.world.net.sever("a")
    enrol_another(history)
    say(history, until_found(history))
    history.until("the new cluster has listed what it has", lambda: settled(history))
    waits_for_a_word_about_the_former(history)


def fenced_after_a_restore(*, said: bool) -> tuple[History, Backup]:
    """Return a history with a backup of a recovery, b being declared fenced after that restore; `one` ran on b since.

    `said`: it waited for a in the backup, else for a person's word to go on.
    """
    history = History(shown=False)
    for name in ("a", "b"):
        cordon(history, name)
    history.passes(20.0)
    first = backup(history)
    cordon(history, "a", on=False)
    history.pod("other", seconds=5.0)
    history.passes(40.0)
    restore(history, first)
    finding = until_found(history)
    history.pod("one")
    history.cut("b")
    history.until_lost("b")
    history.say_fenced("b")
    history.cut("a")
    history.passes(5.0)
    second = backup(history)
    say(history, finding)
    history.until("somebody leads", history.leads)
    history.passes(30.0)
    if said:
        second = backup(history)
        assert found(history).stage is RecoveryStage.WAITING
    assert history.status("b")["fencedAfter"] == finding.since
    history.mend("b")
    history.until_connected("b")
    history.mend("a")
    history.until("the first recovery is over", lambda: recovered(history))
    cordon(history, "a")
    cordon(history, "b", on=False)
    assert history.until_runs("one") == "b"
    history.passes(60.0)
    history.cut("b")
    return history, second


@pytest.mark.parametrize("said", [True, False], ids=["it waited for a", "it was halted"])
def test_hd_180_restored_to_a_moment_of_a_recovery_it_halts_anew(*, said: bool) -> None:
    """HD-180: neither the word to go on nor *fenced*, said of the former restore, goes for this one."""
    history, kept = fenced_after_a_restore(said=said)
    restore(history, kept)
    former = found(history).finding
    assert former is not None
    cordon(history, "a", on=False)
    history.until("the second restore is found", lambda: found(history).finding not in (None, former))
    history.passes(100.0)
    assert (found(history).stage, history.runs("one")) == (RecoveryStage.HALTED, {"b"})
    second = until_found(history)
    assert second.since != former.since
    say(history, second)
    waits_for(history, "b")
    history.mend("b")
    history.until("dispatch goes on", lambda: recovered(history))
    history.passes(100.0)
    assert history.runs("one") == {"b"}
