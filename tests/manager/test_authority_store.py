"""Where the certificate authority is kept: shared by replicas, followed when a person rotates it, never lost."""

from __future__ import annotations

import base64
import datetime as dt
from collections.abc import AsyncIterator, Callable

import msgspec
import pytest
import structlog
from cryptography import x509

from gatelift.adapters import authority
from gatelift.adapters.authority_store import NAME, SERVER_LIFETIME, AuthorityStore
from gatelift_kube.api.client import Client
from gatelift_kube.deciding.errors import KubeError
from gatelift_kube.objects.core import ConfigMap
from gatelift_kube.values.resources import CONFIG_MAP, SECRET, WORKER_CLUSTER, ObjectKey, ObjectRef
from support.servers.fake_apiserver import FakeApiServer, status_of

NAMESPACE = "gatelift-system"
START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


class Bench:
    """An API server, and a wall clock that the test moves."""

    def __init__(self, server: FakeApiServer, client: Client) -> None:
        self.server = server
        self.client = client
        self.now = START

    def store(self) -> AuthorityStore:
        return AuthorityStore(self.client, NAMESPACE, ("manager.example", "10.0.0.1"), lambda: self.now)

    def rotate(self, step: Callable[[authority.AuthorityState], authority.AuthorityState], of: AuthorityStore) -> None:
        self.server.put(SECRET, NAME, NAMESPACE, data=step(of.state).to_secret())

    async def published(self) -> bytes:
        served = await self.client.get(ObjectRef(CONFIG_MAP, ObjectKey(NAMESPACE, NAME)))
        return msgspec.json.decode(served.raw, type=ConfigMap).data["ca.crt"].encode()


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    server = FakeApiServer()
    await server.start()
    async with Client.connect(server.config) as client:
        yield Bench(server, client)
    await server.stop()


async def test_the_first_replica_makes_the_authority_and_every_other_reads_it(bench: Bench) -> None:
    first, second = bench.store(), bench.store()
    await first.load()
    await second.load()
    assert first.state == second.state
    assert await bench.published() == first.state.bundle


async def test_a_replica_that_lost_the_race_to_make_it_takes_the_winners(bench: Bench) -> None:
    winner, loser = bench.store(), bench.store()
    await winner.load()
    bench.server.fault("GET", "/secrets/", status=404, body=status_of(404, "NotFound"))
    await loser.load()
    assert loser.state == winner.state


async def test_the_servers_certificate_has_the_names_that_agents_dial(bench: Bench) -> None:
    store = bench.store()
    await store.load()
    names = (
        x509.load_pem_x509_certificate(store.server_pair().certificate)
        .extensions.get_extension_for_class(x509.SubjectAlternativeName)
        .value
    )
    assert names.get_values_for_type(x509.DNSName) == ["manager.example"]
    assert [str(each) for each in names.get_values_for_type(x509.IPAddress)] == ["10.0.0.1"]


async def test_a_rotation_by_a_person_is_followed_and_published(bench: Bench) -> None:
    store = bench.store()
    await store.load()
    before = store.server_pair()
    bench.rotate(lambda state: authority.announce(state, bench.now), store)
    await store.refresh()
    assert store.server_pair() == before, "the announced CA does not sign yet"
    assert await bench.published() == store.server_credentials()[2] == store.state.bundle
    bench.rotate(authority.switch, store)
    await store.refresh()
    assert store.server_pair() != before
    issuer = authority.issuer_of(store.server_pair().certificate, store.state.current.certificate)
    assert issuer in authority.fingerprints(store.state.bundle)


async def test_a_bundle_that_somebody_deleted_is_published_again(bench: Bench) -> None:
    store = bench.store()
    await store.load()
    await bench.client.delete(ObjectRef(CONFIG_MAP, ObjectKey(NAMESPACE, NAME)))
    await store.refresh()
    assert await bench.published() == store.state.bundle


async def test_the_servers_certificate_is_renewed_at_half_its_life_even_in_a_cut(bench: Bench) -> None:
    store = bench.store()
    await store.load()
    first = store.server_pair()
    bench.now = START + SERVER_LIFETIME / 2 - dt.timedelta(seconds=1)
    await store.refresh()
    assert store.server_pair() == first
    bench.now = START + SERVER_LIFETIME / 2
    bench.server.fault("GET", "/secrets/", times=99, status=403, body=status_of(403, "Forbidden"))
    await store.refresh()
    assert store.server_pair() != first


BROKEN = {
    "without its key": lambda state: {name: part for name, part in state.to_secret().items() if name != "ca.key"},
    "not base64": lambda state: {**state.to_secret(), "ca.crt": "%%%"},
    "with the key of another CA": lambda _: {
        **authority.new_state(START).to_secret(),
        "ca.key": authority.new_state(START).to_secret()["ca.key"],
    },
    "with an old CA that cannot be read": lambda state: {
        **state.to_secret(),
        "old.crt": base64.b64encode(b"nonsense").decode(),
    },
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN.keys())
async def test_a_broken_secret_changes_nothing_that_is_in_use_and_starts_no_manager(
    bench: Bench, broken: Callable[[authority.AuthorityState], dict[str, str]]
) -> None:
    store = bench.store()
    await store.load()
    before = store.state, store.server_credentials()
    bench.server.put(SECRET, NAME, NAMESPACE, data=broken(store.state))
    await store.refresh()
    assert (store.state, store.server_credentials()) == before
    with pytest.raises(authority.AuthorityError):
        await bench.store().load()


async def test_a_manager_that_may_not_read_the_secret_does_not_start(bench: Bench) -> None:
    bench.server.fault("GET", "/secrets/", times=99, status=403, body=status_of(403, "Forbidden"))
    with pytest.raises(KubeError):
        await bench.store().load()


async def test_nothing_is_served_before_the_authority_is_loaded(bench: Bench) -> None:
    with pytest.raises(authority.AuthorityError, match="not loaded yet"):
        bench.store().server_credentials()


async def test_what_the_manager_tells_is_published_beside_the_bundle_and_mended(bench: Bench) -> None:
    def store(manager: str) -> AuthorityStore:
        return AuthorityStore(bench.client, NAMESPACE, ("m",), lambda: bench.now, told={"manager": manager})

    for manager in ("m.example:443", "other.example:443"):
        one = store(manager)
        await one.load()
        served = await bench.client.get(ObjectRef(CONFIG_MAP, ObjectKey(NAMESPACE, NAME)))
        data = msgspec.json.decode(served.raw, type=ConfigMap).data
        assert data == {"manager": manager, "ca.crt": one.state.bundle.decode()}


async def test_hd_266_a_secret_that_somebody_deletes_is_put_back_by_who_has_it(bench: Bench) -> None:
    """HD-266: the next manager to start made another authority without a line, and the whole fleet was shut out."""
    store = bench.store()
    await store.load()
    before = bench.server.find(SECRET, NAME, NAMESPACE)
    bench.server.remove(SECRET, NAME, NAMESPACE)
    with structlog.testing.capture_logs() as logs:
        await store.refresh()
    assert [(each["log_level"], each["event"]) for each in logs] == [
        ("warning", "the Secret of the certificate authority was deleted, and is put back")
    ]
    after = bench.server.find(SECRET, NAME, NAMESPACE)
    assert before is not None
    assert after is not None
    assert after["data"] == before["data"], "the seal's key as well"


async def test_hd_266_one_that_cannot_be_put_back_is_said_and_stays_in_use(bench: Bench) -> None:
    store = bench.store()
    await store.load()
    before = store.state
    bench.server.remove(SECRET, NAME, NAMESPACE)
    bench.server.fault("POST", "/secrets", status=403, body=status_of(403, "Forbidden", "no"))
    with structlog.testing.capture_logs() as logs:
        await store.refresh()
    assert [each["event"] for each in logs] == [
        "the Secret of the certificate authority is gone, and a restart loses it"
    ]
    assert store.state == before


@pytest.mark.parametrize(("digest", "said"), [("", 0), ("sha256:of-its-key", 1)], ids=["none let in", "one let in"])
async def test_hd_266_a_new_authority_names_the_clusters_that_it_shuts_out(
    bench: Bench, digest: str, said: int
) -> None:
    bench.server.put(WORKER_CLUSTER, "a", spec={}, status={"keyDigest": digest})
    with structlog.testing.capture_logs() as logs:
        await bench.store().load()
    assert len(logs) == said
    for each in logs:
        assert each["clusters"] == ["a"]
        assert each["way_out"].startswith(f"put Secret {NAMESPACE}/{NAME} back from a backup")
