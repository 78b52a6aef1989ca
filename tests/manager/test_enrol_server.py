"""The enrolment port on a real wire: a token, a person's approval, a certificate; and everything that is refused."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import socket
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest
import structlog
from cryptography import x509

from gatelift.adapters import authority, enrol_server
from gatelift.core.api.commands import AnswerEnrolment, EnrolmentVerdict
from gatelift.core.api.events import EnrolmentAsked
from gatelift.core.clusters.enrolment import EnrolmentSettings
from gatelift_agent.adapters.enrolment import Enrolment, EnrolmentError
from gatelift_agent.adapters.identity_store import DirectoryStore
from gatelift_agent.adapters.targets import Endpoint
from gatelift_kube.deciding.places import Places
from gatelift_kube.process.clock import monotonic
from gatelift_kube.process.tasks import spawn
from gatelift_wire.streams import identity
from gatelift_wire.v1 import agent_pb2 as pb
from gatelift_wire.values import tokens
from support.until import until
from support.wire.edge import DAY, HOST, Edge, Identity, Key, RawStream, WireAgent, channel, utc_now

PENDING, APPROVED, REFUSED = pb.ENROLL_STATUS_PENDING, pb.ENROLL_STATUS_APPROVED, pb.ENROLL_STATUS_REFUSED
METHOD = f"/{enrol_server.SERVICE}/Enroll"
LIMIT_SECONDS = 60.0


@pytest.fixture
async def edge() -> AsyncIterator[Edge]:
    made = Edge()
    await made.start()
    yield made
    await made.stop()


def expect(edge: Edge, name: str = "w1", secret: bytes = bytes(24), expires: dt.timedelta = DAY) -> str:
    """Do what `gatelift cluster add` does; return the token."""
    token = tokens.compose(name, secret, edge.state.bundle)
    spec = {
        "tokenDigest": tokens.digest(token),
        "tokenExpiresAt": f"{utc_now() + expires:%Y-%m-%dT%H:%M:%SZ}",
        "approvedRequest": "",
        "revoked": False,
    }
    edge.put(name, spec=spec)
    return token


def approve(edge: Edge, name: str = "w1") -> None:
    """Do what `gatelift cluster approve` does."""
    request = edge.cluster(name).status.enrolment
    assert request is not None
    edge.patch_spec(name, approvedRequest=request.key_digest)


async def call(edge: Edge, data: bytes, bundle: bytes = b"") -> pb.EnrollResponse:
    async with channel(edge.enrol.port, None, bundle or edge.state.bundle) as dialled:
        response: bytes = await dialled.unary_unary(METHOD)(data, timeout=LIMIT_SECONDS)
    return pb.EnrollResponse.FromString(response)


async def ask(edge: Edge, token: str, key: Key, cluster: str = "w1") -> pb.EnrollResponse:
    """Ask as an agent does, which asks again where the links wrote the record at the same moment."""
    data = pb.EnrollRequest(cluster=cluster, request=key.request(), token=token).SerializeToString()
    async with asyncio.timeout(LIMIT_SECONDS):
        while (answer := await call(edge, data)).text == "the record has just changed; ask again":
            pass
    return answer


async def enrolled(edge: Edge, key: Key, name: str = "w1") -> Identity:
    token = expect(edge, name)
    await ask(edge, token, key, name)
    approve(edge, name)
    response = await ask(edge, token, key, name)
    assert response.status == APPROVED
    return Identity(key=key, certificate=response.certificate, bundle=response.ca_bundle)


async def test_a_token_then_a_persons_approval_give_a_certificate_that_opens_a_session(edge: Edge) -> None:
    key = Key.new()
    token = expect(edge)
    first = await ask(edge, token, key)
    assert (first.status, first.text) == (PENDING, "waits for a person: 'gatelift cluster approve w1'")
    assert not first.certificate
    assert first.retry_after_seconds == enrol_server.RETRY_SECONDS
    assert (await ask(edge, token, key)).status == PENDING, "asking does not approve"
    approve(edge)
    last = await ask(edge, token, key)
    assert last.status == APPROVED
    assert identity.peer_of(last.certificate).cluster == "w1"
    assert edge.cluster("w1").status.key_digest == key.digest
    shown = Identity(key=key, certificate=last.certificate, bundle=last.ca_bundle)
    agent = await WireAgent(edge.server.port, shown).connect()
    await agent.close()


async def test_is_12_an_address_is_known_by_a_certificate_that_was_given_and_not_by_a_question(edge: Edge) -> None:
    key, token, known = Key.new(), expect(edge), edge.enrol.gate.known
    await ask(edge, "gl1.wrong", Key.new())
    await ask(edge, "", Key.new())
    assert (await ask(edge, token, key)).status == PENDING
    assert not known.knows(HOST, monotonic())
    approve(edge)
    assert (await ask(edge, token, key)).status == APPROVED
    assert known.knows(HOST, monotonic())


async def test_an_agent_that_waits_for_a_person_is_one_line_in_the_log_until_its_answer_changes(edge: Edge) -> None:
    key, token = Key.new(), expect(edge)
    with structlog.testing.capture_logs() as lines:
        for _ in range(5):
            await ask(edge, token, key)
        approve(edge)
        await ask(edge, token, key)
        await ask(edge, "", Key.new(), "w2")
    told = [(line["log_level"], line["cluster"], line["verdict"]) for line in lines if line["event"] == "enrolment"]
    assert told == [("info", "w1", "Pending"), ("info", "w1", "Approved"), ("warning", "w2", "Refused")]


async def test_the_agents_own_enrolment_trusts_the_port_by_the_tokens_hash_of_its_ca(
    edge: Edge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(enrol_server, "RETRY_SECONDS", 0.5)
    edge.rotate(lambda state: authority.announce(state, utc_now()))
    token = expect(edge)
    target = Endpoint(address=f"{HOST}:{edge.enrol.port}")
    enrolment = Enrolment(DirectoryStore(tmp_path), "w1", target, token, b"", utc_now=utc_now)
    ready = spawn("enrolment", enrolment.ready())
    await until(lambda: edge.api.objects["w1"].get("status") and edge.cluster("w1").status.enrolment)
    approve(edge)
    async with asyncio.timeout(LIMIT_SECONDS):
        found = await ready
    assert identity.peer_of(found.certificate).cluster == "w1"
    assert found.bundle == edge.state.bundle, "both CAs, since a rotation is announced"


async def test_an_agent_gives_its_token_to_no_port_whose_ca_the_token_does_not_name(edge: Edge, tmp_path: Path) -> None:
    expect(edge)
    foreign = tokens.compose("w1", bytes(24), authority.new_state(utc_now()).bundle)
    target = Endpoint(address=f"{HOST}:{edge.enrol.port}")
    enrolment = Enrolment(DirectoryStore(tmp_path), "w1", target, foreign, b"", utc_now=utc_now)
    with pytest.raises(EnrolmentError, match="is not signed by the CA that the token names"):
        await enrolment.ready()
    assert not [each for each in edge.events if type(each).__name__ == "EnrolmentAsked"]


async def test_the_policy_that_takes_the_token_for_approval_answers_at_once() -> None:
    edge = Edge(settings=EnrolmentSettings(approve_by_token=True))
    await edge.start()
    try:
        assert (await ask(edge, expect(edge), Key.new())).status == APPROVED
    finally:
        await edge.stop()


async def test_a_wrong_a_used_and_an_expired_token_are_refused_each_with_the_way_out(edge: Edge) -> None:
    token = expect(edge)
    wrong = await ask(edge, token[:-1] + ("0" if token[-1] != "0" else "1"), Key.new())
    assert (wrong.status, wrong.text) == (REFUSED, nothing_proven("w1"))
    await ask(edge, token, Key.new())
    used = await ask(edge, token, Key.new())
    assert (used.status, used.text) == (
        REFUSED,
        "token: was used by another key; print a new one with 'gatelift cluster add w1'",
    )
    expired = await ask(edge, expect(edge, "w2", expires=-DAY), Key.new(), "w2")
    assert expired.status == REFUSED
    assert expired.text.startswith("token: expired at 20")
    assert expired.text.endswith("print a new one with 'gatelift cluster add w2'")


def nothing_proven(name: str) -> str:
    """Return what whoever proves nothing is told, whatever the name."""
    command = f"run 'gatelift cluster add {name}' in the management cluster"
    return f"cluster: {name} is not expected here with this token or key; {command} and give its token to the agent"


async def test_is_15_the_log_says_why_and_strangers_with_ever_new_names_get_one_line(edge: Edge) -> None:
    expect(edge)
    with structlog.testing.capture_logs() as lines:
        for name in ("w1", "w7", "w8", "w9"):
            answer = await ask(edge, "gl1.wrong", Key.new(), name)
            assert (answer.status, answer.text) == (REFUSED, nothing_proven(name))
    told = [(line["cluster"], line["text"]) for line in lines if line["event"] == "enrolment"]
    assert told == [
        ("w1", "the token is not the one last printed"),
        ("w7", "there is no WorkerCluster of that name"),
    ]


async def test_a_token_of_one_cluster_enrols_no_other(edge: Edge) -> None:
    token = expect(edge)
    expect(edge, "w2", secret=bytes(range(24)))
    answer = await ask(edge, token, Key.new(), "w2")
    assert answer.status == REFUSED
    assert edge.cluster("w2").status.enrolment is None


def approved_before(edge: Edge, name: str, key: Key, days: int) -> None:
    """Have a cluster whose agent got its last certificate so many days ago."""
    issued_at = f"{utc_now() - days * DAY:%Y-%m-%dT%H:%M:%SZ}"
    edge.put(name, spec={}, status={"keyDigest": key.digest, "certificateIssuedAt": issued_at})


async def test_the_approved_key_renews_without_a_token_for_thirty_days_after_its_certificate_ended(edge: Edge) -> None:
    key = Key.new()
    approved_before(edge, "w1", key, days=30)
    approved_before(edge, "w2", key, days=32)
    renewed = await ask(edge, "", key)
    assert renewed.status == APPROVED
    shown = Identity(key=key, certificate=renewed.certificate, bundle=renewed.ca_bundle)
    agent = await WireAgent(edge.server.port, shown).connect()
    await agent.close()
    refused = await ask(edge, "", key, "w2")
    assert (refused.status, refused.text) == (
        REFUSED,
        "key: its certificate ended more than 30 days ago; enrol w2 anew with a token",
    )


async def test_a_key_that_nobody_approved_renews_nothing(edge: Edge) -> None:
    await enrolled(edge, Key.new())
    answer = await ask(edge, "", Key.new())
    assert (answer.status, answer.text) == (REFUSED, nothing_proven("w1"))


async def test_a_removed_cluster_gets_nothing_and_its_old_key_opens_nothing_once_it_is_added_again(edge: Edge) -> None:
    key = Key.new()
    shown = await enrolled(edge, key)
    edge.patch_spec("w1", revoked=True, approvedRequest="", tokenDigest="")
    await until(lambda: not edge.cluster("w1").status.key_digest)
    refused = await ask(edge, "", key)
    assert (refused.status, refused.text) == (REFUSED, nothing_proven("w1"))
    token = expect(edge)
    stream = RawStream(edge.server.port, shown, edge.state.bundle)
    assert (await stream.ending())[1].startswith("this key is not the one that was approved last for w1")
    await stream.close()
    assert (await ask(edge, "", key)).status == REFUSED
    assert (await ask(edge, token, key)).status == PENDING, "the same key may ask again, and a person decides"


MALFORMED = {
    "a name that is none": (
        {"cluster": "Not/A.Name"},
        (
            "cluster name 'Not/A.Name': must be a DNS label (a-z, 0-9 and -, at most 63 characters, beginning and "
            "ending with a letter or digit); choose another name"
        ),
    ),
    "no signing request": (
        {"request": b""},
        "request: is no PEM certificate signing request; make it with the agent",
    ),
    "a signing request that is too large": (
        {"request": b"x" * (authority.REQUEST_BYTES_MAX + 1)},
        "request: 16385 bytes, 16384 allowed; send one PEM signing request",
    ),
    "the management cluster's own name": (
        {"cluster": "local"},
        "cluster: 'local' is the management cluster itself and needs no agent; choose another name",
    ),
    "a cluster that nobody expects": (
        {"cluster": "w9"},
        (
            "cluster: w9 is not expected here with this token or key; run 'gatelift cluster add w9' in the management "
            "cluster and give its token to the agent"
        ),
    ),
}


@pytest.mark.parametrize(("parts", "text"), MALFORMED.values(), ids=MALFORMED.keys())
async def test_a_malformed_request_is_refused_in_one_line(edge: Edge, parts: dict[str, object], text: str) -> None:
    filled = {"cluster": "w1", "request": Key.new().request(), "token": expect(edge), **parts}
    answer = await call(edge, pb.EnrollRequest(**filled).SerializeToString())  # type: ignore[arg-type]  # of the table
    assert (answer.status, answer.text) == (REFUSED, text)


async def test_bytes_that_are_no_request_and_too_many_of_them_end_the_call_and_nothing_else(edge: Edge) -> None:
    codes = []
    for data in (b"\xff\xff\xff", b"\x00" * (enrol_server.REQUEST_BYTES_MAX + 1)):
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await call(edge, data)
        codes.append(failed.value.code())
    assert codes == [grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.RESOURCE_EXHAUSTED]
    assert (await ask(edge, expect(edge), Key.new())).status == PENDING


async def test_a_client_that_does_not_trust_the_ca_sends_nothing(edge: Edge) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await call(edge, b"", authority.new_state(utc_now()).bundle)
    assert failed.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_a_standby_says_ask_again_and_asks_nobody() -> None:
    edge = Edge(leads=False)
    await edge.start()
    try:
        answer = await ask(edge, expect(edge), Key.new())
        assert (answer.status, answer.text) == (PENDING, "this manager is a standby; ask again")
        assert not [each for each in edge.events if type(each).__name__ == "EnrolmentAsked"]
    finally:
        await edge.stop()


async def test_a_core_that_does_not_answer_is_not_waited_for_without_end(
    edge: Edge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(enrol_server, "ANSWER_SECONDS", 0.2)
    edge.answers_enrolment = False
    token = expect(edge)
    answers = await asyncio.gather(*(ask(edge, token, Key.new()) for _ in range(4)))
    assert {(each.status, each.text) for each in answers} == {(PENDING, "the manager is busy; ask again")}
    monkeypatch.setattr(enrol_server, "ANSWER_SECONDS", LIMIT_SECONDS)
    edge.answers_enrolment = True
    assert (await ask(edge, token, Key.new())).text == "waits for a person: 'gatelift cluster approve w1'"


async def test_requests_beyond_the_limit_are_turned_away_while_others_wait(
    edge: Edge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(enrol_server, "ANSWER_SECONDS", LIMIT_SECONDS)
    edge.answers_enrolment = False
    data = pb.EnrollRequest(cluster="w1", request=Key.new().request(), token=expect(edge)).SerializeToString()
    flood = [spawn("flood", call(edge, data)) for _ in range(enrol_server.REQUESTS_MAX + 8)]

    def asked() -> list[EnrolmentAsked]:
        return [each for each in edge.events if isinstance(each, EnrolmentAsked)]

    await until(lambda: sum(each.done() for each in flood) == 8 and len(asked()) == enrol_server.REQUESTS_MAX)
    for event in asked():
        edge.enrol.answer(AnswerEnrolment(request_id=event.request_id, verdict=EnrolmentVerdict.PENDING, text="later"))
    results = await asyncio.gather(*flood, return_exceptions=True)
    codes = [each.code() for each in results if isinstance(each, grpc.aio.AioRpcError)]
    assert codes == [grpc.StatusCode.RESOURCE_EXHAUSTED] * 8
    assert sum(1 for each in results if isinstance(each, pb.EnrollResponse)) == enrol_server.REQUESTS_MAX


async def test_the_chain_that_is_shown_ends_in_the_ca_whose_hash_a_token_carries(edge: Edge) -> None:
    token = tokens.parse(expect(edge))
    served = edge.server_pair.certificate + edge.state.bundle
    shown = x509.load_pem_x509_certificates(served)
    assert [each.issuer == shown[1].subject for each in shown] == [True, True]
    assert tokens.ca_hash(edge.state.bundle) == token.ca_hash


# --- strangers at the port ---


async def test_is_12_calls_that_send_no_body_shut_nobody_out_and_end_soon(
    edge: Edge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """IS-12: 160 of them shut the port for everybody."""
    token = expect(edge)
    async with contextlib.AsyncExitStack() as stack:
        channels = [
            await stack.enter_async_context(channel(edge.enrol.port, None, edge.state.bundle)) for _ in range(80)
        ]
        silent = [one.stream_unary(METHOD)() for one in channels for _ in range(enrol_server.CALLS_PER_CONNECTION)]
        await until(lambda: edge.enrol.gate.places.count == len(channels), "all of them are there")
        assert (await ask(edge, token, Key.new())).status == PENDING
        monkeypatch.setattr(enrol_server, "BODY_SECONDS", 0.1)
        late = channels[0].stream_unary(METHOD)()
        silent[0].cancel()
        assert await late.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        for one in silent:
            one.cancel()


async def test_is_12_of_a_wrong_token_no_signature_is_looked_at_and_its_answer_takes_its_time(
    edge: Edge, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked, plain = [], authority.request_digest

    def digest(request: bytes) -> str:
        looked.append(threading.current_thread().name)
        return plain(request)

    monkeypatch.setattr(authority, "request_digest", digest)
    token = expect(edge)
    for name in ("w1", "w9"):
        assert (await ask(edge, "gl1.wrong", Key.new(), name)).text == nothing_proven(name)
    assert (looked, edge.paused) == ([], [enrol_server.STRANGER_SECONDS] * 2)
    assert (await ask(edge, token, Key.new())).status == PENDING
    assert [name.startswith("signatures") for name in looked] == [True], "and beside the event loop"
    assert len(edge.paused) == 2, "who is expected waits for nothing"


async def test_is_12_whoever_comes_displaces_who_has_asked_nothing(edge: Edge) -> None:
    """The port is full of strangers who say nothing, and an agent's request is answered at once all the same."""
    edge.enrol.gate.places = Places(8, 0)
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(8):
            one = await stack.enter_async_context(channel(edge.enrol.port, None, edge.state.bundle))
            one.stream_unary(METHOD)()
        await until(lambda: edge.enrol.gate.places.count == 8, "no place is left")
        assert (await ask(edge, expect(edge), Key.new())).status == PENDING


async def test_hd_118_silent_connections_are_bounded_and_gone_soon(edge: Edge) -> None:
    """Whoever is beyond the bound is hung up on at once; when the silent ones are gone, agents are answered again."""

    def crowd() -> list[socket.socket]:
        return [socket.create_connection((HOST, edge.enrol.port)) for _ in range(enrol_server.CONNECTIONS_MAX + 40)]

    def hung_up() -> int:
        count = 0
        for one in silent:
            one.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                try:
                    count += one.recv(1) == b""
                except ConnectionError:
                    count += 1
        return count

    silent = await asyncio.to_thread(crowd)
    await until(lambda: hung_up() >= 30, "those beyond the bound are hung up on")
    for one in silent:
        one.close()
    data = pb.EnrollRequest(cluster="w1", request=Key.new().request(), token="").SerializeToString()
    answer = None
    async with asyncio.timeout(LIMIT_SECONDS):
        while answer is None:
            with contextlib.suppress(grpc.RpcError):
                answer = await call(edge, data)
    assert answer.status == REFUSED
