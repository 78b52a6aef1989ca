"""HD-187: what runs beside its record, and had borrowed, is charged where it borrowed until it has ended.

`travels` has no quota of its own and runs on what `lender` lends, beside a record that was restored to before that.
"""

from __future__ import annotations

import pytest

from gatelift_kube.resources import CLUSTER_QUEUE, LOCAL_QUEUE
from histories.test_recovery import recovered, say, until_found
from support.builders_manager import kueue_object
from support.cohort_history import BORROWED, COHORT, LONG, OWN, a_history, make_queue, quota, running
from support.history import History
from support.restoring import cordon, moved_to_b, restore
from support.sim_cluster import TEAM


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


@pytest.mark.parametrize("moves", [False, True])
def test_hd_187_a_record_that_is_given_back_to_what_runs_beside_it_owes_on(*, moves: bool) -> None:
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
    nothing_is_lent(history, ("own",), ("one",))
    assert history.runs("one") == {"b"}
