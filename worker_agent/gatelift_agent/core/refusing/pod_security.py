"""What Pod Security's level *Baseline* forbids besides sharing the node: loosened confinement of containers. Pure.

The lists are those of Kubernetes 1.36 (pod-security.kubernetes.io/enforce-version). Neighbour: `policy`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gatelift_agent.core.refusing import podspecs
from gatelift_agent.core.refusing.allow_lists import denied, is_on, not_on
from gatelift_agent.core.values.settings import Policy
from gatelift_kinds.shared import json_parts
from gatelift_kinds.shared.json_parts import Json

APPARMOR_ANNOTATION = "container.apparmor.security.beta.kubernetes.io/"
"""Prefix of the annotations by which a container's profile was named before Kubernetes 1.30, and still may be."""
_CONFINED = frozenset({"RuntimeDefault", "Localhost"})
_HOOKS = ("postStart", "preStop")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")


def violations(path: str, spec: Json, policy: Policy) -> Iterator[str]:
    """Yield what a pod spec loosens, one line each."""
    context = json_parts.inner(spec, "securityContext")
    yield from _context(f"{path}.securityContext", context, policy)
    for one in json_parts.objects(context, "sysctls"):
        name = str(one.get("name", ""))
        if not is_on(policy.sysctls, name):
            yield not_on(f"{path}.securityContext.sysctls", f"sysctl {name}", "sysctls")
    for where, container in podspecs.containers(path, spec):
        yield from _context(f"{where}.securityContext", json_parts.inner(container, "securityContext"), policy)
        yield from _hosts(where, container, policy)


def annotated(path: str, annotations: Mapping[str, Any] | None, policy: Policy) -> Iterator[str]:
    """Yield what annotations of a pod loosen."""
    for name, profile in (annotations or {}).items():
        if name.startswith(APPARMOR_ANNOTATION) and not _may_loosen(policy):
            confined = profile in {"", "runtime/default"} or str(profile).startswith("localhost/")
            if not confined:
                yield denied(f"{path}[{name}]", "a container without AppArmor's confinement", "policy.unconfined")


def _may_loosen(policy: Policy) -> bool:
    return policy.unconfined or policy.privileged


def _context(where: str, context: Json, policy: Policy) -> Iterator[str]:
    for field, what in (("seccompProfile", "seccomp's"), ("appArmorProfile", "AppArmor's")):
        profile = json_parts.inner(context, field).get("type")
        if profile is not None and profile not in _CONFINED and not _may_loosen(policy):
            yield denied(f"{where}.{field}.type", f"a container without {what} confinement", "policy.unconfined")
    options = json_parts.inner(context, "seLinuxOptions")
    kind = options.get("type")
    if kind and not is_on(policy.se_linux_types, str(kind)):
        yield not_on(f"{where}.seLinuxOptions.type", f"SELinux type {kind}", "seLinuxTypes")
    for field in ("user", "role"):
        if options.get(field) and not policy.privileged:
            yield denied(f"{where}.seLinuxOptions.{field}", f"an SELinux {field} of one's own", "policy.privileged")


def _hosts(where: str, container: Json, policy: Policy) -> Iterator[str]:
    """Yield probes and hooks that the kubelet sends to another host: it would look around the node's network."""
    lifecycle = json_parts.inner(container, "lifecycle")
    asked = [(name, json_parts.inner(container, name)) for name in _PROBES]
    asked += [(f"lifecycle.{name}", json_parts.inner(lifecycle, name)) for name in _HOOKS]
    for name, handler in asked:
        for way in ("httpGet", "tcpSocket"):
            host = json_parts.inner(handler, way).get("host")
            if host and not is_on(policy.probe_hosts, str(host)):
                yield not_on(f"{where}.{name}.{way}.host", f"host {host}", "probeHosts")
