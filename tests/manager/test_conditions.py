"""Each condition of the manager that nothing else misses when it is gone: HD-54, one test by name for each."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from gatelift.core import events, record
from gatelift.core.commands import Command, ReadAll, SendFrame
from gatelift.core.link_values import PlacementsInventoried, Upcall
from gatelift_kube.resources import WORKLOAD
from gatelift_kube.writes import Patch, WriteError
from gatelift_wire import limits
from gatelift_wire.keys import PlacementKey
from gatelift_wire.messages import Commit, InventoryRequest, Stop
from support.builders_manager import a_setting, a_workload
from support.links_bench import Manager
from support.manager_agents import Held
from support.manager_api import ApiError, seen
from support.manager_world import THE_POD, a_running_pod, a_world, workload_ref
from support.worker_cluster_api import Api

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
        controls = [control for each in found if isinstance(each, SendFrame) for control in each.frame.control]
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
    raised = Patch(write_id=1, ref=ref, body=record.epoch_patch(known, 2))  # type: ignore[arg-type]  # a Workload
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
    world.agents["a"].placements[stray] = Held(state="Running", lifted=True)
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
