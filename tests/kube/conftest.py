"""A fake API server and a client of it."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator

import pytest

from gatelift_kube.api.client import Client
from gatelift_kube.api.transport import HttpTransport
from gatelift_kube.deciding.retry import RetryPolicy
from support.servers.fake_apiserver import FakeApiServer

QUICK = RetryPolicy(tries=4, first_seconds=0.001, max_seconds=0.01)


@pytest.fixture
async def client(server: FakeApiServer) -> AsyncIterator[Client]:
    async with Client(HttpTransport(server.config), policy=QUICK, rng=random.Random(7)) as made:  # noqa: S311 - a seed makes a test repeatable
        yield made
