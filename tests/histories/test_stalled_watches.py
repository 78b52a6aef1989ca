"""HD-98, HD-99, HD-100: a watch stands still for longer than a Lease takes, and whoever has it takes the lead.

Of a watch it is promised that the last state comes in the end, no more: a half-dead connection, or a replica of the API
server that is behind, keeps it for as long as it likes.
"""

from __future__ import annotations

import pytest

from gatelift.core.api import commands
from gatelift_kube.values.resources import JOB, POD, RESOURCE_FLAVOR, WORKER_CLUSTER, WORKLOAD, Resource
from histories.test_restored_record import finding, halted, moved
from support.sim.history import History
from support.sim.manager import SimManager
from support.sim.restoring import restore

STALL_SECONDS = 60.0
"""Longer than a standby needs to lead: 15 s of a Lease, and the pauses between two looks."""


def standby_that_is_behind(history: History, *kinds: Resource) -> SimManager:
    """Let a standby see all that there is, and no change of some kinds from now on."""
    standby = history.world.start_manager()
    history.passes(20.0)
    standby.stall(STALL_SECONDS, kinds)
    return standby


def reads_of(standby: SimManager) -> list[commands.Command]:
    """Return a list that fills with what a manager reads besides the lists with which it begins to lead."""
    asked: list[commands.Command] = []
    perform = standby.process._perform

    def note(command: commands.Command) -> None:
        if isinstance(command, commands.Read | commands.ReadAll):
            asked.append(command)
        perform(command)

    standby.process._perform = note
    return asked


@pytest.mark.parametrize("kind", ["Pod", "Job"])
@pytest.mark.parametrize("queue", ["travels", "stays"])
def test_hd_98_what_runs_goes_on_though_its_object_was_not_in_the_cache(queue: str, kind: str) -> None:
    """HD-98: it was taken for deleted, and its run was stopped; at home the stop deleted the user's own pod."""
    history = History(shown=False)
    history.passes(5.0)
    standby_that_is_behind(history, POD if kind == "Pod" else JOB)
    (history.pod if kind == "Pod" else history.job)("one", queue=queue)
    cluster = history.until_runs("one", kind)
    history.kill_leader()
    history.passes(120.0)
    assert history.home.look(POD if kind == "Pod" else JOB, "one") is not None, "nobody has deleted it"
    assert history.runs("one", kind) == {cluster}
    workload = history.workload("one", kind)
    assert workload is not None
    assert workload["metadata"]["annotations"]["gatelift.dev/epoch"] == "1", "nobody has asked for its end"


@pytest.mark.parametrize("queue", ["travels", "stays"])
def test_hd_98_what_was_deleted_while_nobody_led_is_stopped_by_a_leader_that_was_behind(queue: str) -> None:
    history = History(shown=False)
    history.pod("one", queue=queue)
    history.until_runs("one")
    standby = standby_that_is_behind(history, POD)
    history.kill_leader()
    history.delete("home", POD, "one")
    history.until("it has stopped", lambda: not history.runs("one"))
    history.until("its object is gone", lambda: history.home.look(POD, "one") is None)
    assert history.leader is standby


def test_hd_98_a_change_of_leader_costs_no_read_of_an_object_that_is_there() -> None:
    history = History(shown=False)
    for number in range(6):
        history.pod(f"pod-{number}", queue="travels" if number % 2 else "stays", cpu="300m")
    for number in range(6):
        history.until_runs(f"pod-{number}")
    standby = history.world.start_manager()
    history.passes(20.0)
    standby.stall(STALL_SECONDS)
    asked = reads_of(standby)
    history.kill_leader()
    history.passes(120.0)
    assert history.leader is standby
    assert asked == []


@pytest.mark.parametrize("kind", ["Pod", "Job"])
@pytest.mark.parametrize("queue", ["travels", "stays"])
def test_hd_99_what_runs_is_charged_though_its_workload_was_not_in_the_cache(queue: str, kind: str) -> None:
    """HD-99: it was uncharged until an inventory named it (AccountError), and a Job at home was suspended."""
    history = History(shown=False)
    standby_that_is_behind(history, WORKLOAD)
    (history.pod if kind == "Pod" else history.job)("one", queue=queue, cpu="1500m")
    cluster = history.until_runs("one", kind)
    history.kill_leader()
    history.pod("two", queue=queue, cpu="1800m")  # there is no room for both
    history.passes(120.0)
    assert history.runs("one", kind) == {cluster}
    assert not history.runs("two")


def test_hd_99_a_flavor_that_was_deleted_is_not_assigned_by_a_leader_that_was_behind() -> None:
    history = History(shown=False)
    standby_that_is_behind(history, RESOURCE_FLAVOR)
    history.delete("home", RESOURCE_FLAVOR, "default")
    history.edit("home", RESOURCE_FLAVOR, "default", {"metadata": {"finalizers": None}})  # or it stayed with its queues
    history.passes(5.0)
    history.kill_leader()
    history.pod("one", queue="stays")
    history.passes(120.0)
    assert not history.shows("one", "QuotaReserved")


def test_hd_100_a_halt_that_was_written_is_known_to_a_leader_that_was_behind() -> None:
    """HD-100: it took what it had seen of its own WorkerCluster for the present, and placed in a restored record."""
    history, kept = moved()
    for cluster in ("a", "b"):
        history.cut(cluster)
    restore(history, kept)
    history.passes(200.0)  # the clusters count as lost
    standby = standby_that_is_behind(history, WORKER_CLUSTER)
    for cluster in ("a", "b"):
        history.mend(cluster)
    history.until("it is written down", lambda: '"stage":"halted"' in finding(history))
    for cluster in ("a", "b"):
        history.cut(cluster)
    history.kill_leader()
    history.until("the standby leads", standby.elector.leads)
    history.pod("two", queue="stays")
    history.passes(120.0)
    assert history.leader is standby
    assert "restored from a backup" in halted(history)
    assert not history.runs("two")
