"""What users of drawn histories ask for besides: gates of their own, and fewer pods than they would like.

By a chance of its own, so that all else of a history is drawn as it was without.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from gatelift_kinds.shared.markers import JOB_MIN_PARALLELISM
from gatelift_kube.values.resources import POD
from support.sim.cluster import Doc

if TYPE_CHECKING:
    from support.sim.world import SimWorld

OWN_GATE = "example.com/own"
GATED_SHARE = 0.15
GATED_SECONDS_MAX = 90.0
"""After this at most its user takes his gate off: before, while and after it is placed."""
LOOK_AGAIN_SECONDS = 20.0
"""A restore brings a gate back, and its user takes it off again."""
PARTIAL_SHARE = 0.2
MORE_PODS = 3
"""Of a Job that may run with one."""


class Wishes:
    """Draws them for one world; none for a history that says itself what users do."""

    def __init__(self, world: SimWorld, *, drawn: bool) -> None:
        self._world = world
        self._rng = random.Random(f"wishes {world.time.seed}") if drawn else None  # noqa: S311 (no secret)

    def on_pod(self, document: Doc) -> None:
        """Give some pods a gate of their user's own, and have him take it off."""
        if self._rng is None or self._rng.random() >= GATED_SHARE:
            return
        document["spec"]["schedulingGates"].append({"name": OWN_GATE})
        self._world.counts["pods_of_own_gates"] += 1
        name: str = document["metadata"]["name"]
        self._world.time.after(self._rng.uniform(0.5, GATED_SECONDS_MAX), lambda: self._take_off(name))

    def _take_off(self, name: str) -> None:
        home = self._world.home
        has = (home.look(POD, name) or {"spec": {}})["spec"].get("schedulingGates", [])
        gates = [each for each in has if each["name"] != OWN_GATE]
        if len(gates) < len(has):
            self._world.time.say("user", f"takes his own gate off {name}")
            home.change(POD, name, {"spec": {"schedulingGates": gates}})
        self._world.time.after(LOOK_AGAIN_SECONDS, lambda: self._take_off(name))

    def on_job(self, document: Doc) -> None:
        """Let some Jobs ask for more pods than they need to begin with (KEP-420)."""
        if self._rng is None or self._rng.random() >= PARTIAL_SHARE:
            return
        document["spec"]["parallelism"] = document["spec"]["completions"] = MORE_PODS
        document["metadata"].setdefault("annotations", {})[JOB_MIN_PARALLELISM] = "1"
        self._world.counts["jobs_that_take_fewer"] += 1
