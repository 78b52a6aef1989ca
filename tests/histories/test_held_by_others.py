"""HD-576: an object that its user deleted stays for a finalizer of his own, long after nothing of it runs any more."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift_kube.values.resources import JOB, POD, Resource
from support.sim.history import History

HIS = "example.com/stays"


def the_one(history: History, resource: Resource) -> dict[str, Any]:
    (found,) = (each for each in history.objects("home", resource) if each["metadata"]["name"] == "one")
    return found


@pytest.mark.parametrize(("kind", "queue"), [("Pod", "travels"), ("Pod", "stays"), ("Job", "travels")])
def test_hd_576_its_workload_goes_once_nothing_of_it_runs_and_none_is_made_anew(kind: str, queue: str) -> None:
    """Its record said that it was placed: its cluster could not be removed, and the next leader charged it again.

    A Job at home is none of these: its controller ends no pods of one that is deleted, so they run, and are charged.
    """
    history, resource = History(), POD if kind == "Pod" else JOB
    (history.pod if kind == "Pod" else history.job)("one", queue)
    history.until_runs("one", kind)
    found = the_one(history, resource)
    kept = [*found["metadata"].get("finalizers", []), HIS]
    history.edit("home", resource, "one", {"metadata": {"finalizers": kept}})
    history.delete("home", resource, "one")
    history.until("its Workload goes", lambda: history.workload("one", kind) is None)
    history.passes(30.0)
    assert history.workload("one", kind) is None
    assert the_one(history, resource)["metadata"]["finalizers"] == [HIS]
