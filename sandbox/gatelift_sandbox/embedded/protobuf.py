"""Bodies as `kubectl create` and `kubectl auth` send them: Kubernetes' protobuf, read into JSON documents. Pure.

Of the kinds that kubectl makes from its arguments, those without a pod template; numbers of fields are those of
k8s.io/api (generated.proto). Answers are JSON, which its clients take as well. Others send manifests, which are JSON.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import Any, Final

from gatelift_sandbox.embedded.documents import Document
from gatelift_sandbox.embedded.failures import bad_request

CONTENT_TYPE = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"
_NOTHING = memoryview(b"")
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_VARINT_BYTES_MAX = 10
_TEXT, _BASE64, _NUMBER, _BOOL = "text", "base64", "number", "bool"

Message = Mapping[int, tuple[str, Any]]
"""Field number: name, and what it is: a word above, a Message, or one of these in a list (repeated) or set (a map)."""

_META: Final[Message] = {
    1: ("name", _TEXT),
    2: ("generateName", _TEXT),
    3: ("namespace", _TEXT),
    5: ("uid", _TEXT),
    6: ("resourceVersion", _TEXT),
    11: ("labels", {_TEXT}),
    12: ("annotations", {_TEXT}),
    14: ("finalizers", [_TEXT]),
}
_RESOURCE: Final[Message] = dict(
    enumerate(
        [(name, _TEXT) for name in ("namespace", "verb", "group", "version", "resource", "subresource", "name")],
        start=1,
    )
)
_ACCESS: Final[Message] = {
    1: ("resourceAttributes", _RESOURCE),
    2: ("nonResourceAttributes", {1: ("path", _TEXT), 2: ("verb", _TEXT)}),
}
_TOKEN: Final[Message] = {1: ("audiences", [_TEXT]), 4: ("expirationSeconds", _NUMBER)}
_RULE: Final[Message] = dict(
    enumerate(
        [(name, [_TEXT]) for name in ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs")], start=1
    )
)
_SUBJECT: Final[Message] = {1: ("kind", _TEXT), 2: ("apiGroup", _TEXT), 3: ("name", _TEXT), 4: ("namespace", _TEXT)}
_ROLE_REF: Final[Message] = {1: ("apiGroup", _TEXT), 2: ("kind", _TEXT), 3: ("name", _TEXT)}
_ROLE: Final[Message] = {1: ("metadata", _META), 2: ("rules", [_RULE])}
_BINDING: Final[Message] = {1: ("metadata", _META), 2: ("subjects", [_SUBJECT]), 3: ("roleRef", _ROLE_REF)}
_KINDS: Final[Mapping[str, Message]] = {
    "Namespace": {1: ("metadata", _META), 2: ("spec", {1: ("finalizers", [_TEXT])})},
    "Secret": {
        1: ("metadata", _META),
        2: ("data", {_BASE64}),
        3: ("type", _TEXT),
        4: ("stringData", {_TEXT}),
        5: ("immutable", _BOOL),
    },
    "ConfigMap": {
        1: ("metadata", _META),
        2: ("data", {_TEXT}),
        3: ("binaryData", {_BASE64}),
        4: ("immutable", _BOOL),
    },
    "ServiceAccount": {1: ("metadata", _META), 4: ("automountServiceAccountToken", _BOOL)},
    "TokenRequest": {1: ("metadata", _META), 2: ("spec", _TOKEN)},
    "PriorityClass": {
        1: ("metadata", _META),
        2: ("value", _NUMBER),
        3: ("globalDefault", _BOOL),
        4: ("description", _TEXT),
        5: ("preemptionPolicy", _TEXT),
    },
    "SelfSubjectReview": {1: ("metadata", _META)},
    "SelfSubjectAccessReview": {1: ("metadata", _META), 2: ("spec", _ACCESS)},
    "Role": _ROLE,
    "ClusterRole": _ROLE,
    "RoleBinding": _BINDING,
    "ClusterRoleBinding": _BINDING,
}
_TYPE_META: Final[Message] = {1: ("apiVersion", _TEXT), 2: ("kind", _TEXT)}


def document(body: bytes) -> Document | None:
    """Return the object of a body, None of a kind that is read as JSON only; ApiError 400 for what is no protobuf."""
    if not body.startswith(_MAGIC):
        raise bad_request("the request body does not begin as Kubernetes' protobuf does")
    try:
        parts = dict(_fields(memoryview(body)[len(_MAGIC) :]))
        made = _message(_bytes(parts.get(1, _NOTHING)), _TYPE_META)
        schema = _KINDS.get(made.get("kind", ""))
        return None if schema is None else {**made, **_message(_bytes(parts.get(2, _NOTHING)), schema)}
    except (IndexError, ValueError) as error:
        raise bad_request(f"the request body is no protobuf: {error}") from error


def _message(data: memoryview, schema: Message) -> Document:
    found: Document = {}
    for number, value in _fields(data):
        name, shape = schema.get(number, ("", None))
        if isinstance(shape, set):
            (of,) = shape
            entry = _message(_bytes(value), {1: ("key", _TEXT), 2: ("value", of)})
            found.setdefault(name, {})[entry.get("key", "")] = entry.get("value", "")
        elif isinstance(shape, list):
            (of,) = shape
            found.setdefault(name, []).append(_value(value, of))
        elif shape is not None:
            read = _value(value, shape)
            if read not in ("", {}):  # what is not set is sent empty
                found[name] = read
    return found


def _value(value: memoryview | int, shape: Any) -> Any:
    match shape:
        case "text":
            return str(_bytes(value), "utf-8")
        case "base64":
            return base64.b64encode(_bytes(value)).decode()
        case "number" | "bool":
            if not isinstance(value, int):
                raise ValueError("bytes stand where there is a number")  # noqa: TRY004 - of the body, not of our types
            signed = value - (1 << 64) if value >= 1 << 63 else value
            return bool(signed) if shape == _BOOL else signed
        case _:
            return _message(_bytes(value), shape)


def _bytes(value: memoryview | int) -> memoryview:
    if isinstance(value, int):
        raise ValueError("a number stands where there are bytes")  # noqa: TRY004 - of the body, not of our types
    return value


def _fields(data: memoryview) -> Iterator[tuple[int, memoryview | int]]:
    """Yield number and value of each field; ValueError or IndexError where the bytes end before."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        kind = tag & 7
        if kind == _VARINT:
            value, at = _varint(data, at)
            yield tag >> 3, value
            continue
        if kind == _BYTES:
            size, at = _varint(data, at)
        elif kind in {_FIXED32, _FIXED64}:
            size = 4 if kind == _FIXED32 else 8
        else:
            raise ValueError(f"a field of wire type {kind}")
        if size > len(data) - at:
            raise ValueError("it ends in the middle of a field")
        yield tag >> 3, data[at : at + size]
        at += size


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(_VARINT_BYTES_MAX):
        byte = data[at + shift]
        value |= (byte & 0x7F) << (7 * shift)
        if byte < 0x80:
            return value, at + shift + 1
    raise ValueError("a number does not end")
