"""Puts manifests into a cluster: create, or merge-patch what is there; CRDs are waited for, and so is access."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml
from tenacity import AsyncRetrying, retry_if_exception, retry_if_exception_type, stop_after_delay, wait_fixed

from gatelift_kube.api.client import Client
from gatelift_kube.deciding.errors import AlreadyExistsError, KubeError, NotFoundError
from gatelift_kube.process.waiting import may_heal, until
from gatelift_kube.values.resources import CUSTOM_RESOURCE_DEFINITION, ObjectKey, ObjectRef, Resource
from gatelift_sandbox import access
from gatelift_sandbox.errors import SandboxError

ESTABLISHED_SECONDS = 120.0
"""A CRD is served about a second after its creation, later on a machine that is wanted by many."""

NEW_KIND_SECONDS = 60.0
"""Discovery of a new kind, and a new namespace's permissions, may lag behind their creation; so may the answers of a
server that is just starting."""

POLL_SECONDS = 0.1

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""What `kubectl apply` compares with: without it, it warns about each object that somebody applies again."""

CLUSTER_SCOPED = frozenset(
    {
        "AdmissionCheck",
        "ClusterQueue",
        "ClusterRole",
        "ClusterRoleBinding",
        "Cohort",
        "CustomResourceDefinition",
        "MultiKueueCluster",
        "MultiKueueConfig",
        "MutatingWebhookConfiguration",
        "Namespace",
        "Node",
        "PriorityClass",
        "ResourceFlavor",
        "RuntimeClass",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "ValidatingWebhookConfiguration",
        "WorkerCluster",
        "WorkloadPriorityClass",
    }
)
_IRREGULAR = {"ValidatingAdmissionPolicy": "validatingadmissionpolicies", "PriorityClass": "priorityclasses"}

Json = Mapping[str, Any]


def documents(text: str) -> list[dict[str, Any]]:
    """Return the objects of a YAML text."""
    return [each for each in yaml.safe_load_all(text) if each]


def folder(path: Path) -> list[dict[str, Any]]:
    """Return the objects of all YAML files of a folder, in order of their names."""
    return [each for file in sorted(path.glob("*.yaml")) for each in documents(file.read_text()) if "kind" in each]


def reference(document: Json, namespace: str = "default") -> ObjectRef:
    """Return where a document's object lives."""
    group, _, version = document["apiVersion"].rpartition("/")
    kind = document["kind"]
    plural = _IRREGULAR.get(kind) or (kind.lower() + ("es" if kind.endswith("s") else "s"))
    resource = Resource(group, version, kind, plural, namespaced=kind not in CLUSTER_SCOPED)
    where = document["metadata"].get("namespace", namespace) if resource.namespaced else ""
    return ObjectRef(resource, ObjectKey(where, document["metadata"]["name"]))


async def apply(client: Client, objects: Iterable[Json], namespace: str = "default") -> None:
    """Create each object, in order, or patch it to what the document says. Raises KubeError or SandboxError.

    Returns when new kinds are served and what bindings give is given.
    """
    new_kinds, bindings = [], []
    for document in objects:
        ref = reference(document, namespace)
        await _apply_one(client, ref, document)
        if ref.resource == CUSTOM_RESOURCE_DEFINITION:
            new_kinds.append(ref)
        if ref.resource.kind in access.BINDINGS:
            bindings.append((ref, document))
    for ref in new_kinds:
        await _established(client, ref)
    for ref, document in bindings:
        await access.granted(client, document, ref.key.namespace)


async def _apply_one(client: Client, ref: ObjectRef, document: Json) -> None:
    body = json.dumps(_as_applied(document)).encode()
    applying = AsyncRetrying(
        retry=retry_if_exception_type(NotFoundError) | retry_if_exception(may_heal),  # to do it twice is to do it once
        wait=wait_fixed(POLL_SECONDS),
        stop=stop_after_delay(NEW_KIND_SECONDS),
        reraise=True,
    )
    try:
        await applying(_create_or_patch, client, ref, body)
    except NotFoundError as error:
        raise SandboxError(f"{ref}: its kind or namespace is not there after {NEW_KIND_SECONDS:g} s") from error
    except KubeError as error:
        raise SandboxError(f"{ref}: {error}") from error


def _as_applied(document: Json) -> Json:
    """Return an object of Kueue, which a person may change and apply again, as `kubectl apply` would send it."""
    if not document["apiVersion"].startswith("kueue.x-k8s.io/"):
        return document
    metadata = document["metadata"]
    annotations = {**(metadata.get("annotations") or {}), LAST_APPLIED: json.dumps(document) + "\n"}
    return {**document, "metadata": {**metadata, "annotations": annotations}}


async def _create_or_patch(client: Client, ref: ObjectRef, body: bytes) -> None:
    try:
        await client.create(ref.resource, ref.key.namespace, body)
    except AlreadyExistsError:
        await client.patch(ref, body)


async def _established(client: Client, ref: ObjectRef) -> None:
    async def served() -> bool:
        conditions = json.loads((await client.get(ref)).raw).get("status", {}).get("conditions") or []
        return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)

    if not await until(served, POLL_SECONDS, stop_after_delay(ESTABLISHED_SECONDS)):
        raise SandboxError(f"{ref}: is not served after {ESTABLISHED_SECONDS:g} s")
