"""What a request asks for, from its path, method and query, in the words of RBAC. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from gatelift_sandbox.embedded.failures import RequestRefusedError, bad_request, method_not_allowed

_VERBS = {"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_NAMESPACE_OWN = frozenset({"status", "finalize"})
"""Subresources of a Namespace itself; any other third part of the path is a kind inside it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestInfo:
    """A request in RBAC's words. Where `plural` is empty it is about `path`, which is no resource."""

    path: str
    verb: str
    group: str = ""
    version: str = ""
    plural: str = ""
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def resource(self) -> str:
        """Return `pods` or `pods/status`, as RBAC rules name them."""
        return f"{self.plural}/{self.subresource}" if self.subresource else self.plural


def parse(method: str, path: str, query: Mapping[str, str]) -> RequestInfo:
    """Return what is asked for; ApiError 405 for a method that no resource knows."""
    parts = [unquote(part) for part in path.strip("/").split("/") if part]
    if parts[:1] == ["api"] and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[:1] == ["apis"] and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return RequestInfo(path=path, verb=method.lower())
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        if len(rest) > 2 and rest[2] not in _NAMESPACE_OWN:
            rest = rest[2:]
    plural, name, subresource = (*rest[:3], "", "", "")[:3]
    if plural != "namespaces" and len(rest) > 3:
        subresource = "/".join(rest[2:])
    verb = _verb(method, query, named=bool(name))
    if verb == "list":  # who may read one object by its name may list it by that, as a real API server decides
        name = _name_selected(query)
    return RequestInfo(
        path=path,
        verb=verb,
        group=group,
        version=version,
        plural=plural,
        namespace=namespace,
        name=name,
        subresource=subresource,
    )


def _verb(method: str, query: Mapping[str, str], *, named: bool) -> str:
    verb = _VERBS.get(method)
    if verb is None:
        raise method_not_allowed()
    if verb == "get" and flag(query, "watch"):
        return "watch"
    if not named:
        return {"get": "list", "delete": "deletecollection"}.get(verb, verb)
    return verb


def _name_selected(query: Mapping[str, str]) -> str:
    field, _, name = query.get("fieldSelector", "").replace("==", "=").partition("=")
    return name if field == "metadata.name" and "," not in name else ""


def flag(query: Mapping[str, str], name: str) -> bool:
    """Return whether a boolean parameter is set."""
    return query.get(name, "").lower() in ("1", "true")


def number(query: Mapping[str, str], name: str, most: int) -> int:
    """Return a parameter that is a number of at least 0, at most `most`, 0 where it is missing; ApiError 400."""
    text = query.get(name) or "0"
    if not text.isdigit():
        raise bad_request(f"{name}: {text!r} is not a number of at least 0")
    return min(int(text), most)


def version_of(query: Mapping[str, str]) -> int | None:
    """Return the resourceVersion asked for, None for none; ApiError 400 where it is no version."""
    text = query.get("resourceVersion", "")
    if not text:
        return None
    if not text.isdigit():
        raise RequestRefusedError(400, "BadRequest", f'Invalid value: "{text}": invalid resource version')
    return int(text)
