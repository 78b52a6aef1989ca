"""Turns at a pace (HD-573): shares of those that wait take them in turn, and who gives up waiting has none."""

from __future__ import annotations

import asyncio

from gatelift_kube.deciding.budget import Share as Pace
from gatelift_kube.process.paced_turns import PacedTurns
from gatelift_kube.process.tasks import spawn

PACE = Pace(in_flight=64, per_second=500.0, burst=1)


async def in_line(turns: PacedTurns, shares: list[str]) -> list[str]:
    """Have all stand at once, in this order; return in which order they had their turns."""
    had: list[str] = []

    async def stands(share: str) -> None:
        await turns.wait((share,))
        had.append(share)

    await asyncio.gather(*(spawn(f"{share} {number}", stands(share)) for number, share in enumerate(shares)))
    return had


async def test_hd_573_one_of_another_share_has_the_next_turn_but_one_however_many_wait() -> None:
    had = await in_line(PacedTurns(PACE), [*["crowd"] * 20, "alone"])
    assert had.index("alone") <= 2
    assert len(had) == 21


async def test_hd_573_who_is_cancelled_while_waiting_leaves_its_turn_to_the_others() -> None:
    turns = PacedTurns(PACE)
    await turns.wait(("crowd",))
    gone = spawn("gone", turns.wait(("crowd",)))
    await asyncio.sleep(0)
    gone.cancel()
    await asyncio.gather(gone, return_exceptions=True)
    assert await in_line(turns, ["crowd", "alone"]) == ["crowd", "alone"]
