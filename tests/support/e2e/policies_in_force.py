"""Waits until an API server applies its admission policies as they stand.

It takes note of policies and of bindings, made, changed or deleted, some time after the write, each kind in the order
of the writes. So a policy that is made last, and refuses one thing that nobody else asks for, tells: when it refuses,
all that was written before it is in force.
"""

from __future__ import annotations

import json
import secrets
import time
from asyncio import sleep
from contextlib import suppress
from typing import Any

from gatelift_kube.api.client import Client
from gatelift_kube.deciding.errors import KubeError
from gatelift_kube.deciding.retry import is_transient
from gatelift_kube.values.resources import CONFIG_MAP
from gatelift_sandbox import applying

IN_FORCE_SECONDS = 120.0
"""A second or two; a machine that is wanted by many takes many times as long."""
POLL_SECONDS = 0.1

Json = dict[str, Any]
_GROUP = "admissionregistration.k8s.io/v1"


async def policies_in_force(client: Client) -> None:
    """Return when all policies and bindings that were written before are applied as they were written."""
    name = f"canary-{secrets.token_hex(4)}"
    documents = _policy(name), _binding(name)
    try:
        await applying.apply(client, documents)
        await _until_refused(client, name)
    finally:
        for document in documents:
            with suppress(KubeError):  # one that stays refuses what nobody asks for
                await client.delete(applying.reference(document))


async def _until_refused(client: Client, name: str) -> None:
    probe = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}).encode()
    end, last = time.monotonic() + IN_FORCE_SECONDS, ""
    while time.monotonic() < end:
        try:
            await client.create(CONFIG_MAP, "default", probe, dry_run=True)
        except KubeError as error:
            last = str(error)
            if f"refused by {name}" in last:
                return
            if not is_transient(error):
                raise
        await sleep(POLL_SECONDS)
    raise AssertionError(f"admission policies are not in force after {IN_FORCE_SECONDS:g} s {last}")


def _policy(name: str) -> Json:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    return {
        "apiVersion": _GROUP,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [rule]},
            "matchConditions": [{"name": "canary", "expression": f"object.metadata.name == '{name}'"}],
            "validations": [{"expression": "false", "message": f"refused by {name}"}],
        },
    }


def _binding(name: str) -> Json:
    return {
        "apiVersion": _GROUP,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Deny"]},
    }
