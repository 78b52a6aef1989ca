"""What clients ask first: which groups, versions and kinds are served, in the legacy and the aggregated form. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from gatelift_sandbox.embedded.documents import Document
from gatelift_sandbox.embedded.failures import no_such_path
from gatelift_sandbox.embedded.kinds import KindTable, ServedKind
from gatelift_sandbox.embedded.reviews import REVIEWS

GIT_VERSION = "v1.36.3-embedded"
VERSION: Document = {
    "major": "1",
    "minor": "36",
    "gitVersion": GIT_VERSION,
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "python",
}
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
_SUBRESOURCE_VERBS = {"binding": ("create",), "token": ("create",), "finalize": ("update",)}
_SUBRESOURCE_KINDS = {
    "binding": ("", "v1", "Binding"),
    "token": ("authentication.k8s.io", "v1", "TokenRequest"),
}


def _groups(kinds: KindTable) -> dict[str, dict[str, list[ServedKind]]]:
    """Return group → version → kinds, in the order in which they are served; review groups are there too."""
    found: dict[str, dict[str, list[ServedKind]]] = {}
    for each in kinds:
        found.setdefault(each.resource.group, {}).setdefault(each.resource.version, []).append(each)
    for review in REVIEWS:
        found.setdefault(review.group, {}).setdefault(review.version, [])
    return found


def _version_order(version: str) -> tuple[int, str]:
    """Order v1 before v1beta2 before v1beta1 before v1alpha1."""
    rank = 2 if "alpha" in version else 1 if "beta" in version else 0
    digits = "".join(letter for letter in version.rpartition("a" if rank else "v")[2] if letter.isdigit())
    return rank, f"{999 - int(digits or 0):03}"


def aggregated(kinds: KindTable, *, core: bool, version: str) -> Document:
    """Return the aggregated form (`apidiscovery.k8s.io`) of `/api` or `/apis`."""
    groups = [
        {
            "metadata": {"name": group, "creationTimestamp": None},
            "versions": [
                {
                    "version": served,
                    "resources": [_discovered(each) for each in versions[served]] + _discovered_reviews(group),
                    "freshness": "Current",
                }
                for served in sorted(versions, key=_version_order)
            ],
        }
        for group, versions in _groups(kinds).items()
        if (group == "") is core
    ]
    api_version = f"apidiscovery.k8s.io/{version}"
    return {"kind": "APIGroupDiscoveryList", "apiVersion": api_version, "metadata": {}, "items": groups}


def _gvk(kind: ServedKind, subresource: str = "") -> Document:
    resource = kind.resource
    group, version, name = _SUBRESOURCE_KINDS.get(subresource, (resource.group, resource.version, resource.kind))
    return {"group": group, "version": version, "kind": name}


def _discovered(kind: ServedKind) -> Document:
    found: Document = {
        "resource": kind.resource.plural,
        "responseKind": _gvk(kind),
        "scope": "Namespaced" if kind.resource.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": list(kind.verbs),
    }
    if kind.short_names:
        found["shortNames"] = list(kind.short_names)
    if kind.categories:
        found["categories"] = list(kind.categories)
    if kind.subresources:
        found["subresources"] = [
            {"subresource": name, "responseKind": _gvk(kind, name), "verbs": list(_verbs(name))}
            for name in sorted(kind.subresources)
        ]
    return found


def _verbs(subresource: str) -> Iterable[str]:
    return _SUBRESOURCE_VERBS.get(subresource, ("get", "patch", "update"))


def _discovered_reviews(group: str) -> list[Document]:
    return [
        {
            "resource": review.plural,
            "responseKind": {"group": group, "version": review.version, "kind": review.kind},
            "scope": "Namespaced" if review.namespaced else "Cluster",
            "singularResource": review.kind.lower(),
            "verbs": ["create"],
        }
        for review in REVIEWS
        if review.group == group
    ]


def api_versions(server: str) -> Document:
    """Return the legacy form of `/api`."""
    addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": server}]
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses}


def group_list(kinds: KindTable) -> Document:
    """Return the legacy form of `/apis`."""
    groups = [_group(name, versions) for name, versions in _groups(kinds).items() if name]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def group(kinds: KindTable, name: str) -> Document:
    """Return `/apis/GROUP`; ApiError 404."""
    versions = _groups(kinds).get(name)
    if not name or versions is None:
        raise no_such_path()
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions)}


def _group(name: str, versions: dict[str, list[ServedKind]]) -> Document:
    ordered = [
        {"groupVersion": f"{name}/{version}", "version": version} for version in sorted(versions, key=_version_order)
    ]
    return {"name": name, "versions": ordered, "preferredVersion": ordered[0]}


def resource_list(kinds: KindTable, name: str, version: str) -> Document:
    """Return `/apis/GROUP/VERSION` or `/api/v1`; ApiError 404."""
    found = _groups(kinds).get(name, {}).get(version)
    if found is None:
        raise no_such_path()
    resources = [entry for each in found for entry in _listed(each)]
    resources += [
        {
            "name": review.plural,
            "singularName": review.kind.lower(),
            "namespaced": review.namespaced,
            "kind": review.kind,
            "verbs": ["create"],
        }
        for review in REVIEWS
        if (review.group, review.version) == (name, version)
    ]
    group_version = f"{name}/{version}" if name else version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources}


def _listed(kind: ServedKind) -> list[Document]:
    own: Document = {
        "name": kind.resource.plural,
        "singularName": kind.singular,
        "namespaced": kind.resource.namespaced,
        "kind": kind.resource.kind,
        "verbs": list(kind.verbs),
    }
    if kind.short_names:
        own["shortNames"] = list(kind.short_names)
    if kind.categories:
        own["categories"] = list(kind.categories)
    return [own] + [
        {
            "name": f"{kind.resource.plural}/{name}",
            "singularName": "",
            "namespaced": kind.resource.namespaced,
            **_gvk(kind, name),
            "verbs": list(_verbs(name)),
        }
        for name in sorted(kind.subresources)
    ]
