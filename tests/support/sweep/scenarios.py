"""What is lived through: the life of one object, `bad`, each from its beginning to its end. Scripted, and quiet."""

from __future__ import annotations

from collections.abc import Callable

from gatelift_kube.values.resources import JOB, POD, WORKLOAD, Resource
from support.sim.history import History
from support.sweep.raising import About

BAD = "bad"
LIFE_SECONDS = 40.0

Step = Callable[[float], None]
"""Lets time pass, in small steps."""


class Play:
    """A history with `bad` in it."""

    def __init__(self, history: History, about: About) -> None:
        self.history = history
        self._about = about

    def passes(self, seconds: float) -> None:
        """Let time pass, and learn which UIDs are of `bad`."""
        for _ in range(int(seconds)):
            self.history.passes(1.0)
            self._about.uids.update(uids_of(self.history))

    def deleted(self, resource: Resource) -> None:
        """Let its user delete it."""
        self.history.delete("home", resource, BAD)
        self.passes(LIFE_SECONDS)


def uids_of(history: History) -> set[str]:
    """Return the UIDs of all objects of `bad`, in all clusters."""
    clusters = (history.home, *history.workers.values())
    found = (each["metadata"] for cluster in clusters for kind in (POD, JOB, WORKLOAD) for each in cluster.all(kind))
    return {meta["uid"] for meta in found if is_bad(meta["name"])}


def is_bad(name: str) -> bool:
    """Say whether an object of this name is of `bad`."""
    return name == BAD or name.startswith((f"{BAD}-", f"pod-{BAD}-", f"job-{BAD}-"))


def pod_delete(play: Play) -> str:
    """Delete a pod that runs."""
    play.history.pod(BAD)
    play.passes(15)
    play.deleted(POD)
    return "gone"


def pod_finish(play: Play) -> str:
    """Let a pod come to its own end."""
    play.history.pod(BAD, seconds=10.0)
    play.passes(LIFE_SECONDS)
    return "finished"


def leader_killed(play: Play) -> str:
    """Kill the leader while a pod runs."""
    play.history.pod(BAD)
    play.passes(12)
    play.history.kill_leader()
    play.passes(45)
    play.deleted(POD)
    return "gone"


def agents_killed(play: Play) -> str:
    """Kill all agents while a pod runs."""
    play.history.pod(BAD)
    play.passes(12)
    for cluster in list(play.history.workers):
        play.history.kill_agent(cluster)
    play.passes(45)
    play.deleted(POD)
    return "gone"


def job_delete(play: Play) -> str:
    """Delete a Job that runs."""
    play.history.job(BAD, pods=2)
    play.passes(15)
    play.deleted(JOB)
    return "gone"


def job_finish(play: Play) -> str:
    """Let a Job come to its own end."""
    play.history.job(BAD, pods=2, completions=2, seconds=10.0)
    play.passes(LIFE_SECONDS)
    return "finished"


def job_stays(play: Play) -> str:
    """Delete a Job that runs at home."""
    play.history.job(BAD, "stays", pods=2)
    play.passes(15)
    play.deleted(JOB)
    return "gone"


def deactivated(play: Play) -> str:
    """Deactivate a Workload that runs, and activate it again."""
    play.history.pod(BAD)
    play.passes(12)
    found = play.history.workload(BAD)
    if found is not None:
        for active in (False, True):
            play.history.edit("home", WORKLOAD, found["metadata"]["name"], {"spec": {"active": active}})
            play.passes(20)
    play.deleted(POD)
    return "gone"


def cut_off(play: Play) -> str:
    """Cut the cluster off in which a pod runs, and mend it."""
    play.history.pod(BAD)
    play.passes(12)
    cluster = min(play.history.runs(BAD), default="a")
    play.history.cut(cluster)
    play.passes(60)
    play.history.mend(cluster)
    play.passes(30)
    play.deleted(POD)
    return "gone"


SCENARIOS: dict[str, Callable[[Play], str]] = {
    each.__name__: each
    for each in (
        pod_delete,
        pod_finish,
        leader_killed,
        agents_killed,
        job_delete,
        job_finish,
        job_stays,
        deactivated,
        cut_off,
    )
}
