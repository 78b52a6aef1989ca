"""JSON logs, one line per fact, on standard error. No secret is ever passed to a logger."""

from __future__ import annotations

import datetime as dt
import logging
import sys
from typing import Any

import msgspec
import structlog
from structlog.typing import EventDict, WrappedLogger


def configure(*, human: bool = False, level: int = logging.INFO) -> None:
    """Set logging up for the process; `human` prints short coloured lines instead of JSON."""
    processors: list[Any] = [_json]
    factory: Any = structlog.BytesLoggerFactory(file=sys.stderr.buffer)
    if human:
        # A plain traceback: one with the values of local variables would show keys and tokens.
        console = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
        stamp = structlog.processors.TimeStamper(fmt="iso", utc=True)
        processors = [structlog.processors.add_log_level, stamp, structlog.processors.format_exc_info, console]
        factory = structlog.WriteLoggerFactory(file=sys.stderr)
    structlog.configure(
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=factory,
        cache_logger_on_first_use=True,
    )


def _json(logger: WrappedLogger, method: str, event: EventDict) -> bytes:
    """Return a line as JSON, with its level and time. A placement writes several, so it is one step for all."""
    event["level"] = _LEVELS.get(method, method)
    now = dt.datetime.now(dt.UTC).replace(tzinfo=None)
    event["timestamp"] = f"{now.isoformat()}Z"
    if event.get("exc_info"):
        event = structlog.processors.format_exc_info(logger, method, event)
    return _ENCODE(event)


_LEVELS = {"warn": "warning", "exception": "error"}
"""Methods of a logger that are not named as their level."""

_ENCODE = msgspec.json.Encoder(enc_hook=repr).encode
