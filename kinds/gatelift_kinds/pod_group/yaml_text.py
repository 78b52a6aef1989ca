"""YAML or JSON that a user wrote into an annotation, as the JSON that it stands for; bounded in time and size. Pure.

Of YAML only what JSON has: no tags, no dates, no second spelling of numbers and truths, and each key once. JSON is read
whatever its size, which the API server bounds; YAML costs some hundred times as much and has a bound of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec
import yaml

from gatelift_kube.values.numbers import signed
from gatelift_kube.values.unreadable import UNREADABLE

YAML_CHARS_MAX = 16_384
"""Read in some milliseconds; the sets of a driver take a few hundred characters."""
_TAG = "tag:yaml.org,2002:"


class UnreadableTextError(ValueError):
    """It is neither; the text says what is wrong, where, and what to do."""


def read(text: str) -> Any:
    """Return the JSON value that a text stands for. UnreadableTextError: it is neither JSON nor YAML, or too much."""
    try:
        return msgspec.json.decode(text.encode("utf-8", "replace"))
    except UNREADABLE:
        pass
    if len(text) > YAML_CHARS_MAX:
        raise UnreadableTextError(f"is no JSON, and YAML is read up to {YAML_CHARS_MAX} characters: write it as JSON")
    try:
        found = yaml.load(text, Loader=_JsonLoader)  # noqa: S506  # a SafeLoader, with less than that one has
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" in line {mark.line + 1}" if mark is not None else ""
        hint = "mend it there; inside of [] and {} all that follows has to be in such brackets, too"
        raise UnreadableTextError(f"is neither YAML nor JSON{line}: {hint}") from error
    except (RecursionError, ValueError) as error:
        raise UnreadableTextError("is no YAML that stands for JSON: write it as JSON") from error
    if not _is_bounded(found, len(text)):
        raise UnreadableTextError("repeats itself by anchors (&) and aliases (*): write out what they stand for")
    return found


class _JsonLoader(yaml.CSafeLoader):
    """YAML of what JSON has."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Return the mapping. YAMLError for a key that is no text, or stands there twice: one of them would be lost."""
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        if len(keys) < len(node.value) or len(set(keys)) < len(keys):
            raise yaml.constructor.ConstructorError(None, None, "a key twice, or no text", node.start_mark)
        return {key.value: self.construct_object(value, deep=True) for key, value in node.value}

    def construct_whole(self, node: yaml.ScalarNode) -> int | None:
        """Return a whole number."""
        return signed(node.value)

    def construct_fraction(self, node: yaml.ScalarNode) -> float:
        """Return a number with a fraction or an exponent."""
        return float(node.value)

    def construct_truth(self, node: yaml.ScalarNode) -> bool:
        """Return what `true` and `false` stand for."""
        return bool(node.value == "true")

    def construct_text(self, node: yaml.ScalarNode) -> str:
        """Return what stands there."""
        return str(node.value)

    def construct_nothing(self, node: yaml.ScalarNode) -> None:
        """Return None."""

    def construct_items(self, node: yaml.SequenceNode) -> list[Any]:
        """Return the list."""
        return self.construct_sequence(node, deep=True)


_JsonLoader.yaml_implicit_resolvers = {}
_JsonLoader.yaml_constructors = {
    f"{_TAG}null": _JsonLoader.construct_nothing,
    f"{_TAG}bool": _JsonLoader.construct_truth,
    f"{_TAG}int": _JsonLoader.construct_whole,
    f"{_TAG}float": _JsonLoader.construct_fraction,
    f"{_TAG}str": _JsonLoader.construct_text,
    f"{_TAG}seq": _JsonLoader.construct_items,
    f"{_TAG}map": _JsonLoader.construct_mapping,
    None: _JsonLoader.construct_undefined,
}
for _kind, _spelt, _first in (
    ("null", r"~|null|", ["~", "n", ""]),
    ("bool", r"true|false", list("tf")),
    ("int", r"-?(0|[1-9][0-9]{0,17})", list("-0123456789")),
    ("float", r"-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,17})?([eE][-+]?[0-9]{1,2})?", list("-0123456789")),
):
    _JsonLoader.add_implicit_resolver(f"{_TAG}{_kind}", re.compile(f"^({_spelt})$"), _first)


def _is_bounded(value: Any, most: int) -> bool:
    """Say whether a value is no larger than its text can be, written out: an alias stands for more than it takes."""
    left = [iter((value,))]
    for _ in range(most + 2):
        while left:
            one = next(left[-1], left)
            if one is not left:
                left.append(_below(one))
                break
            left.pop()
        else:
            return True
    return False


def _below(value: Any) -> Iterator[Any]:
    return iter(value.values() if isinstance(value, dict) else value if isinstance(value, list) else ())
