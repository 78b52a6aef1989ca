"""What one member of a group costs the manager does not depend on how many others there are (PF-2, PF-3).

Counted in lines of code that are executed for an event and all that follows from it, so no load of a machine matters.
"""

from __future__ import annotations

import functools
import json
from typing import Any

import pytest

from gatelift_kinds.registry import WITH_GROUPS
from gatelift_wire.values.keys import VERSION_OF_CHANGE
from gatelift_wire.values.messages import Change, Commit, ObjectReport
from support.manager.agents import ScriptedAgent
from support.manager.builders import a_setting
from support.manager.group_world import a_member, a_world_with_groups, join, pod_ref
from support.manager.world import World, a_world
from support.touched import Counted, Touched

FEW, MANY = 50, 1000
RATIO_MAX = 1.2
LINES_OF_A_NAME_MAX = 20
"""For each owner that another version of the Workload names, where that names one more."""
COMES = "another one comes"
FAILING = {"phase": "Pending", "containerStatuses": [{"name": "c", "state": {"waiting": {"reason": "ErrImagePull"}}}]}


class Crew:
    """A world whose manager is counted, with a group of so many members that is let go."""

    def __init__(self, members: int, *, at: str) -> None:
        self.world: World = (
            a_world(a_setting(clusters=("a",)), clusters=("a",), kinds=WITH_GROUPS)
            if at == "a"
            else a_world_with_groups()
        )
        self.agent: ScriptedAgent = self.world.connect(at, version=VERSION_OF_CHANGE)
        made = (a_member(f"p{n:04}", total=members, cpu="1m", at=n % 60) for n in range(members))
        join(self.world, *made, seconds=5.0)
        self.uids = {each["metadata"]["name"]: each["metadata"]["uid"] for each in self.world.all("Pod")}
        self.touched = Touched()
        counted: Any = Counted(self.world.machine, self.touched)
        self.world.machine = counted

    def after(self, seconds: float = 3.0) -> int:
        """Return what was gone through meanwhile."""
        self.world.advance(seconds)
        return self.touched.taken()

    def says(self, name: str, status: dict[str, Any], **said: Any) -> None:
        """Have the worker say how a member is."""
        self.agent.say(
            ObjectReport(
                key=self.agent.commits[-1],
                kind="PodGroup",
                name=name,
                uid="w",
                status=json.dumps(status).encode(),
                owner_uid=self.uids[name],
                **said,
            )
        )


def at_worker(members: int) -> dict[str, int]:
    """Return what is gone through for events of single members at a worker."""
    play, found = Crew(members, at="a"), {}
    play.says("p0003", {"phase": "Running"})
    found["one runs"] = play.after()
    play.says("p0004", FAILING)
    found["one is in trouble"] = play.after(20.0)
    play.world.api.delete(pod_ref("p0005"))
    found["one is deleted"] = play.after()
    assert [one.name for _, each in play.world.messages(Change) for one in each.leave] == ["p0005"]
    play.says("p0005", {}, gone=True)
    found["one has left"] = play.after()
    play.world.api.apply(a_member("late", total=members, cpu="1m", at=59))
    found[COMES] = play.after()
    assert [one.name for _, each in play.world.messages(Change) for one in each.join] == ["late"]
    return found


def at_home(members: int) -> dict[str, int]:
    """Return what is gone through for events of single members at home."""
    play, found = Crew(members, at="local"), {}
    play.world.api.edit(pod_ref("p0003"), lambda document: document["metadata"]["annotations"].update(note="1"))
    found["one that waits changes"] = play.after()
    play.world.api.edit(pod_ref("p0003"), _lifted)
    found["one is let go"] = play.after()
    play.world.api.edit(pod_ref("p0003"), lambda document: document["status"].update(phase="Failed"))
    found["one fails"] = play.after()
    return found


def _lifted(document: dict[str, Any]) -> None:
    document["spec"].update(schedulingGates=[], nodeName="n")


@functools.cache
def gone_through(where: str) -> tuple[dict[str, int], dict[str, int]]:
    """Return what is gone through for each event, with few members and with many."""
    measured = {"worker": at_worker, "home": at_home}[where]
    return measured(FEW), measured(MANY)


@pytest.mark.parametrize("where", ["worker", "home"])
def test_pf_2_what_one_member_costs_the_manager_does_not_grow_with_the_others(where: str) -> None:
    """HD-440, HD-441 at a worker, HD-442 at home."""
    few, many = gone_through(where)
    ratios = {name: round(many[name] / few[name], 2) for name in few if name != COMES}
    assert max(ratios.values()) <= RATIO_MAX, ratios


def test_pf_2_a_workload_that_names_one_more_is_gone_through_once() -> None:
    """HD-439: one object with the names of all, each version in which these differ is compared as a whole."""
    few, many = gone_through("worker")
    assert (many[COMES] - few[COMES]) / (MANY - FEW) <= LINES_OF_A_NAME_MAX


def leavers(world: World) -> list[list[str]]:
    """Return who was told to leave, by Change."""
    return [[one.name for one in each.leave] for _, each in world.messages(Change) if each.leave]


def test_hd_441_who_is_deleted_is_told_to_leave_whatever_else_is_looked_at() -> None:
    play = Crew(3, at="a")
    play.says("p0001", {"phase": "Running"})
    play.after()
    play.world.api.delete(pod_ref("p0001"))
    play.after()
    assert leavers(play.world) == [["p0001"]]


def test_hd_441_in_another_session_who_is_to_leave_is_told_once_more() -> None:
    play = Crew(3, at="a")
    play.world.api.delete(pod_ref("p0001"))
    play.after()
    play.world.cut("a")
    play.world.connect("a", version=VERSION_OF_CHANGE)
    play.after(10.0)
    assert leavers(play.world) == [["p0001"], ["p0001"]]


def test_hd_442_another_session_at_home_is_told_of_all_that_wait() -> None:
    play = Crew(3, at="local")
    play.world.cut("local")
    before = len(play.world.messages(Change))
    play.world.connect("local", version=VERSION_OF_CHANGE)
    play.after(10.0)
    play.world.api.edit(pod_ref("p0001"), lambda document: document["metadata"]["annotations"].update(note="1"))
    play.after(10.0)
    told = [one.name for _, each in play.world.messages(Change)[before:] for one in each.join]
    commits = [one.name for _, each in play.world.messages(Commit)[1:] for one in each.objects]
    assert sorted(told or commits) == ["p0000", "p0001", "p0002"]


def joiners(world: World) -> list[str]:
    """Return who was told to join, by Change."""
    return [one.name for _, each in world.messages(Change) for one in each.join]


def test_pg_9_nobody_is_told_of_one_that_waits_for_the_slot_of_another() -> None:
    play = Crew(3, at="a")
    play.world.api.delete(pod_ref("p0001"))
    play.after()
    join(play.world, a_member("late", cpu="1m", at=59))
    assert joiners(play.world) == []
    play.says("p0001", {}, gone=True)
    play.after()
    assert joiners(play.world) == ["late"]
