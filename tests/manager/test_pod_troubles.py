"""IS-45: what keeps placed pods from running is seen at home, on the Workload and the user's pod, while it lasts."""

from __future__ import annotations

from typing import Any

from gatelift.core.told.pod_troubles import SETTLE_SECONDS
from gatelift_kinds.shared.pod_trouble import CONDITION
from gatelift_kube.deciding.writes import Patch, WriteError
from gatelift_kube.objects.conditions import MESSAGE_CHARS_MAX
from gatelift_wire.values.messages import CountsReport, PodSetCounts
from gatelift_wire.values.refusals import Refusal
from gatelift_wire.values.told import PodTrouble
from support.manager.builders import a_job, a_pod, a_setting
from support.manager.world import RUNNING, SUCCEEDED, World, a_world

NO_NODE = "0/3 nodes are available: 3 Insufficient cpu."
TEXT = f'Pod one on cluster "a": {NO_NODE}'
UNSCHEDULABLE = {
    "phase": "Pending",
    "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": NO_NODE}],
}
A_WHILE = SETTLE_SECONDS + 5.0


def said(world: World, kind: str) -> tuple[str, str]:
    found = world.condition(world.find(kind), CONDITION)
    return found.get("reason", ""), found.get("message", "")


def a_placed_pod(**settings: Any) -> World:
    world = a_world(a_setting(), **settings)
    world.api.apply(a_pod().document())
    world.settle()
    return world


def show(world: World, status: dict[str, Any]) -> None:
    agent = world.agents["a"]
    agent.show(agent.commits[0], status)
    world.advance(A_WHILE)


def written(world: World) -> list[Patch]:
    return [one for one in world.history if isinstance(one, Patch) and CONDITION.encode() in one.body]


def test_is_45_what_no_node_takes_is_said_on_the_workload_and_on_the_pod() -> None:
    world = a_placed_pod()
    show(world, UNSCHEDULABLE)
    assert said(world, "Workload") == ("Unschedulable", TEXT)
    assert said(world, "Pod") == ("Unschedulable", TEXT)
    scheduled = world.condition(world.find("Pod"), "PodScheduled")
    assert scheduled.get("reason") != "Unschedulable", "no autoscaler at home takes it for a pod that lacks a node"
    assert world.condition(world.find("Workload"), "Admitted")["status"] == "True", "it moves nothing"
    writes = len(written(world))
    world.advance(600.0)
    assert len(written(world)) == writes, "once"


def test_is_45_it_goes_when_the_trouble_is_over() -> None:
    world = a_placed_pod()
    show(world, UNSCHEDULABLE)
    show(world, RUNNING)
    assert said(world, "Workload") == said(world, "Pod") == ("", "")
    assert world.condition(world.find("Pod"), "Ready")["status"] == "True"


def test_is_45_it_goes_with_the_end() -> None:
    world = a_placed_pod()
    show(world, UNSCHEDULABLE)
    agent = world.agents["a"]
    agent.finish(agent.commits[0], SUCCEEDED)
    world.advance(A_WHILE)
    assert world.condition(world.find("Workload"), "Finished")["status"] == "True"
    assert said(world, "Workload") == said(world, "Pod") == ("", "")


def test_is_45_what_passes_is_not_said() -> None:
    world = a_placed_pod()
    agent = world.agents["a"]
    agent.show(agent.commits[0], UNSCHEDULABLE)
    world.advance(SETTLE_SECONDS / 2)
    show(world, RUNNING)
    assert written(world) == []


def test_is_45_a_text_of_any_length_is_cut() -> None:
    world = a_placed_pod()
    condition = {**UNSCHEDULABLE["conditions"][0], "message": "\x1b" + "x" * 50_000}  # type: ignore[dict-item]
    show(world, {"phase": "Pending", "conditions": [condition]})
    reason, message = said(world, "Workload")
    assert reason == "Unschedulable"
    assert len(message) < MESSAGE_CHARS_MAX
    assert message.isprintable()


def test_is_45_a_write_that_is_refused_rests_alone_and_the_end_is_written() -> None:
    world = a_placed_pod()
    world.fail = lambda write: (
        WriteError.INVALID if isinstance(write, Patch) and CONDITION.encode() in write.body else None
    )
    show(world, UNSCHEDULABLE)
    assert len(written(world)) < 10, "it pauses"
    agent = world.agents["a"]
    agent.finish(agent.commits[0], SUCCEEDED)
    world.advance(5.0)
    assert world.condition(world.find("Workload"), "Finished")["status"] == "True"


def test_is_45_after_a_change_of_leader_it_stays_until_the_cluster_has_told_otherwise() -> None:
    world = a_placed_pod()
    show(world, UNSCHEDULABLE)
    world.restart()
    world.advance(60.0)
    assert said(world, "Workload") == ("Unschedulable", TEXT)
    world.connect("a")
    world.advance(1.0)
    show(world, RUNNING)
    assert said(world, "Workload") == said(world, "Pod") == ("", "")


def test_is_45_of_a_lost_cluster_the_last_word_stays() -> None:
    world = a_placed_pod()
    show(world, UNSCHEDULABLE)
    world.cut("a", lost=True)
    world.advance(600.0)
    assert said(world, "Workload") == said(world, "Pod") == ("Unschedulable", TEXT)


def test_is_45_a_start_that_is_refused_is_said_until_it_runs() -> None:
    world = a_world(a_setting(), clusters=("a",))
    agent = world.agents["a"]
    agent.refuse_commit = Refusal.DENIED
    world.api.apply(a_pod().document())
    world.advance(2.0)
    text = 'Cluster "a" refused the placement: Denied: as told'
    assert said(world, "Workload") == ("StartRefused", text)
    assert said(world, "Pod") == ("StartRefused", text)
    agent.refuse_commit = None
    world.advance(3600.0)
    agent.show(agent.commits[-1], RUNNING)
    world.advance(A_WHILE)
    assert said(world, "Workload") == said(world, "Pod") == ("", "")


# --- pods of a Job ---------------------------------------------------------------------------------------------------


def a_placed_job() -> World:
    world = a_world(a_setting(cpu=8))
    world.api.apply(a_job())
    world.settle()
    return world


def count(world: World, *troubles: PodTrouble) -> None:
    agent = world.agents["a"]
    agent.say(CountsReport(key=agent.commits[0], pod_sets=(PodSetCounts(name="main", active=1),), troubles=troubles))
    world.advance(A_WHILE)


def test_is_45_the_trouble_of_a_jobs_pods_is_said_on_its_workload_while_it_lasts() -> None:
    world = a_placed_job()
    before = world.find("Job")
    count(world, PodTrouble(reason="ImageNotPulled", pod="j-0", text="no\x1b image"))
    assert said(world, "Workload") == ("ImageNotPulled", 'Pod j-0 on cluster "a": no\ufffd image')
    assert world.find("Job") == before, "a Job has no place for it"
    count(world)
    assert said(world, "Workload") == ("", "")


def test_is_45_a_reason_that_nobody_knows_or_that_is_not_of_a_pod_is_not_said() -> None:
    world = a_placed_job()
    count(world, PodTrouble(reason="Bored", pod="j-0"), PodTrouble(reason="StartRefused", pod="j-0"))
    assert said(world, "Workload") == ("", "")


def test_is_45_it_moves_nothing() -> None:
    world = a_placed_job()
    status = {key: value for key, value in world.find("Workload")["status"].items() if key != "conditions"}
    count(world, PodTrouble(reason="ContainerCrashes", pod="j-0", text="x"))
    after = world.find("Workload")["status"]
    assert {key: value for key, value in after.items() if key != "conditions"} == status
    assert [one.subresource for one in written(world)] == ["status"]


def test_is_45_missing_pods_are_said_of_the_job() -> None:
    world = a_placed_job()
    count(world, PodTrouble(reason="PodsMissing", pod="j", text="2 of 4 pods are not there; exceeded quota: team"))
    text = 'Job j on cluster "a": 2 of 4 pods are not there; exceeded quota: team'
    assert said(world, "Workload") == ("PodsMissing", text)
    count(world)
    assert said(world, "Workload") == ("", "")
