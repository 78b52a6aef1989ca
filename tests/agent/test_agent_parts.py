"""The small pure parts of the agent's core, each by itself."""

from __future__ import annotations

import hashlib
import itertools
from typing import Any

import msgspec
import pytest

from gatelift_agent.core.admission.backend import Request
from gatelift_agent.core.admission.quota import WorkerQuota
from gatelift_agent.core.memory.epochs import EpochMemory
from gatelift_agent.core.placement.placements import (
    ENDED,
    ENDING,
    FIRST_STATES,
    LIVE,
    STARTING,
    TABLE,
    IllegalMoveError,
    Move,
    Placement,
    PlacementState,
)
from gatelift_agent.core.state.leadership import Leadership
from gatelift_agent.core.values.asked import Asked, WritePurpose, Writes
from gatelift_agent.core.values.settings import NominalCapacity
from gatelift_agent.core.values.templates import Templates
from gatelift_agent.core.values.wakes import Alarms
from gatelift_agent.core.watched import ownership
from gatelift_agent.core.watched.nodes import OUT_OF_SERVICE, Nodes
from gatelift_agent.core.watched.objects import Objects
from gatelift_kinds.registry import POD_KIND, SERVED
from gatelift_kinds.shared import placed_mark
from gatelift_kinds.shared.markers import ADMISSION_GATE
from gatelift_kinds.shared.values import Placing
from gatelift_kube.objects.core import Node, NodeSpec, Pod, PodSpec, SchedulingGate, Taint
from gatelift_kube.objects.meta import ObjectMeta, OwnerReference
from gatelift_kube.objects.versions import is_older
from gatelift_kube.values.resources import POD, ObjectKey, ObjectRef
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.limits import KUBELET_MARGIN_SECONDS
from gatelift_wire.values.messages import PodSetRequest
from gatelift_wire.values.refusals import Refusal

KEY = PlacementKey("w-1", 1)


def _placement(state: PlacementState) -> Placement:
    return Placement(key=KEY, kind="Pod", namespace="n", name="p", state=state)


# --- the state table ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("state", "move"), list(itertools.product(PlacementState, Move)))
def test_a_move_follows_the_table_or_raises_and_changes_nothing(state: PlacementState, move: Move) -> None:
    placement = _placement(state)
    target = TABLE[state].get(move)
    if target is None:
        with pytest.raises(IllegalMoveError):
            placement.move(move)
        assert placement.state is state
    else:
        placement.move(move)
        assert placement.state is target


def test_every_state_can_be_reached_and_every_live_one_can_end() -> None:
    reached = set(FIRST_STATES)
    for _ in PlacementState:
        reached |= {target for state in reached for target in TABLE[state].values()}
    assert reached == set(PlacementState)
    for state in STARTING | LIVE:
        assert TABLE[state][Move.END] in ENDING
    assert PlacementState.GONE in {TABLE[state].get(Move.CLEARED) for state in ENDED}


def test_fencing_is_possible_from_every_live_state() -> None:
    assert all(TABLE[state][Move.FENCE] is PlacementState.FENCING for state in LIVE | {PlacementState.DRAINING})


# --- epochs, templates, timers, writes ---------------------------------------------------------------------------


def test_an_epoch_is_used_once_and_lower_ones_with_it() -> None:
    memory = EpochMemory()
    assert not memory.is_used(PlacementKey("w", 1))
    memory.use(PlacementKey("w", 3))
    memory.use(PlacementKey("w", 2))
    assert memory.is_used(PlacementKey("w", 3))
    assert not memory.is_used(PlacementKey("w", 4))
    assert memory.highest("w") == 3
    assert memory.highest("other") == 0


def test_the_memory_of_epochs_is_bounded_and_forgets_the_oldest() -> None:
    memory = EpochMemory(limit=2)
    for uid in ("a", "b", "a", "c"):
        memory.use(PlacementKey(uid, 1))
    assert (memory.highest("a"), memory.highest("b"), memory.highest("c")) == (1, 0, 1)


def test_a_template_is_kept_under_the_hash_of_its_content_only() -> None:
    templates = Templates(limit=10)
    first, second = b"12345", b"6789012"
    assert not templates.put("0" * 64, first)
    assert templates.put(hashlib.sha256(first).hexdigest(), first)
    assert templates.get(hashlib.sha256(first).hexdigest()) == first
    assert templates.put(hashlib.sha256(second).hexdigest(), second)
    assert templates.get(hashlib.sha256(first).hexdigest()) is None
    assert templates.get(hashlib.sha256(second).hexdigest()) == second
    templates.clear()
    assert templates.get(hashlib.sha256(second).hexdigest()) is None


def test_a_timer_moves_to_the_earlier_moment_and_fires_once() -> None:
    wakes: Alarms[str] = Alarms()
    assert wakes.next() is None
    wakes.ask("a", 5.0)
    wakes.ask("a", 7.0)
    wakes.ask("b", 6.0)
    wakes.ask("b", 4.0)
    wakes.ask("c", 1.0)
    wakes.drop("c")
    assert wakes.next() == 4.0
    assert wakes.due(5.0) == ["b", "a"]
    assert wakes.due(100.0) == []
    assert wakes.next() is None


def test_late_answers_of_an_earlier_generation_mean_nothing() -> None:
    writes = Writes()
    old = writes.ask(Asked(purpose=WritePurpose.LIFT, key=KEY, name="p", at=0.0))
    fresh = writes.next_generation()
    new = fresh.ask(Asked(purpose=WritePurpose.LIFT, key=KEY, name="p", at=0.0))
    assert new > old
    assert fresh.answered(old) is None
    assert fresh.answered(new) is not None
    assert fresh.count == 0


def test_a_replica_acts_only_while_its_own_lease_is_valid() -> None:
    leadership = Leadership()
    leadership.extend(100.0)
    assert not leadership.acts(1.0)
    leadership.gain(3, 11.0)
    assert not leadership.acts(1.0)
    leadership.extend(50.0)
    leadership.extend(40.0)
    assert leadership.acts(49.0)
    assert not leadership.acts(50.0)
    leadership.lose()
    assert not leadership.acts(1.0)


# --- ownership and objects ---------------------------------------------------------------------------------------


def _labels(origin: str = "o", uid: str = "w-1", epoch: str = "1") -> dict[str, str]:
    return {"gatelift.dev/origin": origin, "gatelift.dev/workload-uid": uid, "gatelift.dev/epoch": epoch}


@pytest.mark.parametrize(
    ("labels", "owner"),
    [
        (_labels(), ownership.Ownership.OURS),
        (_labels(epoch="2"), ownership.Ownership.LEFTOVER),
        (_labels(uid="w-2"), ownership.Ownership.LEFTOVER),
        (_labels(origin="other"), ownership.Ownership.FOREIGN),
        (_labels(epoch="one"), ownership.Ownership.FOREIGN),
        (_labels(epoch="0"), ownership.Ownership.FOREIGN),
        (_labels(uid=""), ownership.Ownership.FOREIGN),
        ({}, ownership.Ownership.FOREIGN),
    ],
)
def test_an_object_is_ours_when_origin_workload_and_epoch_match(
    labels: dict[str, str], owner: ownership.Ownership
) -> None:
    assert ownership.owner(SERVED, Pod(metadata=ObjectMeta(labels=labels)), KEY, "o") is owner


def test_nothing_is_ours_while_the_origin_is_unknown() -> None:
    assert (
        ownership.owner(SERVED, Pod(metadata=ObjectMeta(labels=_labels(origin=""))), KEY, "")
        is ownership.Ownership.FOREIGN
    )


# --- marks of pods that are objects of their own -------------------------------------------------------------------

LATER = PlacementKey("w-2", 3)


def _marked(*marks: tuple[PlacementKey, str], uid: str = "u-1", **meta: Any) -> Pod:
    """Return a pod of its own that was let go, with these marks, each for a UID ("": of when that was not known)."""
    placings = [(Placing(key=key, origin="o", namespace="ns"), of) for key, of in marks]
    found = [one for placing, of in placings for one in placed_mark.of_pod(placing, "p", of)]
    return Pod(
        metadata=ObjectMeta(**{"name": "p", "namespace": "ns", "uid": uid, **meta}), spec=PodSpec(tolerations=(*found,))
    )


@pytest.mark.parametrize("of", ["u-1", ""])
def test_hd_219_a_mark_says_whose_a_pod_is_before_its_labels(of: str) -> None:
    pod = _marked((LATER, of), labels=_labels())
    assert ownership.placed_as(SERVED, pod) == ("o", LATER)
    assert ownership.let_go_as(POD_KIND, pod) == ("o", LATER)
    assert ownership.marks(SERVED, pod) == (), "it is no pod of a Job"


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(_marked((LATER, "u-1"), (PlacementKey("w-9", 1), "u-1"), labels=_labels()), id="two marks"),
        pytest.param(_marked((LATER, "u-1"), uid="u-2", labels=_labels()), id="of the pod that had its name before"),
        pytest.param(_marked((LATER, ""), name="q", labels=_labels()), id="of the pod that it is a copy of"),
        pytest.param(_marked((LATER, ""), namespace="other", labels=_labels()), id="of a namesake elsewhere"),
    ],
)
def test_hd_219_what_is_no_mark_of_its_own_or_one_of_two_says_nothing(pod: Pod) -> None:
    assert ownership.placed_as(SERVED, pod) == ("o", KEY)
    assert ownership.let_go_as(POD_KIND, pod) == ("o", KEY)


def test_hd_219_what_is_held_back_at_home_has_no_mark_that_counts() -> None:
    pod = _marked((LATER, "u-1"), labels=_labels())
    gated = msgspec.structs.replace(
        pod, spec=msgspec.structs.replace(pod.spec, scheduling_gates=(SchedulingGate(ADMISSION_GATE),))
    )
    assert ownership.let_go_as(POD_KIND, gated) == ("o", KEY)


def test_a_pods_count_and_pod_set_come_from_its_annotations() -> None:
    meta = ObjectMeta(annotations={"gatelift.dev/objects": "3", "gatelift.dev/pod-set": "workers"})
    assert (ownership.objects_wanted(meta), ownership.pod_set(meta)) == (3, "workers")
    odd = ObjectMeta(annotations={"gatelift.dev/objects": "-1"}, labels={"kueue.x-k8s.io/podset": "main"})
    assert (ownership.objects_wanted(odd), ownership.pod_set(odd)) == (1, "main")


def _pod(version: str, uid: str = "u", **fields: Any) -> Pod:
    return Pod(metadata=ObjectMeta(name="p", namespace="n", uid=uid, resource_version=version, **fields))


REF = ObjectRef(POD, ObjectKey("n", "p"))


def test_versions_of_an_object_never_go_back() -> None:
    objects = Objects()
    assert objects.seen(POD, _pod("10"), b"")
    assert not objects.seen(POD, _pod("9"), b"")
    held = objects.get(REF)
    assert held is not None
    assert held.object.metadata.resource_version == "10"
    assert is_older(ObjectMeta(resource_version="9"), ObjectMeta(resource_version="10"))
    assert not is_older(ObjectMeta(resource_version="x"), ObjectMeta(resource_version="10"))


def test_an_answer_that_is_slower_than_the_watch_brings_nothing_back() -> None:
    objects = Objects()
    objects.seen(POD, _pod("10"), b"")
    assert objects.gone(POD, _pod("12"))
    assert not objects.seen(POD, _pod("11"), b"")
    assert objects.get(REF) is None
    assert objects.seen(POD, _pod("13"), b""), "its labels were put back"
    assert objects.seen(POD, _pod("14", uid="another"), b"")


def test_the_removal_of_an_older_object_of_the_name_changes_nothing() -> None:
    objects = Objects()
    objects.seen(POD, _pod("10", uid="new"), b"")
    assert not objects.gone(POD, _pod("11", uid="old"))
    assert objects.get(REF) is not None


def test_children_are_known_by_their_job_and_forgotten_with_their_namespace() -> None:
    objects = Objects()
    owner = OwnerReference(api_version="batch/v1", kind="Job", name="j", uid="j", controller=True)
    child = _pod("1", labels=_labels(), owner_references=(owner,))
    assert objects.seen(POD, child, b"")
    assert not objects.seen(POD, _pod("0", labels=_labels(), owner_references=(owner,)), b"")
    assert objects.children("j") == (child,)
    orphan = _pod("2", labels=_labels())
    assert objects.seen(POD, orphan, b"")
    assert objects.all_children() == (orphan,), "a child stays one, whatever it says of itself by now"
    objects.forget_namespace("n")
    assert objects.children("j") == ()


# --- nodes -------------------------------------------------------------------------------------------------------


def _node(heartbeat: str, *, ready: str = "True", taint: str = "") -> tuple[Node, bytes]:
    conditions = [{"type": "Ready", "status": ready, "lastHeartbeatTime": heartbeat}]
    taints = (Taint(key=taint, effect="NoExecute"),) if taint else ()
    node = Node(metadata=ObjectMeta(name="node"), spec=NodeSpec(taints=taints))
    return node, msgspec.json.encode({"status": {"conditions": conditions}})


SURE = 100.0 + 30.0 + KUBELET_MARGIN_SECONDS


def _doubting(*, synced: bool = True) -> Nodes:
    nodes = Nodes()
    nodes.seen(*_node("t0"), 0.0)
    if synced:
        nodes.synced()
    nodes.vanished("u", "node", 30.0, 100.0)
    return nodes


def test_a_pod_that_nobody_doubts_does_not_run() -> None:
    assert not Nodes().may_run("u", 0.0)


def test_a_heartbeat_after_grace_and_margin_proves_that_a_vanished_pod_is_over() -> None:
    nodes = _doubting()
    nodes.seen(*_node("t1"), SURE - 1.0)
    assert nodes.may_run("u", SURE - 1.0)
    assert nodes.may_run("u", SURE), "the heartbeat known at that moment proves nothing"
    nodes.seen(*_node("t1"), SURE + 1.0)
    assert nodes.may_run("u", SURE + 1.0), "a change of a label is no heartbeat"
    nodes.seen(*_node("t2"), SURE + 2.0)
    assert not nodes.may_run("u", SURE + 2.0)


@pytest.mark.parametrize("ready", ["Unknown", "True"], ids=["not ready", "silent"])
def test_hd_82_a_node_that_was_away_is_heard_of_again_after_grace_and_margin_from_its_return_on(ready: str) -> None:
    nodes = _doubting()
    nodes.seen(*_node("t0", ready=ready), 200.0)
    back = 5000.0
    nodes.seen(*_node("t1"), back)
    assert nodes.may_run("u", back), "its kubelet has only just begun to end what is gone"
    nodes.seen(*_node("t2"), back + 10.0)
    assert nodes.may_run("u", back + 30.0 + KUBELET_MARGIN_SECONDS)
    nodes.seen(*_node("t3"), back + 100.0)
    assert not nodes.may_run("u", back + 100.0)


def test_hd_82_a_node_that_goes_away_again_is_waited_for_again() -> None:
    nodes = _doubting()
    nodes.seen(*_node("t0", ready="Unknown"), 200.0)
    nodes.seen(*_node("t1"), 1000.0)
    assert nodes.may_run("u", 1090.0)
    nodes.seen(*_node("t1", ready="Unknown"), 1100.0)
    nodes.seen(*_node("t2"), 2000.0)
    assert nodes.may_run("u", 2000.0)
    assert nodes.may_run("u", 2090.0)
    nodes.seen(*_node("t3"), 2100.0)
    assert not nodes.may_run("u", 2100.0)


def test_the_first_sight_of_a_node_proves_nothing() -> None:
    nodes = Nodes()
    nodes.vanished("u", "node", 30.0, 100.0)
    nodes.synced()
    nodes.seen(*_node("t0"), SURE + 10.0)
    assert nodes.may_run("u", SURE + 10.0)
    assert nodes.may_run("u", SURE + 15.0)
    nodes.seen(*_node("t1"), SURE + 20.0)
    assert not nodes.may_run("u", SURE + 20.0)


def test_a_node_that_is_not_ready_proves_nothing() -> None:
    nodes = _doubting()
    assert nodes.may_run("u", SURE)
    nodes.seen(*_node("t9", ready="Unknown"), SURE)
    assert nodes.may_run("u", SURE + 10.0)


def test_a_node_that_is_gone_or_out_of_service_runs_nothing() -> None:
    gone = _doubting()
    gone.gone("node")
    assert not gone.may_run("u", 101.0)
    out = _doubting()
    out.seen(*_node("t0", taint=OUT_OF_SERVICE), 101.0)
    assert not out.may_run("u", 101.0)


def test_without_a_list_of_nodes_nothing_is_assumed() -> None:
    nodes = _doubting(synced=False)
    nodes.gone("node")
    assert nodes.may_run("u", 1e9)


def test_a_pod_that_is_seen_again_is_doubted_no_more() -> None:
    nodes = _doubting()
    nodes.forget("u")
    assert not nodes.may_run("u", 101.0)


# --- quota -------------------------------------------------------------------------------------------------------


def _asks(cpu: int, flavor: str = "default", resource: str = "cpu") -> tuple[PodSetRequest, ...]:
    return (PodSetRequest(name="main", count=1, requests=((resource, cpu),), flavors=((resource, flavor),)),)


def _request(key: PlacementKey, pod_sets: tuple[PodSetRequest, ...]) -> Request:
    return Request(key=key, namespace="n", name="p", pod_sets=pod_sets)


def _quota() -> WorkerQuota:
    return WorkerQuota([NominalCapacity(flavor="default", resource="cpu", nominal=1000)])


def test_without_capacity_everything_fits() -> None:
    quota = WorkerQuota([])
    assert quota.entries() == ()
    assert quota.judge(_request(KEY, _asks(10**9))).refusal is None
    assert quota.entries() == ()


def test_what_fits_is_held_and_what_does_not_is_told_apart() -> None:
    quota = _quota()
    assert quota.judge(_request(KEY, _asks(600))).cost == 0.6
    quota.ask(_request(KEY, _asks(600)), 0.0)
    other = PlacementKey("w-2", 1)
    busy = quota.judge(_request(other, _asks(600)))
    assert busy.refusal is Refusal.QUOTA_BUSY
    assert "400 of 1000 free" in busy.text
    assert quota.judge(_request(other, _asks(1001))).refusal is Refusal.QUOTA_NEVER_FITS
    assert quota.judge(_request(other, _asks(1, flavor="spot"))).refusal is Refusal.QUOTA_NEVER_FITS
    assert quota.judge(_request(KEY, _asks(1000))).refusal is None, "what it holds already does not count against it"


def test_room_is_given_back_once() -> None:
    quota = _quota()
    quota.ask(_request(KEY, _asks(600)), 0.0)
    quota.ask(_request(KEY, _asks(700)), 0.0)
    [entry] = quota.entries()
    assert (entry.used, entry.largest_fit) == (700, 300)
    quota.release(KEY)
    quota.release(KEY)
    assert quota.entries()[0].used == 0


def test_a_resource_without_flavor_is_not_under_quota() -> None:
    quota = _quota()
    request = (
        PodSetRequest(name="main", count=1, requests=(("memory", 5), ("cpu", 1000)), flavors=(("cpu", "default"),)),
    )
    assert quota.judge(_request(KEY, request)).refusal is None


def test_work_that_was_there_before_is_charged_even_above_the_nominal_amount() -> None:
    quota = _quota()
    quota.ask(_request(KEY, _asks(1500)), 0.0)
    assert quota.entries()[0].largest_fit == 0
    assert quota.judge(_request(PlacementKey("w-2", 1), _asks(1))).refusal is Refusal.QUOTA_BUSY
