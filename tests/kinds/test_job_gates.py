"""HD-265: the gate of queued pods in the template of a Job: nobody would take it off its pods."""

from __future__ import annotations

import pytest

from gatelift_kinds.job_rules import validate_create, validate_update
from gatelift_kinds.markers import ADMISSION_GATE, QUEUE_NAME
from gatelift_kinds.registry import JOB_KIND as KIND
from gatelift_kinds.review import WebhookFacts
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
