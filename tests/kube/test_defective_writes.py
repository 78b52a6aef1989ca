"""A write that raises, or names what no object is called, is that write's business and nobody else's."""

from __future__ import annotations

from typing import Any

import pytest
import structlog

from gatelift_kube.api.client import Client
from gatelift_kube.deciding.budget import Traffic, budget
from gatelift_kube.deciding.writes import Delete, WriteDone, WriteError, WriteFailed
from gatelift_kube.decoding.decoding import Served
from gatelift_kube.values.resources import POD, Resource
from support.servers.carried import Carried, create, running
from support.servers.fake_apiserver import FakeApiServer, ref_of
from support.until import until


async def test_hd_148_a_write_that_raises_is_of_unknown_outcome_and_holds_up_no_other(
    server: FakeApiServer, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A defect of ours in one write is that write's business."""
    real = client.create

    async def defective(resource: Resource, namespace: str, body: bytes, **asked: Any) -> Served:
        if b'"bad"' in body:
            raise ZeroDivisionError("what nobody thought of")
        return await real(resource, namespace, body, **asked)

    monkeypatch.setattr(client, "create", defective)
    last = 2 * budget().shares[Traffic.TRANSITION].in_flight  # more than there are who carry out
    with structlog.testing.capture_logs() as said:
        async with running(Carried(client)) as carried:
            for number in range(1, last):
                carried.executor.submit(create(number, "bad"))
            carried.executor.submit(create(last, "good"))
            await until(lambda: len(carried.outcomes) == last)
    outcomes = {each.write_id: each for each in carried.outcomes if isinstance(each, WriteDone | WriteFailed)}
    assert isinstance(outcomes.pop(last), WriteDone)
    assert {each.error for each in outcomes.values() if isinstance(each, WriteFailed)} == {WriteError.UNKNOWN}
    assert [each["event"] for each in said] == ["a write was given up, others go on"] * (last - 1)
    assert carried.executor.held == 0


async def test_hd_148_a_write_to_what_no_object_is_called_is_invalid_and_is_not_sent(
    server: FakeApiServer, client: Client
) -> None:
    async with running(Carried(client)) as carried:
        carried.executor.submit(Delete(write_id=1, ref=ref_of(POD, "..", "ns"), uid="u"))
        outcome = await carried.only()
    assert isinstance(outcome, WriteFailed)
    assert outcome.error is WriteError.INVALID
    assert server.seen == []
