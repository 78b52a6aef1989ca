"""Reads of either end's API side, some of which hang."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeVar

from gatelift_kube.values.resources import POD
from support.servers.fake_apiserver import FakeApiServer
from support.until import until

QUICK = 5

AnswerT_co = TypeVar("AnswerT_co", covariant=True)


class Reads(Protocol[AnswerT_co]):
    """An end that reads what is called `p` in a namespace, or all that is there."""

    server: FakeApiServer

    def ask(self, read_id: int, namespace: str) -> None:
        """Ask for it."""
        ...

    def answered(self) -> Mapping[int, AnswerT_co]:
        """Return what was answered so far, by read."""
        ...


async def answered_beside_slow_ones(reads: Reads[AnswerT_co], at_once: int) -> list[AnswerT_co]:
    """Let all reads but one of those `at_once` hang; return the answers to `QUICK` others."""
    reads.server.fault("GET", "namespaces/slow/", times=99, hang=True)
    reads.server.put(POD, "p", "quick")
    slow = at_once - 1
    for number in range(slow):
        reads.ask(number, "slow")
    for number in range(slow, slow + QUICK):
        reads.ask(number, "quick")
    await until(lambda: len(reads.answered()) == QUICK, "all but the slow ones are answered")
    return list(reads.answered().values())
