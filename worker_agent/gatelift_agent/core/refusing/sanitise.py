"""Takes out of a spec what belongs to the management cluster, so that it can be created here.

A spec arrives as the management API server holds it: with that server's defaults, its admission plugins' additions and
its scheduler's decision. None of these may reach this cluster: they name nodes, tokens, priorities that mean something
else here. What the user wrote stays byte for byte. `policy` has already said that the spec is acceptable.
"""

from __future__ import annotations

from typing import Any

import msgspec

from gatelift_agent.core.refusing import podspecs
from gatelift_agent.core.values.settings import Policy
from gatelift_kinds.kind import Kind
from gatelift_kinds.shared import server_additions
from gatelift_kinds.shared.json_parts import Json


def sanitise(kind: Kind[Any], content: bytes, policy: Policy) -> bytes:
    """Return the spec without the management cluster's additions; SpecError when it is no spec of that kind."""
    spec = podspecs.read(kind, content)
    for found in podspecs.pod_specs(kind, spec):
        _sanitise(found.spec, policy)
    return msgspec.json.encode(spec)


def _sanitise(pod_spec: Json, policy: Policy) -> None:
    pod_spec.pop("nodeName", None)
    pod_spec.pop("ephemeralContainers", None)  # refused in a create
    server_additions.drop(pod_spec)
    _map_service_account(pod_spec, policy)
    if pod_spec.get("runtimeClassName"):
        pod_spec.pop("overhead", None)  # from the RuntimeClass of the management cluster; this one has its own


def _map_service_account(spec: Json, policy: Policy) -> None:
    name = spec.get("serviceAccountName") or spec.get("serviceAccount") or "default"
    spec.pop("serviceAccount", None)  # deprecated twin; the server sets it again
    spec["serviceAccountName"] = policy.service_accounts.get(name, name)
