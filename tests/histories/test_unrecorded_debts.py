"""HD-186, HD-187: what runs beside its record, and had borrowed, is charged where it borrowed until it has ended.

`travels` has no quota of its own and runs on what `lender` lends, beside a record that was restored to before that.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gatelift_kube.resources import CLUSTER_QUEUE, LOCAL_QUEUE
from histories.test_recovery import recovered, say, until_found
from support.builders_manager import kueue_object
from support.cohort_history import BORROWED, COHORT, LONG, OWN, a_history, make_queue, quota, running
from support.history import History
from support.restoring import backup, cordon, moved_to_b, restore
from support.sim_cluster import TEAM

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


def runs_beside() -> History:
    """Return a history in which two pods run on all that is lent, and the restored records say that they wait."""
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
    restored(history).passes(30.0)
    for name in CLUSTERS:
        cordon(history, name, on=False)
    assert history.leader.charges("travels") == 3000
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
