"""What of a cluster a pod may name: volumes, Secrets, claims, tolerations, scheduler, runtime class. Pure.

A list has names, and beginnings of names that end in `*`. Neighbour: `policy`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gatelift_agent.core.refusing import podspecs
from gatelift_agent.core.values.settings import ANY, Policy
from gatelift_kinds.shared import json_parts
from gatelift_kinds.shared.json_parts import Json
from gatelift_kinds.shared.server_additions import is_token_volume

NODES_OWN = ("node-role.", "node.kubernetes.io/")
"""Keys of taints that keep pods from control planes, and from nodes in trouble: `*` does not cover them."""
_FROM_TROUBLE = frozenset({"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})
_TROUBLE_SECONDS_MAX = 300
"""What every pod gets of these two: to leave a node in trouble sooner is nobody's harm."""
_NAMES_A_SECRET = ("secretRef", "nodePublishSecretRef")


def is_on(names: Iterable[str], name: str) -> bool:
    """Return whether a name is on a list: as it is, or by a beginning that ends in `*`."""
    return any(one == name or (one.endswith("*") and name.startswith(one[:-1])) for one in names)


def not_on(field: str, what: str, setting: str) -> str:
    """Return the line for what is not on a list."""
    return (
        f"{field}: {what} is not on the allow-list; use another or add it to policy.{setting} in the agent's "
        "configuration"
    )


def denied(field: str, what: str, switch: str) -> str:
    """Return the line for what a switch denies."""
    return f"{field}: {what} is denied by default; remove it or set {switch}: true in the agent's configuration"


def violations(path: str, spec: Json, policy: Policy) -> Iterator[str]:
    """Yield what a pod spec names that is on no list, one line each."""
    for field, allowed, what, setting in (
        ("schedulerName", policy.schedulers, "scheduler", "schedulers"),
        ("runtimeClassName", policy.runtime_classes, "runtime class", "runtimeClasses"),
    ):
        name = spec.get(field)
        if name and not is_on(allowed, str(name)):
            yield not_on(f"{path}.{field}", f"{what} {name}", setting)
    yield from tolerated(f"{path}.tolerations", json_parts.objects(spec, "tolerations"), policy)
    for volume in json_parts.objects(spec, "volumes"):
        if not is_token_volume(volume):
            yield from _volume(f"{path}.volumes[{volume.get('name', '')}]", volume, policy)
    for one in json_parts.objects(spec, "imagePullSecrets"):
        if not is_on(policy.image_pull_secrets, str(one.get("name", ""))):
            yield not_on(f"{path}.imagePullSecrets", f"Secret {one.get('name', '')}", "imagePullSecrets")
    for where, container in podspecs.containers(path, spec):
        named = [json_parts.inner(one, "secretRef") for one in json_parts.objects(container, "envFrom")]
        values = [json_parts.inner(one, "valueFrom") for one in json_parts.objects(container, "env")]
        named += [json_parts.inner(one, "secretKeyRef") for one in values]
        yield from _secrets(f"{where}.env", (one.get("name") for one in named), policy)


def tolerated(path: str, tolerations: Iterable[Json], policy: Policy) -> Iterator[str]:
    """Yield tolerations that are on no list; what an API server gives to every pod by itself is no matter."""
    for one in tolerations:
        key = one.get("key") or ""
        if not key:
            if not policy.tolerate_all:
                yield denied(path, "a toleration without a key, which is of every taint,", "policy.tolerateAll")
        elif not (_leaves_in_time(one) or _is_tolerable(str(key), policy)):
            yield not_on(path, f"key {key}", "tolerations")


def _leaves_in_time(toleration: Json) -> bool:
    seconds = toleration.get("tolerationSeconds")
    in_time = isinstance(seconds, int) and seconds <= _TROUBLE_SECONDS_MAX
    return in_time and toleration.get("key") in _FROM_TROUBLE and toleration.get("effect") == "NoExecute"


def _is_tolerable(key: str, policy: Policy) -> bool:
    lists = policy.tolerations - {ANY} if key.startswith(NODES_OWN) else policy.tolerations
    return is_on(lists, key)


def _volume(where: str, volume: Json, policy: Policy) -> Iterator[str]:
    for kind, source in volume.items():
        if kind == "name" or source is None:
            continue
        if kind == "hostPath":
            if not policy.host_path:
                yield denied(f"{where}.hostPath", "a node's directory", "policy.hostPath")
            continue
        if kind not in policy.volumes:
            yield not_on(f"{where}.{kind}", f"volume type {kind}", "volumes")
        if isinstance(source, dict):
            yield from _source(f"{where}.{kind}", kind, source, policy)


def _source(where: str, kind: str, source: Json, policy: Policy) -> Iterator[str]:
    if kind == "persistentVolumeClaim":
        name = str(source.get("claimName", ""))
        if not is_on(policy.persistent_volume_claims, name):
            yield not_on(f"{where}.claimName", f"claim {name}", "persistentVolumeClaims")
    named = [source.get("secretName"), *(json_parts.inner(source, field).get("name") for field in _NAMES_A_SECRET)]
    yield from _secrets(where, named, policy)
    for one in json_parts.objects(source, "sources"):
        for of in one:
            if of not in policy.volumes:
                yield not_on(f"{where}.sources.{of}", f"volume type {of}", "volumes")
        yield from _secrets(f"{where}.sources", [json_parts.inner(one, "secret").get("name")], policy)


def _secrets(where: str, names: Iterable[object], policy: Policy) -> Iterator[str]:
    for name in names:
        if name and not is_on(policy.secrets, str(name)):
            yield not_on(where, f"Secret {name}", "secrets")
