"""What a Job at home says of its template before it was let go is anybody's to write who may edit the Job."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift_kube.values.resources import JOB, WORKLOAD
from support.manager.builders import a_job
from support.sim.cluster import TEAM
from support.sim.history import History
from support.sim.world import STOP_SECONDS

BEFORE = "gatelift.dev/template-before"
NOTHING = '{"metadata":{},"spec":{}}'
MUCH = '{"metadata":{"labels":{"a b":"?","team":"?"},"annotations":{"x y":"1"}},"spec":{"nodeSelector":{"?":"?"}}}'
ODD = '{"spec":{"tolerations":[{"key":"gpu","operator":"Sometimes","tolerationSeconds":-1}]}}'
FORGED = ["{}", NOTHING, MUCH, ODD, "[", None]
IDS = ["empty", "nothing", "much", "odd", "unreadable", "none"]


def job(history: History) -> dict[str, Any]:
    """Return the user's Job."""
    found = history.home.look(JOB, "one")
    assert found is not None
    return found


def labels(history: History) -> dict[str, str]:
    """Return the labels of the Job's template."""
    return dict(job(history)["spec"]["template"]["metadata"]["labels"])


def before(history: History) -> str:
    """Return what the Job says of its template, "" where it says nothing."""
    return str(job(history)["metadata"].get("annotations", {}).get(BEFORE, ""))


def write_before(history: History, said: str | None) -> None:
    """Let somebody write the annotation, around the webhook."""
    history.edit("home", JOB, "one", {"metadata": {"annotations": {BEFORE: said}}})


def set_active(history: History, *, active: bool) -> None:
    """Let a person deactivate the Job's Workload, or activate it again."""
    name = (history.workload("one", "Job") or {})["metadata"]["name"]
    history.edit("home", WORKLOAD, name, {"spec": {"active": active}})


@pytest.mark.parametrize("said", FORGED, ids=IDS)
def test_hd_195_a_job_gives_its_quota_back_whatever_its_template_is_said_to_have_been(said: str | None) -> None:
    history = History()
    history.job("one", "stays", cpu="2")
    history.until_runs("one", "Job")
    history.edit("home", JOB, "one", {"metadata": {"annotations": {BEFORE: said}}})
    set_active(history, active=False)
    history.until("its quota is free", lambda: not history.shows("one", "QuotaReserved", "Job"), 60.0)
    assert job(history)["spec"]["suspend"] is True
    assert before(history) == ""
    assert not [key for key in labels(history) if key.startswith("gatelift.dev/")]
    assert not job(history)["spec"]["template"]["spec"].get("tolerations")
    history.pod("next", "stays", cpu="2")
    history.until("another one runs in its place", lambda: history.containers("next") == 1)
    history.delete("home", JOB, "one")


@pytest.mark.parametrize("said", FORGED, ids=IDS)
def test_hd_196_a_job_that_runs_goes_on_and_says_again_what_its_template_was(said: str | None) -> None:
    history = History()
    history.job("one", "stays")
    history.until_runs("one", "Job")
    history.passes(5.0)
    right = before(history)
    write_before(history, said)
    history.until("it is put back", lambda: before(history) == right, 60.0)
    history.kill_leader()
    history.passes(120.0)
    still_runs(history)


def test_hd_196_a_job_that_says_nothing_of_its_template_goes_on_under_the_next_leader() -> None:
    history = History()
    history.job("one", "stays")
    history.until_runs("one", "Job")
    right = {key: value for key, value in labels(history).items() if "gatelift" not in key and "kueue" not in key}
    history.passes(5.0)
    history.kill_leader()
    write_before(history, None)
    history.until("it is noted again", lambda: before(history) != "", 180.0)
    history.passes(60.0)
    still_runs(history)
    set_active(history, active=False)
    history.until("its quota is free", lambda: not history.shows("one", "QuotaReserved", "Job"), 60.0)
    assert labels(history) == right


def still_runs(history: History) -> None:
    """Check that the first run goes on."""
    assert history.containers("one", "Job") == 1
    workload = history.workload("one", "Job") or {}
    assert workload["metadata"]["annotations"]["gatelift.dev/epoch"] == "1"
    assert not workload["status"].get("schedulingStats", {}).get("evictions")


def test_hd_214_what_its_user_adds_to_a_template_right_after_the_lift_is_what_it_starts_with_next() -> None:
    """The Job controller has set no start time yet, so the API server takes both; a restore must not take it off."""
    history = History()
    history.job("one", "stays")
    history.until("it is let go", lambda: before(history) != "" and not job(history)["spec"]["suspend"], 60.0)
    mine = {"metadata": {"labels": {"mine": "new"}}, "spec": {"nodeSelector": {"disk": "ssd"}}}
    history.edit("home", JOB, "one", {"spec": {"suspend": True}})
    history.edit("home", JOB, "one", {"spec": {"template": mine}})
    history.until("it starts again", lambda: epoch(history) == "2" and not job(history)["spec"]["suspend"], 120.0)
    assert labels(history)["mine"] == "new"
    assert job(history)["spec"]["template"]["spec"]["nodeSelector"] == {"disk": "ssd"}
    [pod_set] = (history.workload("one", "Job") or {})["spec"]["podSets"]
    assert pod_set["template"]["metadata"]["labels"]["mine"] == "new"
    assert pod_set["template"]["spec"]["nodeSelector"] == {"disk": "ssd"}
    assert not [key for key in pod_set["template"]["metadata"]["labels"] if key.startswith("gatelift.dev/")]


def epoch(history: History) -> str:
    """Return the attempt for which the Job was let go last."""
    return str(job(history)["metadata"]["labels"].get("gatelift.dev/epoch", ""))


def a_job_with_its_own(history: History, **annotations: str) -> None:
    """Make a Job at home whose template has a label and a toleration of its user's."""
    document = a_job("one", parallelism=1, cpu="500m")
    document["metadata"]["namespace"] = TEAM
    document["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "stays"
    del document["spec"]["managedBy"], document["status"]
    document["spec"]["template"]["metadata"].setdefault("labels", {})["app"] = "x"
    document["spec"]["template"]["spec"]["tolerations"] = [{"key": "gpu", "operator": "Exists"}]
    document["spec"]["template"]["metadata"]["annotations"] = annotations
    history.home.create(JOB, document)


@pytest.mark.parametrize("said", FORGED, ids=IDS)
def test_hd_211_what_a_user_had_is_left_to_him_by_an_agent_that_never_saw_the_note(said: str | None) -> None:
    """The symptom: the next agent took `{}` for what there was, and the stop took the user's own parts away."""
    history = History()
    a_job_with_its_own(history)
    history.until_runs("one", "Job")
    history.passes(5.0)
    history.kill_leader()
    write_before(history, said)
    history.passes(120.0)
    still_runs(history)
    set_active(history, active=False)
    history.until("its quota is free", lambda: not history.shows("one", "QuotaReserved", "Job"), 90.0)
    history.passes(10.0)
    template = job(history)["spec"]["template"]
    assert [one["key"] for one in template["spec"]["tolerations"]] == ["gpu"]
    assert labels(history)["app"] == "x"
    assert not [key for key in labels(history) if key.startswith("gatelift.dev/")]
    assert before(history) == ""


@pytest.mark.parametrize("kill", [False, True])
def test_hd_211_nor_is_it_taken_away_where_the_note_is_changed_while_it_stops(*, kill: bool) -> None:
    history = History()
    a_job_with_its_own(history, **{STOP_SECONDS: "30"})
    history.until_runs("one", "Job")
    history.passes(5.0)
    set_active(history, active=False)
    history.until("it is suspended", lambda: job(history)["spec"]["suspend"] is True, 60.0)
    write_before(history, "{}")
    if kill:
        history.kill_leader()
    history.until("its quota is free", lambda: not history.shows("one", "QuotaReserved", "Job"), 300.0)
    history.passes(10.0)
    template = job(history)["spec"]["template"]
    assert [one["key"] for one in template["spec"]["tolerations"]] == ["gpu"]
    assert labels(history)["app"] == "x"
