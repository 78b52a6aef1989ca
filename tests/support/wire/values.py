"""Hypothesis strategies for every value that travels, made from the classes' own annotations, within the limits."""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import types
import typing
from typing import Any

import msgspec
from hypothesis import strategies as st

from gatelift_wire.values import inventory, limits, messages
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import Frame, TemplateBlob

TEXT = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)
PRINTABLE = st.characters(codec="utf-8", exclude_characters="/%", exclude_categories=("C", "Z"))
NAME = st.text(PRINTABLE, min_size=1, max_size=15).filter(lambda name: name not in (".", ".."))
"""At most 60 bytes: it may be that of a namespace."""
PRINTED = {"agent_version", "instance", "peer_instance", "cluster_uid", "kinds", "kind", "lease", "ticket", "origin"}
"""Fields that hold what is shown as it is."""
NAMES = {"container", "name", "namespace", "namespaces", "node", "pod", "pod_set", "queue"}
"""Fields that hold names of objects."""
NAMED_ONCE = {"counts", "ended", "granted", "remaining", "running"}
"""Fields with lists of named things, each of which stands once; `pod_sets` is one in some messages."""
NUMBER = st.integers(1, limits.COUNT_MAX)
JSON = st.dictionaries(TEXT, st.integers() | TEXT, max_size=3).map(msgspec.json.encode)
COMMANDS = typing.get_args(messages.Command)
REPORTS = typing.get_args(messages.Report)
AGENT_CONTROLS = (messages.Hello, messages.LeaseRenew, messages.CreditGrant, inventory.InventoryChunk, messages.Close)
MANAGER_CONTROLS = (messages.Welcome, messages.LeaseGranted, inventory.InventoryRequest, messages.Close)


def value_of(kind: type) -> st.SearchStrategy[Any]:
    """Values of one class."""
    if kind is PlacementKey:
        return st.builds(
            PlacementKey, st.from_regex(r"\A[a-z0-9][-a-zA-Z0-9_.]{0,19}\Z"), st.integers(1, limits.NUMBER_MAX)
        )
    if kind is TemplateBlob:
        return JSON.map(lambda content: TemplateBlob(hash=hashlib.sha256(content).hexdigest(), content=content))
    hints = typing.get_type_hints(kind)
    return st.builds(kind, **{field.name: _field(hints[field.name], field.name) for field in dataclasses.fields(kind)})


def _field(hint: Any, name: str) -> st.SearchStrategy[Any]:
    if isinstance(hint, types.UnionType):
        inner = next(one for one in typing.get_args(hint) if one is not type(None))
        return st.none() | _field(inner, name)
    if typing.get_origin(hint) is tuple:
        first, *rest = typing.get_args(hint)
        if rest == [...]:
            named = name in NAMED_ONCE | {"pod_sets"}
            return st.lists(_field(first, name), max_size=3, unique_by=_called if named else None).map(tuple)
        return st.tuples(*(_field(one, name) for one in (first, *rest)))
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return st.sampled_from(hint)
    if hint is PlacementKey or (isinstance(hint, type) and dataclasses.is_dataclass(hint)):
        return value_of(hint)
    if hint is float:
        return st.floats(1.0, limits.LEASE_SECONDS_MAX)
    if hint is bytes:
        return st.binary(max_size=limits.SEAL_BYTES_MAX) if name == "seal" else JSON
    return {int: NUMBER, str: NAME if name in NAMES | PRINTED else TEXT, bool: st.booleans()}[hint]


def _called(one: Any) -> object:
    return one[0] if isinstance(one, tuple) else one.name


def frames(controls: tuple[type, ...], bodies: tuple[type, ...], *, term: bool) -> st.SearchStrategy[Frame]:
    """Frames of one direction."""
    return st.builds(
        Frame,
        session=st.integers(0, limits.NUMBER_MAX),
        term=st.integers(0, limits.NUMBER_MAX) if term else st.just(0),
        sequence=NUMBER,
        acknowledged=NUMBER,
        control=st.lists(st.one_of([value_of(kind) for kind in controls]), max_size=3).map(tuple),
        messages=st.lists(st.one_of([value_of(kind) for kind in bodies]), max_size=4).map(tuple),
    )


AGENT_FRAMES = frames(AGENT_CONTROLS, REPORTS, term=False)
MANAGER_FRAMES = frames(MANAGER_CONTROLS, COMMANDS, term=True)
