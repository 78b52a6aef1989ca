"""What holds for every test: random examples are the same in each run, unless somebody asks for fresh ones.

How long they take says how busy the machine is, and fails no test.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator

import pytest
from hypothesis import HealthCheck, settings

from gatelift_kube.api.client import Client
from gatelift_kube.deciding.contained import Contained
from support.servers.fake_apiserver import FakeApiServer

BUSY = (HealthCheck.too_slow,)

settings.register_profile("same", derandomize=True, deadline=None, print_blob=True, suppress_health_check=BUSY)
settings.register_profile("fresh", deadline=None, print_blob=True, suppress_health_check=BUSY)
settings.load_profile("fresh" if os.environ.get("GATELIFT_FRESH_EXAMPLES") else "same")

Contained.surfaces = True
"""No exception is contained unseen in a test; those of containment itself let it be."""


@pytest.fixture
async def server() -> AsyncIterator[FakeApiServer]:
    """Yield a fake API server that listens."""
    made = FakeApiServer()
    await made.start()
    yield made
    await made.stop()


@pytest.fixture
async def client(server: FakeApiServer) -> AsyncIterator[Client]:
    """Yield a client of it."""
    async with Client.connect(server.config) as made:
        yield made
