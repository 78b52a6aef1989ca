"""The Secret that keeps an agent's identity is written over what was read, and over nothing else (HD-147)."""

from __future__ import annotations

import datetime as dt
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from gatelift.adapters import authority
from gatelift_agent.adapters.enrolment import Enrolment, new_key, signing_request
from gatelift_agent.adapters.identity_store import Identity, IdentityChangedError, SecretStore
from gatelift_kube.api.client import Client
from gatelift_kube.api.config import from_kubeconfig
from gatelift_kube.values.resources import SECRET, ObjectKey, ObjectRef
from gatelift_sandbox.embedded.cluster import EmbeddedCluster
from gatelift_wire.streams import identity
from support.wire.edge import utc_now

NAME = "gatelift-agent-identity"
OLD, NEW = Identity(key=b"old"), Identity(key=b"new", certificate=b"certificate")


@pytest_asyncio.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    cluster = EmbeddedCluster("w1")
    await cluster.start()
    path = tmp_path / "kubeconfig"
    path.write_text(cluster.kubeconfig())
    async with Client.connect(await from_kubeconfig(str(path))) as made:
        yield made
    await cluster.stop()


def replica(client: Client) -> SecretStore:
    """Return the store of one more replica."""
    return SecretStore(client, "default", NAME)


async def test_hd_147_a_replica_that_was_overtaken_puts_no_older_key_back(client: Client) -> None:
    deposed, leader = replica(client), replica(client)
    await deposed.load()
    await deposed.save(OLD)
    assert await leader.load() == OLD
    await leader.save(NEW)
    with pytest.raises(IdentityChangedError, match="written by another replica"):
        await deposed.save(OLD)
    assert await replica(client).load() == NEW


async def test_hd_147_of_two_that_make_the_first_key_one_keeps_it(client: Client) -> None:
    first, second = replica(client), replica(client)
    assert await first.load() is None
    assert await second.load() is None
    await first.save(OLD)
    with pytest.raises(IdentityChangedError):
        await second.save(NEW)
    assert await replica(client).load() == OLD


async def test_hd_147_what_was_made_anew_under_the_name_is_not_written_over(client: Client) -> None:
    deposed, leader = replica(client), replica(client)
    await deposed.save(OLD)
    await client.delete(ObjectRef(SECRET, ObjectKey("default", NAME)))
    await leader.load()
    await leader.save(NEW)
    with pytest.raises(IdentityChangedError):
        await deposed.save(OLD)
    assert await replica(client).load() == NEW


async def test_hd_147_who_has_read_again_writes_again(client: Client) -> None:
    one, other = replica(client), replica(client)
    await one.save(OLD)
    await other.load()
    await other.save(NEW)
    assert await one.load() == NEW
    await one.save(OLD)
    await one.save(NEW)
    assert await other.load() == NEW


async def test_hd_147_a_secret_that_somebody_deleted_is_made_again(client: Client) -> None:
    store = replica(client)
    await store.save(OLD)
    await client.delete(ObjectRef(SECRET, ObjectKey("default", NAME)))
    await store.save(NEW)
    assert await replica(client).load() == NEW


async def test_hd_147_an_agent_goes_on_with_what_another_replica_has_kept(client: Client) -> None:
    ca, key, day = authority.new_state(utc_now()), new_key(), dt.timedelta(days=1)
    certificate = authority.sign_agent(ca, signing_request(key, "w1"), identity.uri_of("w1"), day, utc_now())
    mine = Identity(key=key, certificate=certificate, bundle=ca.bundle)
    await replica(client).save(mine)
    enrolment = Enrolment(replica(client), "w1", None, "", b"", utc_now=utc_now)
    assert await enrolment.ready() == mine
    other = replica(client)
    kept = replace(mine, token_digest=b"of a later token")
    await other.load()
    await other.save(kept)
    with pytest.raises(IdentityChangedError):
        await enrolment.install(certificate, ca.bundle)
    assert await enrolment.ready() == kept
