"""HD-501, HD-503, HD-504, HD-636: who asks for thousands in a namespace, or whose writes hang, keeps nobody waiting."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any, cast

import pytest

from gatelift_kube.api import executor, reads
from gatelift_kube.api.client import Client
from gatelift_kube.api.executor import OWN_MIN, WritesFullError
from gatelift_kube.api.reads import Reads
from gatelift_kube.deciding import event_series
from gatelift_kube.deciding.budget import Budget, Share, Traffic
from gatelift_kube.deciding.event_series import EventSeries
from gatelift_kube.deciding.hanging import HANGS_SECONDS, KEPT_SECONDS, Hanging
from gatelift_kube.deciding.writes import EmitEvent, Patch
from gatelift_kube.process.tasks import Supervisor
from gatelift_kube.values.resources import POD
from support.servers.carried import Carried, create, running
from support.servers.fake_apiserver import ref_of
from support.until import until

MANY, WALL = 200, 1795234500.0
SOON = 10.0
"""Seconds of a machine with much to do; the pauses are of milliseconds."""
ONE_BY_ONE = Budget(dict.fromkeys(Traffic, Share(in_flight=1, per_second=1e6, burst=10 * MANY)))


class AnswersAtOnce:
    """A client of which only the order of what it is asked for matters."""

    async def create(self, *_: Any, **__: Any) -> None:
        return None

    async def apply(self, *_: Any, **__: Any) -> None:
        return None


def carried(**settings: Any) -> Carried:
    return Carried(cast("Client", AnswersAtOnce()), limits=ONE_BY_ONE, **settings)


def patch(write_id: int, *, holds: bool = False, informs: bool = False, namespace: str = "many") -> Patch:
    return Patch(
        write_id=write_id, ref=ref_of(POD, f"p{write_id}", namespace), body=b"{}", holds=holds, informs=informs
    )


def taken(made: Carried, namespace: str, most: int) -> int:
    """Ask for so many writes in a namespace; return how many were taken."""
    for number in range(most):
        try:
            made.executor.submit(patch(MANY + number, namespace=namespace))
        except WritesFullError:
            return number
    return most


@pytest.mark.parametrize("informs", [False, True], ids=["transitions", "texts"])
async def test_hd_501_one_write_waits_for_one_of_each_other_namespace(informs: bool) -> None:
    made = carried()
    for number in range(MANY):
        made.executor.submit(patch(number, informs=informs))
    made.executor.submit(patch(MANY, informs=informs, namespace="few"))
    async with running(made):
        await until(lambda: MANY in made.ids())
    assert made.ids().index(MANY) <= 1


async def test_hd_501_nobody_takes_the_next_turn_before_it_is_there() -> None:
    """Each of those that write took what was first in line and waited with it for its token."""
    made = Carried(
        cast("Client", AnswersAtOnce()),
        limits=Budget(dict.fromkeys(Traffic, Share(in_flight=MANY // 2, per_second=200.0, burst=1))),
    )
    for number in range(MANY):
        made.executor.submit(patch(number))
    async with running(made):
        await until(made.ids)
        before = len(made.ids())
        made.executor.submit(patch(MANY, namespace="few"))
        await until(lambda: MANY in made.ids())
    assert made.ids().index(MANY) <= before + 2


async def test_hd_501_what_quota_is_kept_for_does_not_wait_behind_all_else_of_its_namespace() -> None:
    made = carried()
    for number in range(MANY):
        made.executor.submit(create(number, f"c{number}", "many"))
    made.executor.submit(patch(MANY, holds=True))
    async with running(made):
        await until(lambda: MANY in made.ids())
    assert made.ids().index(MANY) <= 1


async def test_hd_501_where_one_namespace_has_all_places_another_one_still_gets_its_own() -> None:
    made = carried(capacity=MANY)
    for number in range(MANY):
        made.executor.submit(patch(number))
    with pytest.raises(WritesFullError):
        made.executor.submit(patch(MANY))
    assert taken(made, "few", 2 * OWN_MIN) == OWN_MIN
    async with running(made):
        await until(lambda: len(made.ids()) == MANY + OWN_MIN)
        assert made.executor.held == 0
        assert taken(made, "few", 2 * OWN_MIN) == 2 * OWN_MIN, "there is room for all"


# --- reads --------------------------------------------------------------------------------------------------


class Asked:
    """Reads of (namespace, number), and in which order they were made or refused."""

    def __init__(self, share: Share | None = None) -> None:
        self.done: list[tuple[str, int]] = []
        self.refused: list[tuple[str, int]] = []
        self.reads = Reads[tuple[str, int]](
            self._read, lambda command, _why: self.refused.append(command), lambda one: one[0], share
        )

    async def _read(self, command: tuple[str, int]) -> None:
        self.done.append(command)

    def ask(self, namespace: str, count: int) -> None:
        for number in range(count):
            self.reads.ask((namespace, number))


async def test_hd_504_one_read_waits_for_one_of_each_other_namespace() -> None:
    asked, supervisor = Asked(), Supervisor(lambda _name, _error: None)
    asked.ask("many", MANY)
    asked.ask("few", 1)
    asked.reads.start(supervisor)
    await until(lambda: len(asked.done) == MANY + 1)
    await supervisor.stop()
    assert asked.done.index(("few", 0)) <= 1


async def test_hd_571_reads_have_a_budget_and_who_comes_later_has_the_next_turn_in_it() -> None:
    asked, supervisor = Asked(Share(in_flight=4, per_second=50.0, burst=2)), Supervisor(lambda _name, _error: None)
    asked.ask("many", MANY)
    began = time.monotonic()
    asked.reads.start(supervisor)
    await until(lambda: len(asked.done) >= 2)
    before = len(asked.done)
    asked.ask("few", 1)
    await until(lambda: len(asked.done) >= before + 6)
    took, done = time.monotonic() - began, len(asked.done)
    await supervisor.stop()
    assert done <= 2 + 50.0 * took + 1
    assert asked.done.index(("few", 0)) <= before + 2


async def test_hd_504_where_one_namespace_has_all_places_another_one_still_gets_its_own() -> None:
    asked = Asked()
    asked.ask("many", reads.READS_MAX + 1)
    asked.ask("few", reads.OWN_MIN + 1)
    assert asked.refused == [("many", reads.READS_MAX), ("few", reads.OWN_MIN)]


# --- events -------------------------------------------------------------------------------------------------


def event(name: str, namespace: str) -> EmitEvent:
    ref = ref_of(POD, name, namespace)
    return EmitEvent(ref=ref, uid="u", warning=False, reason="Pending", message="waits")


def told(series: EventSeries, now: float, most: int = 10 * MANY) -> list[str]:
    """Take so many writes at most; return whose they are, a count as `NAME again`."""
    found: list[str] = []
    while len(found) < most and (write := series.take(now)) is not None:
        series.written(write, now)
        name = write.ref.key.name.partition(".")[0]
        found.append(name if write.create else f"{name} again")
    return found


def test_hd_503_one_event_waits_for_one_of_each_other_namespace() -> None:
    series = EventSeries("c", "i")
    for number in range(MANY):
        series.add(event(f"many-{number}", "many"), 0.0, WALL)
    series.add(event("one", "few"), 0.0, WALL)
    assert "one" in told(series, 0.0, 2)


def test_hd_503_too_many_of_one_namespace_push_nobody_elses_event_out() -> None:
    series = EventSeries("c", "i", waiting_max=MANY)
    series.add(event("one", "few"), 0.0, WALL)
    for number in range(2 * MANY):
        series.add(event(f"many-{number}", "many"), 0.0, WALL)
    assert series.dropped == MANY + 1
    assert "one" in told(series, 0.0, 2)


def test_hd_503_a_count_that_is_due_is_told_while_another_namespace_has_events_without_end() -> None:
    series = EventSeries("c", "i")
    series.add(event("one", "few"), 0.0, WALL)
    told(series, 0.0)
    series.add(event("one", "few"), 1.0, WALL)
    for number in range(MANY):
        series.add(event(f"many-{number}", "many"), 1.0, WALL)
    assert "one again" in told(series, event_series.REPEAT_SECONDS, 2)


def test_an_event_that_began_anew_while_its_write_failed_is_gone_as_well() -> None:
    series = EventSeries("c", "i")
    series.add(event("one", "few"), 0.0, WALL)
    write = series.take(0.0)
    assert write is not None
    later = event_series.WINDOW_SECONDS + 1.0
    series.add(event("one", "few"), later, WALL + later)
    series.failed(write)
    assert told(series, later) == []
    series.add(event("one", "few"), later, WALL + later)
    assert told(series, later) == ["one"]
    assert json.loads(write.body)["regarding"]["name"] == "one"


# --- a namespace whose writes hang -------------------------------------------------------------------------------


class HangsInOne:
    """A client whose writes hang in one namespace, as behind somebody's webhook; answered elsewhere at once."""

    def __init__(self) -> None:
        self.now = 0.0
        self.hang = 0
        self.end = asyncio.Event()

    async def apply(self, asked: Patch, **_: Any) -> None:
        if asked.ref.key.namespace == "hangs":
            self.hang += 1
            await self.end.wait()
            self.hang -= 1


@pytest.mark.parametrize("informs", [False, True], ids=["transitions", "texts"])
@pytest.mark.parametrize("places", [1, 4])
async def test_hd_636_writes_that_hang_in_one_namespace_keep_no_other_waiting(
    monkeypatch: pytest.MonkeyPatch, places: int, informs: bool
) -> None:
    """They had all places, for ten seconds each: nobody else's write went out."""
    monkeypatch.setattr(executor, "LOOK_SECONDS", 0.001)
    slow = HangsInOne()
    limits = Budget(dict.fromkeys(Traffic, Share(in_flight=places, per_second=1e6, burst=10 * MANY)))
    async with running(Carried(cast("Client", slow), limits=limits, clock=lambda: slow.now)) as made:
        for number in range(MANY):
            made.executor.submit(patch(number, namespace="hangs", informs=informs))
        await until(lambda: slow.hang == places)
        for number in range(MANY, MANY + 10):
            made.executor.submit(patch(number, namespace="others", informs=informs))
        slow.now += HANGS_SECONDS
        try:
            await until(lambda: len(made.ids()) == 10 and slow.hang == places + max(1, places // 2), seconds=SOON)
            assert made.ids() == list(range(MANY, MANY + 10)), "all others, and of its own what has hung keeps places"
        finally:
            slow.end.set()
        await until(lambda: len(made.ids()) == MANY + 10)


def test_hd_636_a_namespace_goes_aside_until_one_of_its_writes_is_answered_in_time() -> None:
    hanging: Hanging[str] = Hanging()
    hanging.began("one", "slow", 0.0)
    hanging.began("two", "slow", 0.5)
    assert list(hanging.found(HANGS_SECONDS)) == ["one"]
    assert hanging.is_aside("slow")
    hanging.ended("two", 1.2)
    assert hanging.is_aside("slow"), "one of them hangs still"
    hanging.ended("one", 10.0)
    assert hanging.is_aside("slow"), "that was no answer in time"
    hanging.began("three", "slow", 11.0)
    hanging.ended("three", 11.1)
    assert not hanging.is_aside("slow")


def test_hd_636_a_namespace_that_writes_no_more_is_forgotten() -> None:
    hanging: Hanging[str] = Hanging()
    hanging.began("one", "slow", 0.0)
    assert list(hanging.found(5.0)) == ["one"]
    hanging.ended("one", 10.0)
    assert not list(hanging.found(10.0 + KEPT_SECONDS - 1))
    assert hanging.is_aside("slow")
    assert not list(hanging.found(10.0 + KEPT_SECONDS))
    assert not hanging.is_aside("slow")
