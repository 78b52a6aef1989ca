"""Waits until what a role binding gives is given: an API server learns of roles and bindings a little after the write.

Whoever starts a daemon right after its access was applied may be refused by a server that other work keeps busy, and
daemons end of that.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from tenacity import RetryCallState
from tenacity.stop import StopBaseT

from gatelift_kube.api.client import Client
from gatelift_kube.deciding.errors import KubeError, NotFoundError
from gatelift_kube.deciding.retry import is_transient
from gatelift_kube.process.waiting import may_heal, until
from gatelift_kube.values.resources import ObjectKey, ObjectRef, Resource
from gatelift_sandbox.errors import SandboxError

GRANTED_SECONDS = 120.0
"""It takes milliseconds, and longer on a machine that is wanted by many."""
POLL_SECONDS = 0.05
BINDINGS = ("ClusterRoleBinding", "RoleBinding")

_RBAC = ("rbac.authorization.k8s.io", "v1")
_ROLES = {
    "ClusterRole": Resource(*_RBAC, "ClusterRole", "clusterroles", namespaced=False),
    "Role": Resource(*_RBAC, "Role", "roles"),
}
_REVIEW = Resource("authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews", namespaced=False)

Json = Mapping[str, Any]


async def granted(client: Client, binding: Json, namespace: str = "") -> None:
    """Return when the API server grants what a binding gives in a namespace, "" for the cluster. Raises SandboxError.

    A role is learnt of as a whole, so one right of each of its rules is asked for.
    """
    end = time.monotonic() + GRANTED_SECONDS

    def over(_state: RetryCallState) -> bool:
        return time.monotonic() > end

    for subject in binding.get("subjects", ()):
        for attributes in await _rights(client, binding["roleRef"], namespace, over):
            spec = {**_who(subject), "resourceAttributes": attributes}
            if not await until(partial(_allowed, client, spec), POLL_SECONDS, over):
                raise SandboxError(
                    f"{binding['kind']} {binding['metadata']['name']} gives nothing after {GRANTED_SECONDS:g} s: "
                    f"{subject['name']} may not {attributes['verb']} {attributes['resource']}"
                )


async def _rights(client: Client, role: Json, namespace: str, over: StopBaseT) -> list[Json]:
    """Return one right of each rule of a role that stands in the cluster; none of one that is not there."""
    resource = _ROLES[role["kind"]]
    ref = ObjectRef(resource, ObjectKey(namespace if resource.namespaced else "", role["name"]))
    try:
        served = await until(partial(client.get, ref), POLL_SECONDS, over, heals=may_heal)
    except NotFoundError:
        return []  # a binding may come before its role: it gives nothing yet
    except KubeError as error:
        raise SandboxError(f"{ref}: {error}") from error
    return list(_firsts(json.loads(served.raw).get("rules") or [], namespace))


def _firsts(rules: list[Json], namespace: str) -> Iterator[Json]:
    for rule in rules:
        if not rule.get("resources"):
            continue  # of URLs
        resource, _, subresource = rule["resources"][0].partition("/")
        attributes = {
            "namespace": namespace,
            "verb": rule["verbs"][0],
            "group": rule["apiGroups"][0],
            "resource": resource,
            "subresource": subresource,
            "name": next(iter(rule.get("resourceNames", ())), ""),
        }
        yield {name: value for name, value in attributes.items() if value}


def _who(subject: Json) -> Json:
    match subject["kind"]:
        case "ServiceAccount":
            return {"user": f"system:serviceaccount:{subject['namespace']}:{subject['name']}"}
        case "Group":
            return {"user": "somebody", "groups": [subject["name"]]}
        case _:
            return {"user": subject["name"]}


async def _allowed(client: Client, spec: Json) -> bool:
    body = {"apiVersion": _REVIEW.api_version, "kind": _REVIEW.kind, "spec": spec}
    try:
        answer = await client.raw("POST", _REVIEW.path(), body=json.dumps(body).encode())
    except KubeError as error:
        if not is_transient(error):
            raise SandboxError(f"{_REVIEW.kind}: {error}") from error
        return False
    return bool(json.loads(answer)["status"]["allowed"])
