"""HD-258: `local` among the clusters of a MultiKueueConfig: nothing is dispatched there, where nobody would run it."""

from __future__ import annotations

from gatelift_kube.values.resources import ADMISSION_CHECK, MULTIKUEUE_CONFIG, WORKER_CLUSTER
from support.sim.cluster import Doc
from support.sim.history import History
from support.sim.world import WORKERS


def active(history: History) -> Doc:
    """Return the condition Active of the check that dispatches."""
    (check,) = history.objects("home", ADMISSION_CHECK)
    (found,) = (one for one in check["status"]["conditions"] if one["type"] == "Active")
    return dict(found)


def cordon(history: History, *, cordoned: bool) -> None:
    for name in WORKERS:
        history.edit("home", WORKER_CLUSTER, name, {"spec": {"cordoned": cordoned}})


def test_hd_258_a_job_of_multikueues_waits_where_only_the_management_cluster_is_left() -> None:
    """HD-258: it was admitted there, with `managedBy` that keeps the Job controller away, and charged for ever."""
    history = History(shown=False)
    history.edit("home", MULTIKUEUE_CONFIG, "all", {"spec": {"clusters": [*WORKERS, "local"]}})
    cordon(history, cordoned=True)
    history.passes(3.0)
    history.job("one")
    history.passes(60.0)
    assert not history.shows("one", "Admitted", "Job")
    assert "[local]" in active(history)["message"]
    cordon(history, cordoned=False)
    history.until("it runs where there is room", lambda: history.containers("one", "Job") > 0, 300.0)


def test_hd_258_a_check_that_names_the_management_cluster_alone_says_so() -> None:
    """HD-258: such a check has no cluster to dispatch to, and its queue is inactive, in words that help."""
    history = History(shown=False)
    history.edit("home", MULTIKUEUE_CONFIG, "all", {"spec": {"clusters": ["local"]}})
    history.passes(3.0)
    said = active(history)
    assert (said["status"], said["reason"]) == ("False", "NoUsableClusters")
    assert "runs the work of queues without this check" in said["message"]
