"""HD-140: what was given to a worker holds its place, whatever settings say of that worker by the time it is named."""

from __future__ import annotations

import msgspec
import pytest

from gatelift.core.state.recovery_values import ANNOTATION_RECOVER, Finding, RecoverWord, Told, told
from gatelift_kube.objects.gatelift import WorkerCluster
from gatelift_kube.values.resources import POD, WORKER_CLUSTER, WORKLOAD
from gatelift_wire.values.keys import ANNOTATION_GIVEN
from support.sim.cluster import TEAM
from support.sim.history import History
from support.sim.restoring import backup, restore

OTHERS = {"spec": {"allowedNamespaces": ["others"]}}
OPEN = {"spec": {"allowedNamespaces": [TEAM]}}


def found(history: History) -> Finding | None:
    """Return what was found of a restore, None when nothing is or all was gone on from."""
    document = history.home.look(WORKER_CLUSTER, "local")
    assert document is not None
    return (told(msgspec.convert(document, WorkerCluster, strict=False)) or Told()).finding


def restored(*, limited_then: bool, made_since: bool) -> History:
    """Return a history that was restored to before pod one was placed on a, and was gone on from with a closed for it.

    `limited_then`: to when its namespace might not go there yet; `made_since`: to when there was no pod.
    """
    history = History(shown=False)
    history.edit("home", WORKER_CLUSTER, "b", {"spec": {"cordoned": True}})
    history.edit("home", WORKER_CLUSTER, "a", OTHERS if limited_then else {"spec": {"cordoned": True}})
    if not made_since:
        history.pod("one")
    history.passes(20.0)
    kept = backup(history)
    history.edit("home", WORKER_CLUSTER, "a", {"spec": {**OPEN["spec"], "cordoned": False}})
    if made_since:
        history.pod("one")
    assert history.until_runs("one") == "a"
    history.passes(90.0)
    restore(history, kept)
    history.until("the restore is found", lambda: found(history) is not None)
    history.edit("home", WORKER_CLUSTER, "a", {"spec": {**OTHERS["spec"], "cordoned": False}})
    history.edit("home", WORKER_CLUSTER, "b", {"spec": {"cordoned": False}})
    finding = found(history)
    assert finding is not None
    word = msgspec.json.encode(RecoverWord(since=finding.since, epochs=1000, who="a person")).decode()
    history.edit("home", WORKER_CLUSTER, "local", {"metadata": {"annotations": {ANNOTATION_RECOVER: word}}})
    history.until("it goes on", lambda: found(history) is None and history.leads())
    if made_since:
        history.pod("one")
        history.passes(20.0)
    return history


CASES = {
    "a-person-narrowed-it": (False, False, False, True),
    "the-restore-narrowed-it": (True, False, False, True),
    "its-pod-is-made-anew": (True, False, True, False),
    "made-anew-and-another-leads": (False, True, True, False),
    "another-leads": (False, True, False, False),
    "another-leads-and-its-workload-is-deleted": (True, True, False, True),
}


@pytest.mark.parametrize(("limited_then", "leader_dies", "made_since", "deleted"), CASES.values(), ids=CASES)
def test_hd_140_what_was_given_to_a_worker_holds_its_place_when_its_namespace_may_not_go_there_any_more(
    *, limited_then: bool, leader_dies: bool, made_since: bool, deleted: bool
) -> None:
    history = restored(limited_then=limited_then, made_since=made_since)
    workload = history.workload("one")
    if leader_dies:
        history.cut("a")
        history.kill_leader()
        history.until("another leads", history.leads)
    if workload and deleted:
        history.home.delete(WORKLOAD, workload["metadata"]["name"])
    history.passes(120.0)
    assert len(history.runs("one")) <= 1
    if leader_dies:
        assert history.runs("one") == {"a"}
        assert history.shows("one", "QuotaReserved") is False


def test_hd_140_a_mark_that_somebody_made_into_something_else_reaches_as_far_as_a_workers_word() -> None:
    history = History(shown=False)
    history.pod("one")
    cluster = history.until_runs("one")
    history.edit(cluster, POD, "one", {"metadata": {"annotations": {ANNOTATION_GIVEN: "x" * 10_000}}})
    history.kill_leader()
    history.kill_agent(cluster)
    history.passes(60.0)
    assert history.runs("one") == {cluster}
