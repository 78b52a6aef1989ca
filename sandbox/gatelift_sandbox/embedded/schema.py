"""Structural schemas of custom resources: pruning, defaulting, validation (no CEL: see `transitions`). Pure.

A schema is compiled once, when its CustomResourceDefinition is written; an object is then walked once per step, in the
API server's order: prune what the schema does not name, fill in defaults, (admission,) validate.
"""

from __future__ import annotations

import re
from typing import Any

from gatelift_kube.values import timestamps
from gatelift_sandbox.embedded.documents import Document, copied, encode
from gatelift_sandbox.embedded.failures import BrokenRule, duplicate, required, shown, unsupported, wrong

DEPTH_MAX = 100
"""No object worth keeping nests deeper; a deeper one is a mistake or an attack."""

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}
_ANY_CASE = "(?i)"
TYPE_INVALID = "FieldValueTypeInvalid"


class Schema:
    """One node of a compiled schema. `properties` and `items` lead on to its children.

    What is asked of each value of each write is looked up once, here: validation is most of what a write costs.
    """

    __slots__ = (
        "additional",
        "allows_any",
        "branches",
        "changes",
        "checks_text",
        "children",
        "exact",
        "filled",
        "int_or_string",
        "items",
        "leads_on",
        "nullable",
        "preserve",
        "required",
        "rules",
        "type",
    )

    def __init__(self, source: Document, *, root: bool = False) -> None:
        self.rules: Document = {key: value for key, value in source.items() if key not in _STRUCTURE}
        self.type: str = source.get("type") or ""
        self.preserve = bool(source.get("x-kubernetes-preserve-unknown-fields"))
        if root or source.get("x-kubernetes-embedded-resource"):
            hidden = {name: Schema({"type": "string"}) for name in ("apiVersion", "kind")}
            hidden["metadata"] = Schema({"type": "object", "x-kubernetes-preserve-unknown-fields": True})
        else:
            hidden = {}
        named = source.get("properties") or {}
        self.children = {name: Schema(child) for name, child in named.items() if name not in hidden} | hidden
        extra = source.get("additionalProperties")
        self.additional = Schema(extra) if isinstance(extra, dict) and extra else None
        self.allows_any = self.preserve or extra is True or extra == {}
        self.items = Schema(source["items"]) if isinstance(source.get("items"), dict) else None
        self.leads_on = bool(self.children) or self.additional is not None or self.items is not None
        """Whether it says anything of what a value has in it."""
        self.nullable = bool(source.get("nullable"))
        self.int_or_string = bool(source.get("x-kubernetes-int-or-string"))
        """Whether both integers and texts are allowed."""
        self.required: tuple[str, ...] = tuple(source.get("required") or ())
        self.filled = tuple((name, child) for name, child in self.children.items() if "default" in child.rules)
        """Fields that have a default."""
        self.branches = () if self.int_or_string else tuple(each for each in _BRANCHES if each in source)
        self.checks_text = any(each in source for each in _TEXT_RULES)
        self.changes = tuple(
            (each["rule"], each.get("message") or f"failed rule: {each['rule']}")
            for each in source.get("x-kubernetes-validations") or ()
            if "oldSelf" in each["rule"]
        )
        """Transition rules: CEL text and message (`transitions`)."""
        self.exact: type | None = None if self.int_or_string else _EXACT.get(self.type)
        """The type of most values that fit; others may."""

    def child(self, name: str) -> Schema | None:
        """Return the schema of a field, None where the schema does not know it."""
        return self.children.get(name) or self.additional


_STRUCTURE = frozenset({"properties", "items", "additionalProperties", "description", "x-kubernetes-validations"})
_BRANCHES = ("allOf", "anyOf", "oneOf", "not")
_TEXT_RULES = ("maxLength", "minLength", "pattern", "format")
_EXACT: dict[str, type] = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int}
_NOWHERE = object()


def prune(value: Any, schema: Schema, path: str = "") -> list[str]:
    """Drop what the schema does not name, in place; return the paths dropped."""
    dropped: list[str] = []
    if isinstance(value, dict):
        for name in list(value):
            child = schema.child(name)
            if child is None:
                if not schema.allows_any:
                    del value[name]
                    dropped.append(f"{path}.{name}" if path else name)
            elif isinstance(value[name], _NESTED) and (child.leads_on or not child.allows_any):
                dropped += prune(value[name], child, f"{path}.{name}" if path else name)
    elif isinstance(value, list) and schema.items is not None:
        for index, item in enumerate(value):
            if isinstance(item, _NESTED):
                dropped += prune(item, schema.items, f"{path}[{index}]")
    return dropped


_NESTED = (dict, list)


def default(value: Any, schema: Schema) -> None:
    """Fill in defaults, in place. A null where null is not allowed and there is a default counts as missing."""
    if isinstance(value, dict):
        for name, child in schema.filled:
            if value.get(name) is None and not (name in value and child.nullable):
                value[name] = copied({"": child.rules["default"]})[""]
        for name, item in list(value.items()):
            found = schema.children.get(name)
            if item is None and found is not None:
                if found.type and not found.nullable:
                    del value[name]
                continue
            found = found or schema.additional
            if found is not None and found.leads_on and isinstance(item, _NESTED):
                default(item, found)
    elif isinstance(value, list) and schema.items is not None and schema.items.leads_on:
        for item in value:
            default(item, schema.items)


def validate(value: Any, schema: Schema, path: str = "", *, known: Document | None = None) -> list[BrokenRule]:
    """Return the rules that an object breaks, with the texts of the API server.

    A field of the object that is the very value that `known` has, not an equal one, is not looked at.
    """
    found: list[BrokenRule] = []
    _validate(value, schema, path, found, 0, known)
    return found


def _validate(
    value: Any, schema: Schema, path: str, found: list[BrokenRule], depth: int, known: Document | None = None
) -> None:
    if depth > DEPTH_MAX:
        found.append(wrong(path, "", f"nested deeper than {DEPTH_MAX}"))
        return
    if value is None and schema.nullable:
        return
    if value.__class__ is not schema.exact and not _type_fits(value, schema):
        wanted = "integer,string" if schema.int_or_string else schema.type
        detail = f'{path} in body must be of type {wanted}: "{_json_type(value)}"'
        found.append(BrokenRule(path, "Invalid value", f'"{_json_type(value)}": {detail}', TYPE_INVALID))
        return
    choices = schema.rules.get("enum")
    if choices is not None and value not in choices:
        found.append(unsupported(path, value, [c if isinstance(c, str) else shown(c) for c in choices]))
    if isinstance(value, str):
        if schema.checks_text:
            found += _text_errors(value, schema.rules, path)
    elif isinstance(value, bool):
        pass
    elif isinstance(value, int | float):
        found += _number_errors(value, schema.rules, path)
    elif isinstance(value, list):
        _validate_list(value, schema, path, found, depth)
    elif isinstance(value, dict):
        _validate_object(value, schema, path, found, depth, known)
    for branch in schema.branches:
        found += _logic_errors(branch, value, schema.rules[branch], path)


def _type_fits(value: Any, schema: Schema) -> bool:
    if schema.int_or_string:
        return isinstance(value, int | str) and not isinstance(value, bool)
    if not schema.type:
        return True
    wanted = _TYPES[schema.type]
    if isinstance(value, bool):
        return bool in wanted
    if schema.type == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, wanted)


def _json_type(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    return next(name for name, types in _TYPES.items() if isinstance(value, types))


def _validate_object(
    value: Document, schema: Schema, path: str, found: list[BrokenRule], depth: int, known: Document | None
) -> None:
    missing = [name for name in schema.required if name not in value]
    found.extend(required(f"{path}.{name}" if path else name) for name in missing)
    count, most, least = len(value), schema.rules.get("maxProperties"), schema.rules.get("minProperties")
    if most is not None and count > most:
        found.append(BrokenRule(path, "Too many", f"{count}: must have at most {most} items"))
    if least is not None and count < least:
        found.append(wrong(path, count, f"{path} in body should have at least {least} properties"))
    if not schema.leads_on:
        return
    for name, item in value.items():
        child = schema.child(name)
        if child is not None and (known is None or known.get(name, _NOWHERE) is not item):
            _validate(item, child, f"{path}.{name}" if path else name, found, depth + 1)


def _validate_list(value: list[Any], schema: Schema, path: str, found: list[BrokenRule], depth: int) -> None:
    count, most, least = len(value), schema.rules.get("maxItems"), schema.rules.get("minItems")
    if most is not None and count > most:
        found.append(BrokenRule(path, "Too many", f"{count}: must have at most {most} items"))
    if least is not None and count < least:
        found.append(wrong(path, count, f"{path} in body should have at least {least} items"))
    kind = schema.rules.get("x-kubernetes-list-type")
    seen: set[bytes] = set()
    for index, item in enumerate(value):
        if kind in ("set", "map"):
            identity = _identity(item, schema, kind)
            written = encode(identity)
            if written in seen:
                found.append(duplicate(f"{path}[{index}]", identity))
            seen.add(written)
        if schema.items is not None:
            _validate(item, schema.items, f"{path}[{index}]", found, depth + 1)


def _identity(item: Any, schema: Schema, kind: str) -> Any:
    """Return what tells an item of a set or map from the others; defaults of keys were filled in before."""
    if kind == "set" or not isinstance(item, dict):
        return item
    return {key: item.get(key) for key in schema.rules.get("x-kubernetes-list-map-keys") or ()}


def _text_errors(value: str, rules: Document, path: str) -> list[BrokenRule]:
    """Return the first broken rule of a text, as the real server does, and whether it is no time."""
    found = []
    most, least, pattern = rules.get("maxLength"), rules.get("minLength"), rules.get("pattern")
    if most is not None and len(value) > most:
        found.append(BrokenRule(path, "Too long", f"may not be more than {most} bytes"))
    elif least is not None and len(value) < least:
        found.append(wrong(path, value, f"{path} in body should be at least {least} chars long"))
    elif pattern is not None and not _matches(pattern, value):
        found.append(wrong(path, value, f"{path} in body should match '{pattern}'"))
    if rules.get("format") == "date-time" and not _is_time(value):
        detail = f'{shown(value)}: {path} in body must be of type date-time: "{value}"'
        found.append(BrokenRule(path, "Invalid value", detail, TYPE_INVALID))
    return found


def _matches(pattern: str, value: str) -> bool:
    """Search as the API server's RE2 does, which takes a flag anywhere (Kueue's schemas say `^(?i)[a-z]...`)."""
    flags = re.IGNORECASE if _ANY_CASE in pattern else re.NOFLAG
    return re.search(pattern.replace(_ANY_CASE, ""), value, flags) is not None


def _is_time(value: str) -> bool:
    try:
        timestamps.to_seconds(value)
    except ValueError:
        return False
    return True


def _number_errors(value: float, rules: Document, path: str) -> list[BrokenRule]:
    found = []
    least, most = rules.get("minimum"), rules.get("maximum")
    if least is not None and (value < least or (value == least and rules.get("exclusiveMinimum"))):
        than = "greater than" if rules.get("exclusiveMinimum") else "greater than or equal to"
        found.append(wrong(path, value, f"{path} in body should be {than} {shown(least)}"))
    if most is not None and (value > most or (value == most and rules.get("exclusiveMaximum"))):
        than = "less than" if rules.get("exclusiveMaximum") else "less than or equal to"
        found.append(wrong(path, value, f"{path} in body should be {than} {shown(most)}"))
    step = rules.get("multipleOf")
    if step is not None and value % step:
        found.append(wrong(path, value, f"{path} in body should be a multiple of {shown(step)}"))
    bits = {"int32": 31, "int64": 63}.get(rules.get("format") or "")
    if bits is not None and not -(2**bits) <= value < 2**bits:
        found.append(wrong(path, value, f"{path} in body must be of type {rules['format']}: {shown(shown(value))}"))
    return found


def _logic_errors(branch: str, value: Any, sources: Any, path: str) -> list[BrokenRule]:
    if branch == "not":
        broken = bool(validate(value, Schema(sources), path))
        return [] if broken else [wrong(path, "", f"{path} in body must not validate the schema (not)")]
    results = [validate(value, Schema(source), path) for source in sources]
    if branch == "allOf":
        return [error for result in results for error in result]
    fitting = sum(not result for result in results)
    if branch == "oneOf" and fitting != 1:
        return [wrong(path, "", f"{path} in body must validate one and only one schema (oneOf)")]
    if branch == "anyOf" and not fitting:
        return [wrong(path, "", f"{path} in body must validate at least one schema (anyOf)"), *results[0]]
    return []
