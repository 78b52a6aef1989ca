"""HD-267: a pod that vanishes without its end stays charged for its grace, so a queue takes none above a day."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift_kinds.job import rules as job_rules
from gatelift_kinds.pod import rules as pod_rules
from gatelift_kinds.shared.markers import QUEUE_NAME
from gatelift_kinds.shared.patches import encode
from gatelift_kinds.shared.review import WebhookFacts
from support.manager.kind_objects import Json, a_job, a_pod

FACTS = WebhookFacts(namespace_selected=True)


def wrong(kind: str, grace: Any, *, queue: str = "q") -> list[str]:
    document: Json = a_pod() if kind == "Pod" else a_job(suspend=True)
    document["metadata"]["labels"] = {QUEUE_NAME: queue} if queue else {}
    pods = document["spec"] if kind == "Pod" else document["spec"]["template"]["spec"]
    pods["terminationGracePeriodSeconds"] = grace
    if kind == "Pod" and queue:
        document["metadata"]["labels"]["kueue.x-k8s.io/managed"] = "true"
    verdict = (pod_rules if kind == "Pod" else job_rules).validate_create(document, FACTS)
    assert encode(document)
    return [one.path for one in verdict.errors if "Grace" in one.path]


@pytest.mark.parametrize(
    ("kind", "path"),
    [("Pod", "spec.terminationGracePeriodSeconds"), ("Job", "spec.template.spec.terminationGracePeriodSeconds")],
)
def test_hd_267_a_queued_object_whose_pods_take_longer_than_a_day_to_stop_is_refused(kind: str, path: str) -> None:
    assert wrong(kind, 86_401) == wrong(kind, 2**63 - 1) == [path]
    assert wrong(kind, 86_400) == wrong(kind, 0) == wrong(kind, None) == []
    assert wrong(kind, 2**63 - 1, queue="") == [], "without a queue it is its user's"
