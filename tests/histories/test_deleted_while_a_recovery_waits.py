"""HD-184: who deletes a WorkerCluster, or makes it anew, while a recovery waits for it does not end that wait."""

from __future__ import annotations

import msgspec
import pytest

from gatelift.core.state.recovery_asked import ANNOTATION_FENCED_GONE, Without
from gatelift.core.state.recovery_values import RecoveryStage
from gatelift_kube.values.resources import POD, WORKER_CLUSTER
from histories.test_recovery import (
    cordon,
    enrol_another,
    found,
    recovered,
    restored_before_one_ran,
    say,
    until_found,
)
from histories.test_restored_again import waits_for
from support.sim.history import History
from support.sim.switchboard import KEY_DIGEST

NO_LEADER = "no leader sees it"
LATER = ["by the leader", "and the next one", NO_LEADER]


def waiting(*, for_good: bool = True) -> History:
    """Return a history whose recovery waits for a, where `one` runs; b is free to take work."""
    history = restored_before_one_ran(for_good=for_good)
    history.world.judges_shown = False
    say(history, until_found(history))
    cordon(history, "b", on=False)
    waits_for(history, "a")
    assert not history.status("a").get("placements"), "so that the policy of what is in use lets it be deleted"
    return history


def delete(history: History, *, anew: bool = False) -> None:
    history.delete("home", WORKER_CLUSTER, "a")
    if anew:
        history.home.create(WORKER_CLUSTER, {"metadata": {"name": "a"}, "spec": {}})
        history.edit("home", WORKER_CLUSTER, "a", {"status": {"keyDigest": KEY_DIGEST}}, "status")


def delete_as(history: History, when: str, *, anew: bool = False) -> None:
    """Delete it while somebody leads, who dies later or not; or between two leaders."""
    if when == NO_LEADER:
        for manager in history.world.managers:
            manager.kill()
        delete(history, anew=anew)
    else:
        delete(history, anew=anew)
        history.passes(20.0)
    if when == "and the next one":
        history.kill_leader()
    history.until("somebody leads", history.leads)


def still_waits(history: History) -> None:
    history.passes(150.0)
    assert history.runs("one") == {"a"}
    assert (found(history).stage, found(history).clusters["a"].gone) == (RecoveryStage.WAITING, True)
    assert "gatelift cluster fenced a" in history.leader.machine.core.caution.halted, "people read what to type"


def say_gone(history: History, name: str, since: str) -> None:
    """Say that nothing runs there any more, as `gatelift cluster fenced` does where the WorkerCluster is gone."""
    text = msgspec.json.encode(Without(since=since, names={name: "a person"})).decode()
    history.edit("home", WORKER_CLUSTER, "local", {"metadata": {"annotations": {ANNOTATION_FENCED_GONE: text}}})


@pytest.mark.parametrize("anew", [False, True], ids=["deleted", "made anew"])
@pytest.mark.parametrize("when", LATER)
def test_hd_184_a_cluster_that_is_deleted_stays_awaited_until_a_person_says_fenced(when: str, *, anew: bool) -> None:
    """HD-184: whoever leads; a word that names another finding says nothing."""
    history = waiting()
    delete_as(history, when, anew=anew)
    still_waits(history)
    say_gone(history, "a", "another finding")
    still_waits(history)
    history.delete("a", POD, "one")  # its machines are switched off
    history.passes(60.0)
    finding = found(history).finding
    assert finding is not None
    say_gone(history, "a", finding.since)
    history.until("dispatch goes on", lambda: recovered(history))
    assert history.until_runs("one") == "b"


@pytest.mark.parametrize("when", LATER)
def test_hd_184_made_anew_it_answers_itself_when_the_same_cluster_is_back(when: str) -> None:
    history = waiting(for_good=False)
    delete_as(history, when, anew=True)
    still_waits(history)
    history.mend("a")
    history.until("dispatch goes on", lambda: recovered(history))
    history.passes(100.0)
    assert history.runs("one") == {"a"}


def test_hd_184_another_cluster_under_the_name_made_anew_does_not_answer_for_the_former_one() -> None:
    """HD-184: of the new object nobody can say that it was another cluster before; the finding knows who served it."""
    history = waiting()
    delete(history, anew=True)
    enrol_another(history)
    history.until("the new cluster has listed what it has", lambda: history.status("a").get("openedSession", 0) > 0)
    still_waits(history)
    history.kill_leader()
    history.until("another leads", history.leads)
    still_waits(history)
    history.world.truth.destroyed("a")
    history.world.account.destroyed("a")
    finding = found(history).finding
    assert finding is not None
    say_gone(history, "a", finding.since)
    history.until("dispatch goes on", lambda: recovered(history))


def test_hd_184_deleted_while_dispatch_is_halted_it_is_awaited_from_the_word_to_go_on() -> None:
    history = restored_before_one_ran()
    history.world.judges_shown = False
    finding = until_found(history)
    history.passes(20.0)
    delete(history)
    history.passes(20.0)
    say(history, finding)
    cordon(history, "b", on=False)
    still_waits(history)
