"""What is shown of queues and of waiting workloads stays true whatever changes it: no event, no write and no leader."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest

from gatelift.core.api.events import LeadershipExtended, LeadershipGained
from gatelift_kube.deciding.writes import Create, Delete, Patch, WriteError
from gatelift_kube.values.resources import CLUSTER_QUEUE, LOCAL_QUEUE, POD, WORKLOAD, ObjectKey, ObjectRef
from gatelift_wire.values.messages import Bid, BidKind
from gatelift_wire.values.refusals import Refusal
from support.manager.builders import NAMESPACE, Doc, a_pod, a_setting, a_workload, kueue_object
from support.manager.world import SUCCEEDED, World, a_world, workload_ref

MAIN = ObjectRef(LOCAL_QUEUE, ObjectKey(NAMESPACE, "main"))

LEADS = (LeadershipGained, LeadershipExtended)


def shown(world: World, kind: str, name: str) -> tuple[int, int, str]:
    """Return how many wait, how many hold quota, and how much of it."""
    status = world.find(kind, name)["status"]
    (cell,) = status["flavorsReservation"][0]["resources"]
    return status["pendingWorkloads"], status["reservingWorkloads"], cell["total"]


def both(world: World) -> list[tuple[int, int, str]]:
    return [shown(world, "ClusterQueue", "shared"), shown(world, "LocalQueue", "main")]


def why(world: World, name: str = "") -> tuple[str, str]:
    """Return reason and message of QuotaReserved."""
    said = world.condition(world.find("Workload", name), "QuotaReserved")
    return said.get("reason", ""), said.get("message", "")


def test_quota_that_is_free_before_its_workload_is_gone_is_shown_as_free() -> None:
    world = a_world(a_setting())
    world.api.apply(a_pod().document())
    world.advance(3.0)
    assert both(world) == [(0, 1, "1"), (0, 1, "1")]
    uid = world.find("Workload")["metadata"]["uid"]
    world.api.edit(workload_ref(world), lambda one: one["metadata"]["finalizers"].append("example.com/keep"))
    world.api.delete(ObjectRef(POD, ObjectKey(NAMESPACE, "one")))
    world.advance(10.0)
    assert world.machine.core.ledger.usage(uid) == {}
    assert [total for *_, total in both(world)] == ["0", "0"]


def test_who_is_kept_out_of_the_queue_for_a_while_is_shown_as_waiting_as_in_kueue_while_its_backoff_lasts() -> None:
    world = a_world(a_setting(clusters=("a",)), clusters=("a",))
    world.agents["a"].bid = lambda offer: Bid(key=offer.key, kind=BidKind.REFUSED, refusal=Refusal.QUOTA_NEVER_FITS)
    world.api.apply(a_pod().document())
    for _ in range(100):
        world.advance(0.5)  # asserts that what is shown is what the engine has
    assert why(world)[1].startswith("No worker cluster can take it")
    assert both(world) == [(1, 0, "0"), (1, 0, "0")]


def test_a_workload_that_is_submitted_to_another_queue_leaves_the_counts_of_the_first() -> None:
    world = a_world(a_setting(cpu=0))
    world.api.apply(kueue_object("LocalQueue", "other", {"clusterQueue": "shared"}, namespace=NAMESPACE))
    world.api.apply(a_workload().document())
    world.advance(3.0)
    assert shown(world, "LocalQueue", "main")[0] == 1
    world.api.edit(workload_ref(world), lambda one: one["spec"].update(queueName="other"))
    world.advance(3.0)
    assert shown(world, "LocalQueue", "main")[0] == 0
    assert shown(world, "LocalQueue", "other")[0] == 1


def test_a_cluster_queue_counts_nobody_of_a_local_queue_that_is_gone() -> None:
    world = a_world(a_setting(cpu=0))
    world.api.apply(a_workload().document())
    world.advance(3.0)
    assert shown(world, "ClusterQueue", "shared")[0] == 1
    world.api.delete(MAIN)
    world.advance(3.0)
    assert shown(world, "ClusterQueue", "shared")[0] == 0


@pytest.mark.parametrize("error", [each for each in WriteError if each is not WriteError.NOT_FOUND])
def test_why_a_workload_waits_is_said_though_the_first_write_of_it_fails(error: WriteError) -> None:
    world = a_world(a_setting(cpu=0))
    failures = [error]

    def fail(command: Create | Patch | Delete) -> WriteError | None:
        says = isinstance(command, Patch) and command.ref.resource == WORKLOAD and command.subresource == "status"
        return failures.pop() if says and failures else None

    world.fail = fail
    world.api.apply(a_workload().document())
    world.advance(10.0)
    assert not failures
    assert why(world)[0] == "ExceedsMaxQuota"


def written_by_somebody(world: World, text: str) -> None:
    """Let a write of an earlier leader, or one of ours that is late, land."""

    def change(document: Doc) -> None:
        for one in document["status"]["conditions"]:
            if one["type"] == "QuotaReserved":
                one["message"] = text

    world.api.edit(workload_ref(world), change)


def test_a_late_write_of_an_older_reason_is_overwritten_by_the_present_one() -> None:
    world = a_world(a_setting(cpu=0))
    world.api.apply(a_workload().document())
    world.advance(3.0)
    said = why(world)
    events: list[Any] = [each for each in world.emitted if each.reason == said[0]]
    written_by_somebody(world, "something older")
    world.advance(3.0)
    assert why(world) == said
    assert len(events) == 1


def test_a_leader_that_saw_another_reason_before_it_led_says_the_present_one() -> None:
    world = a_world(a_setting(cpu=0, clusters=()), clusters=("local",))
    world.api.apply(a_workload().document())
    world.advance(3.0)
    said = why(world)
    world.boot()
    world.queue = deque(each for each in world.queue if not isinstance(each, LEADS))
    world.settle()  # it stands by, and has seen what is said
    assert not world.machine.core.leads(world.now)
    written_by_somebody(world, "what the leader says now")
    world.settle()
    world.put(LeadershipGained(term=world.term))
    world.put(LeadershipExtended(valid_until=world.now + 1e9))
    world.advance(3.0)
    assert why(world) == said


def test_is_36_figures_beyond_the_largest_amount_are_a_quantity_and_a_condition_says_so() -> None:
    world = a_world(a_setting())
    world.api.edit(ObjectRef(CLUSTER_QUEUE, ObjectKey("", "shared")), _without_bounds)
    pod = a_pod().document()
    pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1e30"}}
    world.advance(3.0)
    assert "AmountsSaturated" not in {
        one["type"] for one in world.find("ClusterQueue", "shared")["status"]["conditions"]
    }
    world.api.apply(pod)
    world.advance(3.0)
    for kind, name in (("ClusterQueue", "shared"), ("LocalQueue", "main")):
        assert shown(world, kind, name) == (0, 1, "9223372036854775807m")
        said = world.condition(world.find(kind, name), "AmountsSaturated")
        assert (said["status"], said["reason"]) == ("True", "BeyondLargestAmount")
        assert "cpu in flavor default" in said["message"]
    (agent,) = (agent for agent in world.agents.values() if agent.commits)
    agent.finish(agent.commits[-1], SUCCEEDED)
    world.advance(30.0)
    for kind, name in (("ClusterQueue", "shared"), ("LocalQueue", "main")):
        assert shown(world, kind, name) == (0, 0, "0")
        over = world.condition(world.find(kind, name), "AmountsSaturated")
        assert (over["status"], over["reason"], over["message"]) == ("False", "WithinAmounts", "")


def _without_bounds(queue: Doc) -> None:
    queue["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["nominalQuota"] = "1e30"
