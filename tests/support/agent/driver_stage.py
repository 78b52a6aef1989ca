"""A stage with a driver at a worker, which makes its workers there by itself: they wait at the gate of the webhook."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import msgspec

from gatelift_kube.values.resources import POD
from gatelift_wire.values import messages as m
from support.agent.group_stage import MARKS, SPEC, GroupStage, blob, member
from support.agent.values import NAMESPACE_NAME

GROUP = "crew"
GATE = {"name": "kueue.x-k8s.io/admission"}
WORKER: dict[str, Any] = {
    "containers": [{"name": "main", "image": "app", "resources": {"requests": {"cpu": "1"}}}],
}
DECLARED = msgspec.json.encode(WORKER)


def asking(cpu: str) -> dict[str, Any]:
    """Return the spec of a worker that asks for so much."""
    found = copy.deepcopy(WORKER)
    found["containers"][0]["resources"]["requests"]["cpu"] = cpu
    return found


class DriverStage(GroupStage):
    """See `GroupStage`. The driver is `a`; it declares so many workers."""

    def __init__(self, workers: int = 2, **settings: Any) -> None:
        super().__init__(**{"adopts": True, **settings})
        self.workers = workers

    def order(self, *members: m.ObjectTemplate | str, count: int | None = None) -> m.Commit:
        """Return the commit of a driver and its declared workers; other members are workers that home has."""
        objects = tuple(
            member(each, pod_set="driver" if each == "a" else "workers") if isinstance(each, str) else each
            for each in members
        )
        many = self.workers if count is None else count
        sets = (
            m.PodSetRequest(name="driver", count=1),
            m.PodSetRequest(name="workers", count=many, requests=(("cpu", 1000 * many),), shape=blob(DECLARED).hash),
        )
        return replace(super().order(*objects), pod_sets=sets)

    def group(self, *members: m.ObjectTemplate | str, count: int | None = None) -> None:
        """Place the driver, let it go, and let it run."""
        self.send(blob(DECLARED))
        super().group(*members, count=count)

    def again(self, *members: m.ObjectTemplate | str, count: int | None = None) -> None:
        """Say the commit again, as in each new session."""
        self.number = 0
        self.send(blob(DECLARED))
        self.send(blob(SPEC), blob(MARKS), self.order(*members, count=count))

    def makes(self, name: str, role: str = "workers", spec: dict[str, Any] | None = None, **said: Any) -> None:
        """Make a pod as the driver does, and as the webhook then marks it; `gated` False: the webhook was away."""
        labels = {
            "kueue.x-k8s.io/pod-group-name": said.get("group", GROUP),
            "kueue.x-k8s.io/pod-group-role": role,
            "gatelift.dev/made-here": said.get("marked", said.get("group", GROUP)),
        }
        labels |= said.get("labels", {})
        gates = {"schedulingGates": [GATE]} if said.get("gated", True) else {}
        document = {
            "metadata": {"name": name, "namespace": said.get("namespace", NAMESPACE_NAME), "labels": labels},
            "spec": {
                **copy.deepcopy(spec or WORKER),
                **gates,
            },
        }
        self.create(POD, document)
        self.settle()

    def counts(self) -> m.PodSetCounts:
        """Return what was told last of the workers that were made here."""
        told: list[m.CountsReport] = [each for each in self.peer.of(m.CountsReport) if each.made_here]
        return told[-1].made_here[0]

    def waiting(self) -> list[str]:
        """Return who is at the gate."""
        return sorted(name for name in self.there() if self.pod(name)["spec"].get("schedulingGates"))


def driven(workers: int = 2, **settings: Any) -> DriverStage:
    """Return a stage whose driver runs."""
    stage = DriverStage(workers, **settings)
    stage.start()
    stage.group("a")
    stage.run("a")
    return stage
