"""HD-451: what only informs has its share by cluster, and in it by namespace: who flaps delays its own words alone."""

from __future__ import annotations

from typing import Any

from gatelift.core.api.agenda import Key, Look
from gatelift.core.api.asks import Asks
from gatelift.core.api.purposes import Purpose
from gatelift.core.told.pod_troubles import SETTLE_SECONDS
from gatelift_kinds.shared.pod_trouble import CONDITION
from gatelift_kube.values.resources import ObjectKey
from support.manager.world import World, a_running_pod

UNSCHEDULABLE: dict[str, Any] = {
    "phase": "Pending",
    "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no nodes"}],
}
FLAPPING = 600
"""A minute of all that may be written to inform, and what is saved up for a burst."""


def flap(world: World, cluster: str) -> None:
    """Let the troubles of so many placements at a cluster be due to be shown."""
    core = world.machine.core
    for number in range(FLAPPING):
        key = Key(Look.WORKLOAD, ObjectKey("team", f"w-{number}"))
        core.may_inform(Asks(key, Purpose.POD_TROUBLE, cluster), world.now)
    assert core.budget.waiting > FLAPPING // 2


def test_hd_451_a_trouble_is_shown_while_those_of_another_cluster_change_all_the_time() -> None:
    """It stood in one line with these, behind each of them."""
    world, agent = a_running_pod()
    flap(world, "b")
    agent.show(agent.commits[0], UNSCHEDULABLE)
    world.advance(SETTLE_SECONDS + 1.0)
    assert world.condition(world.find("Workload"), CONDITION)
    assert world.condition(world.find("Pod"), CONDITION)
