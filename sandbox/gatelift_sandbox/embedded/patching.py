"""The three patch types: JSON merge patch (RFC 7386), JSON patch (RFC 6902), strategic merge patch. Pure."""

from __future__ import annotations

from typing import Any

from gatelift_sandbox.embedded.documents import Document, copied
from gatelift_sandbox.embedded.failures import RequestRefusedError, bad_request, unprocessable

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCHES = ("application/apply-patch+yaml", "application/apply-patch+cbor")

JSON_PATCH_OPERATIONS_MAX = 10_000
"""As the real API server: a longer patch is refused."""

MERGE_KEYS: dict[str, tuple[str, ...]] = {
    "containers": ("name",),
    "initContainers": ("name",),
    "ephemeralContainers": ("name",),
    "env": ("name",),
    "ports": ("containerPort", "port"),
    "volumes": ("name",),
    "volumeMounts": ("mountPath",),
    "volumeDevices": ("devicePath",),
    "imagePullSecrets": ("name",),
    "secrets": ("name",),
    "hostAliases": ("ip",),
    "topologySpreadConstraints": ("topologyKey",),
    "resourceClaims": ("name",),
    "schedulingGates": ("name",),
    "conditions": ("type",),
    "addresses": ("type",),
    "ownerReferences": ("uid",),
    "podIPs": ("ip",),
    "webhooks": ("name",),
}
"""List field → the key that tells its items apart (the first that an item has). Other lists are replaced whole."""
MERGED_PRIMITIVES = frozenset({"finalizers"})
"""Lists of texts that a strategic merge patch adds to."""

_END = "-"
"""The place after the last item of a list."""
_ORDER, _PRIMITIVES, _RETAIN, _DIRECTIVE = "$setElementOrder/", "$deleteFromPrimitiveList/", "$retainKeys", "$patch"


def merge(target: Any, patch: Any) -> Any:
    """Return `target` with a JSON merge patch; both may be changed on the way."""
    if not isinstance(patch, dict):
        return patch
    result = target if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge(result.get(key), value)
    return result


def json_patch(target: Document, operations: Any) -> Document:
    """Return `target` with a JSON patch; ApiError 422 where an operation cannot be carried out or a test fails."""
    if not isinstance(operations, list) or any(not isinstance(o, dict) for o in operations):
        raise bad_request("error decoding patch: a JSON patch is a list of operations")
    if len(operations) > JSON_PATCH_OPERATIONS_MAX:
        text = f"The allowed maximum operations in a JSON patch is {JSON_PATCH_OPERATIONS_MAX}, got {len(operations)}"
        raise RequestRefusedError(413, "RequestEntityTooLarge", text)
    root: Document = {"": target}  # so that the document itself has a parent
    for operation in operations:
        _operate(root, operation)
    result: Document = root[""]
    return result


def _operate(root: Document, operation: Document) -> None:
    name, path = operation.get("op"), str(operation.get("path", ""))
    match name:
        case "add" | "replace" | "test":
            if "value" not in operation and name != "test":
                raise unprocessable(f"{name} operation does not apply: doc is missing value: {path}")
            value = operation.get("value")
            {"add": _add, "replace": _replace, "test": _test}[name](root, path, value)
        case "remove":
            _remove(root, path)
        case "move" | "copy":
            source = str(operation.get("from", ""))
            value = _lookup(root, source, name)
            if name == "move":
                _remove(root, source)
            _add(root, path, copied({"": value})[""])
        case _:
            raise bad_request(f"Unexpected kind: {name}")


def _tokens(path: str) -> list[str]:
    if path and not path.startswith("/"):
        raise unprocessable(f"path {path!r} does not start with '/'")
    return [token.replace("~1", "/").replace("~0", "~") for token in path.split("/")]


def _parent(root: Document, path: str, operation: str) -> tuple[Any, str]:
    tokens = _tokens(path)
    found: Any = root
    for token in tokens[:-1]:
        found = _child(found, token, path, operation)
    return found, tokens[-1]


def _child(parent: Any, token: str, path: str, operation: str) -> Any:
    if isinstance(parent, dict) and token in parent:
        return parent[token]
    if isinstance(parent, list):
        return parent[_index(parent, token, path, len(parent) - 1)]
    raise unprocessable(f"{operation} operation does not apply: doc is missing path: {path}: missing value")


def _index(parent: list[Any], token: str, path: str, most: int) -> int:
    index = int(token) if token.isdigit() else -1
    if not 0 <= index <= most:
        raise unprocessable(f"Unable to access invalid index: {token}: {path} (of {len(parent)})")
    return index


def _lookup(root: Document, path: str, operation: str) -> Any:
    parent, token = _parent(root, path, operation)
    return _child(parent, token, path, operation)


def _add(root: Document, path: str, value: Any) -> None:
    parent, token = _parent(root, path, "add")
    if isinstance(parent, list):
        parent.insert(len(parent) if token == _END else _index(parent, token, path, len(parent)), value)
    elif isinstance(parent, dict):
        parent[token] = value
    else:
        raise unprocessable(f"add operation does not apply: doc is missing path: {path}: missing value")


def _replace(root: Document, path: str, value: Any) -> None:
    parent, token = _parent(root, path, "replace")
    _child(parent, token, path, "replace")
    if isinstance(parent, list):
        parent[_index(parent, token, path, len(parent) - 1)] = value
    else:
        parent[token] = value


def _remove(root: Document, path: str) -> None:
    parent, token = _parent(root, path, "remove")
    _child(parent, token, path, "remove")
    if isinstance(parent, list):
        del parent[_index(parent, token, path, len(parent) - 1)]
    else:
        del parent[token]


def _test(root: Document, path: str, value: Any) -> None:
    try:
        found = _lookup(root, path, "test")
    except RequestRefusedError:
        if value is None:
            return  # RFC 6902 would refuse; the library of the real API server takes a missing value for null
        raise unprocessable(f"testing path {path} value failed: test failed") from None
    if found != value or isinstance(found, bool) is not isinstance(value, bool):
        raise unprocessable(f"testing path {path} value failed: test failed")


def strategic(target: Document, patch: Document) -> Document:
    """Return `target` with a strategic merge patch; both may be changed on the way."""
    return _strategic_object(target, patch)


def _strategic_object(target: Any, patch: Document) -> Document:
    directive = patch.pop(_DIRECTIVE, None)
    if directive == "replace":
        return patch
    if directive == "delete":
        return {}
    result = target if isinstance(target, dict) else {}
    retained = patch.pop(_RETAIN, None)
    orders = {key.removeprefix(_ORDER): patch.pop(key) for key in list(patch) if key.startswith(_ORDER)}
    for key, value in patch.items():
        if key.startswith(_PRIMITIVES):
            field = key.removeprefix(_PRIMITIVES)
            result[field] = [item for item in result.get(field) or [] if item not in value]
        elif value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            result[key] = _strategic_object(result.get(key), value)
        elif isinstance(value, list):
            result[key] = _strategic_list(key, result.get(key) or [], value)
        else:
            result[key] = value
    for field, order in orders.items():
        if isinstance(result.get(field), list):
            result[field] = _ordered(field, result[field], order)
    if isinstance(retained, list):
        result = {key: value for key, value in result.items() if key in retained}
    return result


def _strategic_list(field: str, target: list[Any], patch: list[Any]) -> list[Any]:
    if field in MERGED_PRIMITIVES:
        return target + [item for item in patch if item not in target]
    if field not in MERGE_KEYS or any(not isinstance(item, dict) for item in patch):
        return patch
    if any(item.get(_DIRECTIVE) == "replace" and _merge_key(field, item) is None for item in patch):
        return [item for item in patch if _DIRECTIVE not in item]
    result = list(target)
    for item in patch:
        key = _merge_key(field, item)
        if key is None:
            raise bad_request(f"map: {item} does not contain declared merge key: {MERGE_KEYS[field][0]}")
        places = [i for i, there in enumerate(result) if isinstance(there, dict) and there.get(key) == item[key]]
        if item.get(_DIRECTIVE) == "delete":
            result = [there for i, there in enumerate(result) if i not in places]
        elif places:
            result[places[0]] = _strategic_object(result[places[0]], item)
        else:
            result.append(_strategic_object({}, item))
    return result


def _merge_key(field: str, item: Document) -> str | None:
    return next((key for key in MERGE_KEYS[field] if key in item), None)


def _ordered(field: str, result: list[Any], order: list[Any]) -> list[Any]:
    """Put items in the order given; items that it does not name keep their place after the item before them."""
    if field in MERGED_PRIMITIVES:
        ranks: dict[Any, int] = {value: rank for rank, value in enumerate(order)}
        identities = list(result)
    elif field in MERGE_KEYS:
        keys = [_merge_key(field, item) for item in order]
        ranks = {item[key]: rank for rank, (item, key) in enumerate(zip(order, keys, strict=True)) if key}
        identities = [item.get(_merge_key(field, item) or "") for item in result]
    else:
        return result
    placed, last = [], -1
    for position, (item, identity) in enumerate(zip(result, identities, strict=True)):
        last = ranks.get(identity, last)
        placed.append((last, position, item))
    return [item for _, _, item in sorted(placed, key=lambda entry: entry[:2])]
