"""What an object was as a worker answered our write of it. Neighbour: `placements` keeps it for each object."""

from __future__ import annotations

import msgspec


class Made(msgspec.Struct, frozen=True):
    """What an object was, as the worker answered our own last write of its spec; see `edits`."""

    generation: int = 0
    charged: dict[str, str | int | None] = {}
    uncharged: dict[str, str] = {}
    """Digests of what nothing is charged for, by field; without one where nobody knows. Told of when it changes."""
