"""Who may do what: Roles, ClusterRoles and their bindings, evaluated as the RBAC authorizer does. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from gatelift_sandbox.embedded.documents import Document, at, items, meta
from gatelift_sandbox.embedded.requests import RequestInfo
from gatelift_sandbox.embedded.selection import label_match, selector_of

RBAC = "rbac.authorization.k8s.io"
MASTERS, AUTHENTICATED, UNAUTHENTICATED = "system:masters", "system:authenticated", "system:unauthenticated"
ANONYMOUS = "system:anonymous"
ACCOUNT_PREFIX = "system:serviceaccount:"


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """Who sends a request."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: dict[str, list[str]] = field(default_factory=dict)

    def info(self) -> Document:
        """Return the userInfo of reviews."""
        found: Document = {"username": self.name, "groups": list(self.groups)}
        if self.uid:
            found["uid"] = self.uid
        if self.extra:
            found["extra"] = self.extra
        return found


class RbacReader(Protocol):
    """What RBAC sees of the store."""

    def look(self, storage: tuple[str, str], namespace: str, name: str) -> Document | None:
        """Return a copy of a stored object, None where there is none."""
        ...

    def look_all(self, storage: tuple[str, str]) -> list[Document]:
        """Return copies of all objects under a storage key."""
        ...


def account(namespace: str, name: str, uid: str = "") -> User:
    """Return the user that a ServiceAccount is."""
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", AUTHENTICATED)
    return User(name=f"{ACCOUNT_PREFIX}{namespace}:{name}", groups=groups, uid=uid)


def allowed(store: RbacReader, user: User, request: RequestInfo) -> bool:
    """Return whether a rule that is bound to the user allows the request. The group system:masters may do all."""
    if MASTERS in user.groups:
        return True
    for binding in store.look_all((RBAC, "clusterrolebindings")):
        if _names(binding, user, "") and any(_covers(r, request) for r in _rules(store, binding, "")):
            return True
    if not request.namespace:
        return False
    for binding in store.look_all((RBAC, "rolebindings")):
        namespace = meta(binding)["namespace"]
        bound = namespace == request.namespace and _names(binding, user, namespace)
        if bound and any(_covers(rule, request) for rule in _rules(store, binding, namespace)):
            return True
    return False


def _names(binding: Document, user: User, namespace: str) -> bool:
    for subject in items(binding, "subjects"):
        name = subject.get("name")
        match subject.get("kind"):
            case "User" if name == user.name:
                return True
            case "Group" if name in user.groups:
                return True
            case "ServiceAccount":
                whose = subject.get("namespace") or namespace
                if user.name == f"{ACCOUNT_PREFIX}{whose}:{name}":
                    return True
            case _:
                pass
    return False


def _rules(store: RbacReader, binding: Document, namespace: str) -> list[Document]:
    reference = binding.get("roleRef") or {}
    if reference.get("kind") == "Role":
        role = store.look((RBAC, "roles"), namespace, str(reference.get("name")))
        return items(role, "rules") if role is not None else []
    role = store.look((RBAC, "clusterroles"), "", str(reference.get("name")))
    if role is None:
        return []
    selectors = [selector_of(each) for each in items(role, "aggregationRule", "clusterRoleSelectors")]
    if not selectors:
        return items(role, "rules")
    return [
        rule
        for each in store.look_all((RBAC, "clusterroles"))
        if any(label_match(selector, meta(each).get("labels") or {}) for selector in selectors)
        for rule in items(each, "rules")
    ]


def _covers(rule: Document, request: RequestInfo) -> bool:
    if not _has(rule.get("verbs"), request.verb):
        return False
    if not request.plural:
        return any(_path_fits(str(path), request.path) for path in rule.get("nonResourceURLs") or ())
    if not _has(rule.get("apiGroups"), request.group) or not _resource_fits(rule.get("resources") or (), request):
        return False
    named = rule.get("resourceNames")
    return not named or request.name in named


def _has(values: Iterable[str] | None, wanted: str) -> bool:
    return any(value in ("*", wanted) for value in values or ())


def _resource_fits(resources: Iterable[str], request: RequestInfo) -> bool:
    return any(
        each in ("*", request.resource) or (request.subresource and each == f"*/{request.subresource}")
        for each in resources
    )


def _path_fits(pattern: str, path: str) -> bool:
    return pattern in ("*", path) or (pattern.endswith("*") and path.startswith(pattern[:-1]))


def refusal(user: User, request: RequestInfo) -> str:
    """Return the text of the refusal, as kubectl shows it."""
    if not request.plural:
        return f'User "{user.name}" cannot {request.verb} path "{request.path}"'
    scope = f'in the namespace "{request.namespace}"' if request.namespace else "at the cluster scope"
    where = f'API group "{request.group}" {scope}'
    return f'User "{user.name}" cannot {request.verb} resource "{request.resource}" in {where}'


def bootstrap() -> list[tuple[str, Document]]:
    """Return the roles and bindings that a new cluster has, as (plural, object)."""
    every: Document = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
    read = ["/healthz", "/livez", "/readyz", "/version", "/version/"]
    discover = [*read, "/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*"]
    reviews = ["selfsubjectaccessreviews", "selfsubjectrulesreviews"]
    roles: dict[str, tuple[list[Document], str]] = {
        "cluster-admin": ([every, {"nonResourceURLs": ["*"], "verbs": ["*"]}], MASTERS),
        "system:discovery": ([{"nonResourceURLs": discover, "verbs": ["get"]}], AUTHENTICATED),
        "system:basic-user": (
            [
                {"apiGroups": ["authorization.k8s.io"], "resources": reviews, "verbs": ["create"]},
                {"apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"], "verbs": ["create"]},
            ],
            AUTHENTICATED,
        ),
        "system:public-info-viewer": ([{"nonResourceURLs": read, "verbs": ["get"]}], UNAUTHENTICATED),
    }
    found: list[tuple[str, Document]] = []
    for name, (rules, group) in roles.items():
        found.append(("clusterroles", {"metadata": {"name": name}, "rules": rules}))
        subjects = [{"kind": "Group", "apiGroup": RBAC, "name": group}]
        reference = {"apiGroup": RBAC, "kind": "ClusterRole", "name": name}
        found.append(("clusterrolebindings", {"metadata": {"name": name}, "subjects": subjects, "roleRef": reference}))
    return found


def review_request(attributes: Document, path: Document | None) -> RequestInfo:
    """Return the request that a SubjectAccessReview asks about."""
    if path is not None:
        return RequestInfo(path=str(path.get("path", "")), verb=str(path.get("verb", "")))
    return RequestInfo(
        path="",
        verb=str(attributes.get("verb") or ""),
        group=str(attributes.get("group") or ""),
        version=str(attributes.get("version") or ""),
        plural=str(attributes.get("resource") or ""),
        subresource=str(attributes.get("subresource") or ""),
        namespace=str(attributes.get("namespace") or ""),
        name=str(at(attributes, "name") or ""),
    )
