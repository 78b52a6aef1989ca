"""Hostile values for every field of every kind and message; a seed draws them, so each case can be lived again."""

from __future__ import annotations

import copy
import dataclasses
import enum
import hashlib
import random
import types
import typing
from typing import Any

import msgspec

from gatelift_wire.values import limits, rules
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import TemplateBlob
from gatelift_wire.values.violations import WireViolation

Doc = dict[str, Any]

TEXTS: tuple[str, ...] = (
    "",
    "0",
    "1",
    "-1",
    "7",
    "true",
    "null",
    "[]",
    "{}",
    "9" * 18,
    "9" * 19,
    "9" * 5000,
    "\u00b2",
    "\u0663\u0664",
    "1_000",
    " 5 ",
    "1e400",
    "-0",
    "0x10",
    "500m",
    "1.5Gi",
    "-3",
    "[" * 400,
    '{"x":' + "[" * 400,
    '{"parallelism":"x","completions":[],"metadata":7,"spec":[],"uid":1,"epoch":{},"stage":9}',
    '{"metadata":{"labels":[1],"annotations":"x"},"spec":{"nodeSelector":[],"tolerations":{"a":1}}}',
    "a:b:c",
    "a/b/c",
    "..",
    "/",
    "%2e",
    "0-3,5,9-",
    "3-1",
    "-",
    "\u001b]0;x\u0007\r\n\u202e",
    "\x00",
    "\ud7ff\U0001f600",
    "x" * 5000,
    "True",
    "False",
    "Unknown",
    "2026-01-01T00:00:00Z",
    "9999-12-31T23:59:59Z",
    "0001-01-01T00:00:00Z",
    "0001-01-01T00:00:00+23:59",
    "2026-01-01T00:00:00",
    "not a time",
    '[{"name":"driver","count":1},{"name":"workers","count":1,"template":{"spec":{"containers":[]}}}]',
    '[{"name":"driver","count":9223372036854775808},{"name":[],"count":{},"template":7}]',
    '{"succeeded":["AAAAAAAAAAA"],"failed":[7],"epoch":1}',
    "AAAAAAAAAAA AAAAAAAAAAA",
)
WORDS = ("main", "one", "bad", "bad-job", "a", "team", "Pod", "Job")
"""What something is called."""
NUMBERS: tuple[int, ...] = (0, 1, -1, 2, 7, 1000, 2**31 - 1, 2**31, -(2**31), 2**63 - 1, -(2**63), 2**63, 10**30)
FLOATS: tuple[float, ...] = (0.0, -1.0, 1.5, 1e18, 1e308, -1e308)
ANYTHING: tuple[Any, ...] = (
    None,
    True,
    False,
    {},
    [],
    [1],
    [None],
    {"a": 1},
    [[]],
    {"": {}},
    *NUMBERS,
    *FLOATS,
    *TEXTS,
)


def mutated(document: Doc, kind: type[Any], rng: random.Random, keys: tuple[str, ...], where: str = "") -> Doc:
    """Return a document with one field changed, anywhere in metadata marks, spec or status (`where`: only there)."""
    changed = copy.deepcopy(document)
    part = where or rng.choice(("annotations", "labels", "spec", "status", "status"))
    if part in ("annotations", "labels"):
        marks = changed["metadata"].setdefault(part, {})
        key = rng.choice(keys)
        if rng.random() < 0.1:
            marks.pop(key, None)
        else:
            marks[key] = rng.choice(TEXTS)
        return changed
    fields = {each.encode_name: each for each in msgspec.structs.fields(kind)}
    hint = fields[part].type if part in fields else Any
    changed[part] = _value(changed.get(part), hint, rng, top=True)
    return changed


def _value(value: Any, hint: Any, rng: random.Random, *, top: bool = False) -> Any:
    """Return what stands in the place of a value: one of any kind, or the same with one of its parts changed."""
    hint = _inner(hint)
    if not top and rng.random() < 0.25:
        return rng.choice(ANYTHING)
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return _struct(value if isinstance(value, dict) else {}, hint, rng)
    origin = typing.get_origin(hint)
    if origin in (tuple, list):
        return _several(list(value) if isinstance(value, list) else [], typing.get_args(hint)[0], rng)
    if origin is dict or isinstance(value, dict):
        return _mapping(dict(value) if isinstance(value, dict) else {}, hint, rng)
    if isinstance(value, list):
        return _several(list(value), Any, rng)
    if hint is str:
        return rng.choice(TEXTS)
    if hint is bool:
        return rng.random() < 0.5
    if hint is int:
        return rng.choice(NUMBERS)
    return rng.choice(ANYTHING)


def _struct(value: Doc, kind: type[msgspec.Struct], rng: random.Random) -> Doc:
    named = {
        each.encode_name: each.type for each in msgspec.structs.fields(kind) if not each.encode_name.startswith("$")
    }
    name = rng.choice(sorted({*named, *value, "unheardOf"}))
    if name in value and rng.random() < 0.1:
        del value[name]
    else:
        value[name] = _value(value.get(name), named.get(name, Any), rng)
    return value


def _several(value: list[Any], hint: Any, rng: random.Random) -> list[Any]:
    roll = rng.random()
    if not value or roll < 0.2:
        value.insert(rng.randint(0, len(value)), _value(None, hint, rng))
    elif roll < 0.3:
        value.append(copy.deepcopy(rng.choice(value)))
    elif roll < 0.4:
        del value[rng.randrange(len(value))]
    else:
        index = rng.randrange(len(value))
        value[index] = _value(value[index], hint, rng)
    return value


def _mapping(value: Doc, hint: Any, rng: random.Random) -> Doc:
    args = typing.get_args(hint)
    inner = args[1] if len(args) == 2 else Any
    key = rng.choice([*sorted(value), *TEXTS]) if value and rng.random() < 0.3 else rng.choice([*sorted(value), "x"])
    value[key] = _value(value.get(key), inner, rng)
    return value


def _inner(hint: Any) -> Any:
    """Return a type without `| None`."""
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        inner = [one for one in typing.get_args(hint) if one is not type(None)]
        return inner[0] if len(inner) == 1 else Any
    return hint


@dataclasses.dataclass(frozen=True)
class Known:
    """What a message may name: placements, and words for its texts beside any."""

    keys: tuple[PlacementKey, ...]
    words: tuple[str, ...] = ()


def message(kind: type[Any], rng: random.Random, known: Known) -> Any | None:
    """Return a message of a class with fields as bad as the wire takes them, None where the draw is refused there."""
    made = _built(kind, rng, known)
    try:
        rules.measure(made)
    except (WireViolation, ValueError, TypeError, UnicodeError):
        return None
    return made


def _built(kind: type[Any], rng: random.Random, known: Known) -> Any:
    if kind is PlacementKey:
        return rng.choice(known.keys)
    if kind is TemplateBlob:
        content = rng.choice(TEXTS).encode()
        return TemplateBlob(hash=hashlib.sha256(content).hexdigest(), content=content)
    hints = typing.get_type_hints(kind)
    return kind(**{each.name: _part(hints[each.name], each.name, rng, known) for each in dataclasses.fields(kind)})


def _part(hint: Any, name: str, rng: random.Random, known: Known) -> Any:
    if isinstance(hint, types.UnionType):
        inner = [one for one in typing.get_args(hint) if one is not type(None)]
        return None if rng.random() < 0.3 else _part(rng.choice(inner), name, rng, known)
    if typing.get_origin(hint) is tuple:
        first, *rest = typing.get_args(hint)
        if rest == [...]:
            return tuple(_part(first, name, rng, known) for _ in range(rng.choice((0, 1, 1, 2))))
        return tuple(_part(one, name, rng, known) for one in (first, *rest))
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return rng.choice(list(hint))
    if hint is PlacementKey or (isinstance(hint, type) and dataclasses.is_dataclass(hint)):
        return _built(hint, rng, known)
    if hint is bytes:
        return _json(rng)
    if hint is str:
        return rng.choice(
            ("main", "one", "bad", "bad-job", "a", "team", "Pod", "Job", *known.words, *known.words, *TEXTS)
        )
    if hint is int:
        return rng.choice((0, 1, 1, 2, 3, 7, limits.COUNT_MAX))
    if hint is float:
        return rng.choice((0.0, 1.0, 30.0, 3600.0))
    return rng.random() < 0.5


def _json(rng: random.Random) -> bytes:
    """Return JSON of a status or a template, or what is none."""
    roll = rng.random()
    if roll < 0.1:
        return rng.choice(TEXTS).encode()
    names = ("phase", "succeeded", "failed", "active", "ready", "conditions", "startTime", "message", "containers", "x")
    document = {name: rng.choice(ANYTHING) for name in rng.sample(names, rng.randint(0, 4))}
    if roll > 0.6:
        types_ = ("Ready", "Complete", "Failed", "Suspended", "SuccessCriteriaMet", "")
        document["conditions"] = [
            {"type": rng.choice(types_), "status": rng.choice(("True", "False", *TEXTS[:4]))} for _ in range(2)
        ]
    return msgspec.json.encode(document)
