"""KEP-78 at the worker: room of pods that are done is given back while the others run, and others are let in by it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gatelift_agent.core.admission.backend import Request
from gatelift_agent.core.admission.node_quota import NodeQuota
from gatelift_agent.core.admission.quota import WorkerQuota
from gatelift_agent.core.values.node_room import RoomOfNodes
from gatelift_agent.core.values.settings import NominalCapacity
from gatelift_kube.values.resources import JOB
from gatelift_wire.sessions.session_manager import ManagerSession
from gatelift_wire.values import messages as m
from gatelift_wire.values.keys import PlacementKey
from support.agent.drivers import Cluster
from support.agent.scripted_backend import Script
from support.agent.stage import Stage
from support.agent.values import KEY

NEXT = PlacementKey("w-2", 1)
CPU = (NominalCapacity(flavor="default", resource="cpu", nominal=2000),)


def pod_set(count: int) -> m.PodSetRequest:
    return m.PodSetRequest(name="main", count=count, requests=(("cpu", 1000 * count),), flavors=(("cpu", "default"),))


def full(*, keeps_quota: bool = False) -> tuple[Stage, Cluster]:
    """Return a worker of two cpu, on which a Job of two pods runs: it is full."""
    stage = Stage(capacity=CPU)
    if keeps_quota:
        stage.peer.session = ManagerSession(instance="manager-1", keeps_quota=True)
        stage.peer.session.lead(1, stage.now)
    stage.start()
    two = (pod_set(2),)
    stage.offer(KEY, "Job", "j", pod_sets=two, hold_seconds=30.0)
    stage.commit(KEY, "Job", "j", pod_sets=two)
    cluster = Cluster(stage, finishes=False)
    while cluster.react():
        pass
    assert len(cluster.running) == 2
    return stage, cluster


def first_succeeds(stage: Stage, *, counted: bool = True) -> None:
    """Let a pod of the Job succeed, and its controller count it."""
    stage.finish(stage.store.look_all(("", "pods"))[0]["metadata"]["name"])
    if counted:
        stage.change(JOB, "j", {"status": {"succeeded": 1, "active": 1}}, "status")
    stage.settle()


def used(stage: Stage) -> int:
    stage.pass_seconds(2.0)
    [cpu] = [each for each in stage.peer.of(m.Capacity)[-1].entries if each.resource == "cpu"]
    return int(cpu.used)


def bid(stage: Stage) -> m.Bid:
    """Offer one pod more, and return the answer."""
    stage.offer(NEXT, "Pod", "p", pod_sets=(pod_set(1),), hold_seconds=30.0)
    found: m.Bid = stage.peer.of(m.Bid)[-1]
    return found


def test_re_9_a_full_worker_takes_another_one_as_soon_as_a_pod_is_done() -> None:
    stage, _ = full()
    assert used(stage) == 2000
    assert bid(stage).kind is m.BidKind.REFUSED
    first_succeeds(stage)
    assert bid(stage).kind is m.BidKind.HELD
    assert used(stage) == 2000, "one for the pod that runs, one for what is held"
    stage.commit(NEXT, "Pod", "p", pod_sets=(pod_set(1),))
    stage.settle()
    assert stage.state(NEXT) == "Running"


def test_re_9_what_is_given_back_is_told_at_once() -> None:
    """A waiting Workload hangs on it: it is not coalesced to one report a second."""
    stage, _ = full()
    stage.pass_seconds(5.0)
    first_succeeds(stage)
    [counts] = stage.peer.of(m.CountsReport)[-1].pod_sets
    assert stage.peer.of(m.CountsReport)[-1].reclaimable == (("main", 1),)
    assert (counts.remaining, counts.succeeded) == (1, 1)


def test_re_1_what_holds_resources_keeps_its_room_whatever_its_job_has_counted() -> None:
    stage, _ = full()
    stage.change(JOB, "j", {"status": {"succeeded": 1}}, "status")
    stage.settle()
    assert used(stage) == 2000
    assert bid(stage).kind is m.BidKind.REFUSED


def test_re_1_room_is_taken_back_where_more_pods_are_there_again() -> None:
    """RE-1: a count may fall: nobody is asked to leave a worker for it, and nobody is let in by what is not free."""
    stage, cluster = full()
    first_succeeds(stage)
    assert used(stage) == 1000
    stage.change(JOB, "j", {"status": {"succeeded": 0, "active": 2}}, "status")
    stage.settle()
    assert used(stage) == 2000
    assert bid(stage).kind is m.BidKind.REFUSED
    assert cluster.running


def test_re_6_a_pod_that_failed_and_is_made_again_keeps_its_room() -> None:
    stage, _ = full()
    stage.change(JOB, "j", {"status": {"failed": 1, "active": 1}}, "status")
    stage.settle()
    assert used(stage) == 2000


def test_re_12_a_worker_whose_manager_gives_nothing_back_early_does_not_either() -> None:
    """RE-12: the manager's gate holds at its workers as well: its Welcome says so."""
    stage, _ = full(keeps_quota=True)
    first_succeeds(stage)
    assert used(stage) == 2000
    assert bid(stage).kind is m.BidKind.REFUSED


def test_a_backend_is_told_of_each_change_once_and_not_before_it_runs() -> None:
    script = Script(grants_at_once=True)
    stage = script.stage()
    stage.place(kind="Job", name="j", pod_sets=(pod_set(2),))
    cluster = Cluster(stage, finishes=False)
    while cluster.react():
        pass
    assert script.times("reclaim") == 0
    first_succeeds(stage)
    stage.pass_seconds(5.0)
    assert (script.times("reclaim"), script.over[KEY]) == (1, {"main": 1})


@pytest.mark.parametrize("nodes", [False, True], ids=["listed capacity", "what nodes have"])
def test_what_does_not_divide_by_the_count_stays_charged(nodes: bool) -> None:
    quota = NodeQuota(lambda: "") if nodes else WorkerQuota(CPU)
    three = replace(pod_set(3), requests=(("cpu", 1000),))
    quota.ask(Request(key=KEY, namespace="ns", name="j", pod_sets=(three,)), 0.0)
    if isinstance(quota, NodeQuota):
        quota.take(RoomOfNodes(nodes=1, whole=(("cpu", 2000), ("pods", 10))))
    quota.reclaim(NEXT, {"main": 1})  # of what it does not know
    for over, left in ((1, 667), (2, 334), (0, 1000), (7, 1)):
        quota.reclaim(KEY, {"main": over})
        assert {one.resource: one.used for one in quota.entries()}["cpu"] == left
    quota.release(KEY)
    assert {one.resource: one.used for one in quota.entries()}["cpu"] == 0
    quota.ask(Request(key=KEY, namespace="ns", name="j", pod_sets=(three,)), 0.0)
    assert {one.resource: one.used for one in quota.entries()}["cpu"] == 1000, "nothing of it is over before it is said"
