"""Answers to writes that come late or never: they bring nothing back, and nothing waits for them for ever."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gatelift.core.api import events
from gatelift.core.records.attempt_states import AttemptState
from gatelift_kube.deciding.writes import Create, Delete, Patch, WriteDone, WriteError, WriteFailed
from gatelift_kube.values.resources import (
    CLUSTER_QUEUE,
    JOB,
    LOCAL_QUEUE,
    POD,
    WORKLOAD,
    ObjectKey,
    ObjectRef,
    Resource,
)
from gatelift_wire.values.limits import LANDED_SECONDS
from gatelift_wire.values.messages import Forget
from support.manager.builders import NAMESPACE, a_job, a_pod, a_setting
from support.manager.world import SUCCEEDED, World, a_world

LATE = [pytest.param(WORKLOAD, id="the workload"), pytest.param(POD, id="the user's pod")]


@pytest.mark.parametrize("resource", LATE)
def test_the_answer_of_the_write_that_let_an_object_go_does_not_bring_it_back(resource: Resource) -> None:
    world = a_world(a_setting())
    world.api.apply(a_pod().document())
    world.settle()
    late: list[events.Event] = []
    put = world.put

    def hold(event: events.Event) -> None:
        about = event.object if isinstance(event, WriteDone) else None
        last = about is not None and about.metadata.deletion_timestamp is not None and not about.metadata.finalizers
        if last and type(about).__name__ == resource.kind:
            late.append(event)
        else:
            put(event)

    world.put = hold  # type: ignore[method-assign]  # answers pass through it
    world.api.delete(ObjectRef(POD, ObjectKey(NAMESPACE, "one")))
    world.advance(5.0)
    assert late, "the object went by a write of ours"
    assert not world.all("Workload")
    for event in late:
        world.give(event)
    world.advance(60.0)

    core = world.machine.core
    assert not core.attempts
    assert not core.knowledge.workloads
    assert not core.knowledge.owners
    assert not core.ledger.charges
    assert not world.all("Workload"), "nothing is made for a pod that is gone"


def test_the_answer_of_a_status_write_to_a_queue_that_was_deleted_meanwhile_does_not_bring_it_back() -> None:
    world = a_world(a_setting())
    late: list[events.Event] = []
    put = world.put

    def hold(event: events.Event) -> None:
        if isinstance(event, WriteDone) and type(event.object).__name__ == "ClusterQueue":
            late.append(event)
        else:
            put(event)

    world.put = hold  # type: ignore[method-assign]  # answers pass through it
    world.api.apply(a_pod().document())
    world.advance(2.0)
    assert late, "the queue's numbers were written"
    (queue,) = [ref for ref in world.api.objects if ref.resource.kind == "ClusterQueue"]
    world.api.edit(queue, lambda document: document["metadata"].update(finalizers=[]))  # or it stayed with its work
    world.api.delete(queue)
    world.settle()
    for event in late:
        world.give(event)
    world.settle()
    assert not world.machine.core.knowledge.cluster_queues


def test_a_pod_of_the_same_name_is_taken_up_after_a_late_answer_about_its_predecessor() -> None:
    world = a_world(a_setting())
    for _ in range(2):
        world.api.apply(a_pod().document())
        world.settle()
        key = world.agents["a"].commits[-1]
        world.agents["a"].finish(key, SUCCEEDED)
        world.settle()
        world.api.delete(ObjectRef(POD, ObjectKey(NAMESPACE, "one")))
        world.advance(5.0)
    assert len(world.agents["a"].commits) == 2
    assert not world.machine.core.attempts


def test_a_workload_whose_create_was_lost_is_made_after_all() -> None:
    world = a_world(a_setting())
    lost: list[int] = []
    write = world._write

    def lose_first(command: Create | Patch | Delete) -> None:
        if isinstance(command, Create) and not lost:
            lost.append(command.write_id)
            world.put(WriteFailed(write_id=command.write_id, error=WriteError.UNKNOWN, message="timeout"))
        else:
            write(command)

    world._write = lose_first  # type: ignore[method-assign]  # one write never lands
    world.api.apply(a_pod().document())
    world.advance(5.0)
    assert lost
    assert len(world.all("Workload")) == 1
    assert world.agents["a"].commits
    assert not world.machine.core.creations


def test_hd_162_a_workload_made_late_of_what_its_job_was_before_becomes_what_it_is_now() -> None:
    """HD-162: after two creates without a good answer both were looked at in a pause, and told to wait."""
    world = a_world(a_setting())
    first: list[Create] = []
    job = ObjectRef(JOB, ObjectKey(NAMESPACE, "work"))
    write = world._write

    def slow(command: Create | Patch | Delete) -> None:
        if not isinstance(command, Create):
            write(command)
        elif not first:
            first.append(command)
            world.put(WriteFailed(write_id=command.write_id, error=WriteError.UNKNOWN, message="timeout"))
        elif not world.all("Workload"):
            world.api.carry_out(first[0])
            write(command)

    world._write = slow  # type: ignore[method-assign]  # the first create lands when the second is on its way
    world.api.apply(a_job(cpu="1"))
    while not first:
        assert world.step()
    world.api.edit(job, lambda one: one["spec"].update(a_job(cpu="2")["spec"]))
    world.advance(5.0)
    assert world.agents["a"].commits
    (workload,) = world.all("Workload")
    (container,) = workload["spec"]["podSets"][0]["template"]["spec"]["containers"]
    assert container["resources"]["requests"] == {"cpu": "2"}


def test_an_answer_that_finds_nothing_does_not_end_what_came_after_it_was_asked() -> None:
    world = a_world(a_setting())
    on_its_way: list[Create | Patch | Delete] = []
    write, put = world._write, world.put

    def late(command: Create | Patch | Delete) -> None:
        if isinstance(command, Create) and not on_its_way:
            on_its_way.append(command)
            world.put(WriteFailed(write_id=command.write_id, error=WriteError.UNKNOWN, message="timeout"))
        else:
            write(command)

    def hold(event: events.Event) -> None:
        if isinstance(event, events.ReadDone) and event.object is None and len(on_its_way) == 1:
            on_its_way.append(on_its_way[0])
            write(on_its_way[0])  # the server looked, then the create landed, then the watch was faster than the answer
            world.settle()
        put(event)

    world._write = late  # type: ignore[method-assign]  # one write is slow
    world.put = hold  # type: ignore[method-assign]  # one answer is slow
    world.api.apply(a_pod().document())
    world.advance(5.0)
    assert len(on_its_way) == 2
    assert len(world.machine.core.knowledge.workloads) == 1
    assert world.agents["a"].commits


def test_an_end_that_could_not_be_acknowledged_is_acknowledged_when_the_session_goes_on() -> None:
    world = a_world(a_setting())
    world.api.apply(a_pod().document())
    world.settle()
    (key,) = world.agents["a"].commits
    world.watch_late = True  # the report comes, and the link breaks before the end is written
    world.agents["a"].finish(key, SUCCEEDED)
    while world.wire:
        world.step()
    world.cut("a")
    world.watch_late = False
    world.advance(5.0)
    assert not world.messages(Forget)
    world.connect("a", resumed=True)
    world.settle()
    assert [message.key for _, message in world.messages(Forget)] == [key]
    assert not world.agents["a"].placements
    assert world.machine.core.sessions.owed_to() == []


def test_what_is_owed_to_a_cluster_ends_with_a_resync_that_lists_it() -> None:
    world = a_world(a_setting())
    world.api.apply(a_pod().document())
    world.settle()
    (key,) = world.agents["a"].commits
    world.agents["a"].finish(key, SUCCEEDED)
    while world.wire:
        world.step()
    world.cut("a")
    world.advance(5.0)
    world.connect("a")
    world.settle()
    assert {message.key for _, message in world.messages(Forget)} == {key}
    assert not world.agents["a"].placements
    assert world.machine.core.sessions.owed_to() == []


def winner_lands_later(world: World) -> list[Patch]:
    """Let nobody tell what became of the first winner that is written; return the list that it goes to."""
    late: list[Patch] = []
    write = world._write

    def land_later(command: Create | Patch | Delete) -> None:
        if isinstance(command, Patch) and b"clusterName" in command.body and not late:
            late.append(command)
            world.put(WriteFailed(write_id=command.write_id, error=WriteError.UNKNOWN, message="connection reset"))
        else:
            write(command)

    world._write = land_later  # type: ignore[method-assign]  # one write lands after its answer
    return late


@pytest.mark.parametrize("late_by", [3.0, LANDED_SECONDS - 2.0], ids=["soon", "as late as a write can land"])
def test_hd_161_quota_is_not_given_to_another_while_a_winner_may_still_be_written(late_by: float) -> None:
    world = a_world(a_setting(cpu=1))
    late = winner_lands_later(world)
    world.api.apply(a_pod("one").document())
    world.settle()
    assert late
    world.cut("a")
    world.cut("b")
    world.api.apply(a_pod("two").document())
    world.advance(late_by)
    known = world.api.objects[late[0].ref]["metadata"]["resourceVersion"]
    assert f'"resourceVersion":"{known}"'.encode() in late[0].body, "nothing else is written while this may still land"
    world.api.carry_out(late[0])
    world.connect("a")
    world.connect("b")
    world.advance(30.0)
    admitted = [one for one in world.all("Workload") if world.condition(one, "QuotaReserved").get("status") == "True"]
    assert len(admitted) == 1
    assert len(world.runs) == 1


@pytest.mark.parametrize("written", ["just that", "no pods", "another epoch", "another version"])
def test_hd_250_what_was_asked_to_be_written_is_no_strangers_whatever_was_decided_since(written: str) -> None:
    """HD-250: what differs in one thing is (HD-238): what is granted, its epoch, the version that it was written on."""
    world = a_world(a_setting(cpu=1))
    world.api.apply(a_pod("one").document())
    late = winner_lands_later(world)
    world.advance(10.0)
    world.machine.core.caution.tampered.began_to_lead(world.now)
    (attempt,) = world.machine.core.attempts.values()
    attempt.state, attempt.reserve = AttemptState.PENDING, None
    world.machine.core.ledger.charges.pop(attempt.uid)
    body = late[0].body
    if written == "no pods":
        body = body.replace(b'"count":1', b'"count":0')
    elif written == "another epoch":
        body = body.replace(b'"gatelift.dev/epoch":"1"', b'"gatelift.dev/epoch":"2"')
    elif written == "another version":  # which a write of ours fails on
        version = world.api.objects[late[0].ref]["metadata"]["resourceVersion"]
        world.api.edit(late[0].ref, lambda workload: workload["metadata"]["labels"].update(by="somebody"))
        since = world.api.objects[late[0].ref]["metadata"]["resourceVersion"]
        body = body.replace(f'"resourceVersion":"{version}"'.encode(), f'"resourceVersion":"{since}"'.encode())
    assert (body == late[0].body) is (written == "just that")
    world.api.carry_out(replace(late[0], body=body))
    world.settle()
    assert world.machine.core.caution.tampered.is_record_changed(attempt.uid) is (written != "just that")


def test_a_winner_that_was_never_written_is_chosen_again() -> None:
    world = a_world(a_setting(cpu=1))
    lost: list[int] = []
    write = world._write

    def lose(command: Create | Patch | Delete) -> None:
        if isinstance(command, Patch) and b"clusterName" in command.body and not lost:
            lost.append(command.write_id)
            world.put(WriteFailed(write_id=command.write_id, error=WriteError.UNKNOWN, message="connection reset"))
        else:
            write(command)

    world._write = lose  # type: ignore[method-assign]  # one write never lands
    world.api.apply(a_pod("one").document())
    world.advance(2 * LANDED_SECONDS)
    assert lost
    assert len(world.runs) == 1


@pytest.mark.parametrize("kind", ["ClusterQueue", "LocalQueue"])
def test_the_answer_of_a_status_write_does_not_bring_back_a_stop_that_is_over(kind: str) -> None:
    resource, name = (CLUSTER_QUEUE, ObjectKey("", "shared"))
    if kind == "LocalQueue":
        resource, name = LOCAL_QUEUE, ObjectKey(NAMESPACE, "main")
    world = a_world(a_setting())
    late: list[events.Event] = []
    put = world.put

    def hold(event: events.Event) -> None:
        if isinstance(event, WriteDone) and type(event.object).__name__ == kind:
            late.append(event)
        else:
            put(event)

    def stopped(policy: str) -> None:
        world.api.edit(ObjectRef(resource, name), lambda queue: queue["spec"].update(stopPolicy=policy))
        world.advance(10.0)

    world.api.apply(a_pod().document())
    world.advance(5.0)
    world.put = hold  # type: ignore[method-assign]  # answers pass through it
    stopped("HoldAndDrain")
    assert late, "the status was written, and its answer is on its way"
    assert not world.running
    stopped("None")
    world.put = put  # type: ignore[method-assign]
    for event in late:
        world.give(event)
    world.advance(200.0)
    assert [(run[1]) for run in world.running] == [2], "the pod runs again"
