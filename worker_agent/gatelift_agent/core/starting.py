"""May this placement start something now? Rules R1 and R8 in one place, asked before every create and every lift.

Running needs none of this: a placement that is let go stays so when the lease runs out. What its policy does about that
is decided elsewhere.
"""

from __future__ import annotations

from gatelift_agent.core.placements import Placement
from gatelift_agent.core.world import World


def why_not(world: World, placement: Placement, now: float) -> str:
    """Return what forbids to create or lift anything for this placement, "" when nothing does.

    Each cause ends by an event (session, confirmation, renewal, leadership), which looks at the placement again.
    """
    standing = world.standing
    if not world.leadership.acts(now):
        return "this replica does not hold the agent's lease in the cluster"
    if not standing.open:
        return "no session with the manager"
    if placement.confirmed_session != standing.session:
        return "not confirmed by the manager in this session"
    if standing.lease_until <= now:
        return "the manager's lease has run out"
    return ""
