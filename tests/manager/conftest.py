"""What several tests of the manager's edges stand on."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from support.wire.edge import Edge


@pytest.fixture
async def edge() -> AsyncIterator[Edge]:
    made = Edge("w1", "w2")
    await made.start()
    yield made
    await made.stop()
