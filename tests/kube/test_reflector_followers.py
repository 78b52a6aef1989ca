"""Who follows a reflector that runs already: told all, then what changes; and what answers to writes add."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import Any

import pytest

from gatelift_kube.api import reflector
from gatelift_kube.api.client import Client
from gatelift_kube.api.reflector import Reflector
from gatelift_kube.deciding.writes import ApiEvent, KubeObject, ObjectSeen, Synced
from gatelift_kube.decoding.decoding import read_object
from gatelift_kube.process.tasks import spawn
from gatelift_kube.values.resources import POD
from support.servers.fake_apiserver import FakeApiServer
from support.servers.reflecting import LIMITS, Followed, running, watches, word
from support.until import until


class Follower:
    """Somebody who comes later, and what was told to it."""

    def __init__(self, reflector: Reflector) -> None:
        self.events: list[ApiEvent] = []
        self.task = spawn("follower", reflector.follow(self.events.append))

    def told(self) -> list[str]:
        return [word(event) for event in self.events]

    async def leave(self) -> None:
        self.task.cancel()
        await until(self.task.done)


def _lists_of(server: FakeApiServer) -> list[str]:
    """Return the path of each first page of a list."""
    return [seen.path for seen in server.asked("GET") if not {"watch", "continue"} & seen.query.keys()]


async def test_who_comes_later_is_told_all_that_a_new_list_says_and_then_what_changes(
    server: FakeApiServer, client: Client
) -> None:
    for name in ("a", "b", "c"):
        server.put(POD, name, "ns")
    async with running(Followed(client, followed=True)) as first:
        await until(lambda: server.watching == 1)
        lists = len(_lists_of(server))
        second = Follower(first.reflector)
        await until(lambda: second.told() == ["+a", "+b", "+c", "synced"])
        assert len(_lists_of(server)) == lists + 1, "a list that began after it came"
        await until(lambda: len(watches(server)) == 2)
        server.remove(POD, "a", "ns")
        server.put(POD, "d", "ns")
        await until(lambda: second.told()[4:] == ["-a", "+d"])
        assert first.told() == ["+a", "+b", "+c", "synced", "-a", "+d"], "nothing is told twice"
        assert len(watches(server)) == 2, "one after the other: both are told by one watch"
        assert first.problems == []
        await second.leave()


async def test_followers_are_handed_the_same_objects_and_bytes(server: FakeApiServer, client: Client) -> None:
    server.put(POD, "a", "ns", spec={"containers": [{"name": "main"}]})
    async with running(Followed(client, followed=True)) as first:
        second = Follower(first.reflector)
        await until(lambda: "synced" in second.told())
        mine, theirs = first.events[0], second.events[0]
        assert isinstance(mine, ObjectSeen)
        assert isinstance(theirs, ObjectSeen)
        assert theirs.object is mine.object
        assert theirs.raw is mine.raw
        await second.leave()


async def test_what_the_watch_had_missed_is_told_to_both(server: FakeApiServer, client: Client) -> None:
    server.put(POD, "gone", "ns")
    async with running(Followed(client, followed=True)) as first:
        await until(lambda: server.watching == 1)
        server.forget(POD, "gone", "ns")
        server.mute = True
        server.put(POD, "new", "ns")
        second = Follower(first.reflector)
        await until(lambda: "synced" in second.told())
        assert second.told() == ["+new", "synced"]
        assert first.told() == ["+gone", "synced", "+new", "-gone"]
        await second.leave()


async def test_who_has_left_is_told_nothing_more(server: FakeApiServer, client: Client) -> None:
    async with running(Followed(client, followed=True)) as first:
        second, third = Follower(first.reflector), Follower(first.reflector)
        await until(lambda: "synced" in second.told() and "synced" in third.told())
        await second.leave()
        server.put(POD, "a", "ns")
        await until(lambda: third.told() == ["synced", "+a"])
        assert second.told() == ["synced"]
        await third.leave()


async def test_who_leaves_before_the_list_changes_nothing(server: FakeApiServer, client: Client) -> None:
    async with running(Followed(client, followed=True)) as first:
        await until(lambda: server.watching == 1)
        second = Follower(first.reflector)
        await asyncio.sleep(0)
        await second.leave()
        server.put(POD, "a", "ns")
        await until(lambda: first.told() == ["synced", "+a"])
        assert second.told() == []
        assert first.problems == []


async def test_a_long_replay_is_told_in_slices(
    server: FakeApiServer, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reflector, "REPLAY_SLICE", 2)
    for name in "abcde":
        server.put(POD, name, "ns")
    async with running(Followed(client, followed=True)) as first:
        second = Follower(first.reflector)
        await until(lambda: second.told() == ["+a", "+b", "+c", "+d", "+e", "synced"])
        await second.leave()


async def test_a_reflector_that_keeps_nothing_cannot_be_followed(client: Client) -> None:
    with pytest.raises(RuntimeError, match="keeps nothing for followers"):
        await Followed(client).reflector.follow(lambda _event: None)


def typed(document: dict[str, Any]) -> KubeObject:
    return read_object(POD, json.dumps(document).encode())


async def test_what_a_write_was_answered_is_told_to_followers_and_not_again_to_who_has_the_answer(
    server: FakeApiServer, client: Client
) -> None:
    events: list[ApiEvent] = []
    heard: list[ApiEvent] = []
    shared = Reflector(client, POD, events.append, followed=True, limits=LIMITS)
    tasks = [spawn("reflector", shared.run()), spawn("follower", shared.follow(heard.append))]
    try:
        await until(lambda: any(isinstance(event, Synced) for event in heard))
        answer = typed(server.put(POD, "a", "ns"))
        shared.answered(answer)
        server.put(POD, "a", "ns")
        await until(lambda: any(isinstance(event, ObjectSeen) for event in events))
        seen = [event.object.metadata.resource_version for event in heard if isinstance(event, ObjectSeen)]
        assert seen[0] == answer.metadata.resource_version
        assert [event.object.metadata.resource_version for event in events if isinstance(event, ObjectSeen)] == seen[1:]
    finally:
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def test_an_answer_that_comes_after_its_echo_hides_nothing(server: FakeApiServer, client: Client) -> None:
    async with running(Followed(client)) as followed:
        answer = typed(server.put(POD, "a", "ns"))
        await until(lambda: len(followed.events) == 2)
        followed.reflector.answered(answer)
        server.remove(POD, "a", "ns")
        server.put(POD, "a", "ns")
        await until(lambda: len(followed.events) == 4)
        assert followed.told() == ["synced", "+a", "-a", "+a"]
