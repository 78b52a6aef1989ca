"""IS-51: `kubectl explain` says of every field of our kinds what it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from scripts import crds
from scripts.crd_schema import field_docs
from scripts.crds import DEFINITIONS

STANDARD = {"apiVersion", "kind", "metadata"}
"""The API server describes them itself."""


def fields(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    for name, below in schema.get("properties", {}).items():
        where = f"{path}.{name}" if path else name
        if where not in STANDARD:
            yield where, below
        yield from fields(below, where)
        yield from fields(below.get("items", {}), f"{where}[]")


@pytest.mark.parametrize("definition", [pytest.param(one, id=one.resource.kind) for one in DEFINITIONS])
def test_is_51_every_field_says_what_it_is(definition: crds.Definition) -> None:
    for version in crds.document(definition)["spec"]["versions"]:
        found = dict(fields(version["schema"]["openAPIV3Schema"]))
        silent = [path for path, schema in found.items() if len(schema.get("description", "")) < len("It.")]
        assert silent == [], version["name"]


def test_is_51_words_are_those_of_the_type_itself() -> None:
    class Sample(msgspec.Struct):
        """A type."""

        size: int = 0
        """How large it is."""
        plain: str = ""

    assert field_docs(Sample) == {"size": "How large it is."}
