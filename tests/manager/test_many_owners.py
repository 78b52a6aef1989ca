"""What thousands of Workloads of one object, or thousands of owners of one Workload, cost (HD-311, HD-313).

Counted are function calls within `handle`, of our own and of the interpreter's: time says what else the machine does.
"""

from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest

from gatelift.core import texts
from gatelift.core.api.commands import Read
from gatelift.core.api.events import ReadDone, Ticked
from gatelift.core.machine import Machine
from gatelift.core.records.knowledge import Knowledge
from gatelift.core.rules import kept_out
from gatelift.core.state import asked_owners
from gatelift_kinds.shared.made_for import OWNERS_MAX, owners_of
from gatelift_kube.deciding.contained import Contained
from gatelift_kube.deciding.writes import Delete
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.values.resources import POD, WORKLOAD, ObjectKey, ObjectRef
from support.calls import calls_of
from support.manager.api import seen
from support.manager.builders import NAMESPACE, Doc, a_pod, a_setting
from support.manager.world import World, a_world
from support.on_purpose import Broken

FEW, MANY = 100, 800
"""Above the events that are taken between two decisions: with as many a call decides, however many there are."""
ASIDE = 150
"""Calls that a look may cost more with many than with few, of some thousand: what is kept in order grows a little."""


def a_world_with_one_that_waits() -> tuple[World, Doc]:
    """Return a world with a pod for which there is no quota, and its Workload."""
    world = a_world(a_setting(cpu=1))
    for name in ("one", "two"):
        world.api.apply(a_pod(name).document())
        world.advance(3.0)
    (found,) = [each for each in world.all("Workload") if each["metadata"]["name"].startswith("pod-two")]
    return world, found


class Told:
    """Events of a watch, told to the core alone: nobody answers what it asks for."""

    def __init__(self, world: World) -> None:
        self.machine: Machine = world.machine
        self.now = world.now
        self._version = 10_000_000

    def workload(self, like: Doc, name: str, **meta: Any) -> tuple[int, list[Any]]:
        """Tell of a Workload; return calls and commands."""
        document = copy.deepcopy(like)
        document.pop("status", None)
        document["metadata"].pop("annotations", None)
        self._version += 1
        document["metadata"] |= {"name": name, "uid": f"uid-{name}", "resourceVersion": str(self._version), **meta}
        return self.tell(seen(ObjectRef(WORKLOAD, ObjectKey(NAMESPACE, name)), document))

    def tell(self, event: Any, after: float = 0.02) -> tuple[int, list[Any]]:
        self.now += after
        return calls_of(lambda: list(self.machine.handle(event, self.now)))


# --- many Workloads of one object -------------------------------------------------------------------------------------


@pytest.mark.parametrize("deleted", [True, False], ids=["being-deleted", "waiting"])
def test_hd_311_one_more_workload_of_an_object_costs_as_much_with_many_as_with_few(deleted: bool) -> None:
    """HD-311: each was compared and sorted with all others, for each version of each of them."""
    world, own = a_world_with_one_that_waits()
    told = Told(world)
    gone = {"deletionTimestamp": "2026-11-28T00:00:00Z"} if deleted else {}
    costs = [told.workload(own, f"w{number:04d}", finalizers=["example.com/keep"], **gone)[0] for number in range(MANY)]
    few, many = max(costs[FEW - 10 : FEW]), max(costs[-10:])
    assert many < few + ASIDE
    assert told.workload(own, "w0007", labels={"x": "y"}, **gone)[0] < few + ASIDE, "nor does a label of one"


def test_hd_311_a_look_at_one_that_is_too_many_deletes_that_one() -> None:
    world, own = a_world_with_one_that_waits()
    told = Told(world)
    for number in range(FEW):
        _, commands = told.workload(own, f"w{number:04d}")
        assert [each.ref.key.name for each in commands if isinstance(each, Delete)] == [f"w{number:04d}"]


def test_hd_311_an_object_whose_own_workload_is_missing_gets_it_whatever_others_name_it() -> None:
    world, own = a_world_with_one_that_waits()
    for number in range(FEW):
        named = copy.deepcopy(own)
        named.pop("status", None)
        named["metadata"] |= {"name": f"a{number:02d}", "uid": f"uid-a{number}", "finalizers": ["example.com/keep"]}
        world.api.apply({key: named[key] for key in ("apiVersion", "kind", "metadata", "spec")})
    ref = ObjectRef(WORKLOAD, ObjectKey(NAMESPACE, own["metadata"]["name"]))
    world.api.edit(ref, lambda workload: workload["metadata"].update(finalizers=[]))  # else its pod ends with it
    world.api.delete(ref)
    world.advance(10.0)
    there = {each["metadata"]["name"]: each["metadata"] for each in world.all("Workload")}
    assert "deletionTimestamp" not in there[own["metadata"]["name"]]
    assert all("deletionTimestamp" in each for name, each in there.items() if name.startswith("a"))


# --- many owners of one Workload --------------------------------------------------------------------------------------


def pods(count: int) -> list[Doc]:
    return [{"apiVersion": "v1", "kind": "Pod", "name": f"p{number}", "uid": f"u{number}"} for number in range(count)]


def reads(commands: list[Any]) -> list[Read]:
    return [each for each in commands if isinstance(each, Read)]


def test_hd_313_what_a_workload_names_is_read_one_at_a_time_and_at_a_pace() -> None:
    """HD-313: a read for each of fifteen thousand, as fast as they were answered, for an hour."""
    world, own = a_world_with_one_that_waits()
    told = Told(world)
    _, commands = told.workload(own, "big", ownerReferences=pods(MANY))
    asked, seconds = 0, 10.0
    begun = told.now
    while told.now < begun + seconds:
        for each in reads(commands):
            asked += 1
            _, commands = told.tell(ReadDone(read_id=each.read_id, ref=each.ref, object=None, raw=b""), 0.001)
        assert len(reads(commands)) <= 1
        commands += told.tell(Ticked(), 0.005)[1]
        commands = reads(commands)
    most = asked_owners.AT_ONCE + seconds / asked_owners.SECONDS + 1
    assert most / 2 < asked <= most


def test_hd_313_an_answer_about_one_owner_costs_a_look_up_for_each_other_one_at_most() -> None:
    """HD-313: all were gone through again, a dozen times, from the first one on."""
    world, own = a_world_with_one_that_waits()
    told = Told(world)
    _, commands = told.workload(own, "big", ownerReferences=pods(OWNERS_MAX))
    (first,) = reads(commands)
    calls, commands = told.tell(ReadDone(read_id=first.read_id, ref=first.ref, object=None, raw=b""))
    assert len(reads(commands)) == 1
    assert calls < 3 * OWNERS_MAX
    assert told.workload(own, "big", ownerReferences=pods(OWNERS_MAX), labels={"x": "y"})[0] < 15 * OWNERS_MAX


def test_hd_635_what_one_names_costs_no_look_more_while_something_of_others_could_not_be_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """HD-635: it was asked of each object that it names whether that is untaken, before each look at it."""
    monkeypatch.setattr(Contained, "surfaces", False)
    world, own = a_world_with_one_that_waits()
    told = Told(world)
    _, commands = told.workload(own, "big", ownerReferences=pods(OWNERS_MAX))
    (first,) = reads(commands)
    Broken(monkeypatch, (Knowledge, "put_owner"), lambda _, owner, **__: owner.object.metadata.name == "bad")
    told.tell(seen(ObjectRef(POD, ObjectKey(NAMESPACE, "bad")), a_pod("bad").document()))
    assert world.machine.core.untaken
    calls, commands = told.tell(ReadDone(read_id=first.read_id, ref=first.ref, object=None, raw=b""))
    assert len(reads(commands)) == 1
    assert calls < OWNERS_MAX


def test_hd_313_a_workload_that_names_too_many_is_left_alone_and_says_so() -> None:
    world, own = a_world_with_one_that_waits()
    big = copy.deepcopy(own)
    big["metadata"] |= {"name": "big", "uid": "uid-big", "ownerReferences": pods(OWNERS_MAX + 1), "annotations": {}}
    world.api.apply({key: big[key] for key in ("apiVersion", "kind", "metadata", "spec")})
    world.advance(30.0)
    (found,) = [each for each in world.all("Workload") if each["metadata"]["name"] == "big"]
    (said,) = [each for each in found["status"]["conditions"] if each["type"] == texts.QUOTA_RESERVED]
    assert (said["status"], said["reason"], said["message"]) == (
        "False",
        texts.TOO_MANY_OWNERS,
        kept_out.TOO_MANY_OWNERS,
    )
    told = Told(world)
    assert told.workload(big, "big2", ownerReferences=pods(OWNERS_MAX + 1))[0] < OWNERS_MAX


def test_hd_313_as_many_as_a_group_has_and_a_few_are_read() -> None:
    def owners(count: int) -> int:
        return len(owners_of(msgspec.convert({"metadata": {"ownerReferences": pods(count)}}, Workload)))

    assert OWNERS_MAX > 4096
    assert (owners(OWNERS_MAX), owners(OWNERS_MAX + 1)) == (OWNERS_MAX, 0)
