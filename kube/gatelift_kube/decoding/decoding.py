"""JSON as served to typed objects: which struct belongs to which kind, list pages, watch lines. Pure.

A page is decoded in one pass into structs of the fields in use (about 6 us per pod, 50 times faster than models of all
fields). An object that does not fit its struct costs nothing but itself: the rest of the page is kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

import msgspec

from gatelift_kube.deciding.errors import ApiError, UndecodableError, from_status
from gatelift_kube.deciding.writes import KubeObject
from gatelift_kube.decoding import unknown_fields, unreadable_templates
from gatelift_kube.objects import batch, core, gatelift, kueue
from gatelift_kube.objects.meta import PartialObject
from gatelift_kube.values import resources
from gatelift_kube.values.nesting import CUT, DEPTH_MAX, cut_deep
from gatelift_kube.values.resources import WORKLOAD, ObjectKey, Resource
from gatelift_kube.values.unreadable import UNREADABLE

STRUCTS: dict[tuple[str, str], type[Any]] = {
    (resource.group, resource.kind): struct
    for resource, struct in (
        (resources.POD, core.Pod),
        (resources.NAMESPACE, core.Namespace),
        (resources.NODE, core.Node),
        (resources.SECRET, core.Secret),
        (resources.CONFIG_MAP, core.ConfigMap),
        (resources.LIMIT_RANGE, core.LimitRange),
        (resources.LEASE, core.Lease),
        (resources.JOB, batch.Job),
        (resources.PRIORITY_CLASS, core.PriorityClass),
        (resources.RUNTIME_CLASS, core.RuntimeClass),
        (resources.WORKLOAD, kueue.Workload),
        (resources.LOCAL_QUEUE, kueue.LocalQueue),
        (resources.CLUSTER_QUEUE, kueue.ClusterQueue),
        (resources.COHORT, kueue.Cohort),
        (resources.RESOURCE_FLAVOR, kueue.ResourceFlavor),
        (resources.WORKLOAD_PRIORITY_CLASS, kueue.WorkloadPriorityClass),
        (resources.ADMISSION_CHECK, kueue.AdmissionCheck),
        (resources.MULTIKUEUE_CONFIG, kueue.MultiKueueConfig),
        (resources.MULTIKUEUE_CLUSTER, kueue.MultiKueueCluster),
        (resources.WORKER_CLUSTER, gatelift.WorkerCluster),
    )
}
"""Struct of each (group, kind); a kind that is not here is read as `PartialObject`. Kinds add theirs (`learn`)."""


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")
    remaining_item_count: int | None = None


class _RawPage(msgspec.Struct):
    metadata: _ListMeta
    items: list[msgspec.Raw] | None = None


class WatchLine(msgspec.Struct, frozen=True):
    """One line of a watch: ADDED, MODIFIED, DELETED, BOOKMARK or ERROR, and the JSON of its object."""

    type: str
    raw: msgspec.Raw = msgspec.field(name="object")


class _Managed(msgspec.Struct):
    value: msgspec.Raw = msgspec.field(name="managedFields", default=msgspec.Raw())


class _Top(msgspec.Struct):
    metadata: _Managed | None = None


class _Code(msgspec.Struct):
    kind: str = ""
    code: int = 500


_T = TypeVar("_T")
_RAW_PAGE = msgspec.json.Decoder(_RawPage)
_LINE = msgspec.json.Decoder(WatchLine)
_CODE = msgspec.json.Decoder(_Code)
_PARTIAL = msgspec.json.Decoder(PartialObject)
_MANAGED = msgspec.json.Decoder(_Top)
_MANAGED_KEY = b'"managedFields":'
_TOP = msgspec.json.Decoder(dict[str, msgspec.Raw])


@dataclass(frozen=True, slots=True)
class Served:
    """One object and its JSON; `raw` is empty where it was not asked for."""

    object: KubeObject
    raw: bytes


@dataclass(frozen=True, slots=True)
class Unread:
    """An object that is there but does not fit its struct, and why, in one line."""

    key: ObjectKey
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A part of a list; objects that could not be read are not among its items."""

    items: list[Served]
    resource_version: str
    next: str = ""
    remaining: int = 0
    unread: tuple[Unread, ...] = ()


def learn(resource: Resource, struct: type[Any]) -> None:
    """Read objects of a kind as this struct. ValueError: they are read as another one."""
    known = STRUCTS.setdefault((resource.group, resource.kind), struct)
    if known is not struct:
        raise ValueError(f"{resource.kind}: read as {known.__name__}, not as {struct.__name__}")
    _decoder.cache_clear()
    _page_decoder.cache_clear()


def struct_of(resource: Resource) -> type[Any]:
    """Return the struct for a kind, `PartialObject` where there is none."""
    return STRUCTS.get((resource.group, resource.kind), PartialObject)


@lru_cache(maxsize=256)
def _decoder(resource: Resource) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(struct_of(resource))


@lru_cache(maxsize=256)
def _page_decoder(resource: Resource) -> msgspec.json.Decoder[Any]:
    items: Any = list[struct_of(resource)] | None  # type: ignore[misc] # a list of a type known at run time only
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = [("metadata", _ListMeta), ("items", items, None)]
    return msgspec.json.Decoder(msgspec.defstruct(f"{resource.kind}Page", fields))


def _shallow(decoder: msgspec.json.Decoder[_T], text: bytes) -> _T:
    """Decode; what is nested deeper than a decoder goes is cut out first, where there is such a thing."""
    try:
        return decoder.decode(text)
    except RecursionError:
        return decoder.decode(cut_deep(text))


def read_object(resource: Resource, raw: bytes | msgspec.Raw) -> KubeObject:
    """Return the typed object. Raises UndecodableError, naming the kind and the field.

    Unknown fields in entries of lists that are written whole are kept in them (`Entry.more`).
    """
    try:
        found: KubeObject = _decoder(resource).decode(raw)
    except RecursionError:
        found = _read_with_unknown_fields(resource, cut_deep(bytes(raw)))
    except UNREADABLE:
        found = _read_with_unknown_fields(resource, raw)
    return found


def _read_with_unknown_fields(resource: Resource, raw: bytes | msgspec.Raw) -> KubeObject:
    try:
        document = msgspec.json.decode(raw)
        unknown_fields.set_aside(document, struct_of(resource))
        if resource == WORKLOAD:
            unreadable_templates.set_aside(document)
        found: KubeObject = _decoder(resource).decode(msgspec.json.encode(document))
    except UNREADABLE as error:
        raise UndecodableError(f"{resource.kind}: the answer cannot be read: {error}") from error
    return found


def read_page(resource: Resource, body: bytes, *, with_raw: bool) -> Page:
    """Return a page of a list; raises UndecodableError where it is no list at all."""
    if not with_raw:
        try:
            typed = _page_decoder(resource).decode(body)
        except UNREADABLE:
            pass  # one object does not fit: read them one by one below
        else:
            return _page(typed.metadata, [Served(item, b"") for item in typed.items or ()], [])
    try:
        page = _shallow(_RAW_PAGE, body)
    except UNREADABLE as error:
        raise UndecodableError(f"list of {resource.plural}: the answer cannot be read: {error}") from error
    items: list[Served] = []
    unread: list[Unread] = []
    for raw in page.items or ():
        try:
            found = read_object(resource, raw)
        except UndecodableError as error:
            key = key_in(raw)
            unread.append(Unread(key, f"{key}: {error}"))
            continue
        kept = without_managed_fields(raw)
        if CUT in kept and resource != WORKLOAD:  # nobody takes a Workload's JSON: it is charged by what was read
            key = key_in(raw)
            unread.append(Unread(key, f"{key}: nested more than {DEPTH_MAX} deep"))
            continue
        items.append(Served(found, kept if with_raw else b""))
    return _page(page.metadata, items, unread)


def _page(metadata: _ListMeta, items: list[Served], unread: list[Unread]) -> Page:
    return Page(
        items=items,
        resource_version=metadata.resource_version,
        next=metadata.continue_,
        remaining=metadata.remaining_item_count or 0,
        unread=tuple(unread),
    )


def read_line(line: bytes) -> WatchLine:
    """Return one watch line, its object unread; raises UndecodableError."""
    try:
        return _shallow(_LINE, line)
    except UNREADABLE as error:
        raise UndecodableError(f"watch: a line cannot be read: {error}") from error


def bookmark_version(raw: bytes | msgspec.Raw) -> str:
    """Return the resourceVersion of a bookmark; raises UndecodableError.

    Its object is an empty one of the kind, with nulls where real ones have required lists (a Pod's containers), so only
    its metadata is read.
    """
    try:
        return _shallow(_PARTIAL, bytes(raw)).metadata.resource_version
    except UNREADABLE as error:
        raise UndecodableError(f"watch: a bookmark cannot be read: {error}") from error


def key_in(raw: bytes | msgspec.Raw) -> ObjectKey:
    """Return where an object lives that may not be readable otherwise; `?` where not even its metadata is."""
    try:
        metadata = _shallow(_PARTIAL, bytes(raw)).metadata
    except UNREADABLE:
        return ObjectKey("", "?")
    return ObjectKey(metadata.namespace, metadata.name)


def without_managed_fields(raw: bytes | msgspec.Raw) -> bytes:
    """Return the object's JSON without `metadata.managedFields`, which is a third of a pod and of no use to us."""
    text = bytes(raw)
    try:
        top = _MANAGED.decode(text)
    except RecursionError:
        text = cut_deep(text)
        top = _MANAGED.decode(text)
    value = bytes(top.metadata.value) if top.metadata is not None else b""
    if not value:
        return text
    # As served, the field is there once and without spaces: cut it out, instead of taking all apart and joining it.
    start = text.find(_MANAGED_KEY)
    end = start + len(_MANAGED_KEY) + len(value)
    if text.startswith(value, start + len(_MANAGED_KEY)) and text.find(_MANAGED_KEY, end) < 0:
        if text[start - 1 : start] == b",":
            return text[: start - 1] + text[end:]
        if text[end : end + 1] == b",":
            return text[:start] + text[end + 1 :]
    return _taken_apart(text)


def _taken_apart(text: bytes) -> bytes:
    top = _TOP.decode(text)
    fields = _TOP.decode(top["metadata"])
    del fields["managedFields"]
    top["metadata"] = msgspec.Raw(msgspec.json.encode(fields))
    return msgspec.json.encode(top)


def watch_error(line: WatchLine) -> ApiError:
    """Return the error of a watch line of type ERROR, which carries a metav1.Status."""
    try:
        code = _shallow(_CODE, bytes(line.raw)).code
    except UNREADABLE:
        code = 500
    return from_status(code, bytes(line.raw))


def read_deleted(resource: Resource, body: bytes) -> Served | None:
    """Return the object that a delete left terminating, or None where the answer says that it is gone.

    A server answers with a metav1.Status, or with the object: terminating, or for some kinds its last state. It is
    still there where it has a deletion time and a reason to wait: a grace period or a finalizer.
    """
    try:
        kind = _shallow(_CODE, body).kind
    except UNREADABLE as error:
        raise UndecodableError(f"{resource.kind}: the answer to a delete cannot be read: {error}") from error
    if kind == "Status":
        return None
    found = read_object(resource, body)
    meta = found.metadata
    waits = bool(meta.finalizers) or bool(meta.deletion_grace_period_seconds)
    return Served(found, body) if meta.deletion_timestamp is not None and waits else None
