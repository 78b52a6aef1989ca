"""IS-48: what waits outside of the cores looks again by tenacity, with its limits and errors as they were."""

from __future__ import annotations

import asyncio

import pytest
from tenacity import stop_after_attempt, stop_after_delay, stop_never

from gatelift_kube.deciding.errors import ApiError, NotFoundError, ServerError
from gatelift_kube.process.waiting import may_heal, until

BUSY = ServerError(503, "NoLeader", "no leader")
ABSENT = NotFoundError(404, "NotFound", "not there")


class Scene:
    """Shows one thing after another, the last one for ever; an error is raised."""

    def __init__(self, *shown: str | ApiError) -> None:
        self._shown = list(shown)
        self.looks = 0

    async def look(self) -> str:
        self.looks += 1
        seen = self._shown[min(self.looks, len(self._shown)) - 1]
        if isinstance(seen, ApiError):
            raise seen
        return seen


async def test_is_48_what_is_there_already_is_returned_after_one_look() -> None:
    scene = Scene("here")
    assert await until(scene.look, 3600.0, stop_never) == "here"
    assert scene.looks == 1


async def test_is_48_it_is_looked_for_until_it_is_there() -> None:
    scene = Scene("", "", "here", "too late")
    assert await until(scene.look, 0.0, stop_never) == "here"


async def test_is_48_a_limit_of_no_time_is_one_look_and_what_was_seen_last_is_returned() -> None:
    scene = Scene("")
    assert await until(scene.look, 3600.0, stop_after_delay(0.0)) == ""
    assert scene.looks == 1
    assert await until(scene.look, 0.0, stop_after_attempt(3)) == ""
    assert scene.looks == 4


async def test_is_48_an_error_goes_to_the_caller_at_once_unless_it_heals() -> None:
    scene = Scene(BUSY, "here")
    with pytest.raises(ServerError, match="no leader"):
        await until(scene.look, 0.0, stop_never)
    assert await until(Scene("", BUSY, "here").look, 0.0, stop_never, heals=may_heal) == "here"
    with pytest.raises(NotFoundError, match="not there"):
        await until(Scene(BUSY, ABSENT).look, 0.0, stop_never, heals=may_heal)


async def test_is_48_an_error_that_has_not_healed_within_the_limit_is_raised() -> None:
    scene = Scene("", BUSY)
    with pytest.raises(ServerError, match="no leader"):
        await until(scene.look, 0.0, stop_after_attempt(2), heals=may_heal)
    assert scene.looks == 2


@pytest.mark.parametrize("every", [0.0, 3600.0])
async def test_is_48_who_is_cancelled_looks_no_more(every: float) -> None:
    scene = Scene("")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await until(scene.look, every, stop_never, heals=lambda _error: True)
    assert scene.looks


@pytest.mark.parametrize(("error", "heals"), [(BUSY, True), (ABSENT, False), (ValueError("a"), False)])
def test_is_48_only_what_the_api_server_may_get_over_heals(error: Exception, heals: bool) -> None:

    assert may_heal(error) is heals
