"""Objects as the webhook gets them, what it knows of their queues, and what it said."""

from __future__ import annotations

import json
from typing import Any

from gatelift_kinds.shared.review import Verdict, WebhookFacts
from gatelift_sandbox.embedded.patching import json_patch

Json = dict[str, Any]
K = "kueue.x-k8s.io/"
Q = {f"{K}queue-name": "q"}
GATED: Json = {"schedulingGates": [{"name": f"{K}admission"}]}
FACTS = WebhookFacts(local_queues={"q": False})
ELSEWHERE = WebhookFacts(local_queues={"q": True})
DEFAULT = WebhookFacts(local_queues={"default": False})
CLASS = WebhookFacts(local_queues={"q": False}, default_priority_class=True)


def a_pod(labels: Json | None = None, notes: Json | None = None, **spec: Any) -> Json:
    meta: Json = {"name": "p"}
    if labels is not None:
        meta["labels"] = labels
    if notes is not None:
        meta["annotations"] = notes
    return {"metadata": meta, "spec": {"containers": [{"name": "c"}], **spec}}


def a_job(labels: Json | None = None, notes: Json | None = None, **spec: Any) -> Json:
    document = a_pod(labels, notes)
    document["spec"] = {"template": {}, **spec}
    return document


def defaulted(kind: Any, document: Json, facts: WebhookFacts) -> Json:
    result: Json = json_patch(json.loads(json.dumps(document)), list(kind.defaults(document, facts)))
    return result


def told(verdict: Verdict) -> list[str]:
    return [str(error) for error in verdict.errors]
