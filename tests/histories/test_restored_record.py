"""HD-31, HD-32: etcd of the management cluster restored to before what runs now, on both real cores."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gatelift.core.state.recovery_values import ANNOTATION_RECOVERY
from gatelift_kube.values.resources import POD, WORKER_CLUSTER, WORKLOAD
from gatelift_sandbox.records import RunRecord
from support.sim.disasters import home_put_back, put_back
from support.sim.history import History
from support.sim.persons import recover
from support.sim.restoring import Backup, backup, cordon, moved_to_b, restore


def moved() -> tuple[History, Backup]:
    """Return a history in which a pod ran on a, was copied in a backup, and runs on b since."""
    history = History()
    return history, moved_to_b(history)


def halted(history: History) -> str:
    history.until("somebody leads", history.leads)
    return history.leader.machine.core.caution.halted


def finding(history: History) -> str:
    found = history.home.look(WORKER_CLUSTER, "local") or {}
    return str(found.get("metadata", {}).get("annotations", {}).get(ANNOTATION_RECOVERY, ""))


@pytest.mark.parametrize("first", ["a", "b"])
@pytest.mark.parametrize("restart", [False, True], ids=["same-agents", "agents-restarted"])
def test_hd_31_a_record_restored_to_before_the_run_moved_halts_and_runs_nothing_twice(
    first: str, *, restart: bool
) -> None:
    """HD-31: (1, a) is restored while (2, b) runs, whoever greets first, and whether the agents were restarted."""
    history, kept = moved()
    second = "b" if first == "a" else "a"
    history.cut(second)
    restore(history, kept)
    if restart:
        for cluster in ("a", "b"):
            history.kill_agent(cluster)
    history.passes(200.0)
    history.mend(second)
    history.passes(200.0)
    assert history.runs("one") == {"b"}
    assert history.containers("one") == 1
    assert "restored from a backup" in halted(history)


def test_hd_31_the_halt_is_kept_in_an_object_and_outlives_the_manager() -> None:
    """HD-31: the next leader halts before any cluster has said anything."""
    history, kept = moved()
    restore(history, kept)
    history.until("it is written down", lambda: '"stage":"halted"' in finding(history))
    for cluster in ("a", "b"):
        history.cut(cluster)
    history.kill_leader()
    history.passes(200.0)
    assert "restored from a backup" in halted(history)
    history.pod("two")
    history.passes(60.0)
    assert not history.runs("two")


def test_hd_31_restored_long_ago_is_found_however_far_the_new_leader_has_counted() -> None:
    """HD-31: a cluster that is cut off since before the restore comes back when the counter has passed its own."""
    history, kept = moved()
    for cluster in ("a", "b"):
        history.cut(cluster)
    restore(history, kept)
    before = history.world.manager_lease.counter
    history.until("it has counted on", lambda: history.world.manager_lease.counter > before + 400, 3000.0)
    history.mend("b")
    history.until("it halts", lambda: "restored from a backup" in halted(history))


def test_hd_31_a_leader_that_finds_an_old_lease_waits_for_the_clusters_of_its_record() -> None:
    """HD-31: it places nothing before each that is called connected has resynced, or is lost; then it goes on alone."""
    history = History()
    history.cut("b")
    history.kill_leader()
    history.pod("one")
    history.until("a is back", lambda: history.connected("a"))
    history.passes(5.0)
    assert "b" in halted(history)
    assert not history.runs("one")
    history.until_runs("one")
    assert history.lost("b")


def test_hd_31_a_warm_change_of_leader_waits_for_nobody() -> None:
    """HD-31: a standby that saw the Lease move goes on at once, though a cluster hangs."""
    history = History()
    history.world.start_manager()
    history.passes(30.0)
    history.cut("b")
    history.kill_leader()
    history.pod("one")
    history.until("another leads", lambda: any(each.elector.leads() for each in history.world.managers))
    assert not halted(history)
    assert history.until_runs("one") == "a"
    assert not history.lost("b")


def test_hd_77_no_manager_that_lived_through_a_restore_goes_on_with_what_it_remembers() -> None:
    """HD-77: restored under their feet, versions and all: a standby would take over with a history that is no more."""
    history = History()
    world = history.world
    world.start_manager()
    history.passes(30.0)
    copy, lease = history.home.store.copy(), replace(world.manager_lease)
    history.pod("one")
    cluster = history.until_runs("one")
    history.passes(60.0)
    home_put_back(world, copy, lease)
    history.passes(30.0)
    assert not [each.name for each in world.managers if each.outlives_a_restore]
    assert "restored from a backup" in halted(history)
    recover(world)
    history.until("what nobody explains is stopped", lambda: not history.objects(cluster, POD))
    history.pod("two")
    history.until_runs("two")


@pytest.mark.parametrize("lost", ["a change", "an object", "an object that went"])
def test_hd_205_a_standby_that_slept_through_a_restore_does_not_lead_with_what_it_was_told_before(lost: str) -> None:
    """HD-205: it saw no Lease that went back, and its watches had told it of the time that is lost.

    The symptom: it waited for ever for a cluster whose record it could not write, or knew of no Workload that is there.
    """
    history = History(shown=False)
    world = history.world
    standby = world.start_manager()
    history.pod("two", seconds=5.0)
    history.until("it is finished", lambda: history.shows("two", "Finished"))
    history.passes(30.0)
    standby.pause()
    copy, lease = history.home.store.copy(), replace(world.manager_lease)
    if lost == "a change":
        cordon(history, "b")
    elif lost == "an object":
        history.pod("one")
    else:
        history.delete("home", POD, "two")
    history.passes(5.0)
    home_put_back(world, copy, lease)
    history.passes(1.0)
    standby.wake()
    history.until("it has ended", lambda: standby.process.dead, 60.0)


def test_hd_77_a_leader_that_reads_an_older_version_than_it_wrote_on_ends_though_its_lease_is_as_it_was() -> None:
    """HD-77: nobody renewed the Lease between copy and restore; what the manager remembers is too new all the same."""
    history = History(shown=False)
    world = history.world
    cordon(history, "a")
    cordon(history, "b")
    history.pod("one")
    history.passes(20.0)
    copy, leader = history.home.store.copy(), history.leader
    workload = history.workload("one")
    assert workload is not None
    name = workload["metadata"]["name"]
    for number in range(20):
        history.edit("home", WORKLOAD, name, {"metadata": {"annotations": {"example.com/touched": str(number)}}})
    history.passes(5.0)
    put_back(world, world.home, copy, "home")
    history.passes(5.0)
    cordon(history, "a", on=False)
    history.until("it has ended", lambda: leader.process.dead, 60.0)
    assert history.until_runs("one") == "a"


def test_hd_32_what_a_restored_record_does_not_explain_is_stopped_by_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """HD-32: restored to before six Workloads were made; their six runs go on."""
    history = History()
    kept = backup(history)
    names = [f"pod-{number}" for number in range(6)]
    for name in names:
        history.pod(name, cpu="250m")
    for name in names:
        history.until_runs(name)
    history.passes(30.0)
    stopped: list[RunRecord] = []
    noted = history.world.truth.noted

    def note(cluster: str, record: RunRecord) -> None:
        if record.stopped is not None:
            stopped.append(record)
        noted(cluster, record)

    monkeypatch.setattr(history.world.truth, "noted", note)
    restore(history, kept)
    history.passes(400.0)
    assert not stopped
    assert sum(len(history.objects(cluster, POD)) for cluster in ("a", "b")) == len(names)
    history.kill_leader()
    history.passes(200.0)
    assert not stopped
    assert '"unexplained"' in finding(history)


@pytest.mark.parametrize("leader_dies", [False, True], ids=["", "and the leader dies"])
def test_hd_79_an_object_whose_workload_the_backup_does_not_know_waits_for_its_run(*, leader_dies: bool) -> None:
    """HD-79: the user's pod was in the backup, its Workload was not: it gets another one while its run goes on."""
    history = History()
    world = history.world
    history.pod("one")
    copy, lease = history.home.store.copy(), replace(world.manager_lease)
    cluster = history.until_runs("one")
    (former,) = (each["metadata"]["uid"] for each in history.objects(cluster, POD))
    history.passes(60.0)
    for manager in world.managers:
        manager.kill()
    home_put_back(world, copy, lease)
    history.passes(60.0)
    assert history.workload("one") is not None
    recover(world)
    if leader_dies:
        history.until("somebody leads", lambda: any(each.elector.leads() for each in world.managers))
        world.start_manager()
        history.passes(20.0)
        history.cut(cluster)
        halted(history)
        history.kill_leader()
        history.passes(40.0)
        history.mend(cluster)

    def is_stopped() -> bool:
        return former not in [each["metadata"]["uid"] for each in history.objects(cluster, POD)]

    history.until("its run was stopped at a person's word", is_stopped)
    history.until_runs("one")
