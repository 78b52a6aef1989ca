"""HD-238: which reservations that this leader has not decided it believes, and which it writes back; one thing each.

Neighbours: `tests/histories/test_reservations_of_others.py`, on both real cores; `test_late_answers.py`, HD-250.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest

from gatelift_kube.objects.core import Lease, LeaseSpec
from gatelift_kube.values.resources import CLUSTER_QUEUE, WORKLOAD, ObjectKey, ObjectRef
from support.manager.builders import Doc, a_pod, a_setting, a_workload
from support.manager.world import ME, SUCCEEDED, THE_POD, World, a_world, workload_ref

QUEUE = ObjectRef(CLUSTER_QUEUE, ObjectKey("", "shared"))
AT = "2026-11-21T00:00:00Z"


def granted(document: Doc) -> Doc:
    """Return what a leader grants to an object where there is room."""
    world = a_world(a_setting())
    world.api.apply(document)
    world.settle()
    found: Doc = world.find("Workload")["status"]["admission"]
    return found


def hold(world: World, policy: str = "Hold") -> None:
    """Let the queue reserve nothing, or go on."""
    world.api.edit(QUEUE, lambda queue: queue["spec"].update(stopPolicy=policy))


def true(type_: str, message: str = "by hand") -> Doc:
    """Return a condition that is so."""
    return {"type": type_, "status": "True", "reason": type_, "message": message, "lastTransitionTime": AT}


def reserve(world: World, ref: ObjectRef, admission: Doc, *, epoch: int = 1, **more: Any) -> None:
    """Write around the policy that quota is reserved, in an epoch."""

    def change(workload: Doc) -> None:
        status = workload.setdefault("status", {})
        others = [one for one in status.get("conditions", []) if one["type"] != "QuotaReserved"]
        conditions = [*others, true("QuotaReserved"), true("gatelift.dev/EpochUsed", str(epoch))]
        status.update(admission=copy.deepcopy(admission), conditions=conditions, **more)

    world.api.edit(ref, change)


def told(world: World) -> int:
    """Return how often people were told that a record is put back."""
    return sum(each.reason == "RecordPutBack" for each in world.emitted)


def test_hd_238_what_is_over_does_not_wait_whatever_is_reserved_for_it() -> None:
    """Its end was seen before it was placed: nobody is told that it waits as before, and nothing is written."""
    world = a_world(a_setting())
    hold(world)
    world.api.apply(a_pod().document())
    world.settle()
    world.api.edit(THE_POD, lambda pod: pod.update(status=SUCCEEDED))
    world.advance(3.0)
    ref = workload_ref(world)
    assert world.condition(world.find("Workload"), "Finished")
    assert not world.find("Workload")["status"].get("admission")
    written = len(world.writes("Workload"))
    world.advance(100.0)
    reserve(world, ref, granted(a_pod().document()))
    world.advance(10.0)
    assert (told(world), len(world.writes("Workload")) - written) == (0, 0)
    assert not world.machine.core.ledger.charges


@pytest.mark.parametrize("after", [5.0, 60.0], ids=["as long as it may be one", "no longer"])
def test_hd_238_a_reservation_may_be_one_of_the_leader_before(after: float) -> None:
    """What a leader before decided, and nobody could tell of, lands under the next one: that takes it over."""
    world = a_world(a_setting())
    hold(world)
    world.api.apply(a_pod().document())
    world.settle()
    world.restart()
    world.advance(after)
    reserve(world, workload_ref(world), granted(a_pod().document()))
    world.advance(3.0)
    believed = after == 5.0
    assert told(world) == (not believed)
    assert bool(world.machine.core.ledger.charges) is believed


def test_hd_238_a_reservation_in_a_higher_term_is_asked_about_before_it_is_a_strangers() -> None:
    """R3: another leads, has taken the Lease, and reserves. What it wrote is not written over; we step down."""
    world = a_world(a_setting())
    hold(world)
    world.api.apply(a_pod().document())
    world.advance(100.0)
    world.deposed(world.term + 1)
    marks = {"gatelift.dev/term": str(world.term + 1), "gatelift.dev/epoch": "1"}
    update = {"name": "main", "annotations": marks}
    check = {"name": "dispatch", "state": "Ready", "message": "", "lastTransitionTime": AT, "podSetUpdates": [update]}
    ref = workload_ref(world)
    reserve(world, ref, granted(a_pod().document()), admissionChecks=[check], clusterName="a")
    written = copy.deepcopy(world.api.objects[ref])
    world.advance(10.0)
    assert world.stepped_down
    assert told(world) == 0
    assert world.api.objects[ref] == written


def test_hd_238_what_a_leader_has_seen_and_not_yet_looked_at_was_reserved_by_nobody_either() -> None:
    """Somebody forges a term meanwhile, so that nothing is looked at until the Lease has said who leads."""
    world = a_world(a_setting())
    world.api.apply(a_pod("other").document())
    world.advance(100.0)
    world.lease = None

    def forge(workload: Doc) -> None:
        workload["status"]["admissionChecks"][0]["podSetUpdates"][0]["annotations"]["gatelift.dev/term"] = "999"

    (placed,) = [ref for ref in world.api.objects if ref.resource == WORKLOAD]
    world.api.edit(placed, forge)
    world.settle()
    new = a_workload("bare").document()
    world.api.apply(new)
    world.settle()
    (ref,) = [each for each in world.api.objects if each.resource == WORKLOAD and each != placed]
    uid = world.api.objects[ref]["metadata"]["uid"]
    assert uid not in world.machine.core.attempts
    reserve(world, ref, granted(a_pod("other").document()))
    world.settle()
    world.lease = Lease(spec=LeaseSpec(holder_identity=ME, lease_transitions=world.term))
    world.advance(5.0)
    assert told(world) == 2, "of the term, and of what was reserved"
    assert set(world.machine.core.ledger.charges) == {world.find("Workload", placed.key.name)["metadata"]["uid"]}


@pytest.mark.parametrize("epoch", [1, 5], ids=["its own epoch", "another epoch"])
def test_hd_238_what_a_leader_has_decided_is_reserved_in_its_epoch(epoch: int) -> None:
    """It has quota, and no cluster has answered yet: who writes just that takes nothing from anybody."""
    world = a_world(a_setting())
    world.advance(100.0)
    for agent in world.agents.values():
        agent.silent = True
    world.api.apply(a_pod().document())
    world.settle()
    (attempt,) = world.machine.core.attempts.values()
    assert attempt.reserve is not None
    reserve(world, workload_ref(world), granted(a_pod().document()), epoch=epoch)
    world.settle()
    assert told(world) == (epoch != 1)
    assert world.machine.core.attempts[attempt.uid].epoch == 1
