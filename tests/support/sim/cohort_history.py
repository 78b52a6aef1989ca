"""A history with a cohort: `travels` has no quota of its own and runs 3000m that `lender` lends to it.

The outside check knows two queues with quota of their own; what counts here is what runs of the cohort's 3000m.
"""

from __future__ import annotations

from typing import Any

from gatelift_kube.values.resources import CLUSTER_QUEUE, LOCAL_QUEUE
from support.manager.builders import kueue_object
from support.sim.cluster import TEAM
from support.sim.history import History

COHORT = "research"
FINALIZER = "kueue.x-k8s.io/resource-in-use"
BORROWED = ("borrows-0", "borrows-1")
OWN = ("own-0", "own-1")
LONG = 30.0
"""Far longer than a pod takes to be admitted and to start."""


def quota(amount: str, flavor: str = "default") -> list[dict[str, Any]]:
    """Return resource groups of that much of the flavor."""
    flavors = [{"name": flavor, "resources": [{"name": "cpu", "nominalQuota": amount}]}]
    return [{"coveredResources": ["cpu"], "flavors": flavors}]


def dispatched(amount: str, cohort: str | None = COHORT) -> dict[str, Any]:
    """Return the spec of a ClusterQueue whose work goes to worker clusters."""
    checks = {"admissionChecks": [{"name": "dispatch"}]}
    spec = {"namespaceSelector": {}, "resourceGroups": quota(amount), "admissionChecksStrategy": checks}
    return spec | ({"cohortName": cohort} if cohort else {})


def make_queue(history: History, name: str, amount: str, cohort: str | None = COHORT) -> None:
    """Make a ClusterQueue."""
    history.home.create(CLUSTER_QUEUE, kueue_object("ClusterQueue", name, dispatched(amount, cohort)))


def _not_judged(*_: object) -> None:
    """Judge nothing."""


def a_history() -> History:
    """Return a history in which queues may be changed: what their managers show and have is not compared."""
    history = History(shown=False)
    history.world.truth.check_quota = _not_judged  # type: ignore[method-assign, assignment]  # it knows no cohorts
    history.world.account.compare = _not_judged  # type: ignore[method-assign, assignment]  # nor queues that go
    return history


def a_borrower_at_work(cohort: str = COHORT) -> History:
    """Return a history in which two pods of `travels` run on all that `lender` lends, and two of `lender` wait."""
    history = a_history()
    make_queue(history, "lender", "3000m", cohort)
    history.home.create(LOCAL_QUEUE, kueue_object("LocalQueue", "lender", {"clusterQueue": "lender"}, namespace=TEAM))
    history.edit("home", CLUSTER_QUEUE, "travels", {"spec": {"cohortName": cohort, "resourceGroups": quota("0")}})
    history.passes(3)
    for name in BORROWED:
        history.pod(name, cpu="1500m")
        history.until_runs(name)
    for name in OWN:
        history.pod(name, "lender", cpu="1500m")
    history.passes(LONG)
    assert not running(history, OWN)
    return history


def running(history: History, names: tuple[str, ...]) -> list[str]:
    """Return which of these run, or may run."""
    return [name for name in names if history.runs(name)]


def active(history: History, name: str = "travels") -> tuple[str, str] | None:
    """Return status and reason of the condition Active of a ClusterQueue, None once it is gone."""
    found = history.home.look(CLUSTER_QUEUE, name)
    conditions = (found or {}).get("status", {}).get("conditions", [])
    return next(((one["status"], one["reason"]) for one in conditions if one["type"] == "Active"), None)


def take_finalizer_off(history: History, name: str = "travels") -> None:
    """Let a person take the finalizers off a ClusterQueue."""
    history.edit("home", CLUSTER_QUEUE, name, {"metadata": {"finalizers": None}})
