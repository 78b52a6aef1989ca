"""Kueue's own scenarios of single pods and of checks, PC-n and PI-n by the reference's list, as the core shows.

Neighbours: `test_kueues_list_of_groups`, and the histories of that name.
"""

from __future__ import annotations

import json

from gatelift.core.state.readiness_values import ReadinessSettings
from gatelift_kube.values import resources
from gatelift_kube.values.resources import ObjectKey, ObjectRef
from gatelift_wire.values.messages import Commit, Finished, Stop, Stopped
from support.manager.builders import Doc, a_pod, a_setting, kueue_object
from support.manager.group_world import THEIRS, a_member, a_world_at_home, contained, join, leave, lift, over, says
from support.manager.world import World, a_running_pod, a_world, workload_ref

QUEUE = ObjectRef(resources.CLUSTER_QUEUE, ObjectKey("", "shared"))
TOLD = "UpdatedAdmissionCheck"


def a_queue_with_checks(*names: str, groups: bool = False) -> World:
    """Return a world of work that stays at home, whose queue requires checks of others."""
    world = a_world_at_home() if groups else a_world(a_setting(clusters=()), clusters=())
    active = {"conditions": [{"type": "Active", "status": "True", "reason": "Active", "message": "On"}]}
    for name in names:
        world.api.apply({**kueue_object("AdmissionCheck", name, {"controllerName": "example.com/x"}), "status": active})
    strategy = {"admissionChecks": [{"name": name} for name in names]}
    world.api.edit(QUEUE, lambda queue: queue["spec"].update(admissionChecksStrategy=strategy))
    world.advance(2.0)
    return world


def say(world: World, ref: ObjectRef, **said: str) -> None:
    """Have the controllers of checks say something, and leave them pending."""

    def write(workload: Doc) -> None:
        for one in workload["status"]["admissionChecks"]:
            if one["name"] in said:
                one["message"] = said[one["name"]]

    world.api.edit(ref, write)
    world.advance(2.0)


def told(world: World) -> list[tuple[str, str]]:
    """Return at whom what checks say was told, and in which words."""
    return [(one.ref.key.name, one.message) for one in world.emitted if one.reason == TOLD and not one.warning]


def test_pc_088_what_pending_checks_say_is_told_at_the_pod_in_one_event_and_again_when_it_changes() -> None:
    world = a_queue_with_checks("budget", "license")
    world.api.apply(a_pod("one").document())
    world.advance(2.0)
    assert told(world) == []
    say(world, workload_ref(world), budget="asks the bank", license="asks the vendor")
    expected = ("one", "budget: asks the bank; license: asks the vendor")
    assert told(world) == [expected]
    world.advance(60.0)
    assert told(world) == [expected], "once"
    say(world, workload_ref(world), budget="the bank is closed")
    assert told(world)[1:] == [("one", "budget: the bank is closed; license: asks the vendor")]


def test_pc_089_what_pending_checks_say_of_a_group_is_told_at_its_oldest_pod() -> None:
    world = a_queue_with_checks("budget", groups=True)
    join(world, *(a_member(name, total=2, at=at) for at, name in enumerate("ab")))
    say(world, THEIRS, budget="asks the bank")
    assert told(world) == [("a", "budget: asks the bank")]


def test_pi_009_of_what_a_check_adds_a_pod_is_let_go_with_all() -> None:
    """Its own labels stay."""
    world = a_queue_with_checks("budget")
    world.connect("local")
    document = a_pod("one").document()
    document["metadata"]["labels"]["old"] = "kept"
    world.api.apply(document)
    world.advance(2.0)
    update = {"name": "main", "labels": {"new": "label"}, "annotations": {"new": "note"}, "nodeSelector": {"disk": "x"}}

    def ready(workload: Doc) -> None:
        for one in workload["status"]["admissionChecks"]:
            one.update(state="Ready", message="", podSetUpdates=[update])

    world.api.edit(workload_ref(world), ready)
    world.advance(2.0)
    [(_, commit)] = world.messages(Commit)
    added = json.loads(commit.pod_sets[0].additions)
    assert (added["labels"]["new"], added["annotations"]["new"], added["nodeSelector"]) == (
        "label",
        "note",
        {"disk": "x"},
    )


def test_pc_024_the_workload_of_a_pod_that_succeeds_says_what_the_pod_says() -> None:
    """PC-024: Finished, reason Succeeded, its words; an event says so, and our finalizer goes."""
    world, agent = a_running_pod()
    agent.say(Finished(key=agent.commits[-1], succeeded=True, reason="Succeeded", message="all is well"))
    world.advance(5.0)
    said = world.condition(world.find("Workload"), "Finished")
    assert (said["status"], said["reason"], said["message"]) == ("True", "Succeeded", "all is well")
    assert not world.find("Pod")["metadata"].get("finalizers")
    assert [one.ref.key.name for one in world.emitted if one.reason == "FinishedWorkload"] == ["one"]


def is_late(world: World) -> None:
    """Have nothing get ready in time, and the agent take its time with the stop."""
    world.agents["local"].silent = True
    world.advance(61.0)


def stop(world: World, *names: str) -> None:
    """Have the agent of `local` end what it was told to, and say so."""
    for name in names:
        leave(world, name, "WorkloadEvictedDueToPodsReadyTimeout")
        over(world, name, "Failed", seconds=0.0)
    agent = world.agents["local"]
    agent.silent = False
    key = agent.commits[-1]
    world.stopped(key, "local")
    agent.say(Stopped(key=key))
    world.advance(5.0)


def test_pi_032_a_group_that_is_not_ready_in_time_once_too_often_is_deactivated() -> None:
    """Its first time-out has it wait for others, and for its backoff; the second one is above the limit of one."""
    settings = ReadinessSettings(timeout=60.0, backoff_base=1.0, backoff_limit=1)
    world = a_world_at_home(*(a_member(name, total=2, at=at) for at, name in enumerate("ab")), readiness=settings)
    lift(world, *"ab")
    is_late(world)
    stop(world, *"ab")
    assert says(world, "Evicted") == ("True", "PodsReadyTimeout")
    assert says(world, "WaitingForReplacementPods") == ("True", "PodsReadyTimeout")
    assert world.find("Workload")["status"]["requeueState"]["count"] == 1
    world.advance(10.0)
    assert says(world, "Requeued") == ("True", "BackoffFinished")
    join(world, *(a_member(name, total=2, at=20 + at) for at, name in enumerate("cd")), seconds=5.0)
    lift(world, *"cd")
    is_late(world)
    assert world.find("Workload")["spec"]["active"] is False
    assert [message.reason for _, message in world.messages(Stop)][-1] == "DeactivatedDueToRequeuingLimitExceeded"
    stop(world, *"cd")
    assert says(world, "Evicted") == ("True", "DeactivatedDueToRequeuingLimitExceeded")
    assert says(world, "QuotaReserved")[0] == "False"
    assert "requeueState" not in world.find("Workload")["status"]
    assert "DeactivationTarget" not in [one["type"] for one in world.find("Workload")["status"]["conditions"]]
    assert contained(world) == []
