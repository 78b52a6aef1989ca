"""How an agent comes to its certificate and keeps it, against the manager's real ports."""

from __future__ import annotations

import datetime as dt
import socket
import stat
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio
import structlog

from gatelift.adapters import authority
from gatelift.core.api import events
from gatelift_agent.adapters import enrolment as enrolments
from gatelift_agent.adapters.enrolment import Enrolment, EnrolmentError
from gatelift_agent.adapters.identity_store import DirectoryStore, Identity, IdentityStoreError, SecretStore
from gatelift_agent.adapters.targets import Endpoint
from gatelift_kube.api.client import Client
from gatelift_kube.api.config import from_kubeconfig
from gatelift_kube.process.tasks import spawn
from gatelift_sandbox.embedded.cluster import EmbeddedCluster
from gatelift_wire.streams import identity
from gatelift_wire.values import tokens
from support.until import until
from support.wire.edge import HOST, Edge, utc_now

DAY = dt.timedelta(days=1)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask again at once: a person is quick here."""
    monkeypatch.setattr(enrolments, "ASK_AGAIN_SECONDS_MAX", 0.05)


@pytest_asyncio.fixture
async def edge() -> AsyncIterator[Edge]:
    made = Edge()
    await made.start()
    yield made
    await made.stop()


def _token(edge: Edge, name: str = "w1", secret: bytes = bytes(24)) -> str:
    """Expect a cluster, as `gatelift cluster add` does."""
    token = tokens.compose(name, secret, edge.state.bundle)
    edge.put(name, spec={"tokenDigest": tokens.digest(token), "tokenExpiresAt": "2999-01-01T00:00:00Z"}, status={})
    return token


def _enrolment(edge: Edge, folder: Path, token: str, *, later: dt.timedelta = dt.timedelta()) -> Enrolment:
    target = Endpoint(address=f"{HOST}:{edge.enrol.port}")
    store = DirectoryStore(folder)
    return Enrolment(store, "w1", target, token, b"", utc_now=lambda: utc_now() + later)


def _approve(edge: Edge, name: str = "w1") -> None:
    asked = edge.cluster(name).status.enrolment
    assert asked is not None
    edge.patch_spec(name, approvedRequest=asked.key_digest)


async def _enrolled(edge: Edge, folder: Path) -> Identity:
    """Return an identity as an earlier enrolment left it."""
    key = enrolments.new_key()
    request = enrolments.signing_request(key, "w1")
    certificate = authority.sign_agent(edge.state, request, identity.uri_of("w1"), DAY, utc_now())
    found = Identity(key=key, certificate=certificate, bundle=edge.state.bundle)
    await DirectoryStore(folder).save(found)
    issued = (utc_now() - DAY).strftime("%Y-%m-%dT%H:%M:%SZ")
    edge.put("w1", spec={}, status={"keyDigest": authority.request_digest(request), "certificateIssuedAt": issued})
    return found


async def test_a_token_and_a_persons_word_give_a_certificate(edge: Edge, tmp_path: Path) -> None:
    folder = tmp_path / "identity"
    asking = spawn("enrol", _enrolment(edge, folder, _token(edge)).ready())
    await until(lambda: edge.cluster("w1").status.enrolment, "the agent asks")
    _approve(edge)
    found = await asking
    assert identity.peer_of(found.certificate).cluster == "w1"
    assert found.bundle == edge.state.bundle
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}


async def test_is_24_what_a_person_has_to_do_and_compare_is_said_while_it_waits(edge: Edge, tmp_path: Path) -> None:
    enrolment = _enrolment(edge, tmp_path, _token(edge))
    asking = spawn("enrol", enrolment.ready())
    await until(lambda: "gatelift cluster approve w1" in enrolment.waiting_for, "the text is there")
    assert not enrolment.usable()
    request = edge.cluster("w1").status.enrolment
    assert request is not None
    assert f"the key of this agent is {request.key_digest}" in enrolment.waiting_for
    asking.cancel()


async def test_a_restart_uses_what_is_kept_and_asks_nobody(edge: Edge, tmp_path: Path) -> None:
    first = await _enrolled(edge, tmp_path)
    again = _enrolment(edge, tmp_path, "")
    assert await again.ready() == first
    assert not any(isinstance(each, events.EnrolmentAsked) for each in edge.events)


async def test_after_expiry_the_same_key_renews_without_a_token(edge: Edge, tmp_path: Path) -> None:
    first = await _enrolled(edge, tmp_path)
    request = enrolments.signing_request(first.key, "w1")
    expired = authority.sign_agent(edge.state, request, identity.uri_of("w1"), DAY, utc_now() - 2 * DAY)
    await DirectoryStore(tmp_path).save(replace(first, certificate=expired))
    renewed = await _enrolment(edge, tmp_path, "").ready()
    assert renewed.key == first.key
    assert enrolments.validity(renewed.certificate).seconds_left(utc_now()) > 0


async def test_a_clock_that_is_wrong_is_said_instead_of_asking_for_ever(edge: Edge, tmp_path: Path) -> None:
    await _enrolled(edge, tmp_path)
    with pytest.raises(EnrolmentError, match="set the clock"):
        await _enrolment(edge, tmp_path, "", later=30 * DAY).ready()


async def test_the_first_answer_is_trusted_by_the_tokens_hash_of_the_ca(edge: Edge, tmp_path: Path) -> None:
    _token(edge)
    stranger = authority.new_state(utc_now())
    token = tokens.compose("w1", bytes(24), stranger.bundle)
    with pytest.raises(EnrolmentError, match="not signed by the CA that the token names"):
        await _enrolment(edge, tmp_path, token).ready()


async def test_is_48_a_manager_that_cannot_be_reached_is_told_once_and_asked_again(edge: Edge, tmp_path: Path) -> None:
    """The first answer and the call itself said it in two ways in turn: two lines of log every three seconds."""
    enrolment = _enrolment(edge, tmp_path, _token(edge))
    there, tries = enrolment._target, []

    class Nowhere(Endpoint):
        def connect(self, seconds: float) -> socket.socket:
            tries.append(seconds)
            raise ConnectionRefusedError("refused")

    enrolment._target = Nowhere(address="127.0.0.1:1")
    with structlog.testing.capture_logs() as lines:
        asking = spawn("enrol", enrolment.ready())
        await until(lambda: len(tries) > 3, "it is tried again and again")
    assert enrolment.waiting_for == "enrol 127.0.0.1:1: cannot be reached (refused); it is tried again"
    assert [line["why"] for line in lines if line["event"] == "not enrolled yet"] == [enrolment.waiting_for]
    enrolment._target = there
    await until(lambda: edge.cluster("w1").status.enrolment is not None, "the manager is asked")
    _approve(edge)
    assert identity.peer_of((await asking).certificate).cluster == "w1"


async def test_a_wrong_token_is_refused_with_the_managers_text(edge: Edge, tmp_path: Path) -> None:
    _token(edge)
    token = tokens.compose("w1", b"x" * 24, edge.state.bundle)
    with pytest.raises(EnrolmentError, match=r"enrolment of w1 was refused: .*token"):
        await _enrolment(edge, tmp_path, token).ready()


async def test_without_token_and_certificate_the_way_out_is_said(edge: Edge, tmp_path: Path) -> None:
    with pytest.raises(EnrolmentError, match="gatelift cluster add NAME"):
        await _enrolment(edge, tmp_path, "").ready()
    nowhere = Enrolment(DirectoryStore(tmp_path), "w1", None, "", b"", utc_now=utc_now)
    with pytest.raises(EnrolmentError, match="set enrol: host:port"):
        await nowhere.ready()


async def test_a_certificate_of_another_key_or_name_is_not_installed(edge: Edge, tmp_path: Path) -> None:
    await _enrolled(edge, tmp_path)
    enrolment = _enrolment(edge, tmp_path, "")
    kept = await enrolment.ready()
    request = enrolments.signing_request(enrolments.new_key(), "w1")
    stranger = authority.sign_agent(edge.state, request, identity.uri_of("w1"), DAY, utc_now())
    with pytest.raises(EnrolmentError, match="another key"):
        await enrolment.install(stranger, edge.state.bundle)
    other = authority.sign_agent(edge.state, enrolment.signing_request(), identity.uri_of("w2"), DAY, utc_now())
    with pytest.raises(EnrolmentError, match="is for cluster w2"):
        await enrolment.install(other, edge.state.bundle)
    with pytest.raises(EnrolmentError, match="cannot be used"):
        await enrolment.install(b"rubbish", b"")
    assert enrolment.current == kept


async def test_a_renewed_certificate_is_kept_for_the_next_process(edge: Edge, tmp_path: Path) -> None:
    await _enrolled(edge, tmp_path)
    enrolment = _enrolment(edge, tmp_path, "")
    await enrolment.ready()
    fresh = authority.sign_agent(edge.state, enrolment.signing_request(), identity.uri_of("w1"), 2 * DAY, utc_now())
    await enrolment.install(fresh, edge.state.bundle)
    assert enrolment.renew_in() > DAY.total_seconds()
    kept = await DirectoryStore(tmp_path).load()
    assert kept is not None
    assert kept.certificate == fresh


async def test_a_directory_that_cannot_be_used_says_so(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(IdentityStoreError, match="identityDirectory"):
        await DirectoryStore(blocked / "inside").save(Identity(key=b"k"))


async def test_a_secret_keeps_an_identity_too(tmp_path: Path) -> None:
    cluster = EmbeddedCluster("w1")
    await cluster.start()
    path = tmp_path / "kubeconfig"
    path.write_text(cluster.kubeconfig())
    async with Client.connect(await from_kubeconfig(str(path))) as client:
        store = SecretStore(client, "default", "gatelift-agent-identity")
        assert await store.load() is None
        await store.save(Identity(key=b"key"))
        assert await store.load() == Identity(key=b"key")
        await store.save(Identity(key=b"key", certificate=b"certificate", bundle=b"bundle"))
        assert await store.load() == Identity(key=b"key", certificate=b"certificate", bundle=b"bundle")
    async with Client.connect(await from_kubeconfig(str(path))) as client:
        await cluster.stop()
        with pytest.raises(IdentityStoreError, match="cannot be written"):
            await SecretStore(client, "default", "other").save(Identity(key=b"key"))


# --- anew ----------------------------------------------------------------------------------------------------------


def _add_again(edge: Edge, secret: bytes = b"s" * 24) -> str:
    """Revoke a cluster and expect it again, as `gatelift cluster remove` and `add` do; return the new token."""
    token = tokens.compose("w1", secret, edge.state.bundle)
    edge.put("w1", spec={"tokenDigest": tokens.digest(token), "tokenExpiresAt": "2999-01-01T00:00:00Z"}, status={})
    return token


async def _refused(edge: Edge, folder: Path, token: str) -> tuple[Identity, Enrolment]:
    """Return what an agent has when the manager turns its identity away."""
    old = await _enrolled(edge, folder)
    enrolment = _enrolment(edge, folder, token)
    assert await enrolment.ready() == old
    return old, enrolment


async def test_a_refused_identity_is_replaced_by_a_token_that_was_not_used(edge: Edge, tmp_path: Path) -> None:
    token = _add_again(edge)
    old, enrolment = await _refused(edge, tmp_path, token)
    assert _add_again(edge) == token
    assert enrolment.refused("w1 was revoked")
    asking = spawn("anew", enrolment.enrol_anew())
    await until(lambda: "gatelift cluster approve w1" in enrolment.waiting_for, "it asks for a person")
    assert not enrolment.usable()
    with pytest.raises(EnrolmentError, match=r"is being enrolled anew: .*gatelift cluster approve w1"):
        await enrolment.ready()
    kept = await DirectoryStore(tmp_path).load()
    assert kept is not None
    assert (kept.key, kept.certificate) == (old.key, old.certificate), "the old one stays until the new one is there"
    _approve(edge)
    await asking
    found = await enrolment.ready()
    assert found.key == kept.next_key != old.key
    assert found.token_digest == tokens.digest(token).encode()
    assert await DirectoryStore(tmp_path).load() == found
    assert not enrolment.refused("again"), "the token is used now"


async def test_a_restart_while_a_person_is_waited_for_goes_on_with_the_same_key(edge: Edge, tmp_path: Path) -> None:
    token = _add_again(edge)
    _, first = await _refused(edge, tmp_path, token)
    _add_again(edge)
    asking = spawn("anew", first.enrol_anew())
    await until(lambda: "gatelift cluster approve w1" in first.waiting_for, "its token is used by its key")
    asking.cancel()
    await until(asking.done, "it is gone")
    second = _enrolment(edge, tmp_path, token)
    await second.ready()
    assert second.refused("w1 was revoked")
    again = spawn("anew", second.enrol_anew())
    await until(lambda: "gatelift cluster approve w1" in second.waiting_for, "the token is still taken from it")
    _approve(edge)
    await again
    assert second.usable()


async def test_an_identity_that_a_token_was_used_for_says_the_way_out(
    edge: Edge, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    token = _token(edge)
    asking = spawn("enrol", _enrolment(edge, tmp_path, token).ready())
    await until(lambda: edge.cluster("w1").status.enrolment, "the agent asks")
    _approve(edge)
    await asking
    enrolment = _enrolment(edge, tmp_path, token)
    await enrolment.ready()
    assert not enrolment.refused("w1 was revoked by a person")
    assert enrolment.usable()
    [line] = [line for line in capsys.readouterr().out.splitlines() if "identity refused" in line]
    assert "gatelift cluster add w1" in line
    assert "(token) and restart the agent" in line


async def test_a_token_that_is_refused_as_well_leaves_the_old_identity(edge: Edge, tmp_path: Path) -> None:
    stale = tokens.compose("w1", b"t" * 24, edge.state.bundle)
    old, enrolment = await _refused(edge, tmp_path, stale)
    _add_again(edge)
    assert enrolment.refused("w1 was revoked")
    with pytest.raises(EnrolmentError, match="cluster: w1 is not expected here with this token or key"):
        await enrolment.enrol_anew()
    found = await enrolment.ready()
    assert (found.key, found.certificate) == (old.key, old.certificate)
    assert enrolment.refused("w1 was revoked"), "it is tried again with the next refusal"


async def test_an_expired_identity_that_is_not_renewed_is_replaced_too(edge: Edge, tmp_path: Path) -> None:
    first = await _enrolled(edge, tmp_path)
    request = enrolments.signing_request(first.key, "w1")
    expired = authority.sign_agent(edge.state, request, identity.uri_of("w1"), DAY, utc_now() - 2 * DAY)
    await DirectoryStore(tmp_path).save(replace(first, certificate=expired))
    token = _add_again(edge)
    asking = spawn("enrol", _enrolment(edge, tmp_path, token).ready())
    await until(lambda: edge.cluster("w1").status.enrolment, "it asks with the token")
    _approve(edge)
    assert (await asking).key != first.key


async def test_what_another_replica_was_given_meanwhile_is_used(edge: Edge, tmp_path: Path) -> None:
    token = _add_again(edge)
    _, enrolment = await _refused(edge, tmp_path, token)
    newer = await _enrolled(edge, tmp_path)
    await enrolment.enrol_anew()
    assert await enrolment.ready() == newer


async def test_a_crash_between_key_and_certificate_is_found_at_the_next_start(edge: Edge, tmp_path: Path) -> None:
    first = await _enrolled(edge, tmp_path)
    second = await _enrolled(edge, tmp_path)
    await DirectoryStore(tmp_path).save(replace(second, certificate=first.certificate))
    token = _add_again(edge)
    asking = spawn("enrol", _enrolment(edge, tmp_path, token).ready())
    await until(lambda: edge.cluster("w1").status.enrolment, "it asks again")
    _approve(edge)
    found = await asking
    assert (found.key, found.certificate != first.certificate) == (second.key, True)


# --- another authority -----------------------------------------------------------------------------------------------


def _switched(edge: Edge) -> None:
    """Have another CA sign, and the one before stay trusted, as `gatelift ca announce` and `switch --force` do."""
    edge.rotate(lambda state: authority.announce(state, utc_now()))
    edge.rotate(authority.switch)


def _doubting(edge: Edge, folder: Path, token: str, *, over: bool = False) -> Enrolment:
    """Return an agent whose dial has just come to nothing; `over`: its certificate has run out meanwhile."""
    enrolment = _enrolment(edge, folder, token, later=2 * DAY if over else dt.timedelta())
    if not over:
        enrolment.unreached()
    return enrolment


@pytest.mark.parametrize("anew", [True, False], ids=["made-anew", "switched"])
@pytest.mark.parametrize("over", [True, False], ids=["run-out", "valid"])
async def test_hd_632_an_identity_that_does_not_know_the_authority_is_replaced_by_a_token_that_names_it(
    edge: Edge, tmp_path: Path, anew: bool, over: bool
) -> None:
    """HD-632: it was used, or its renewal asked for, for ever: who is not trusted is not heard to refuse it."""
    old = await _enrolled(edge, tmp_path)
    if anew:
        edge.rotate(lambda _: authority.new_state(utc_now()))
    else:
        _switched(edge)
    token = _add_again(edge)
    asking = spawn("enrol", _doubting(edge, tmp_path, token, over=over).ready())
    await until(lambda: edge.cluster("w1").status.enrolment is not None, "it asks with the token")
    kept = await DirectoryStore(tmp_path).load()
    assert kept is not None
    assert kept.certificate == old.certificate, "the old one stays until the new one is there"
    asking.cancel()
    await until(asking.done, "it is started again")
    asking = spawn("enrol", _doubting(edge, tmp_path, token).ready())
    _approve(edge)
    found = await asking
    assert (found.key, found.bundle) == (kept.next_key, edge.state.bundle)
    assert await _doubting(edge, tmp_path, token).ready() == found, "the token is used"


async def _shown_by(enrolment: Enrolment) -> Identity | str:
    """Return the identity that an agent shows, or why it has none."""
    try:
        return await enrolment.ready()
    except EnrolmentError as error:
        return str(error)


async def test_hd_632_an_identity_is_kept_as_long_as_the_authority_may_be_its_own(edge: Edge, tmp_path: Path) -> None:
    old = await _enrolled(edge, tmp_path)
    stranger = tokens.compose("w1", bytes(24), authority.new_state(utc_now()).bundle)
    assert await _shown_by(_doubting(edge, tmp_path, stranger)) == old, "the port shows no such CA"
    edge.rotate(lambda state: authority.announce(state, utc_now()))
    assert edge.state.following is not None
    coming = tokens.compose("w1", bytes(24), edge.state.following.certificate)
    assert await _shown_by(_doubting(edge, tmp_path, coming)) == old, "that one signs nothing yet"
    edge.rotate(lambda _: authority.new_state(utc_now()))
    assert await _shown_by(_doubting(edge, tmp_path, coming)) == old, "a stranger at the port proves nothing"
    assert await _shown_by(_doubting(edge, tmp_path, "")) == old


async def test_hd_632_a_certificate_of_a_ca_that_was_retired_is_renewed_by_its_key(edge: Edge, tmp_path: Path) -> None:
    """It was shown, and turned away, until it had run out."""
    old = await _enrolled(edge, tmp_path)
    _switched(edge)
    await DirectoryStore(tmp_path).save(replace(old, bundle=edge.state.bundle))
    edge.rotate(authority.retire)
    assert (await _enrolment(edge, tmp_path, "").ready()).certificate == old.certificate
    found = await _doubting(edge, tmp_path, "").ready()
    assert authority.issuer_of(found.certificate, edge.state.bundle)
    assert found.key == old.key


async def test_hd_633_a_token_that_was_printed_before_a_switch_says_so(edge: Edge, tmp_path: Path) -> None:
    """HD-633: its agent said "no answer" every three seconds, for ever."""
    token = _token(edge)
    _switched(edge)
    with pytest.raises(EnrolmentError, match=r"names a CA that signs no more .*'gatelift cluster add w1' prints"):
        await _enrolment(edge, tmp_path, token).ready()
