"""HD-205: an API server that was put back to a backup is noticed by any list, whatever its version is."""

from __future__ import annotations

import pytest

from gatelift_kube.api.client import Client
from gatelift_kube.deciding.history import UNREAD_MAX, History
from gatelift_kube.values.resources import POD, ObjectKey
from support.servers.fake_apiserver import FakeApiServer
from support.servers.reflecting import Followed, running
from support.until import until

RAISED = 1000
"""What etcd's tools add to the version, so that watches of before end."""


async def listed_anew(server: FakeApiServer, followed: Followed, name: str) -> None:
    """Wait until a list of after this has been told."""
    server.put(POD, name, "ns")
    followed.reflector.list_anew()
    await until(lambda: f"+{name}" in followed.told())


@pytest.mark.parametrize("raised", [0, RAISED])
@pytest.mark.parametrize("lost", ["changed", "removed", "replaced"])
async def test_hd_205_a_list_that_shows_less_than_was_told_is_noticed(
    server: FakeApiServer, client: Client, lost: str, raised: int
) -> None:
    server.put(POD, "a", "ns")
    async with running(Followed(client)) as followed:
        copy = server.copy()
        if lost == "changed":
            server.put(POD, "a", "ns", status={"phase": "Running"})
        else:
            server.remove(POD, "a", "ns")
        if lost == "replaced":
            server.put(POD, "a", "ns", metadata={"uid": "another"})
        told = len(followed.events)
        await until(lambda: len(followed.events) > told)
        server.put_back(copy, raised=raised)
        followed.reflector.list_anew()  # a watch from a version that is to come is told nothing, as by a real one
        await until(lambda: bool(followed.went_back))
        assert "pods: " in followed.went_back[0]
        assert "was the API server restored?" in followed.went_back[0]
        await listed_anew(server, followed, "later")
        assert len(followed.went_back) == 1, "it is said once"


async def test_hd_205_a_list_whose_version_went_back_is_noticed_though_nothing_of_its_kind_was_lost(
    server: FakeApiServer, client: Client
) -> None:
    async with running(Followed(client)) as followed:
        copy = server.copy()
        server.put(POD, "of-the-lost-time", "ns")
        server.bookmark(POD)
        server.remove(POD, "of-the-lost-time", "ns")
        await until(lambda: "-of-the-lost-time" in followed.told())
        server.put_back(copy)
        followed.reflector.list_anew()
        await until(lambda: bool(followed.went_back))
        assert "a list has version" in followed.went_back[0]


async def test_hd_205_lists_of_one_history_are_told_of_no_restore(server: FakeApiServer, client: Client) -> None:
    server.put(POD, "a", "ns")
    server.put(POD, "unread", "ns", spec={"containers": 7})
    async with running(Followed(client)) as followed:
        server.mute = True
        server.put(POD, "a", "ns", status={"phase": "Running"})
        server.remove(POD, "unread", "ns")
        server.put(POD, "b", "ns")
        server.mute = False
        server.compact()
        server.cut_watches()
        await until(lambda: "+b" in followed.told())
        for name in ("c", "d"):
            await listed_anew(server, followed, name)
        assert followed.went_back == []


async def test_hd_205_an_object_that_could_not_be_read_proves_nothing_when_it_can(
    server: FakeApiServer, client: Client
) -> None:
    """A conversion webhook that was mended shows the same version, and it was never told."""
    unread = server.put(POD, "unread", "ns", spec={"containers": 7})
    async with running(Followed(client)) as followed:
        server.put(POD, "b", "ns")
        await until(lambda: "+b" in followed.told())
        unread["spec"] = {}
        followed.reflector.list_anew()
        await until(lambda: "+unread" in followed.told())
        assert followed.went_back == []


def test_hd_205_what_is_remembered_of_unread_objects_is_bounded() -> None:
    history = History()
    for number in range(3):
        history.unread(ObjectKey("ns", f"{number}-{each}") for each in range(UNREAD_MAX))
    assert len(history._unread) <= 2 * UNREAD_MAX
