"""HD-186, HD-187, HD-188: what runs beside its record and had borrowed is charged where it borrowed until it ended.

`travels` has no quota of its own and runs on what `lender` lends, beside a record that was restored to before that.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gatelift_kube.values.resources import CLUSTER_QUEUE, LOCAL_QUEUE, POD, WORKER_CLUSTER
from histories.test_recovery import recovered, say, until_found
from support.manager.builders import kueue_object
from support.sim.cluster import TEAM
from support.sim.cohort_history import BORROWED, COHORT, LONG, OWN, a_history, make_queue, quota, running
from support.sim.history import History
from support.sim.restoring import backup, cordon, moved_to_b, restore

CLUSTERS = ("a", "b")


def charged_in(history: History) -> str:
    """Return what the queue that borrows says of where it is charged."""
    found = history.home.look(CLUSTER_QUEUE, "travels")
    assert found is not None
    return str(found["metadata"]["annotations"]["gatelift.dev/charged-in"])


def a_cohort(lent: str) -> History:
    """Return a history in which `travels` may only borrow, from `lender`."""
    history = a_history()
    make_queue(history, "lender", lent)
    history.home.create(LOCAL_QUEUE, kueue_object("LocalQueue", "lender", {"clusterQueue": "lender"}, namespace=TEAM))
    history.edit("home", CLUSTER_QUEUE, "travels", {"spec": {"cohortName": COHORT, "resourceGroups": quota("0")}})
    history.passes(3)
    return history


def restored(history: History) -> History:
    """Let a person say that a restored management cluster goes on."""
    say(history, until_found(history))
    history.until("dispatch goes on", lambda: recovered(history))
    return history


def runs_beside(*, local_queue: bool = True) -> History:
    """Return a history in which two pods run on all that is lent, and the restored records say that they wait.

    Where not `local_queue`, theirs is deleted before anybody leads again.
    """
    history = a_cohort("3000m")
    for name in CLUSTERS:
        cordon(history, name)
    for name in BORROWED:
        history.pod(name, cpu="1500m")
    history.passes(10.0)
    kept = backup(history)
    for name in CLUSTERS:
        cordon(history, name, on=False)
    history.until("they run", lambda: running(history, BORROWED) == list(BORROWED))
    history.passes(90.0)
    restore(history, kept)
    if not local_queue:
        history.delete("home", LOCAL_QUEUE, "travels")
    restored(history).passes(30.0)
    for name in CLUSTERS:
        cordon(history, name, on=False)
    assert history.leader.charges("travels") == (3000 if local_queue else 0)
    return history


def put_elsewhere(history: History) -> None:
    """Let a person put the queue that has borrowed into another cohort."""
    history.edit("home", CLUSTER_QUEUE, "travels", {"spec": {"cohortName": "elsewhere"}})
    history.passes(10.0)
    assert charged_in(history) == f"elsewhere,{COHORT}"


def nothing_is_lent(history: History, own: tuple[str, ...] = OWN, borrowed: tuple[str, ...] = BORROWED) -> None:
    """Check that the lender's own pods wait as long as those run that have borrowed."""
    for name in own:
        history.pod(name, "lender", cpu=f"{3000 // len(BORROWED)}m" if own == OWN else "500m")
    history.passes(4 * LONG)
    assert running(history, borrowed) == list(borrowed)
    assert not running(history, own), "what was borrowed is lent again"


def stays(_: History) -> None:
    """Let the leader go on."""


def dies(history: History) -> None:
    """Let the leader die, and another one find an old Lease."""
    history.kill_leader()
    history.until("another one leads", history.leads)


def hands_over(history: History) -> None:
    """Let the leader die, and a standby take over."""
    history.world.start_manager()
    history.passes(30.0)
    dies(history)


def hands_over_while_all_is_cut_off(history: History) -> None:
    """Let a standby take over that hears none of the clusters."""
    history.world.start_manager()
    history.passes(30.0)
    for name in CLUSTERS:
        history.cut(name)
    dies(history)


LEADERS = [stays, dies, hands_over, hands_over_while_all_is_cut_off]


@pytest.mark.parametrize("leader", LEADERS)
def test_hd_186_what_runs_beside_its_record_owes_what_it_had_borrowed_whoever_leads(
    leader: Callable[[History], None],
) -> None:
    history = runs_beside()
    put_elsewhere(history)
    leader(history)
    history.passes(10.0)
    assert charged_in(history) == f"elsewhere,{COHORT}", "what the next leader knows it by"
    nothing_is_lent(history)


@pytest.mark.parametrize("leader", [stays, dies])
@pytest.mark.parametrize("moves", [False, True])
def test_hd_187_a_record_that_is_given_back_to_what_runs_beside_it_owes_on(
    leader: Callable[[History], None], *, moves: bool
) -> None:
    history = a_cohort("500m")
    kept = moved_to_b(history)
    history.cut("a")
    history.until_lost("a")
    restore(history, kept)
    say(history, until_found(history))
    history.until("the next one leads", history.leads)
    history.until_lost("a")
    assert history.leader.charges("travels") == 500
    if moves:
        put_elsewhere(history)
    history.mend("a")
    history.until("a has said that it is not there", lambda: history.shows("one", "QuotaReserved") is False)
    history.until("dispatch goes on", lambda: recovered(history))
    history.passes(30.0)
    cordon(history, "a", on=False)
    leader(history)
    nothing_is_lent(history, ("own",), ("one",))
    assert history.runs("one") == {"b"}


@pytest.mark.parametrize("leader", LEADERS)
def test_hd_188_its_local_queue_is_deleted_and_it_stays_charged_where_it_was(
    leader: Callable[[History], None],
) -> None:
    history = runs_beside()
    history.delete("home", LOCAL_QUEUE, "travels")
    history.passes(10.0)
    leader(history)
    history.passes(10.0)
    assert history.leader.charges("travels") == 3000
    history.delete("home", CLUSTER_QUEUE, "travels")
    nothing_is_lent(history)
    assert history.home.look(CLUSTER_QUEUE, "travels") is not None, "its finalizer keeps it"


def remembered_in(history: History) -> set[str]:
    """Return in which ClusterQueues runs are remembered as charged, in the status of the clusters."""
    found = [history.home.look(WORKER_CLUSTER, name) for name in CLUSTERS]
    remembered = [one for each in found if each for one in each["status"].get("predecessors", [])]
    return {one["clusterQueue"] for one in remembered}


def test_hd_188_where_it_is_charged_is_remembered_in_the_status_of_its_cluster() -> None:
    assert remembered_in(runs_beside()) == {"travels"}


def test_hd_188_where_nobody_can_tell_nothing_is_lent_that_may_be_in_use_and_people_are_told() -> None:
    history = runs_beside(local_queue=False)
    nothing_is_lent(history)
    log = [line for line in history.world.time.trace if "nobody can tell in which ClusterQueue" in line]
    leaders = [line.split()[1] for line in log]
    assert leaders
    assert all(leaders.count(leader) == len(BORROWED) for leader in leaders), "each leader says so once of each"
    for name in BORROWED:
        history.delete("home", POD, name)
    history.until("the lender's own run", lambda: running(history, OWN) == list(OWN))
