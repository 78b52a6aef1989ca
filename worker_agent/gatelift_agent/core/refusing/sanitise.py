"""Takes out of a spec what belongs to the management cluster, so that it can be created here.

A spec arrives as the management API server holds it: with that server's defaults, its admission plugins' additions and
its scheduler's decision. None of these may reach this cluster: they name nodes, tokens, priorities that mean something
else here. What the user wrote stays byte for byte. `policy` has already said that the spec is acceptable.
"""

from __future__ import annotations

from typing import Any

import msgspec

from gatelift_agent.core.refusing import allow_lists, podspecs
from gatelift_agent.core.refusing.podspecs import Json
from gatelift_agent.core.values.settings import Policy
from gatelift_kinds.kind import Kind

_SERVER_TOLERATIONS = frozenset({"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})
_SERVER_TOLERATION_SECONDS = 300
"""What the plugin DefaultTolerationSeconds adds unless told otherwise."""


def sanitise(kind: Kind[Any], content: bytes, policy: Policy) -> bytes:
    """Return the spec without the management cluster's additions; SpecError when it is no spec of that kind."""
    spec = podspecs.read(kind, content)
    for found in podspecs.pod_specs(kind, spec):
        _sanitise(found.spec, policy)
    return msgspec.json.encode(spec)


def _sanitise(pod_spec: Json, policy: Policy) -> None:
    pod_spec.pop("nodeName", None)
    pod_spec.pop("ephemeralContainers", None)  # refused in a create
    _drop_nulls(pod_spec)
    _drop_token_volumes(pod_spec)
    _drop_server_tolerations(pod_spec)
    _drop_priority(pod_spec)
    _map_service_account(pod_spec, policy)
    if pod_spec.get("runtimeClassName"):
        pod_spec.pop("overhead", None)  # from the RuntimeClass of the management cluster; this one has its own


def _drop_nulls(spec: Json) -> None:
    """Drop what is null: absent, for the API server as well, and the kinds need not think of it."""
    for name in [name for name, value in spec.items() if value is None]:
        del spec[name]


def _drop_token_volumes(spec: Json) -> None:
    names = {
        volume.get("name") for volume in podspecs.objects(spec, "volumes") if allow_lists.is_servers_volume(volume)
    }
    if not names:
        return
    _keep(spec, "volumes", [each for each in podspecs.objects(spec, "volumes") if each.get("name") not in names])
    for _, container in podspecs.containers("", spec):
        mounts = podspecs.objects(container, "volumeMounts")
        _keep(container, "volumeMounts", [each for each in mounts if each.get("name") not in names])


def _drop_server_tolerations(spec: Json) -> None:
    tolerations = podspecs.objects(spec, "tolerations")
    _keep(spec, "tolerations", [each for each in tolerations if not _is_server_toleration(each)])


def _is_server_toleration(toleration: Json) -> bool:
    return (
        toleration.get("key") in _SERVER_TOLERATIONS
        and toleration.get("operator") == "Exists"
        and toleration.get("effect") == "NoExecute"
        and toleration.get("tolerationSeconds") == _SERVER_TOLERATION_SECONDS
    )


def _drop_priority(spec: Json) -> None:
    """Drop the numbers that the Priority plugin computed; the class's name stays, `policy` has let it through."""
    spec.pop("priority", None)
    spec.pop("preemptionPolicy", None)
    if not spec.get("priorityClassName"):
        spec.pop("priorityClassName", None)


def _map_service_account(spec: Json, policy: Policy) -> None:
    name = spec.get("serviceAccountName") or spec.get("serviceAccount") or "default"
    spec.pop("serviceAccount", None)  # deprecated twin; the server sets it again
    spec["serviceAccountName"] = policy.service_accounts.get(name, name)


def _keep(parent: Json, name: str, items: list[Json]) -> None:
    if items:
        parent[name] = items
    else:
        parent.pop(name, None)
