"""Free TCP ports of this machine for servers that are started a moment later.

They are below the range from which Linux takes the ports of outgoing connections: between our looking and the server's
binding no connection of anybody gets one of them. This process hands out none twice, and no other process of this kind
hands out one that a living process was given: a run that is spread over processes chooses dozens at the same moment,
and servers come and go on theirs. Only a stranger's server may still take one meanwhile, and whoever starts a server
with it hears of that.
"""

from __future__ import annotations

import random
import socket

from gatelift_sandbox.errors import StartError

FIRST, LAST = 15_000, 31_999
"""Linux begins at 32768 unless told otherwise; well-known servers of developers' machines are below 15000."""
TRIES_MAX = 1000
MARK = "\0gatelift-sandbox-port-{}"
"""Name of the socket that says whose a port is. Linux keeps such names in no file and drops them with their process."""

_handed_out: set[int] = set()


def free() -> int:
    """Return a port of 127.0.0.1 on which nobody listens and which no living process has been given; ours till we end.

    Raises StartError where there is none.
    """
    chance = random.SystemRandom()
    for _ in range(TRIES_MAX):
        port = chance.randint(FIRST, LAST)
        if port in _handed_out:
            continue
        mark = _marked(port)
        if mark is None:
            continue
        if _is_free(port):
            _handed_out.add(port)
            mark.detach()  # open for as long as this process lives
            return port
        mark.close()
    raise StartError(f"no free port found between {FIRST} and {LAST} in {TRIES_MAX} tries")


def _marked(port: int) -> socket.socket | None:
    """Return what keeps other processes from choosing a port too, None where another one has it."""
    mark = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        mark.bind(MARK.format(port))
    except OSError:
        mark.close()
        return None
    return mark


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
