"""Defaults and validation of a pod spec, as of a Pod or of the template in a Job. Pure."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any

from gatelift_sandbox.embedded import names
from gatelift_sandbox.embedded.documents import Document, items
from gatelift_sandbox.embedded.failures import BrokenRule, duplicate, required, unsupported, wrong

GRACE_SECONDS = 30
VOLUME_MODE = 420
RESTART_POLICIES = ("Always", "OnFailure", "Never")

_OMITTED_WHEN_EMPTY = (
    "schedulingGates",
    "nodeSelector",
    "tolerations",
    "initContainers",
    "volumes",
    "imagePullSecrets",
    "nodeName",
    "affinity",
    "overhead",
    "topologySpreadConstraints",
    "resourceClaims",
    "priorityClassName",
)
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_PROBE_DEFAULTS = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
_QUANTITY = re.compile(r"^([+-]?[0-9.]+)([eE][+-]?[0-9]+|[KMGTPE]i|[numkMGTPE]?)$")
_SCALE = {
    "n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"), "": Decimal(1),
    "k": Decimal(10**3), "M": Decimal(10**6), "G": Decimal(10**9), "T": Decimal(10**12), "P": Decimal(10**15),
    "E": Decimal(10**18), "Ki": Decimal(2**10), "Mi": Decimal(2**20), "Gi": Decimal(2**30), "Ti": Decimal(2**40),
    "Pi": Decimal(2**50), "Ei": Decimal(2**60),
}  # fmt: skip
QUANTITY_TEXT = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


@lru_cache(maxsize=4096)
def quantity(text: str | float) -> Decimal | None:
    """Return the amount that a Kubernetes quantity stands for, None if it is none."""
    found = _QUANTITY.match(str(text))
    if found is None:
        return None
    number, suffix = found.groups()
    try:
        return Decimal(number) * (Decimal(f"1{suffix}") if suffix[:1] in "eE" and suffix[1:] else _SCALE[suffix])
    except (InvalidOperation, KeyError):
        return None


def default_spec(spec: Document) -> None:
    """Fill in the defaults of a pod spec, in place."""
    for field, value in (
        ("restartPolicy", "Always"),
        ("terminationGracePeriodSeconds", GRACE_SECONDS),
        ("dnsPolicy", "ClusterFirst"),
        ("schedulerName", "default-scheduler"),
    ):
        if spec.get(field) in (None, ""):
            spec[field] = value
    for omitted in _OMITTED_WHEN_EMPTY:
        if omitted in spec and not spec[omitted]:
            del spec[omitted]
    if spec.get("securityContext") is None:
        spec["securityContext"] = {}
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    for container in items(spec, "initContainers") + items(spec, "containers"):
        _default_container(container, host_network=bool(spec.get("hostNetwork")))
    for volume in items(spec, "volumes"):
        _default_volume(volume)


def _default_container(container: Document, *, host_network: bool) -> None:
    if not container.get("imagePullPolicy"):
        container["imagePullPolicy"] = pull_policy(str(container.get("image") or ""))
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    if not isinstance(container.get("resources"), dict):
        container["resources"] = {}
    for port in items(container, "ports"):
        port.setdefault("protocol", "TCP")
        if host_network and "containerPort" in port:
            port.setdefault("hostPort", port["containerPort"])
    for variable in items(container, "env"):
        reference = (variable.get("valueFrom") or {}).get("fieldRef")
        if isinstance(reference, dict):
            reference.setdefault("apiVersion", "v1")
    for name in _PROBES:
        probe = container.get(name)
        if isinstance(probe, dict):
            for field, value in _PROBE_DEFAULTS.items():
                probe.setdefault(field, value)


def default_requests(spec: Document) -> None:
    """Let limits stand in for requests of a Pod that are not said, in place; templates are left as they are."""
    for container in items(spec, "initContainers") + items(spec, "containers"):
        resources = container["resources"]
        if resources.get("limits"):
            resources["requests"] = {**resources["limits"], **(resources.get("requests") or {})}


def pull_policy(image: str) -> str:
    """Return the pull policy of an image that has none: Always for `latest`, by name or by omission."""
    last = image.rpartition("/")[2]
    if "@" in last:
        return "IfNotPresent"
    tag = last.partition(":")[2]
    return "Always" if tag in ("", "latest") else "IfNotPresent"


_SOURCES = frozenset({"name"})


def _default_volume(volume: Document) -> None:
    if not volume.keys() - _SOURCES:
        volume["emptyDir"] = {}
    for source in ("secret", "configMap", "downwardAPI", "projected"):
        if isinstance(volume.get(source), dict):
            volume[source].setdefault("defaultMode", VOLUME_MODE)


def spec_errors(spec: Any, path: str) -> list[BrokenRule]:
    """Return the rules that a pod spec breaks."""
    if not isinstance(spec, dict):
        return [required(f"{path}.containers")]
    found: list[BrokenRule] = []
    if not spec.get("containers"):
        found.append(required(f"{path}.containers"))
    seen: set[str] = set()
    for field in ("initContainers", "containers"):
        for index, container in enumerate(items(spec, field)):
            found += _container_errors(container, f"{path}.{field}[{index}]", seen)
    if spec.get("restartPolicy") not in RESTART_POLICIES:
        found.append(unsupported(f"{path}.restartPolicy", spec.get("restartPolicy"), RESTART_POLICIES))
    grace = spec.get("terminationGracePeriodSeconds")
    if isinstance(grace, int) and grace < 0:
        found.append(wrong(f"{path}.terminationGracePeriodSeconds", grace, "must be greater than or equal to 0"))
    active = spec.get("activeDeadlineSeconds")
    if isinstance(active, int) and active < 1:
        found.append(wrong(f"{path}.activeDeadlineSeconds", active, "must be between 1 and 2147483647, inclusive"))
    found += names.label_errors(spec.get("nodeSelector"), f"{path}.nodeSelector")
    found += _gate_errors(spec, f"{path}.schedulingGates")
    return found + _volume_errors(spec, path)


def _gate_errors(spec: Document, path: str) -> list[BrokenRule]:
    found, seen = [], set()
    for index, gate in enumerate(items(spec, "schedulingGates")):
        name = str(gate.get("name") or "")
        if text := names.qualified_name(name):
            found.append(wrong(f"{path}[{index}]", name, text))
        if name in seen:
            found.append(duplicate(f"{path}[{index}]", name))
        seen.add(name)
    return found


def _container_errors(container: Document, path: str, seen: set[str]) -> list[BrokenRule]:
    found = []
    name = str(container.get("name") or "")
    if not name:
        found.append(required(f"{path}.name"))
    elif text := names.label_name(name):
        found.append(wrong(f"{path}.name", name, text))
    elif name in seen:
        found.append(duplicate(f"{path}.name", name))
    seen.add(name)
    if not container.get("image"):
        found.append(required(f"{path}.image"))
    for index, variable in enumerate(items(container, "env")):
        if not variable.get("name"):
            found.append(required(f"{path}.env[{index}].name"))
    return found + _resource_errors(container.get("resources") or {}, f"{path}.resources")


def _resource_errors(resources: Document, path: str) -> list[BrokenRule]:
    found = []
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    for field, amounts in (("limits", limits), ("requests", requests)):
        for name, text in amounts.items():
            amount = quantity(text)
            if amount is not None and amount < 0:
                found.append(wrong(f"{path}.{field}[{name}]", text, "must be greater than or equal to 0"))
            if problem := names.qualified_name(name):
                found.append(wrong(f"{path}.{field}", name, problem))
            elif "/" not in name and name not in _STANDARD and not name.startswith(("hugepages-", "requests.")):
                found.append(wrong(f"{path}.{field}", name, "must be a standard resource for containers"))
    for name, text in requests.items():
        asked, limit = quantity(text), quantity(limits[name]) if name in limits else None
        if asked is not None and limit is not None and asked > limit:
            found.append(
                wrong(f"{path}.requests", text, f"must be less than or equal to {name} limit of {limits[name]}")
            )
    return found


_STANDARD = frozenset({"cpu", "memory", "ephemeral-storage"})


def quantity_problem(spec: Any) -> str:
    """Return the first amount that is no quantity (the real server fails to decode it), or an empty text."""
    for container in items(spec, "initContainers") + items(spec, "containers") if isinstance(spec, dict) else ():
        resources = container.get("resources") or {}
        for amounts in (resources.get("limits"), resources.get("requests")):
            for text in (amounts or {}).values():
                if not isinstance(text, str | int | float) or isinstance(text, bool) or quantity(text) is None:
                    return QUANTITY_TEXT
    return ""


def _volume_errors(spec: Document, path: str) -> list[BrokenRule]:
    found, known = [], set()
    for index, volume in enumerate(items(spec, "volumes")):
        name = str(volume.get("name") or "")
        if not name:
            found.append(required(f"{path}.volumes[{index}].name"))
        elif name in known:
            found.append(duplicate(f"{path}.volumes[{index}].name", name))
        known.add(name)
    for field in ("initContainers", "containers"):
        for index, container in enumerate(items(spec, field)):
            for place, mount in enumerate(items(container, "volumeMounts")):
                if mount.get("name") not in known:
                    at = f"{path}.{field}[{index}].volumeMounts[{place}].name"
                    found.append(BrokenRule(at, "Not found", f'"{mount.get("name")}"'))
    return found


def quality(spec: Document) -> str:
    """Return the QoS class: Guaranteed, Burstable or BestEffort, from cpu and memory of all containers."""
    everything = items(spec, "initContainers") + items(spec, "containers")
    asked = [
        (resources.get("requests") or {}, resources.get("limits") or {})
        for resources in (container.get("resources") or {} for container in everything)
    ]
    computed = ("cpu", "memory")
    if not any(name in amounts and quantity(amounts[name]) for pair in asked for amounts in pair for name in computed):
        return "BestEffort"
    guaranteed = all(
        name in limits
        and quantity(limits[name])
        and quantity(requests.get(name, limits[name])) == quantity(limits[name])
        for requests, limits in asked
        for name in computed
    )
    return "Guaranteed" if guaranteed else "Burstable"
