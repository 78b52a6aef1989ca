"""What an API server and its admission plugins put into every pod spec, which its user never wrote. Pure.

It names tokens and priorities that mean something in that cluster alone, and the token's volume has a name of its own
in each pod: with it no two pods would be equal. What the user wrote stays byte for byte. Who takes it out: the agent,
of what it makes (`sanitise`), and the pod groups, before templates are compared or hashed.
"""

from __future__ import annotations

from gatelift_kinds.shared.json_parts import Json, inner, objects

CONTAINER_LISTS = ("initContainers", "containers", "ephemeralContainers")
_TOKEN_VOLUME_PREFIX = "kube-api-access-"  # noqa: S105 - a volume's name, as the ServiceAccount plugin makes it
_TOLERATIONS = frozenset({"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})
_TOLERATION_SECONDS = 300
"""What the plugin DefaultTolerationSeconds adds unless told otherwise."""


def is_token_volume(volume: Json) -> bool:
    """Return whether the ServiceAccount plugin of an API server added a volume: another server makes its own."""
    sources = objects(inner(volume, "projected"), "sources")
    named = str(volume.get("name", "")).startswith(_TOKEN_VOLUME_PREFIX)
    return named and any("serviceAccountToken" in source for source in sources)


def drop(spec: Json) -> None:
    """Take nulls, token volumes and their mounts, default tolerations and computed priorities out of a pod spec."""
    _drop_nulls(spec)
    _drop_token_volumes(spec)
    keep(spec, "tolerations", [each for each in objects(spec, "tolerations") if not _is_default(each)])
    _drop_priority(spec)


def keep(parent: Json, name: str, items: list[Json]) -> None:
    """Have these items in the list `name`, which is absent where there are none."""
    if items:
        parent[name] = items
    else:
        parent.pop(name, None)


def _drop_nulls(spec: Json) -> None:
    """Drop what is null: absent, for the API server as well, and the kinds need not think of it."""
    for name in [name for name, value in spec.items() if value is None]:
        del spec[name]


def _drop_token_volumes(spec: Json) -> None:
    names = {volume.get("name") for volume in objects(spec, "volumes") if is_token_volume(volume)}
    if not names:
        return
    keep(spec, "volumes", [each for each in objects(spec, "volumes") if each.get("name") not in names])
    for container in (each for field in CONTAINER_LISTS for each in objects(spec, field)):
        mounts = objects(container, "volumeMounts")
        keep(container, "volumeMounts", [each for each in mounts if each.get("name") not in names])


def _is_default(toleration: Json) -> bool:
    return (
        toleration.get("key") in _TOLERATIONS
        and toleration.get("operator") == "Exists"
        and toleration.get("effect") == "NoExecute"
        and toleration.get("tolerationSeconds") == _TOLERATION_SECONDS
    )


def _drop_priority(spec: Json) -> None:
    """Drop the numbers that the Priority plugin computed; the class's name stays."""
    spec.pop("priority", None)
    spec.pop("preemptionPolicy", None)
    if not spec.get("priorityClassName"):
        spec.pop("priorityClassName", None)
