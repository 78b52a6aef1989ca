"""HD-33: going on after a restore of the management cluster, on both real cores; every step may be repeated."""

from __future__ import annotations

import msgspec

from gatelift.core.state.recovery_values import (
    ANNOTATION_RECOVER,
    ANNOTATION_STOP_UNEXPLAINED,
    COUNTER_JUMP,
    Finding,
    RecoverWord,
    RecoveryStage,
    Told,
    told,
)
from gatelift_kube.objects.gatelift import WorkerCluster
from gatelift_kube.values.resources import POD, WORKER_CLUSTER, WORKLOAD
from support.sim.cluster import SimCluster
from support.sim.election import SimLease
from support.sim.history import History
from support.sim.persons import say_fenced
from support.sim.restoring import backup, restore
from support.sim.truth import epoch_of

EPOCHS = 1000


def found(history: History) -> Told:
    """Return what stands on `local`."""
    document = history.home.look(WORKER_CLUSTER, "local")
    assert document is not None
    return told(msgspec.convert(document, WorkerCluster, strict=False)) or Told()


def until_found(history: History) -> Finding:
    history.until("the restore is written down", lambda: found(history).finding is not None)
    finding = found(history).finding
    assert finding is not None
    return finding


def say(history: History, finding: Finding) -> None:
    said = RecoverWord(since=finding.since, epochs=EPOCHS, who="a person")
    annotations = {ANNOTATION_RECOVER: msgspec.json.encode(said).decode()}
    history.edit("home", WORKER_CLUSTER, "local", {"metadata": {"annotations": annotations}})


def recovered(history: History) -> bool:
    return found(history).finding is None and history.leads()


def cordon(history: History, cluster: str, *, on: bool = True) -> None:
    history.edit("home", WORKER_CLUSTER, cluster, {"spec": {"cordoned": on}})


def set_active(history: History, name: str, *, active: bool) -> None:
    workload = history.workload(name)
    assert workload is not None
    history.edit("home", WORKLOAD, workload["metadata"]["name"], {"spec": {"active": active}})


def placed_between(*, seconds: float = 0.0) -> History:
    """Return a restored history: `stayed` ran on a before the backup, `moved` from a to b since, `made` waited then."""
    history = History()
    cordon(history, "b")
    for name in ("stayed", "moved"):
        history.pod(name, seconds=900.0 if name == "stayed" else 0.0)
        assert history.until_runs(name) == "a"
    cordon(history, "a")
    history.pod("made", seconds=seconds)
    history.passes(20.0)
    kept = backup(history)
    set_active(history, "moved", active=False)
    history.until("it has stopped", lambda: not history.runs("moved"))
    cordon(history, "b", on=False)
    set_active(history, "moved", active=True)
    assert history.until_runs("moved") == "b"
    assert history.until_runs("made") == "b"
    history.passes(90.0)
    restore(history, kept)
    cordon(history, "b", on=False)
    return history


def test_hd_33_recover_raises_term_and_epochs_hears_all_and_dispatches_again() -> None:
    """HD-33: nothing that runs is stopped, nothing runs twice, and new work is placed under epochs never used."""
    history = placed_between()
    finding = until_found(history)
    term = history.leader.elector.term
    say(history, finding)
    history.until("dispatch goes on", lambda: recovered(history))
    assert history.leader.elector.term > max(term, finding.term)
    assert history.world.manager_lease.counter > finding.counter
    history.pod("new")
    history.until_runs("new")
    history.passes(120.0)
    assert [history.runs(name) for name in ("stayed", "moved", "made")] == [{"a"}, {"b"}, {"b"}]
    assert all(epoch_of(each) >= EPOCHS for each in history.home.all(WORKLOAD) if "new" not in each["metadata"]["name"])


def test_hd_33_what_ran_since_before_the_restore_is_started_anew_only_when_it_has_ended() -> None:
    """HD-33: the record did not know of `made`; it runs to its end, and then the user's pod is run under the record."""
    history = placed_between(seconds=400.0)
    say(history, until_found(history))
    history.until("dispatch goes on", lambda: recovered(history))
    assert history.containers("made") == 1
    history.until("it is finished under its own record", lambda: history.shows("made", "Finished"), 1500.0)
    workload = history.workload("made")
    assert workload is not None
    uid = workload["metadata"]["uid"]
    assert sorted(epoch for run, epoch, _ in history.world.truth.runs if run == uid) == [1, EPOCHS]


def restored_beside_one() -> tuple[History, str]:
    """Return a history with a run that the restored record does not explain, and its cluster; dispatch goes on."""
    history = History()
    kept = backup(history)
    history.pod("one")
    cluster = history.until_runs("one")
    history.passes(60.0)
    restore(history, kept)
    say(history, until_found(history))
    history.until("dispatch goes on", lambda: recovered(history))
    return history, cluster


def test_hd_33_a_person_stops_what_no_record_explains() -> None:
    """HD-32, HD-33: left alone until then; said for the session whose inventory it is about, and repeated."""
    history, cluster = restored_beside_one()
    history.passes(100.0)
    assert found(history).clusters[cluster].unexplained == 1
    assert len(history.objects(cluster, POD)) == 1
    session = str(history.status(cluster)["session"])
    for _ in range(2):
        annotations = {ANNOTATION_STOP_UNEXPLAINED: session}
        history.edit("home", WORKER_CLUSTER, cluster, {"metadata": {"annotations": annotations}})
        history.until("nothing of it is left", lambda: not history.objects(cluster, POD))
    history.until("nothing is unexplained", lambda: not found(history).clusters)


def test_hd_33_what_is_to_stop_on_a_cluster_that_is_cut_off_is_stopped_when_it_is_back() -> None:
    """HD-33: the word is said while nothing can be told there; the manager asked itself again and again at once."""
    history, cluster = restored_beside_one()
    history.until("it is listed", lambda: bool(found(history).clusters))
    history.cut(cluster)
    history.world.net.break_all(cluster)
    history.passes(1.0)
    session = str(history.status(cluster)["session"])
    word = {"metadata": {"annotations": {ANNOTATION_STOP_UNEXPLAINED: session}}}
    history.edit("home", WORKER_CLUSTER, cluster, word)
    history.passes(5.0)
    assert history.objects(cluster, POD)
    history.mend(cluster)
    history.until_connected(cluster)
    history.edit("home", WORKER_CLUSTER, cluster, {"metadata": {"annotations": {ANNOTATION_STOP_UNEXPLAINED: None}}})
    history.passes(20.0)  # it greets, and once more when its agent has heard of all nodes
    session = str(history.status(cluster)["session"])
    history.edit("home", WORKER_CLUSTER, cluster, {"metadata": {"annotations": {ANNOTATION_STOP_UNEXPLAINED: session}}})
    history.until("nothing of it is left", lambda: not history.objects(cluster, POD))


def test_hd_33_a_cluster_that_does_not_come_back_is_waited_for_until_it_is_declared_fenced() -> None:
    """HD-33: lost is not enough once a restore is proven; the leader may die at any step."""
    history = placed_between()
    finding = until_found(history)
    history.cut("b")
    say(history, finding)
    history.until_lost("b")
    history.kill_leader()
    history.passes(200.0)
    assert found(history).stage is RecoveryStage.WAITING
    history.pod("new")
    history.passes(60.0)
    assert not history.runs("new")
    for name in ("moved", "made"):  # the machines of b are switched off
        history.delete("b", POD, name)
    history.passes(60.0)
    history.say_fenced("b")
    history.until("dispatch goes on", lambda: recovered(history))
    cordon(history, "a", on=False)
    assert history.until_runs("new") == "a"
    history.passes(100.0)
    assert history.runs("moved") == {"a"}


def test_hd_33_a_word_about_an_earlier_restore_says_nothing_about_a_later_one() -> None:
    """HD-33: recovered once, restored again."""
    history = placed_between()
    first = until_found(history)
    say(history, first)
    history.until("dispatch goes on", lambda: recovered(history))
    history.passes(60.0)
    kept = backup(history)
    history.pod("later")
    history.until_runs("later")
    history.passes(60.0)
    restore(history, kept)
    second = until_found(history)
    assert second.since != first.since
    history.passes(100.0)
    assert found(history).stage is RecoveryStage.HALTED
    say(history, second)
    history.until("dispatch goes on", lambda: recovered(history))


def test_hd_76_who_was_heard_before_the_proof_came_is_heard_again_and_not_waited_for_for_ever() -> None:
    """HD-76: a was cut off since before the backup and greets first, it proves nothing; then b proves the restore."""
    history = History()
    history.pod("one")
    history.until_runs("one")
    history.passes(30.0)
    history.cut("a")
    kept = backup(history)
    history.passes(30.0)
    history.cut("b")
    restore(history, kept)
    history.mend("a")
    history.until(
        "a has said what it has", lambda: history.status("a").get("session", 0) > 1 and history.connected("a")
    )
    history.passes(5.0)
    assert found(history).finding is None
    history.mend("b")
    finding = until_found(history)
    history.passes(30.0)
    term = history.leader.elector.term
    say(history, finding)
    history.until("dispatch goes on", lambda: recovered(history))
    assert history.leader.elector.term > term, "the next leader has a list of holders that begins with itself"
    assert history.world.manager_lease.counter > finding.counter + COUNTER_JUMP
    history.pod("new")
    history.until_runs("new")


def test_hd_123_restored_once_more_while_it_waits_it_takes_a_term_above_all_that_agents_have_seen() -> None:
    """HD-123, HD-180: and it halts anew first, since the word to go on was of the former restore."""
    history = placed_between()
    history.cut("a")  # so that it waits
    finding = until_found(history)
    say(history, finding)
    history.until("the next leader waits", lambda: found(history).stage is RecoveryStage.WAITING and leads(history))
    history.passes(30.0)
    once_more = backup(history)
    for _ in range(2):
        history.kill_leader()
        history.until("the next one leads", lambda: leads(history))
        history.passes(30.0)  # b is served by it
    restore(history, once_more)
    history.until("the next one leads", lambda: leads(history))
    history.passes(30.0)  # a does not count as lost yet
    second = until_found(history)
    assert second.since != finding.since, "HD-180: the word was of the former restore"
    say(history, second)
    history.mend("a")
    history.until("it goes on", lambda: recovered(history))
    history.until_connected("b")


def test_hd_123_a_term_that_is_shown_first_while_it_waits_ends_the_leader_whose_term_is_not_above_it() -> None:
    """HD-123: a proves the restore and was cut off early; b was served by later leaders of what was lost."""
    history = History()
    kept = backup(history)
    history.passes(30.0)
    history.cut("a")
    for _ in range(4):
        history.kill_leader()
        history.until("the next one leads", lambda: leads(history))
        history.passes(30.0)
    history.cut("b")
    restore(history, kept)
    history.mend("a")
    finding = until_found(history)
    say(history, finding)
    history.until("the next leader waits", lambda: found(history).stage is RecoveryStage.WAITING and leads(history))
    history.passes(30.0)
    history.mend("b")
    history.until("it goes on", lambda: recovered(history))
    history.until_connected("b")


def leads(history: History) -> bool:
    return any(each.elector.leads() for each in history.world.managers)


def restored_before_one_ran(*, for_good: bool = True) -> History:
    """Return a restored history: `one` waited in the backup, and runs on a, which is cut off since then."""
    history = History()
    for name in ("a", "b"):
        cordon(history, name)
    history.pod("one")
    history.passes(5.0)
    kept = backup(history)
    cordon(history, "a", on=False)
    assert history.until_runs("one") == "a"
    history.passes(90.0)
    if for_good:
        history.world.net.sever("a")
    else:
        history.cut("a")
    restore(history, kept)
    return history


def enrol_another(history: History) -> None:
    """Enrol another cluster under the name a."""
    world = history.world
    made = SimCluster(world.time, world.faults, "a-anew", known_as="a", noted=world.noted)
    world.truth.known_as[made.name] = "a"
    world.follow(made)
    world.workers["a"], world.leases["a"], world.agents["a"] = made, SimLease(), []
    world.start_agent("a")


def settled(history: History) -> bool:
    """Say whether it is shown that another cluster has the name, and that nothing of before is missing in its list."""
    status = history.status("a")
    return bool(0 < status.get("replacedSession", 0) == status.get("settledSession", 0))


def waits_for_a_word_about_the_former(history: History) -> None:
    """Hold that nothing is placed before a person has said that nothing of the former cluster runs, and then it is."""
    world = history.world
    cordon(history, "a", on=False)
    history.passes(120.0)
    assert history.runs("one") == {"a"}, "it runs where the record does not know it, and nowhere else"
    assert not recovered(history)
    waits = history.leader.machine.core.caution.halted
    assert "gatelift cluster fenced a" in waits, "people read what to type"

    world.truth.destroyed("a")
    world.account.destroyed("a")
    say_fenced(world, "a", history.status("a")["replacedSession"] - 1)
    history.until("dispatch goes on", lambda: recovered(history))
    history.until("it runs on the new cluster", lambda: history.runs("one") == {"a-anew"})


def test_hd_168_another_cluster_under_a_name_does_not_answer_for_what_the_former_one_runs() -> None:
    """HD-168: the record has lost the placement, so nothing is missing from its list: it was placed there again."""
    history = restored_before_one_ran()
    enrol_another(history)
    say(history, until_found(history))
    history.until("the new cluster has listed what it has", lambda: settled(history))
    waits_for_a_word_about_the_former(history)


def test_hd_168_nor_does_one_whose_doubt_had_settled_before_the_restore_was_proven() -> None:
    """HD-168: with nothing missing the doubt is over by itself, while nobody knows yet that the record is old."""
    history = restored_before_one_ran()
    history.cut("b")
    enrol_another(history)
    history.until("the new cluster has listed what it has", lambda: settled(history))
    history.passes(30.0)
    assert found(history).finding is None
    history.mend("b")
    say(history, until_found(history))
    waits_for_a_word_about_the_former(history)
