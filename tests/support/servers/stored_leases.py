"""A Lease as an API server keeps it, and candidates for it: `gatelift_kube.deciding.election` without any I/O."""

from __future__ import annotations

from typing import Any

import msgspec

from gatelift_kube.deciding.election import ANNOTATION_COUNTER, Election, ElectionStep, ElectionTimes
from gatelift_kube.objects.core import Lease
from gatelift_kube.values.resources import ObjectKey

TIMES = ElectionTimes()
KEY = ObjectKey("gatelift-system", "manager")


class Stored:
    """The Lease as an API server keeps it."""

    def __init__(self) -> None:
        self.version = 0
        self.metadata: dict[str, Any] = {"name": KEY.name, "namespace": KEY.namespace, "annotations": {}}
        self.spec: dict[str, Any] = {}

    def take(self, body: dict[str, Any]) -> Lease:
        self.version += 1
        self.metadata["annotations"] |= body["metadata"].get("annotations", {})
        self.spec |= body["spec"]
        return self.lease()

    def lease(self) -> Lease:
        metadata = {**self.metadata, "resourceVersion": str(self.version)}
        return msgspec.convert({"metadata": metadata, "spec": self.spec}, Lease)

    def count(self, number: int) -> Lease:
        """Let its holder renew it, up to a number."""
        return self.take({"metadata": {"annotations": {ANNOTATION_COUNTER: str(number)}}, "spec": {}})


def candidate(identity: str = "me") -> Election:
    return Election(KEY, identity, TIMES, counts=True)


def take(election: Election, stored: Stored, now: float) -> None:
    step = election.step(now)
    assert step in {ElectionStep.CREATE, ElectionStep.TAKE}
    election.acquired(stored.take(election.body(step, 0.0, now)), now, now)


def renew(election: Election, stored: Stored, now: float) -> None:
    assert election.step(now) is ElectionStep.RENEW
    election.renewed(stored.take(election.body(ElectionStep.RENEW, 0.0, now)), now, now)


def held_by_another(counter: int = 40, *, settled: bool = True) -> Stored:
    stored = Stored()
    other = candidate("other")
    other.observe(None, -15.0)
    take(other, stored, 0.0)
    other.settle(1, settled=settled)
    renew(other, stored, 2.0)
    stored.count(counter)
    return stored


def leading(counter: int) -> tuple[Stored, Election]:
    stored, election = Stored(), candidate()
    election.observe(None, -15.0)
    take(election, stored, 0.0)
    while election.standing.counter < counter:
        renew(election, stored, 1.0)
    return stored, election
