"""HD-4: quota of pods that are done is given back by the word of the cluster where they ran, of the live epoch."""

from __future__ import annotations

import pytest

from gatelift_kube.deciding.writes import WriteError
from gatelift_kube.values.resources import WORKLOAD, ObjectKey, ObjectRef
from gatelift_wire.values.messages import CountsReport, PodSetCounts
from support.manager.builders import NAMESPACE, Doc, a_job, a_setting
from support.manager.slice_world import used
from support.manager.world import World, a_world


def a_running_job() -> World:
    world = a_world(a_setting(cpu=8))
    world.api.apply(a_job(parallelism=8, completions=8))
    world.settle()
    return world


def reclaimed(world: World) -> list[Doc]:
    found: list[Doc] = world.find("Workload")["status"].get("reclaimablePods", [])
    return found


def test_hd_4_what_the_users_object_shows_of_an_earlier_run_frees_nothing() -> None:
    world = a_running_job()
    agent = world.agents["a"]
    agent.show(agent.commits[0], {"active": 2, "ready": 2, "succeeded": 6})
    agent.count(agent.commits[0], remaining=2, succeeded=6, reclaimable=6)
    world.advance(3.0)
    assert reclaimed(world) == [{"name": "main", "count": 6}]
    ref = ObjectRef(WORKLOAD, ObjectKey(NAMESPACE, world.find("Workload")["metadata"]["name"]))
    world.api.edit(ref, lambda one: one["spec"].update(active=False))
    world.advance(3.0)
    assert reclaimed(world) == []
    world.api.edit(ref, lambda one: one["spec"].update(active=True))
    world.advance(3.0)
    assert world.condition(world.find("Workload"), "Admitted")["status"] == "True"
    assert world.find("Job")["status"]["succeeded"] == 6, "counters of a mirrored Job never fall"
    assert reclaimed(world) == [], "the new run has reported nothing"
    [(name, key)] = [
        (each.name, each.commits[-1]) for each in world.agents.values() if any(key.epoch == 2 for key in each.commits)
    ]
    world.agents[name].count(key, remaining=8)
    world.advance(3.0)
    assert reclaimed(world) == []


def test_hd_4_a_new_leader_changes_nothing_before_the_cluster_has_reported() -> None:
    """RP-027, RP-029: what is said is stored, and more is stored instead."""
    world = a_running_job()
    agent = world.agents["a"]
    agent.count(agent.commits[0], remaining=2, succeeded=6, reclaimable=6)
    world.advance(3.0)
    world.restart()
    world.advance(3.0)
    assert reclaimed(world) == [{"name": "main", "count": 6}]
    agent.count(agent.commits[0], remaining=1, succeeded=7, reclaimable=7)
    world.advance(3.0)
    assert reclaimed(world) == [{"name": "main", "count": 7}]


@pytest.mark.parametrize(
    ("remaining", "said", "written"),
    [
        pytest.param(2, (("main", 7),), 6, id="more than are over"),
        pytest.param(0, (("main", 2**62),), 8, id="more than were granted"),
        pytest.param(9, (("main", 3),), 0, id="more pods than were granted"),
        pytest.param(2, (("main", -3),), 0, id="below zero"),
        pytest.param(2, (("other", 3),), 0, id="of a pod set that there is none of"),
        pytest.param(2, (), 0, id="nothing"),
    ],
)
def test_no_more_is_given_back_than_pods_are_over(
    remaining: int, said: tuple[tuple[str, int], ...], written: int
) -> None:
    world = a_running_job()
    agent = world.agents["a"]
    counts = (PodSetCounts(name="main", remaining=remaining),)
    agent.say(CountsReport(key=agent.commits[0], pod_sets=counts, reclaimable=said))
    world.advance(3.0)
    assert reclaimed(world) == ([{"name": "main", "count": written}] if written else [])


def test_nothing_is_given_back_of_a_pod_set_whose_pods_nobody_counted() -> None:
    world = a_running_job()
    agent = world.agents["a"]
    agent.say(CountsReport(key=agent.commits[0], pod_sets=(), reclaimable=(("main", 3),)))
    world.advance(3.0)
    assert reclaimed(world) == []


def test_hd_276_pods_that_are_over_are_not_taken_back_in_one_attempt() -> None:
    """HD-276: others were granted that quota meanwhile, and one of them, within quota, was ended for what came back."""
    world = a_running_job()
    agent = world.agents["a"]
    agent.count(agent.commits[0], remaining=2, succeeded=6, reclaimable=6)
    world.advance(3.0)
    for remaining, reclaimable in ((8, 0), (2, 6), (8, 0)):
        agent.count(agent.commits[0], remaining=remaining, reclaimable=reclaimable)
        world.advance(3.0)
        assert reclaimed(world) == [{"name": "main", "count": 6}]
    writes = len(world.writes("Workload"))
    agent.count(agent.commits[0], remaining=1, succeeded=7, reclaimable=7)
    world.advance(3.0)
    assert reclaimed(world) == [{"name": "main", "count": 7}]
    assert len(world.writes("Workload")) == writes + 1


def test_hd_601_what_has_ended_takes_nothing_back_of_what_was_given_on() -> None:
    """Its end is not written yet, and its Workload comes in anew: others run on the quota of pods that are over."""
    world = a_running_job()
    agent = world.agents["a"]
    agent.count(agent.commits[0], remaining=1, succeeded=7, reclaimable=7)
    world.advance(3.0)
    world.api.apply(a_job("next", parallelism=7, completions=7))
    world.advance(3.0)
    assert used(world) == 8
    world.fail = lambda command: WriteError.DENIED if b'"Finished"' in getattr(command, "body", b"") else None
    agent.finish(agent.commits[0], {"succeeded": 8}, message="done")
    world.advance(3.0)
    first = next(one for one in world.all("Workload") if "work" in one["metadata"]["name"])
    ref = ObjectRef(WORKLOAD, ObjectKey(NAMESPACE, first["metadata"]["name"]))
    world.api.edit(ref, lambda one: one["metadata"].setdefault("annotations", {}).update({"example.com/seen": "yes"}))
    world.advance(3.0)
    assert used(world) <= 8
    world.fail = None
    world.advance(300.0)
    assert used(world) == 7
