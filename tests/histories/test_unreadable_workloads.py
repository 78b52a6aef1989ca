"""HD-142: a Workload whose pod template cannot be read, written around the webhook, while it holds quota."""

from __future__ import annotations

import pytest

from gatelift_kube.values.resources import JOB, POD, WORKLOAD
from support.sim.cluster import Doc
from support.sim.history import History

KINDS = pytest.mark.parametrize("kind", ["Pod", "Job"])
WHERE = pytest.mark.parametrize("queue", ["travels", "stays"])


def _break(history: History, kind: str) -> None:
    """Let a person write what the schema takes, since it keeps templates as they are, and no decoder does."""
    found = history.workload("one", kind)
    assert found is not None
    (pod_set,) = found["spec"]["podSets"]
    broken: Doc = {**pod_set, "template": {"spec": {"containers": "none"}}}
    history.edit("home", WORKLOAD, found["metadata"]["name"], {"spec": {"podSets": [broken]}})


def _make(history: History, kind: str, name: str, queue: str) -> None:
    (history.pod if kind == "Pod" else history.job)(name, queue, "2")


@KINDS
@WHERE
def test_hd_142_what_holds_quota_stays_charged_under_the_next_leader(kind: str, queue: str) -> None:
    history = History(shown=False)
    _make(history, kind, "one", queue)
    where = history.until_runs("one", kind)
    _break(history, kind)
    history.kill_leader()
    history.until("another leads", history.leads)
    _make(history, "Pod", "two", queue)
    history.passes(120.0)
    assert history.runs("one", kind) == {where}
    assert history.shows("one", "QuotaReserved", kind)
    assert not history.runs("two")


@KINDS
def test_hd_142_what_waits_is_written_anew_by_what_its_object_asks_for(kind: str) -> None:
    history = History(shown=False)
    _make(history, kind, "first", "stays")
    history.until_runs("first", kind)
    _make(history, kind, "one", "stays")
    history.until("it waits", lambda: history.workload("one", kind) is not None)
    _break(history, kind)
    history.kill_leader()
    history.until("another leads", history.leads)
    history.passes(60.0)
    assert history.runs("first", kind) == {"local"}
    assert not history.runs("one", kind)
    history.delete("home", POD if kind == "Pod" else JOB, "first")
    history.until_runs("one", kind)
