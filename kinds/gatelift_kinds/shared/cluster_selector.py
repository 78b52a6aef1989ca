"""Cluster selectors as people write them in annotations: `zone=a,gpu in (h100, a100),!spot`. Pure."""

from __future__ import annotations

import re

from gatelift_kube.objects.meta import LabelSelector, LabelSelectorRequirement

ANNOTATION_CLUSTER_SELECTOR = "gatelift.dev/cluster-selector"
SELECTOR_CHARS_MAX = 4096
"""Longer texts are refused unread: they come from users."""

_NAME = r"[A-Za-z0-9./_-]+"
_SET = re.compile(rf"^({_NAME})\s+(in|notin)\s+\(([^()]*)\)$")
_EQUAL = re.compile(rf"^({_NAME})\s*(==|=|!=)\s*([A-Za-z0-9._-]*)$")
_EXISTS = re.compile(rf"^(!?)\s*({_NAME})$")


def parse_selector(text: str) -> LabelSelector:
    """Return the selector of a text; "" selects everything. Raises ValueError, naming the part that is wrong."""
    if len(text) > SELECTOR_CHARS_MAX:
        raise ValueError(f"selector longer than {SELECTOR_CHARS_MAX} characters")
    parts = [part.strip() for part in re.split(r",(?![^()]*\))", text) if part.strip()]
    return LabelSelector(match_expressions=tuple(_requirement(part) for part in parts))


def _requirement(part: str) -> LabelSelectorRequirement:
    found = _SET.match(part)
    if found is not None:
        values = tuple(value.strip() for value in found[3].split(",") if value.strip())
        if not values:
            raise ValueError(f"selector part {part!r} names no value")
        return LabelSelectorRequirement(key=found[1], operator="In" if found[2] == "in" else "NotIn", values=values)
    found = _EQUAL.match(part)
    if found is not None:
        return LabelSelectorRequirement(
            key=found[1], operator="NotIn" if found[2] == "!=" else "In", values=(found[3],)
        )
    found = _EXISTS.match(part)
    if found is not None:
        return LabelSelectorRequirement(key=found[2], operator="DoesNotExist" if found[1] else "Exists")
    raise ValueError(
        f"selector part {part!r} is not one of key=value, key!=value, key in (a,b), key notin (a,b), key, !key"
    )
