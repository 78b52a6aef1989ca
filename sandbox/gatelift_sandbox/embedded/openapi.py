"""OpenAPI v3 as far as kubectl needs it: which kinds can be patched and checked, and the schemas of custom resources.

Built-in kinds have the outline of a schema only (metadata, spec, status): `kubectl explain` shows that much. Pure.
"""

from __future__ import annotations

import hashlib
from urllib.parse import unquote

from gatelift_sandbox.embedded.discovery import GIT_VERSION
from gatelift_sandbox.embedded.documents import Document
from gatelift_sandbox.embedded.failures import no_such_path
from gatelift_sandbox.embedded.kinds import KindTable, ServedKind
from gatelift_sandbox.embedded.patching import JSON_PATCH, MERGE_PATCH

_ANY: Document = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def index(kinds: KindTable) -> Document:
    """Return `/openapi/v3`: where the document of each group and version is."""
    paths = dict.fromkeys(_place(each) for each in kinds)
    digest = hashlib.sha256(f"{kinds.revision}".encode()).hexdigest().upper()
    return {"paths": {path: {"serverRelativeURL": f"/openapi/v3/{path}?hash={digest}"} for path in paths}}


def _place(kind: ServedKind) -> str:
    resource = kind.resource
    return f"apis/{resource.group}/{resource.version}" if resource.group else f"api/{resource.version}"


def document(kinds: KindTable, place: str) -> Document:
    """Return the document of one group and version (`api/v1`, `apis/batch/v1`); ApiError 404."""
    served = [each for each in kinds if _place(each) == place]
    if not served:
        raise no_such_path()
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": GIT_VERSION},
        "paths": {path: item for each in served for path, item in _paths(each)},
        "components": {"schemas": {_schema_name(each): _schema(each) for each in served}},
    }


def _gvk(kind: ServedKind) -> Document:
    resource = kind.resource
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def _schema_name(kind: ServedKind) -> str:
    parts = [
        *reversed((kind.resource.group or "core.api.k8s.io").split(".")),
        kind.resource.version,
        kind.resource.kind,
    ]
    return ".".join(parts)


def _schema(kind: ServedKind) -> Document:
    known = kind.openapi or {"type": "object", "description": f"{kind.resource.kind} of the embedded API server."}
    properties: Document = {
        "apiVersion": {"type": "string", "description": "Group and version of this object."},
        "kind": {"type": "string", "description": "Kind of this object."},
        "metadata": {"description": "Standard metadata.", **_ANY},
    }
    if kind.openapi is None:
        properties |= {name: {"description": f"{name} of the object.", **_ANY} for name in ("spec", "status")}
    rest = {name: each for name, each in (known.get("properties") or {}).items() if name not in properties}
    return {**known, "properties": properties | rest, "x-kubernetes-group-version-kind": [_gvk(kind)]}


def _paths(kind: ServedKind) -> list[tuple[str, Document]]:
    parameters = [
        {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}}
        for name in ("dryRun", "fieldManager", "fieldValidation", "force")
    ]
    action = {"x-kubernetes-group-version-kind": _gvk(kind), "responses": {"200": {"description": "OK"}}}
    reference = {"schema": {"$ref": f"#/components/schemas/{_schema_name(kind)}"}}
    collection = unquote(kind.resource.path("{namespace}"))
    item = unquote(kind.resource.path("{namespace}", "{name}"))
    patch = {"content": {media: {"schema": {"type": "object"}} for media in (JSON_PATCH, MERGE_PATCH)}}
    everywhere = [(kind.resource.path(), {"get": {**action, "x-kubernetes-action": "list"}})]
    return (everywhere if kind.resource.namespaced else []) + [
        (
            collection,
            {
                "get": {**action, "x-kubernetes-action": "list"},
                "post": {
                    **action,
                    "x-kubernetes-action": "post",
                    "parameters": parameters,
                    "requestBody": {"content": {"*/*": reference}},
                },
            },
        ),
        (
            item,
            {
                "get": {**action, "x-kubernetes-action": "get"},
                "patch": {
                    **action,
                    "x-kubernetes-action": "patch",
                    "parameters": parameters,
                    "requestBody": patch,
                },
                "put": {
                    **action,
                    "x-kubernetes-action": "put",
                    "parameters": parameters,
                    "requestBody": {"content": {"*/*": reference}},
                },
            },
        ),
    ]
