"""SL-60: many elastic Jobs are resized at once on the real cores, in one session with ordinary ones.

The simulation's own account judges each write (SL-08). A thousand of them on real servers are `bench.resize`.
"""

from __future__ import annotations

import pytest

from gatelift.core.state.placements import Placements
from gatelift_kinds.registry import WITH_SLICES
from gatelift_kube.values.resources import JOB, POD, WORKLOAD
from support.manager.slice_world import an_elastic_job
from support.sim.agent import SimAgent
from support.sim.cluster import TEAM, Doc
from support.sim.history import History
from support.sim.landed import counting
from support.sim.manager import SimManager
from support.sim.objects import holds
from support.sim.world import RUN_SECONDS

MANY = 12
CREDITS = 4
WHERE = "a"


class Crowd(History):
    """One worker that takes few at a time, and many elastic Jobs of one pod on it."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        patch.setattr(SimManager, "kinds", WITH_SLICES)
        patch.setattr(SimAgent, "registry", WITH_SLICES)
        super().__init__(workers=(WHERE,), agents={"credits_max": CREDITS})
        for number in range(MANY):
            self._make(f"j{number:02}")
        self.until("all run", lambda: self.are_of(1))

    def _make(self, name: str) -> None:
        job = an_elastic_job(name, parallelism=1)
        job["metadata"]["namespace"] = TEAM
        job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "travels"
        job["spec"]["template"].setdefault("metadata", {})["annotations"] = {RUN_SECONDS: "36000"}
        job["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "50m"}}
        job.pop("status", None)
        self.home.create(JOB, job)

    def resize(self, pods: int) -> None:
        """Let all users change the sizes of their Jobs at once."""
        for number in range(MANY):
            assert self.home.change(JOB, f"j{number:02}", {"spec": {"parallelism": pods}}) is not None

    def open_slices(self) -> list[Doc]:
        """Return the slices that are not past."""
        mine = (one for one in self.home.all(WORKLOAD) if "elastic" in str(one["metadata"]["annotations"]))
        return [one for one in mine if not holds(one, "Finished")]

    def pods(self) -> list[Doc]:
        """Return the pods of elastic Jobs that run."""
        found = (one for one in self.workers[WHERE].all(POD) if one["metadata"]["name"].startswith("j"))
        return [one for one in found if one.get("status", {}).get("phase") == "Running"]

    def are_of(self, pods: int) -> bool:
        """Say whether all are of this size: so many pods run, and each is charged for them by its one open slice."""
        found = [
            (one["spec"]["podSets"][0]["count"], one["status"]["admission"]["podSetAssignments"][0]["count"])
            for one in self.open_slices()
            if one.get("status", {}).get("admission")
        ]
        return len(self.pods()) == pods * MANY and len(self.open_slices()) == MANY and found == [(pods, pods)] * MANY


def under_way(patch: pytest.MonkeyPatch) -> list[int]:
    """Return what will hold how many placements and growths its cluster has not carried out, at each that is sent."""
    found: list[int] = []
    offered = Placements.offered

    def counted(placements: Placements, cluster: str, uid: str) -> None:
        offered(placements, cluster, uid)
        found.append(len(placements.unapplied(cluster)))

    patch.setattr(Placements, "offered", counted)
    return found


def test_sl_60_many_are_resized_at_once_beside_ordinary_ones_and_each_costs_what_one_costs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """SL-60, HD-684: no more is ever under way than the cluster grants, of growths and placements together."""
    crowd = Crowd(monkeypatch)
    before = {one["metadata"]["uid"] for one in crowd.pods()}
    landed, sent = counting(monkeypatch), under_way(monkeypatch)
    crowd.resize(2)
    crowd.job("plain", cpu="50m", seconds=10.0)
    crowd.until("all are of two pods", lambda: crowd.are_of(2))
    crowd.until("the ordinary Job has run", lambda: crowd.shows("plain", "Finished", "Job"))
    assert max(sent) == CREDITS
    assert before <= {one["metadata"]["uid"] for one in crowd.pods()}, "who ran runs on"
    assert landed["home", "create", "workloads"] == MANY + 1
    assert landed[WHERE, "patch", "pods"] == MANY
    waits = landed["home", "update", "workloads/status"] - 2 * (MANY + 1)
    assert 0 <= waits <= MANY + 1, "what waits for its cluster says so, once"
    landed.clear()
    crowd.resize(1)
    crowd.until("all are of one pod again", lambda: crowd.are_of(1))
    assert landed["home", "patch", "workloads"] == landed["home", "update", "workloads/status"] == MANY
    assert landed[WHERE, "patch", "jobs"] == MANY
