"""A configuration file as both daemons read it: YAML with camelCase keys, the environment over it, checked once.

A mistake is one line that names the path of the key, what is wrong, and the way out; never a stack trace.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic.alias_generators import to_camel
from pydantic_settings import BaseSettings, EnvSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict
from pydantic_settings.exceptions import SettingsError

from gatelift_kube.deciding.errors import SettingsFileError
from gatelift_kube.process.setting_types import FLAG, NUMBER, WHOLE, EnvironmentText

T = TypeVar("T")

NUMBER_CHARS_MAX = 64
"""Longer than any number that a setting can be, in whatever base YAML has it."""
FOUND_CHARS_MAX = 100
"""Of a value that is wrong, in the line that says so."""


ConfigError = SettingsFileError
"""The configuration cannot be used; each line of the text names a path, the rule and the way out."""


SECRETS = frozenset({"token"})
"""Settings whose value is never shown, not even a wrong one: it may lack no more than a letter."""


class _Nulls(BaseModel):
    """A key without a value is one that is not set, as in all files of Kubernetes."""

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, data: Any) -> Any:
        known = {field.alias or name for name, field in cls.model_fields.items()}
        nulls = {key for key, value in data.items() if value is None and key in known} if isinstance(data, dict) else ()
        return {key: value for key, value in data.items() if key not in nulls} if nulls else data


class Section(_Nulls):
    """A part of the file: camelCase keys, unknown ones refused, frozen."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True, allow_inf_nan=False
    )


class EnvironmentSettings(_Nulls, BaseSettings):
    """Settings that the environment may override key by key; subclasses set `env_prefix`. Nothing else is read."""

    model_config = SettingsConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="forbid",
        frozen=True,
        allow_inf_nan=False,
        env_nested_delimiter="__",
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Let the environment win over the file; read nothing else."""
        del env_settings, dotenv_settings, file_secret_settings
        return (_CamelEnvironment(settings_cls), init_settings)


class _CamelEnvironment(EnvSettingsSource):
    """The environment under the file's camelCase keys, so that the two merge key by key."""

    def __call__(self) -> dict[str, Any]:
        camel: dict[str, Any] = _as_the_file(super().__call__())
        return camel


def _as_the_file(value: Any) -> Any:
    if isinstance(value, dict):
        return {to_camel(key): _as_the_file(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_as_the_file(inner) for inner in value]
    return EnvironmentText(value) if isinstance(value, str) else value


def read(path: Path | None) -> dict[str, Any]:
    """Return the file's mapping, empty for no file. Raises ConfigError when it cannot be read as one."""
    if path is None:
        return {}
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}); name a readable file") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: is not YAML; mend the syntax there") from error
    return parsed(text, str(path))


def parsed(text: str, where: str) -> dict[str, Any]:
    """Return the mapping in a file's text, empty for none; `where` names the file in a ConfigError."""
    try:
        document = yaml.load(text, Loader=_OnceLoader)  # noqa: S506  # a SafeLoader
    except _TwiceError as error:
        raise ConfigError(f"{where} line {error.line}: {error.key} is set twice; keep one of them") from error
    except yaml.composer.ComposerError as error:
        if "single document" not in str(error):
            raise ConfigError(f"{where}: is not YAML; mend the syntax there") from error
        raise ConfigError(f"{where}: holds more than one document; keep one, without a line '---' in it") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" line {mark.line + 1}" if mark is not None else ""
        raise ConfigError(f"{where}{line}: is not YAML; mend the syntax there") from error
    except ValueError as error:
        text = "has a tag ('!!int', '!!float') that its value does not fit; leave the tag out"
        raise ConfigError(f"{where}: {text}") from error
    except RecursionError as error:
        raise ConfigError(f"{where}: is nested too deep for a configuration; mend the brackets there") from error
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise ConfigError(f"{where}: holds a {type(document).__name__}, a mapping of settings is needed")
    return document


def _cut(found: str | float) -> str:
    """Return what was found as Python writes it (YAML's words for its own), in one line that people read."""
    text = str(found).lower() if isinstance(found, bool) else repr(found)
    return text if len(text) <= FOUND_CHARS_MAX else f"{text[:FOUND_CHARS_MAX]}... of {len(text)} characters"


class _TwiceError(Exception):
    """A key that stands twice in one mapping: YAML would take the last one in silence."""

    def __init__(self, key: str, line: int) -> None:
        super().__init__(key)
        self.key = key
        self.line = line


class _OnceLoader(yaml.SafeLoader):
    """Plain YAML, each key of a mapping once."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Return the mapping; _TwiceError for a key that was there already (`<<` may be)."""
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                if key.value in seen:
                    raise _TwiceError(key.value, key.start_mark.line + 1)
                seen.add(key.value)
        return super().construct_mapping(node, deep)

    def construct_short_number(self, node: yaml.ScalarNode) -> int | str:
        """Return a whole number; the text of one that no setting can be: Python reads none above 4300 digits."""
        return self.construct_yaml_int(node) if len(node.value) <= NUMBER_CHARS_MAX else str(node.value)

    def construct_text(self, node: yaml.ScalarNode) -> str:
        """Return what stands there: no setting is a date, and Python has no word for some of those that YAML knows."""
        return str(node.value)


_OnceLoader.add_constructor("tag:yaml.org,2002:int", _OnceLoader.construct_short_number)
_OnceLoader.add_constructor("tag:yaml.org,2002:timestamp", _OnceLoader.construct_text)


def checked(make: Callable[[], T], environment_prefix: str) -> T:
    """Return `make()`; its validation errors become one ConfigError with a line per problem."""
    try:
        return make()
    except ValidationError as error:
        # A section that only the environment sets is checked by itself: its path begins with its own name.
        head = () if error.title.endswith("Configuration") else (to_camel(error.title.lower()),)
        lines = [
            _line({**each, "loc": (*head, *map(_key, each["loc"]))}, environment_prefix) for each in error.errors()
        ]
        raise ConfigError("\n".join(lines)) from error
    except SettingsError as error:
        found = re.search(r'field "(\w+)"', str(error))
        name = f"{environment_prefix}{found[1].upper() if found else '...'}"
        raise ConfigError(f"{name}: is not JSON; set single values instead, as {name}__KEY=value") from error


def _key(part: int | str) -> int | str:
    """Return a part of a path as files spell it; of a default that does not go with another setting it is ours."""
    return to_camel(part) if isinstance(part, str) and "_" in part else part


def _bound(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:g}"


def _rule(problem: Any) -> str:
    """Return what has to be written, in our words for the mistakes that are made most."""
    limits = problem.get("ctx") or {}
    match problem["type"]:
        case "literal_error" | "enum":
            return f"must be {_EXPECTED.get(limits['expected'], limits['expected'])}"
        case "greater_than_equal":
            return f"must be at least {_bound(limits['ge'])}"
        case "greater_than":
            return f"must be above {_bound(limits['gt'])}"
        case "less_than_equal":
            return f"must be at most {_bound(limits['le'])}"
        case "less_than":
            return f"must be below {_bound(limits['lt'])}"
        case "invalid_key":
            return "a key has to be a text: mend its spelling, or put it in quotes"
        case "too_short":
            return f"must have at least {limits['min_length']} {'entry' if limits['min_length'] == 1 else 'entries'}"
        case kind:
            return _TYPES.get(kind.rpartition("_")[0], str(problem["msg"]).removeprefix("Value error, "))


_EXPECTED = {"True": "true", "False": "false"}
"""YAML's words for Python's."""

_TYPES = {
    "int": WHOLE,
    "int_from": WHOLE,
    "int_parsing": WHOLE,
    "float": NUMBER,
    "finite": "must be a finite number",
    "bool": FLAG,
    "string": "must be a text: put it in quotes",
    "tuple": "must be a list: write each item on a line of its own after '- '",
    "dict": "must be a mapping: write 'key: value' lines under it",
    "model": "must be a mapping: write 'key: value' lines under it",
    "model_attributes": "must be a mapping: write 'key: value' lines under it",
}
"""Rules by what pydantic calls the type that was wanted (its error types are `int_parsing`, `bool_type` and so on)."""


def _line(problem: Any, environment_prefix: str) -> str:
    path = ".".join(str(part) for part in problem["loc"] if part != "[key]") or "the file"
    if problem["type"] == "extra_forbidden":
        return f"{path}: is no key of the configuration; remove it or mend its spelling"
    if problem["type"] == "missing":
        name = "".join(f"_{letter}" if letter.isupper() else letter.upper() for letter in path)
        return f"{path}: is required; set it in the file or as {environment_prefix}{name}"
    text = _rule(problem)
    found = problem["input"]
    if isinstance(found, float) and found.is_integer():
        found = math.trunc(found)
    told = path in SECRETS or (isinstance(found, str | float) and repr(found) in text)
    shown = f" (found {_cut(found)})" if isinstance(found, str | int | float) and not told else ""
    return (text if text.startswith(f"{path}:") else f"{path}: {text}") + shown
