"""HD-163: the finalizer on ClusterQueues and ResourceFlavors, as writes: one each, paced, none that hinders others.

HD-242, HD-248: that of a Workload, before it is placed.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from gatelift_kube.deciding.writes import Create, Delete, Patch, WriteError
from gatelift_kube.values import resources
from gatelift_kube.values.resources import ObjectKey, ObjectRef
from manager.test_checks_required import a_reserved_pod, say
from support.manager.api import ApiError
from support.manager.builders import a_cluster_queue, a_pod, a_setting, kueue_object
from support.manager.world import World, a_world, workload_ref

FINALIZER = "kueue.x-k8s.io/resource-in-use"
QUEUE = ObjectRef(resources.CLUSTER_QUEUE, ObjectKey("", "shared"))
FLAVOR = ObjectRef(resources.RESOURCE_FLAVOR, ObjectKey("", "default"))


def held(world: World, kind: str = "ClusterQueue") -> list[dict[str, Any]]:
    """Return what was written about the finalizers of a kind."""
    writes = [body for verb, ref, body in world.api.writes if (verb, ref.resource.kind) == ("patch", kind)]
    return [body["metadata"] for body in writes if isinstance(body, dict)]


def test_hd_163_the_finalizer_is_put_on_once_beside_those_of_others() -> None:
    setting = a_setting()
    for document in setting:
        if document["kind"] in {"ClusterQueue", "ResourceFlavor"}:
            document["metadata"]["finalizers"] = ["example.com/own"]
    world = a_world(setting)
    world.advance(60.0)
    for kind, name in (("ClusterQueue", "shared"), ("ResourceFlavor", "default")):
        assert world.find(kind, name)["metadata"]["finalizers"] == ["example.com/own", FINALIZER]
        (written,) = held(world, kind)
        assert written["uid"], "of this very object, as it was seen"
        assert written["resourceVersion"]


def test_hd_163_it_is_taken_off_last_and_nothing_else_with_it() -> None:
    world = a_world(a_setting())
    world.api.edit(QUEUE, lambda queue: queue["metadata"]["finalizers"].append("example.com/own"))
    world.api.apply(a_pod("one").document())
    world.advance(3.0)
    before = len(held(world))
    world.api.delete(QUEUE)
    world.advance(30.0)
    assert len(held(world)) == before, "something is reserved in it"
    world.api.delete(ObjectRef(resources.POD, ObjectKey("team", "one")))
    world.advance(30.0)
    assert world.find("ClusterQueue", "shared")["metadata"]["finalizers"] == ["example.com/own"]
    assert len(held(world)) == before + 1


def test_hd_163_a_flavor_that_is_deleted_goes_with_the_last_queue_that_names_it() -> None:
    world = a_world(a_setting())
    world.api.delete(FLAVOR)
    world.advance(30.0)
    assert world.find("ResourceFlavor", "default")["metadata"]["finalizers"] == [FINALIZER]
    world.api.delete(QUEUE)
    world.advance(3.0)
    assert not world.all("ClusterQueue")
    assert not world.all("ResourceFlavor")


def test_hd_163_a_finalizer_that_is_refused_is_tried_ever_less_and_the_status_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = a_world(a_setting())
    tried = 0
    carry_out = world.api.carry_out

    def refuse(command: Any) -> Any:
        nonlocal tried
        if command.ref == QUEUE and not getattr(command, "subresource", ""):
            tried += 1
            raise ApiError(WriteError.FORBIDDEN, "no such right")
        return carry_out(command)

    monkeypatch.setattr(world.api, "carry_out", refuse)
    world.api.edit(QUEUE, lambda queue: queue["metadata"].update(finalizers=[]))
    world.api.apply(a_pod("one").document())
    world.advance(300.0)
    assert 2 <= tried <= 15
    assert world.find("ClusterQueue", "shared")["status"]["admittedWorkloads"] == 1


def test_hd_163_many_queues_get_it_at_the_pace_of_what_only_informs() -> None:
    world = World()
    for number in range(200):
        queue = a_cluster_queue()
        queue["metadata"]["name"] = f"q{number}"
        world.api.apply(queue)
    world.api.apply(kueue_object("ResourceFlavor", "default", {}))
    world.settle()
    world.advance(1.0)
    assert len(held(world)) < 100
    world.advance(60.0)
    assert len(held(world)) == 200


def waits_without_it(*, cpu: int = 1) -> World:
    """Return a world in which one Workload waits, since its queue is held, and its user has taken the finalizer off."""
    world = a_world(a_setting(cpu=cpu))
    world.api.edit(QUEUE, lambda queue: queue["spec"].update(stopPolicy="Hold"))
    world.api.apply(a_pod("one").document())
    world.advance(2.0)
    world.api.edit(workload_ref(world), lambda workload: workload["metadata"].update(finalizers=["example.com/own"]))
    world.advance(2.0)
    return world


def go_on(world: World) -> None:
    """Let the queue admit again."""
    world.api.edit(QUEUE, lambda queue: queue["spec"].update(stopPolicy="None"))


def test_hd_242_a_workload_has_its_finalizer_before_it_is_reserved() -> None:
    world = waits_without_it()
    assert world.find("Workload")["metadata"]["finalizers"] == ["example.com/own"], "nobody quarrels over what waits"
    go_on(world)
    world.advance(2.0)
    found = world.find("Workload")
    assert found["metadata"]["finalizers"] == ["example.com/own", FINALIZER]
    assert world.condition(found, "Admitted")["status"] == "True"
    patched = [body for verb, ref, body in world.api.writes if (verb, ref) == ("patch", workload_ref(world))]
    written = next(
        body["metadata"] for body in patched if isinstance(body, dict) and "finalizers" in body.get("metadata", {})
    )
    assert written["uid"], "of this very object, as it was seen"
    assert written["resourceVersion"]


def test_hd_242_a_workload_has_its_finalizer_before_it_is_placed_also_where_it_lost_that_once_reserved() -> None:
    """HD-242: its reservation is shown, since another check is waited for."""
    world = a_reserved_pod("budget")
    ref = workload_ref(world)
    assert world.condition(world.api.objects[ref], "QuotaReserved")["status"] == "True"
    world.api.edit(ref, lambda workload: workload["metadata"].update(finalizers=["example.com/own"]))
    world.settle()
    say(world, "budget", "Ready")
    found = world.api.objects[ref]
    assert world.condition(found, "Admitted")["status"] == "True"
    assert found["metadata"]["finalizers"] == ["example.com/own", FINALIZER]


def test_hd_242_a_finalizer_that_is_refused_for_good_gives_the_quota_to_others() -> None:
    world = waits_without_it()
    tried = 0

    def fail(command: Create | Patch | Delete) -> WriteError | None:
        nonlocal tried
        if isinstance(command, Patch) and command.ref == refused and b'"finalizers"' in command.body:
            tried += 1
            return WriteError.DENIED
        return None

    refused = workload_ref(world)
    world.fail = fail
    go_on(world)
    world.advance(2.0)
    assert world.condition(world.api.objects[refused], "QuotaReserved")["reason"] == "ReservationNotWritten"
    world.api.apply(a_pod("other").document())
    world.advance(2.0)
    (other,) = (one for one in world.all("Workload") if one["metadata"]["name"] != refused.key.name)
    assert world.condition(other, "Admitted")["status"] == "True"
    assert 1 <= tried <= 3


def test_hd_248_a_finalizer_that_is_stripped_as_it_is_written_gives_the_quota_to_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without an error nothing rests: the write was repeated for ever, at the pace of the API server."""
    world = waits_without_it()
    stripped, tried = workload_ref(world), 0
    carry_out = world.api.carry_out

    def strip(command: Any) -> Any:
        nonlocal tried
        if isinstance(command, Patch) and command.ref == stripped and b'"finalizers"' in command.body:
            tried += 1
            body = json.loads(command.body)
            body["metadata"]["finalizers"] = ["example.com/own"]
            command = replace(command, body=json.dumps(body).encode())
        return carry_out(command)

    monkeypatch.setattr(world.api, "carry_out", strip)
    go_on(world)
    world.advance(2.0)
    waits = world.condition(world.api.objects[stripped], "QuotaReserved")
    assert waits["reason"] == "ReservationNotWritten"
    assert "finalizer kueue.x-k8s.io/resource-in-use was taken off it" in waits["message"]
    world.api.apply(a_pod("other").document())
    world.advance(2.0)
    (other,) = (one for one in world.all("Workload") if one["metadata"]["name"] != stripped.key.name)
    assert world.condition(other, "Admitted")["status"] == "True"
    assert 1 <= tried <= 3
