"""Every number and switch of both configuration files is taken as what it is, and as nothing else (IS-7)."""

from __future__ import annotations

import types
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import pytest
import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from gatelift import config as manager
from gatelift_agent import config as agent
from gatelift_kube.process.settings_file import ConfigError

AGENT = {"cluster": "w1", "manager": "m:1"}
FILES: dict[str, tuple[type[BaseModel], Any, dict[str, Any]]] = {
    "manager": (manager.Configuration, manager.load, {}),
    "agent": (agent.AgentConfiguration, agent.load, AGENT),
}
NEITHER = {int: (True, "5", "1_0", 1.5, 10**30), float: (True, "x", float("nan"), float("inf")), bool: (1, 0, "true")}
"""By the type of a setting: values that pydantic, or Python, would make fit."""


def leaves(annotation: Any) -> Iterator[type]:
    """Yield the scalar types in an annotation."""
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from leaves(get_args(annotation)[0])
    elif origin in {Union, types.UnionType}:
        for part in get_args(annotation):
            yield from leaves(part)
    elif origin is Literal:
        yield from {type(each) for each in get_args(annotation)}
    elif isinstance(annotation, type) and annotation in {bool, int, float, str}:
        yield annotation


def inside(annotation: Any) -> Iterator[tuple[Any, type[BaseModel]]]:
    """Yield how a section is wrapped in a file (itself, or a list of it)."""
    parts = get_args(annotation) or (annotation,)
    for part in parts:
        if isinstance(part, type) and issubclass(part, BaseModel):
            yield (list if get_origin(annotation) is tuple else None), part


def settings(section: type[BaseModel], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], FieldInfo]]:
    for name, field in section.model_fields.items():
        here = (*path, str(field.alias or name))
        yield here, field
        for wrapped, below in inside(field.annotation):
            yield from settings(below, (*here, "[]") if wrapped else here)


def document(path: tuple[str, ...], value: Any) -> Any:
    for name in reversed(path):
        value = [value] if name == "[]" else {name: value}
    return value


def wrong() -> Iterator[Any]:
    for end, (section, _, _) in FILES.items():
        for path, field in settings(section):
            kinds = set(leaves(field.annotation))
            values = () if len(kinds) != 1 else NEITHER.get(next(iter(kinds)), ())
            for value in values:
                yield pytest.param(end, path, value, id=f"{end}: {'.'.join(path)}: {value!r}")
    yield pytest.param("manager", ("featureGates", "PriorityBoost"), 1, id="a gate")
    for amount in (True, float("nan"), float("-inf"), [1]):
        yield pytest.param("agent", ("capacity", "[]", "nominal"), amount, id=f"an amount: {amount}")


@pytest.mark.parametrize(("end", "path", "value"), list(wrong()))
def test_is_7_a_value_of_another_type_is_refused_in_one_line_that_names_it(
    tmp_path: Path, end: str, path: tuple[str, ...], value: Any
) -> None:
    _, load, good = FILES[end]
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump({**good, **document(path, value)}))
    with pytest.raises(ConfigError) as refused:
        load(file)
    dotted = ".".join("0" if part == "[]" else part for part in path)
    lines = [line for line in str(refused.value).splitlines() if "is required" not in line]  # other keys of an entry
    assert len(lines) == 1
    assert lines[0].startswith(f"{dotted}: ")
    assert any(word in lines[0] for word in ("must be", "is not a duration", "can be"))


def test_is_7_numbers_and_switches_are_found_in_both_files() -> None:
    found = [each.id for each in wrong()]
    assert sum(str(each).startswith("manager") for each in found) > 100
    assert sum(str(each).startswith("agent") for each in found) > 60


@pytest.mark.parametrize(
    ("name", "text", "taken"),
    [("CREDITS", "7", True), ("WATCH_NODES", "false", True), ("API_PER_SECOND", "1.5", True)]
    + [("CREDITS", text, False) for text in ("true", "1_0", "٣", "9" * 30, "")]
    + [("API_PER_SECOND", text, False) for text in ("nan", "inf", "true")]
    + [("WATCH_NODES", text, False) for text in ("2", "maybe", "")],
)
def test_is_7_the_environment_knows_texts_only_and_they_are_read_as_what_the_setting_is(
    monkeypatch: pytest.MonkeyPatch, name: str, text: str, taken: bool
) -> None:
    for key, value in {**AGENT, name: text}.items():
        monkeypatch.setenv(f"GATELIFT_AGENT_{key.upper()}", value)
    if taken:
        agent.load(None)
        return
    with pytest.raises(ConfigError, match="must be"):
        agent.load(None)
