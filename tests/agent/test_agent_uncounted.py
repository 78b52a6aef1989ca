"""HD-304: an agent that takes its capacity from its nodes judges an offer also by what quota does not count."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from gatelift_agent.core.admission.backend import Request
from gatelift_agent.core.admission.node_quota import NodeQuota
from gatelift_agent.core.values.node_room import NodeRoom, RoomOfNodes
from gatelift_kube.objects.core import Node, Pod
from gatelift_wire.values import messages as m
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.refusals import Refusal
from support.agent.values import ORIGIN

FIRST, SECOND = PlacementKey("w-1", 1), PlacementKey("w-2", 1)


def _room(*ours: int) -> RoomOfNodes:
    """Return a node of 8 licenses and 4 CPU, and pods of ours that ask for so many licenses each."""
    document = {
        "metadata": {"name": "n1"},
        "status": {
            "allocatable": {"cpu": "4", "pods": "10", "example.com/license": "8"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
    kept = NodeRoom()
    raw = msgspec.json.encode(document)
    kept.node_seen(msgspec.json.decode(raw, type=Node), raw)
    for number, amount in enumerate(ours):
        asks = {"requests": {"example.com/license": str(amount)}}
        pod: dict[str, Any] = {
            "metadata": {"name": f"p{number}", "uid": f"p{number}", "labels": {"gatelift.dev/origin": ORIGIN}},
            "spec": {"nodeName": "n1", "containers": [{"name": "c", "resources": asks}]},
            "status": {"phase": "Running"},
        }
        kept.pod_seen(msgspec.convert(pod, Pod))
    return kept.room()


def _quota(room: RoomOfNodes) -> NodeQuota:
    quota = NodeQuota(lambda: ORIGIN)
    quota.take(room)
    return quota


def _request(key: PlacementKey, count: int = 1, **uncounted: int) -> Request:
    said = tuple((f"example.com/{name}", amount) for name, amount in uncounted.items())
    one = m.PodSetRequest(name="main", count=count, requests=(("cpu", 100 * count),), uncounted=said)
    return Request(key=key, namespace="n", name="p", pod_sets=(one,))


def test_hd_304_what_is_held_takes_of_what_quota_does_not_count() -> None:
    quota = _quota(_room())
    assert quota.judge(_request(FIRST, license=6)).refusal is None
    quota.ask(_request(FIRST, license=6), 0.0)
    refused = quota.judge(_request(SECOND, license=3))
    assert refused.refusal is Refusal.QUOTA_BUSY
    assert refused.text == "example.com/license: 3 asked for, 2 of 8 free on the nodes; wait"
    quota.release(FIRST)
    assert quota.judge(_request(SECOND, license=3)).refusal is None


@pytest.mark.parametrize(("count", "asked"), [(1, 9), (2, 9)], ids=["one pod", "all"])
def test_hd_304_more_than_the_nodes_have_never_fits(count: int, asked: int) -> None:
    assert _quota(_room()).judge(_request(FIRST, count, license=asked)).refusal is Refusal.QUOTA_NEVER_FITS


def test_hd_304_what_no_node_has_and_quota_does_not_count_is_the_schedulers_to_judge() -> None:
    """A scheduler may be told to ignore it, which is what such a setting is for."""
    assert _quota(_room()).judge(_request(FIRST, ignored=3)).refusal is None


def test_hd_304_what_runs_of_ours_and_was_not_said_counts_all_the_same() -> None:
    """An older manager did not say it, nor was it said of what an agent found as it began."""
    quota = _quota(_room(5))
    quota.ask(_request(FIRST, license=1), 0.0)
    assert quota.judge(_request(SECOND, license=4)).refusal is Refusal.QUOTA_BUSY
    assert quota.judge(_request(SECOND, license=3)).refusal is None


def test_hd_304_what_runs_of_ours_and_was_said_is_not_counted_twice() -> None:
    quota = _quota(_room(5))
    quota.ask(_request(FIRST, license=5), 0.0)
    assert quota.judge(_request(SECOND, license=3)).refusal is None


def test_hd_304_an_offer_without_it_is_judged_as_before() -> None:
    quota = _quota(_room(8))
    assert quota.judge(_request(FIRST)).refusal is None
