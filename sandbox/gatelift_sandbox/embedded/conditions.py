"""The part of CEL that matchConditions use, evaluated without a library: member access, `has`, `in`, comparison, logic.

Grammar: `||` over `&&` over comparison (`==`, `!=`, `>`, `in`) over `!` over a value: a literal, a list of literals, a
name with `.field`, `['key']`, or a call of `startsWith`, `endsWith`, `contains`; `has(path)`; `size(value)`;
`list.exists(name, condition)`; brackets. An expression beyond that counts as true: the webhook is asked, and decides
for itself. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from gatelift_sandbox.embedded.documents import Document

_TOKEN = re.compile(
    r"""\s*(?:(?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
      |(?P<number>-?\d+)
      |(?P<name>[A-Za-z_]\w*)
      |(?P<sign>\|\||&&|==|!=|[!()\[\].,?>]))""",
    re.VERBOSE,
)
Value = Callable[[Document], Any]
_CALLS: dict[str, Callable[[str, str], bool]] = {
    "startsWith": str.startswith,
    "endsWith": str.endswith,
    "contains": lambda text, part: part in text,
}
_CONSTANTS = {"true": True, "false": False, "null": None}
DEPTH_MAX = 50


class _UnknownError(Exception):
    """The expression is beyond this subset."""


class _MissingError(Exception):
    """A field on the way is not there; CEL makes that an error, which skips or fails the webhook."""


def holds(expression: str, variables: Document) -> bool:
    """Return whether an expression is true; also where it is not understood or meets a missing field."""
    evaluate = _compiled(expression)
    if evaluate is None:
        return True
    try:
        return evaluate(variables) is True
    except _MissingError:
        return True


@lru_cache(maxsize=256)
def _compiled(expression: str) -> Value | None:
    try:
        parser = _Parser(_tokens(expression))
        found = parser.either()
        parser.end()
    except _UnknownError:
        return None
    return found


def _tokens(expression: str) -> list[tuple[str, str]]:
    found, place, text = [], 0, expression.strip()
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None or match.lastgroup is None:
            raise _UnknownError
        found.append((match.lastgroup, match[match.lastgroup]))
        place = match.end()
    return found


class _Parser:
    """Recursive descent; each method returns a function from variables to a value."""

    def __init__(self, tokens: list[tuple[str, str]]) -> None:
        self._tokens = tokens
        self._place = 0
        self._depth = 0

    def end(self) -> None:
        if self._place != len(self._tokens):
            raise _UnknownError

    def either(self) -> Value:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise _UnknownError
        left = self._both()
        while self._take("||"):
            left = _logic(left, self._both(), stop=True)
        self._depth -= 1
        return left

    def _both(self) -> Value:
        left = self._comparison()
        while self._take("&&"):
            left = _logic(left, self._comparison(), stop=False)
        return left

    def _comparison(self) -> Value:
        left = self._unary()
        if self._take("=="):
            right = self._unary()
            return lambda variables: left(variables) == right(variables)
        if self._take("!="):
            right = self._unary()
            return lambda variables: left(variables) != right(variables)
        if self._take(">"):
            right = self._unary()
            return lambda variables: left(variables) > right(variables)
        if self._peek() == ("name", "in"):
            self._place += 1
            right = self._unary()
            return lambda variables: left(variables) in (right(variables) or ())
        return left

    def _unary(self) -> Value:
        if self._take("!"):
            inner = self._unary()
            return lambda variables: not inner(variables)
        return self._postfix(self._primary())

    def _primary(self) -> Value:
        group, text = self._next()
        if group == "text":
            literal: Any = re.sub(r"\\(.)", r"\1", text[1:-1])
            return lambda _: literal
        if group == "number":
            count = int(text)
            return lambda _: count
        if text == "(":
            inner = self.either()
            self._expect(")")
            return inner
        if text == "[":
            return self._list()
        if group == "name":
            return self._named(text)
        raise _UnknownError

    def _named(self, name: str) -> Value:
        if name in _CONSTANTS:
            return lambda _: _CONSTANTS[name]
        if name in ("has", "size") and self._take("("):
            inner = self.either()
            self._expect(")")
            return _has(inner) if name == "has" else lambda variables: len(inner(variables) or ())
        return lambda variables: _field(variables, name)

    def _list(self) -> Value:
        parts: list[Value] = []
        while not self._take("]"):
            parts.append(self.either())
            self._take(",")
        return lambda variables: [part(variables) for part in parts]

    def _postfix(self, value: Value) -> Value:
        while True:
            if self._take("."):
                group, name = self._next()
                if group != "name":
                    raise _UnknownError
                value = self._member(value, name)
            elif self._take("["):
                key = self.either()
                self._expect("]")
                value = _index(value, key)
            else:
                return value

    def _member(self, value: Value, name: str) -> Value:
        if not self._take("("):
            return lambda variables: _field(value(variables), name)
        if name == "exists":
            return self._exists(value)
        call = _CALLS.get(name)
        if call is None:
            raise _UnknownError
        argument = self.either()
        self._expect(")")
        return lambda variables: call(str(value(variables)), str(argument(variables)))

    def _exists(self, value: Value) -> Value:
        group, name = self._next()
        if group != "name":
            raise _UnknownError
        self._expect(",")
        met = self.either()
        self._expect(")")
        return lambda variables: any(met({**variables, name: item}) for item in value(variables) or ())

    def _peek(self) -> tuple[str, str]:
        return self._tokens[self._place] if self._place < len(self._tokens) else ("end", "")

    def _next(self) -> tuple[str, str]:
        found = self._peek()
        self._place += 1
        return found

    def _take(self, sign: str) -> bool:
        if self._peek() != ("sign", sign):
            return False
        self._place += 1
        return True

    def _expect(self, sign: str) -> None:
        if not self._take(sign):
            raise _UnknownError


def _logic(left: Value, right: Value, *, stop: bool) -> Value:
    """Return `||` (stop at true) or `&&` (stop at false): as in CEL, the other side may settle it where one fails."""

    def decide(variables: Document) -> bool:
        try:
            if bool(left(variables)) is stop:
                return stop
        except _MissingError:
            if bool(right(variables)) is stop:
                return stop
            raise
        return bool(right(variables))

    return decide


def _has(inner: Value) -> Value:
    def there(variables: Document) -> bool:
        try:
            return inner(variables) is not None
        except _MissingError:
            return False

    return there


def _field(value: Any, name: str) -> Any:
    if not isinstance(value, dict) or name not in value:
        raise _MissingError
    return value[name]


def _index(value: Value, key: Value) -> Value:
    def look(variables: Document) -> Any:
        found, wanted = value(variables), key(variables)
        if isinstance(found, list) and isinstance(wanted, int) and 0 <= wanted < len(found):
            return found[wanted]
        return _field(found, wanted)

    return look
