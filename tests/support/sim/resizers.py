"""Users of elastic Jobs in drawn histories: they raise and lower, think again, delete and begin anew (SL-83).

By a chance of its own, so that all else of a history is drawn as it was without. A Job comes as the webhook leaves it:
with its gate in the template. Neighbours: `trouble` asks now and then, `account` compares pod set by pod set (SL-08).
"""

from __future__ import annotations

import random
from functools import partial
from typing import TYPE_CHECKING

from gatelift_kinds.shared import markers
from gatelift_kube.values.resources import JOB, WORKLOAD
from gatelift_wire.values.keys import ANNOTATION_CHAIN
from support.manager.builders import a_job
from support.sim.cluster import TEAM, Doc

if TYPE_CHECKING:
    from support.sim.world import SimWorld

ELASTIC_MAX = 3
"""Elastic Jobs of one history at a time; a name is used again when all of it is gone."""
PODS_MAX = 5
RUN_SECONDS = "sandbox.gatelift.dev/run-seconds"
STOP_SECONDS = "sandbox.gatelift.dev/stop-seconds"
EXIT_CODE = "sandbox.gatelift.dev/exit-code"
CPU = ("100m", "200m", "300m")
QUICKLY = 10
"""Changes of one user within a second."""
SOON_SECONDS = 1.0


class Resizers:
    """Draws them for one world."""

    def __init__(self, world: SimWorld) -> None:
        self._world = world
        self._rng = random.Random(f"sizes {world.time.seed}")  # noqa: S311 (no secret)
        self.resized = 0

    # --- what is there ----------------------------------------------------------------------------------------------

    def jobs(self) -> list[Doc]:
        """Return the elastic Jobs at home that nobody has deleted."""
        found = [each for each in self._world.home.views(JOB) if each["metadata"]["name"].startswith("elastic-")]
        return [each for each in found if not each["metadata"].get("deletionTimestamp")]

    def elastic_jobs(self) -> list[Doc]:
        """Return those of them that are elastic: one that is made again past the webhook has no gate."""
        return [each for each in self.jobs() if each["spec"]["template"]["spec"].get("schedulingGates")]

    def _some(self) -> Doc | None:
        found = self.jobs()
        return self._rng.choice(found) if found else None

    def _said(self, text: str) -> None:
        self._world.time.say("user", text)

    # --- what users do --------------------------------------------------------------------------------------------

    def make(self) -> None:
        """Let a user make an elastic Job."""
        names = [f"elastic-{each}" for each in range(ELASTIC_MAX)]
        free = [each for each in names if self._world.home.look(JOB, each) is None]
        if not free:
            return
        rng, name = self._rng, self._rng.choice(free)
        queue = rng.choice(("travels", "travels", "stays"))
        indexed = rng.random() < 0.3
        pods = rng.randint(1, PODS_MAX)
        document = a_job(name, parallelism=pods, completions=pods if indexed else 20, cpu=rng.choice(CPU))
        metadata, spec = document["metadata"], document["spec"]
        metadata["namespace"] = TEAM
        metadata["labels"]["kueue.x-k8s.io/queue-name"] = queue
        metadata.setdefault("annotations", {})[markers.ELASTIC_JOB] = "true"
        told = {RUN_SECONDS: f"{rng.choice((3, 20, 60)):g}"} if rng.random() < 0.7 else {}
        if rng.random() < 0.4:
            told[STOP_SECONDS] = f"{rng.choice((1, 5, 20)):g}"
        if rng.random() < 0.2:
            told[EXIT_CODE] = "1"
        spec["template"]["metadata"]["annotations"] = told
        spec["template"]["spec"]["schedulingGates"] = [{"name": markers.ELASTIC_JOB}]
        spec["backoffLimit"] = 100
        if indexed:
            spec["completionMode"] = "Indexed"
        if queue == "stays":
            del spec["managedBy"]
        del document["status"]
        self._world.home.create(JOB, document)
        self._said(f"creates {name} in {queue} with {pods} pods")

    def resize(self) -> None:
        """Let a user want another size."""
        chosen = self._some()
        if chosen is not None:
            self._resize(chosen["metadata"]["name"])

    def _resize(self, name: str) -> None:
        found = self._world.home.look(JOB, name)
        if found is None:
            return
        count = self._rng.randint(0, PODS_MAX)
        indexed = found["spec"].get("completionMode") == "Indexed"
        spec: Doc = {"parallelism": count, **({"completions": max(1, count)} if indexed and count else {})}
        self.resized += 1
        self._said(f"wants {count} pods of {name}")
        self._world.home.change(JOB, name, {"spec": spec})

    def resize_quickly(self) -> None:
        """Let a user change his mind many times within a second."""
        chosen = self._some()
        for _ in range(QUICKLY if chosen is not None else 0):
            name = chosen["metadata"]["name"] if chosen is not None else ""
            self._world.time.after(self._rng.uniform(0.0, SOON_SECONDS), partial(self._resize, name))

    def delete(self) -> None:
        """Let a user delete his Job; sometimes he makes it anew."""
        chosen = self._some()
        if chosen is not None:
            self._said(f"deletes {chosen['metadata']['name']}")
            self._world.home.delete(JOB, chosen["metadata"]["name"])
        if self._rng.random() < 0.5:
            self._world.time.after(self._rng.uniform(0.1, 10.0), self._make_again)

    def _make_again(self) -> None:
        if self._world.troubled:
            self.make()

    def delete_a_slice(self) -> None:
        """Let a user delete a slice, whatever it is by now."""
        slices = [
            each
            for each in self._world.home.views(WORKLOAD)
            if ANNOTATION_CHAIN in each["metadata"].get("annotations", {})
        ]
        if slices:
            name = self._rng.choice(slices)["metadata"]["name"]
            self._said(f"deletes the slice {name}")
            self._world.home.delete(WORKLOAD, name)
