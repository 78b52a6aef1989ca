"""What an API server asks the webhooks about, and what they answer."""

from __future__ import annotations

import base64
import json
from typing import Any

Json = dict[str, Any]
K = "kueue.x-k8s.io/"


def queued(queue: str = "near", **metadata: Any) -> Json:
    return {"metadata": {"labels": {f"{K}queue-name": queue}, **metadata}, "spec": {"containers": []}}


def operations(response: Json) -> dict[str, Any]:
    """Return the values of a patch by path."""
    if "patch" not in response:
        return {}
    return {one["path"]: one["value"] for one in json.loads(base64.b64decode(response["patch"]))}


def owned(name: str, uid: str) -> list[Json]:
    return [{"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": uid, "controller": True}]
