"""Quota of what is being stopped is free by a stated rule, once, and what still occupies nodes is known (KEP-6143)."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift.core.state import ghosts
from gatelift_agent.core.values.settings import NominalCapacity
from gatelift_kube.values.resources import CLUSTER_QUEUE, NODE, POD, WORKLOAD, WORKLOAD_PRIORITY_CLASS
from gatelift_wire.values.keys import ANNOTATION_CLUSTER
from support.manager.builders import a_pod
from support.sim.cluster import TEAM, Doc
from support.sim.history import History, as_a_process_of_ours
from support.sim.objects import is_released
from support.sim.world import STOP_SECONDS

POLICY = {"spec": {"preemption": {"withinClusterQueue": "LowerPriority"}}}
WHOLE = {"stays": 2000, "travels": 3000}
STOPS = 50.0
GRACE = 60
RULES = pytest.mark.parametrize(
    ("rule", "early"), [({}, True), ({"gatelift.dev/release": "OnTerminal"}, False)], ids=["by default", "OnTerminal"]
)


def a_world(queue: str = "travels", annotations: dict[str, str] | None = None, **told: Any) -> History:
    """Return a history whose queue lets higher priorities in for lower ones."""
    history = History(shown=False, **told)
    history.edit("home", CLUSTER_QUEUE, queue, {**POLICY, "metadata": {"annotations": annotations or {}}})
    for value in (1, 9):
        history.home.create(WORKLOAD_PRIORITY_CLASS, {"metadata": {"name": f"p{value}"}, "value": value})
    return history


def prioritised(
    history: History,
    name: str,
    priority: int,
    queue: str = "travels",
    *,
    cpu: str = "",
    stops: float = STOPS,
    on: str = "",
    grace: int = GRACE,
) -> None:
    """Let a user create a pod of a priority class that takes long to stop; without `cpu` it is the whole queue."""
    document = a_pod(name).asking(cpu=cpu or f"{WHOLE[queue]}m").document()
    document["metadata"]["namespace"] = TEAM
    document["metadata"]["labels"] |= {
        "kueue.x-k8s.io/queue-name": queue,
        "kueue.x-k8s.io/priority-class": f"p{priority}",
    }
    document["metadata"]["annotations"] = {STOP_SECONDS: f"{stops:g}"} | ({ANNOTATION_CLUSTER: on} if on else {})
    document["spec"]["terminationGracePeriodSeconds"] = grace
    del document["status"]
    history.home.create(POD, document)


def workload(history: History, name: str) -> Doc:
    found = history.workload(name)
    assert found is not None
    return found


@pytest.mark.parametrize("queue", ["stays", "travels"])
def test_qr_1_who_preempts_is_admitted_within_a_second_and_the_victim_ends_in_peace(queue: str) -> None:
    """QR-1 at home, QR-8 at a worker."""
    history = a_world(queue)
    prioritised(history, "low", 1, queue)
    history.until_runs("low")
    prioritised(history, "high", 9, queue)
    history.until("it is being stopped", lambda: history.shows("low", "Evicted"), 5.0)
    history.until("its successor is admitted", lambda: history.shows("high", "QuotaReserved"), 1.0)
    assert history.containers("low") == 1
    assert is_released(workload(history, "low"))
    assert history.leader.charges(queue) == WHOLE[queue]
    history.until("it has stopped in its own time", lambda: history.containers("low") == 0, GRACE + 10.0)
    history.until("its successor runs", lambda: history.containers("high") == 1)


def test_qr_3_five_who_preempt_at_once_take_five_victims_and_none_is_picked_twice() -> None:
    """QR-3: in Kueue the next in line picks who is leaving already, and waits for it."""
    history = a_world("stays")
    for number in range(5):
        prioritised(history, f"low-{number}", 1, "stays", cpu="400m")
    for number in range(5):
        history.until_runs(f"low-{number}")
    for number in range(5):
        prioritised(history, f"high-{number}", 9, "stays", cpu="400m")
    highs = [f"high-{number}" for number in range(5)]
    history.until("all are admitted", lambda: all(history.shows(each, "QuotaReserved") for each in highs), 3.0)
    assert [history.containers(f"low-{number}") for number in range(5)] == [1] * 5, "each ends in its own time"
    evictions = [each for number in range(5) for each in evicted(history, f"low-{number}")]
    assert evictions == [1] * 5


def evicted(history: History, name: str) -> list[int]:
    """Return how often a pod's Workload was evicted, by reason."""
    stats = workload(history, name)["status"].get("schedulingStats", {})
    return [each["count"] for each in stats.get("evictions", [])]


@pytest.mark.parametrize("queue", ["stays", "travels"])
def test_qr_5_on_terminal_a_pod_keeps_its_quota_until_it_has_stopped(queue: str) -> None:
    """QR-5 by the annotation of the ClusterQueue, QR-8 at a worker."""
    history = a_world(queue, {"gatelift.dev/release": "OnTerminal"})
    prioritised(history, "low", 1, queue)
    history.until_runs("low")
    prioritised(history, "high", 9, queue)
    history.until("it says that it drains", lambda: history.shows("low", "gatelift.dev/Draining"), 5.0)
    history.passes(STOPS - 10.0)
    assert history.containers("low") == 1
    assert not is_released(workload(history, "low"))
    assert not history.shows("high", "QuotaReserved")
    history.until("its successor runs", lambda: history.containers("high") == 1, 20.0)
    assert history.containers("low") == 0


@RULES
@pytest.mark.parametrize("queue", ["stays", "travels"])
def test_qr_5_a_job_is_released_once_no_pod_of_it_is_active_and_by_the_annotation_when_all_have_stopped(
    queue: str, rule: dict[str, str], early: bool
) -> None:
    """QR-5 for Jobs."""
    history = a_world(queue, rule)
    history.job("low", queue=queue, pods=2, cpu=f"{WHOLE[queue] // 2}m", stops_in=20.0)
    history.until("both run", lambda: history.containers("low", "Job") == 2)
    prioritised(history, "high", 9, queue)
    history.until("it is being stopped", lambda: history.shows("low", "Evicted", "Job"), 5.0)
    history.passes(5.0)
    assert history.containers("low", "Job") == 2
    assert history.shows("high", "QuotaReserved") is early
    history.until("its successor runs", lambda: history.containers("high") == 1, 40.0)


@pytest.mark.parametrize("queue", ["stays", "travels"])
@pytest.mark.parametrize("who", ["manager", "agent", "both"])
def test_qr_9_killed_between_release_and_stop_there_is_one_release_and_one_run(queue: str, who: str) -> None:
    """QR-9: the outside check counts charges and releases of each epoch, and what may run."""
    history = a_world(queue)
    history.job("low", queue=queue, pods=2, cpu=f"{WHOLE[queue] // 2}m", stops_in=STOPS)
    history.until("both run", lambda: history.containers("low", "Job") == 2)
    ran = history.runs("low", "Job")
    prioritised(history, "high", 9, queue)
    history.until("its successor is admitted", lambda: history.shows("high", "QuotaReserved"), 10.0)
    if who != "agent" or queue == "stays":
        history.kill_leader()
    if who != "manager" and queue != "stays":
        history.kill_agent(next(iter(ran)))
    history.until("somebody leads", history.leads)
    for _ in range(30):
        history.passes(1.0)
        found = history.workload("low", "Job")
        assert found is not None
        if history.containers("low", "Job"):
            assert is_released(found), "a release is not undone"
            assert found["status"].get("clusterName", "local") in {*ran, "local"}
            assert history.leader.charges(queue) <= WHOLE[queue]
    history.until("its successor runs", lambda: history.containers("high") == 1)
    history.delete("home", POD, "high")
    history.until("it runs again", lambda: history.containers("low", "Job") == 2)


@RULES
def test_qr_10_what_drains_on_a_cluster_that_is_lost_stays_as_it_was(rule: dict[str, str], early: bool) -> None:
    """QR-10: released stays released, held stays held, and it runs nowhere else."""
    history = a_world("travels", rule)
    prioritised(history, "low", 1)
    cluster = history.until_runs("low")
    prioritised(history, "high", 9)
    history.until("it is being stopped", lambda: history.containers("low") == 1 and drains(history), 5.0)
    history.cut(cluster)
    history.until_lost(cluster)
    history.passes(1200.0)
    assert is_released(workload(history, "low")) is early
    assert workload(history, "low")["status"]["clusterName"] == cluster
    assert history.shows("high", "QuotaReserved") is early
    history.mend(cluster)
    history.until("its successor runs", lambda: history.containers("high") == 1)


def drains(history: History) -> bool:
    """Say whether the pod low drains, by its record."""
    return history.shows("low", "gatelift.dev/Draining")


OFF = "featureGates: {%s: false}"


@pytest.mark.parametrize("queue", ["stays", "travels"])
@pytest.mark.parametrize("gate", ["PodIntegrationFastQuotaRelease", "FastQuotaReleaseInPodIntegration"])
def test_qr_2_with_the_gate_off_a_pod_keeps_its_quota_until_its_time_is_over(queue: str, gate: str) -> None:
    """QR-2, under both names of the gate: until deletionTimestamp has passed, and not twice that long."""
    history = a_world(queue, file=OFF % gate)
    prioritised(history, "low", 1, queue, stops=10.0 * GRACE)
    cluster = history.until_runs("low")
    lose_nodes(history, cluster)  # so that what frees it is the time
    prioritised(history, "high", 9, queue, stops=1.0)
    history.until("it is being stopped", lambda: history.shows("low", "Evicted"), 5.0)
    history.passes(GRACE - 5.0)
    assert not history.shows("high", "QuotaReserved")
    history.until("its time is over", lambda: history.shows("high", "QuotaReserved"), 10.0)
    assert is_released(workload(history, "low"))
    assert history.containers("low") == 1


DEADLINE = "gatelift: {release: {strategies: {Pod: OnTerminal}, deadline: 2m}}"


@pytest.mark.parametrize("queue", ["stays", "travels"])
def test_qr_6_a_pod_that_never_stops_gives_its_quota_up_at_the_deadline_and_runs_nowhere_else(queue: str) -> None:
    """QR-6: the kubelet is away, so that nobody says that it has stopped; two minutes after its time was over."""
    history = a_world(queue, file=DEADLINE)
    prioritised(history, "low", 1, queue, stops=1e6)
    cluster = history.until_runs("low")
    lose_nodes(history, cluster)
    prioritised(history, "high", 9, queue, stops=1.0)
    history.until("it is being stopped", lambda: history.shows("low", "Evicted"), 5.0)
    history.passes(GRACE + 100.0)
    assert not history.shows("high", "QuotaReserved")
    history.until("the deadline", lambda: history.shows("high", "QuotaReserved"), 25.0)
    assert reason(history) == "QuotaReleasedByDeadline"
    assert history.leader.told["QuotaReleasedByDeadline"] == 1
    history.passes(3600.0)
    assert history.runs("low") == {cluster}
    assert ghosts_of(history) == {(cluster, queue): WHOLE[queue]}


def lose_nodes(history: History, cluster: str) -> None:
    """Let all kubelets of a cluster be away: what they run, runs on."""
    found = history.cluster(cluster)
    for node in found.views(NODE):
        found.cut_node(node["metadata"]["name"], lost=True)


def reason(history: History) -> str:
    found = workload(history, "low")["status"]["conditions"]
    return str(next(each["reason"] for each in found if each["type"] == "gatelift.dev/Draining"))


def ghosts_of(history: History) -> dict[tuple[str, str], int]:
    """Return milli-CPU that may still be occupied, by cluster and ClusterQueue."""
    found: dict[tuple[str, str], int] = {}
    for each in ghosts.all_of(history.leader.machine.core):
        amount = sum(amount for (_, resource), amount in each.usage.items() if resource == "cpu")
        found[each.cluster, each.queue] = found.get((each.cluster, each.queue), 0) + amount
    return found


def test_a_worker_may_insist_that_what_is_stopped_keeps_its_quota_until_it_has_stopped() -> None:
    history = a_world("travels", agents={"holds_quota": True})
    prioritised(history, "low", 1)
    history.until_runs("low")
    prioritised(history, "high", 9)
    history.passes(STOPS - 10.0)
    assert history.containers("low") == 1
    assert not history.shows("high", "QuotaReserved")
    history.until("its successor runs", lambda: history.containers("high") == 1)


@RULES
def test_qr_8_the_workers_own_quota_is_free_by_the_rule_that_came_with_the_commit(
    rule: dict[str, str], early: bool
) -> None:
    """QR-8: each worker has room for one; who preempts is placed while the one before him ends."""
    room = (NominalCapacity(flavor="default", resource="cpu", nominal=3000),)
    history = a_world("travels", rule, agents={"capacity": room}, workers=("a",))
    prioritised(history, "low", 1)
    history.until_runs("low")
    prioritised(history, "high", 9)
    history.passes(10.0)
    assert history.containers("low") == 1
    assert (history.containers("high") == 1) is early


def test_qr_12_who_preempts_lands_where_there_is_real_room() -> None:
    """QR-12: by all else it would go where its victim was, which has fewer placements than the other cluster."""
    history = a_world("travels")
    for name, cluster in (("low", "a"), ("small-0", "b"), ("small-1", "b")):
        prioritised(history, name, 1 if name == "low" else 9, cpu="2700m" if name == "low" else "100m", on=cluster)
        history.until_runs(name)
    prioritised(history, "high", 9, cpu="2700m", stops=1.0)
    history.until("its successor runs", lambda: history.containers("high") == 1, 10.0)
    assert history.containers("low") == 1
    assert history.runs("high") == {"b"}


def test_qr_10_no_time_that_passes_while_a_cluster_is_silent_frees_anything() -> None:
    """QR-10: cut off before the time of its pod is over, and not yet counted as lost when it is."""
    history = a_world("travels", file=OFF % "PodIntegrationFastQuotaRelease")
    prioritised(history, "low", 1, stops=10.0 * GRACE)
    cluster = history.until_runs("low")
    lose_nodes(history, cluster)
    prioritised(history, "high", 9)
    history.until("it is being stopped", lambda: history.shows("low", "Evicted"), 5.0)
    history.passes(GRACE - 35.0)
    history.cut(cluster)
    history.passes(45.0)
    assert not history.lost(cluster)
    assert not is_released(workload(history, "low"))
    history.until_lost(cluster)
    assert not is_released(workload(history, "low"))
    history.mend(cluster)
    history.until("it is heard again", lambda: is_released(workload(history, "low")), 120.0)


@pytest.mark.parametrize("queue", ["stays", "travels"])
def test_what_its_user_deletes_keeps_its_quota_until_it_has_stopped(queue: str) -> None:
    """An early release is of what was evicted, by its record."""
    history = a_world(queue)
    prioritised(history, "low", 1, queue)
    history.until_runs("low")
    history.delete("home", POD, "low")
    prioritised(history, "next", 1, queue)
    history.passes(20.0)
    assert history.containers("low") == 1
    assert not history.shows("next", "QuotaReserved")
    history.until("the next one runs", lambda: history.containers("next") == 1, GRACE + 30.0)


def test_a_release_that_somebody_writes_around_the_policy_frees_nothing() -> None:
    """QR-9: only what this leader has decided, or one before it has left, is believed."""
    history = a_world("travels", {"gatelift.dev/release": "OnTerminal"})
    prioritised(history, "low", 1)
    history.until_runs("low")
    prioritised(history, "high", 9)
    history.until("it drains", lambda: drains(history), 5.0)
    found = workload(history, "low")
    said = [
        {**each, "reason": "QuotaReleased"} if each["reason"] == "QuotaHeld" else each for each in conditions(found)
    ]
    name = found["metadata"]["name"]
    as_a_process_of_ours(history.home, WORKLOAD, name, {"status": {"conditions": said}}, "status")
    assert is_released(workload(history, "low"))
    history.world.account.pages.clear()  # it takes the forged word for a release, and what runs for a ghost
    for _ in range(10):
        history.passes(1.0)
        assert history.leader.charges("travels") == WHOLE["travels"]
        assert not history.shows("high", "QuotaReserved")


def conditions(document: Doc) -> list[Doc]:
    return list(document["status"]["conditions"])


def draining_text(history: History, name: str) -> str:
    """Return what a Workload says of its draining."""
    conditions = workload(history, name).get("status", {}).get("conditions", [])
    return next((str(each["message"]) for each in conditions if each["type"] == "gatelift.dev/Draining"), "")


AGAIN = "It runs again after that"


@pytest.mark.parametrize(("queue", "again"), [("stays", False), ("travels", True)], ids=["at home", "at a worker"])
def test_hd_355_a_pod_that_is_preempted_at_home_is_not_said_to_run_again(queue: str, *, again: bool) -> None:
    """HD-355: a single pod at home ends with its stop; one at a worker is placed anew."""
    history = a_world(queue)
    prioritised(history, "low", 1, queue)
    history.until_runs("low")
    prioritised(history, "high", 9, queue)
    history.until("it says that it drains", lambda: bool(draining_text(history, "low")), 10.0)
    assert (AGAIN in draining_text(history, "low")) is again


def test_hd_355_what_is_deactivated_or_deleted_while_it_drains_is_not_said_to_run_again() -> None:
    history = a_world()
    prioritised(history, "low", 1)
    history.until_runs("low")
    name = workload(history, "low")["metadata"]["name"]
    history.edit("home", WORKLOAD, name, {"spec": {"active": False}})
    history.until("it says that it drains", lambda: bool(draining_text(history, "low")), 10.0)
    assert AGAIN not in draining_text(history, "low")


@pytest.mark.parametrize("then", ["deleted", "deactivated"])
def test_hd_355_what_said_that_it_runs_again_takes_that_back_when_it_does_not(then: str) -> None:
    history = a_world()
    prioritised(history, "low", 1)
    history.until_runs("low")
    prioritised(history, "high", 9)
    history.until("it says that it drains", lambda: AGAIN in draining_text(history, "low"), 10.0)
    if then == "deleted":
        history.delete("home", POD, "low")
    else:
        history.edit("home", WORKLOAD, workload(history, "low")["metadata"]["name"], {"spec": {"active": False}})
    history.until("it is taken back", lambda: AGAIN not in (draining_text(history, "low") or AGAIN), 20.0)
    assert history.containers("low") == 1
