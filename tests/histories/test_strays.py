"""Scripted histories (HD-88, HD-89): what is listed or ends once, while it may not be answered, is not forgotten."""

from __future__ import annotations

import pytest

from gatelift.core.api import commands, events
from gatelift_kube.values.resources import POD, WORKLOAD
from support.sim.history import History
from support.sim.manager import SimManager

ANSWERED_SECONDS = 300.0
"""Longer than a session that is answered takes, with the pauses between two lists that fail."""


class FailingLists:
    """The lists of all Workloads of whichever manager leads fail, so many times."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, history: History, times: int) -> None:
        self.failed = 0
        self._times = times
        self._perform = SimManager._perform
        answer = self._answer

        def perform(manager: SimManager, command: commands.Command) -> None:
            answer(manager, command)

        monkeypatch.setattr(SimManager, "_perform", perform)
        for manager in history.world.managers:
            manager.process._perform = manager._perform

    def _answer(self, manager: SimManager, command: commands.Command) -> None:
        if not isinstance(command, commands.ReadAll) or self.failed >= self._times:
            self._perform(manager, command)
            return
        self.failed += 1
        answer = events.ReadFailed(read_id=command.read_id, message="a time limit")
        manager.cluster.timeline.after(0.5, lambda: manager.process.post(answer))


def ends_unheard(history: History) -> str:
    """Let a pod end at a lost worker, say truly that it is fenced, and let its Workload go; return the worker."""
    history.pod("one", seconds=20.0)
    cluster = history.until_runs("one")
    history.cut(cluster)
    history.until("it has ended there", lambda: history.containers("one") == 0)
    history.delete("home", POD, "one")
    history.until_lost(cluster)
    history.say_fenced(cluster)
    history.until("its Workload is gone", lambda: history.workload("one") is None)
    return cluster


def vanishes_as_it_runs(history: History) -> str:
    """Remove a Workload that runs, and its pod, by force, and make the pod again; return the worker."""
    history.pod("one")
    cluster = history.until_runs("one")
    history.cut(cluster)
    workload = history.workload("one")
    assert workload is not None
    name = workload["metadata"]["name"]
    for resource, each in ((WORKLOAD, name), (POD, "one")):
        history.edit("home", resource, each, {"metadata": {"finalizers": None}})
        history.delete("home", resource, each)
    history.passes(3.0)
    history.pod("one")
    history.passes(3.0)
    return cluster


def nothing_is_left(history: History, cluster: str) -> bool:
    """Say whether a worker has no pod of ours and its agent remembers none."""
    return not history.objects(cluster, POD) and not history.agent(cluster).machine.world.placements


@pytest.mark.parametrize("times", [1, 2, 5])
def test_hd_88_what_ended_unheard_is_forgotten_though_a_list_failed(
    times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HD-88: an end is told once in a session, and the list of all Workloads that must come before the answer fails."""
    history = History()
    cluster = ends_unheard(history)
    history.kill_leader()
    lists = FailingLists(monkeypatch, history, times)
    history.passes(30.0)
    history.mend(cluster)
    history.until_connected(cluster)
    history.until("it is forgotten there", lambda: nothing_is_left(history, cluster), ANSWERED_SECONDS)
    assert lists.failed == times


def halted(history: History) -> bool:
    return any(each.machine.core.caution.halted for each in history.world.managers)


def listed(history: History, cluster: str) -> bool:
    return any(cluster in each.machine.core.caution.recovery.held for each in history.world.managers)


def break_after_listing_while_halted(history: History, cluster: str) -> None:
    """Let a leader that waits for another cluster hear one, and let the stream of that one break once it has listed."""
    other = next(name for name in history.workers if name != cluster)
    history.cut(other)
    history.kill_leader()
    history.mend(cluster)
    history.until(f"{cluster} has listed", lambda: halted(history) and listed(history, cluster))
    history.passes(2.0)
    history.world.net.break_all(cluster)
    history.until("dispatch goes on", lambda: not halted(history))
    history.mend(other)


def test_hd_89_an_end_that_was_listed_while_dispatch_was_halted_is_forgotten_in_the_end() -> None:
    """HD-89: the session is broken and comes back before dispatch goes on."""
    history = History(shown=False)
    cluster = ends_unheard(history)
    break_after_listing_while_halted(history, cluster)
    history.until("it is forgotten there", lambda: nothing_is_left(history, cluster), ANSWERED_SECONDS)


def test_hd_89_a_run_that_was_listed_while_dispatch_was_halted_is_stopped_in_the_end() -> None:
    """HD-89: its Workload vanished; the pod that was made again under its name waits for it, and no longer."""
    history = History(shown=False)
    cluster = vanishes_as_it_runs(history)
    break_after_listing_while_halted(history, cluster)
    history.until("the pod that was made again runs", lambda: history.shows("one", "Admitted"), ANSWERED_SECONDS)
    assert history.until_runs("one")
    assert history.containers("one") * 500 == history.leader.charges("travels"), "what runs is charged"


def test_hd_89_what_is_missing_in_an_inventory_that_came_while_dispatch_was_halted_is_gone_in_the_end() -> None:
    """HD-89: the pod was removed by force while its worker was cut off and had no agent; nobody tells of its end."""
    history = History(shown=False)
    history.pod("one")
    cluster = history.until_runs("one")
    history.cut(cluster)
    history.kill_agent(cluster, again=False)
    (pod,) = history.objects(cluster, POD)
    history.edit(cluster, POD, pod["metadata"]["name"], {"metadata": {"finalizers": None}})
    history.delete(cluster, POD, pod["metadata"]["name"])
    history.until("it has ended there", lambda: history.containers("one") == 0)
    history.world.start_agent(cluster)
    break_after_listing_while_halted(history, cluster)
    history.until("it runs again", lambda: history.containers("one") == 1, ANSWERED_SECONDS)


def test_hd_89_an_end_that_is_told_while_dispatch_is_halted_is_answered_when_it_goes_on() -> None:
    """HD-89: the agent tells of the end after it has listed the run, and tells it once."""
    history = History(shown=False)
    history.pod("one", seconds=45.0)
    cluster = history.until_runs("one")
    history.cut(cluster)
    workload = history.workload("one")
    assert workload is not None
    for resource, each in ((WORKLOAD, workload["metadata"]["name"]), (POD, "one")):
        history.edit("home", resource, each, {"metadata": {"finalizers": None}})
        history.delete("home", resource, each)
    other = next(name for name in history.workers if name != cluster)
    history.cut(other)
    history.kill_leader()
    history.mend(cluster)
    history.until(f"{cluster} has listed", lambda: halted(history) and listed(history, cluster))
    history.until("it has ended there", lambda: history.containers("one") == 0)
    assert halted(history), "it has ended while dispatch is halted"
    history.until("dispatch goes on", lambda: not halted(history))
    history.mend(other)
    history.until("it is forgotten there", lambda: nothing_is_left(history, cluster), ANSWERED_SECONDS)
