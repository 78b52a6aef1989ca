"""From a CustomResourceDefinition to the kinds that it serves: one a version, all over the same storage. Pure.

Versions that a webhook would have to convert are not served: nothing here asks one.
"""

from __future__ import annotations

from gatelift_kube.values.resources import Resource
from gatelift_sandbox.embedded.documents import Document, at, items
from gatelift_sandbox.embedded.kinds import ALL_VERBS, Column, ServedKind
from gatelift_sandbox.embedded.rules.custom import CustomRules
from gatelift_sandbox.embedded.schema import Schema

AGE = Column(name="Age", json_path=".metadata.creationTimestamp", type="date")


def kinds_of(definition: Document) -> list[ServedKind]:
    """Return the kinds of all served versions of a valid definition, the storage version first."""
    spec = definition["spec"]
    versions = [version for version in items(spec, "versions") if version.get("served")]
    stored = next(version["name"] for version in items(spec, "versions") if version.get("storage"))
    if at(spec, "conversion", "strategy") == "Webhook":
        versions = [version for version in versions if version["name"] == stored]
    versions.sort(key=lambda version: version["name"] != stored)
    return [_kind(spec, version, f"{spec['group']}/{stored}") for version in versions]


def storage_of(definition: Document) -> tuple[str, str]:
    """Return the storage key of a definition's objects."""
    return definition["spec"]["group"], definition["spec"]["names"]["plural"]


def _kind(spec: Document, version: Document, storage: str) -> ServedKind:
    names, source = spec["names"], at(version, "schema", "openAPIV3Schema") or {}
    resource = Resource(
        spec["group"], version["name"], names["kind"], names["plural"], namespaced=spec["scope"] == "Namespaced"
    )
    subresources = frozenset(version.get("subresources") or {}) & {"status", "scale"}
    preserve = bool(spec.get("preserveUnknownFields"))
    rules = CustomRules(
        None if preserve else Schema(source, root=True),
        status="status" in subresources,
        selectable=tuple(field["jsonPath"] for field in items(version, "selectableFields")),
    )
    deprecated = f"{spec['group']}/{version['name']} {names['kind']} is deprecated"
    return ServedKind(
        resource=resource,
        storage=(spec["group"], names["plural"]),
        storage_api_version=storage,
        singular=names["singular"],
        list_kind=names["listKind"],
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        subresources=subresources - {"scale"},
        columns=tuple(map(_column, items(version, "additionalPrinterColumns"))) or (AGE,),
        rules=rules,
        warning=(version.get("deprecationWarning") or deprecated) if version.get("deprecated") else "",
        strategic=False,
        verbs=ALL_VERBS,
        openapi=source,
    )


def _column(source: Document) -> Column:
    return Column(
        name=source["name"],
        json_path=source["jsonPath"],
        type=source.get("type", "string"),
        priority=source.get("priority", 0),
        description=source.get("description", ""),
    )
