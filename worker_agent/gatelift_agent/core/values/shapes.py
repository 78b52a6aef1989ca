"""The shape of what a manager sends in a template: checked once, before anything reads it.

Types of exactly those fields that `policy`, `sanitise` and the kinds read or add to; the rest of a spec is the API
server's to judge. A null counts as absent, as it does for the API server. Neighbour: `podspecs`, which calls this.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import msgspec

from gatelift_kinds.kind import Kind
from gatelift_kube.objects.core import Toleration
from gatelift_kube.values.unreadable import UNREADABLE

_WAY_OUT = "send it as the API server holds it"


class ShapeError(Exception):
    """A value has another JSON type than its field; the text is one line: field, rule, way out."""


class _Shape(msgspec.Struct, frozen=True, rename="camel"):
    pass


class _WindowsOptions(_Shape, frozen=True):
    host_process: bool | None = None


class _Capabilities(_Shape, frozen=True):
    add: tuple[str, ...] | None = None


class _SecurityContext(_Shape, frozen=True):
    privileged: bool | None = None
    proc_mount: str | None = None
    capabilities: _Capabilities | None = None
    windows_options: _WindowsOptions | None = None


class _Port(_Shape, frozen=True):
    host_port: int | None = None


class _Named(_Shape, frozen=True):
    name: str | None = None


class _Container(_Named, frozen=True):
    security_context: _SecurityContext | None = None
    ports: tuple[_Port, ...] | None = None
    volume_mounts: tuple[_Named, ...] | None = None


class _Projected(_Shape, frozen=True):
    sources: tuple[dict[str, Any], ...] | None = None


class _Volume(_Named, frozen=True):
    projected: _Projected | None = None


class _Toleration(_Shape, frozen=True):
    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None
    toleration_seconds: int | None = None


class _Gate(_Shape, frozen=True):
    name: str


class _PodSpec(_Shape, frozen=True):
    containers: tuple[_Container, ...] | None = None
    init_containers: tuple[_Container, ...] | None = None
    ephemeral_containers: tuple[_Container, ...] | None = None
    volumes: tuple[_Volume, ...] | None = None
    tolerations: tuple[_Toleration, ...] | None = None
    scheduling_gates: tuple[_Gate, ...] | None = None
    node_selector: dict[str, str] | None = None
    security_context: _SecurityContext | None = None
    service_account_name: str | None = None
    service_account: str | None = None
    priority_class_name: str | None = None
    runtime_class_name: str | None = None
    host_network: bool | None = None
    host_pid: bool | None = msgspec.field(default=None, name="hostPID")
    host_ipc: bool | None = msgspec.field(default=None, name="hostIPC")


class Marks(_Shape, frozen=True):
    """Labels and annotations, as `ObjectTemplate.metadata` and the metadata of a pod template have them."""

    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class Additions(Marks, frozen=True):
    """What admission checks want on the pods of a pod set, as `PodSetRequest.additions` has it."""

    node_selector: dict[str, str] | None = None
    tolerations: tuple[Toleration, ...] | None = None


class _PodTemplate(_Shape, frozen=True):
    spec: _PodSpec
    metadata: Marks | None = None


_MARKS = msgspec.json.Decoder(Marks)
_ADDITIONS = msgspec.json.Decoder(Additions)


def check(kind: Kind[Any], spec: dict[str, Any]) -> None:
    """Raise ShapeError where a field of a spec has another type than it must."""
    if not kind.pod_specs:
        raise ShapeError(f"spec: the shape of a {kind.name} is not known here; use an agent that serves this kind")
    for at in kind.pod_specs:
        try:
            msgspec.convert(spec, _shape(at.template))
        except msgspec.ValidationError as error:
            raise ShapeError(_line("spec", error)) from error


@lru_cache(maxsize=64)
def _shape(template: tuple[str, ...]) -> type[Any]:
    """Return the shape of a spec that has a pod template there; without a path, of a pod's own."""
    if not template:
        return _PodSpec
    found: type[Any] = _PodTemplate
    for name in reversed(template):
        found = msgspec.defstruct(f"_Spec_{name}", [(name, found)], frozen=True)
    return found


def marks(content: bytes) -> Marks:
    """Return the labels and annotations of `ObjectTemplate.metadata`; empty content has none. Raises ShapeError."""
    if not content:
        return Marks()
    try:
        return _MARKS.decode(content)
    except msgspec.ValidationError as error:
        raise ShapeError(_line("metadata", error)) from error
    except UNREADABLE as error:
        raise ShapeError(f"metadata: must be JSON ({error}); send labels and annotations only") from error


def additions(content: bytes) -> Additions:
    """Return what is added to the pods of a pod set; empty content adds nothing. Raises ShapeError."""
    if not content:
        return Additions()
    try:
        return _ADDITIONS.decode(content)
    except msgspec.ValidationError as error:
        raise ShapeError(_line("additions", error)) from error
    except UNREADABLE as error:
        raise ShapeError(f"additions: must be JSON ({error}); {_WAY_OUT}") from error


_SAID = re.compile(r"Expected `(?P<wanted>[^`]+)`, got `(?P<got>[^`]+)`")
_MISSING = re.compile(r"missing required field `(?P<field>[^`]+)`")
_PATH = re.compile(r" - at `\$(?P<path>[^`]*)`$")


def _line(root: str, error: msgspec.ValidationError) -> str:
    """Return msgspec's words as ours: the field first, then the rule and the way out."""
    text = str(error)
    found = _PATH.search(text)
    path = root + (found["path"] if found else "")
    wrong = _SAID.search(text)
    if wrong is not None:
        wanted = wrong["wanted"].removesuffix(" | null")
        return f"{path}: must be of JSON type {wanted}, is {wrong['got']}; {_WAY_OUT}"
    missing = _MISSING.search(text)
    if missing is not None:
        return f"{path}.{missing['field']}: must be there; {_WAY_OUT}"
    return f"{path}: {_PATH.sub('', text)}; {_WAY_OUT}"
