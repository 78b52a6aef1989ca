"""HD-43: labels of ours on what was never placed hold nothing, end nothing and cordon nothing."""

from __future__ import annotations

import pytest

from gatelift.core.conclusions import belief
from gatelift_wire.values.inventory import InventoryEntry
from gatelift_wire.values.keys import PlacementKey, objects_digest
from gatelift_wire.values.messages import Applied, Commit, Forget, GatesLifted, Stop
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


def resync(world: World, cluster: str) -> None:
    world.cut(cluster)
    world.connect(cluster)
    world.settle()


@pytest.mark.parametrize("epoch", [0, 6], ids=["the same epoch", "a later epoch"])
def test_hd_43_what_stands_under_another_name_is_nobodys(epoch: int) -> None:
    world, agent, key = running()
    other = world.agents["b"]
    forged = PlacementKey(key.uid, key.epoch + epoch)
    other.placements[forged] = Held(state="Running", lifted=True, called="tenants")
    resync(world, "b")
    other.say(Applied(key=forged))
    other.say(GatesLifted(key=forged))
    world.settle()
    assert not world.messages(Stop)
    assert not world.messages(Forget)
    assert not world.machine.core.caution.holds(key.uid)
    assert not world.machine.core.caution.cordons("b")
    assert agent.placements[key].lifted
    told = [one for one in world.emitted if one.reason == "LabelsNotBelieved"]
    assert len(told) == 1
    assert "team/tenants" in told[0].message


def test_hd_43_a_live_placement_that_is_listed_under_another_name_is_named_again_and_not_ended() -> None:
    world, agent, key = running()
    agent.placements[key].called = "tenants"
    before = len(world.messages(Commit))
    resync(world, "a")
    assert len(world.messages(Commit)) == before + 1, "the cluster is told which object is meant"
    assert not world.messages(Stop)
    assert world.find("Workload")["status"]["clusterName"] == "a"


# --- at `local`, by the user's object ------------------------------------------------------------------------------


@pytest.mark.parametrize("uid", ["another", ""])
def test_hd_43_at_local_another_object_of_that_name_is_not_the_users(uid: str) -> None:
    world, _, key = running()
    owner = world.find("Pod")["metadata"]
    known = world.machine.core.knowledge.workload_of(key.uid)
    assert known is not None

    def entry(found: str) -> InventoryEntry:
        digest = objects_digest(((owner["name"], found),))
        return InventoryEntry(
            key=key, namespace=owner["namespace"], name=owner["name"], state="Running", lifted=True, digest=digest
        )

    assert belief.stands(world.machine.core, known, "local", entry(owner["uid"]))
    assert not belief.stands(world.machine.core, known, "local", entry(uid))
    assert belief.stands(world.machine.core, known, "a", entry(uid)), (
        "at a worker the object is another one, made by its agent"
    )
