"""The two scripts that the CPU of manager and agent is held against tell each other what they must, and no more."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, cast

from bench.bare_sessions import prepare
from bench.group_latency import beside_floor
from bench.group_load import gated, members
from bench.group_pair import Away, Home, Room, alike
from bench.pair_stream import Leave, Place, Shown, Stop, Teller, Word, dialling, frames, heard, served
from bench.write_floor import Remote, pod_of

from gatelift_kube.api.client import Client
from gatelift_kube.deciding.writes import ObjectGone, ObjectSeen
from gatelift_kube.decoding import decoding
from gatelift_kube.decoding.decoding import Served
from gatelift_kube.process.tasks import Supervisor
from gatelift_kube.values.resources import POD
from gatelift_wire.values.limits import JOINED_MESSAGES_MAX
from support.until import until

NOBODY = cast("Client", None)


class Kept(Teller):
    """Keeps what is said."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[Word] = []

    def say(self, word: Word) -> None:
        self.said.append(word)


def failed(name: str, error: BaseException) -> None:
    raise AssertionError(name) from error


def seen(phase: str, **meta: str) -> ObjectSeen:
    """Return what a watch says of a pod."""
    document: dict[str, Any] = members("crew", 1)[0]
    document["metadata"] |= {"uid": "w0"} | meta
    document["status"] = {"phase": phase}
    raw = json.dumps(document).encode()
    return ObjectSeen(POD, decoding.read_object(POD, raw), raw)


async def test_words_come_as_they_were_said_and_those_of_one_moment_travel_together() -> None:
    words: list[Word] = [Place("uid", b"{}", [("p", "u")]), Leave(["p"])]
    words += [Shown(f"p{number}", "Running", b"{}") for number in range(JOINED_MESSAGES_MAX)]
    written = list(frames(words))
    assert [word for each in written for word in heard(each)] == words
    assert len(written) == 2
    teller, wrote = Teller(), list[bytes]()

    async def write(data: bytes) -> None:
        wrote.append(data)

    for word in words[:3]:
        teller.say(word)
    telling = asyncio.ensure_future(teller.run(write, 0.0))
    await until(lambda: bool(wrote))
    telling.cancel()
    assert [heard(each) for each in wrote] == [words[:3]]


async def test_what_one_script_says_the_other_hears_by_tls(tmp_path: Path) -> None:
    prepare(tmp_path)
    at_home, away = Teller(), Teller()
    home_heard, away_heard = list[Word](), list[Word]()
    supervisor = Supervisor(failed)
    async with (
        served(tmp_path, at_home, home_heard.append),
        dialling(tmp_path, away, away_heard.append, supervisor),
    ):
        at_home.say(Leave(["p"]))
        away.say(Shown("p", "Running", b"{}"))
        await until(lambda: bool(home_heard and away_heard))
    assert (home_heard, away_heard) == ([Shown("p", "Running", b"{}")], [Leave(["p"])])


async def test_a_worker_tells_once_that_a_pod_runs_and_once_that_it_is_over() -> None:
    teller = Kept()
    away = Away(NOBODY, Supervisor(failed), teller)
    for phase in ("Pending", "Running", "Running", "Succeeded", "Succeeded"):
        away.see(seen(phase))
    away.see(seen("Succeeded", deletionTimestamp="2026-01-01T00:00:00Z"))
    gone = seen("Succeeded")
    away.see(ObjectGone(POD, gone.object))
    assert [(each.phase, json.loads(each.status)) for each in teller.said if isinstance(each, Shown)] == [
        ("Running", {"phase": "Running"}),
        ("Succeeded", {"phase": "Succeeded"}),
    ]


async def test_home_shows_what_the_worker_tells_of_pods_that_it_has_placed() -> None:
    home = Home(NOBODY, Supervisor(failed), Kept())
    remote = home._remotes["crew-00000"] = Remote()
    for name in ("crew-00000", "a stranger"):
        home.hear(Shown(name, "Running", b"{}"))
    assert remote.running.done()
    assert not remote.over.done()


async def test_home_has_a_pod_stopped_once_that_its_user_deletes() -> None:
    teller = Kept()
    home = Home(NOBODY, Supervisor(failed), teller)
    home._remotes["crew-00000"] = Remote()
    for _ in range(2):
        home._user_pod(seen("Pending", deletionTimestamp="2026-01-01T00:00:00Z"))
    assert teller.said == [Stop("crew-00000")]


async def test_who_waits_longest_for_room_comes_first_however_little_the_next_one_needs() -> None:
    room, got = Room(4), list[str]()

    async def take(name: str, pods: int) -> None:
        await room.take(pods)
        got.append(name)

    await take("first", 3)
    waiting = [asyncio.ensure_future(take(name, pods)) for name, pods in (("large", 2), ("small", 1))]
    await asyncio.sleep(0)
    assert got == ["first"]
    room.free()
    await until(lambda: len(got) == 2)
    room.free()
    await asyncio.gather(*waiting)
    assert got == ["first", "large", "small"]
    await Room(0).take(1_000)


def test_pods_that_run_as_long_as_each_other_are_placed_by_one_word() -> None:
    documents = gated([*members("crew", 1, run_seconds=2.0), *members("crew", 3, run_seconds=None)[1:]])
    pods = []
    for number, document in enumerate(documents):
        document["metadata"]["uid"] = f"u{number}"
        raw = json.dumps(document).encode()
        pods.append((pod_of(Served(decoding.read_object(POD, raw), raw)), raw))
    assert list(alike(pods)) == [
        (pods[0][1], [("crew-00000", "u0")]),
        (pods[1][1], [("crew-00001", "u1"), ("crew-00002", "u2")]),
    ]


def test_a_step_is_shown_beside_what_the_scripts_take() -> None:
    found = beside_floor([90.0, 100.0, 110.0], [50.0, 50.0, 60.0])
    assert found == {"p50": 100.0, "p99": 110.0, "max": 110.0, "samples": 3, "floor_p50": 50.0, "to_floor": 2.0}
    assert beside_floor([], [50.0]) == {"samples": 0}
