"""Label selectors: does a set of labels match, and the text of a selector for a list or watch. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from gatelift_kube.objects.meta import LabelSelector, LabelSelectorRequirement

NAMESPACE_LABEL = "kubernetes.io/metadata.name"
"""On every Namespace: its name. The API server sets it."""
OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


def matches(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """Return whether `labels` match; None selects nothing and an empty selector everything (metav1.LabelSelector).

    Raises ValueError where an operator or its values are not valid: a selector that is not understood must not
    quietly select too much or too little.
    """
    if selector is None:
        return False
    return all(labels.get(key) == value for key, value in selector.match_labels.items()) and all(
        _meets(requirement, labels) for requirement in selector.match_expressions
    )


def _meets(requirement: LabelSelectorRequirement, labels: Mapping[str, str]) -> bool:
    problem = requirement_problem(requirement)
    if problem:
        raise ValueError(problem)
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value is not None and value in requirement.values
        case "NotIn":
            # Kubernetes: a label that is not there is in no set, so NotIn holds.
            return value is None or value not in requirement.values
        case "Exists":
            return value is not None
        case _:
            return value is None


def requirement_problem(requirement: LabelSelectorRequirement) -> str:
    """Return what is wrong with a requirement in one line, or an empty text."""
    where = f"matchExpressions[key={requirement.key}]"
    if requirement.operator not in OPERATORS:
        return f"{where}.operator: {requirement.operator!r} is not one of {', '.join(OPERATORS)}"
    if requirement.operator in ("In", "NotIn") and not requirement.values:
        return f"{where}.values: must not be empty with operator {requirement.operator}"
    if requirement.operator in ("Exists", "DoesNotExist") and requirement.values:
        return f"{where}.values: must be empty with operator {requirement.operator}"
    return ""


def to_text(selector: LabelSelector) -> str:
    """Return the selector as the query parameter `labelSelector` wants it; raises ValueError as `matches` does."""
    parts = [f"{key}={value}" for key, value in sorted(selector.match_labels.items())]
    for requirement in selector.match_expressions:
        problem = requirement_problem(requirement)
        if problem:
            raise ValueError(problem)
        values = ",".join(requirement.values)
        forms = {
            "In": f"{requirement.key} in ({values})",
            "NotIn": f"{requirement.key} notin ({values})",
            "Exists": requirement.key,
            "DoesNotExist": f"!{requirement.key}",
        }
        parts.append(forms[requirement.operator])
    return ",".join(parts)
