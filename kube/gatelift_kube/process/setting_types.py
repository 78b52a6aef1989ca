"""The types that settings have: each is taken as what it is, and as nothing else. Neighbour: `settings_file`.

pydantic takes true for 1, and texts for numbers; Kueue's files know neither. In the environment all is text.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator

from gatelift_kube.values.numbers import signed, whole

WHOLE, NUMBER, FLAG = "must be a whole number", "must be a number", "must be true or false"


class EnvironmentText(str):
    """A text of the environment, which knows no other type: what the setting is says how it is read."""

    __slots__ = ()


_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\]")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_PORT_MAX = 65535
_NAME_MAX = 253


def address(value: str, *, host_needed: bool) -> str:
    """Return a `host:port`; without `host_needed` the host may be left out. Raises ValueError, which says the form."""
    host, colon, port = value.rpartition(":")
    number = whole(port)
    right = colon and number is not None and number <= _PORT_MAX
    if not right or not (_HOST.fullmatch(host) if host else not host_needed):
        raise ValueError(f"{value!r} is no address; write host:port")
    return value


def _object_name(value: str) -> str:
    if len(value) > _NAME_MAX or not _SUBDOMAIN.fullmatch(value):
        raise ValueError(f"{value!r} is no object name; use lower-case letters, digits, '-' and '.', at most 253")
    return value


def _namespace_name(value: str) -> str:
    if not _NAMESPACE.fullmatch(value):
        raise ValueError(f"{value!r} is no namespace; use lower-case letters, digits and '-', at most 63")
    return value


ObjectName = Annotated[str, AfterValidator(_object_name)]
"""A setting that names an object of the API server."""
NamespaceName = Annotated[str, AfterValidator(_namespace_name)]
"""A setting that names a namespace."""
NamespaceNameOrNone = Annotated[str, AfterValidator(lambda value: value and _namespace_name(value))]
"""A setting that names a namespace, or is empty where the process's own is meant."""


_NO_NUMBERS = frozenset({"nan", "inf", "-inf"})
_DIGITS = re.compile(r"[0-9]{1,18}(\.[0-9]{1,18})?")


def _of_type(value: Any, rule: str, *, flag: bool) -> Any:
    """Return a value of the type that a setting has: true is not 1, and a text in a file is no number, as in Kueue."""
    if isinstance(value, str) and not isinstance(value, EnvironmentText):
        quoted = value in {"true", "false"} if flag else _DIGITS.fullmatch(value)
        raise ValueError(f"{rule}: leave the quotes out" if quoted else rule)  # noqa: TRY004  # which pydantic turns into a line
    if isinstance(value, int | float) and isinstance(value, bool) is not flag:
        raise ValueError(rule)
    return value


def _whole(value: Any) -> Any:
    found = _of_type(value, WHOLE, flag=False)
    number = signed(found) if isinstance(found, EnvironmentText) else found
    if number is None and found is not None:
        raise ValueError(WHOLE)
    return number


def _quantity(value: Any) -> Any:
    if not isinstance(value, str | int | float) or isinstance(value, bool) or str(value) in _NO_NUMBERS:
        raise ValueError("must be a quantity: write a number with an optional suffix, as 500m or 2Gi")
    return value


Whole = Annotated[int, BeforeValidator(_whole)]
"""A setting that is a whole number. pydantic's own `int` takes true for 1, and texts."""
Number = Annotated[float, BeforeValidator(lambda value: _of_type(value, NUMBER, flag=False))]
"""A setting that is a number, with a fraction or without."""
Flag = Annotated[bool, BeforeValidator(lambda value: _of_type(value, FLAG, flag=True))]
"""A setting that is on or off."""
On = Annotated[Literal[True], BeforeValidator(lambda value: _of_type(value, "must be true", flag=True))]
"""A setting that files have, and that can only be on."""
Quantity = Annotated[str | int | float, BeforeValidator(_quantity)]
"""A setting that is an amount of a resource, as the API writes it."""
