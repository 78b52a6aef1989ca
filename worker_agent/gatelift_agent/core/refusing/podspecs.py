"""Where pod specs are inside the specs of each kind, and the JSON they are made of. Used by `sanitise` and `policy`."""

from __future__ import annotations

from typing import Any

import msgspec

from gatelift_agent.core.values import shapes
from gatelift_kube.values.unreadable import UNREADABLE

Json = dict[str, Any]

_PATHS: dict[str, tuple[str, ...]] = {"Pod": (), "Job": ("template", "spec")}
_CONTAINER_LISTS = ("initContainers", "containers", "ephemeralContainers")


class SpecError(Exception):
    """A template is not what its kind's spec looks like; the text names the field."""


def parse(content: bytes) -> Json:
    """Return the spec as a dict; SpecError when it is not a JSON object."""
    try:
        document = msgspec.json.decode(content)
    except UNREADABLE as error:
        raise SpecError(f"spec: not JSON ({error}); send the object's spec as the API server holds it") from error
    if not isinstance(document, dict):
        raise SpecError("spec: must be a JSON object; send the object's spec as the API server holds it")
    return document


def read(kind: str, content: bytes) -> Json:
    """Return the spec of an object of that kind; SpecError, naming the field, where its shape is another one."""
    spec = parse(content)
    try:
        shapes.check(kind, spec)
    except shapes.ShapeError as error:
        raise SpecError(str(error)) from error
    return spec


def pod_spec(kind: str, spec: Json) -> tuple[str, Json]:
    """Return the path of the pod spec for texts (`spec.template.spec`) and the pod spec itself; SpecError if absent."""
    path, found = "spec", spec
    for step in _PATHS.get(kind, ()):
        inner = found.get(step)
        path = f"{path}.{step}"
        if not isinstance(inner, dict):
            raise SpecError(f"{path}: must be a JSON object; a {kind} has its pod spec there")
        found = inner
    return path, found


def template_annotations(kind: str, spec: Json) -> Json:
    """Return the annotations of the pods that a spec has a template of, none where it is the pod's own."""
    found = spec
    for step in _PATHS.get(kind, ())[:-1]:
        found = inner(found, step)
    return inner(inner(found, "metadata"), "annotations") if _PATHS.get(kind) else {}


def containers(path: str, spec: Json) -> list[tuple[str, Json]]:
    """Return all containers of a pod spec, each with its path for texts."""
    found = []
    for name in _CONTAINER_LISTS:
        found += [(f"{path}.{name}[{each.get('name', '')}]", each) for each in objects(spec, name)]
    return found


def objects(parent: Json, name: str) -> list[Json]:
    """Return the JSON objects in the list `name`, an empty list where there is none."""
    items = parent.get(name)
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def inner(parent: Json, name: str) -> Json:
    """Return the JSON object `name`, an empty one where there is none."""
    found = parent.get(name)
    return found if isinstance(found, dict) else {}
