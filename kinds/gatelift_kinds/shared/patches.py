"""Bodies of merge and JSON patches. Pure.

JSON patches carry `test` operations for what they were decided on, so a change in between makes the API server refuse
them; merge patches name UID and resourceVersion under `metadata`, which the API server holds to be preconditions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from gatelift_kinds.shared.values import MergeConflictError
from gatelift_kube.objects.core import Toleration
from gatelift_kube.objects.meta import ObjectMeta
from gatelift_kube.values.unreadable import UNREADABLE
from gatelift_wire.values.keys import LABEL_STOPPING, PlacementKey

Operation = dict[str, Any]
Json = dict[str, Any]
StructT = TypeVar("StructT", bound=msgspec.Struct)

encode = msgspec.json.encode


def decode(raw: bytes) -> Json:
    """Return a JSON object as a dict. KeyError never; msgspec.DecodeError if it is none (the API server sent it)."""
    return msgspec.json.decode(raw, type=dict[str, Any])


def read_as(of: type[StructT], reported: bytes) -> StructT | None:
    """Return what a worker reported as a struct, None where it is none."""
    try:
        return msgspec.json.decode(reported, type=of)
    except UNREADABLE:
        return None


def decode_operations(body: bytes) -> list[Operation]:
    """Return the operations of a JSON patch that we made."""
    return msgspec.json.decode(body, type=list[Operation])


class _Statuses(msgspec.Struct):
    status: Json | None = None


_STATUSES = msgspec.json.Decoder(_Statuses)


def status_of(raw: bytes) -> Json:
    """Return the status of an object, empty where it has none; nothing else of it is taken apart."""
    return _STATUSES.decode(raw).status or {}


def pointer(*keys: str) -> str:
    """Return a JSON pointer, keys escaped."""
    return "".join("/" + key.replace("~", "~0").replace("/", "~1") for key in keys)


def guards(meta: ObjectMeta, *, version: bool = True) -> list[Operation]:
    """Return the tests that tie a JSON patch to this object and, with `version`, to this very state of it."""
    tests = [{"op": "test", "path": "/metadata/uid", "value": meta.uid}]
    if version:
        tests.append({"op": "test", "path": "/metadata/resourceVersion", "value": meta.resource_version})
    return tests


def remove_from_list(
    path: Sequence[str], present: Sequence[str], unwanted: Iterable[str], key: str = ""
) -> list[Operation]:
    """Return operations that remove `unwanted` from a list whose items read `present`; with `key`, items are objects.

    Each removal is preceded by a test, so that a list that moved in between refuses the patch instead of losing
    somebody else's entry.
    """
    gone = set(unwanted)
    operations: list[Operation] = []
    for index in reversed([index for index, item in enumerate(present) if item in gone]):
        item_path = pointer(*path, str(index))
        tested = item_path + pointer(key) if key else item_path
        operations.append({"op": "test", "path": tested, "value": present[index]})
        operations.append({"op": "remove", "path": item_path})
    return operations


def add_to_map(path: Sequence[str], present: Mapping[str, Any] | None, added: Mapping[str, Any]) -> list[Operation]:
    """Return operations that set keys of a map that may be absent; keys that have the value already are left out."""
    missing = {key: value for key, value in added.items() if present is None or present.get(key) != value}
    if not missing:
        return []
    if not present:
        return [{"op": "add", "path": pointer(*path), "value": missing}]
    return [{"op": "add", "path": pointer(*path, key), "value": value} for key, value in missing.items()]


def without_finalizer(meta: ObjectMeta, finalizer: str) -> bytes | None:
    """Return the JSON patch that drops one finalizer and no other; None when it is not there."""
    removal = remove_from_list(("metadata", "finalizers"), meta.finalizers, (finalizer,))
    return encode([*guards(meta, version=False), *removal]) if removal else None


def stop_mark(key: PlacementKey) -> dict[str, str]:
    """Return the label that says that this placement was stopped."""
    return {LABEL_STOPPING: f"{key.uid}.{key.epoch}"}


def stop_marked(meta: ObjectMeta, key: PlacementKey) -> bool:
    """Return whether the object says that this placement was stopped.

    The mark holds the Workload's UID: a user's object whose Workload was deleted gets another one, and its epochs begin
    anew.
    """
    return meta.labels.items() >= stop_mark(key).items()


def merged_selector(present: Mapping[str, str], added: Mapping[str, str], what: str) -> dict[str, str]:
    """Return both together. MergeConflictError: a key has two values."""
    for key, value in added.items():
        if present.get(key, value) != value:
            raise MergeConflictError(
                f"{what}[{key}]: {present[key]!r} of the object contradicts {value!r} of the flavor: "
                f"drop the key or ask for another flavor"
            )
    return {**present, **added}


def merged_tolerations(present: Sequence[Json], added: Sequence[Toleration]) -> list[Json]:
    """Return both together, each once."""
    result = list(present)
    seen = {toleration_key(one) for one in present}
    for toleration in added:
        document = msgspec.to_builtins(toleration)
        if toleration_key(document) not in seen:
            seen.add(toleration_key(document))
            result.append(document)
    return result


def toleration_key(one: Mapping[str, Any]) -> tuple[str, str, str, str, int | None]:
    """Return what tells two tolerations apart (an empty operator and `Equal` are the same)."""
    return (
        one.get("key", ""),
        one.get("operator") or "Equal",
        one.get("value", ""),
        one.get("effect", ""),
        one.get("tolerationSeconds"),
    )


def difference(old: Json, new: Json) -> Json:
    """Return the merge patch that turns `old` into `new`: removed keys null, lists whole, equal parts left out."""
    patch: Json = {key: None for key in old if key not in new and not _alike(old[key], None)}
    for key, value in new.items():
        before = old.get(key)
        if before == value:  # most of a status, most of the time
            continue
        if isinstance(value, dict) and isinstance(before, dict):
            inner = difference(before, value)
            if inner:
                patch[key] = inner
        elif not _alike(before, value):
            patch[key] = value
    return patch


def _alike(left: Any, right: Any) -> bool:
    """Say whether two values say the same: nulls and empty objects say as much as nothing."""
    if left == right:
        return True
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_alike, left, right))
    if isinstance(left, dict | None) and isinstance(right, dict | None):
        one, other = left or {}, right or {}
        return all(_alike(one.get(key), other.get(key)) for key in {*one, *other})
    return False


def status_patch(meta: ObjectMeta, old: Json, new: Json) -> bytes | None:
    """Return the merge patch of `/status` that replaces the whole status, tied to the UID; None if nothing differs."""
    patch = difference(old, new)
    return encode({"metadata": {"uid": meta.uid}, "status": patch}) if patch else None
