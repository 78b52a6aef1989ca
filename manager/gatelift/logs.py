"""JSON logs, one line per fact, on standard error. No secret is ever passed to a logger."""

from __future__ import annotations

import logging
import sys

import structlog


def configure(*, human: bool = False, level: int = logging.INFO) -> None:
    """Set logging up for the process; `human` prints short coloured lines instead of JSON."""
    # A plain traceback: one with the values of local variables would show keys and tokens.
    console = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    renderer = console if human else structlog.processors.JSONRenderer(sort_keys=False)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=True,
    )
