"""Admission plugins that a real API server has built in and that our software meets. Pure; reads the store.

Before the webhooks: namespace life cycle, ServiceAccount, Priority, DefaultTolerationSeconds, in the real order.
"""

from __future__ import annotations

from typing import Protocol

from gatelift_kube.values import resources as known
from gatelift_sandbox.embedded.documents import Document, items, meta
from gatelift_sandbox.embedded.failures import RequestRefusedError, forbidden, not_found
from gatelift_sandbox.embedded.kinds import ServedKind

TOKEN_MOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105 (a path)
TOKEN_SECONDS = 3607
"""As the real plugin asks for: an hour and a little, so that kubelets renew in time."""
TOLERATION_SECONDS = 300
TOLERATED = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
UNDELETABLE = ("default", "kube-system", "kube-public")


class AdmissionReader(Protocol):
    """What admission sees of the store."""

    def look(self, storage: tuple[str, str], namespace: str, name: str) -> Document | None:
        """Return a copy of a stored object, None where there is none."""
        ...

    def look_all(self, storage: tuple[str, str]) -> list[Document]:
        """Return copies of all objects under a storage key."""
        ...

    def suffix(self) -> str:
        """Return five random letters, as generated names end with."""
        ...


def admit_create(store: AdmissionReader, kind: ServedKind, new: Document) -> None:
    """Change or refuse a new object; raises ApiError."""
    if kind.resource.namespaced:
        _namespace_lives(store, kind, new)
    if kind.storage == _POD:
        _service_account(store, kind, new)
        _priority(store, kind, new)
        _tolerations(new)


def admit_update(kind: ServedKind, new: Document, subresource: str) -> None:
    """Change a changed object as a new one; what was taken away may so come back."""
    if kind.storage == _POD and not subresource:
        _tolerations(new)


def admit_delete(kind: ServedKind, name: str) -> None:
    """Refuse to delete the namespaces that every cluster has; raises ApiError."""
    if kind.storage == _NAMESPACE and name in UNDELETABLE:
        raise forbidden(kind.resource, name, "this namespace may not be deleted")


_POD = ("", "pods")
_NAMESPACE = ("", "namespaces")


def _namespace_lives(store: AdmissionReader, kind: ServedKind, new: Document) -> None:
    name, namespace = meta(new).get("name", ""), meta(new)["namespace"]
    found = store.look(_NAMESPACE, "", namespace)
    if found is None:
        raise not_found(known.NAMESPACE, namespace)
    if meta(found).get("deletionTimestamp"):
        text = f"unable to create new content in namespace {namespace} because it is being terminated"
        cause = {
            "reason": "NamespaceTerminating",
            "message": f"namespace {namespace} is being terminated",
            "field": "metadata.namespace",
        }
        raise forbidden(kind.resource, name, text, [cause])


def _service_account(store: AdmissionReader, kind: ServedKind, pod: Document) -> None:
    spec, namespace = pod["spec"], meta(pod)["namespace"]
    name = spec.get("serviceAccountName") or "default"
    spec["serviceAccountName"] = spec["serviceAccount"] = name
    account = store.look(("", "serviceaccounts"), namespace, name)
    if account is None:
        text = f'error looking up service account {namespace}/{name}: serviceaccount "{name}" not found'
        raise forbidden(kind.resource, meta(pod).get("name", ""), text)
    if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
        spec["imagePullSecrets"] = account["imagePullSecrets"]
    wanted = spec.get("automountServiceAccountToken", account.get("automountServiceAccountToken"))
    if wanted is not False:
        _mount_token(store, spec)


def _mount_token(store: AdmissionReader, spec: Document) -> None:
    volumes = spec.get("volumes") or []
    known_volume = next((v["name"] for v in volumes if str(v.get("name", "")).startswith("kube-api-access-")), "")
    volume = known_volume or f"kube-api-access-{store.suffix()}"
    mounted = False
    for container in items(spec, "initContainers") + items(spec, "containers"):
        mounts = container.get("volumeMounts") or []
        if all(mount.get("mountPath") != TOKEN_MOUNT for mount in mounts):
            mounts.append({"name": volume, "readOnly": True, "mountPath": TOKEN_MOUNT})
            container["volumeMounts"] = mounts
            mounted = True
    if mounted and not known_volume:
        spec["volumes"] = [*volumes, {"name": volume, "projected": _token_sources()}]


def _token_sources() -> Document:
    namespace = {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
    return {
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": TOKEN_SECONDS, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [namespace]}},
        ],
        "defaultMode": 420,
    }


def _priority(store: AdmissionReader, kind: ServedKind, pod: Document) -> None:
    spec, storage = pod["spec"], ("scheduling.k8s.io", "priorityclasses")
    name = spec.get("priorityClassName")
    if name:
        found = store.look(storage, "", name)
        if found is None:
            raise forbidden(kind.resource, meta(pod).get("name", ""), f"no PriorityClass with name {name} was found")
    else:
        defaults = [each for each in store.look_all(storage) if each.get("globalDefault")]
        found = min(defaults, key=lambda each: (each["value"], meta(each)["name"]), default=None)
        if found is not None:
            spec["priorityClassName"] = meta(found)["name"]
    value = found.get("value", 0) if found is not None else 0
    given = spec.get("priority")
    if given is not None and given != value:
        text = (
            f"the integer value of priority ({given}) must not be provided in pod spec; priority admission controller"
            f" computed {value} from the given PriorityClass name"
        )
        raise RequestRefusedError(
            403, "Forbidden", f'pods "{meta(pod).get("name", "")}" is forbidden: {text}', {"kind": "pods"}
        )
    spec["priority"] = value
    policy = found.get("preemptionPolicy") if found is not None else None
    spec["preemptionPolicy"] = spec.get("preemptionPolicy") or policy or "PreemptLowerPriority"


def _tolerations(pod: Document) -> None:
    spec = pod["spec"]
    tolerations = items(spec, "tolerations")
    for key in TOLERATED:
        if not any(t.get("key") in (key, None, "") and t.get("effect") in ("NoExecute", None, "") for t in tolerations):
            tolerations.append(
                {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": TOLERATION_SECONDS}
            )
    spec["tolerations"] = tolerations
