"""JSON logs, one line per fact, on standard error. No secret is ever passed to a logger."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any

import msgspec
import structlog

from gatelift_kube.values.plain_text import plain

CHARS_MAX = 64 * 1024
"""Of one text in a line of the log: a long traceback has a tenth."""


def configure(*, human: bool = False, level: int = logging.INFO) -> None:
    """Set logging up for the process; `human` prints short coloured lines instead of JSON."""
    # A plain traceback: one with the values of local variables would show keys and tokens.
    console = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    renderer = console if human else structlog.processors.JSONRenderer(serializer=_json)
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _plain,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=True,
    )


def _plain(_logger: Any, _method: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Return a line in which no text steers a terminal: much of what is logged others said."""
    for name, value in line.items():
        if type(value) is str and value.isascii() and value.isprintable():
            continue  # nearly all of them
        if not isinstance(value, int | float):
            line[name] = _cleaned(value, lines=name != "event")
    return line


def _cleaned(value: Any, *, lines: bool) -> Any:
    """Return a value whose texts, and those of lists and maps in it, steer nothing; anything else as it is."""
    if isinstance(value, str):
        return value if value.isascii() and value.isprintable() else plain(value, CHARS_MAX, lines=lines)
    if isinstance(value, Mapping):
        return {_cleaned(key, lines=False): _cleaned(one, lines=lines) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_cleaned(one, lines=lines) for one in value]
    return value


def _json(line: Any, *, default: Callable[[Any], Any]) -> str:
    """Return a line as JSON; a placement writes several, so it is done by the fastest encoder that is there anyway."""
    return msgspec.json.encode(line, enc_hook=default).decode()
