"""The reflector: what it tells of, whatever breaks."""

from __future__ import annotations

import json

import pytest

from gatelift_kube.api.client import Client, Selection
from gatelift_kube.api.reflector import PASSING_MAX, ReflectorLimits
from gatelift_kube.deciding.backoff import Backoff
from gatelift_kube.deciding.writes import ApiEvent, ObjectGone, ObjectSeen
from gatelift_kube.values.resources import POD, WORKLOAD, ObjectKey
from support.servers.fake_apiserver import FakeApiServer, status_of
from support.servers.reflecting import LIMITS, Followed, running, watches
from support.until import until


async def test_a_list_in_pages_is_told_object_by_object_and_then_as_synced(
    server: FakeApiServer, client: Client
) -> None:
    for name in ("a", "b", "c"):
        server.put(POD, name, "ns")
    async with running(Followed(client)) as followed:
        assert followed.told() == ["+a", "+b", "+c", "synced"]
        assert len(followed.reflector.cache) == 3


async def test_changes_are_told_as_they_come(server: FakeApiServer, client: Client) -> None:
    async with running(Followed(client)) as followed:
        server.put(POD, "a", "ns")
        server.put(POD, "a", "ns", status={"phase": "Running"})
        server.remove(POD, "a", "ns")
        await until(lambda: len(followed.events) == 4)
        assert followed.told() == ["synced", "+a", "+a", "-a"]
        assert len(followed.reflector.cache) == 0


async def test_managed_fields_never_reach_the_sink(server: FakeApiServer, client: Client) -> None:
    metadata = {"managedFields": [{"manager": "kubectl"}], "labels": {"a": "b"}}
    server.put(POD, "listed", "ns", metadata=metadata, spec={"unheardOf": 1})
    async with running(Followed(client)) as followed:
        server.put(POD, "watched", "ns", metadata=metadata, spec={"unheardOf": 1})
        await until(lambda: len(followed.events) == 3)
        raws = [json.loads(event.raw) for event in followed.events if isinstance(event, ObjectSeen)]
    assert len(raws) == 2
    for raw in raws:
        assert "managedFields" not in raw["metadata"]
        assert raw["metadata"]["labels"] == {"a": "b"}
        assert raw["spec"] == {"unheardOf": 1}


async def test_json_is_left_out_where_nobody_wants_it(server: FakeApiServer, client: Client) -> None:
    server.put(POD, "listed", "ns")
    async with running(Followed(client, raw=False)) as followed:
        server.put(POD, "watched", "ns")
        await until(lambda: len(followed.events) == 3)
        assert [event.raw for event in followed.events if isinstance(event, ObjectSeen)] == [b"", b""]


async def test_a_cut_watch_goes_on_where_it_was_without_telling_anything_twice(
    server: FakeApiServer, client: Client
) -> None:
    server.put(POD, "a", "ns")
    async with running(Followed(client)) as followed:
        server.put(POD, "b", "ns")
        await until(lambda: len(followed.events) == 3)
        server.cut_watches()
        server.put(POD, "c", "ns")
        await until(lambda: len(followed.events) == 4)
        assert followed.told() == ["+a", "synced", "+b", "+c"]
        assert "the connection broke" in followed.problems[0]
    assert len([seen for seen in server.asked("GET") if "watch" not in seen.query]) == 1


async def test_a_watch_that_the_server_ends_in_good_order_is_no_problem(server: FakeApiServer, client: Client) -> None:
    async with running(Followed(client)) as followed:
        await until(lambda: server.watching == 1)
        server.end_watches()
        await until(lambda: len(server.asked("GET")) >= 3)
        server.put(POD, "a", "ns")
        await until(lambda: "+a" in followed.told())
        assert followed.problems == []


async def test_410_is_answered_by_a_list_whose_difference_is_told(server: FakeApiServer, client: Client) -> None:
    for name in ("same", "changed", "gone"):
        server.put(POD, name, "ns")
    async with running(Followed(client)) as followed:
        await until(lambda: server.watching == 1)
        server.mute = True
        server.put(POD, "changed", "ns", status={"phase": "Running"})
        server.put(POD, "new", "ns")
        server.forget(POD, "gone", "ns")
        server.compact()
        server.mute = False
        server.cut_watches()
        await until(lambda: "-gone" in followed.told())
        server.put(POD, "later", "ns")
        await until(lambda: "+later" in followed.told())
        assert followed.told()[4:] == ["+changed", "+new", "-gone", "+later"]
        assert followed.told().count("synced") == 1
        gone = followed.events[-2]
        assert isinstance(gone, ObjectGone)
        assert gone.object.metadata.uid == "uid-gone"


async def test_410_inside_a_watch_is_answered_the_same_way(server: FakeApiServer, client: Client) -> None:
    async with running(Followed(client)) as followed:
        await until(lambda: server.watching == 1)
        server.error_line(POD, status_of(410, "Expired", "too old resource version"))
        await until(lambda: len([seen for seen in server.asked("GET") if "watch" not in seen.query]) == 2)
        server.put(POD, "a", "ns")
        await until(lambda: followed.told() == ["synced", "+a"])


@pytest.mark.parametrize(("code", "says"), [(410, "forgets faster than lists are read"), (429, "429 TooManyRequests")])
async def test_who_is_asked_to_begin_anew_or_later_a_few_times_is_told_of_no_problem(
    code: int, says: str, server: FakeApiServer, client: Client
) -> None:
    reason = {410: "Expired", 429: "TooManyRequests"}[code]
    for times, told in ((PASSING_MAX, 0), (PASSING_MAX + 2, 2)):
        async with running(Followed(client)) as followed:
            await until(lambda: server.watching == 1)
            server.fault("GET", "watch=", times=times, status=code, body=status_of(code, reason, "try anew"))
            server.end_watches()
            await until(lambda: server.faults[-1].times == 0 and server.watching == 1)
            assert len(followed.problems) == told
            assert all(says in problem for problem in followed.problems)


async def test_an_object_that_was_replaced_unseen_is_gone_and_new(server: FakeApiServer, client: Client) -> None:
    server.put(POD, "a", "ns", metadata={"uid": "first"})
    async with running(Followed(client)) as followed:
        await until(lambda: server.watching == 1)
        server.mute = True
        server.put(POD, "a", "ns", metadata={"uid": "second"})
        server.compact()
        server.mute = False
        server.cut_watches()
        await until(lambda: len(followed.events) == 4)
        assert followed.told() == ["+a", "synced", "-a", "+a"]
        told = [event for event in followed.events if isinstance(event, ObjectSeen | ObjectGone)]
        assert [event.object.metadata.uid for event in told] == ["first", "first", "second"]


async def test_a_bookmark_moves_the_place_from_which_a_watch_goes_on(server: FakeApiServer, client: Client) -> None:
    async with running(Followed(client)) as followed:
        await until(lambda: server.watching == 1)
        server.version += 50
        server.bookmark(POD)
        await until(lambda: followed.reflector.heard_at is not None and followed.reflector._version == "150")
        server.cut_watches()
        await until(lambda: len(server.asked("GET")) == 3)
        assert server.asked("GET")[-1].query["resourceVersion"] == "150"
        assert followed.told() == ["synced"]


QUIET_SECONDS = 2.0
"""After this a silent watch is opened anew; also what a busy machine has for opening it."""
SLOW_BACKOFF = Backoff(first_seconds=60.0, max_seconds=60.0)
"""Whoever backs off with this is not back within a test."""


async def test_a_watch_on_which_nothing_happens_is_opened_anew_without_a_word(
    server: FakeApiServer, client: Client
) -> None:
    server.put(POD, "a", "ns")
    limits = ReflectorLimits(idle_seconds=QUIET_SECONDS, backoff=SLOW_BACKOFF)
    async with running(Followed(client, limits)) as followed:
        await until(lambda: len(watches(server)) >= 3)
        assert set(watches(server)) == {str(server.version)}
        assert len(server.asked("GET")) == 1 + len(watches(server)), "one list"
        assert followed.problems == []
        server.put(POD, "b", "ns")
        await until(lambda: "+b" in followed.told())
        assert followed.told() == ["+a", "synced", "+b"]


async def test_what_a_dead_connection_did_not_bring_comes_with_the_next_watch(
    server: FakeApiServer, client: Client
) -> None:
    limits = ReflectorLimits(idle_seconds=QUIET_SECONDS, backoff=SLOW_BACKOFF)
    async with running(Followed(client, limits)) as followed:
        await until(lambda: server.watching == 1)
        server.mute = True
        server.put(POD, "a", "ns")
        await until(lambda: server.kept_back == 1)
        assert followed.told() == ["synced"]
        server.mute = False
        await until(lambda: followed.told() == ["synced", "+a"])
        assert followed.problems == []


async def test_a_server_that_does_not_open_the_watch_again_is_a_problem(server: FakeApiServer, client: Client) -> None:
    limits = ReflectorLimits(idle_seconds=QUIET_SECONDS, backoff=LIMITS.backoff)
    async with running(Followed(client, limits)) as followed:
        await until(lambda: server.watching == 1)
        server.fault("GET", "watch=1", times=1, hang=True)
        await until(lambda: followed.problems)
        assert "no answer within 2 s" in followed.problems[0]
        server.put(POD, "a", "ns")
        await until(lambda: followed.told() == ["synced", "+a"])
    assert len(server.asked("GET")) == 1 + len(watches(server)), "one list"


async def test_a_quiet_watch_whose_version_was_compacted_begins_with_a_list(
    server: FakeApiServer, client: Client
) -> None:
    limits = ReflectorLimits(idle_seconds=QUIET_SECONDS, backoff=SLOW_BACKOFF)
    async with running(Followed(client, limits)) as followed:
        await until(lambda: server.watching == 1)
        server.version += 50
        server.compact()
        await until(lambda: "150" in watches(server))
        assert followed.problems == []
        assert followed.told() == ["synced"]


async def test_a_continue_token_that_is_too_old_starts_the_list_again(server: FakeApiServer, client: Client) -> None:
    for name in ("a", "b", "c"):
        server.put(POD, name, "ns")
    server.expire_tokens = True
    async with running(Followed(client)) as followed:
        assert followed.told() == ["+a", "+b", "+c", "synced"]


async def test_the_first_list_is_tried_until_the_server_is_there(server: FakeApiServer, client: Client) -> None:
    server.fault("GET", "/pods", times=10, status=503, body=status_of(503, "ServiceUnavailable"))
    async with running(Followed(client)) as followed:
        assert followed.told() == ["synced"]
        assert followed.problems
        assert followed.problems[0].startswith("pods: 503")


async def test_a_kind_that_may_not_be_read_is_reported_and_tried_again(server: FakeApiServer, client: Client) -> None:
    server.fault("GET", "/pods", times=3, status=403, body=status_of(403, "Forbidden", 'User "x" cannot list pods'))
    async with running(Followed(client)) as followed:
        assert len(followed.problems) == 3
        assert 'User "x" cannot list pods' in followed.problems[0]


async def test_an_object_that_cannot_be_read_is_reported_and_not_told_as_gone(
    server: FakeApiServer, client: Client
) -> None:
    server.put(POD, "a", "ns")
    async with running(Followed(client)) as followed:
        server.put(POD, "a", "ns", spec={"containers": 3})
        await until(lambda: followed.problems)
        server.compact()
        server.put(POD, "b", "ns")
        server.compact()
        server.cut_watches()
        await until(lambda: "+b" in followed.told())
        server.put(POD, "c", "ns")
        await until(lambda: "+c" in followed.told(), "all that the list says was told before")
        assert followed.told() == ["+a", "synced", "+b", "+c"]


async def test_only_the_selected_objects_are_asked_for(server: FakeApiServer, client: Client) -> None:
    selection = Selection(namespace="ns", labels="gatelift.dev/origin=o", fields="spec.nodeName=")
    async with running(Followed(client, selection=selection)):
        await until(lambda: server.watching == 1)
    for seen in server.asked("GET"):
        assert seen.path == "/api/v1/namespaces/ns/pods"
        assert seen.query["labelSelector"] == "gatelift.dev/origin=o"
        assert seen.query["fieldSelector"] == "spec.nodeName="


async def test_watches_that_end_at_once_do_not_become_a_busy_loop(server: FakeApiServer, client: Client) -> None:
    server.end_watches_at_once = True
    limits = ReflectorLimits(backoff=Backoff(first_seconds=0.02, max_seconds=60.0))
    followed = Followed(client, limits)
    async with running(followed):
        await until(lambda: len(server.asked("GET")) >= 3)
        assert followed.reflector._failures >= 1


async def test_the_cache_finds_by_key(server: FakeApiServer, client: Client) -> None:
    server.put(POD, "a", "ns")
    async with running(Followed(client)) as followed:
        found = followed.reflector.cache.get(ObjectKey("ns", "a"))
        assert found is not None
        assert found.metadata.uid == "uid-a"


async def test_hd_98_a_list_that_is_asked_for_begins_after_that_and_shows_what_the_watch_did_not(
    server: FakeApiServer, client: Client
) -> None:
    """HD-98: a watch that stands still is not waited for."""
    server.put(POD, "a", "ns")
    async with running(Followed(client)) as followed:
        await until(lambda: server.watching == 1)
        server.mute = True
        server.put(POD, "b", "ns")
        server.forget(POD, "a", "ns")
        followed.reflector.list_anew()
        await until(lambda: followed.told()[2:] == ["+b", "-a", "synced"])
        server.mute = False
        server.put(POD, "c", "ns")
        await until(lambda: followed.told()[5:] == ["+c"])


async def test_hd_98_a_list_under_way_does_not_answer_who_asks_meanwhile(server: FakeApiServer, client: Client) -> None:
    for name in ("a", "b", "c"):
        server.put(POD, name, "ns")
    followed = Followed(client)
    emit, asked = followed.events.append, iter([None])

    def asks_in_the_middle(event: ApiEvent) -> None:
        emit(event)
        if isinstance(event, ObjectSeen) and next(asked, event) is None:
            followed.reflector.list_anew()

    followed.reflector._emit = asks_in_the_middle
    async with running(followed):
        await until(lambda: followed.told().count("synced") == 2)
        assert followed.told() == ["+a", "+b", "+c", "synced", "synced"]
        await until(lambda: server.watching == 1)
    lists = [seen for seen in server.asked("GET") if not {"watch", "continue"} & seen.query.keys()]
    assert len(lists) == 2


async def test_hd_98_who_asks_for_a_list_does_not_wait_for_the_pause_after_a_failure(
    server: FakeApiServer, client: Client
) -> None:
    backoff = Backoff(first_seconds=3600.0, max_seconds=3600.0)
    limits = ReflectorLimits(page_size=2, idle_seconds=30.0, backoff=backoff, calm_seconds=3600.0)
    async with running(Followed(client, limits)) as followed:
        await until(lambda: server.watching == 1)
        server.end_watches()  # at once, so the next one waits
        await until(lambda: server.watching == 0)
        followed.reflector.list_anew()
        await until(lambda: followed.told() == ["synced", "synced"])


async def test_is_7_a_kind_that_is_not_served_says_so_with_the_way_out(server: FakeApiServer, client: Client) -> None:
    message = "the server could not find the requested resource"
    server.fault("GET", "workloads", status=404, body=status_of(404, "NotFound", message))
    async with running(Followed(client, resource=WORKLOAD)) as followed:
        assert followed.problems[1:] == []
    assert followed.problems[0] == (
        "workloads: this API server does not serve Workload of kueue.x-k8s.io/v1beta2; its CRD is missing: "
        "kubectl apply --server-side -k deploy/crds"
    )


async def test_is_7_a_kind_whose_crd_goes_is_not_served_until_it_is_listed_again(
    server: FakeApiServer, client: Client
) -> None:
    async with running(Followed(client, resource=WORKLOAD)) as followed:
        await until(lambda: server.watching == 1)
        assert followed.reflector.not_served == ""
        message = "the server could not find the requested resource"
        server.fault("GET", "workloads", 1000, status=404, body=status_of(404, "NotFound", message))
        server.end_watches()
        await until(lambda: followed.reflector.not_served.endswith("kubectl apply --server-side -k deploy/crds"))
        server.faults.clear()
        followed.reflector.list_anew()
        await until(lambda: followed.told()[-1] == "synced" and followed.told().count("synced") == 2)
        assert followed.reflector.not_served == ""
    assert followed.problems[0].endswith("kubectl apply --server-side -k deploy/crds")
