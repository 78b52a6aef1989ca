"""Values as short text and back, for transcripts: `Stop(key='u@1', reason='Evicted')`. Defaults are left out.

A PlacementKey is written as the text 'uid@epoch', bytes and numbers as Python does, enum members as Class.MEMBER.
"""

from __future__ import annotations

import ast
import dataclasses
import enum
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from gatelift_wire.values.keys import PlacementKey


def known(*modules: ModuleType) -> dict[str, type]:
    """Collect the value classes and enums of modules, by name, for `parse`."""
    return {
        name: thing
        for module in modules
        for name, thing in vars(module).items()
        if isinstance(thing, type)
        and (dataclasses.is_dataclass(thing) or issubclass(thing, enum.Enum) or thing is PlacementKey)
    }


def key(text: str) -> PlacementKey:
    """Read 'uid@epoch'."""
    uid, _, epoch = text.rpartition("@")
    return PlacementKey(uid, int(epoch))


def parse(text: str, classes: Mapping[str, type]) -> Any:
    """Read one value. Raises ValueError for anything but literals and calls of known classes with keywords."""
    return _value(ast.parse(text.strip(), mode="eval").body, classes, "")


def _value(node: ast.expr, classes: Mapping[str, type], name: str) -> Any:
    match node:
        case ast.Call(func=ast.Name(id=function), args=[], keywords=keywords) if function in classes:
            return classes[function](**{k.arg: _value(k.value, classes, k.arg) for k in keywords if k.arg is not None})
        case ast.Attribute(value=ast.Name(id=function), attr=member) if function in classes:
            return getattr(classes[function], member)
        case ast.Tuple(elts=items) | ast.List(elts=items):
            return tuple(_value(item, classes, name) for item in items)
        case ast.Constant(value=str(text)) if name in {"key", "keys"}:
            return key(text)
        case _:
            return ast.literal_eval(node)


def render(value: object) -> str:
    """Write a value so that `parse` reads it."""
    if isinstance(value, PlacementKey):
        return repr(str(value))
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, tuple):
        return "[" + ", ".join(render(item) for item in value) + "]"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, float):
        return f"{value:.6g}"
    if dataclasses.is_dataclass(value):
        parts = [
            f"{field.name}={render(content)}"
            for field in dataclasses.fields(value)
            if (content := getattr(value, field.name)) != field.default
        ]
        return f"{type(value).__name__}({', '.join(parts)})"
    return repr(value)
