"""HD-34: one worker's word about a later epoch holds that workload and cordons that cluster, and never the fleet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gatelift.core.api.counter import Proof
from gatelift.core.clusters.link_values import CounterProved, FencedByPerson
from gatelift_kube.values.resources import POD, WORKLOAD, ObjectKey, ObjectRef
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import Commit, Finished, Forget, GatesLifted, Report, Stop, Stopped
from support.manager.agents import Held, ScriptedAgent
from support.manager.builders import a_pod, a_setting
from support.manager.world import RUNNING, World, a_world


def running() -> tuple[World, ScriptedAgent, PlacementKey]:
    """Return a world in which a pod runs on a, and b is idle."""
    world = a_world(a_setting())
    world.api.apply(a_pod().document())
    world.settle()
    agent = world.agents["a"]
    (key,) = agent.commits
    agent.show(key, RUNNING)
    world.settle()
    return world, agent, key


def raise_epoch(world: World, epoch: int, name: str = "") -> None:
    meta = world.find("Workload", name)["metadata"]
    ref = ObjectRef(WORKLOAD, ObjectKey(meta["namespace"], meta["name"]))
    world.api.edit(
        ref, lambda one: one["metadata"].setdefault("annotations", {}).update({"gatelift.dev/epoch": str(epoch)})
    )
    world.settle()


def committed_to(world: World, cluster: str) -> int:
    return sum(1 for to, _ in world.messages(Commit) if to == cluster)


@pytest.mark.parametrize(
    "say",
    [lambda key: GatesLifted(key=key), lambda key: Finished(key=key, succeeded=True), lambda key: Stopped(key=key)],
    ids=["lifted", "finished", "stopped"],
)
def test_hd_34_one_clusters_word_about_a_later_epoch_cordons_that_cluster_and_nothing_else(say: Any) -> None:
    world, agent, key = running()
    report: Report = say(PlacementKey(key.uid, 7))
    world.agents["b"].say(report)
    world.settle()
    assert not world.machine.core.caution.halted
    assert agent.placements[key].lifted, "what runs goes on"
    assert not world.messages(Stop)
    assert not world.messages(Forget)
    assert [one.reason for one in world.emitted].count("EpochAhead") == 1
    reason, message = world.links.no_new_work["b"]
    assert (reason, f"Workload team/{world.find('Workload')['metadata']['name']}" in message) == ("EpochAhead", True)

    for name in ("two", "three"):
        world.api.apply(a_pod(name).document())
    world.advance(5.0)
    assert (committed_to(world, "a"), committed_to(world, "b")) == (3, 0), "others go on, on other clusters"


def test_hd_34_the_workload_is_not_started_anew_before_its_epoch_was_raised_and_the_rest_is_gone() -> None:
    world, _, key = running()
    later = PlacementKey(key.uid, 7)
    other = world.agents["b"]
    other.placements[later] = Held(lifted=True, state="Running")
    world.restart()
    world.settle()
    caution = world.machine.core.caution
    assert (caution.halted, caution.holds(key.uid), caution.cordons("b")) == ("", True, True)
    del other.placements[later]
    world.connect("b")
    world.settle()
    assert (caution.holds(key.uid), caution.cordons("b")) == (False, False)


def evicted_while_named(epoch: int, *, over: bool = False) -> tuple[World, PlacementKey]:
    """Return a world in which b names a later epoch of a workload, whose own one has ended meanwhile."""
    world, _, key = running()
    later = PlacementKey(key.uid, epoch)
    world.agents["b"].say(Finished(key=later, succeeded=True) if over else GatesLifted(key=later))
    world.settle()
    meta = world.find("Workload")["metadata"]
    ref = ObjectRef(WORKLOAD, ObjectKey(meta["namespace"], meta["name"]))
    for active in (False, True):
        world.api.edit(ref, lambda workload, active=active: workload["spec"].update(active=active))  # type: ignore[misc]  # mypy cannot infer it
        world.advance(60.0)
    return world, later


def test_hd_75_the_epoch_that_the_managers_own_end_raises_stops_nothing_that_runs_under_that_epoch() -> None:
    world, later = evicted_while_named(2)
    assert world.find("Workload")["metadata"]["annotations"]["gatelift.dev/epoch"] == "2"
    assert later not in [stop.key for _, stop in world.messages(Stop)]
    assert world.machine.core.caution.holds(later.uid)


@pytest.mark.parametrize("over", [False, True], ids=["runs", "over"])
def test_hd_34_hd_75_raised_as_the_text_says_it_is_stopped_there_and_then_started_anew(*, over: bool) -> None:
    world, later = evicted_while_named(2, over=over)
    said = next(one for one in world.find("Workload")["status"]["conditions"] if one["type"] == "QuotaReserved")
    assert said["reason"] == "EpochAhead"
    assert "to 3 or above" in said["message"]
    raise_epoch(world, 3)
    answers = [each.key for _, each in world.messages(Forget if over else Stop)]
    assert later in answers
    assert not world.machine.core.caution.holds(later.uid), "its agent has answered that nothing of it is left"


def test_hd_79_a_run_under_the_epoch_of_a_reservation_that_has_no_winner_yet_is_waited_for() -> None:
    """A backup of that moment knows the reservation and no placement: the same epoch would run on two clusters."""
    world = a_world(a_setting())
    for agent in world.agents.values():
        agent.silent = True
    world.api.apply(a_pod().document())
    world.advance(3.0)
    meta = world.find("Workload")["metadata"]
    key = PlacementKey(meta["uid"], 1)
    assert [one["status"] for one in world.find("Workload")["status"]["conditions"] if one["type"] == "QuotaReserved"]
    world.agents["b"].say(GatesLifted(key=key))
    world.settle()
    assert world.machine.core.caution.holds(key.uid)
    world.agents["a"].silent = False
    world.advance(30.0)
    assert not world.messages(Commit), "b has not said that nothing of it is left"
    world.agents["b"].say(Stopped(key=key))
    world.advance(30.0)
    assert [to for to, _ in world.messages(Commit)] == ["a"]


def test_hd_34_what_has_ended_under_a_later_epoch_is_forgotten_when_its_user_deletes_the_object() -> None:
    world, later = evicted_while_named(2, over=True)
    assert later not in [each.key for _, each in world.messages(Forget)]
    meta = world.find("Pod")["metadata"]
    world.api.delete(ObjectRef(POD, ObjectKey(meta["namespace"], meta["name"])))
    world.advance(5.0)
    assert later in [each.key for _, each in world.messages(Forget)]
    assert not world.machine.core.caution.cordons("b")


def test_hd_34_a_person_who_declares_the_cluster_fenced_ends_the_hold() -> None:
    world, _, key = running()
    world.agents["b"].say(GatesLifted(key=PlacementKey(key.uid, 7)))
    world.settle()
    world.cut("b", lost=True)
    world.upcall(FencedByPerson(cluster="b", through_session=world.sessions["b"], who="a person"))
    world.settle()
    assert not world.machine.core.caution.holds(key.uid)


@pytest.mark.parametrize(
    "let_go",
    [
        pytest.param(lambda world: fence(world, "a"), id="a person says fenced of it"),
        pytest.param(lambda world: world.connect("a"), id="it lists nothing of it any more"),
    ],
)
def test_hd_193_what_two_clusters_hold_names_the_one_that_is_left(
    let_go: Callable[[World], None],
) -> None:
    """HD-193: it went on naming the cluster of which a person had just said fenced."""
    world, key = evicted_while_named(7)
    world.agents["a"].say(GatesLifted(key=key))
    world.advance(5.0)
    assert waits(world).startswith("cluster a names epoch 7")
    let_go(world)
    world.advance(10.0)
    assert world.machine.core.caution.holds(key.uid)
    assert waits(world).startswith("cluster b names epoch 7")


def fence(world: World, cluster: str) -> None:
    world.cut(cluster, lost=True)
    world.upcall(FencedByPerson(cluster=cluster, through_session=world.sessions[cluster], who="a person"))


def waits(world: World) -> str:
    """Return why the Workload says that it waits."""
    conditions = world.find("Workload")["status"]["conditions"]
    return str(next(one["message"] for one in conditions if one["type"] == "QuotaReserved"))


def test_hd_55_a_workload_of_which_a_cluster_names_a_later_epoch_is_started_nowhere() -> None:
    """What was evicted meanwhile waits: it may run there, in an epoch that the record does not know."""
    world, _, key = running()
    world.agents["b"].say(GatesLifted(key=PlacementKey(key.uid, 7)))
    world.settle()
    meta = world.find("Workload")["metadata"]
    ref = ObjectRef(WORKLOAD, ObjectKey(meta["namespace"], meta["name"]))
    for active in (False, True):
        world.api.edit(ref, lambda workload, active=active: workload["spec"].update(active=active))  # type: ignore[misc]  # mypy cannot infer it
        world.advance(60.0)
    assert [commit.key for _, commit in world.messages(Commit)] == [key]
    world.connect("b")
    world.advance(60.0)
    assert len(world.messages(Commit)) == 2, "it lists nothing of it any more"


def test_hd_181_what_is_held_as_it_runs_bears_it_until_it_is_over_and_no_longer() -> None:
    world, _, key = running()
    world.connect("b", resynced_session=world.sessions["b"] + 1)
    later = PlacementKey(key.uid, 7)
    world.agents["b"].say(GatesLifted(key=later))
    world.advance(5.0)
    assert held(world) == ("EpochAhead", "to 8 or above")
    writes = version(world)
    world.advance(60.0)
    assert version(world) == writes, "it is said once"

    take_off(world)
    world.advance(5.0)
    assert held(world) == ("EpochAhead", "to 8 or above"), "somebody took it off by hand"

    raise_epoch(world, 8)
    world.agents["b"].say(Stopped(key=later))
    world.advance(5.0)
    assert held(world) is None
    assert world.links.no_new_work["b"] == ("", "")


def test_hd_181_what_is_held_and_ends_does_not_go_on_saying_it() -> None:
    world, agent, key = running()
    world.agents["b"].say(GatesLifted(key=PlacementKey(key.uid, 7)))
    world.advance(5.0)
    agent.say(Finished(key=key, succeeded=True))
    world.advance(5.0)
    assert held(world) is None


def test_hd_181_a_seal_in_doubt_is_said_of_its_cluster_until_its_next_greeting() -> None:
    world, _, _ = running()
    world.connect("b", resynced_session=world.sessions["b"] + 1)
    for proof, said in ((Proof.UNVERIFIED, "SealUnverified"), (Proof.OLDER, "")):
        world.upcall(CounterProved(cluster="b", proof=proof))
        world.settle()
        assert world.links.no_new_work["b"][0] == said


def held(world: World) -> tuple[str, str] | None:
    """Return the reason that it bears, and the way out."""
    for one in world.find("Workload")["status"]["conditions"]:
        if one["type"] == "gatelift.dev/Held":
            assert one["status"] == "True"
            return one["reason"], one["message"].partition("gatelift.dev/epoch ")[2].partition(",")[0]
    return None


def take_off(world: World) -> None:
    meta = world.find("Workload")["metadata"]
    ref = ObjectRef(WORKLOAD, ObjectKey(meta["namespace"], meta["name"]))

    def edit(one: dict[str, Any]) -> None:
        one["status"]["conditions"] = [each for each in one["status"]["conditions"] if "Held" not in each["type"]]

    world.api.edit(ref, edit)


def version(world: World) -> str:
    found: str = world.find("Workload")["metadata"]["resourceVersion"]
    return found
