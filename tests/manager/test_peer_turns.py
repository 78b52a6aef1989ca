"""HD-113: what one peer may cost, and that whoever floods waits for himself."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest

from gatelift.adapters import peer_budget, peer_turns
from gatelift.adapters.peer_budget import (
    ABOVE_SECONDS_MAX,
    ACCOUNTS_MAX,
    BYTES_BURST,
    BYTES_PER_SECOND,
    CPU_BURST_SECONDS,
    CPU_SHARE,
    ITEMS_BURST,
    ITEMS_PER_SECOND,
    PACE_BURST_SECONDS,
    PACE_SHARE,
    PACE_WAIT_SECONDS_MAX,
    STREAM_SECONDS,
    WAIT_SECONDS_MAX,
    PeerBudget,
)
from gatelift.adapters.peer_turns import INLINE_BYTES_MAX, PeerTurns
from gatelift_kube.process.tasks import spawn
from gatelift_wire.values import limits

CHUNK_SECONDS = 0.05
"""What a chunk of 4,096 placements costs to decode and to take: a third more than measured."""

# --- the budget ----------------------------------------------------------------------------------------------------


def test_hd_113_a_burst_waits_for_nothing_but_its_pace() -> None:
    budget = PeerBudget()
    budget.spent("w1", 100.0, seconds=PACE_BURST_SECONDS, size=BYTES_BURST, items=ITEMS_BURST)
    assert budget.wait("w1", 100.0) == 0.0
    budget.spent("w1", 100.0, seconds=CPU_BURST_SECONDS - PACE_BURST_SECONDS)
    assert budget.wait("w1", 100.0) == PACE_WAIT_SECONDS_MAX


def test_is_10_no_burst_takes_the_whole_process_for_a_second() -> None:
    budget = PeerBudget()
    now = done = 0.0
    while now < 5.0:
        now += budget.wait("w1", now)
        budget.spent("w1", now, seconds=0.02)
        done += 0.02
    assert done <= PACE_BURST_SECONDS + 5.0 * PACE_SHARE + 0.04


def test_is_10_who_goes_on_gets_a_rate_of_items() -> None:
    budget = PeerBudget()
    now, count = 0.0, 0
    while now < 100.0:
        now += budget.wait("w1", now)
        budget.spent("w1", now, items=65_536)
        count += 65_536
    assert count <= ITEMS_BURST + 100.0 * ITEMS_PER_SECOND + 2 * 65_536


def test_is_10_who_stays_above_is_closed_after_a_while_and_not_before() -> None:
    budget, now, closed = PeerBudget(), 0.0, []
    while now < 3 * ABOVE_SECONDS_MAX:
        now += budget.wait("w1", now)
        if budget.stays_above("w1", now):
            closed.append(now)
        budget.spent("w1", now, seconds=0.3)
    assert closed
    assert closed[0] >= ABOVE_SECONDS_MAX
    assert closed[1] - closed[0] >= ABOVE_SECONDS_MAX, "who comes back has as long again"


def test_is_10_who_pauses_is_not_closed_for_what_was() -> None:
    budget = PeerBudget()
    for now in (0.0, 3 * ABOVE_SECONDS_MAX):
        budget.spent("w1", now, seconds=CPU_BURST_SECONDS + 0.5)
        assert budget.wait("w1", now) > 0.0
        assert budget.wait("w1", now + 10.0) == 0.0
        assert not budget.stays_above("w1", now + 10.0)


def test_is_10_the_largest_inventory_is_slowed_and_never_closed_and_a_renewal_behind_it_comes_in_time() -> None:
    budget, now, slowed = PeerBudget(), 0.0, 0
    budget.spent("w1", now, seconds=CPU_BURST_SECONDS / 2, size=BYTES_BURST // 2)  # what it said before
    for _ in range(limits.INVENTORY_ENTRIES_MAX // 4096 + 1):
        wait = budget.wait("w1", now)
        slowed += wait > 0.0
        now += wait
        assert not budget.stays_above("w1", now)
        budget.spent("w1", now, seconds=CHUNK_SECONDS, size=limits.FRAME_BYTES_TARGET, items=4097)
        now += CHUNK_SECONDS
    assert slowed
    assert now + budget.wait("w1", now) < limits.LEASE_SECONDS - limits.RENEW_SECONDS


def test_hd_113_who_goes_on_gets_a_share_of_cpu() -> None:
    budget = PeerBudget()
    now = done = 0.0
    while now < 1000.0:
        now += budget.wait("w1", now)
        budget.spent("w1", now, seconds=0.5)
        done += 0.5
    assert done <= CPU_BURST_SECONDS + 1000.0 * CPU_SHARE + 1.0


def test_hd_113_who_goes_on_gets_a_rate_of_bytes() -> None:
    budget = PeerBudget()
    now, size = 0.0, 0
    while now < 100.0:
        now += budget.wait("w1", now)
        budget.spent("w1", now, size=4 << 20)
        size += 4 << 20
    assert size <= BYTES_BURST + 100.0 * BYTES_PER_SECOND + (8 << 20)


def test_hd_113_others_pay_nothing_of_it() -> None:
    budget = PeerBudget()
    budget.spent("w1", 0.0, seconds=1000.0)
    assert budget.wait("w2", 0.0) == 0.0


def test_hd_113_no_frame_waits_longer_than_a_lease_allows() -> None:
    budget = PeerBudget()
    budget.spent("w1", 0.0, seconds=1000.0, size=1 << 40)
    assert budget.wait("w1", 0.0) == pytest.approx(WAIT_SECONDS_MAX)
    assert budget.wait("w1", WAIT_SECONDS_MAX) == pytest.approx(0.0)


def test_hd_113_a_peer_that_owes_something_is_not_forgotten_for_others() -> None:
    budget = PeerBudget()
    budget.spent("w1", 0.0, seconds=1000.0)
    for number in range(2 * ACCOUNTS_MAX):
        budget.wait(f"peer-{number}", 1.0)
    assert budget.wait("w1", 1.0) > 0.0
    assert len(budget._accounts) <= ACCOUNTS_MAX


# --- turns ---------------------------------------------------------------------------------------------------------


class Turns(PeerTurns):
    """Turns whose clock stands still; `slept` is how long frames would have waited."""

    def __init__(self) -> None:
        super().__init__(lambda: 100.0, self._note)
        self.slept: list[float] = []

    async def _note(self, seconds: float) -> None:
        self.slept.append(seconds)


@pytest.fixture
async def turns() -> AsyncIterator[Turns]:
    made = Turns()
    for stream_id, peer in ((1, "w1"), (2, "w1"), (3, "w2")):
        made.opened(stream_id, peer)
    yield made
    made.stop()


async def a_frame(turns: PeerTurns, stream_id: int, posted: list[int]) -> None:
    async with turns.turn(stream_id, 10):
        await turns.until_handled(stream_id, lambda: posted.append(stream_id))


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_hd_113_one_frame_of_a_peer_stands_in_the_queue_however_many_streams_it_has(turns: Turns) -> None:
    posted: list[int] = []
    tasks = [spawn("frame", a_frame(turns, each, posted)) for each in (1, 2, 3)]
    await settled()
    assert posted == [1, 3], "the other peer's comes beside it"
    turns.handled(1, 0.0)
    await settled()
    assert posted == [1, 3, 2]
    turns.handled(2, 0.0)
    turns.handled(3, 0.0)
    await asyncio.gather(*tasks)


async def test_hd_113_a_large_frame_is_decoded_beside_the_loop(turns: Turns) -> None:
    go_on = threading.Event()
    threads: list[str] = []

    def slowly(_: bytes) -> str:
        threads.append(threading.current_thread().name)
        assert go_on.wait(60.0)
        return "decoded"

    slow = spawn("frame", turns.decoded(1, bytes(INLINE_BYTES_MAX + 1), slowly))
    posted: list[int] = []
    other = spawn("frame", a_frame(turns, 3, posted))
    await settled()
    assert posted == [3]
    turns.handled(3, 0.0)
    await other
    go_on.set()
    assert await slow == "decoded"
    assert threads[0].startswith("frames")


async def test_hd_113_what_the_core_takes_to_handle_is_the_peers_as_well(turns: Turns) -> None:
    turns.handled(1, CPU_BURST_SECONDS + 0.5)  # its pace is the lesser part of that
    task = spawn("frame", a_frame(turns, 2, []))
    await settled()
    turns.handled(2, 0.0)
    await task
    assert turns.slept == [pytest.approx(0.5 / CPU_SHARE)]


async def test_hd_113_a_peer_that_hangs_up_pays_for_what_is_decoded_and_starts_nothing_more_meanwhile(
    turns: Turns,
) -> None:
    go_on, begun = threading.Event(), threading.Event()

    def slowly(_: bytes) -> None:
        begun.set()
        assert go_on.wait(60.0)

    async def floods() -> None:
        async with turns.turn(1, 10):
            await turns.decoded(1, bytes(INLINE_BYTES_MAX + 1), slowly)

    flood = spawn("frame", floods())
    assert await asyncio.to_thread(begun.wait, 60.0)
    flood.cancel()
    turns.closed(1)
    turns.closed(2)
    turns.opened(4, "w1")
    posted: list[int] = []
    again = spawn("frame", a_frame(turns, 4, posted))
    await settled()
    assert posted == []
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await flood
    await settled()
    assert posted == [4]
    turns.handled(4, 0.0)
    await again


def test_hd_113_a_frame_that_waits_leaves_a_lease_its_time() -> None:
    assert peer_budget.WAIT_SECONDS_MAX + peer_turns.HANDLED_SECONDS_MAX < 45.0


async def test_is_11_streams_are_served_at_a_pace_however_fast_they_are_opened(turns: Turns) -> None:
    for _ in range(100):
        await turns.admitted("w1")
    assert turns.slept, "the clock stands still, so each of them would wait longer"
    assert max(turns.slept) == pytest.approx(WAIT_SECONDS_MAX)
    assert len(turns.slept) >= 100 - PACE_BURST_SECONDS / STREAM_SECONDS
    before = len(turns.slept)
    await turns.admitted("w2")
    assert len(turns.slept) == before, "another worker's is served at once"
