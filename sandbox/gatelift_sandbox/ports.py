"""Free TCP ports of this machine for servers that are started a moment later.

They are below the range from which Linux takes the ports of outgoing connections: between our looking and the server's
binding no connection of anybody gets one of them. This process hands out none twice; another one may choose the same
at the same moment, with odds of one in thousands, and whoever starts a server with it hears of that.
"""

from __future__ import annotations

import random
import socket

from gatelift_sandbox.errors import StartError

FIRST, LAST = 15_000, 31_999
"""Linux begins at 32768 unless told otherwise; well-known servers of developers' machines are below 15000."""
TRIES_MAX = 1000

_handed_out: set[int] = set()


def free() -> int:
    """Return a port of 127.0.0.1 on which nobody listens and which this process gave to nobody yet.

    Raises StartError where there is none.
    """
    chance = random.SystemRandom()
    for _ in range(TRIES_MAX):
        port = chance.randint(FIRST, LAST)
        if port not in _handed_out and _is_free(port):
            _handed_out.add(port)
            return port
    raise StartError(f"no free port found between {FIRST} and {LAST} in {TRIES_MAX} tries")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
