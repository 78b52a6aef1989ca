"""What an API server is to show the webhook of a kind, and what is checked before the rules look at it. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectedChange:
    """A change of an object that is put right instead of refused: its name, and the condition (CEL) that finds it."""

    name: str
    title: str
    expression: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """How a kind is reviewed. `shape`: the types of the parts that its rules look at.

    `subresources`: by which users change the spec, and controllers and kubelets never do. `held`: CEL before the
    comparison of two specs, where not every change of it is asked about. `grows`: fields that get larger, each with the
    size up to which nobody is asked; `grows_besides`: CEL of other growth. `put_right`: see `CorrectedChange`.
    """

    shape: type[Any]
    subresources: tuple[str, ...] = ()
    held: str = ""
    grows: tuple[tuple[str, int], ...] = ()
    grows_besides: tuple[str, ...] = ()
    put_right: tuple[CorrectedChange, ...] = ()
    controllers: frozenset[str] = field(default_factory=frozenset)
    """Who makes its pods, by username; the policies of `deploy/policies` name the same ones."""


class CheckedOwner(msgspec.Struct, rename="camel"):
    """An owner reference as rules look at it."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class CheckedMeta(msgspec.Struct, rename="camel"):
    """The metadata as rules look at it."""

    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    finalizers: list[str] | None = None
    owner_references: list[CheckedOwner] | None = None
    deletion_timestamp: str | None = None
