"""Label and field selectors in the form of query parameters, and which objects a list or watch selects. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from gatelift_kube.objects.meta import LabelSelector, LabelSelectorRequirement
from gatelift_kube.objects.selectors import requirement_problem
from gatelift_sandbox.embedded.documents import Document, items
from gatelift_sandbox.embedded.failures import bad_request

_SET = re.compile(r"^(?P<key>[^\s!=,()]+)\s+(?P<operator>in|notin)\s*\((?P<values>[^()]*)\)$")
_EQUAL = re.compile(r"^(?P<key>[^\s!=,()]+)\s*(?P<operator>==|=|!=)\s*(?P<value>[^\s!=,()]*)$")
_EXISTS = re.compile(r"^(?P<not>!?)\s*(?P<key>[^\s!=,()]+)$")


@dataclass(frozen=True, slots=True)
class FieldRequirement:
    """`path = value`, or `path != value` where `equal` is False."""

    path: str
    value: str
    equal: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ListSelection:
    """What a list or a watch selects. `namespace` is empty for all of them."""

    namespace: str = ""
    labels: LabelSelector | None = None
    fields: tuple[FieldRequirement, ...] = ()

    @property
    def everything(self) -> bool:
        """Return whether only the namespace restricts it."""
        return self.labels is None and not self.fields

    def matches(self, labels: Mapping[str, str], fields: Mapping[str, str]) -> bool:
        """Return whether an object with these labels and selectable fields is selected (its namespace is not asked)."""
        if self.labels is not None and not label_match(self.labels, labels):
            return False
        return all((fields.get(r.path, "") == r.value) is r.equal for r in self.fields)


def label_match(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
    """Return whether labels match a selector that `parse_labels` made; an operator other than these raises."""
    if any(labels.get(key) != value for key, value in selector.match_labels.items()):
        return False
    return all(_meets(requirement, labels) for requirement in selector.match_expressions)


def _meets(requirement: LabelSelectorRequirement, labels: Mapping[str, str]) -> bool:
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value in requirement.values
        case "NotIn":
            return value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case _:
            raise ValueError(requirement_problem(requirement))


def selector_of(source: Document) -> LabelSelector:
    """Return the selector that a JSON LabelSelector is; an empty one selects everything."""
    requirements = tuple(
        LabelSelectorRequirement(key=each["key"], operator=each["operator"], values=tuple(each.get("values") or ()))
        for each in items(source, "matchExpressions")
    )
    return LabelSelector(match_labels=source.get("matchLabels") or {}, match_expressions=requirements)


@lru_cache(maxsize=1024)
def parse_labels(text: str) -> LabelSelector | None:
    """Return the selector of `labelSelector=TEXT`, None for an empty one; ApiError 400 where it cannot be parsed."""
    equal: dict[str, str] = {}
    others: list[LabelSelectorRequirement] = []
    for part in _parts(text):
        if (found := _SET.match(part)) is not None:
            values = tuple(value.strip() for value in found["values"].split(","))
            operator = "In" if found["operator"] == "in" else "NotIn"
            others.append(LabelSelectorRequirement(key=found["key"], operator=operator, values=values))
        elif (found := _EQUAL.match(part)) is not None:
            operator = "NotIn" if found["operator"] == "!=" else "In"
            if operator == "In" and found["key"] not in equal:
                equal[found["key"]] = found["value"]
            else:
                others.append(LabelSelectorRequirement(key=found["key"], operator=operator, values=(found["value"],)))
        elif (found := _EXISTS.match(part)) is not None:
            operator = "DoesNotExist" if found["not"] else "Exists"
            others.append(LabelSelectorRequirement(key=found["key"], operator=operator))
        else:
            raise bad_request(f"unable to parse requirement: {part!r} in label selector {text!r}")
    if not equal and not others:
        return None
    return LabelSelector(match_labels=equal, match_expressions=tuple(others))


def _parts(text: str) -> list[str]:
    """Split at the commas that are not between brackets."""
    parts, depth, current = [], 0, ""
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            parts.append(current.strip())
            current = ""
        else:
            current += letter
    parts.append(current.strip())
    return [part for part in parts if part]


@lru_cache(maxsize=1024)
def parse_fields(text: str) -> tuple[FieldRequirement, ...]:
    """Return the requirements of `fieldSelector=TEXT`; ApiError 400 where it cannot be parsed."""
    found = []
    for part in filter(None, text.split(",")):
        for operator, equal in (("!=", False), ("==", True), ("=", True)):
            path, sign, value = part.partition(operator)
            if sign:
                found.append(FieldRequirement(path.strip(), value.strip(), equal))
                break
        else:
            raise bad_request(f'invalid selector: "{text}"; can\'t understand "{part}"')
    return tuple(found)
