"""What nobody here would run gets no quota here."""

from __future__ import annotations

from gatelift_kube.values.resources import JOB
from support.manager.builders import a_job
from support.sim.cluster import TEAM, Doc
from support.sim.history import History

K = "kueue.x-k8s.io/"


def said(history: History, kind: str) -> Doc:
    """Return the condition QuotaReserved."""
    workload = history.workload("one", kind) or {}
    found: Doc = {each["type"]: each for each in workload["status"]["conditions"]}["QuotaReserved"]
    return found


def test_hd_130_a_job_that_nobody_here_would_run_gets_no_quota_here_and_says_why() -> None:
    history = History(shown=False)
    document = a_job("one", parallelism=2, cpu="500m")
    document["metadata"]["namespace"] = TEAM
    document["metadata"]["labels"][f"{K}queue-name"] = "stays"
    del document["status"]
    history.home.create(JOB, document)
    history.passes(30.0)
    assert history.leader.charges("stays") == 0, "held for ever, and nothing runs"
    why = said(history, "Job")
    assert (why["status"], why["reason"]) == ("False", "Misconfigured")
    assert 'spec.managedBy: "kueue.x-k8s.io/multikueue" keeps every controller of this cluster away' in why["message"]
    assert (history.home.look(JOB, "one") or {})["spec"]["suspend"] is True
