"""HD-221: Jobs whose pods a user tells from others by his own labels: they would run beside the charge of one."""

from __future__ import annotations

import pytest

from gatelift_kube.values.resources import JOB
from support.manager.builders import a_job
from support.sim.cluster import TEAM, Doc
from support.sim.history import History

K = "kueue.x-k8s.io/"
OWN = {"manualSelector": True, "selector": {"matchLabels": {"foo": "x"}}}


def said(history: History) -> Doc:
    """Return the condition QuotaReserved."""
    workload = history.workload("one", "Job") or {}
    found: Doc = {each["type"]: each for each in workload["status"]["conditions"]}["QuotaReserved"]
    return found


@pytest.mark.parametrize("queue", ["travels", "stays"])
def test_hd_221_around_the_webhook_it_runs_nowhere_and_says_why(queue: str) -> None:
    history = History(shown=False)
    document = a_job("one", parallelism=1, cpu="500m")
    document["metadata"]["namespace"] = TEAM
    document["metadata"]["labels"][f"{K}queue-name"] = queue
    document["spec"] |= OWN
    document["spec"]["template"].setdefault("metadata", {}).setdefault("labels", {})["foo"] = "x"
    if queue == "stays":
        document["spec"].pop("managedBy", None)
    del document["status"]
    history.home.create(JOB, document)
    history.passes(30.0)
    assert history.runs("one", "Job") == set()
    assert history.leader.charges(queue) == 0
    why = said(history)
    assert (why["status"], why["reason"]) == ("False", "Misconfigured")
    assert "make the Job anew without spec.selector and spec.manualSelector" in why["message"]
    assert (history.home.look(JOB, "one") or {})["spec"]["suspend"] is True


@pytest.mark.parametrize("queue", ["travels", "stays"])
def test_hd_221_one_that_runs_already_is_stopped_and_waits(queue: str) -> None:
    """As an earlier version placed it, or as it was changed around everything."""
    history = History(shown=False)
    history.job("one", queue, pods=1)
    history.until_runs("one", "Job")
    history.edit("home", JOB, "one", {"spec": {"manualSelector": True}})
    history.until("it is stopped", lambda: not history.runs("one", "Job"), 120.0)
    history.passes(30.0)
    assert history.runs("one", "Job") == set()
    assert (said(history)["status"], said(history)["reason"]) == ("False", "Misconfigured")
    assert history.leader.charges(queue) == 0
