"""JSON logs, one line per fact, on standard error. No secret is ever passed to a logger."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from typing import Any

import msgspec
import structlog


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
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=True,
    )


def _json(line: Any, *, default: Callable[[Any], Any]) -> str:
    """Return a line as JSON; a placement writes several, so it is done by the fastest encoder that is there anyway."""
    return msgspec.json.encode(line, enc_hook=default).decode()
