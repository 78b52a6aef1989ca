"""Each condition of the manager that nothing else misses when it is gone: HD-54, one test by name for each."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from gatelift.core.api import events
from gatelift.core.api.commands import Command, ReadAll, SendToAgent
from gatelift.core.clusters.link_values import PlacementsInventoried, Upcall
from gatelift.core.records import metadata_patches
from gatelift.core.state.doubts import LISTS_APART_SECONDS, NAMESPACES_MAX, Doubts
from gatelift_kube.deciding.writes import Patch, WriteError
from gatelift_kube.values.resources import WORKLOAD
from gatelift_wire.values import limits
from gatelift_wire.values.inventory import InventoryRequest
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import Commit, Finished, Forget, Report, Stop, Stopped
from support.manager.agents import Held
from support.manager.api import ApiError, seen
from support.manager.builders import a_pod, a_setting, a_workload
from support.manager.links_bench import Manager
from support.manager.worker_cluster_api import Api
from support.manager.world import THE_POD, World, a_running_pod, a_world, workload_ref

HELD_BACK = "kueue.x-k8s.io/managed"


def test_hd_54_a_renewal_is_granted_only_while_ones_own_leadership_is_valid() -> None:
    """Whoever may not lead extends nobody's right to start; it is answered once the lead is certain again."""
    manager = Manager(Api())
    manager.dial()
    agent = manager.agents[1]
    granted = agent.lease_acknowledged_at
    assert granted is not None
    manager.event(events.LeadershipExtended(valid_until=manager.now))
    manager.pass_time(limits.RENEW_SECONDS + 1.0, agents=True)
    assert agent.live
    assert agent.lease_acknowledged_at == granted
    manager.event(events.LeadershipExtended(valid_until=1e9))
    assert agent.lease_acknowledged_at == granted + limits.RENEW_SECONDS


class Moving(Manager):
    """A manager whose record moves on with every event; `asked_at`: where it was when the inventory was asked for."""

    at = 0
    asked_at = 0

    def event(self, event: events.Event, revision: int = 0) -> list[Upcall]:
        self.at += 1
        return super().event(event, self.at)

    def perform(self, commands: Iterable[Command]) -> None:
        found = tuple(commands)
        controls = [control for each in found if isinstance(each, SendToAgent) for control in each.frame.control]
        if any(isinstance(control, InventoryRequest) for control in controls):
            self.asked_at = self.at
        super().perform(found)


def test_hd_54_the_revision_of_an_inventory_is_taken_when_it_is_asked_for() -> None:
    """What is written between question and answer is not in the answer, and is not gone (H1)."""
    manager = Moving(Api())
    manager.dial()
    [inventoried] = [each for each in manager.upcalls if isinstance(each, PlacementsInventoried)]
    assert manager.asked_at < manager.at
    assert inventoried.record_revision == manager.asked_at


def test_hd_54_the_raise_of_an_epoch_fails_on_a_workload_that_somebody_changed_meanwhile() -> None:
    world = a_world(a_setting(clusters=()), clusters=())
    world.api.apply(a_workload().document())
    ref = workload_ref(world)
    known = seen(ref, world.api.objects[ref]).object
    assert ref.resource == WORKLOAD
    world.api.edit(ref, lambda workload: workload["metadata"].setdefault("annotations", {}).update({"by": "somebody"}))
    raised = Patch(write_id=1, ref=ref, body=metadata_patches.epoch_patch(known, 2))  # type: ignore[arg-type]  # a Workload
    with pytest.raises(ApiError) as error:
        world.api.carry_out(raised)
    assert error.value.error is WriteError.CONFLICT


def test_hd_54_the_object_of_a_finished_workload_is_held_while_its_placement_runs() -> None:
    """Somebody writes Finished: the pod is let go when the cluster has said that nothing runs, and not before."""
    world, agent = a_running_pod()
    agent.silent = True
    finished = {
        "type": "Finished",
        "status": "True",
        "reason": "Succeeded",
        "message": "by hand",
        "lastTransitionTime": "2026-11-21T00:00:00Z",
    }
    world.api.edit(workload_ref(world), lambda workload: workload["status"]["conditions"].append(finished))
    world.advance(60.0)
    assert world.messages(Stop)
    assert world.running
    assert HELD_BACK in world.api.objects[THE_POD]["metadata"]["finalizers"]
    agent.silent = False
    world.connect("a")
    world.settle()
    assert not world.running
    assert HELD_BACK not in world.api.objects[THE_POD]["metadata"].get("finalizers", [])


def test_hd_54_a_stop_is_said_again_after_a_resync() -> None:
    """The resync empties the outboxes: a stop that was lost with the session would never be said again."""
    world, agent = a_running_pod()
    agent.silent = True
    world.api.edit(workload_ref(world), lambda workload: workload["spec"].update(active=False))
    world.settle()
    assert len(world.messages(Stop)) == 1
    world.cut("a")
    agent.silent = False
    world.connect("a")
    world.settle()
    assert len(world.messages(Stop)) == 2
    assert not world.running
    assert len(world.messages(Commit)) == 1


def test_hd_54_workloads_are_read_again_before_a_stray_of_an_inventory_is_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The watch may be behind: only the API server itself says that no Workload explains what a cluster lists."""
    world = a_world(a_setting())
    stray = PlacementKey("uid-of-nobody", 3)
    world.agents["a"].placements[stray] = Held(state="Applying")
    reads: list[ReadAll] = []
    carry_out = world._carry_out

    def hold_reads(command: Command) -> None:
        if isinstance(command, ReadAll):
            reads.append(command)
        else:
            carry_out(command)

    monkeypatch.setattr(world, "_carry_out", hold_reads)
    world.connect("a")
    world.settle()
    assert len(reads) == 1
    assert not world.messages(Stop)
    carry_out(reads[0])
    world.settle()
    assert [(cluster, stop.key) for cluster, stop in world.messages(Stop)] == [("a", stray)]


def test_hd_149_reports_of_what_nobody_knows_have_workloads_listed_every_few_seconds_at_most() -> None:
    """Each costs a worker a small message, and would cost the manager all Workloads of the installation."""
    world = a_world(a_setting())
    world.settle()
    view = world.machine.core.view("a")
    assert view is not None
    strays = [PlacementKey(f"uid-of-nobody-{number}", 1) for number in range(200)]
    began = world.now
    for stray in strays:
        world.report("a", view.session, Stopped(key=stray))
        world.advance(0.1)
    passed = world.now - began
    world.advance(2 * LISTS_APART_SECONDS)
    lists = [command for command in world.history if isinstance(command, ReadAll)]
    assert 2 <= len(lists) <= passed / LISTS_APART_SECONDS + 2
    assert {forget.key for _, forget in world.messages(Forget)} == set(strays)  # each is answered all the same


def test_hd_149_placements_in_ever_more_namespaces_are_a_few_lists() -> None:
    doubts = Doubts()
    for number in range(200):
        doubts.doubt("a", PlacementKey(f"uid-of-nobody-{number}", 1), f"space-{number}", over=False)
    assert len(doubts.unasked()) <= NAMESPACES_MAX + 1
    assert "" in doubts.unasked()
    assert sum(map(len, doubts.waiting.values())) == 200


# --- found by taking out what no test had in view ----------------------------------------------------------------


def _stopped_and_running_again(world: World) -> tuple[PlacementKey, PlacementKey]:
    """Evict what runs by hand, let it run again; return both epochs."""
    world.api.edit(workload_ref(world), lambda workload: workload["spec"].update(active=False))
    world.settle()
    world.api.edit(workload_ref(world), lambda workload: workload["spec"].update(active=True))
    world.advance(60.0)
    first, second = (commit.key for _, commit in world.messages(Commit))
    return first, second


def test_hd_55_the_next_epoch_waits_for_the_clusters_word() -> None:
    """P1: what was told to stop is charged, and nothing of the workload is told to anybody, until it has stopped."""
    world, agent = a_running_pod()
    agent.silent = True
    world.api.edit(workload_ref(world), lambda workload: workload["spec"].update(active=False))
    world.settle()
    world.api.edit(workload_ref(world), lambda workload: workload["spec"].update(active=True))
    world.advance(300.0)
    assert world.condition(world.find("Workload"), "QuotaReserved")["status"] == "True"
    assert world.machine.core.ledger.engine.charged(agent.commits[0].uid)
    assert len(world.messages(Commit)) == 1


def test_hd_55_a_late_word_about_an_earlier_epoch_ends_nothing_of_the_present_one() -> None:
    world = a_world(a_setting(clusters=("a",)), clusters=("a",))
    world.api.apply(a_pod().document())
    world.settle()
    agent = world.agents["a"]
    first, second = _stopped_and_running_again(world)
    assert agent.placements[second].lifted
    agent.say(Stopped(key=first))
    agent.say(Finished(key=first, succeeded=True))
    world.advance(60.0)
    assert world.condition(world.find("Workload"), "Admitted")["status"] == "True"
    assert world.machine.core.ledger.engine.charged(second.uid)
    assert world.running == {(second.uid, second.epoch, "a"): world.running[second.uid, second.epoch, "a"]}


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(lambda key: Finished(key=key, succeeded=True), id="finished"),
        pytest.param(lambda key: Stopped(key=key, reason="Drained"), id="stopped"),
    ],
)
def test_hd_55_the_cluster_may_forget_an_end_when_the_record_says_it_and_not_before(
    end: Callable[[PlacementKey], Report],
) -> None:
    """R7: a manager that dies in between finds the end at the cluster, or nowhere."""
    world, agent = a_running_pod()
    key = agent.commits[0]
    world.fail = lambda command: WriteError.NOT_DONE if command.ref.resource == WORKLOAD else None
    world.stopped(key, "a")
    for _ in range(2):  # it says so again, as after a resync
        agent.say(end(key))
        world.advance(30.0)
    assert not world.messages(Forget)
    world.fail = None
    world.advance(120.0)
    assert [message.key for _, message in world.messages(Forget)] == [key]


def test_hd_55_an_object_with_two_workloads_runs_once() -> None:
    """Somebody makes a copy of the Workload, its owner with it: the copy is told to no cluster."""
    world, agent = a_running_pod()
    own = world.find("Workload")
    meta = {name: own["metadata"][name] for name in ("namespace", "labels", "ownerReferences", "finalizers")}
    copied = {key: own[key] for key in ("apiVersion", "kind", "spec")}
    world.api.apply({**copied, "metadata": {**meta, "name": "the-copy"}})
    world.advance(60.0)
    assert [commit.key for _, commit in world.messages(Commit)] == agent.commits
    assert world.find("Workload")["metadata"]["name"] == own["metadata"]["name"]
