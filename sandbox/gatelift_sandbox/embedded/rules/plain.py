"""The rules that hold for every kind, and the base that others refine. Pure."""

# ruff: noqa: ARG002 (rules are offered more than each of them needs)
from __future__ import annotations

from typing import ClassVar

from gatelift_sandbox.embedded import names
from gatelift_sandbox.embedded.documents import Document, meta
from gatelift_sandbox.embedded.failures import BrokenRule

FALLBACK_GRACE_SECONDS = 0


class Rules:
    """What happens to an object on its way into the store. The base is right for ConfigMaps, Secrets and the like.

    Order on create: `default`, admission, `prepare_create`, `validate_create`. On update of the object or of a
    subresource: `default`, admission, `prepare_update`, `validate_update`. All may change `new`, never `old`.
    """

    generation: ClassVar[bool] = False
    """Whether changes of the spec raise metadata.generation."""
    unconditional_update: ClassVar[bool] = True
    """Whether an update may come without a resourceVersion."""
    create_on_update: ClassVar[bool] = False
    """Whether an update of a missing object creates it."""
    graceful: ClassVar[bool] = False
    """Whether deletion takes time; such an object shows its deletion even where it is gone at once."""
    returns_deleted: ClassVar[bool] = False
    """Whether a delete answers with the object even if it is gone at once; others answer with a Status."""
    propagation: ClassVar[str] = "Background"
    """What a delete does about dependents if the request does not say."""

    def name_problem(self, name: str) -> str:
        """Return what is wrong with a name, or an empty text."""
        return names.subdomain_name(name)

    def default(self, new: Document) -> list[str]:
        """Fill in what is missing; return the paths of fields that were dropped because nobody knows them."""
        return []

    def prepare_create(self, new: Document, now: float) -> None:
        """Set what only the server may say of a new object."""

    def prepare_update(self, new: Document, old: Document, subresource: str) -> None:
        """Undo changes that this path may not make (the status through the object, all else through the status)."""

    def validate_create(self, new: Document) -> list[BrokenRule]:
        """Return the rules that a new object breaks (names, labels and the like are checked before)."""
        return []

    def validate_update(self, new: Document, old: Document, subresource: str) -> list[BrokenRule]:
        """Return the rules that a change breaks."""
        return []

    def fields(self, document: Document) -> dict[str, str]:
        """Return the values of field selectors, but for metadata.name and metadata.namespace."""
        return {}

    def grace_seconds(self, document: Document, asked: int | None) -> int:
        """Return how long a deletion may take; 0 removes the object at once, if no finalizer holds it."""
        return FALLBACK_GRACE_SECONDS

    def finalizers(self, document: Document) -> list[str]:
        """Return what holds a deleted object."""
        found: list[str] = meta(document).get("finalizers") or []
        return found

    def mark_deleted(self, document: Document) -> None:
        """Change what a deletion changes besides the metadata."""

    def spec_changed(self, new: Document, old: Document) -> bool:
        """Return whether a change raises the generation."""
        return new.get("spec") != old.get("spec")


class WithStatus(Rules):
    """A kind with a status subresource. Metadata may be changed through it, but not the owners."""

    def prepare_create(self, new: Document, now: float) -> None:
        """Drop the status: nobody creates one."""
        new.pop("status", None)

    def prepare_update(self, new: Document, old: Document, subresource: str) -> None:
        """Keep the old status, or all but the status."""
        if subresource == "status":
            _keep(new, old, "spec")
        else:
            _keep(new, old, "status")


def _keep(new: Document, old: Document, field: str) -> None:
    if field in old:
        new[field] = old[field]
    else:
        new.pop(field, None)


class Named(Rules):
    """RBAC objects: any name that can be part of a path; an update of a missing one creates it."""

    create_on_update = True

    def name_problem(self, name: str) -> str:
        """Allow colons and capitals."""
        return names.path_segment_name(name)


class LeaseRules(Rules):
    """coordination.k8s.io Lease: an update needs a resourceVersion, so that two holders cannot both win."""

    unconditional_update = False
    create_on_update = True


class WithGeneration(Rules):
    """Admission configurations and the like: a generation that follows everything but metadata."""

    generation = True

    def spec_changed(self, new: Document, old: Document) -> bool:
        """Compare all but metadata."""
        return _bare(new) != _bare(old)


def _bare(document: Document) -> Document:
    return {key: value for key, value in document.items() if key not in ("metadata", "status")}
