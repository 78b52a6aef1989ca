"""HD-164: what a queue had borrowed when it left its cohort is lent to nobody else until it has ended.

Cohort `all`: `lender` has 4 cpus and nothing runs in it, `taker` has none and runs `a` and `b` of 2 cpus each.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from gatelift_admission.charges.debts import CHARGED_IN, COHORTS_SAID_MAX, said_cohorts
from gatelift_admission.engine import Engine
from gatelift_admission.quota.nodes import Quota, TreeNodeSpec
from gatelift_admission.quota.tree import Tree
from gatelift_kube.objects.kueue import (
    Admission,
    ClusterQueue,
    Cohort,
    CohortSpec,
    FlavorQuotas,
    FlavorResource,
    PodSetAssignment,
    ResourceGroup,
    Workload,
)
from gatelift_kube.objects.meta import ObjectMeta
from support.twin.admission_objects import (
    cluster_queue,
    engine_with,
    flavor,
    group,
    local_queue,
    pod_set,
    reserved_status,
    workload,
)
from support.twin.cohort_engine import COHORT, arrive, moves

Change = Callable[[Engine], None]


def a_queue(name: str, cpu: int, cohort: str = COHORT, flavor_name: str = "default") -> ClusterQueue:
    return cluster_queue(name, group(**{flavor_name: {"cpu": cpu}}), cohort_name=cohort)


def running(name: str, cpu: int = 2, queue: str = "taker") -> Workload:
    assignment = PodSetAssignment("main", {"cpu": "default"}, {"cpu": str(cpu)}, 1)
    status = reserved_status(Admission(queue, (assignment,)))
    return workload(name, pod_set(requests={"cpu": cpu}), queue=queue, status=status)


def engine_of(*queues: ClusterQueue, runs: tuple[Workload, ...] = ()) -> Engine:
    """Return an engine with these queues, a LocalQueue for each, and what runs; nothing was decided yet."""
    names = [one.metadata.name for one in queues]
    locals_ = [local_queue(name, name) for name in names]
    return engine_with(flavor("default"), flavor("other"), *queues, *locals_, *runs)


def cohort_at_work() -> Engine:
    engine = engine_of(a_queue("lender", 4), a_queue("taker", 0), runs=(running("a"), running("b")))
    assert moves(engine, 0.0) == []
    return engine


def set_parent(engine: Engine, name: str, parent: str) -> None:
    engine.cohort_changed(Cohort(ObjectMeta(name=name), CohortSpec(parent)))


def limited(name: str, parent: str, *, lends: int | None) -> Cohort:
    """Return a Cohort that lends so much at most to those beside it."""
    return Cohort(ObjectMeta(name=name), CohortSpec(parent, (limited_group("0", lends=lends),)))


def limited_group(cpu: str, *, lends: int | None) -> ResourceGroup:
    quota = FlavorResource("cpu", cpu, None, None if lends is None else str(lends))
    return ResourceGroup(("cpu",), (FlavorQuotas("default", (quota,)),))


def ends(engine: Engine, name: str) -> None:
    engine.workload_removed(name)


def lent_meanwhile(engine: Engine) -> list[str]:
    """Return who of the lender's own is let in as `a` and then `b` end, after + each."""
    found = []
    for number in range(2):
        arrive(engine, f"lender-{number}", 2, 1.0, created=number)
    found += moves(engine, 2.0)
    for at, name in ((3.0, "a"), (4.0, "b")):
        ends(engine, name)
        found += ["+", *moves(engine, at)]
    return found


IN_TURN = ["+", "lender-0", "+", "lender-1"]
"""Each of the lender's own has to wait for one that had borrowed."""

GOES: list[tuple[str, Change]] = [
    ("is gone", lambda engine: engine.cluster_queue_removed("taker")),
    ("leaves its cohort", lambda engine: engine.cluster_queue_changed(a_queue("taker", 0, ""))),
    ("is in another cohort", lambda engine: engine.cluster_queue_changed(a_queue("taker", 0, "elsewhere"))),
    ("is made smaller", lambda engine: engine.cluster_queue_changed(a_queue("lender", 4))),
    ("loses the flavor", lambda engine: engine.cluster_queue_changed(a_queue("taker", 9, COHORT, "other"))),
]


@pytest.mark.parametrize("change", [pytest.param(change, id=name) for name, change in GOES])
def test_hd_164_what_was_borrowed_is_lent_again_only_as_it_ends(change: Change) -> None:
    engine = cohort_at_work()
    change(engine)
    assert lent_meanwhile(engine) == IN_TURN


@pytest.mark.parametrize(("cohort", "cpu"), [(COHORT, 0), ("", 4), ("elsewhere", 4), ("elsewhere", 0)])
@pytest.mark.parametrize("seen", [True, False])
def test_hd_164_a_queue_that_is_made_anew_under_its_name_pays_no_debt(cohort: str, cpu: int, *, seen: bool) -> None:
    engine = cohort_at_work()
    engine.cluster_queue_removed("taker")
    if seen:
        assert moves(engine, 0.5) == []
    engine.cluster_queue_changed(a_queue("taker", cpu, cohort))
    assert lent_meanwhile(engine) == IN_TURN


def test_hd_164_back_in_its_cohort_a_queue_is_charged_there_once() -> None:
    engine = engine_of(a_queue("lender", 8), a_queue("taker", 0), runs=(running("a"), running("b")))
    moves(engine, 0.0)
    for cohort in ("elsewhere", COHORT, "elsewhere", COHORT):
        engine.cluster_queue_changed(a_queue("taker", 0, cohort))
        moves(engine, 0.5)
    arrive(engine, "lender-0", 4, 1.0)
    assert moves(engine, 2.0) == ["lender-0"]


def test_hd_164_only_what_was_borrowed_is_owed() -> None:
    engine = engine_of(a_queue("lender", 4), a_queue("taker", 3), runs=(running("a"), running("b")))
    moves(engine, 0.0)
    engine.cluster_queue_removed("taker")
    arrive(engine, "lender-0", 3, 1.0)
    arrive(engine, "lender-1", 1, 1.0, created=1)
    assert moves(engine, 2.0) == ["lender-0"], "one of four is in use"
    ends(engine, "a")
    ends(engine, "b")
    assert moves(engine, 3.0) == ["lender-1"]


def test_hd_164_a_queue_without_a_cohort_owes_nobody() -> None:
    engine = engine_of(a_queue("lender", 4), a_queue("taker", 4, ""), runs=(running("a"), running("b")))
    moves(engine, 0.0)
    engine.cluster_queue_removed("taker")
    arrive(engine, "lender-0", 4, 1.0)
    assert moves(engine, 2.0) == ["lender-0"]


def test_hd_164_who_is_let_in_after_the_change_adds_nothing_to_a_debt() -> None:
    engine = cohort_at_work()
    engine.cluster_queue_changed(a_queue("taker", 0, "elsewhere"))
    engine.cluster_queue_changed(a_queue("other", 9, "elsewhere"))
    arrive(engine, "taker-new", 2, 1.0)
    assert moves(engine, 1.0) == ["taker-new"]
    assert lent_meanwhile(engine) == IN_TURN


def test_hd_164_a_cohort_that_gets_another_parent_leaves_what_it_had_borrowed_behind() -> None:
    queues = a_queue("lender", 4, "top"), a_queue("taker", 0, "team"), a_queue("idle", 0, "team")
    engine = engine_of(*queues, runs=(running("a"), running("b")))
    set_parent(engine, "team", "top")
    moves(engine, 0.0)
    set_parent(engine, "team", "")
    moves(engine, 0.5)
    engine.cluster_queue_removed("taker")  # what it owes is owed on
    assert lent_meanwhile(engine) == IN_TURN


def test_hd_164_a_debt_to_a_cohort_goes_with_that_cohort() -> None:
    engine = engine_of(a_queue("lender", 4), a_queue("taker", 0, "mid"), runs=(running("a"), running("b")))
    set_parent(engine, "mid", COHORT)
    moves(engine, 0.0)
    engine.cluster_queue_changed(a_queue("taker", 0, "elsewhere"))  # it owes that to `mid`, which owes it to COHORT
    assert moves(engine, 0.5) == []
    set_parent(engine, "mid", "other")
    assert moves(engine, 0.7) == []
    assert lent_meanwhile(engine) == IN_TURN


def test_hd_164_a_cohort_that_used_its_own_quota_owes_nothing() -> None:
    queues = a_queue("lender", 4, "top"), a_queue("taker", 0, "team"), a_queue("idle", 4, "team")
    engine = engine_of(*queues, runs=(running("a"), running("b")))
    set_parent(engine, "team", "top")
    moves(engine, 0.0)
    engine.cohort_removed("team")
    arrive(engine, "lender-0", 4, 1.0)
    assert moves(engine, 2.0) == ["lender-0"]


def test_hd_164_a_leader_that_never_saw_the_queue_lends_what_may_be_in_use_to_nobody() -> None:
    engine = engine_of(a_queue("lender", 4), a_queue("far", 4, "elsewhere"), runs=(running("a"), running("b")))
    arrive(engine, "far-0", 4, 1.0)
    assert lent_meanwhile(engine)[:3] == ["+", "lender-0", "+"]
    assert engine.queue_is_used("far")


def test_hd_164_what_a_cohort_lends_to_its_own_alone_may_have_been_lent_as_well() -> None:
    engine = engine_of(a_queue("lender", 4, "team"), runs=(running("a"), running("b")))
    engine.cohort_changed(limited("team", "top", lends=0))
    assert lent_meanwhile(engine) == IN_TURN


def test_hd_164_which_queues_are_missed_is_told() -> None:
    engine = engine_of(a_queue("lender", 4), runs=(running("a"), running("b", queue="lender")))
    assert engine.recall() == ["taker"]


def test_hd_164_a_queue_that_is_there_again_tells_where_its_work_is_charged() -> None:
    engine = engine_of(a_queue("lender", 4), runs=(running("a"), running("b")))
    arrive(engine, "lender-0", 4, 1.0)
    assert moves(engine, 1.0) == []
    engine.cluster_queue_changed(a_queue("taker", 4, ""))
    assert moves(engine, 2.0) == ["lender-0"]


def test_hd_164_a_debt_is_forgotten_with_the_last_who_owes_it() -> None:
    engine = cohort_at_work()
    for cohort in ("x", "y", "z", COHORT) * 3:
        engine.cluster_queue_changed(a_queue("taker", 0, cohort))
        moves(engine, 1.0)
    assert len(engine.state.debts.known) <= 4, "at most one for each two"
    ends(engine, "a")
    ends(engine, "b")
    assert moves(engine, 2.0) == []  # a debt that is over goes before the next decision
    assert not engine.state.debts.known
    assert not engine.state.debts.debtors


def test_hd_164_what_a_cohort_is_charged_itself_is_counted_where_its_queues_are_counted_anew() -> None:
    tree = Tree([TreeNodeSpec(name="q", parent="all", quotas={("default", "cpu"): Quota(nominal=4)})])
    (queue,), cell = tree.queues.values(), ("default", "cpu")
    tree.hold(tree.cohorts["all"], {cell: 3})
    tree.shift(queue, cell, 1)
    tree.recount(queue, cell)
    assert tree.cohorts["all"].usage == {cell: 4}
    assert tree.free(queue, cell) == 0


# --- who leaves with what it had lent ---


def leaves(cohort: str) -> Engine:
    """Return an engine whose `lender` has just left for another cohort while all of its quota was lent."""
    engine = cohort_at_work()
    engine.cluster_queue_changed(a_queue("lender", 4, cohort))
    return engine


@pytest.mark.parametrize("cohort", ["", "elsewhere"])
def test_hd_164_who_leaves_has_what_it_had_lent_only_as_it_is_given_back(cohort: str) -> None:
    assert lent_meanwhile(leaves(cohort)) == IN_TURN


def test_hd_164_who_leaves_lends_it_to_nobody_else_either() -> None:
    engine = leaves("elsewhere")
    engine.cluster_queue_changed(a_queue("other", 0, "elsewhere"))
    engine.local_queue_changed(local_queue("other", "other"))
    arrive(engine, "other-0", 2, 1.0)
    assert moves(engine, 1.0) == []
    ends(engine, "a")
    assert moves(engine, 2.0) == ["other-0"]


def test_hd_164_who_leaves_keeps_what_was_not_lent() -> None:
    engine = engine_of(a_queue("lender", 4), a_queue("taker", 1), runs=(running("a"),))
    moves(engine, 0.0)
    engine.cluster_queue_changed(a_queue("lender", 4, ""))
    arrive(engine, "lender-0", 3, 1.0)
    assert moves(engine, 1.0) == ["lender-0"]


def test_hd_164_quota_that_is_put_back_into_the_cohort_is_all_there() -> None:
    engine = leaves("elsewhere")
    engine.cluster_queue_changed(a_queue("more", 4))
    arrive(engine, "lender-0", 4, 1.0)
    assert moves(engine, 1.0) == ["lender-0"]
    assert not engine.state.loans.known


def test_hd_164_both_may_leave_one_after_the_other() -> None:
    engine = cohort_at_work()
    engine.cluster_queue_changed(a_queue("taker", 0, "x"))
    moves(engine, 0.5)
    engine.cluster_queue_changed(a_queue("lender", 4, "y"))
    assert lent_meanwhile(engine) == IN_TURN
    assert not engine.state.loans.known


def test_hd_164_within_one_tree_a_queue_that_is_made_smaller_as_it_moves_has_lent_nothing() -> None:
    own = cluster_queue("own", limited_group("5", lends=0), cohort_name=COHORT)
    engine = engine_of(a_queue("lender", 4), a_queue("taker", 0), own, runs=(running("a"), running("b")))
    set_parent(engine, "team", COHORT)
    moves(engine, 0.0)
    engine.cluster_queue_changed(a_queue("lender", 3, "team"))
    arrive(engine, "own-0", 4, 1.0)
    assert moves(engine, 1.0) == ["own-0"], "one of its five makes up for what the tree lacks"


@pytest.mark.parametrize("lends", [None, 0, 3])
def test_hd_164_within_one_tree_only_what_its_cohort_kept_to_its_own_is_owed(lends: int | None) -> None:
    engine = engine_of(a_queue("lender", 6, "p1"), a_queue("taker", 0, "p1"), runs=(running("a"), running("b")))
    engine.cohort_changed(limited("p1", "top", lends=lends))
    set_parent(engine, "p2", "top")
    moves(engine, 0.0)
    engine.cluster_queue_changed(a_queue("taker", 0, "p2"))
    arrive(engine, "lender-0", 2, 1.0)
    assert moves(engine, 1.0) == ["lender-0"], "two of six are idle"
    arrive(engine, "lender-1", 4, 2.0)
    assert moves(engine, 2.0) == []


def test_hd_164_a_cohort_that_leaves_with_what_it_had_lent_waits_as_well() -> None:
    queues = a_queue("lender", 4, "team"), a_queue("taker", 0, "top")
    engine = engine_of(*queues, runs=(running("a"), running("b")))
    set_parent(engine, "team", "top")
    moves(engine, 0.0)
    set_parent(engine, "team", "")
    assert lent_meanwhile(engine) == IN_TURN


def test_hd_164_within_one_tree_a_queue_may_be_put_anywhere() -> None:
    engine = engine_of(a_queue("lender", 6), a_queue("taker", 0), runs=(running("a"), running("b")))
    set_parent(engine, "team", COHORT)
    moves(engine, 0.0)
    engine.cluster_queue_changed(a_queue("lender", 6, "team"))
    arrive(engine, "lender-0", 2, 1.0)
    assert moves(engine, 1.0) == ["lender-0"]


# --- what the next leader knows ---


def taken_over(engine: Engine) -> Engine:
    """Return the engine of the next leader: it knows the objects as they are, with what the queues say."""
    queues = []
    for name in ("lender", "taker"):
        model = engine.state.queues[name]
        meta = replace(model.object.metadata, annotations={CHARGED_IN: engine.charged_in(name)})
        queues.append(replace(model.object, metadata=meta))
    found = engine_of(*queues, runs=(running("a"), running("b")))
    for cohort in engine.state.cohorts.values():
        found.cohort_changed(cohort)
    found.recall()
    return found


def test_hd_164_a_queue_says_in_which_cohorts_it_is_charged() -> None:
    engine = cohort_at_work()
    set_parent(engine, COHORT, "top")
    assert engine.charged_in("taker") == f"{COHORT},top"
    engine.cluster_queue_changed(a_queue("taker", 0, "elsewhere"))
    assert engine.charged_in("taker") == f"elsewhere,{COHORT}"
    ends(engine, "a")
    assert engine.charged_in("taker") == f"elsewhere,{COHORT}"
    ends(engine, "b")
    assert engine.charged_in("taker") == "elsewhere"
    engine.cluster_queue_changed(a_queue("taker", 0, ""))
    assert not engine.charged_in("taker")


@pytest.mark.parametrize("leaders", [1, 2])
def test_hd_164_the_next_leader_lends_what_was_borrowed_only_as_it_ends(leaders: int) -> None:
    engine = cohort_at_work()
    engine.cluster_queue_changed(a_queue("taker", 0, "elsewhere"))
    for _ in range(leaders):
        engine = taken_over(engine)
    assert lent_meanwhile(engine) == IN_TURN


def test_hd_164_a_queue_that_was_moved_while_no_leader_was_there_pays_no_debt_either() -> None:
    queue = a_queue("taker", 0, "elsewhere")
    moved = replace(queue, metadata=replace(queue.metadata, annotations={CHARGED_IN: COHORT}))
    engine = engine_of(a_queue("lender", 4), moved, runs=(running("a"), running("b")))
    engine.recall()
    assert lent_meanwhile(engine) == IN_TURN


def test_hd_164_of_several_cohorts_of_one_tree_the_lowest_is_charged() -> None:
    queues = a_queue("lender", 8, "team"), a_queue("taker", 0, "team")
    engine = engine_of(*queues, runs=(running("a"), running("b")))
    set_parent(engine, "team", "top")
    moves(engine, 0.0)
    said = engine.charged_in("taker")
    assert said == "team,top"
    queue = a_queue("taker", 0, "elsewhere")
    moved = replace(queue, metadata=replace(queue.metadata, annotations={CHARGED_IN: said}))
    engine = engine_of(a_queue("lender", 8, "team"), moved, runs=(running("a"), running("b")))
    set_parent(engine, "team", "top")
    engine.recall()
    arrive(engine, "lender-0", 4, 1.0)
    assert moves(engine, 1.0) == ["lender-0"]
    arrive(engine, "lender-1", 1, 2.0)
    assert moves(engine, 2.0) == []


@pytest.mark.parametrize("text", ["", ",,,", "x" * 300, ",".join(f"c{n}" for n in range(100_000)), "all ", "\n"])
def test_hd_164_whatever_the_annotation_says_is_read_within_bounds(text: str) -> None:
    assert len(said_cohorts({CHARGED_IN: text})) <= COHORTS_SAID_MAX
    queue = a_queue("taker", 0, "elsewhere")
    odd = replace(queue, metadata=replace(queue.metadata, annotations={CHARGED_IN: text}))
    engine = engine_of(a_queue("lender", 4), odd, runs=(running("a"), running("b")))
    engine.recall()
    arrive(engine, "lender-0", 4, 1.0)
    assert moves(engine, 1.0) == ["lender-0"]


# --- cycles of cohorts ---


def test_hd_165_cohorts_that_are_edited_into_a_cycle_while_work_runs_below_them_end_nothing() -> None:
    queues = a_queue("lender", 4, "top"), a_queue("taker", 0, "team")
    engine = engine_of(*queues, runs=(running("a"), running("b")))
    set_parent(engine, "team", "top")
    moves(engine, 0.0)
    set_parent(engine, "top", "team")  # a charge went round for ever here
    arrive(engine, "lender-0", 2, 1.0)
    assert moves(engine, 1.0) == []
    engine.workload_changed(running("c"), 1.0)
    ends(engine, "c")
    set_parent(engine, "top", "")
    assert moves(engine, 2.0) == [], "taker still runs on all of it"
    ends(engine, "a")
    assert moves(engine, 3.0) == ["lender-0"]
