"""What a cluster's loss does to a placement may be asked for; what is not acted on is told to who asks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gatelift_wire.values.messages import Commit, DisconnectPolicy
from support.manager.builders import a_pod, a_setting
from support.manager.world import a_world

ASKERS = {"a pod": "pod", "a queue": "queue", "a worker cluster": "cluster"}


@pytest.mark.parametrize("asker", ASKERS.values(), ids=ASKERS)
@pytest.mark.parametrize("policy", ["failover", "unfenced"])
def test_who_asks_for_a_policy_that_is_not_acted_on_is_told_and_the_placement_waits(asker: str, policy: str) -> None:
    note = {"gatelift.dev/disconnect": policy}
    setting = a_setting(clusters=("a",))
    if asker == "queue":
        next(each for each in setting if each["kind"] == "ClusterQueue")["metadata"]["annotations"] = note
    world = a_world(setting, clusters=("a",))
    pod = a_pod().document()
    if asker == "pod":
        pod["metadata"].setdefault("annotations", {}).update(note)
    if asker == "cluster":
        world.links.views["a"] = replace(world.links.views["a"], policy=DisconnectPolicy(policy))
    world.api.apply(pod)
    world.settle()
    [(_, commit)] = world.messages(Commit)
    assert commit.policy is DisconnectPolicy.WAIT
    [update] = world.find("Workload")["status"]["admissionChecks"][0]["podSetUpdates"]
    assert update["annotations"]["gatelift.dev/disconnect"] == "wait", "the record says what holds"
    [told] = [event for event in world.emitted if event.warning]
    assert told.reason == "DisconnectPolicyNotServed"
    assert told.message.startswith(f"disconnect policy {policy} is not acted on in this version")


def test_nobody_is_told_of_policies_who_asks_for_none_or_for_the_one_that_is_acted_on() -> None:
    world = a_world(a_setting(clusters=("a",)), clusters=("a",))
    pod = a_pod().document()
    pod["metadata"].setdefault("annotations", {})["gatelift.dev/disconnect"] = "wait"
    world.api.apply(pod)
    world.api.apply(a_pod("two").document())
    world.settle()
    assert len(world.messages(Commit)) == 2
    assert not [event for event in world.emitted if event.warning]
