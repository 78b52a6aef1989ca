"""What the manager says of placements that are not known here, as long as they may be here. See `late_stops`."""

from __future__ import annotations

from dataclasses import dataclass, field

from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import Commit, Stop
from gatelift_wire.values.single import Leaver


@dataclass(slots=True, kw_only=True)
class LateStop:
    """A stop that waits, of which session; `again_at`: when what it names is asked again to end."""

    session: int
    stop: Stop
    again_at: float = 0.0


@dataclass(slots=True, kw_only=True)
class LateCommit:
    """A commit that waits, of which session; `left`: who was told to leave since."""

    session: int
    commit: Commit
    left: tuple[Leaver, ...] = ()


@dataclass(slots=True)
class Late:
    """What is said of what is not known here while it may be `unlisted`, or be what could not be read."""

    stops: dict[PlacementKey, LateStop] = field(default_factory=dict)
    commits: dict[PlacementKey, LateCommit] = field(default_factory=dict)
