"""A selector over namespaces as the configuration file has it; a part of `config`.

Checked as the API server would: what is wrong here would otherwise be refused when the webhooks install themselves.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

import msgspec
from pydantic import AfterValidator, Field, field_validator, model_validator

from gatelift_kube.objects import selectors
from gatelift_kube.objects.meta import LabelSelector, LabelSelectorRequirement
from gatelift_kube.objects.selectors import NAMESPACE_LABEL
from gatelift_kube.process.settings_file import Section

_SYSTEM = "kube-system"
_KEY = re.compile(r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")


def _label_key(value: str) -> str:
    if not _KEY.fullmatch(value):
        raise ValueError(f"{value!r} is no label key; write name or domain/name, the name at most 63 characters")
    return value


def _label_value(value: str) -> str:
    if not _VALUE.fullmatch(value):
        raise ValueError(f"{value!r} is no label value; use letters, digits, '-', '_' and '.', at most 63")
    return value


LabelKey = Annotated[str, AfterValidator(_label_key)]
LabelValue = Annotated[str, AfterValidator(_label_value)]


class Requirement(Section):
    """One expression of a selector."""

    key: LabelKey
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: tuple[LabelValue, ...] = ()

    @model_validator(mode="after")
    def _values_where_needed(self) -> Requirement:
        if (self.operator in {"In", "NotIn"}) != bool(self.values):
            raise ValueError(
                f"operator {self.operator} {'takes no values: drop them' if self.values else 'needs values: list them'}"
            )
        return self


class NamespaceSelector(Section):
    """metav1.LabelSelector over namespaces."""

    match_labels: dict[LabelKey, LabelValue] = Field(default_factory=dict)
    match_expressions: tuple[Requirement, ...] = ()


class PodOptions(Section):
    """Which pods are queued: both selectors have to match, and what is not given selects as ever (KEP-976)."""

    namespace_selector: NamespaceSelector | None = None
    pod_selector: NamespaceSelector | None = None

    @field_validator("namespace_selector", "pod_selector")
    @classmethod
    def _selects_something(cls, value: NamespaceSelector | None) -> NamespaceSelector | None:
        key = _contradicted(value) if value is not None else ""
        if key:
            raise ValueError(f"selects nothing: its rules for {key!r} contradict each other; drop one of them")
        return value

    @field_validator("namespace_selector")
    @classmethod
    def _spares_the_system(cls, value: NamespaceSelector | None) -> NamespaceSelector | None:
        if value is not None and selectors.matches(as_selector(value), {NAMESPACE_LABEL: _SYSTEM}):
            raise ValueError(
                f"selects {_SYSTEM}, whose pods the cluster needs: add to matchExpressions "
                f"{{key: {NAMESPACE_LABEL}, operator: NotIn, values: [{_SYSTEM}]}}"
            )
        return value


def _contradicted(selector: NamespaceSelector) -> str:
    """Return the first key of which a selector asks for what no label can be, "" for none."""
    rules: list[tuple[str, str, set[str]]] = [(key, "In", {value}) for key, value in selector.match_labels.items()]
    rules += [(one.key, one.operator, set(one.values)) for one in selector.match_expressions]
    for key in dict.fromkeys(key for key, _, _ in rules):
        mine = [(operator, values) for name, operator, values in rules if name == key]
        operators = {operator for operator, _ in mine}
        allowed = [values for operator, values in mine if operator == "In"]
        denied = set().union(*(values for operator, values in mine if operator == "NotIn"))
        if "DoesNotExist" in operators and operators & {"In", "Exists"}:
            return key
        if allowed and not set.intersection(*allowed) - denied:
            return key
    return ""


def as_selector(selector: NamespaceSelector | None) -> LabelSelector:
    """Return a selector as the API has it; None selects everything."""
    if selector is None:
        return LabelSelector()
    return msgspec.convert(selector.model_dump(by_alias=True, mode="json"), LabelSelector)


def managed_namespaces(selector: NamespaceSelector | None, *, besides: str) -> LabelSelector:
    """Return which namespaces are managed. Without a selector all but the systems' own and `besides`, as in Kueue."""
    if selector is not None:
        return as_selector(selector)
    systems = tuple(sorted({_SYSTEM, "kueue-system", besides}))
    outside = LabelSelectorRequirement(key=NAMESPACE_LABEL, operator="NotIn", values=systems)
    return LabelSelector(match_expressions=(outside,))
