"""What is served: each kind with its names, subresources, columns and rules, and the table of all. Pure.

One `ServedKind` is one way to see objects: a group, a version and a plural. Several of them may share a `storage`: the
versions of a CustomResourceDefinition, and the two groups that serve events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from gatelift_kube.values.resources import Resource
from gatelift_sandbox.embedded.documents import Document
from gatelift_sandbox.embedded.failures import no_such_path
from gatelift_sandbox.embedded.rules.plain import Rules

StorageKey = tuple[str, str]
"""(group, plural) under which objects lie in the store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of `kubectl get`: where it is in the object. `priority` 1 shows it with `-o wide` only."""

    name: str
    json_path: str
    type: str = "string"
    priority: int = 0
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ServedKind:
    """One served view of the objects under `storage`."""

    resource: Resource
    storage: StorageKey
    storage_api_version: str
    singular: str
    list_kind: str
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: frozenset[str] = frozenset()
    columns: tuple[Column, ...] = ()
    rules: Rules
    warning: str = ""
    strategic: bool = True
    verbs: tuple[str, ...] = ()
    openapi: Document | None = None
    to_storage: Callable[[Document], Document] | None = None
    from_storage: Callable[[Document], Document] | None = None

    @property
    def converts(self) -> bool:
        """Return whether stored objects look different under this version."""
        return self.from_storage is not None or self.storage_api_version != self.resource.api_version

    @property
    def selectable(self) -> frozenset[str]:
        """Return the field labels that a field selector may name."""
        return frozenset({"metadata.name", "metadata.namespace", *self.rules.fields({})})

    def stored(self, document: Document) -> Document:
        """Return a document of this version as it is stored."""
        if self.to_storage is not None:
            document = self.to_storage(document)
        document["apiVersion"] = self.storage_api_version
        return document

    def served(self, document: Document) -> Document:
        """Return a stored document as this version shows it."""
        if self.from_storage is not None:
            document = self.from_storage(document)
        document["apiVersion"] = self.resource.api_version
        return document


ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


def kind(
    resource: Resource,
    rules: Rules | None = None,
    *,
    short: tuple[str, ...] = (),
    subresources: Iterable[str] = (),
    columns: tuple[Column, ...] = (),
    categories: tuple[str, ...] = (),
) -> ServedKind:
    """Return a built-in kind."""
    return ServedKind(
        resource=resource,
        storage=(resource.group, resource.plural),
        storage_api_version=resource.api_version,
        singular=resource.kind.lower(),
        list_kind=f"{resource.kind}List",
        short_names=short,
        categories=categories,
        subresources=frozenset(subresources),
        columns=columns,
        rules=rules or Rules(),
        verbs=ALL_VERBS,
    )


class KindTable:
    """All kinds served, by (group, version, plural). Changes when CustomResourceDefinitions do."""

    def __init__(self, kinds: Iterable[ServedKind]) -> None:
        self._kinds: dict[tuple[str, str, str], ServedKind] = {}
        self.revision = 0
        for each in kinds:
            self.add(each)

    def __iter__(self) -> Iterator[ServedKind]:
        return iter(self._kinds.values())

    def add(self, added: ServedKind) -> None:
        """Serve a kind, instead of the one of the same group, version and plural."""
        self._kinds[added.resource.group, added.resource.version, added.resource.plural] = added
        self.revision += 1

    def drop(self, storage: StorageKey) -> None:
        """Serve no version of what lies under `storage` any more."""
        self._kinds = {key: each for key, each in self._kinds.items() if each.storage != storage}
        self.revision += 1

    def find(self, group: str, version: str, plural: str) -> ServedKind:
        """Return the kind at a path; ApiError 404 where nothing is served."""
        found = self._kinds.get((group, version, plural))
        if found is None:
            raise no_such_path()
        return found

    def of(self, resource: Resource) -> ServedKind:
        """Return the kind of a resource; ApiError 404 where it is not served."""
        return self.find(resource.group, resource.version, resource.plural)

    def by_name(self, api_version: str, name: str) -> ServedKind | None:
        """Return the kind that an owner reference or a manifest names (`batch/v1`, `Job`)."""
        group, _, version = api_version.rpartition("/")
        return next(
            (
                each
                for each in self._kinds.values()
                if each.resource.kind == name and each.resource.group == group and each.resource.version == version
            ),
            None,
        )

    def storages(self) -> dict[StorageKey, ServedKind]:
        """Return one kind for each storage: the one in whose version objects are stored, where that is served."""
        found: dict[StorageKey, ServedKind] = {}
        for each in self._kinds.values():
            if each.storage not in found or not each.converts:
                found[each.storage] = each
        return found
