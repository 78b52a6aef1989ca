"""The door: when the machine acts at all, how much in one call, and what it tells people besides."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec
import pytest

from gatelift.core import machine
from gatelift.core.api import events
from gatelift.core.api.agenda import Key, Look
from gatelift.core.api.commands import Command
from gatelift.core.clusters.link_values import HigherTermRead
from gatelift.core.records.attempt_states import AttemptState
from gatelift.core.rules import invariants
from gatelift.core.rules.invariants import InvariantBroken
from gatelift.core.works import deciding, passes
from gatelift_admission.engine import Engine
from gatelift_admission.values.model import CycleResult
from gatelift_kube.deciding.writes import Create, Patch, Synced
from gatelift_kube.objects.gatelift import WorkerCluster
from gatelift_kube.values import resources
from gatelift_kube.values.resources import (
    ADMISSION_CHECK,
    CLUSTER_QUEUE,
    WORKLOAD,
    WORKLOAD_PRIORITY_CLASS,
    ObjectKey,
    ObjectRef,
)
from gatelift_wire.values.messages import Commit, Offer
from support.manager.api import seen
from support.manager.builders import NAMESPACE, a_pod, a_setting, a_workload, kueue_object
from support.manager.world import RUNNING, SUCCEEDED, World, a_world


def test_nothing_is_decided_before_every_list_is_complete() -> None:
    world = World()
    for document in a_setting():
        world.api.apply(document)
    world.boot()
    last = world.queue.pop()
    assert isinstance(last, Synced)
    world.unlisted = {last.resource}
    world.api.apply(a_pod().document())
    world.settle()
    assert not [command for command in world.history if isinstance(command, Create | Patch)]
    world.put(last)
    world.settle()
    assert world.all("Workload")


def test_nothing_is_done_while_the_own_lease_is_not_valid() -> None:
    world = a_world(a_setting())
    world.give(events.LeadershipExtended(valid_until=world.now))
    world.api.apply(a_pod().document())
    world.advance(60.0)
    assert not world.all("Workload")
    world.give(events.LeadershipExtended(valid_until=world.now + 15.0))
    world.settle()
    assert world.messages(Commit)


def test_a_lost_lead_ends_everything() -> None:
    world = a_world(a_setting())
    world.give(events.LeadershipLost())
    world.api.apply(a_pod().document())
    world.advance(60.0)
    assert not world.all("Workload")
    assert world.machine.next_deadline() is None


def test_a_higher_term_at_a_cluster_makes_it_step_down_when_the_lease_is_anothers() -> None:
    world = a_world(a_setting())
    world.deposed(9)
    world.upcall(HigherTermRead(cluster="a", term=9, found=WorkerCluster()))
    world.settle()
    (why,) = world.stepped_down
    assert why == "term 9 was read at cluster a, ours is 1; the Lease is in term 9, held by another"
    world.api.apply(a_pod().document())
    world.settle()
    assert not world.all("Workload")


def test_one_call_looks_at_a_bounded_number_of_keys_and_asks_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    world = a_world(a_setting(cpu=1000))
    looked = []
    look = passes.Passes._look

    def count(self: passes.Passes, key: Any, now: float) -> None:
        looked.append(key)
        look(self, key, now)

    monkeypatch.setattr(passes.Passes, "_look", count)
    world.give(events.LeadershipExtended(valid_until=0.0))
    for number in range(300):
        world.give(seen_pod(world, f"pod-{number}"))
    assert not looked
    world.give(events.LeadershipExtended(valid_until=1e9))
    assert len(looked) == machine.KEYS_PER_CALL
    assert world.machine.next_deadline() == world.now, "the rest is asked for at once"


def seen_pod(world: World, name: str) -> events.Event:
    document = world.api.apply(a_pod(name).document())
    return seen(ObjectRef(resources.POD, ObjectKey(NAMESPACE, name)), document)


def test_a_missing_priority_class_is_said_and_waited_for() -> None:
    world = a_world(a_setting())
    world.api.apply(a_pod().of_class("urgent").document())
    world.settle()
    assert not world.all("Workload")
    (event,) = [event for event in world.emitted if event.warning]
    assert event.reason == "WorkloadPriorityClassNotFound"
    urgent = kueue_object("WorkloadPriorityClass", "urgent", {})
    urgent["value"] = 7
    world.api.apply(urgent)
    world.settle()
    spec = world.find("Workload")["spec"]
    assert spec["priority"] == 7
    assert spec["priorityClassRef"]["name"] == "urgent"
    assert world.messages(Offer)[0][1].priority == 7
    assert ObjectRef(WORKLOAD_PRIORITY_CLASS, ObjectKey("", "urgent")) in world.api.objects


def test_a_foreign_workload_of_the_same_name_is_a_conflict_and_untouched() -> None:
    world = a_world(a_setting())
    pod = world.api.apply(a_pod().document())
    world.settle()
    name = world.find("Workload")["metadata"]["name"]
    other = a_world(a_setting())
    other.api.uids = int(pod["metadata"]["uid"].removeprefix("uid-")) - 2
    foreign = other.api.apply(a_workload(name).document())
    other.settle()
    other.api.apply(a_pod().document())
    other.settle()
    assert other.find("Pod")["metadata"]["uid"] == pod["metadata"]["uid"]
    (event,) = [event for event in other.emitted if event.warning]
    assert event.reason == "WorkloadNameConflict"
    assert other.find("Workload")["metadata"]["uid"] == foreign["metadata"]["uid"]


def test_a_check_is_active_by_its_clusters() -> None:
    def said(world: World) -> tuple[str, str, str]:
        check = world.find("AdmissionCheck")
        active = world.condition(check, "Active")
        return active["status"], active["reason"], active["message"]

    world = a_world(a_setting())
    assert said(world) == ("True", "Active", "The admission check is active")
    world.cut("b")
    world.settle()
    assert said(world) == ("True", "SomeActiveClusters", "Inactive clusters: [b]")
    world.cut("a")
    world.settle()
    assert said(world) == ("False", "NoUsableClusters", "Inactive clusters: [a b]")
    missing = a_world(a_setting(clusters=("a", "ghost")), clusters=("a",))
    assert said(missing) == ("True", "SomeActiveClusters", "Missing clusters: [ghost]")
    config = ObjectRef(resources.MULTIKUEUE_CONFIG, ObjectKey("", "all"))
    selector = "gatelift.dev/cluster-selector"
    missing.api.edit(config, lambda one: one["metadata"].update(annotations={selector: "a is b"}))
    missing.settle()
    why = "selector part 'a is b' is not one of key=value, key!=value, key in (a,b), key notin (a,b), key, !key"
    text = f"annotation {selector} selects nothing: {why}, Missing clusters: [ghost]"
    assert said(missing) == ("True", "SomeActiveClusters", text)
    missing.api.delete(config)
    missing.settle()
    assert said(missing)[:2] == ("False", "BadConfig")


def test_a_config_may_select_clusters_by_label() -> None:
    world = a_world(a_setting(clusters=("a",)), clusters=("a",))
    config = ObjectRef(resources.MULTIKUEUE_CONFIG, ObjectKey("", "all"))
    world.api.edit(
        config, lambda one: one["metadata"].update(annotations={"gatelift.dev/cluster-selector": "gpu in (h100)"})
    )
    world.connect("b", labels=(("gpu", "h100"),))
    world.connect("c", labels=(("gpu", "t4"),))
    world.api.apply(a_pod().document())
    world.settle()
    assert {cluster for cluster, _ in world.messages(Offer)} == {"a", "b"}


def test_queue_status_tells_what_is_used_and_is_written_once_a_second_at_most() -> None:
    world = a_world(a_setting(cpu=100))
    world.api.writes.clear()
    for number in range(20):
        world.api.apply(a_pod(f"pod-{number}").document())
        world.advance(0.1)
    assert len(world.writes("ClusterQueue")) <= 4
    world.advance(2.0)
    status = world.find("ClusterQueue")["status"]
    assert (status["admittedWorkloads"], status["reservingWorkloads"], status["pendingWorkloads"]) == (20, 20, 0)
    assert status["flavorsUsage"] == [
        {"name": "default", "resources": [{"name": "cpu", "total": "20", "borrowed": "0"}]}
    ]
    assert world.find("LocalQueue")["status"]["admittedWorkloads"] == 20
    world.api.writes.clear()
    world.advance(60.0)
    assert world.writes("ClusterQueue") == []


def test_a_queue_status_that_an_api_server_prunes_is_not_written_for_ever() -> None:
    world = a_world(a_setting())
    world.api.apply(a_pod().document())
    world.advance(3.0)

    def prune(queue: dict[str, Any]) -> None:
        for flavor in queue["status"]["flavorsUsage"] + queue["status"]["flavorsReservation"]:
            for resource in flavor["resources"]:
                resource.pop("borrowed", None)

    world.api.edit(ObjectRef(resources.LOCAL_QUEUE, ObjectKey(NAMESPACE, "main")), prune)
    world.api.writes.clear()
    world.advance(10.0)
    assert world.writes("LocalQueue") == []


def test_a_malformed_quota_stops_its_queue_and_says_so() -> None:
    world = a_world(a_setting(cpu=4))

    def break_it(queue: dict[str, Any]) -> None:
        queue["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["nominalQuota"] = "four"

    world.api.edit(ObjectRef(CLUSTER_QUEUE, ObjectKey("", "shared")), break_it)
    world.api.apply(a_pod().document())
    world.advance(3.0)
    assert not world.messages(Commit)
    active = world.condition(world.find("ClusterQueue"), "Active")
    assert active["status"] == "False"
    assert "'four' is not a quantity" in active["message"]


def test_a_waiting_workload_follows_its_owner_in_place() -> None:
    world = a_world(a_setting(cpu=0))
    world.api.apply(a_pod().document())
    world.settle()
    before = world.find("Workload")["metadata"]["uid"]
    world.api.edit(
        ObjectRef(resources.POD, ObjectKey(NAMESPACE, "one")),
        lambda pod: pod["metadata"]["labels"].update({"kueue.x-k8s.io/queue-name": "other"}),
    )
    world.settle()
    workload = world.find("Workload")
    assert (workload["metadata"]["uid"], workload["spec"]["queueName"]) == (before, "other")


def test_an_object_named_anew_gets_a_workload_of_its_own() -> None:
    world = a_world(a_setting())
    world.api.apply(a_pod().document())
    world.settle()
    (key,) = world.agents["a"].commits
    world.agents["a"].finish(key, SUCCEEDED)
    world.settle()
    ref = ObjectRef(resources.POD, ObjectKey(NAMESPACE, "one"))
    world.api.delete(ref)
    world.settle()
    world.api.apply(a_pod().document())
    world.settle()
    assert len({uid for uid, _, _ in world.runs}) == 2
    assert len(world.all("Workload")) == 1


def test_intermediate_states_of_a_pod_are_merged() -> None:
    world = a_world(a_setting())
    world.api.apply(a_pod().document())
    world.settle()
    agent = world.agents["a"]
    (key,) = agent.commits
    world.api.writes.clear()
    scheduled = {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True"}]}
    for status in (scheduled, {**scheduled, "hostIP": "10.0.0.1"}, {**scheduled, "phase": "Running"}, RUNNING):
        agent.show(key, status)
        world.advance(0.1)
    assert world.writes("Pod") == ["patch status"]
    assert world.find("Pod")["status"]["phase"] == "Running"


def test_a_state_that_lasts_is_shown_after_a_second() -> None:
    world = a_world(a_setting())
    world.api.apply(a_pod().document())
    world.settle()
    agent = world.agents["a"]
    waiting = {"phase": "Pending", "containerStatuses": [{"name": "main", "state": {"waiting": {"reason": "Pulling"}}}]}
    agent.show(agent.commits[0], waiting)
    world.advance(0.5)
    assert "containerStatuses" not in world.find("Pod")["status"]
    world.advance(0.6)
    assert world.find("Pod")["status"]["containerStatuses"]


def test_the_invariants_notice_what_must_not_be() -> None:
    world = a_world(a_setting())
    world.api.apply(a_pod().document())
    world.settle()
    core = world.machine.core
    (attempt,) = core.attempts.values()
    core.ledger.charges[attempt.uid].released_at = 1.0
    with pytest.raises(InvariantBroken, match="is Running and not charged"):
        invariants.check(core, world.now)
    core.ledger.charges[attempt.uid].released_at = None
    attempt.epoch = 9
    with pytest.raises(InvariantBroken, match="epoch above the record"):
        invariants.check(core, world.now)
    attempt.epoch = 1
    core.placements.put("b", attempt.uid, "team")
    with pytest.raises(InvariantBroken, match="listed on 2 clusters"):
        invariants.check(core, world.now)
    core.placements.forget("b", attempt.uid)
    attempt.state = AttemptState.RESERVED
    core.agenda.forget(Key(Look.WORKLOAD, attempt.workload))
    known = core.knowledge.workloads[attempt.workload]
    status = replace_checks(known)
    core.knowledge.workloads[attempt.workload] = status
    with pytest.raises(InvariantBroken, match="nothing can wake it"):
        invariants.check(core, world.now)
    core.mark_later([attempt.uid])  # as when dispatch goes on (drawn seed 8917863)
    invariants.check(core, world.now)


def test_hd_536_what_an_answer_was_about_and_raised_as_it_was_to_be_looked_at_is_woken_by_its_next_try() -> None:
    """It was taken for stuck, and a manager that checks itself (`debug_invariants`) ended."""
    world = a_world(a_setting())
    world.api.apply(a_pod().document())
    world.settle()
    core = world.machine.core
    (attempt,) = core.attempts.values()
    attempt.state = AttemptState.OFFERED
    core.agenda.forget(Key(Look.WORKLOAD, attempt.workload))
    core.knowledge.workloads[attempt.workload] = replace_checks(core.knowledge.workloads[attempt.workload])
    assert invariants.progress(core, world.now)
    core.agenda.wake(Key(Look.UNTAKEN, attempt.workload, WORKLOAD), world.now + 5.0)
    assert not invariants.progress(core, world.now)


def replace_checks(known: Any) -> Any:
    return msgspec.structs.replace(known, status=msgspec.structs.replace(known.status, admission_checks=()))


def test_the_check_is_a_transition_and_the_queues_status_is_not() -> None:
    world = a_world(a_setting())
    informing = {command.ref.resource: command.informs for command in world.history if isinstance(command, Patch)}
    assert informing[ADMISSION_CHECK] is False
    assert informing[CLUSTER_QUEUE] is True


@pytest.mark.interpreted
def test_an_engine_that_was_cut_short_goes_on_when_no_event_waits_or_after_so_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    took: list[events.Event] = []
    cycles: list[tuple[int, bool]] = []

    class Watched(Engine):
        """Notes how many events were taken before each of its cycles, and whether the last one was a tick."""

        def cycle(self, now: float, budget_heads: int = 1) -> CycleResult:
            result = super().cycle(now, budget_heads)
            cycles.append((len(took), isinstance(took[-1], events.Ticked)))
            return result

    monkeypatch.setattr(machine, "Engine", Watched)
    monkeypatch.setattr(deciding, "HEADS_PER_CALL", 1)
    monkeypatch.setattr(machine, "EVENTS_BETWEEN_DECISIONS", 5)
    handle = machine.Machine.handle

    def noted(self: machine.Machine, event: events.Event, now: float) -> list[Command]:
        took.append(event)
        return handle(self, event, now)

    monkeypatch.setattr(machine.Machine, "handle", noted)
    world = a_world(a_setting(cpu=1))
    for number in range(20):
        world.api.apply(a_pod(f"pod-{number}").document())
    world.settle()
    gaps = [(later - before, ticked) for (before, _), (later, ticked) in itertools.pairwise(cycles)]
    assert any(gap >= 5 and not ticked for gap, ticked in gaps), "not put off for ever"
    assert any(ticked for _, ticked in gaps)
    assert sum(world.condition(one, "QuotaReserved").get("status") == "True" for one in world.all("Workload")) == 1
