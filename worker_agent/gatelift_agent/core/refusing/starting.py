"""May this placement start something now? Rules R1 and R8 in one place, asked before every write that starts pods.

Running needs none of this: a placement that is let go stays so when the lease runs out. What its policy does about that
is decided elsewhere. So the manager confirms what runs only where that is asked for: an edit, or a label at home, is to
be put back.
"""

from __future__ import annotations

from gatelift_agent.core.placement.placements import Placement
from gatelift_agent.core.state.world import World
from gatelift_wire.values.messages import Applied

WORD_SECONDS = 30.0
"""After this a confirmation is asked for again: the manager may have had to ask others before it could say it."""


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


def ask_word(world: World, placement: Placement, now: float) -> None:
    """Ask the manager to confirm what runs, and its size, in the present session, where nothing else is missing."""
    session, sizing = world.standing.session, placement.sizing
    confirmed = placement.confirmed_session == session and (sizing is None or sizing.confirmed_session == session)
    if not world.leadership.acts(now) or not world.standing.open or confirmed:
        return
    if placement.word_asked != session or placement.word_again_at <= now:
        placement.word_asked, placement.word_again_at = session, now + WORD_SECONDS
        world.say(Applied(key=placement.key, waits=True))
    world.wakes.ask(placement.key, placement.word_again_at)
