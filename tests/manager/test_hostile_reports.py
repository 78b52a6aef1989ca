"""A worker's agent that reports what is no status: its object shows nothing of it, the manager goes on with all else.

The wire lets only JSON objects through (`tests/wire/test_json_rules.py`); what is inside is whatever a taken-over
worker likes.
"""

from __future__ import annotations

import msgspec
import pytest

from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import Finished, ObjectReport
from support.manager.builders import a_job, a_pod, a_setting
from support.manager.world import RUNNING, World, a_world

HOSTILE = {
    "conditions are a text": b'{"conditions":"xyz"}',
    "conditions are numbers": b'{"conditions":[1,2]}',
    "a condition's type is a list": b'{"conditions":[{"type":["a"],"status":"True"}]}',
    "conditions are an object": b'{"conditions":{"type":"Ready"}}',
    "a phase that is a number": b'{"phase":7}',
    "a count that is a text": b'{"succeeded":"many","active":1}',
    "a count that is null": b'{"succeeded":null}',
    "a lone surrogate": b'{"message":"\\ud800"}',
    "no object": b"[1]",
    "IS-2: a count that is negative": b'{"succeeded":-1}',
    "IS-2: a count of failures that is negative": b'{"failed":-9223372036854775808}',
    "IS-2: active pods that are negative": b'{"active":-1,"ready":-1}',
    "IS-2: a count beyond what Kubernetes counts": b'{"succeeded":2147483648}',
    "IS-2: a count of 5,000 digits": b'{"succeeded":' + b"9" * 5000 + b"}",
    "IS-2: a phase that is none": b'{"phase":"Eternal"}',
    "IS-2: a condition that is neither true nor false": b'{"conditions":[{"type":"Ready","status":"Perhaps"}]}',
}

PARTS = {
    "a number beyond all floats": b'{"x":1e999,',
    "IS-10: a number of 5,000 digits": b'{"x":' + b"9" * 5000 + b",",
    "half a character": b'{"message":"\xc3",',
}
"""Of a status whose other fields can be shown: nobody reads the first two, and a message that is none is left out."""


def a_placed(kind: str) -> World:
    world = a_world(a_setting(cpu="4", clusters=("a",)), clusters=("a",))
    if kind == "Pod":
        world.api.apply(a_pod("one").asking(cpu="1").document())
    else:
        world.api.apply(a_job("one", parallelism=1))
    world.settle()
    return world


def key_of(world: World) -> PlacementKey:
    return next(iter(world.agents["a"].placements))


def report(world: World, kind: str, status: bytes) -> ObjectReport:
    return ObjectReport(key=key_of(world), kind=kind, name="one", uid="u", status=status)


@pytest.mark.parametrize("kind", ["Pod", "Job"])
@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS.keys())
def test_what_is_not_shown_of_a_status_keeps_the_rest_from_nothing(kind: str, part: bytes) -> None:
    world = a_placed(kind)
    world.agents["a"].show(key_of(world), RUNNING if kind == "Pod" else {"active": 1, "ready": 1})
    world.advance(5.0)
    more = b'"phase":"Running","reason":"Told"}' if kind == "Pod" else b'"active":1,"ready":0}'
    world.agents["a"].say(report(world, kind, part + more))
    world.advance(5.0)
    status = world.find(kind)["status"]
    assert status.get("reason") == "Told" if kind == "Pod" else status.get("ready") == 0
    assert not [note.text for note in world.notes if "is not shown" in note.text or "DecodeError" in note.text]


@pytest.mark.parametrize("kind", ["Pod", "Job"])
@pytest.mark.parametrize("status", HOSTILE.values(), ids=HOSTILE.keys())
def test_what_is_no_status_is_not_shown_and_ends_nothing(kind: str, status: bytes) -> None:
    """IS-2: counts, phases and states that are none set the mirror of this placement aside, and nothing else."""
    world = a_placed(kind)
    agent = world.agents["a"]
    before = world.find(kind).get("status")
    agent.say(report(world, kind, status))
    world.advance(5.0)
    assert world.find(kind).get("status") == before
    assert any("is not shown" in note.text and note.cluster == "a" for note in world.notes)
    good = RUNNING if kind == "Pod" else {"active": 1, "ready": 1}
    agent.say(report(world, kind, msgspec.json.encode(good)))
    world.advance(5.0)
    shown = world.find(kind)["status"]
    assert shown.get("phase") == "Running" or shown.get("active") == 1


@pytest.mark.parametrize("status", HOSTILE.values(), ids=HOSTILE.keys())
def test_an_end_with_what_is_no_status_is_an_end_all_the_same(status: bytes) -> None:
    world = a_placed("Pod")
    objects = (report(world, "Pod", status),)
    world.agents["a"].say(Finished(key=key_of(world), succeeded=False, reason="Failed", message="", objects=objects))
    world.advance(30.0)
    conditions = {one["type"]: one["status"] for one in world.find("Workload")["status"]["conditions"]}
    assert conditions["Finished"] == "True"
    assert not world.machine.core.ledger.usage(world.find("Workload")["metadata"]["uid"])
