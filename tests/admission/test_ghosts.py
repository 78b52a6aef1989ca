"""HD-187, HD-188: what runs though its object shows no reservation stays charged where it was, with all that is owed.

Where nobody can tell in which queue that is, it is lent nowhere.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from admission.test_debts import (
    IN_TURN,
    a_queue,
    cohort_at_work,
    engine_of,
    lent_meanwhile,
    limited,
    limited_group,
    running,
)
from gatelift_admission.engine import Engine
from gatelift_kube.objects.kueue import Admission, ClusterQueue, PodSetAssignment, Workload, WorkloadStatus
from gatelift_kube.objects.meta import Condition
from gatelift_kube.values.resources import ObjectKey
from support.twin.admission_objects import cluster_queue, group, local_queue, pod_set, reserved_status, workload
from support.twin.cohort_engine import COHORT, arrive, moves

TAKER = ObjectKey("ns", "taker")


def waiting(name: str, cpu: int = 2, count: int = 1) -> Workload:
    """Return such a Workload whose record shows no reservation (any more)."""
    return workload(name, pod_set(count=count, requests={"cpu": cpu}), queue="taker")


def gives_back(engine: Engine, name: str, *, told: str = "before") -> None:
    """Let the record of a Workload give its reservation back, while the Workload runs beside it and is held."""
    engine.block(name)
    if told == "before":
        engine.set_ghost(name, runs=True)
    engine.workload_changed(waiting(name), 0.6)
    engine.set_ghost(name, runs=True)


@pytest.mark.parametrize("told", ["before", "at once"])
def test_hd_187_a_debt_outlives_that_a_record_is_given_back_to_what_runs_beside_it(told: str) -> None:
    engine = cohort_at_work()
    engine.cluster_queue_changed(a_queue("taker", 0, "elsewhere"))
    assert moves(engine, 0.5) == []
    for name in ("a", "b"):
        gives_back(engine, name, told=told)
    assert lent_meanwhile(engine) == IN_TURN


def test_hd_187_a_debt_ends_with_what_runs_beside_the_record() -> None:
    engine = cohort_at_work()
    engine.cluster_queue_changed(a_queue("taker", 0, "elsewhere"))
    moves(engine, 0.5)
    for name in ("a", "b"):
        gives_back(engine, name)
        engine.set_ghost(name, runs=False)
    assert lent_meanwhile(engine)[:2] == ["lender-0", "lender-1"]


GOES: list[tuple[str, Callable[[Engine], None]]] = [
    ("is gone", lambda engine: engine.local_queue_removed(TAKER)),
    ("is another queue's", lambda engine: engine.local_queue_changed(local_queue("taker", "far"))),
]


@pytest.mark.parametrize("change", [pytest.param(change, id=name) for name, change in GOES])
def test_hd_187_it_stays_charged_where_it_was_whatever_becomes_of_its_local_queue(
    change: Callable[[Engine], None],
) -> None:
    engine = engine_of(a_queue("lender", 4), a_queue("taker", 0), a_queue("far", 9, ""), runs=(running("a"),))
    engine.workload_changed(running("b"), 0.0)
    moves(engine, 0.0)
    change(engine)
    for name in ("a", "b"):
        gives_back(engine, name)
    assert engine.queue_is_used("taker")
    assert lent_meanwhile(engine) == IN_TURN


def test_hd_187_it_stays_charged_in_the_flavors_that_it_had() -> None:
    queue = cluster_queue("taker", group(default={"cpu": 4}, other={"cpu": 4}))
    engine = engine_of(queue)
    assignment = PodSetAssignment("main", {"cpu": "other"}, {"cpu": "2"}, 1)
    status = reserved_status(Admission("taker", (assignment,)))
    engine.workload_changed(workload("a", pod_set(requests={"cpu": 2}), queue="taker", status=status), 0.0)
    gives_back(engine, "a")
    assert engine.charged("a") == {("other", "cpu"): 2000}


def test_hd_187_what_was_granted_less_than_it_asks_for_is_charged_all_of_that() -> None:
    engine = engine_of(a_queue("taker", 8))
    granted = running("a").status
    engine.workload_changed(workload("a", pod_set(count=3, requests={"cpu": 2}), queue="taker", status=granted), 0.0)
    assert engine.charged("a") == {("default", "cpu"): 2000}
    engine.set_ghost("a", runs=True)
    engine.workload_changed(waiting("a", count=3), 0.6)
    assert engine.charged("a") == {("default", "cpu"): 6000}


def test_hd_187_a_reservation_that_cannot_be_written_leaves_what_runs_beside_it_charged() -> None:
    engine = engine_of(a_queue("lender", 4), a_queue("taker", 0))
    arrive(engine, "taker-0", 4, 0.0)
    assert moves(engine, 0.0) == ["taker-0"]
    engine.set_ghost("taker-0", runs=True)
    engine.forget("taker-0")
    arrive(engine, "lender-0", 4, 1.0)
    assert moves(engine, 1.0) == []
    engine.set_ghost("taker-0", runs=False)
    assert moves(engine, 2.0) == ["lender-0"]


def test_hd_187_to_release_its_reservation_frees_nothing_of_what_runs_beside_it() -> None:
    engine = cohort_at_work()
    engine.set_ghost("a", runs=True)
    engine.release("a", 0.5)
    assert engine.charged("a") == {("default", "cpu"): 2000}


def test_hd_187_what_runs_beside_an_unreadable_record_stays_charged() -> None:
    engine = cohort_at_work()
    engine.set_ghost("a", runs=True)
    engine.workload_changed(workload("a", pod_set(requests={"cpu": "much"}), queue="taker"), 0.6)
    assert engine.charged("a") == {("default", "cpu"): 2000}


# --- whose quota was freed early, while its reservation stands ---


def freed(count: int = 1) -> Engine:
    """Return an engine in which the quota of `a` was freed, which was granted one pod and asks for so many."""
    engine = engine_of(a_queue("taker", 8))
    _asks(engine, count)
    engine.release("a", 0.5)
    assert not engine.charged("a")
    return engine


def _asks(engine: Engine, count: int = 1) -> None:
    pods = pod_set(count=count, requests={"cpu": 2})
    granted = PodSetAssignment("main", {"cpu": "default"}, {"cpu": "2"}, None)  # such a record is read anew each time
    status = reserved_status(Admission("taker", (granted,)))
    engine.workload_changed(workload("a", pods, queue="taker", status=status), 0.0)


@pytest.mark.parametrize("count", [1, 3])
def test_hd_361_what_is_named_beside_a_reservation_that_was_freed_is_charged_at_once(count: int) -> None:
    """Another epoch may have all that it asks for, and a record that is written anew changes nothing."""
    engine = freed(count)
    engine.set_ghost("a", runs=True)
    whole = {("default", "cpu"): 2000 * count}
    assert engine.charged("a") == whole
    _asks(engine, count)
    assert engine.charged("a") == whole
    engine.set_ghost("a", runs=True)
    engine.workload_changed(waiting("a", count=count), 0.6)
    assert engine.charged("a") == whole


@pytest.mark.parametrize("given_back", [False, True])
def test_hd_361_it_is_free_again_once_nothing_runs_beside_it(*, given_back: bool) -> None:
    engine = freed()
    engine.set_ghost("a", runs=True)
    if given_back:
        engine.workload_changed(waiting("a"), 0.6)
    engine.set_ghost("a", runs=False)
    assert not engine.charged("a")
    _asks(engine)
    assert bool(engine.charged("a")) is given_back, "granted anew, or still freed"


# --- what the next leader knows ---

FINISHED = WorkloadStatus(conditions=(Condition(type="Finished", status="True"),))


def next_leader(*queues: ClusterQueue, told: str = "", local: bool = False) -> Engine:
    """Return the engine of a leader that finds `a` and `b` running beside their records, as charged in queue `told`."""
    engine = engine_of(*queues)
    if not local:
        engine.local_queue_removed(TAKER)
    for name in ("a", "b"):
        engine.workload_changed(waiting(name), 0.0)
        engine.set_ghost(name, runs=True, queue=told)
        engine.block(name)
    return engine


def test_hd_188_without_its_local_queue_it_is_charged_where_it_is_remembered() -> None:
    engine = next_leader(a_queue("lender", 4), a_queue("taker", 0), a_queue("far", 9, ""), told="taker")
    assert engine.charged_queue("a") == "taker"
    assert not engine.is_adrift("a")
    arrive(engine, "far-0", 9, 0.0)
    assert moves(engine, 1.0) == ["far-0"]
    assert lent_meanwhile(engine) == IN_TURN


def test_hd_188_where_it_is_remembered_counts_and_not_where_its_local_queue_leads_now() -> None:
    engine = next_leader(a_queue("lender", 4), a_queue("taker", 9, ""), a_queue("was", 0), told="was", local=True)
    assert engine.charged_queue("a") == "was"
    assert lent_meanwhile(engine) == IN_TURN


@pytest.mark.parametrize("told", ["", "gone"])
@pytest.mark.parametrize(
    "lender", [a_queue("lender", 4), a_queue("lender", 4, ""), a_queue("lender", 4, flavor_name="other")]
)
def test_hd_188_where_nobody_can_tell_what_may_be_in_use_is_lent_nowhere(lender: ClusterQueue, told: str) -> None:
    engine = next_leader(lender, a_queue("taker", 0), told=told)
    assert engine.is_adrift("a")
    assert not engine.charged("a")
    assert lent_meanwhile(engine) == IN_TURN


@pytest.mark.parametrize("lends", [0, 1, 4])
def test_hd_188_nor_what_a_queue_or_cohort_keeps_to_its_own(lends: int) -> None:
    either = ["+", "+", "lender-0", "lender-1"]  # one of the four may be of either part
    keeps = cluster_queue("lender", limited_group("4", lends=lends), cohort_name=COHORT)
    assert lent_meanwhile(next_leader(keeps, a_queue("taker", 0))) == (either if lends == 1 else IN_TURN)
    engine = next_leader(a_queue("lender", 4, "team"), a_queue("taker", 0))
    engine.cohort_changed(limited("team", COHORT, lends=lends))
    assert lent_meanwhile(engine) == (either if lends == 1 else IN_TURN)


def test_hd_188_what_others_let_go_meanwhile_is_not_lent_in_its_place() -> None:
    keeps = cluster_queue("lender", limited_group("4", lends=0), cohort_name=COHORT)
    for lender in (keeps, a_queue("lender", 4), a_queue("lender", 4, "")):
        engine = next_leader(lender, a_queue("taker", 0))
        engine.workload_changed(running("was", cpu=3, queue="lender"), 0.0)
        arrive(engine, "lender-0", 1, 0.0)
        assert moves(engine, 1.0) == []
        engine.workload_removed("was")
        assert moves(engine, 2.0) == []


def test_hd_188_what_is_more_than_that_is_lent() -> None:
    engine = next_leader(a_queue("lender", 9), a_queue("taker", 0), a_queue("far", 5, ""))
    arrive(engine, "lender-0", 5, 0.0)
    arrive(engine, "lender-1", 1, 0.0, created=1)
    arrive(engine, "far-0", 1, 0.0)
    assert moves(engine, 1.0) == ["far-0", "lender-0"]


@pytest.mark.parametrize("told", ["", "gone"])
def test_hd_188_its_queue_is_made_anew_and_it_is_charged_there(told: str) -> None:
    engine = next_leader(a_queue("lender", 4), a_queue("taker", 0, ""), a_queue("far", 4, ""), told=told)
    arrive(engine, "lender-0", 4, 0.0)
    assert moves(engine, 1.0) == []
    if told:
        engine.cluster_queue_changed(a_queue(told, 0, "elsewhere"))
    else:
        engine.local_queue_changed(local_queue("taker", "far"))
    assert engine.charged_queue("a") == (told or "far")
    assert moves(engine, 2.0) == ["lender-0"]


def _is_removed(engine: Engine, name: str) -> None:
    engine.workload_removed(name)


def _has_ended(engine: Engine, name: str) -> None:
    engine.set_ghost(name, runs=False)


def _is_placed(engine: Engine, name: str) -> None:
    engine.workload_changed(running(name, queue="far"), 1.0)


@pytest.mark.parametrize("end", [_is_removed, _has_ended, _is_placed])
def test_hd_188_it_is_over_and_all_is_lent(end: Callable[[Engine, str], None]) -> None:
    engine = next_leader(a_queue("lender", 4), a_queue("taker", 0), a_queue("far", 4, ""))
    arrive(engine, "lender-0", 4, 0.0)
    assert moves(engine, 1.0) == []
    for name in ("a", "b"):
        end(engine, name)
    assert moves(engine, 2.0) == ["lender-0"]
    assert not engine.state.adrift


def test_hd_188_it_is_finished_and_stays_adrift_until_nothing_of_it_runs() -> None:
    engine = next_leader(a_queue("lender", 4), a_queue("taker", 0))
    for name in ("a", "b"):
        engine.workload_changed(workload(name, pod_set(requests={"cpu": 2}), queue="taker", status=FINISHED), 1.0)
    assert lent_meanwhile(engine)[:2] == ["+", "lender-0"]


@pytest.mark.parametrize("queue", ["taker", "gone"])
def test_hd_251_nothing_is_granted_to_what_runs_beside_its_record_before_that_is_over(queue: str) -> None:
    """It was granted in the very place of what ran, and charged nothing once that had ended (drawn seed 8909489)."""
    engine = engine_of(a_queue("lender", 4), a_queue("taker", 0))
    engine.workload_changed(waiting("a"), 0.0)
    engine.set_ghost("a", runs=True, queue=queue)
    assert moves(engine, 1.0) == []
    engine.set_ghost("a", runs=False)
    assert moves(engine, 2.0) == ["a"]
    assert engine.charged("a") == {("default", "cpu"): 2000}
    engine.set_ghost("a", runs=False)
    arrive(engine, "lender-0", 4, 2.0)
    assert moves(engine, 3.0) == []


def test_hd_251_what_ran_beside_its_record_and_is_known_to_be_placed_stays_charged() -> None:
    engine = engine_of(a_queue("lender", 4), a_queue("taker", 0))
    engine.workload_changed(waiting("a"), 0.0)
    engine.set_ghost("a", runs=True)
    engine.workload_changed(running("a"), 1.0)
    engine.set_ghost("a", runs=False)
    assert engine.charged("a") == {("default", "cpu"): 2000}
