"""What one cluster says of another cluster's placement changes nothing: not the record, the pod, nor the charge."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import (
    Applied,
    Bid,
    BidKind,
    Commit,
    CountsReport,
    Evicted,
    Finished,
    GatesLifted,
    ObjectReport,
    PodSetCounts,
    Refused,
    Report,
    Stop,
    Stopped,
)
from gatelift_wire.values.refusals import Refusal
from support.manager.builders import a_pod, a_setting
from support.manager.world import RUNNING, a_world

LIES: dict[str, Callable[[PlacementKey], Report]] = {
    "it bids": lambda key: Bid(key=key, kind=BidKind.HELD),
    "it refuses the offer": lambda key: Bid(key=key, kind=BidKind.REFUSED, refusal=Refusal.POLICY),
    "it has applied it": lambda key: Applied(key=key),
    "it has lifted it": lambda key: GatesLifted(key=key),
    "its pod has failed": lambda key: ObjectReport(
        key=key, kind="Pod", name="one", uid="u", status=b'{"phase":"Failed"}'
    ),
    "nothing of it is left": lambda key: CountsReport(key=key, pod_sets=(PodSetCounts(name="main"),)),
    "it has finished": lambda key: Finished(key=key, succeeded=True),
    "it has stopped": lambda key: Stopped(key=key),
    "it refuses the commit": lambda key: Refused(key=key, refusal=Refusal.POLICY),
    "it has evicted it": lambda key: Evicted(key=key, reason="Preempted"),
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES.keys())
def test_a_report_about_another_clusters_placement_changes_nothing(lie: Callable[[PlacementKey], Report]) -> None:
    world = a_world(a_setting())
    world.api.apply(a_pod().document())
    world.settle()
    (key,) = world.agents["a"].commits
    world.agents["a"].show(key, RUNNING)
    world.settle()
    before = _state(world, key)

    liar = world.machine.core.view("b")
    assert liar is not None
    world.report("b", liar.session, lie(key))
    world.settle()

    assert _state(world, key) == before
    assert [cluster for cluster, _ in world.messages(Commit)] == ["a"]
    assert not [message for cluster, message in world.messages(Stop) if cluster == "a"]
    assert key in world.agents["a"].placements


def _state(world: Any, key: PlacementKey) -> Any:
    core = world.machine.core
    charged = dict(core.ledger.engine.charged(key.uid))
    return deepcopy((world.find("Workload"), world.find("Pod"), charged, core.attempts[key.uid].state))
