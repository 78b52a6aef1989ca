"""Where pod specs are inside the specs of each kind, and the JSON they are made of. Used by `sanitise` and `policy`."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from gatelift_agent.core.values import shapes
from gatelift_kinds.kind import Kind
from gatelift_kinds.shared import markers
from gatelift_kinds.shared.json_parts import Json, inner, objects
from gatelift_kinds.shared.server_additions import CONTAINER_LISTS
from gatelift_kinds.shared.values import PodSpecAt
from gatelift_kube.values.unreadable import UNREADABLE


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


def read(kind: Kind[Any], content: bytes) -> Json:
    """Return the spec of an object of that kind; SpecError, naming the field, where its shape is another one."""
    spec = parse(content)
    try:
        shapes.check(kind, spec)
    except shapes.ShapeError as error:
        raise SpecError(str(error)) from error
    return spec


class FoundSpec(NamedTuple):
    """The spec of the pods of one pod set: `path` for texts (`spec.template.spec`), and what is said of those pods."""

    pod_set: str
    path: str
    spec: Json
    annotations: Json
    """Of the pod template; none where the object is the pod."""


def pod_specs(kind: Kind[Any], spec: Json) -> list[FoundSpec]:
    """Return every pod spec of an object of that kind; SpecError where one is absent, or nothing is known of them."""
    if not kind.pod_specs:
        raise SpecError(f"spec: where a {kind.name} has its pod specs is not known here; use an agent that serves it")
    return [_pod_spec(kind, at, spec) for at in kind.pod_specs]


def _pod_spec(kind: Kind[Any], at: PodSpecAt, spec: Json) -> FoundSpec:
    path, found, template = "spec", spec, {}
    for step in (*at.template, "spec") if at.template else ():
        inside = found.get(step)
        path = f"{path}.{step}"
        if not isinstance(inside, dict):
            raise SpecError(f"{path}: must be a JSON object; a {kind.name} has its pod spec there")
        template, found = found, inside
    return FoundSpec(at.pod_set, path, found, inner(inner(template, "metadata"), "annotations") if at.template else {})


def containers(path: str, spec: Json) -> list[tuple[str, Json]]:
    """Return all containers of a pod spec, each with its path for texts."""
    found = []
    for name in CONTAINER_LISTS:
        found += [(f"{path}.{name}[{each.get('name', '')}]", each) for each in objects(spec, name)]
    return found


def user_gates(content: bytes) -> tuple[str, ...]:
    """Return the scheduling gates of a pod's spec that are not ours, none where it cannot be read."""
    if b"schedulingGates" not in content:
        return ()
    try:
        names = [each.get("name") for each in objects(parse(content), "schedulingGates")]
    except SpecError:
        return ()
    return tuple(name for name in names if isinstance(name, str) and name not in markers.GATES_OF_ADMISSION)


def grace_seconds(content: bytes) -> float | None:
    """Return how long a pod of this spec says that it has for its end; None where it does not say."""
    try:
        said = parse(content).get("terminationGracePeriodSeconds")
    except SpecError:
        return None
    return float(said) if isinstance(said, int) and not isinstance(said, bool) else None
