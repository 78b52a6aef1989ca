"""IS-40: every marker of Kueue's API and every field of our CRDs is acted on, or stands in the table of what is not.

The map `fields_read.yaml` says by which module a field is read; that module has to name it. The table is the one that
the webhooks answer from, and docs/not-served.md is made of it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from msgspec import inspect as shapes
from scripts import crds, not_served
from scripts.crd_facts import FACTS
from scripts.crds import DEFINITIONS

from gatelift_kinds.shared.not_served import EACH, TABLE, Treatment
from gatelift_kinds.shared.not_served import Path as Where
from gatelift_kube.objects.core import PodTemplate
from gatelift_kube.objects.meta import Condition, ObjectMeta

ROOT = Path(__file__).parents[2]
SOURCES = ("admission", "kinds", "kube", "manager", "protos", "worker_agent")
READ: dict[str, str] = yaml.safe_load((ROOT / "tests/house/fields_read.yaml").read_text())
MARKERS = [one for one in (ROOT / "tests/house/kueue_markers.txt").read_text().splitlines() if not one.startswith("#")]
IDENTIFIER = re.compile(r"([a-z]+\.)?kueue\.x-k8s\.io/[a-z-]+")
NAMES_OF_ANOTHER_SORT = {
    "kueue.x-k8s.io/dynamically-sized-job",
    "kueue.x-k8s.io/elastic-job-scale-up-strategy",
    "kueue.x-k8s.io/multikueue",
    "kueue.x-k8s.io/multikueue-dispatcher-all-at-once",
    "kueue.x-k8s.io/multikueue-dispatcher-incremental",
    "kueue.x-k8s.io/provisioning-request",
    "kueue.x-k8s.io/workloadpriorityclass",
}
"""Controllers, dispatchers, the source of a priority as v1beta1 spelled it, a word of KEP-77 alone, and one of
KEP-12100, which came after the list."""
NOTHING = "nothing"
"""In the map: a field that asks nobody to do anything."""
TABLES_OWN = {"not_served.py", "asked_for.py"}


@cache
def named_in(module: Path) -> frozenset[str]:
    """Attributes, keywords, imported names and texts of a module, its docstrings aside."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.alias):
            found.add(node.name)
        elif isinstance(node, ast.keyword) and node.arg:
            found.add(node.arg)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)
    return frozenset(found)


def parts(struct: type[msgspec.Struct], path: Where) -> Iterator[tuple[Where, str, str]]:
    """Yield each field of a type and of those in it, as (path, `Type.field`, name in Python)."""
    for field in msgspec.structs.fields(struct):
        if field.encode_name.startswith("$") or field.name == "metadata":
            continue
        yield from _part(field, struct, path)
    for name in FACTS[struct].extra if struct in FACTS else ():
        yield (*path, name), f"{struct.__name__}.{name}", name


def _part(field: Any, struct: type, path: Where) -> Iterator[tuple[Where, str, str]]:
    below = (*path, field.encode_name)
    yield below, f"{struct.__name__}.{field.encode_name}", field.name
    for inner, items in _structs(shapes.type_info(field.type)):
        if inner not in {PodTemplate, ObjectMeta, Condition}:
            yield from parts(inner, (*below, *items))


def _structs(shape: shapes.Type, *items: str) -> Iterator[tuple[type[msgspec.Struct], Where]]:
    if isinstance(shape, shapes.StructType):
        yield shape.cls, items
    elif isinstance(shape, shapes.UnionType):
        for one in shape.types:
            yield from _structs(one, *items)
    elif isinstance(shape, shapes.VarTupleType):
        yield from _structs(shape.item_type, *items, EACH)


def in_table(kind: str, path: Where) -> bool:
    """Say whether the table has a row for a field, or for what it is a part of."""
    return any(kind in entry.kinds and path[: len(entry.path)] == entry.path for entry in TABLE)


def part_in_table(kind: str, path: Where) -> bool:
    """Say so also of a field of which a part has a row: all of it, where our types do not carry it."""
    return any(kind in entry.kinds and entry.path[: len(path)] == path for entry in TABLE) or in_table(kind, path)


BESIDES = {
    f"{struct.__name__}.{name}"
    for struct, told in FACTS.items()
    for name in told.extra.keys() - {field.encode_name for field in msgspec.structs.fields(struct)}
    if (struct.__name__, name) != ("Cohort", "status")
}
"""Fields of the interface that our types do not carry."""
FIELDS = [
    pytest.param(definition.resource.kind, path, key, name, id=f"{definition.resource.kind} {'.'.join(path)}")
    for definition in DEFINITIONS
    for path, key, name in parts(definition.struct, ())
    if path != ("spec",) and path[0] != "status"
]


CONTAINERS = {
    (definition.resource.kind, path[:size])
    for definition in DEFINITIONS
    for path, key, _ in parts(definition.struct, ())
    if key not in BESIDES
    for size in range(1, len(path))
}
"""Fields with typed fields below: a row for one of these says nothing of the others."""


@pytest.mark.parametrize(("kind", "path", "key", "name"), FIELDS)
def test_is_40_every_field_of_spec_is_read_or_in_the_table(kind: str, path: Where, key: str, name: str) -> None:
    if (in_table if (kind, path) in CONTAINERS else part_in_table)(kind, path):
        return
    reader = READ.get(key)
    assert reader, f"{key}: name the module that reads it in fields_read.yaml, or give it a row in not_served.TABLE"
    assert reader == NOTHING or {name, path[-1]} & named_in(ROOT / reader), f"{reader} does not read {key}"


def test_is_40_fields_of_a_status_that_our_types_do_not_carry_are_in_the_table() -> None:
    missing = [
        f"{definition.resource.kind} {'.'.join(path)}"
        for definition in DEFINITIONS
        for path, key, _ in parts(definition.struct, ())
        if path[0] == "status" and key in BESIDES and not part_in_table(definition.resource.kind, path)
    ]
    assert missing == []


def test_is_40_every_row_of_the_table_is_a_field_of_its_kind() -> None:
    """A row for what the CRD drops would never be seen by the webhook."""
    schemas = {one.resource.kind: crds.document(one)["spec"]["versions"][0] for one in DEFINITIONS}
    for entry in TABLE:
        for kind in set(entry.kinds) & schemas.keys():
            if entry.path[0] == "metadata":
                continue  # any API has labels and annotations
            schema: Any = schemas[kind]["schema"]["openAPIV3Schema"]
            for name in entry.path:
                schema = schema["items"] if name == EACH else schema["properties"][name]


def test_is_40_the_map_names_no_field_that_is_gone() -> None:
    assert sorted(READ.keys() - {param.values[2] for param in FIELDS}) == []


@cache
def sources() -> tuple[Path, ...]:
    return tuple(
        module
        for folder in SOURCES
        for module in sorted((ROOT / folder).rglob("*.py"))
        if module.name not in TABLES_OWN | {"markers.py"}
    )


@pytest.mark.parametrize("marker", MARKERS)
def test_is_40_every_marker_of_kueues_is_read_or_in_the_table(marker: str) -> None:
    if any(marker in (*entry.path, *entry.values) for entry in TABLE):
        return
    constants = {
        target.id
        for node in ast.parse((ROOT / "kinds/gatelift_kinds/shared/markers.py").read_text()).body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and node.value.value == marker
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    readers = [module for module in sources() if ({marker} | constants) & named_in(module)]
    assert readers, f"{marker}: nothing reads it, and not_served.TABLE has no row for it"


def test_is_40_every_identifier_of_kueues_that_our_code_knows_is_on_the_list() -> None:
    known = {
        text for module in (*sources(), ROOT / "kinds/gatelift_kinds/shared/markers.py") for text in named_in(module)
    }
    spelled = {one for one in known if IDENTIFIER.fullmatch(one)}
    assert sorted(spelled - set(MARKERS) - NAMES_OF_ANOTHER_SORT) == []


def test_is_40_the_page_is_what_the_table_says() -> None:
    page = not_served.PAGE.read_text()
    assert page == not_served.content(page), "run `python -m scripts.not_served`"


def test_is_40_what_is_left_as_it_is_is_no_wish_that_a_person_writes_into_a_spec() -> None:
    for entry in TABLE:
        if entry.answer is Treatment.LEFT and entry.path[0] == "spec":
            assert "topology" in entry.text or "pod set" in entry.text, entry
