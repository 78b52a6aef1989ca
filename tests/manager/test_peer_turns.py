"""HD-113: what one peer may cost, and that whoever floods waits for himself."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest

from gatelift.adapters import peer_budget, peer_turns
from gatelift.adapters.peer_budget import (
    ACCOUNTS_MAX,
    BYTES_BURST,
    BYTES_PER_SECOND,
    CPU_BURST_SECONDS,
    CPU_SHARE,
    WAIT_SECONDS_MAX,
    PeerBudget,
)
from gatelift.adapters.peer_turns import INLINE_BYTES_MAX, PeerTurns
from gatelift_kube.tasks import spawn

# --- the budget ----------------------------------------------------------------------------------------------------


def test_hd_113_a_burst_waits_for_nothing() -> None:
    budget = PeerBudget()
    budget.spent("w1", 100.0, seconds=CPU_BURST_SECONDS, size=BYTES_BURST)
    assert budget.wait("w1", 100.0) == 0.0


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
        posted.append(stream_id)
        await turns.until_handled(stream_id)


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
    turns.handled(1, CPU_BURST_SECONDS + 0.5)
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
