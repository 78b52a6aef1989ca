"""What all objects share: metadata, conditions, owner references, selectors."""

from __future__ import annotations

from typing import Any

import msgspec


class Struct(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """Base of all typed objects: camelCase on the wire, immutable, invisible to the cyclic garbage collector."""


class OwnerReference(Struct, frozen=True, gc=False):
    """metav1.OwnerReference."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(Struct, frozen=True, gc=False):
    """metav1.ObjectMeta, without managedFields. Times are RFC 3339 strings."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()


class StatusEntry(Struct, frozen=True, gc=False, forbid_unknown_fields=True, kw_only=True):
    """A part of a status that is written whole: what we do not know of it is kept.

    `more`: fields that have no place in the struct, by their names, None where there are none. Decoding refuses them;
    `decoding` then puts them here, so that an object without any, as nearly all are, costs nothing.
    """

    more: dict[str, Any] | None = msgspec.field(default=None, name="$more")


class Condition(StatusEntry, frozen=True, gc=False):
    """metav1.Condition; of a Job it has `lastProbeTime`, too."""

    type: str
    """What is said of the object."""
    status: str
    """True, False or Unknown."""
    reason: str = ""
    """Why, in one word."""
    message: str = ""
    """Why, for people."""
    last_transition_time: str | None = None
    """When the status last changed."""
    observed_generation: int = 0
    """The generation of the object that it was said of."""
    last_probe_time: str | None = None


class LabelSelectorRequirement(Struct, frozen=True, gc=False):
    """metav1.LabelSelectorRequirement."""

    key: str
    """The label."""
    operator: str
    """In, NotIn, Exists or DoesNotExist."""
    values: tuple[str, ...] = ()
    """The values for In and NotIn."""


class LabelSelector(Struct, frozen=True, gc=False):
    """metav1.LabelSelector. None selects nothing, an empty one everything (the caller's business)."""

    match_labels: dict[str, str] = {}
    """Labels that have to be there with these values."""
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()
    """Requirements that all have to be met."""


class PartialObject(Struct, frozen=True, gc=False):
    """Any object of which only the metadata matters."""

    metadata: ObjectMeta = ObjectMeta()
