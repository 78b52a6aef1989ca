"""Histories that freed quota early by something else than the rule, or kept it after (KEP-6143)."""

from __future__ import annotations

from unittest.mock import MagicMock

import pytest

from gatelift.core.dispatching import releasing
from gatelift.core.records import release_writes
from gatelift.core.rules import release
from gatelift_kube.deciding.writes import ApiWrite, Patch
from gatelift_kube.values.resources import CLUSTER_QUEUE, JOB, POD, WORKLOAD
from histories.test_release import GRACE, STOPS, WHOLE, a_world, conditions, drains, lose_nodes, prioritised, workload
from support.manager.builders import a_job
from support.sim.cluster import TEAM
from support.sim.history import History
from support.sim.objects import is_released
from support.sim.world import STOP_SECONDS

HELD = {"gatelift.dev/release": "OnTerminal"}
EARLY = {"gatelift.dev/release": "OnTerminating"}
FILE = "gatelift: {release: {strategies: {Pod: OnTerminal, Job: OnTerminal}, deadline: 2m}}"
QUEUES = pytest.mark.parametrize("queue", ["stays", "travels"])


def said(history: History, type_: str, reason: str) -> None:
    """Let a person write a condition of low's Workload, around the policy."""
    found = workload(history, "low")
    others = [each for each in conditions(found) if each["type"] != type_]
    word = {"type": type_, "status": "True", "reason": reason, "message": "x"}
    word["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    patch = {"status": {"conditions": [*others, word]}}
    history.edit("home", WORKLOAD, found["metadata"]["name"], patch, "status")


def draining(queue: str, annotations: dict[str, str], stops: float = STOPS) -> tuple[History, str]:
    history = a_world(queue, annotations)
    prioritised(history, "low", 1, queue, stops=stops)
    cluster = history.until_runs("low")
    prioritised(history, "high", 9, queue, stops=1.0)
    history.until("it drains", lambda: drains(history), 5.0)
    return history, cluster


def another_leads(history: History) -> None:
    history.kill_leader()
    history.until("another leads", history.leads)


def is_held_until_it_stops(history: History) -> None:
    while history.containers("low"):
        assert not history.shows("high", "QuotaReserved")
        history.passes(1.0)


def long_job(history: History, queue: str, grace: int) -> None:
    document = a_job("low", parallelism=2, completions=None, cpu=f"{WHOLE[queue] // 2}m")
    document["metadata"]["namespace"] = TEAM
    document["metadata"]["labels"] |= {"kueue.x-k8s.io/queue-name": queue, "kueue.x-k8s.io/priority-class": "p1"}
    document["spec"]["template"]["metadata"]["annotations"] = {STOP_SECONDS: "1000"}
    document["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = grace
    if queue == "stays":
        del document["spec"]["managedBy"]
    del document["status"]
    history.home.create(JOB, document)
    history.until("both run", lambda: history.containers("low", "Job") == 2)


def refuse_stops(history: History, cluster: str, seconds: float) -> None:
    """Let the API server refuse the agent's patches of Jobs for a while."""
    port = history.agent(cluster).port if cluster != "local" else history.leader.local.port
    send, time = port._send, history.world.time
    until = time.now + seconds

    def refused(command: ApiWrite, deadline: float) -> None:
        if time.now < until and isinstance(command, Patch) and command.ref.resource == JOB:
            time.after(0.02, lambda: port._refuse(command))
            return
        send(command, deadline)

    port._send = refused  # type: ignore[method-assign]


def test_hd_317_the_release_of_an_epoch_before_that_an_older_manager_has_left_frees_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rolled back and upgraded again. Nobody forges anything."""
    history, _ = draining("travels", EARLY, stops=5.0)
    for each in ("_settle", "compare"):  # what the older one leaves is no lie of this one's books
        monkeypatch.setattr(history.world.account, each, lambda *_, **__: None)
    monkeypatch.setattr(history.world.truth, "check_quota", lambda *_, **__: None)
    real = release_writes.__dict__["without"]
    with monkeypatch.context() as older:
        older.setattr(release_writes, "without", lambda them, type_: them if "Draining" in type_ else real(them, type_))
        older.setattr(releasing, "look", lambda _: None)
        older.setattr(releasing, "take", lambda _: None)
        another_leads(history)
        history.until("high runs", lambda: history.containers("high") == 1)
        history.delete("home", POD, "high")
        history.until("low runs in its next epoch", lambda: history.containers("low") == 1)
    history.edit("home", CLUSTER_QUEUE, "travels", {"metadata": {"annotations": HELD}})
    another_leads(history)
    for each in history.workers:
        lose_nodes(history, each)
    prioritised(history, "high", 9)
    history.until("it is evicted", lambda: history.shows("low", "Evicted"), 65.0)
    another_leads(history)
    history.passes(GRACE)
    assert not history.shows("high", "QuotaReserved")


@QUEUES
def test_hd_317_a_release_forged_before_the_eviction_is_not_believed_by_the_next_leader(queue: str) -> None:
    history = a_world(queue, HELD)
    prioritised(history, "low", 1, queue)
    history.until_runs("low")
    said(history, "gatelift.dev/Draining", "QuotaReleased")
    history.passes(5.0)
    prioritised(history, "high", 9, queue)
    history.until("it is evicted", lambda: history.shows("low", "Evicted"), 5.0)
    another_leads(history)
    is_held_until_it_stops(history)


@QUEUES
def test_hd_318_a_release_forged_after_a_change_of_leader_is_not_believed(queue: str) -> None:
    history, _ = draining(queue, HELD, stops=58.0)
    another_leads(history)
    history.passes(5.0)
    said(history, "gatelift.dev/Draining", "QuotaReleased")
    is_held_until_it_stops(history)


def test_hd_319_no_deadline_frees_what_has_been_let_go_again() -> None:
    """The agent's word stands although its Job runs again, while its stop is refused."""
    history = a_world("travels", file=FILE)
    long_job(history, "travels", 60)
    (cluster,) = history.runs("low", "Job")
    lose_nodes(history, cluster)
    prioritised(history, "high", 9)
    history.passes(170.0)
    refuse_stops(history, cluster, 40.0)
    history.edit(cluster, JOB, "low", {"spec": {"suspend": False}})
    history.passes(30.0)  # the outside account: released is what was asked to leave


def test_hd_319_the_deadline_counts_from_the_last_deletion() -> None:
    """A pod that was made in the middle of the drain has its own time."""
    history = a_world("travels", file=FILE)
    history.world.truth._crowds = MagicMock()  # a pod is said to have failed by hand, and its containers run
    history.world.truth._check = lambda *_, **__: None  # type: ignore[method-assign]
    history.world.account._settle = lambda *_, **__: None  # type: ignore[method-assign]
    history.world.account.compare = lambda *_, **__: None  # type: ignore[method-assign]
    long_job(history, "travels", 600)
    (cluster,) = history.runs("low", "Job")
    prioritised(history, "high", 9)
    history.until("it is evicted", lambda: history.shows("low", "Evicted", "Job"), 5.0)
    history.passes(290.0)
    name = history.objects(cluster)[0]["metadata"]["name"]
    history.edit(cluster, POD, name, {"status": {"phase": "Failed"}}, "status")
    history.passes(10.0)
    refuse_stops(history, cluster, 8.0)
    history.edit(cluster, JOB, "low", {"spec": {"suspend": False}})
    history.passes(6.0)
    lose_nodes(history, cluster)
    history.passes(54.0)
    deleted = history.world.time.now
    history.until("its quota is free", lambda: history.shows("high", "QuotaReserved"), 1500.0)
    assert history.world.time.now > deleted - 54.0 + 600.0 + 120.0 - 10.0


def test_hd_320_what_a_stranger_has_finished_after_its_release_leaves_the_engine() -> None:
    """`reservingWorkloads` stays at 1, and its ClusterQueue is never let go."""
    history, _ = draining("travels", {})
    said(history, "Finished", "Succeeded")
    history.until("high runs", lambda: history.containers("high") == 1)
    history.delete("home", POD, "high")
    history.passes(100.0)
    figures = history.leader.machine.core.ledger.engine.cluster_queue_status("travels")
    assert figures is not None
    assert figures.reserving_workloads == 0
    history.delete("home", CLUSTER_QUEUE, "travels")
    history.passes(100.0)
    assert "travels" not in {each["metadata"]["name"] for each in history.objects("home", CLUSTER_QUEUE)}


@QUEUES
def test_hd_321_a_release_that_somebody_takes_off_the_record_is_written_again(queue: str) -> None:
    """Until then both are shown as admitted, and the next leader charges both."""
    history, _ = draining(queue, {})
    history.world.truth.check_quota = lambda *_, **__: None  # type: ignore[method-assign]
    for each in ("_settle", "compare"):  # for a moment both are
        setattr(history.world.account, each, lambda *_, **__: None)
    history.until("its successor is admitted", lambda: history.shows("high", "QuotaReserved"), 5.0)
    found = workload(history, "low")
    left = [each for each in conditions(found) if each["type"] != "gatelift.dev/Draining"]
    history.edit("home", WORKLOAD, found["metadata"]["name"], {"status": {"conditions": left}}, "status")
    history.passes(5.0)
    assert is_released(workload(history, "low"))


def test_hd_322_no_release_becomes_true_while_no_session_is_open() -> None:
    """Written in the session, landed when the cluster is cut off and another one leads."""
    history = a_world("travels")
    prioritised(history, "low", 1, stops=5000.0)
    cluster = history.until_runs("low")
    lose_nodes(history, cluster)
    port, time, asked = history.leader.port, history.world.time, list[float]()
    send = port._send

    def slow(command: ApiWrite, deadline: float) -> None:
        if asked or not isinstance(command, Patch) or b"QuotaReleased" not in command.body:
            send(command, deadline)
            return
        asked.append(time.now)
        time.after(26.0, lambda: port._land(command, answered=False))

    port._send = slow  # type: ignore[method-assign]
    prioritised(history, "high", 9)
    history.until("it is asked for", lambda: bool(asked), 10.0)
    history.cut(cluster)
    another_leads(history)
    history.passes(60.0)
    assert not history.connected(cluster)
    assert not history.shows("high", "QuotaReserved")


@QUEUES
def test_hd_323_a_queue_that_is_gone_is_one_whose_rule_is_unknown(queue: str) -> None:
    """Its finalizer is taken off; the docstring of rule_of says the later one."""
    history, _ = draining(queue, HELD)
    history.world.account.compare = lambda *_, **__: None  # type: ignore[method-assign]
    history.edit("home", CLUSTER_QUEUE, queue, {"metadata": {"finalizers": None}})
    history.delete("home", CLUSTER_QUEUE, queue)
    history.passes(2.0)
    core = history.leader.machine.core
    (attempt,) = [each for each in core.attempts.values() if each.live]
    rule = release.rule_of(core, core.knowledge.workloads[attempt.workload], attempt)
    assert queue not in core.knowledge.cluster_queues
    assert rule.value == "OnTerminal"
