"""What may be placed here: the worker's own word, deny by default. Pure checks of a spec and of a namespace.

Each refusal is one line: the field, the rule, the way out. All violations of a spec are named at once, up to a limit,
so that a user does not find them one attempt at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from gatelift_agent.core.refusing import allow_lists, pod_security, podspecs
from gatelift_agent.core.refusing.allow_lists import denied
from gatelift_agent.core.values import shapes
from gatelift_agent.core.values.settings import Policy
from gatelift_kinds.kind import Kind
from gatelift_kinds.shared import json_parts
from gatelift_kinds.shared.json_parts import Json
from gatelift_kube.objects.core import Namespace
from gatelift_wire.values.keys import LABEL_ACCEPT
from gatelift_wire.values.messages import PodSetRequest
from gatelift_wire.values.refusals import Refusal

VIOLATIONS_NAMED_MAX = 3
"""More than this in one condition message hides what matters."""


def namespace_refusal(name: str, namespace: Namespace | None, policy: Policy) -> tuple[Refusal, str] | None:
    """Return why no work is accepted in this namespace, None when it is. `namespace` None: it does not exist."""
    if policy.any_namespace:
        return None
    if name in policy.denied_namespaces:
        return (
            Refusal.NAMESPACE_NOT_ALLOWED,
            f"namespace {name}: denied by the agent's policy; use another namespace or change policy.deniedNamespaces",
        )
    if namespace is None:
        return Refusal.NAMESPACE_MISSING, f"namespace {name}: does not exist in this cluster; create it here"
    if namespace.metadata.deletion_timestamp is not None:
        return (
            Refusal.NAMESPACE_MISSING,
            f"namespace {name}: is being deleted in this cluster; wait and create it again",
        )
    if not accepts(namespace, policy):
        return (
            Refusal.NAMESPACE_NOT_ALLOWED,
            f"namespace {name}: does not accept work; label it {LABEL_ACCEPT}=true in this cluster",
        )
    return None


def accepts(namespace: Namespace, policy: Policy) -> bool:
    """Say whether the namespace is labelled as accepting work and not denied."""
    name = namespace.metadata.name
    return namespace.metadata.labels.get(LABEL_ACCEPT) == "true" and name not in policy.denied_namespaces


def spec_refusal(kind: Kind[Any], content: bytes, policy: Policy) -> tuple[Refusal, str] | None:
    """Return why an object with this spec may not be placed here, None when it may: every pod spec of it is judged."""
    try:
        document = podspecs.read(kind, content)
        every = podspecs.pod_specs(kind, document)
    except podspecs.SpecError as error:
        return Refusal.INVALID, str(error)
    problem = kind.spec_problem(document)
    if problem:
        return Refusal.INVALID, problem
    violations: list[str] = []
    for one in every:
        violations += _violations(one.path, one.spec, policy)
        where = f"{one.path.removesuffix('.spec')}.metadata.annotations"
        violations += pod_security.annotated(where, one.annotations, policy)
    return _refused(violations)


def marks_refusal(metadata: bytes, policy: Policy) -> tuple[Refusal, str] | None:
    """Return why an object with these labels and annotations may not be placed here. Raises ShapeError."""
    return _refused(list(pod_security.annotated("metadata.annotations", shapes.marks(metadata).annotations, policy)))


def additions_refusal(pod_sets: Iterable[PodSetRequest], policy: Policy) -> tuple[Refusal, str] | None:
    """Return why what checks add to pods may not be placed here; None when it may. Raises ShapeError."""
    found: list[str] = []
    for one in pod_sets:
        wanted = shapes.additions(one.additions)
        path = f"pod set {one.name}: additions"
        keyed = ({"key": each.key} for each in wanted.tolerations or ())
        found += allow_lists.tolerated(f"{path}.tolerations", keyed, policy)
        found += pod_security.annotated(f"{path}.annotations", wanted.annotations, policy)
    return _refused(found)


def _refused(found: list[str]) -> tuple[Refusal, str] | None:
    if not found:
        return None
    more = f" (and {len(found) - VIOLATIONS_NAMED_MAX} more)" if len(found) > VIOLATIONS_NAMED_MAX else ""
    return Refusal.POLICY, "; ".join(found[:VIOLATIONS_NAMED_MAX]) + more


def _violations(path: str, spec: Json, policy: Policy) -> Iterator[str]:
    yield from _identity_violations(path, spec, policy)
    for field, allowed, switch in (
        ("hostNetwork", policy.host_network, "policy.hostNetwork"),
        ("hostPID", policy.host_pid, "policy.hostPID"),
        ("hostIPC", policy.host_ipc, "policy.hostIPC"),
    ):
        if spec.get(field) and not allowed:
            yield denied(f"{path}.{field}", "sharing the node's namespaces", switch)
    if _runs_host_process(spec) and not policy.privileged:
        yield denied(f"{path}.securityContext.windowsOptions.hostProcess", "a host process", "policy.privileged")
    yield from allow_lists.violations(path, spec, policy)
    yield from pod_security.violations(path, spec, policy)
    for where, container in podspecs.containers(path, spec):
        yield from _container_violations(where, container, policy)


def _identity_violations(path: str, spec: Json, policy: Policy) -> Iterator[str]:
    account = spec.get("serviceAccountName") or spec.get("serviceAccount") or "default"
    if account not in policy.service_accounts:
        yield (
            f"{path}.serviceAccountName: service account {account} is not on the allow-list;"
            " use another or add it to policy.serviceAccounts in the agent's configuration"
        )
    priority_class = spec.get("priorityClassName")
    if priority_class and priority_class not in policy.priority_classes:
        yield (
            f"{path}.priorityClassName: priority class {priority_class} is not on the allow-list;"
            " remove it or add it to policy.priorityClasses in the agent's configuration"
        )


def _container_violations(where: str, container: Json, policy: Policy) -> Iterator[str]:
    context = json_parts.inner(container, "securityContext")
    if not policy.privileged:
        if context.get("privileged"):
            yield denied(f"{where}.securityContext.privileged", "a privileged container", "policy.privileged")
        if (context.get("procMount") or "Default") != "Default":
            yield denied(f"{where}.securityContext.procMount", "an unmasked /proc", "policy.privileged")
        if _runs_host_process(container):
            field = f"{where}.securityContext.windowsOptions.hostProcess"
            yield denied(field, "a host process", "policy.privileged")
    added = json_parts.inner(context, "capabilities").get("add")
    extra = sorted(str(name) for name in added if name not in policy.capabilities) if isinstance(added, list) else []
    if extra:
        field = f"{where}.securityContext.capabilities.add"
        yield (
            f"{field}: {', '.join(extra)} not on the allow-list;"
            " remove it or add it to policy.capabilities in the agent's configuration"
        )
    if not policy.host_ports and any(port.get("hostPort") for port in json_parts.objects(container, "ports")):
        yield denied(f"{where}.ports.hostPort", "a node's port", "policy.hostPorts")


def _runs_host_process(parent: Json) -> bool:
    return bool(json_parts.inner(json_parts.inner(parent, "securityContext"), "windowsOptions").get("hostProcess"))
