"""HD-244: a management cluster is restored, and no cluster that could prove it is heard: a person's word halts as well.

A cluster that was served last before the backup brings back no number that the record does not know, and one that the
record calls lost is waited for by nobody. What runs on one that came back since, and is cut off again, is not known.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from gatelift.core.state.recovery_values import ANNOTATION_RESTORED, RecoveryStage
from gatelift_kube.values.resources import WORKER_CLUSTER
from histories.test_recovery import cordon, found, recovered, say, until_found
from support.sim.disasters import home_put_back
from support.sim.history import History
from support.sim.persons import recover, say_restored


def nobody_can_prove(*, said: bool = True, at_once: bool = True) -> History:
    """Return a restored history: b was lost in the backup and has run `one` since, a was never heard; b is cut off.

    `said`: a person says that it was restored, `at_once` while no manager runs.
    """
    history = History()
    world = history.world
    for cluster in ("a", "b"):
        cordon(history, cluster)
    history.pod("one")
    for cluster in ("a", "b"):
        history.cut(cluster)
        history.until_lost(cluster)
    copy, lease = history.home.store.copy(), replace(world.manager_lease)
    history.mend("b")
    history.until_connected("b")
    cordon(history, "b", on=False)
    assert history.until_runs("one") == "b"
    history.cut("b")
    for manager in world.managers:
        manager.kill()
    home_put_back(world, copy, lease)
    if said and at_once:
        say_restored(world)
    history.until("one leads", history.leads)
    if said and not at_once:
        say_restored(world)
    cordon(history, "a", on=False)
    return history


@pytest.mark.parametrize("at_once", [True, False], ids=["before a manager runs", "under the leader"])
def test_hd_244_where_a_person_says_that_it_was_restored_nothing_is_placed_before_each_cluster_is_heard(
    *, at_once: bool
) -> None:
    """HD-244: b counts as lost in the backup, so nobody waited for it; drawn with seed 8815247."""
    history = nobody_can_prove(at_once=at_once)
    history.mend("a")
    history.until_connected("a")
    history.passes(60.0)
    assert history.runs("one") == {"b"}
    finding = until_found(history)
    assert "a person says that the management cluster was restored" in finding.why
    say(history, finding)
    history.passes(150.0)
    assert history.runs("one") == {"b"}
    assert found(history).stage is RecoveryStage.WAITING
    recover(history.world)
    history.mend("b")
    history.until("it is recovered", lambda: recovered(history))
    history.until("what the record does not know has stopped", lambda: "b" not in history.runs("one"))
    assert history.containers("one") <= 1


def test_hd_244_the_word_is_taken_off_with_the_finding_and_asks_once() -> None:
    """HD-244: left where it stands, it would halt each leader that comes after the recovery."""
    history = nobody_can_prove()
    finding = until_found(history)
    local = history.home.look(WORKER_CLUSTER, "local")
    assert local is not None
    assert ANNOTATION_RESTORED not in local["metadata"]["annotations"]
    history.kill_leader()
    history.until("the next one leads", history.leads)
    assert history.leader.machine.core.caution.halted == finding.why
    for cluster in ("a", "b"):
        history.mend(cluster)
    say(history, finding)
    history.until("it is recovered", lambda: recovered(history))
    history.passes(30.0)
    history.kill_leader()
    history.until("the next one leads", history.leads)
    history.passes(30.0)
    assert found(history).finding is None
    assert not history.leader.machine.core.caution.halted


def test_hd_244_said_again_it_is_a_finding_of_its_own_which_no_word_of_before_answers() -> None:
    """HD-244: restored once more to a moment of the recovery, that waits anew, whatever was said in the backup."""
    history = nobody_can_prove()
    first = until_found(history)
    say(history, first)
    history.until("it waits", lambda: found(history).stage is RecoveryStage.WAITING)
    history.passes(30.0)
    say_restored(history.world)
    history.until("it halts anew", lambda: found(history).stage is RecoveryStage.HALTED)
    second = until_found(history)
    assert second.since != first.since
    assert (second.counter, second.term) >= (first.counter, first.term)
