"""IS-40: what manifests for Kueue ask for is done, warned of or refused: never taken in silence and left undone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from gatelift.webhooks import configuration, queueing, review
from gatelift.webhooks.configuration import HOOKED
from gatelift_kinds.registry import SERVED
from gatelift_kinds.shared import markers, unserved
from gatelift_kinds.shared.review import Verdict, WebhookFacts
from gatelift_kube.decoding.decoding import read_object
from support.manager.webhook_requests import queued

from .conftest import Asking

CASES: list[dict[str, Any]] = yaml.safe_load((Path(__file__).parent / "sample_wishes.yaml").read_text())
FACTS = WebhookFacts(local_queues={"q": False})


def answered(kind: str, document: dict[str, Any]) -> Verdict:
    """Return what the rules say of a new object, as the judge asks them."""
    if kind in unserved.BY_KIND:
        return unserved.verdict(kind, {}, document)
    for name, resource in configuration.SHOWN.items():
        if resource.kind == kind:
            request = {"uid": "u", "operation": "CREATE", "kind": {"kind": kind}, "object": document}
            body = {"apiVersion": review.API_VERSION, "kind": "AdmissionReview", "request": request}
            return queueing.verdict(configuration.SHOWN[name], review.read(msgspec.json.encode(body)))
    if kind == "Pod":  # as the mutating webhook leaves it
        document["metadata"]["labels"][markers.MANAGED] = markers.MANAGED_VALUE
    resource = HOOKED[kind.lower()]
    found = SERVED.of(resource, read_object(resource, msgspec.json.encode(document)))
    assert found is not None
    return found.validate_create(document, FACTS)


@pytest.mark.parametrize("case", [pytest.param(one, id=one["asks"]) for one in CASES])
def test_is_40_a_manifest_that_asks_for(case: dict[str, Any]) -> None:
    verdict = answered(case["object"]["kind"], case["object"])
    said = [*map(str, verdict.errors), *verdict.warnings]
    assert {"taken": (True, 0), "warned": (True, 1), "refused": (False, 1)}[case["answer"]] == (
        verdict.allowed,
        len(said),
    ), said
    if said:
        assert said[0].startswith(case["says"])
        assert len(said[0]) <= review.WARNING_CHARS_MAX or not verdict.allowed, "longer ones are cut"


async def test_is_40_the_answer_reaches_whoever_writes(asking: Asking) -> None:
    job = queued("near", annotations={"kueue.x-k8s.io/elastic-job": "true"})
    job["spec"] = {"suspend": True, "template": {"spec": {"containers": []}}}
    response = await asking.review("/validate-job", "Job", job)
    assert response["allowed"]
    assert response["warnings"][0].startswith("metadata.annotations[kueue.x-k8s.io/elastic-job]: is not acted on")
    queue = {"metadata": {"name": "q"}, "spec": {"concurrentAdmissionPolicy": {}}}
    response = await asking.review("/validate-clusterqueue", "ClusterQueue", queue)
    assert response["allowed"]
    assert response["warnings"][0].startswith("spec.concurrentAdmissionPolicy: is not acted on")
    drained = {"metadata": {"name": "a"}, "spec": {"drain": True}}
    response = await asking.review("/validate-workercluster", "WorkerCluster", drained)
    assert response["warnings"][0].startswith("spec.drain: keeps new work away")
    assert "warnings" not in await asking.review("/validate-workercluster", "WorkerCluster", drained, drained)
