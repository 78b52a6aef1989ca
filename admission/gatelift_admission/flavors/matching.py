"""Does a flavor suit a pod set: taints and tolerations, node selector and required node affinity, label selectors.

Only keys that the flavor's own nodeLabels define are looked at, as in Kueue: a selector on another key never
excludes a flavor. Also namespace selectors of ClusterQueues. Neighbour: `flavors`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from gatelift_admission import texts
from gatelift_admission.values.model import PodSetDemand
from gatelift_kube.objects.core import Taint, Toleration
from gatelift_kube.objects.kueue import ResourceFlavor
from gatelift_kube.objects.meta import LabelSelector
from gatelift_kube.values.numbers import signed

_EVALUATED_EFFECTS: Final = frozenset({"NoSchedule", "NoExecute"})


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Return whether one toleration tolerates one taint (core/v1 rules; unknown operators tolerate nothing)."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in {"", "Equal"} and bool(toleration.key) and toleration.value == taint.value


def untolerated(taints: Iterable[Taint], tolerations: Iterable[Toleration]) -> Taint | None:
    """Return the first taint that nothing tolerates; PreferNoSchedule never excludes."""
    known = tuple(tolerations)
    for taint in taints:
        if taint.effect in _EVALUATED_EFFECTS and not any(tolerates(toleration, taint) for toleration in known):
            return taint
    return None


def requirement_holds(operator: str, values: list[str], labels: Mapping[str, str], key: str) -> bool:
    """Evaluate one node selector requirement against labels; an unknown operator never holds."""
    present = key in labels
    if operator == "In":
        return present and labels[key] in values
    if operator == "NotIn":
        return not present or labels[key] not in values
    if operator == "Exists":
        return present
    if operator == "DoesNotExist":
        return not present
    if operator in {"Gt", "Lt"} and present and len(values) == 1:
        actual, bound = signed(labels[key]), signed(values[0])
        if actual is None or bound is None:
            return False
        return actual > bound if operator == "Gt" else actual < bound
    return False


def affinity_matches(pod_set: PodSetDemand, labels: Mapping[str, str]) -> bool:
    """Return whether node selector and required affinity allow a node with `labels`, on keys of `labels` only."""
    if any(labels.get(key, value) != value for key, value in pod_set.node_selector.items()):
        return False
    terms = _required_terms(pod_set.affinity)
    return not terms or any(_term_matches(term, labels) for term in terms)


def _required_terms(affinity: dict[str, Any] | None) -> list[Any]:
    """Return the terms of an affinity as somebody wrote it: nothing holds a template's content to a schema."""
    required = _part(_part(affinity, "nodeAffinity"), "requiredDuringSchedulingIgnoredDuringExecution")
    return _list(required, "nodeSelectorTerms")


def _term_matches(term: Any, labels: Mapping[str, str]) -> bool:
    """Return whether labels match; what is no requirement matches nothing, as no node would."""
    return all(isinstance(one, dict) and _expression_holds(one, labels) for one in _list(term, "matchExpressions"))


def _expression_holds(one: dict[str, Any], labels: Mapping[str, str]) -> bool:
    key = one.get("key")
    if not isinstance(key, str):
        return False
    values = [value for value in _list(one, "values") if isinstance(value, str)]
    return key not in labels or requirement_holds(str(one.get("operator", "")), values, labels, key)


def _part(document: Any, name: str) -> Any:
    return document.get(name) if isinstance(document, dict) else None


def _list(document: Any, name: str) -> list[Any]:
    found = _part(document, name)
    return found if isinstance(found, list) else []


def flavor_objection(flavor: ResourceFlavor, pod_set: PodSetDemand) -> str | None:
    """Return the message why `flavor` cannot serve `pod_set`, None if it can."""
    name = flavor.metadata.name
    if flavor.spec.node_taints:
        taint = untolerated(flavor.spec.node_taints, (*pod_set.tolerations, *flavor.spec.tolerations))
        if taint is not None:
            return texts.untolerated_taint(taint.key, taint.value, taint.effect, name)
    labels = flavor.spec.node_labels
    if labels and (pod_set.node_selector or pod_set.affinity) and not affinity_matches(pod_set, labels):
        return texts.affinity_mismatch(name)
    return None


def selector_matches(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """Return whether `labels` are selected: None selects nothing, an empty selector everything."""
    if selector is None:
        return False
    if not selector.match_labels and not selector.match_expressions:
        return True
    if any(labels.get(key) != value for key, value in selector.match_labels.items()):
        return False
    return all(
        requirement_holds(one.operator, list(one.values), labels, one.key)
        for one in selector.match_expressions
        if one.operator not in {"Gt", "Lt"}
    ) and all(one.operator not in {"Gt", "Lt"} for one in selector.match_expressions)
