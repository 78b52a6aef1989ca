"""HD-202: states of checks that no ClusterQueue asks for, in the status of a Workload, count for nothing."""

from __future__ import annotations

import pytest

from gatelift_kube.values import resources
from gatelift_kube.values.resources import ObjectKey, ObjectRef
from gatelift_wire.values.messages import Stop
from support.manager.builders import Doc, a_pod, a_setting, kueue_object
from support.manager.world import World, a_running_pod, a_world, workload_ref

CHECKS_MAX = 8
QUEUE = ObjectRef(resources.CLUSTER_QUEUE, ObjectKey("", "shared"))


def invent(world: World, state: str) -> None:
    """Fill the list with states of checks that nobody has."""

    def write(workload: Doc) -> None:
        checks = workload.setdefault("status", {}).setdefault("admissionChecks", [])
        checks += [
            {"name": f"f{number}", "state": state, "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
            for number in range(CHECKS_MAX - len(checks))
        ]

    world.api.edit(workload_ref(world), write)
    world.advance(20.0)


def runs_on(world: World) -> None:
    workload = world.find("Workload")
    assert workload["spec"].get("active", True)
    assert world.condition(workload, "Evicted") == {}
    assert world.condition(workload, "Admitted")["status"] == "True"
    assert not world.messages(Stop)


@pytest.mark.parametrize("state", ["Pending", "Retry", "Rejected"])
def test_hd_202_an_invented_check_ends_nothing_that_runs(state: str) -> None:
    """The symptom: `Evicted due to AdmissionChecks in Pending state: f0, f1, ...`; Rejected deactivated it."""
    world, _ = a_running_pod()
    invent(world, state)
    runs_on(world)


@pytest.mark.parametrize("state", ["Pending", "Retry", "Rejected"])
def test_hd_202_nor_under_the_next_leader_which_finds_it_in_the_record(state: str) -> None:
    world, _ = a_running_pod()
    invent(world, state)
    world.restart()
    world.advance(30.0)
    runs_on(world)


@pytest.mark.parametrize("state", ["Pending", "Retry", "Rejected"])
def test_hd_202_an_invented_check_keeps_nothing_out_of_its_queue(state: str) -> None:
    world = a_world(a_setting(cpu=0))
    world.api.apply(a_pod().document())
    world.advance(5.0)
    invent(world, state)
    room = {"name": "default", "resources": [{"name": "cpu", "nominalQuota": "4"}]}
    world.api.edit(QUEUE, lambda queue: queue["spec"]["resourceGroups"][0].update(flavors=[room]))
    world.advance(30.0)
    workload = world.find("Workload")
    assert workload["spec"].get("active", True)
    assert world.condition(workload, "Admitted").get("status") == "True"
    assert [one["name"] for one in workload["status"]["admissionChecks"]] == ["dispatch"]


def test_hd_202_a_full_list_has_room_for_a_check_that_the_queue_asks_for_since() -> None:
    foreign = kueue_object("AdmissionCheck", "budget", {"controllerName": "example.com/foreign"})
    active = {"conditions": [{"type": "Active", "status": "True", "reason": "Active", "message": "On"}]}
    world = a_world(
        [
            *a_setting(),
            {**foreign, "status": active},
            {**kueue_object("AdmissionCheck", "license", foreign["spec"]), "status": active},
        ]
    )

    def ask(*names: str) -> None:
        strategy = {"admissionChecks": [{"name": name} for name in names]}
        world.api.edit(QUEUE, lambda queue: queue["spec"].update(admissionChecksStrategy=strategy))
        world.advance(2.0)

    ask("dispatch", "budget")
    world.api.apply(a_pod().document())
    world.advance(2.0)
    invent(world, "Ready")
    ask("dispatch", "budget", "license")
    world.advance(10.0)
    names = {one["name"] for one in world.find("Workload")["status"]["admissionChecks"]}
    assert names == {"dispatch", "budget", "license"}
