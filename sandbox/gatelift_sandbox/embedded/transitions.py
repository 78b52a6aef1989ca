"""Transition rules of CRDs: what a write may not change of what stands there (`oldSelf`). Pure.

An API server evaluates CEL. Here the few rules of our CRDs that say something of a change are a table, by their very
text, so that simulated histories see the refusals of a real server; all other rules are shown on a real one. What rests
on several fields of a Workload at once is not here: its writers hold to it by their own rules (`tests/e2e`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from gatelift_sandbox.embedded.documents import Document
from gatelift_sandbox.embedded.failures import BrokenRule, wrong
from gatelift_sandbox.embedded.schema import Schema

Change = Callable[[Any, Any], bool]
"""From what stands there and what is to stand there to whether that is allowed."""


def _kept(field: str) -> Change:
    return lambda old, new: field not in old or new.get(field) == old[field]


def _kept_or_cleared(field: str) -> Change:
    return lambda old, new: field not in old or field not in new or new[field] == old[field]


RULES: dict[str, Change] = {
    "self >= oldSelf": lambda old, new: bool(new >= old),
    "self == oldSelf": lambda old, new: bool(new == old),
    "!has(oldSelf.revoked) || !oldSelf.revoked || self.revoked": lambda old, new: (
        not old.get("revoked") or bool(new.get("revoked"))
    ),
    "!has(oldSelf.clusterName) || !has(self.clusterName) || oldSelf.clusterName == self.clusterName": _kept_or_cleared(
        "clusterName"
    ),
    "!has(oldSelf.topologyName) || (has(self.topologyName) && self.topologyName == oldSelf.topologyName)": _kept(
        "topologyName"
    ),
}

Transition = tuple[tuple[str, ...], Change, str]
"""Path of a field, its rule, and what is said where it is broken."""


def transitions_of(schema: Schema) -> tuple[Transition, ...]:
    """Return the rules that the fields of a schema have, but for fields in lists."""
    return tuple(_below(schema, ()))


def _below(schema: Schema, path: tuple[str, ...]) -> Iterator[Transition]:
    for rule, message in schema.changes:
        if rule in RULES:
            yield path, RULES[rule], message
    for name, child in schema.children.items():
        yield from _below(child, (*path, name))


def broken(transitions: tuple[Transition, ...], old: Document, new: Document) -> list[BrokenRule]:
    """Return what a change breaks; a field that is set first, or taken away, is no transition."""
    found = []
    for path, allows, message in transitions:
        before, after = _at(old, path), _at(new, path)
        if before is None or after is None or before is after or allows(before, after):
            continue
        found.append(wrong(".".join(path), "object" if isinstance(after, dict) else after, message))
    return found


def _at(document: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        if not isinstance(document, dict):
            return None
        document = document.get(name)
    return document
