"""What an API server is to show the webhook of pods. Pure."""

from __future__ import annotations

import msgspec

from gatelift_kinds.shared.hooks import CheckedMeta, Hook

IMAGE_CHARS_USUAL = 4096


class _Gate(msgspec.Struct):
    name: str = ""


class _Resources(msgspec.Struct):
    requests: dict[str, str | int | float] | None = None


class _Container(msgspec.Struct):
    resources: _Resources | None = None


class _PodSpec(msgspec.Struct, rename="camel"):
    scheduling_gates: list[_Gate] | None = None
    containers: list[_Container] | None = None
    init_containers: list[_Container] | None = None
    resources: _Resources | None = None


class _PodStatus(msgspec.Struct):
    phase: str | None = None


class _Pod(msgspec.Struct):
    metadata: CheckedMeta | None = None
    spec: _PodSpec | None = None
    status: _PodStatus | None = None


HOOK = Hook(
    shape=_Pod,
    subresources=("ephemeralcontainers",),
    held="has(oldObject.spec.schedulingGates) && ",
    grows=(("spec.tolerations", 0),),
    grows_besides=(f"object.spec.containers.exists(c, has(c.image) && size(c.image) > {IMAGE_CHARS_USUAL})",),
)
"""Of changes of the spec only those at a gate: of others that a server takes, a run elsewhere takes no notice."""
