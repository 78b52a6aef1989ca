"""Custom resources and the CustomResourceDefinitions that make them. Pure."""

# ruff: noqa: ARG002 (rules are offered more than each of them needs)
from __future__ import annotations

import re
from typing import Any

from gatelift_sandbox.embedded.documents import Document, at, items, meta, timestamp
from gatelift_sandbox.embedded.failures import BrokenRule, required, wrong
from gatelift_sandbox.embedded.rules.plain import Rules, WithStatus
from gatelift_sandbox.embedded.schema import Schema, default, prune, validate
from gatelift_sandbox.embedded.transitions import broken, transitions_of

CLEANUP_FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
"""Holds a deleted CustomResourceDefinition until its objects are gone."""


class CustomRules(Rules):
    """Objects of one version of a CustomResourceDefinition."""

    generation = True
    unconditional_update = False

    def __init__(self, schema: Schema | None, *, status: bool, selectable: tuple[str, ...]) -> None:
        self._schema = schema
        self._transitions = transitions_of(schema) if schema is not None else ()
        self._status = status
        self._selectable = selectable

    def default(self, new: Document) -> list[str]:
        """Prune what the schema does not name, fill in its defaults; return what was pruned."""
        if self._schema is None:
            return []
        dropped = prune(new, self._schema)
        default(new, self._schema)
        return dropped

    def prepare_create(self, new: Document, now: float) -> None:
        """Drop the status, where it is a subresource."""
        if self._status:
            new.pop("status", None)

    def prepare_update(self, new: Document, old: Document, subresource: str) -> None:
        """Through the status nothing else changes, metadata included; through the object no status."""
        if subresource == "status":
            status = new.get("status")
            version = meta(new).get("resourceVersion")
            new.clear()
            new.update(old)
            new["metadata"] = {**meta(old), "resourceVersion": version}
            new.pop("status", None)
            if status is not None:
                new["status"] = status
        elif self._status:
            new.pop("status", None)
            if "status" in old:
                new["status"] = old["status"]

    def validate_create(self, new: Document) -> list[BrokenRule]:
        """Validate against the schema."""
        return validate(new, self._schema) if self._schema is not None else []

    def validate_update(self, new: Document, old: Document, subresource: str) -> list[BrokenRule]:
        """Validate against the schema, but for what was wrong before and has not changed (ratcheting)."""
        if self._schema is None:
            return []
        found = validate(new, self._schema, known=old)  # what has not changed was held against it when it came
        changed = broken(self._transitions, old, new) if self._transitions else []
        if not found:
            return changed
        known = {str(error) for error in validate(old, self._schema)}
        return changed + [
            error
            for error in found
            if str(error) not in known or _value_at(new, error.field) != _value_at(old, error.field)
        ]

    def spec_changed(self, new: Document, old: Document) -> bool:
        """With a status subresource, all but metadata and status counts; without, all but metadata."""
        ignored = ("metadata", "status") if self._status else ("metadata",)
        return {k: v for k, v in new.items() if k not in ignored} != {k: v for k, v in old.items() if k not in ignored}

    def fields(self, document: Document) -> dict[str, str]:
        """Return what can be selected: what the version's `selectableFields` name."""
        return {path.removeprefix("."): _text(at(document, *path.strip(".").split("."))) for path in self._selectable}


def _value_at(document: Document, field: str) -> Any:
    """Return the value of a field as errors name it (`spec.parts[0].name`), None where it cannot be found."""
    found: Any = document
    for key, index in _STEP.findall(field):
        if index and isinstance(found, list) and int(index) < len(found):
            found = found[int(index)]
        elif key and isinstance(found, dict):
            found = found.get(key)
        else:
            return None
    return found


_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


class DefinitionRules(WithStatus):
    """apiextensions.k8s.io/v1 CustomResourceDefinition: established at once, since nobody else could object."""

    generation = True
    returns_deleted = False

    def default(self, new: Document) -> list[str]:
        """Fill in the names and the conversion."""
        spec = new.setdefault("spec", {})
        known = spec.setdefault("names", {})
        kind = known.get("kind") or ""
        known["listKind"] = known.get("listKind") or f"{kind}List"
        known["singular"] = known.get("singular") or kind.lower()
        spec["conversion"] = spec.get("conversion") or {"strategy": "None"}
        return []

    def prepare_create(self, new: Document, now: float) -> None:
        """Accept the names and establish it."""
        moment = timestamp(now)
        meta(new)["finalizers"] = [*(meta(new).get("finalizers") or []), CLEANUP_FINALIZER]
        new["status"] = {
            "conditions": [
                _condition("NamesAccepted", moment, "NoConflicts", "no conflicts found"),
                _condition("Established", moment, "InitialNamesAccepted", "the initial names have been accepted"),
            ],
            "acceptedNames": new["spec"]["names"],
            "storedVersions": [v["name"] for v in items(new, "spec", "versions") if v.get("storage")],
        }

    def validate_create(self, new: Document) -> list[BrokenRule]:
        """Check what the rest of this server relies on."""
        spec, found = new["spec"], []
        expected = f"{at(spec, 'names', 'plural')}.{spec.get('group')}"
        if meta(new).get("name") != expected:
            text = 'must be spec.names.plural+"."+spec.group'
            found.append(wrong("metadata.name", meta(new).get("name"), text))
        found += [required(f"spec.names.{f}") for f in ("plural", "kind") if not at(spec, "names", f)]
        if not spec.get("group"):
            found.append(required("spec.group"))
        if spec.get("scope") not in ("Namespaced", "Cluster"):
            found.append(required("spec.scope"))
        versions = items(spec, "versions")
        if sum(bool(version.get("storage")) for version in versions) != 1:
            detail = "must have exactly one version marked as storage version"
            found.append(wrong("spec.versions", [v.get("name") for v in versions], detail))
        found += [
            required(f"spec.versions[{index}].schema.openAPIV3Schema", "schemas are required")
            for index, version in enumerate(versions)
            if not isinstance(at(version, "schema", "openAPIV3Schema"), dict)
        ]
        return found

    def validate_update(self, new: Document, old: Document, subresource: str) -> list[BrokenRule]:
        """Group, scope and names stay."""
        return self.validate_create(new) + [
            wrong(f"spec.{field}", new["spec"].get(field), "field is immutable")
            for field in ("group", "scope")
            if new["spec"].get(field) != old["spec"].get(field)
        ]


def _condition(kind: str, moment: str, reason: str, message: str) -> Document:
    return {"type": kind, "status": "True", "lastTransitionTime": moment, "reason": reason, "message": message}
