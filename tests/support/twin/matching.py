"""Whether pods may run on a flavor (2.5): taints it has, and selectors on labels it defines. Neighbour: `flavors`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gatelift_admission.values.model import PodSetDemand
from gatelift_kube.objects.core import Taint, Toleration
from gatelift_kube.objects.kueue import ResourceFlavor

EVALUATED_EFFECTS = ("NoSchedule", "NoExecute")


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Return whether one toleration covers one taint, as Kubernetes defines it (1.3)."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return bool(toleration.key) and toleration.value == taint.value


def untolerated(flavor: ResourceFlavor, pods: PodSetDemand) -> Taint | None:
    """Return the first evaluated taint that neither the pods nor the flavor itself tolerate (1.3, 2.5)."""
    tolerations = (*pods.tolerations, *flavor.spec.tolerations)
    for taint in flavor.spec.node_taints:
        if taint.effect in EVALUATED_EFFECTS and not any(tolerates(one, taint) for one in tolerations):
            return taint
    return None


def _terms(affinity: Mapping[str, Any] | None) -> list[Mapping[str, Any]]:
    node = (affinity or {}).get("nodeAffinity") or {}
    required = node.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    return list(required.get("nodeSelectorTerms") or [])


def _meets(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Return whether labels that define the key meet one expression; `DoesNotExist` cannot then."""
    value, values = labels[expression["key"]], list(expression.get("values") or [])
    match expression["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return True
        case "DoesNotExist":
            return False
        case "Gt":
            return int(value) > int(values[0])
        case "Lt":
            return int(value) < int(values[0])
        case other:
            raise ValueError(f"operator {other!r} is none of a node selector")


def _term_matches(expressions: Iterable[Mapping[str, Any]], labels: Mapping[str, str]) -> bool:
    return all(_meets(one, labels) for one in expressions if one["key"] in labels)


def affinity_matches(flavor: ResourceFlavor, pods: PodSetDemand) -> bool:
    """Return whether selectors and required affinity, cut down to the flavor's own keys, match its labels (2.5)."""
    labels = flavor.spec.node_labels
    if any(key in labels and labels[key] != value for key, value in pods.node_selector.items()):
        return False
    terms = _terms(pods.affinity)
    return not terms or any(_term_matches(term.get("matchExpressions") or (), labels) for term in terms)
