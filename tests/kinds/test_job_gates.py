"""HD-265, IS-40: gates in the template of a Job: ours nobody would take off its pods, and a user's nobody elsewhere."""

from __future__ import annotations

import pytest

from gatelift_kinds.job.rules import validate_create, validate_update
from gatelift_kinds.registry import JOB_KIND as KIND
from gatelift_kinds.registry import POD_KIND
from gatelift_kinds.shared.markers import ADMISSION_GATE, MANAGED, MULTIKUEUE_MANAGER, QUEUE_NAME, TOPOLOGY_GATE
from gatelift_kinds.shared.review import WebhookFacts
from gatelift_kube.values.resources import JOB
from support.manager import builders
from support.manager.kind_objects import Json, a_job, job
from support.sim.cluster import TEAM
from support.sim.history import History

FACTS = WebhookFacts(namespace_selected=True)


def gated(*gates: str, queue: str = "q") -> Json:
    document = a_job(suspend=True)
    document["metadata"]["labels"] = {QUEUE_NAME: queue} if queue else {}
    document["spec"]["template"]["spec"]["schedulingGates"] = [{"name": gate} for gate in gates]
    return document


def wrong(old: Json | None, new: Json) -> list[str]:
    verdict = validate_create(new, FACTS) if old is None else validate_update(old, new, FACTS)
    return [f"{one.path}: {one.text}" for one in verdict.errors if "Gates" in one.path]


def test_hd_265_a_job_with_the_gate_of_queued_pods_is_refused_with_the_way_out() -> None:
    (refused,) = wrong(None, gated("example.com/own", ADMISSION_GATE))
    assert refused.startswith("spec.template.spec.schedulingGates[1]: ")
    assert refused.endswith("Leave it out of the template")
    assert wrong(None, gated("example.com/own")) == [], "a user's own gates are his to take off"
    assert wrong(None, gated(ADMISSION_GATE, queue="")) == [], "without a queue it is its user's"
    assert wrong(gated(ADMISSION_GATE, queue=""), gated(ADMISSION_GATE)) == [refused.replace("[1]", "[0]")]
    assert wrong(gated(ADMISSION_GATE), gated(ADMISSION_GATE)) == [], "what is there can be changed, and deleted"


def test_hd_265_around_the_webhook_it_may_run_nowhere() -> None:
    assert KIND.nowhere(job(gated(ADMISSION_GATE))).startswith("spec.template.spec.schedulingGates: ")
    assert KIND.nowhere(job(gated("example.com/own"))) == ""


@pytest.mark.parametrize("queue", ["travels", "stays"])
def test_hd_265_around_the_webhook_it_waits_uncharged_and_says_why(queue: str) -> None:
    """HD-265: it was admitted, and charged for ever: its pods waited at a gate that nobody may take off."""
    history = History(shown=False)
    document = builders.a_job("one", parallelism=1, cpu="500m")
    document["metadata"]["namespace"] = TEAM
    document["metadata"]["labels"][QUEUE_NAME] = queue
    document["spec"]["template"]["spec"]["schedulingGates"] = [{"name": ADMISSION_GATE}]
    if queue == "stays":
        document["spec"].pop("managedBy", None)
    del document["status"]
    history.home.create(JOB, document)
    history.passes(30.0)
    assert history.leader.charges(queue) == 0
    (said,) = (
        each
        for each in (history.workload("one", "Job") or {})["status"]["conditions"]
        if each["type"] == "QuotaReserved"
    )
    assert (said["status"], said["reason"]) == ("False", "Misconfigured")
    assert "Leave it out of the template" in said["message"]


# --- a user's own gates ----------------------------------------------------------------------------------------------


def warned(old: Json | None, new: Json, facts: WebhookFacts = FACTS) -> list[str]:
    verdict = validate_create(new, facts) if old is None else validate_update(old, new, facts)
    assert [one for one in verdict.errors if "Gates" in one.path] == [], "a wish is taken"
    return [one for one in verdict.warnings if "Gates" in one]


def elsewhere(*gates: str, queue: str = "q") -> Json:
    document = gated(*gates, queue=queue)
    document["spec"]["managedBy"] = MULTIKUEUE_MANAGER
    return document


def test_is_40_a_gate_of_the_users_own_is_warned_of_where_another_cluster_runs_the_job() -> None:
    (said,) = warned(None, elsewhere("example.com/own"))
    assert said.startswith("spec.template.spec.schedulingGates[0].name: is a gate that nobody here takes off")
    assert warned(None, gated("example.com/own")) == [], "at home its pods are here, and so is who takes it off"
    assert warned(None, elsewhere("example.com/own", queue="")) == [], "it is not queued"
    assert warned(None, elsewhere("example.com/own"), WebhookFacts(namespace_selected=False)) == []
    assert warned(None, elsewhere("example.com/own"), WebhookFacts(by_agent=True)) == []


def test_is_40_a_gate_that_was_there_is_not_warned_of_again() -> None:
    before = elsewhere("example.com/own")
    assert warned(before, elsewhere("example.com/own")) == []
    (said,) = warned(before, elsewhere("example.com/own", "example.com/other"))
    assert "[1]" in said
    assert len(warned(elsewhere("example.com/own", queue=""), before)) == 1, "it was queued with it"


def test_is_40_a_gate_that_nothing_takes_off_anywhere_is_warned_of_once() -> None:
    (said,) = warned(None, elsewhere(TOPOLOGY_GATE))
    assert "nothing here takes off" in said


def test_is_40_a_gate_of_a_pods_own_is_not_warned_of_since_its_end_travels() -> None:
    """What its user takes off the pod at home is taken off where it runs: HD-257."""
    pod = {"metadata": {"labels": {QUEUE_NAME: "q", MANAGED: "true"}}, "spec": {"schedulingGates": [{"name": "a/b"}]}}
    assert POD_KIND.validate_create(pod, FACTS).warnings == ()
