"""The client against a server that misbehaves."""

from __future__ import annotations

import asyncio
import json
import ssl
from contextlib import aclosing
from pathlib import Path

import pytest

from gatelift_kube.api.client import Client, Selection
from gatelift_kube.api.config import ClusterConfig
from gatelift_kube.api.transport import HttpTransport
from gatelift_kube.deciding import errors
from gatelift_kube.objects.core import Pod
from gatelift_kube.process.tasks import spawn
from gatelift_kube.values.resources import POD, WORKLOAD, Resource
from support.servers.fake_apiserver import FakeApiServer, ref_of, status_of
from support.servers.serving import write_serving_certificate
from support.until import until


async def test_a_read_object_is_typed_and_its_json_is_kept(server: FakeApiServer, client: Client) -> None:
    server.put(POD, "p", "ns", spec={"containers": [{"name": "c"}], "unheardOf": 1})
    served = await client.get(ref_of(POD, "p", "ns"))
    assert isinstance(served.object, Pod)
    assert served.object.spec.containers[0].name == "c"
    assert json.loads(served.raw)["spec"]["unheardOf"] == 1


async def test_a_kind_without_a_struct_is_read_as_its_metadata(server: FakeApiServer, client: Client) -> None:
    widget = Resource("example.com", "v1", "Widget", "widgets")
    server.put(widget, "w", "ns")
    assert (await client.get(ref_of(widget, "w", "ns"))).object.metadata.name == "w"


async def test_requests_ask_for_plain_json_and_say_who_asks(server: FakeApiServer, client: Client) -> None:
    server.put(POD, "p", "ns")
    await client.get(ref_of(POD, "p", "ns"))
    headers = server.seen[0].headers
    assert headers["Accept-Encoding"] == "identity"
    assert headers["User-Agent"] == "gatelift"


async def test_a_list_is_read_in_pages_and_never_from_the_servers_cache(server: FakeApiServer, client: Client) -> None:
    for number in range(5):
        server.put(POD, f"p{number}", "ns")
    names = []
    async with aclosing(client.list(POD, Selection(namespace="ns", labels="a=b"), limit=2)) as pages:
        async for page in pages:
            names += [served.object.metadata.name for served in page.items]
    assert names == ["p0", "p1", "p2", "p3", "p4"]
    asked = server.asked("GET")
    assert [seen.query.get("limit") for seen in asked] == ["2", "2", "2"]
    assert all("resourceVersion" not in seen.query for seen in asked)
    assert asked[0].query["labelSelector"] == "a=b"


async def test_one_object_that_does_not_fit_costs_only_itself(server: FakeApiServer, client: Client) -> None:
    server.put(POD, "good", "ns")
    server.put(POD, "odd", "ns", spec={"containers": "none"})
    page = await client.list_page(POD)
    assert [served.object.metadata.name for served in page.items] == ["good"]
    assert "ns/odd: Pod: the answer cannot be read" in page.unread[0].problem


async def test_a_list_whose_continue_token_is_too_old_raises_gone(server: FakeApiServer, client: Client) -> None:
    for number in range(3):
        server.put(POD, f"p{number}", "ns")
    first = await client.list_page(POD, limit=2)
    server.expire_tokens = True
    with pytest.raises(errors.GoneError):
        await client.list_page(POD, limit=2, after=first.next)


async def test_a_read_is_tried_again_after_500_429_and_a_broken_connection(
    server: FakeApiServer, client: Client
) -> None:
    server.put(POD, "p", "ns")
    server.fault("GET", "/p", status=500, body=status_of(500, "InternalError"))
    server.fault("GET", "/p", status=429, body=status_of(429, "TooManyRequests"))
    server.fault("GET", "/p", drop=True)
    assert (await client.get(ref_of(POD, "p", "ns"))).object.metadata.name == "p"


async def test_a_read_gives_up_after_as_many_tries_as_the_policy_says(server: FakeApiServer, client: Client) -> None:
    server.fault("GET", "/p", times=100, status=503, body=status_of(503, "ServiceUnavailable", "down"))
    with pytest.raises(errors.ServerError, match="503 ServiceUnavailable: down"):
        await client.get(ref_of(POD, "p", "ns"))
    assert len(server.seen) == 4


async def test_a_read_that_is_not_answered_ends_at_its_limit(server: FakeApiServer, client: Client) -> None:
    server.fault("GET", "/p", times=100, hang=True)
    with pytest.raises(errors.TimedOutError, match="no answer within 1 s"):
        await client.get(ref_of(POD, "p", "ns"), seconds=1.0)


async def test_a_server_that_is_not_there_is_unreachable_and_has_done_nothing() -> None:
    server = FakeApiServer()
    await server.start()
    await server.stop()
    async with Client(HttpTransport(server.config)) as client:
        with pytest.raises(
            errors.UnreachableError, match=r"^http://[0-9.:]+: cannot connect: Connection ref"
        ) as caught:
            await client.create(POD, "ns", b"{}", seconds=30.0)
    assert caught.value.maybe_done is False


async def test_a_server_with_a_certificate_that_we_do_not_trust_is_unreachable(tmp_path: Path) -> None:
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    write_serving_certificate(certificate, key)
    theirs = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    theirs.load_cert_chain(certificate, key)
    server = FakeApiServer()
    await server.start(tls=theirs)
    ours = ssl.create_default_context(cafile=str(certificate))
    async with Client(HttpTransport(ClusterConfig(server=server.url, tls=ours))) as client:
        server.put(POD, "p", "ns")
        assert (await client.get(ref_of(POD, "p", "ns"))).object.metadata.name == "p"
    stranger = ClusterConfig(server=server.url, tls=ssl.create_default_context())
    async with Client(HttpTransport(stranger)) as client:
        with pytest.raises(errors.UnreachableError, match="its certificate is not trusted: self-signed certificate"):
            await client.create(POD, "ns", b"{}")
    await server.stop()


async def test_a_write_is_sent_once_and_carries_its_time_limit_to_the_server(
    server: FakeApiServer, client: Client
) -> None:
    server.fault("POST", "pods", status=500, body=status_of(500, "InternalError", "etcdserver: request timed out"))
    with pytest.raises(errors.ServerError) as caught:
        await client.create(POD, "ns", b'{"metadata":{"name":"p"}}', seconds=60.0)
    assert caught.value.maybe_done is True
    (told,) = [int(seen.query["timeout"].removesuffix("ms")) for seen in server.asked("POST")]
    assert 30_000 < told <= 60_000, "what is left of it when it is sent"


@pytest.mark.parametrize(("dry_run", "said"), [(True, ["All"]), (False, [None])])
async def test_hd_151_a_dry_run_is_told_to_the_server_beside_the_time_limit(
    server: FakeApiServer, client: Client, dry_run: bool, said: list[str | None]
) -> None:
    await client.create(POD, "ns", b'{"metadata":{"name":"p"}}', dry_run=dry_run, seconds=60.0)
    asked = server.asked("POST")
    assert [seen.query.get("dryRun") for seen in asked] == said
    assert all(seen.query["timeout"].removesuffix("ms").isdigit() for seen in asked)


async def test_a_request_that_gets_no_turn_in_time_was_not_sent(server: FakeApiServer) -> None:
    server.fault("POST", "pods", hang=True)
    async with Client(HttpTransport(server.config, connections=1)) as client:
        first = spawn("first", client.create(POD, "ns", b'{"metadata":{"name":"a"}}', seconds=60.0))
        await until(lambda: len(server.asked("POST")) == 1)
        with pytest.raises(
            errors.UnreachableError, match=r"no turn within 0\.05 s, 1 requests are under way"
        ) as caught:
            await client.create(POD, "ns", b'{"metadata":{"name":"b"}}', seconds=0.05)
        first.cancel()
    assert caught.value.maybe_done is False
    assert len(server.asked("POST")) == 1


async def test_requests_get_their_turns_in_order_and_tell_the_server_what_is_left_of_their_time(
    server: FakeApiServer,
) -> None:
    names = [f"p{number:02}" for number in range(20)]
    async with Client(HttpTransport(server.config, connections=1)) as client:
        await client.list_page(POD)  # the first request makes the session, which takes some milliseconds
        bodies = [json.dumps({"metadata": {"name": name}}).encode() for name in names]
        await asyncio.gather(*(client.create(POD, "ns", body, seconds=60.0) for body in bodies))
        made = [json.loads(seen.body)["metadata"]["name"] for seen in server.asked("POST")]
    told = [int(seen.query["timeout"].removesuffix("ms")) for seen in server.asked("POST")]
    assert made == names
    assert max(told) <= 60_000
    assert told[-1] < told[0]


async def test_a_watch_takes_no_request_s_turn(server: FakeApiServer) -> None:
    server.put(POD, "p", "ns")
    async with Client(HttpTransport(server.config, connections=1)) as client:
        lines = client.watch(POD, since="0")
        async with aclosing(lines):
            watching = spawn("watch", anext(lines))
            await until(lambda: server.watching == 1)
            assert (await client.get(ref_of(POD, "p", "ns"), seconds=30.0)).object.metadata.name == "p"
            watching.cancel()
            await asyncio.wait([watching])


async def test_a_write_whose_connection_breaks_may_have_been_done(server: FakeApiServer, client: Client) -> None:
    server.fault("POST", "pods", drop=True, carry_out=True)
    with pytest.raises(errors.UnreachableError) as caught:
        await client.create(POD, "ns", b'{"metadata":{"name":"p"}}')
    assert caught.value.maybe_done is True
    assert server.find(POD, "p", "ns") is not None


async def test_a_merge_patch_leaves_unknown_fields_alone(server: FakeApiServer, client: Client) -> None:
    server.put(POD, "p", "ns", spec={"unheardOf": {"deep": 1}})
    served = await client.patch(ref_of(POD, "p", "ns"), b'{"metadata":{"labels":{"a":"b"}}}')
    assert served.object.metadata.labels == {"a": "b"}
    stored = server.find(POD, "p", "ns")
    assert stored is not None
    assert stored["spec"] == {"unheardOf": {"deep": 1}}
    assert server.asked("PATCH")[0].headers["Content-Type"] == "application/merge-patch+json"


async def test_a_patch_on_an_old_version_conflicts(server: FakeApiServer, client: Client) -> None:
    server.put(WORKLOAD, "w", "ns")
    with pytest.raises(errors.ConflictError):
        await client.patch(ref_of(WORKLOAD, "w", "ns"), b'{"metadata":{"resourceVersion":"1"}}')


async def test_a_delete_names_the_uid_it_means(server: FakeApiServer, client: Client) -> None:
    server.put(POD, "p", "ns")
    with pytest.raises(errors.ConflictError):
        await client.delete(ref_of(POD, "p", "ns"), uid="another")
    assert await client.delete(ref_of(POD, "p", "ns"), uid="uid-p", grace_seconds=3) is None
    options = json.loads(server.asked("DELETE")[-1].body)
    assert options["preconditions"] == {"uid": "uid-p"}
    assert options["gracePeriodSeconds"] == 3
    assert options["propagationPolicy"] == "Background"


async def test_a_delete_that_leaves_the_object_terminating_returns_it(server: FakeApiServer, client: Client) -> None:
    terminating = {
        "kind": "Pod",
        "metadata": {"name": "p", "deletionTimestamp": "2026-11-21T00:00:00Z", "deletionGracePeriodSeconds": 30},
    }
    server.fault("DELETE", "/p", status=200, body=terminating)
    served = await client.delete(ref_of(POD, "p", "ns"))
    assert served is not None
    assert served.object.metadata.deletion_grace_period_seconds == 30


async def test_a_delete_of_a_pod_without_grace_and_finalizers_has_removed_it(
    server: FakeApiServer, client: Client
) -> None:
    last_state = {"kind": "Pod", "metadata": {"name": "p", "deletionTimestamp": None}}
    server.fault("DELETE", "/p", status=200, body=last_state)
    assert await client.delete(ref_of(POD, "p", "ns")) is None


async def test_a_watch_from_a_forgotten_version_raises_gone(server: FakeApiServer, client: Client) -> None:
    server.put(POD, "p", "ns")
    server.compact()
    with pytest.raises(errors.GoneError):
        async with aclosing(client.watch(POD, since="1")) as lines:
            await anext(lines)


async def test_a_watch_that_is_silent_is_given_up(server: FakeApiServer, client: Client) -> None:
    with pytest.raises(errors.SilentError, match="nothing came for 2 s"):
        async with aclosing(client.watch(POD, since=str(server.version), idle_seconds=2.0)) as lines:
            await anext(lines)


async def test_a_watch_that_is_not_opened_is_given_up(server: FakeApiServer, client: Client) -> None:
    server.fault("GET", "/pods", hang=True)
    with pytest.raises(errors.TimedOutError, match=r"no answer within 0\.2 s") as raised:
        async with aclosing(client.watch(POD, since=str(server.version), idle_seconds=0.2)) as lines:
            await anext(lines)
    assert not isinstance(raised.value, errors.SilentError)


async def test_an_error_line_of_a_watch_is_raised(server: FakeApiServer, client: Client) -> None:
    async with aclosing(client.watch(POD, since=str(server.version))) as lines:
        server.put(POD, "p", "ns")
        assert (await anext(lines)).type == "ADDED"
        server.error_line(POD, status_of(410, "Expired", "too old"))
        with pytest.raises(errors.GoneError):
            await anext(lines)


async def test_a_refusal_of_a_raw_request_is_an_error(server: FakeApiServer, client: Client) -> None:
    with pytest.raises(errors.NotFoundError):
        await client.raw("GET", "/api/v1/nodes/none")


@pytest.mark.parametrize("name", ["..", ".", "a/b", "a?b"])
async def test_a_name_cannot_leave_its_place_in_the_path(server: FakeApiServer, client: Client, name: str) -> None:
    server.put(POD, "p", "ns")
    with pytest.raises((errors.NotFoundError, errors.ImpossibleNameError)):
        await client.get(ref_of(POD, name, "ns"))
    assert all(seen.path.startswith("/api/v1/namespaces/ns/pods/") for seen in server.seen)
