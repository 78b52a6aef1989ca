"""An executor of writes, and what it answered."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from gatelift_kube.api.client import Client
from gatelift_kube.api.executor import Executor
from gatelift_kube.deciding.retry import RetryPolicy
from gatelift_kube.deciding.writes import ApiEvent, Create, WriteDone, WriteFailed
from gatelift_kube.process.tasks import spawn
from gatelift_kube.values.resources import POD
from support.servers.fake_apiserver import ref_of
from support.until import until

QUICK = RetryPolicy(tries=4, first_seconds=0.001, max_seconds=0.01)


class Carried:
    """An executor and its outcomes."""

    def __init__(self, client: Client, **settings: Any) -> None:
        self.outcomes: list[ApiEvent] = []
        self.executor = Executor(client, self.outcomes.append, policy=QUICK, **settings)

    def ids(self) -> list[int]:
        return [outcome.write_id for outcome in self.outcomes if isinstance(outcome, WriteDone | WriteFailed)]

    async def only(self) -> WriteDone | WriteFailed:
        await until(lambda: self.outcomes)
        (outcome,) = self.outcomes
        assert isinstance(outcome, WriteDone | WriteFailed)
        return outcome


@asynccontextmanager
async def running(carried: Carried) -> AsyncIterator[Carried]:
    task = spawn("executor", carried.executor.run())
    try:
        yield carried
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def create(write_id: int, name: str = "p", namespace: str = "ns") -> Create:
    body = json.dumps({"metadata": {"name": name, "namespace": namespace}}).encode()
    return Create(write_id=write_id, ref=ref_of(POD, name, namespace), body=body)
