"""Rules for names, labels and annotations that all objects share. Pure."""

from __future__ import annotations

import re
from typing import Any

from gatelift_sandbox.embedded.documents import Document, meta
from gatelift_sandbox.embedded.failures import BrokenRule, required, wrong

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_LABEL_RE = re.compile(_LABEL)
_SUBDOMAIN_RE = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_QUALIFIED_RE = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_PATH_SEGMENT_BAD = ("/", "%")

SUBDOMAIN_MAX, LABEL_MAX = 253, 63
ANNOTATIONS_BYTES_MAX = 256 * 1024
GENERATED_BASE_MAX = 58
"""A generated name is at most 63 letters: this much of `generateName` and five more."""

LABEL_TEXT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with"
    " an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is"
    " '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and"
    " end with an alphanumeric character (e.g. 'example.com', regex used for validation is"
    " '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
QUALIFIED_TEXT = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric"
    " character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is"
    " '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and"
    " end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is"
    " '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


def label_name(value: str) -> str:
    """Return what is wrong with a DNS label, or an empty text."""
    if len(value) > LABEL_MAX:
        return f"must be no more than {LABEL_MAX} characters"
    return "" if _LABEL_RE.fullmatch(value) else LABEL_TEXT


def subdomain_name(value: str) -> str:
    """Return what is wrong with a DNS subdomain, or an empty text."""
    if len(value) > SUBDOMAIN_MAX:
        return f"must be no more than {SUBDOMAIN_MAX} characters"
    return "" if _SUBDOMAIN_RE.fullmatch(value) else SUBDOMAIN_TEXT


def path_segment_name(value: str) -> str:
    """Return what is wrong with the name of an RBAC object, or an empty text."""
    if value in (".", ".."):
        return f"may not be '{value}'"
    return next((f"may not contain '{bad}'" for bad in _PATH_SEGMENT_BAD if bad in value), "")


def qualified_name(value: str) -> str:
    """Return what is wrong with a key of a label or annotation, or an empty text."""
    prefix, slash, name = value.rpartition("/")
    if slash and not prefix:
        return "prefix part must be non-empty"
    if slash and (text := subdomain_name(prefix)):
        return f"prefix part {text}"
    if not name:
        return f"name part must be non-empty; {QUALIFIED_TEXT}"
    if len(name) > LABEL_MAX:
        return f"name part must be no more than {LABEL_MAX} characters"
    return "" if _QUALIFIED_RE.fullmatch(name) else QUALIFIED_TEXT


def label_value(value: str) -> str:
    """Return what is wrong with the value of a label, or an empty text."""
    if len(value) > LABEL_MAX:
        return f"must be no more than {LABEL_MAX} characters"
    return "" if not value or _QUALIFIED_RE.fullmatch(value) else VALUE_TEXT


def label_errors(labels: Any, field: str) -> list[BrokenRule]:
    """Check labels (as of metadata or of a nodeSelector)."""
    found = []
    for key, value in (labels or {}).items():
        if text := qualified_name(key):
            found.append(wrong(field, key, text))
        if text := label_value(value):
            found.append(wrong(field, value, text))
    return found


def metadata_errors(document: Document, field: str = "metadata") -> list[BrokenRule]:
    """Check labels, annotations, finalizers and owner references."""
    about = meta(document)
    found = label_errors(about.get("labels"), f"{field}.labels")
    annotations = about.get("annotations") or {}
    for key in annotations:
        if text := qualified_name(key.lower()):
            found.append(wrong(f"{field}.annotations", key, text))
    size = sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
    if size > ANNOTATIONS_BYTES_MAX:
        rule = f"may not be more than {ANNOTATIONS_BYTES_MAX} bytes"
        found.append(BrokenRule(f"{field}.annotations", "Too long", rule))
    for finalizer in about.get("finalizers") or ():
        if text := qualified_name(finalizer):
            found.append(wrong(f"{field}.finalizers", finalizer, text))
    return found + _owner_errors(about, field)


def _owner_errors(about: Document, field: str) -> list[BrokenRule]:
    found, controllers = [], []
    for index, owner in enumerate(about.get("ownerReferences") or ()):
        at = f"{field}.ownerReferences[{index}]"
        found += [required(f"{at}.{key}") for key in ("apiVersion", "kind", "name", "uid") if not owner.get(key)]
        if owner.get("controller"):
            controllers.append(owner.get("name"))
    if len(controllers) > 1:
        detail = "Only one reference can have Controller set to true"
        found.append(wrong(f"{field}.ownerReferences", controllers, detail))
    return found


def string_map_problem(document: Document) -> str:
    """Return what is wrong with the types in metadata (they break decoding, before any rule), or an empty text."""
    about = meta(document)
    for field in ("labels", "annotations"):
        value = about.get(field)
        if value is not None and not (
            isinstance(value, dict) and all(isinstance(text, str) for text in value.values())
        ):
            return f"metadata.{field} is a map of texts"
    for field in ("finalizers", "ownerReferences"):
        value = about.get(field)
        wanted = str if field == "finalizers" else dict
        if value is not None and not (isinstance(value, list) and all(isinstance(item, wanted) for item in value)):
            return f"metadata.{field} is a list"
    for field in ("name", "generateName", "namespace", "uid", "resourceVersion"):
        if not isinstance(about.get(field) or "", str):
            return f"metadata.{field} is a text"
    return ""
