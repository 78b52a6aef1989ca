"""Conditions that somebody has filled up to what the CRD takes (HD-197): what Gatelift writes has room."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from gatelift.core.api.inflight import Outstanding
from gatelift.core.api.purposes import Purpose
from gatelift.core.clusters import cluster_conditions
from gatelift.core.clusters.fencing import ANNOTATION_FENCED_BY, ANNOTATION_FENCED_THROUGH
from gatelift.core.dispatching import refused_reservations
from gatelift.core.records import own_conditions
from gatelift_kube.deciding.writes import Create, Delete, ObjectSeen, Patch, WriteError, WriteFailed
from gatelift_kube.objects import conditions
from gatelift_kube.objects.meta import Condition
from gatelift_kube.values.resources import WORKER_CLUSTER, WORKLOAD, ObjectKey, ObjectRef
from support.manager.agents import ScriptedAgent
from support.manager.builders import NAMESPACE, Doc, a_pod, a_setting
from support.manager.links_bench import Manager
from support.manager.worker_cluster_api import Api
from support.manager.world import SUCCEEDED, World, a_running_pod, a_world, workload_ref

CRDS = Path(__file__).parents[2] / "deploy" / "crds"
MOST = 16


def foreign(number: int) -> Doc:
    told = {"type": f"example.com/F{number}", "status": "True", "reason": "X", "message": ""}
    return {**told, "lastTransitionTime": "2026-01-01T00:00:00Z"}


def fill(world: World, ref: ObjectRef) -> None:
    """Fill the conditions of a Workload up to what the CRD takes."""

    def write(workload: Doc) -> None:
        kept = workload.setdefault("status", {}).setdefault("conditions", [])
        kept += [foreign(number) for number in range(MOST - len(kept))]

    world.api.edit(ref, write)
    world.settle()


def deactivate(world: World, _agent: ScriptedAgent) -> None:
    world.api.edit(workload_ref(world), lambda workload: workload["spec"].update(active=False))


def finish(_world: World, agent: ScriptedAgent) -> None:
    agent.finish(agent.commits[-1], SUCCEEDED, message="well")


@pytest.mark.parametrize(("ends", "shown"), [(deactivate, "Evicted"), (finish, "Finished")])
def test_hd_197_what_runs_ends_though_its_conditions_are_full(ends: Any, shown: str) -> None:
    """The symptom: each write was answered 422 `Too many: 17`; deactivated it ran on, and stayed charged."""
    world, agent = a_running_pod()
    fill(world, workload_ref(world))
    ends(world, agent)
    world.advance(20.0)
    found = world.find("Workload")
    assert world.condition(found, shown).get("status") == "True"
    assert not world.machine.core.ledger.holds(found["metadata"]["uid"])
    types = [one["type"] for one in found["status"]["conditions"]]
    assert len(types) <= MOST
    left = [one for one in types if one.startswith("example.com/")]
    assert left == sorted(left, key=lambda one: int(one.removeprefix("example.com/F")))
    assert "example.com/F0" not in left, "who stood there first goes first"
    assert left, "no more go than must"
    told = [event for event in world.emitted if event.reason == own_conditions.LEFT_OUT]
    assert told
    assert "example.com/F0" in told[0].message


def test_hd_197_what_waits_is_admitted_though_its_conditions_are_full() -> None:
    world = a_world(a_setting(cpu=1))
    world.api.apply(a_pod("first").document())
    world.advance(2.0)
    first = world.find("Workload")["metadata"]["uid"]
    world.api.apply(a_pod("second").document())
    world.advance(2.0)
    (second,) = (one for one in world.all("Workload") if one["metadata"]["uid"] != first)
    ref = ObjectRef(WORKLOAD, ObjectKey(NAMESPACE, second["metadata"]["name"]))
    fill(world, ref)
    agent = world.agents["a"]
    agent.finish(agent.commits[-1], SUCCEEDED, message="well")
    world.advance(20.0)
    assert world.condition(world.api.objects[ref], "Admitted").get("status") == "True"
    told = [event for event in world.emitted if event.reason == own_conditions.LEFT_OUT and event.ref == ref]
    assert len(told) <= 2, "once for each write that had no room"


def test_hd_197_of_full_conditions_those_of_others_go_first_come_first_gone() -> None:
    ours = tuple(Condition(type=type_, status="True") for type_ in sorted(own_conditions.WORKLOAD))
    others = tuple(Condition(type=f"F{number}", status="True") for number in range(MOST))
    kept = conditions.fitting((others[0], *ours, *others[1:]), own_conditions.WORKLOAD)
    room = MOST - len(ours)
    assert [each.type for each in kept] == [each.type for each in (*ours, *others[-room:])]
    assert conditions.fitting(others, own_conditions.WORKLOAD) is others


def test_hd_197_all_of_ours_have_room_and_the_bound_is_that_of_each_crd() -> None:
    found = []
    for path in sorted(CRDS.glob("*.*_*.yaml")) + sorted(CRDS.glob("gatelift.dev_*.yaml")):
        for version in yaml.safe_load(path.read_text())["spec"]["versions"]:
            properties = version["schema"]["openAPIV3Schema"]["properties"]
            status = properties.get("status", {}).get("properties", {})
            found += [status["conditions"]["maxItems"]] if "conditions" in status else []
    assert set(found) == {conditions.CONDITIONS_MAX}
    assert len(found) >= 5
    assert len(own_conditions.WORKLOAD) < conditions.CONDITIONS_MAX
    assert len(cluster_conditions.OURS) < conditions.CONDITIONS_MAX


def test_hd_197_a_persons_word_is_answered_though_the_conditions_of_its_cluster_are_full() -> None:
    """The symptom: `gatelift cluster fenced` got no answer, since each was answered 422."""
    manager = Manager(Api())
    manager.dial()
    manager.pass_time(80)
    status: Any = manager.api.objects["w1"]["status"]
    status["conditions"] += [foreign(number) for number in range(MOST - len(status["conditions"]))]
    manager.api.annotate("w1", {ANNOTATION_FENCED_THROUGH: "1", ANNOTATION_FENCED_BY: "ada"})
    manager.event(ObjectSeen(WORKER_CLUSTER, manager.api.get("w1"), b""))
    manager.pass_time(3)
    found = manager.api.get("w1")
    assert found.status.fenced_through_session == 1
    assert conditions.is_true(found.status.conditions, "Fenced")
    assert not manager.api.refused
    assert len(found.status.conditions) <= MOST
    (told,) = [event for event in manager.told if event.reason == own_conditions.LEFT_OUT]
    assert "example.com/F0" in told.message


def refusing_reservations(world: World, error: WriteError) -> list[float]:
    """Let the API server take no reservation; return when it was asked for one."""
    times: list[float] = []

    def fail(command: Create | Patch | Delete) -> WriteError | None:
        if command.ref.resource == WORKLOAD and isinstance(command, Patch) and b'"admission":{' in command.body:
            times.append(world.now)
            return error
        return None

    world.fail = fail
    return times


@pytest.mark.parametrize("error", [WriteError.INVALID, WriteError.DENIED, WriteError.TOO_LARGE])
@pytest.mark.parametrize("clusters", [("a",), ()], ids=["travels", "local"])
def test_hd_197_a_reservation_that_the_api_server_does_not_take_is_given_back_and_told(
    error: WriteError, clusters: tuple[str, ...]
) -> None:
    """The symptom: it was kept in the engine while its write failed for ever, and others waited for that quota."""
    world = a_world(a_setting(cpu=1, clusters=clusters), clusters=clusters or ("local",))
    times = refusing_reservations(world, error)
    world.api.apply(a_pod("refused").document())
    world.advance(2.0)
    refused = world.find("Workload")
    uid, ref = refused["metadata"]["uid"], workload_ref(world)
    assert times
    assert not world.machine.core.ledger.holds(uid), "its quota is for others"
    said = world.condition(world.api.objects[ref], "QuotaReserved")
    assert (said["status"], said["reason"]) == ("False", "ReservationNotWritten")
    told = [event for event in world.emitted if event.reason == "ReservationNotWritten"]
    assert told
    assert told[0].uid == uid
    world.fail = None
    world.api.apply(a_pod("other").document())
    world.settle()
    (other,) = (one for one in world.all("Workload") if one["metadata"]["uid"] != uid)
    assert world.condition(other, "Admitted").get("status") == "True"


def test_hd_197_a_refused_reservation_is_tried_again_ever_more_rarely_and_at_last_admitted() -> None:
    world = a_world(a_setting(cpu=1))
    times = refusing_reservations(world, WriteError.INVALID)
    world.api.apply(a_pod("refused").document())
    world.advance(600.0)
    assert 2 < len(times) < 12
    world.fail = None
    world.advance(400.0)
    assert world.condition(world.find("Workload"), "Admitted").get("status") == "True"


@pytest.mark.parametrize(("kind", "name"), [("AdmissionCheck", "dispatch"), ("ClusterQueue", "shared")])
def test_hd_197_a_check_or_queue_says_that_it_is_active_though_its_conditions_are_full(kind: str, name: str) -> None:
    world = a_world(a_setting())
    (ref,) = (ref for ref in world.api.objects if (ref.resource.kind, ref.key.name) == (kind, name))
    full = {"conditions": [foreign(number) for number in range(MOST)]}
    world.api.edit(ref, lambda found: found["status"].update(full))
    world.advance(20.0)
    assert world.condition(world.api.objects[ref], "Active")["status"] == "True"


@pytest.mark.parametrize("error", [WriteError.NOT_DONE, WriteError.FORBIDDEN, WriteError.QUOTA])
def test_hd_197_a_reservation_that_was_turned_away_for_the_moment_is_kept_and_written_again(error: WriteError) -> None:
    world = a_world(a_setting(cpu=1))
    refusing_reservations(world, error)
    world.api.apply(a_pod("work").document())
    world.advance(2.0)
    workload = world.find("Workload")
    assert world.machine.core.ledger.holds(workload["metadata"]["uid"])
    assert not [event for event in world.emitted if event.reason == "ReservationNotWritten"]
    world.fail = None
    world.advance(60.0)
    assert world.condition(world.find("Workload"), "Admitted").get("status") == "True"


def test_hd_197_a_late_no_to_the_write_of_what_is_placed_by_now_gives_nothing_back() -> None:
    """A write whose answer was lost has landed, and the same again is refused: what it placed is known by then."""
    world, _ = a_running_pod()
    core, uid = world.machine.core, world.find("Workload")["metadata"]["uid"]
    late = Outstanding(ref=workload_ref(world), purpose=Purpose.WINNER, uid=uid)
    no = WriteFailed(write_id=1, error=WriteError.DENIED, message="no")
    assert not refused_reservations.refused(core, late, no, world.now)
    world.advance(30.0)
    assert core.ledger.holds(uid)
    assert not [event for event in world.emitted if event.reason == "ReservationNotWritten"]
