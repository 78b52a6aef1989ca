"""What aiohttp has to say of requests goes into our log: one line, at a pace, and of a peer's bytes a few at most.

aiohttp logs each request that it cannot read with the trace of its parser: a stranger who sends such ones writes a
megabyte every few seconds. Neighbour: `door` has one for each port.
"""

from __future__ import annotations

import logging

import structlog
from aiohttp.http_exceptions import HttpProcessingError

from gatelift_kube.process.clock import Clock, monotonic
from gatelift_kube.process.repetitions import PeerRepetitions, Repetitions

TEXT_CHARACTERS_MAX = 200
"""Of what its parser says, which quotes what came."""


def http_logger(port: str, clock: Clock = monotonic) -> logging.Logger:
    """Return what aiohttp is to log to; it stands in no tree of loggers. `port` names the port in the lines."""
    logger = logging.Logger("gatelift.http", logging.WARNING)  # noqa: LOG001 - one of each port, that nobody looks up
    logger.addHandler(_Lines(port, clock))
    return logger


class _Lines(logging.Handler):
    """A line a minute for each of a few peers and for all the others; of our own exceptions with their trace."""

    def __init__(self, port: str, clock: Clock) -> None:
        super().__init__()
        self._port = port
        self._peers = PeerRepetitions(clock)
        self._ours = Repetitions(clock=clock)
        self._log = structlog.get_logger("gatelift.door")

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, HttpProcessingError):
            self._malformed(record, error)
            return
        problem = f"{type(error).__name__}: {error}" if error is not None else record.getMessage()
        count = self._ours.untold((record.lineno, type(error)))
        if count is not None:
            self._log.error("request failed", port=self._port, problem=problem, times_before=count, exc_info=error)

    def _malformed(self, record: logging.LogRecord, error: HttpProcessingError) -> None:
        peer = str(record.args[0]) if isinstance(record.args, tuple) and record.args else ""
        untold = self._peers.untold(peer, type(error).__name__)
        if untold is not None:
            named, count = untold
            said = " ".join(str(error).split())[:TEXT_CHARACTERS_MAX]
            self._log.warning("malformed request", port=self._port, peer=named, problem=said, times_before=count)
