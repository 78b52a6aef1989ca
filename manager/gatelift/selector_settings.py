"""A selector over namespaces as the configuration file has it; a part of `config`.

Checked as the API server would: what is wrong here would otherwise be refused when the webhooks install themselves.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

import msgspec
from pydantic import AfterValidator, Field, model_validator

from gatelift_kube.objects.meta import LabelSelector, LabelSelectorRequirement
from gatelift_kube.objects.selectors import NAMESPACE_LABEL
from gatelift_kube.process.settings_file import Section

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


def managed_namespaces(selector: NamespaceSelector | None, *, besides: str) -> LabelSelector:
    """Return which namespaces are managed. Without a selector all but the systems' own and `besides`, as in Kueue."""
    if selector is not None:
        return msgspec.convert(selector.model_dump(by_alias=True, mode="json"), LabelSelector)
    systems = tuple(sorted({"kube-system", "kueue-system", besides}))
    outside = LabelSelectorRequirement(key=NAMESPACE_LABEL, operator="NotIn", values=systems)
    return LabelSelector(match_expressions=(outside,))
