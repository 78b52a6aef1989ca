"""RM-2: what an event enters in the manager's core goes down through its rooms, and never back."""

from __future__ import annotations

from collections import Counter

from support.sim.walks import CORE, Walker, live


def test_rm_2_no_call_goes_back_into_a_room_that_waits_for_its_answer() -> None:
    walker = Walker(CORE)
    live(walker)
    assert {"AgentFrameArrived", "ObjectSeen", "ObjectGone", "Synced", "Ticked", "WriteDone"} <= walker.longest.keys()
    assert walker.longest["WriteDone"].crossings > 50, "calls are followed"
    ways: Counter[str] = Counter()
    for walk in walker.longest.values():
        ways += walk.back
    assert ways == Counter()


def test_rm_2_a_call_that_goes_back_is_noticed() -> None:
    """What knows all is said to be in the room of the door: whoever writes to it then goes back to that."""
    walker = Walker(CORE)
    walker.name_room("core.py", "machine")
    live(walker)
    assert any(walk.back for walk in walker.longest.values())
