"""Turns our typed objects into the OpenAPI schemas of CRDs, for `scripts.crds`; what types cannot hold comes in."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
from msgspec import inspect as shapes

from gatelift_kube.objects.core import PodTemplate, Quantity
from gatelift_kube.objects.meta import ObjectMeta

Schema = dict[str, Any]

QUANTITY: Schema = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "x-kubernetes-int-or-string": True,
    "pattern": r"^\+?([0-9]+|[0-9]+\.[0-9]*|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][-+]?[0-9]+)?$",
    "minimum": 0,
    "maxLength": 64,
}
"""A resource amount that is not negative; the length keeps the cost of CEL rules over it bounded."""
ANYTHING: Schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
TIME: Schema = {"type": "string", "format": "date-time"}
_TIME_NAMES = ("_at", "_time", "last_seen")


@dataclass(frozen=True, slots=True, kw_only=True)
class StructFacts:
    """What is true of a struct's schema besides its field types.

    `fields` is merged into the schemas of fields by JSON name, `items` into those of a list's or map's items,
    `omit` are fields that only other kinds have, `extra` are fields of the interface that our types do not carry,
    `merge` goes into the struct's own schema.
    """

    fields: Mapping[str, Schema] = field(default_factory=dict)
    items: Mapping[str, Schema] = field(default_factory=dict)
    extra: Mapping[str, Schema] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    omit: tuple[str, ...] = ()
    merge: Mapping[str, Any] = field(default_factory=dict)


Facts = Mapping[type, StructFacts]


def field_docs(struct: type[msgspec.Struct]) -> dict[str, str]:
    """Return the docstrings of a type's fields, by name: the text below a field in its source."""
    (node,) = (
        each
        for each in ast.walk(_tree(inspect.getfile(struct)))
        if isinstance(each, ast.ClassDef) and each.name == struct.__name__
    )
    found = {}
    for field_, text in pairwise(node.body):
        if (
            isinstance(field_, ast.AnnAssign)
            and isinstance(field_.target, ast.Name)
            and isinstance(text, ast.Expr)
            and isinstance(text.value, ast.Constant)
            and isinstance(text.value.value, str)
        ):
            found[field_.target.id] = inspect.cleandoc(text.value.value)
    return found


@cache
def _tree(file: str) -> ast.Module:
    return ast.parse(Path(file).read_text())


def struct_schema(struct: type[msgspec.Struct], facts: Facts) -> Schema:
    """Return the schema of an object of this type. KeyError: facts name a field that the type does not have."""
    told = facts.get(struct, StructFacts())
    docs = field_docs(struct)
    properties: dict[str, Schema] = {}
    required = set(told.required)
    for one in msgspec.structs.fields(struct):
        if (
            one.encode_name.startswith("$") or one.encode_name in told.omit
        ):  # what is carried along unread is no field of the interface
            continue
        schema = _type_schema(one.type, facts, told.items.get(one.encode_name, {}))
        if one.name.endswith(_TIME_NAMES):
            schema = dict(TIME)
        text = docs.get(one.name) or schema.get("items", {}).get("description")
        described = {"description": text} if text else {}
        properties[one.encode_name] = {**schema, **described, **told.fields.get(one.encode_name, {})}
        if one.required:
            required.add(one.encode_name)
    unknown = (set(told.fields) | set(told.items)) - set(properties)
    if unknown:
        raise KeyError(f"{struct.__name__}: facts about fields that it does not have: {sorted(unknown)}")
    properties |= {name: _described(schema, "") for name, schema in told.extra.items()}
    schema = {"type": "object", "properties": dict(sorted(properties.items()))}
    if struct.__doc__:
        schema["description"] = inspect.cleandoc(struct.__doc__)
    if required:
        schema["required"] = sorted(required)
    return {**schema, **told.merge}


def _described(schema: Schema, text: str) -> Schema:
    """Return a schema of which each field says something: by itself, or what is said of what it is a part of."""
    text = schema.get("description", text)
    made = {**schema, "description": text} if text else dict(schema)
    if "properties" in made:
        made["properties"] = {name: _described(one, text) for name, one in made["properties"].items()}
    if "items" in made:
        made["items"] = _described(made["items"], text)
    return made


def _type_schema(annotation: Any, facts: Facts, items: Schema) -> Schema:
    if annotation == Quantity or annotation == Quantity | None:
        return dict(QUANTITY)
    return _shape_schema(shapes.type_info(annotation), facts, items)


def _shape_schema(shape: shapes.Type, facts: Facts, items: Schema) -> Schema:
    if isinstance(shape, shapes.UnionType):
        kinds = [one for one in shape.types if not isinstance(one, shapes.NoneType)]
        if {type(one) for one in kinds} == {shapes.IntType, shapes.FloatType, shapes.StrType}:
            return dict(QUANTITY)
        (only,) = kinds
        return _shape_schema(only, facts, items)
    if isinstance(shape, shapes.StructType):
        if shape.cls is PodTemplate:
            return {**ANYTHING, "description": "A pod template, core/v1 PodTemplateSpec."}
        if shape.cls is ObjectMeta:
            return {"type": "object"}
        return struct_schema(shape.cls, facts)
    if isinstance(shape, shapes.VarTupleType):
        return {"type": "array", "items": {**_shape_schema(shape.item_type, facts, {}), **items}}
    if isinstance(shape, shapes.DictType):
        return {"type": "object", "additionalProperties": {**_shape_schema(shape.value_type, facts, {}), **items}}
    return dict(_PLAIN[type(shape)])


_PLAIN: dict[type, Schema] = {
    shapes.StrType: {"type": "string"},
    shapes.BoolType: {"type": "boolean"},
    shapes.IntType: {"type": "integer", "format": "int32"},
}
