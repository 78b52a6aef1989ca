"""IS-50: an agent that lists no capacity takes what its nodes have, less what runs there, and no more."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from gatelift_agent.adapters.node_watch import NodeWatch, ThinCache
from gatelift_agent.core.admission.backend import Request
from gatelift_agent.core.admission.node_quota import NodeQuota
from gatelift_agent.core.values import events
from gatelift_agent.core.values.node_room import NodeRoom, RoomOfNodes
from gatelift_agent.core.values.settings import NominalCapacity
from gatelift_kube.deciding.writes import ObjectGone, ObjectSeen, Synced
from gatelift_kube.objects.core import Node, Pod
from gatelift_kube.values.resources import NODE, POD
from gatelift_wire.values import messages as m
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.refusals import Refusal
from support.agent.stage import Stage
from support.agent.values import ORIGIN

GIB = 1024**3
FIRST, SECOND = PlacementKey("w-1", 1), PlacementKey("w-2", 1)


def _node(name: str = "n1", *, ready: bool = True, cpu: str = "4", **spec: Any) -> tuple[Node, bytes]:
    document = {
        "metadata": {"name": name},
        "spec": spec,
        "status": {
            "allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "10"},
            "conditions": [{"type": "Ready", "status": "True" if ready else "Unknown"}],
        },
    }
    raw = msgspec.json.encode(document)
    return msgspec.json.decode(raw, type=Node), raw


def _pod(uid: str, cpu: str = "1", *, node: str = "n1", phase: str = "Running", origin: str = "") -> Pod:
    labels = {"gatelift.dev/origin": origin} if origin else {}
    document = {
        "metadata": {"name": uid, "namespace": "any", "uid": uid, "labels": labels},
        "spec": {"nodeName": node, "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]},
        "status": {"phase": phase},
    }
    return msgspec.convert(document, Pod)


def _room(*pods: Pod, nodes: tuple[tuple[Node, bytes], ...] = ()) -> RoomOfNodes:
    kept = NodeRoom()
    for node, raw in nodes or (_node(),):
        kept.node_seen(node, raw)
    for pod in pods:
        kept.pod_seen(pod)
    return kept.room()


def _quota(room: RoomOfNodes) -> NodeQuota:
    quota = NodeQuota(lambda: ORIGIN)
    quota.take(room)
    return quota


def _request(key: PlacementKey, pod_sets: tuple[m.PodSetRequest, ...]) -> Request:
    return Request(key=key, namespace="n", name="p", pod_sets=pod_sets)


def _asks(cpu: int, count: int = 1, **more: int) -> tuple[m.PodSetRequest, ...]:
    requests = (("cpu", cpu), *more.items())
    flavors = tuple((name, "default") for name, _ in requests)
    return (m.PodSetRequest(name="main", count=count, requests=requests, flavors=flavors),)


# --- sums ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "spec",
    [
        {"ready": False},
        {"unschedulable": True},
        {"taints": [{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}]},
        {"taints": [{"key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule"}]},
    ],
    ids=["not-ready", "cordoned", "control-plane", "in-trouble"],
)
def test_is_50_a_node_that_takes_no_pod_has_no_room(spec: dict[str, Any]) -> None:
    room = _room(_pod("a"), nodes=(_node(), _node("n2", **spec)))
    assert (dict(room.whole)["cpu"], room.nodes) == (4000, 2)
    assert _quota(room).judge(_request(FIRST, _asks(3001))).refusal is Refusal.QUOTA_BUSY
    assert (
        _quota(_room(nodes=(_node("n2", **spec),))).judge(_request(FIRST, _asks(1))).refusal is Refusal.QUOTA_NEVER_FITS
    )


def test_is_50_a_taint_that_a_workload_may_tolerate_leaves_a_node_in() -> None:
    room = _room(nodes=(_node(taints=[{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]),))
    assert dict(room.whole)["cpu"] == 4000


def test_is_50_pods_count_from_their_binding_to_their_end_and_each_once() -> None:
    kept = NodeRoom()
    kept.node_seen(*_node())
    assert not kept.pod_seen(_pod("a", node=""))
    assert kept.pod_seen(_pod("a"))
    assert not kept.pod_seen(_pod("a"))
    assert dict(dict(kept.room().taken)[""]) == {"cpu": 1000, "pods": 1}
    assert kept.pod_seen(_pod("a", "2"))
    assert dict(dict(kept.room().taken)[""]) == {"cpu": 2000, "pods": 1}
    assert kept.pod_seen(_pod("a", "2", phase="Succeeded"))
    assert kept.room().taken == ()
    assert not kept.pod_gone("a")


def test_is_50_a_heartbeat_changes_no_sum() -> None:
    kept = NodeRoom()
    assert kept.node_seen(*_node())
    assert not kept.node_seen(*_node())
    assert kept.node_gone("n1")
    assert not kept.node_gone("n1")


# --- bids ---------------------------------------------------------------------------------------------------------


def test_is_50_what_runs_on_the_nodes_is_not_offered_again() -> None:
    quota = _quota(_room(_pod("daemon", "3")))
    verdict = quota.judge(_request(FIRST, _asks(1500)))
    assert verdict.refusal is Refusal.QUOTA_BUSY
    assert verdict.text == "cpu: 1500 asked for, 1000 of 4000 free on the nodes; wait"
    assert quota.judge(_request(FIRST, _asks(1000))).refusal is None


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        (_asks(9000, count=9), "cpu: 9000 asked for, the nodes have 8000 in all; ask for less"),
        (_asks(5000), "cpu: a pod asks for 5000, the largest node has 4000; ask for less"),
        (_asks(1, **{"nvidia.com/gpu": 1}), "nvidia.com/gpu: no node of this cluster has it;"),
    ],
    ids=["more-than-all", "more-than-a-node", "none"],
)
def test_is_50_what_no_node_can_run_is_refused_for_good(asked: tuple[m.PodSetRequest, ...], text: str) -> None:
    verdict = _quota(_room(nodes=(_node(), _node("n2")))).judge(_request(FIRST, asked))
    assert verdict.refusal is Refusal.QUOTA_NEVER_FITS
    assert verdict.text.startswith(text)


def test_is_50_a_hold_takes_room_before_any_pod_is_on_a_node_and_its_pods_take_none_besides() -> None:
    quota = _quota(_room())
    quota.ask(_request(FIRST, _asks(3000)), 0.0)
    assert quota.judge(_request(SECOND, _asks(2000))).refusal is Refusal.QUOTA_BUSY
    quota.take(_room(_pod("ours", "3", origin=ORIGIN)))
    assert quota.judge(_request(SECOND, _asks(1000))).refusal is None
    assert {each.resource: each.used for each in quota.entries()}["cpu"] == 3000
    quota.release(FIRST)
    assert quota.judge(_request(SECOND, _asks(4000))).refusal is None


def test_is_50_pods_of_another_management_cluster_take_room() -> None:
    assert (
        _quota(_room(_pod("theirs", "3", origin="other"))).judge(_request(FIRST, _asks(2000))).refusal
        is Refusal.QUOTA_BUSY
    )


def test_is_50_ours_on_a_cordoned_node_takes_nothing_from_the_others() -> None:
    ours = _pod("ours", "3", node="n2", origin=ORIGIN)
    quota = _quota(_room(ours, nodes=(_node(), _node("n2", unschedulable=True))))
    quota.ask(_request(FIRST, _asks(3000)), 0.0)
    assert quota.judge(_request(SECOND, _asks(4000))).refusal is None


def test_is_50_a_node_takes_no_more_of_our_pods_than_it_has_room_for() -> None:
    """The symptom: placements of 10m each filled a node of ten pods with four hundred, of which 390 never ran."""
    quota = _quota(_room())
    keys = [PlacementKey(f"w-{number}", 1) for number in range(6)]
    for key in keys[:5]:
        assert quota.judge(_request(key, _asks(20, count=2))).refusal is None
        quota.ask(_request(key, _asks(20, count=2)), 0.0)
    assert quota.judge(_request(keys[4], _asks(20, count=2))).refusal is None, "it is held"
    quota.take(_room(*(_pod(f"ours-{number}", "10m", origin=ORIGIN) for number in range(10))))
    full = quota.judge(_request(keys[5], _asks(10)))
    assert full.text == "pods: 1 asked for, 0 of 10 free on the nodes; wait"
    assert {each.resource: (each.used, each.largest_fit) for each in quota.entries()}["pods"] == (10, 0)
    assert quota.judge(_request(keys[5], _asks(11, count=11))).refusal is Refusal.QUOTA_NEVER_FITS
    quota.release(keys[0])
    assert quota.judge(_request(keys[5], _asks(20, count=2))).refusal is None


def test_is_50_a_bid_is_judged_by_the_pods_of_others() -> None:
    quota = _quota(_room(*(_pod(f"theirs-{number}", "10m") for number in range(10))))
    assert quota.judge(_request(FIRST, _asks(10))).refusal is Refusal.QUOTA_BUSY


def test_is_50_what_was_never_charged_is_not_given_back() -> None:
    theirs = [_pod(f"theirs-{number}", "10m") for number in range(10)]
    ours = [_pod(f"ours-{number}", "10m", node="n2", origin=ORIGIN) for number in range(6)]
    quota = _quota(_room(*theirs, *ours, nodes=(_node(), _node("n2", unschedulable=True))))
    quota.ask(_request(SECOND, _asks(10)), 0.0)  # all others are found by an agent that has just started
    assert {each.resource: each.used for each in quota.entries()}["pods"] == 10
    assert quota.judge(_request(FIRST, _asks(10))).refusal is Refusal.QUOTA_BUSY


def test_is_50_of_what_no_queue_covers_counts_what_runs_of_ours() -> None:
    """Quota that does not count memory charges nobody for it; the nodes are full of it all the same."""
    pod = msgspec.structs.replace(_pod("ours", origin=ORIGIN))
    requests = {"cpu": "1", "memory": "6Gi"}
    document = {**msgspec.to_builtins(pod), "spec": {"nodeName": "n1", "containers": [_container(requests)]}}
    quota = _quota(_room(msgspec.convert(document, Pod)))
    quota.ask(_request(FIRST, _asks(1000)), 0.0)
    used = {each.resource: each.used for each in quota.entries()}
    assert (used["cpu"], used["memory"], used["pods"]) == (1000, 6 * GIB, 1)
    assert quota.judge(_request(SECOND, _asks(1000, memory=3 * GIB))).refusal is Refusal.QUOTA_BUSY


def test_is_50_nodes_that_do_not_say_how_many_pods_they_take_take_any() -> None:
    raw = _node()[1].replace(b',"pods":"10"', b"")
    quota = _quota(_room(nodes=((_node()[0], raw),)))
    assert quota.judge(_request(FIRST, _asks(100, count=100))).refusal is None


def _container(requests: dict[str, str]) -> dict[str, Any]:
    return {"name": "c", "resources": {"requests": requests}}


def test_is_50_what_is_held_is_promised_whatever_others_start_meanwhile() -> None:
    quota = _quota(_room())
    quota.ask(_request(FIRST, _asks(3000)), 0.0)
    quota.take(_room(_pod("other", "4")))
    assert quota.judge(_request(FIRST, _asks(3000))).refusal is None
    assert quota.judge(_request(FIRST, _asks(3001))).refusal is Refusal.QUOTA_BUSY


def test_is_50_before_the_nodes_are_listed_nothing_new_is_taken() -> None:
    assert NodeQuota(lambda: ORIGIN).judge(_request(FIRST, _asks(1))).refusal is Refusal.QUOTA_BUSY


@pytest.mark.parametrize("room", [RoomOfNodes(), RoomOfNodes(problem="pods: forbidden")], ids=["no-node", "refused"])
def test_is_50_without_a_node_to_be_seen_everything_fits_and_a_line_says_so(room: RoomOfNodes) -> None:
    quota = NodeQuota(lambda: ORIGIN)
    said = quota.take(room)
    assert "everything fits" in said
    assert room.problem in said
    assert quota.take(room) == ""
    assert quota.judge(_request(FIRST, _asks(10**9))).refusal is None
    assert quota.entries() == ()
    assert "1 nodes have" in quota.take(_room())


# --- the agent ----------------------------------------------------------------------------------------------------


def test_is_50_the_manager_is_told_what_the_nodes_have_and_bids_follow_it() -> None:
    stage = Stage(capacity_from_nodes=True)
    stage.start()
    stage.offer(pod_sets=_asks(1))
    assert stage.peer.of(m.Bid)[-1].text == "the nodes of this cluster are not listed yet; wait"
    assert stage.peer.of(m.Capacity)[-1].entries == ()
    stage.post(events.RoomSeen(room=_room(_pod("daemon", "1"))))
    stage.pass_seconds(2.0)
    said = {each.resource: each for each in stage.peer.of(m.Capacity)[-1].entries}
    assert said["cpu"] == m.CapacityEntry(flavor="nodes", resource="cpu", nominal=4000, used=1000, largest_fit=3000)
    assert said["memory"].nominal == 8 * GIB
    stage.offer(pod_sets=_asks(3001))
    assert stage.peer.of(m.Bid)[-1].refusal is Refusal.QUOTA_BUSY
    stage.offer(pod_sets=_asks(3000))
    assert stage.peer.of(m.Bid)[-1].kind is m.BidKind.HELD


def test_is_50_a_listed_capacity_wins() -> None:
    cpu = NominalCapacity(flavor="default", resource="cpu", nominal=1000)
    stage = Stage(capacity_from_nodes=True, capacity=(cpu,))
    stage.start()
    stage.post(events.RoomSeen(room=_room()))
    stage.pass_seconds(2.0)
    assert [(each.flavor, each.nominal) for each in stage.peer.of(m.Capacity)[-1].entries] == [("default", 1000)]


# --- how often ----------------------------------------------------------------------------------------------------


class _Turns:
    """A pause that ends when the test says so."""

    def __init__(self) -> None:
        self.asked: list[float] = []
        self._go = asyncio.Event()

    async def pause(self, seconds: float) -> None:
        self.asked.append(seconds)
        await self._go.wait()
        self._go.clear()

    async def next(self) -> None:
        self._go.set()
        for _ in range(5):
            await asyncio.sleep(0)


async def test_is_50_many_pods_are_told_as_one_sum_and_nothing_where_nothing_changed() -> None:
    told: list[events.RoomSeen] = []
    turns = _Turns()
    watch = NodeWatch(told.append, turns.pause)
    task = asyncio.ensure_future(watch.run())
    node, raw = _node()
    watch.take(ObjectSeen(NODE, node, raw))
    watch.take(Synced(NODE))
    await turns.next()
    assert told == []
    watch.take(Synced(POD))
    for _ in range(5):
        await asyncio.sleep(0)
    assert [dict(each.room.whole)["cpu"] for each in told] == [4000]
    for number in range(100):
        watch.take(ObjectSeen(POD, _pod(f"p{number}", "10m"), b""))
    await turns.next()
    assert [dict(dict(each.room.taken)[""])["cpu"] for each in told[1:]] == [1000]
    watch.take(ObjectSeen(POD, _pod("more"), b""))
    watch.take(ObjectGone(POD, _pod("more")))
    await turns.next()
    assert len(told) == 2
    task.cancel()


async def test_is_50_a_right_that_is_missing_is_told_and_later_forgotten() -> None:
    told: list[events.RoomSeen] = []
    turns = _Turns()
    watch = NodeWatch(told.append, turns.pause)
    task = asyncio.ensure_future(watch.run())
    watch.take(Synced(NODE))
    watch.refused("pods: forbidden")
    for _ in range(5):
        await asyncio.sleep(0)
    assert [each.room.problem for each in told] == ["pods: forbidden"]
    node, raw = _node()
    watch.take(ObjectSeen(NODE, node, raw))
    watch.take(Synced(POD))
    await turns.next()
    assert [each.room.nodes for each in told] == [0, 1]
    task.cancel()


def test_is_50_of_pods_that_run_only_their_version_is_mirrored() -> None:
    cache = ThinCache()
    cache.put(_pod("a"))
    (kept,) = cache
    assert isinstance(kept, Pod)
    assert (kept.metadata.uid, kept.spec.containers, kept.metadata.labels) == ("a", (), {})
