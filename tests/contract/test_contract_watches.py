"""Watches: what they say, from where, until when. On the embedded and the real API server."""

from __future__ import annotations

from typing import Any

import pytest

from support.servers.contract_api import Api, config, pod

pytestmark = pytest.mark.contract


def told(event: Any) -> tuple[str, str]:
    """Return the type of an event and the name of its object."""
    return event["type"], event["object"]["metadata"]["name"]


async def version(api: Api, path: str) -> str:
    """Return the version of a list."""
    return str((await api.get(path)).ok()["metadata"]["resourceVersion"])


async def test_a_watch_tells_of_all_changes_after_its_version_in_order(api: Api) -> None:
    space = await api.namespace()
    start = await version(api, f"{space}/secrets")
    await api.post(f"{space}/secrets", {"metadata": {"name": "a"}})
    async with api.watch(f"{space}/secrets", resourceVersion=start) as following:
        assert told(await following()) == ("ADDED", "a")
        await api.patch(f"{space}/secrets/a", {"data": {"k": "dg=="}})
        assert told(await following()) == ("MODIFIED", "a")
        await api.delete(f"{space}/secrets/a")
        gone = await following()
        assert told(gone) == ("DELETED", "a")
        assert int(gone["object"]["metadata"]["resourceVersion"]) > int(start)


async def test_a_watch_without_a_version_begins_with_what_is_there(api: Api) -> None:
    space = await api.namespace()
    await api.post(f"{space}/secrets", {"metadata": {"name": "a"}})
    async with api.watch(f"{space}/secrets") as following:
        assert told(await following()) == ("ADDED", "a")


async def test_an_object_that_enters_or_leaves_a_selection_is_added_or_deleted(api: Api) -> None:
    space = await api.namespace()
    start = await version(api, f"{space}/secrets")
    async with api.watch(f"{space}/secrets", resourceVersion=start, labelSelector="in=yes") as following:
        await api.post(f"{space}/secrets", {"metadata": {"name": "a"}})
        await api.patch(f"{space}/secrets/a", {"metadata": {"labels": {"in": "yes"}}})
        assert told(await following()) == ("ADDED", "a")
        await api.patch(f"{space}/secrets/a", {"data": {"k": "dg=="}})
        assert told(await following()) == ("MODIFIED", "a")
        left = (await api.patch(f"{space}/secrets/a", {"metadata": {"labels": {"in": "no"}}})).ok()
        gone = await following()
        assert told(gone) == ("DELETED", "a")
        assert gone["object"]["metadata"]["labels"] == {"in": "yes"}, "as it was when it was selected"
        assert gone["object"]["metadata"]["resourceVersion"] == left["metadata"]["resourceVersion"]


async def test_a_watch_by_node_hears_of_a_pod_when_it_is_bound(api: Api) -> None:
    space = await api.namespace()
    start = await version(api, f"{space}/pods")
    async with api.watch(f"{space}/pods", resourceVersion=start, fieldSelector="spec.nodeName=n1") as following:
        await api.post(f"{space}/pods", pod("a", schedulerName="nobody"))
        binding = {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n1"}}
        assert (await api.post(f"{space}/pods/a/binding", binding)).code == 201
        assert told(await following()) == ("ADDED", "a")


async def test_a_watch_of_one_name_hears_of_that_object_only(api: Api) -> None:
    space = await api.namespace()
    start = await version(api, f"{space}/secrets")
    async with api.watch(f"{space}/secrets", resourceVersion=start, fieldSelector="metadata.name=b") as following:
        for name in ("a", "b"):
            await api.post(f"{space}/secrets", {"metadata": {"name": name}})
        assert told(await following()) == ("ADDED", "b")


async def test_a_watch_ends_when_its_time_is_over(api: Api) -> None:
    space = await api.namespace()
    start = await version(api, f"{space}/secrets")
    async with api.watch(f"{space}/secrets", resourceVersion=start, timeoutSeconds="1") as following:
        assert await following() is None


async def test_initial_events_end_with_a_marked_bookmark(api: Api) -> None:
    space = await api.namespace()
    await api.post(f"{space}/secrets", {"metadata": {"name": "a"}})
    query = {
        "sendInitialEvents": "true",
        "allowWatchBookmarks": "true",
        "resourceVersionMatch": "NotOlderThan",
        "resourceVersion": "",
    }
    async with api.watch(f"{space}/secrets", **query) as following:
        assert told(await following()) == ("ADDED", "a")
        mark = await following()
    assert mark["type"] == "BOOKMARK"
    assert mark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert int(mark["object"]["metadata"]["resourceVersion"]) > 0


async def test_an_event_carries_the_object_as_it_is_served(api: Api) -> None:
    space = await api.namespace()
    start = await version(api, f"{space}/configmaps")
    made = (await api.post(f"{space}/configmaps", config("z", k="v"))).ok()
    async with api.watch(f"{space}/configmaps", resourceVersion=start, fieldSelector="metadata.name=z") as following:
        event = await following()
    assert event["object"]["kind"] == "ConfigMap"
    assert event["object"]["apiVersion"] == "v1"
    assert event["object"]["data"] == made["data"]
    assert event["object"]["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


async def test_the_end_of_a_bound_pod_is_told_as_a_change_and_then_a_removal(api: Api) -> None:
    space = await api.namespace()
    await api.post(f"{space}/pods", pod("a", nodeName="no-such-node"))
    start = await version(api, f"{space}/pods")
    async with api.watch(f"{space}/pods", resourceVersion=start) as following:
        await api.delete(f"{space}/pods/a")
        event = await following()
        assert told(event) == ("MODIFIED", "a")
        assert event["object"]["metadata"]["deletionTimestamp"]
        await api.delete(f"{space}/pods/a", {"gracePeriodSeconds": 0})
        event = await following()
        while event["type"] == "MODIFIED":
            event = await following()
        assert told(event) == ("DELETED", "a")
