"""A group at a worker: what its agent is told of who joins and who leaves, and what its words make of the members."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gatelift.core.records.told import STRANGERS_MAX, ToldMembers
from gatelift_kinds.registry import WITH_GROUPS
from gatelift_kinds.shared.pod_trouble import CONDITION
from gatelift_wire.values.keys import VERSION_OF_CHANGE, PlacementKey
from gatelift_wire.values.messages import Change, Commit, ObjectReport, TemplateBlob
from support.manager.agents import ScriptedAgent
from support.manager.builders import a_setting
from support.manager.group_world import a_member, join, pod_ref
from support.manager.world import World, a_world, workload_ref

NAMES = "abc"


def placed(*, version: int = VERSION_OF_CHANGE) -> tuple[World, ScriptedAgent]:
    """Return a world whose only worker runs a group of three."""
    world = a_world(a_setting(clusters=("a",)), clusters=("a",), kinds=WITH_GROUPS)
    agent = world.connect("a", version=version)
    join(world, *(a_member(name, at=at) for at, name in enumerate(NAMES)), seconds=5.0)
    assert world.condition(world.find("Workload"), "Admitted")["status"] == "True"
    return world, agent


def changes(world: World) -> list[Change]:
    return [message for _, message in world.messages(Change)]


def uid(world: World, name: str) -> str:
    found = [one["metadata"]["uid"] for one in world.all("Pod") if one["metadata"]["name"] == name]
    return found[0] if found else ""


def key(agent: ScriptedAgent) -> PlacementKey:
    return agent.commits[-1]


def tell(world: World, agent: ScriptedAgent, name: str, phase: str = "", *, whose: str = "", **said: Any) -> None:
    status = json.dumps({"phase": phase} if phase else {}).encode()
    owner = whose or uid(world, name)
    agent.say(ObjectReport(key=key(agent), kind="PodGroup", name=name, uid="w", status=status, owner_uid=owner, **said))
    world.advance(3.0)


def delete(world: World, name: str) -> None:
    world.api.delete(pod_ref(name))
    world.advance(3.0)


def test_pf_5_the_members_travel_by_two_templates_each_for_the_users_pod() -> None:
    world, _ = placed()
    ((_, commit),) = world.messages(Commit)
    assert {one.name: one.uid for one in commit.objects} == {name: uid(world, name) for name in NAMES}
    assert len({(one.template, one.marks) for one in commit.objects}) == 1
    assert len(world.messages(TemplateBlob)) == 2


def test_pg_2_a_group_of_which_a_pod_was_let_go_here_goes_to_no_worker() -> None:
    world = a_world(a_setting(clusters=("a",)), clusters=("a",), kinds=WITH_GROUPS)
    world.connect("a")
    free = a_member("a", at=1, total=2)
    free["spec"] |= {"schedulingGates": [], "nodeName": "n"}
    join(world, free, a_member("b", at=2, total=2), seconds=5.0)
    assert world.messages(Commit) == []
    why = world.condition(world.find("Workload"), "QuotaReserved")
    assert (why["status"], why["reason"]) == ("False", "Misconfigured")
    assert "was let go in this cluster" in why["message"]


def test_who_leaves_and_who_joins_is_said_in_one_change_each_pass_once() -> None:
    world, agent = placed()
    before = uid(world, "b")
    delete(world, "b")
    join(world, a_member("d", at=9), seconds=3.0)
    (first,) = changes(world)
    assert (first.number, [(one.name, one.uid) for one in first.leave], first.join) == (1, [("b", before)], ())
    tell(world, agent, "b", gone=True, whose=before)
    first, second = changes(world)
    assert [(one.name, one.uid) for one in second.join] == [("d", uid(world, "d"))]
    assert second.number > first.number
    world.advance(60.0)
    assert len(changes(world)) == 2


def test_nobody_joins_before_the_workload_names_it() -> None:
    """A new leader knows from the record who may run there."""
    world, agent = placed()
    before = uid(world, "b")
    delete(world, "b")
    tell(world, agent, "b", gone=True, whose=before)
    join(world, a_member("d", at=9), seconds=3.0)
    joined = {one.uid for each in changes(world) for one in each.join}
    owners = {one["uid"] for one in world.find("Workload")["metadata"]["ownerReferences"]}
    assert joined == {uid(world, "d")}
    assert joined <= owners


def test_an_agent_of_before_is_sent_no_change_and_nothing_is_noted_as_told() -> None:
    world, agent = placed(version=1)
    before = uid(world, "b")
    delete(world, "b")
    world.advance(30.0)
    assert changes(world) == []
    assert uid(world, "b") == before
    world.cut("a")
    world.connect("a", resumed=True, version=VERSION_OF_CHANGE)
    world.advance(5.0)
    assert [one.uid for each in changes(world) for one in each.leave] == [before]
    assert agent.name == "a"


def test_a_new_session_is_told_all_by_the_commit_and_changes_are_numbered_anew() -> None:
    world, _ = placed()
    delete(world, "b")
    world.cut("a")
    world.connect("a")
    world.advance(5.0)
    commits = [message for _, message in world.messages(Commit)]
    assert {one.name for one in commits[-1].objects} == {"a", "c"}
    assert [each.number for each in changes(world)] == [1, 1]
    assert [one.name for one in changes(world)[-1].leave] == ["b"]


def test_pg_9_a_member_that_leaves_keeps_its_finalizer_until_its_worker_says_that_it_has_stopped() -> None:
    world, agent = placed()
    before = uid(world, "b")
    delete(world, "b")
    world.advance(60.0)
    assert uid(world, "b") == before
    tell(world, agent, "b", gone=True, whose=before)
    assert uid(world, "b") == ""


@pytest.mark.parametrize("of_before", [False, True], ids=["", "under another leader"])
def test_r7_also_where_a_leader_after_it_finds_it_deleted(*, of_before: bool) -> None:
    world, _ = placed()
    before = uid(world, "b")
    delete(world, "b")
    if of_before:
        world.restart()
        world.advance(30.0)
    assert uid(world, "b") == before


def test_mc_1_what_is_said_of_another_pod_of_that_name_is_not_shown_and_that_one_is_to_leave() -> None:
    """Y8, P7."""
    world, agent = placed()
    tell(world, agent, "b", "Failed", whose="somebody-elses")
    assert all(one.get("status", {}).get("phase", "Pending") == "Pending" for one in world.all("Pod"))
    assert [(one.name, one.uid) for each in changes(world) for one in each.leave] == [("b", "somebody-elses")]


def test_hd_483_of_pods_that_nobody_has_as_many_are_kept_as_a_placement_may_have() -> None:
    told = ToldMembers()
    heard = [told.hears_of(f"u{number}", "x", gone=False) for number in range(STRANGERS_MAX + 1)]
    assert (heard.count(True), heard[-1], len(told.members)) == (STRANGERS_MAX, False, STRANGERS_MAX)
    assert told.hears_of("u0", "x", gone=False), "who is known is heard of as ever"
    assert told.hears_of("u0", "x", gone=True)
    assert told.hears_of("u0", "x", gone=False)
    assert len(told.members) == STRANGERS_MAX - 1, "who is gone is not taken in again"
    assert told.hears_of("never", "x", gone=True)
    told.forget()
    told.joins([("never", "x")])
    assert told.hears_of("u1", "x", gone=False), "of the next placement as many"
    assert set(told.members) == {"never", "u1"}, "of who is gone and was never known nothing is kept"


def test_hd_483_a_worker_tells_of_pods_without_end_that_nobody_has_and_no_more_are_read_and_it_is_said() -> None:
    """Each was read in the management cluster, told to leave, and kept for as long as the placement lasted."""
    world, agent = placed()
    (attempt,) = (each for each in world.machine.core.attempts.values() if each.live)
    for number in range(STRANGERS_MAX - 2):
        attempt.told.hears_of(f"u{number}", "x", gone=True)
        attempt.told.hears_of(f"u{number}", "x", gone=False)
    attempt.told.members = {uid: name for uid, name in attempt.told.members.items() if name != "x"}
    attempt.told.looks_at_all()
    for number in range(40):
        tell(world, agent, f"n{number}", "Running", whose=f"nobody-{number}")
    assert sorted(one.name for each in changes(world) for one in each.leave) == ["n0", "n1"]
    assert len(attempt.told.members) == len(NAMES) + 2
    said = [each.text for each in world.notes if "more objects than a placement may have" in each.text]
    assert 0 < len(said) <= 20
    tell(world, agent, "a", "Running")
    assert next(one for one in world.all("Pod") if one["metadata"]["name"] == "a")["status"]["phase"] == "Running"


def test_mc_11_a_member_that_is_deleted_at_home_is_not_shown_as_failed() -> None:
    world, agent = placed()
    before = uid(world, "b")
    delete(world, "b")
    tell(world, agent, "b", "Failed", whose=before, deleting=True)
    found = [one for one in world.all("Pod") if one["metadata"]["name"] == "b"]
    assert all(one.get("status", {}).get("phase", "Pending") == "Pending" for one in found)


def test_mc_5_a_member_removed_at_the_worker_is_shown_as_failed_with_its_reason() -> None:
    world, agent = placed()
    tell(world, agent, "b", "Running")
    tell(world, agent, "b", "Running", gone=True)
    (found,) = [one for one in world.all("Pod") if one["metadata"]["name"] == "b"]
    assert (found["status"]["phase"], found["status"]["reason"]) == ("Failed", "WorkerPodDeleted")


@pytest.mark.parametrize("gone", [False, True])
def test_hd_396_mc_5_so_it_is_where_its_containers_ended_by_that(*, gone: bool) -> None:
    """HD-396: a kubelet says Failed of what it had to stop, as of what failed by itself."""
    world, agent = placed()
    tell(world, agent, "b", "Running")
    tell(world, agent, "b", "Failed", deleting=not gone, gone=gone)
    (found,) = [one for one in world.all("Pod") if one["metadata"]["name"] == "b"]
    assert (found["status"]["phase"], found["status"].get("reason")) == ("Failed", "WorkerPodDeleted")


@pytest.mark.parametrize("anew", [False, True])
def test_hd_396_who_had_failed_before_it_was_deleted_there_failed_by_itself(*, anew: bool) -> None:
    world, agent = placed()
    tell(world, agent, "b", "Failed")
    if anew:
        world.restart()
        agent = world.connect("a", version=VERSION_OF_CHANGE)
        world.advance(5.0)
    tell(world, agent, "b", "Failed", deleting=True)
    tell(world, agent, "b", "Failed", gone=True)
    (found,) = [one for one in world.all("Pod") if one["metadata"]["name"] == "b"]
    assert (found["status"]["phase"], found["status"].get("reason")) == ("Failed", None)


def test_hd_396_who_failed_by_itself_or_succeeded_as_it_was_deleted_is_shown_as_it_is() -> None:
    world, agent = placed()
    tell(world, agent, "a", "Failed")
    tell(world, agent, "b", "Succeeded", deleting=True)
    agent.say(
        ObjectReport(
            key=key(agent),
            kind="PodGroup",
            name="c",
            uid="w",
            status=b'{"phase": "Failed", "reason": "Evicted"}',
            owner_uid=uid(world, "c"),
            deleting=True,
        )
    )
    world.advance(3.0)
    shown = {one["metadata"]["name"]: one["status"].get("reason") for one in world.all("Pod")}
    assert shown == {"a": None, "b": None, "c": "Evicted"}


def test_mc_11_nor_is_a_member_of_a_group_that_we_stop() -> None:
    world, agent = placed()
    tell(world, agent, "b", "Running")
    agent.silent = True
    world.api.edit(workload_ref(world), lambda document: document["spec"].update(active=False))
    world.advance(5.0)
    tell(world, agent, "b", "Failed", deleting=True)
    (found,) = [one for one in world.all("Pod") if one["metadata"]["name"] == "b"]
    assert found["status"]["phase"] == "Running"


def test_hd_443_what_kept_a_member_from_running_is_not_told_any_more_once_it_has_left() -> None:
    world, agent = placed()
    agent.lift(key(agent))
    waiting = {"name": "main", "state": {"waiting": {"reason": "ErrImagePull", "message": "no such image"}}}
    status = json.dumps({"phase": "Pending", "containerStatuses": [waiting]}).encode()
    said = ObjectReport(key=key(agent), kind="PodGroup", name="b", uid="w", status=status, owner_uid=uid(world, "b"))
    agent.say(said)
    world.advance(30.0)
    assert world.condition(world.find("Workload"), CONDITION)["status"] == "True"
    before = uid(world, "b")
    delete(world, "b")
    tell(world, agent, "b", gone=True, whose=before)
    world.advance(30.0)
    assert not world.condition(world.find("Workload"), CONDITION)
