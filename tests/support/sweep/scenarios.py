"""What is lived through: the life of one object, `bad`, each from its beginning to its end. Scripted, and quiet."""

from __future__ import annotations

import json
from collections.abc import Callable

from gatelift_kinds.shared import markers
from gatelift_kube.values.resources import CLUSTER_QUEUE, JOB, POD, WORKLOAD, WORKLOAD_PRIORITY_CLASS, Resource
from support.manager.builders import a_pod
from support.sim.cluster import TEAM
from support.sim.crews import DRIVER, WORKER
from support.sim.history import History
from support.sim.history import _told as told
from support.sweep.raising import About

BAD = "bad"
LIFE_SECONDS = 40.0
ABC = ("a", "b", "c")
"""The pods of a group, behind its name."""

Step = Callable[[float], None]
"""Lets time pass, in small steps."""


class Play:
    """A history with `bad` in it."""

    def __init__(self, history: History, about: About) -> None:
        self.history = history
        self._about = about
        self.owed: Callable[[], None] | None = None
        """What the user has yet to do once he sees what he waits for."""

    def passes(self, seconds: float) -> None:
        """Let time pass, and learn which UIDs are of `bad`."""
        for _ in range(int(seconds)):
            self.history.passes(1.0)
            self._about.uids.update(uids_of(self.history))

    def deleted(self, resource: Resource) -> None:
        """Let its user delete it."""
        self.history.delete("home", resource, BAD)
        self.passes(LIFE_SECONDS)

    # --- a group ------------------------------------------------------------------------------------------------------

    def member(
        self,
        name: str,
        queue: str = "travels",
        *,
        role: str = "",
        notes: dict[str, str] | None = None,
        seconds: float = 0.0,
        stops_in: float = 0.0,
        fails: bool = False,
    ) -> None:
        """Make a pod of the group. `notes`: what it says of its group, where that is not its size."""
        document = a_pod(f"{BAD}-{name}").asking(cpu="500m").document()
        meta = document["metadata"]
        meta["namespace"] = TEAM
        meta["labels"] |= {markers.QUEUE_NAME: queue, markers.POD_GROUP_NAME: BAD}
        meta["labels"] |= {markers.POD_GROUP_ROLE: role} if role else {}
        said = {markers.POD_GROUP_TOTAL_COUNT: str(len(ABC))} if notes is None else notes
        meta["annotations"] = {**said, **told(seconds, stops_in, int(fails))}
        del document["status"]
        self.history.home.create(POD, document)

    def group(self, queue: str = "travels", *, seconds: float = 0.0, stops_in: float = 0.0) -> None:
        """Make a group of three, and let it run."""
        for name in ABC:
            self.member(name, queue, seconds=seconds, stops_in=stops_in)
        self.passes(12)

    def replaces(self, failed: str, name: str, queue: str) -> None:
        """Let the user make another pod, which succeeds, once one is seen to have failed, now or later."""
        found = self.history.home.look(POD, f"{BAD}-{failed}", TEAM) or {}
        if found.get("status", {}).get("phase") == "Failed":
            self.owed = None
            self.member(name, queue, seconds=5.0)
        else:
            self.owed = lambda: self.replaces(failed, name, queue)

    def member_deleted(self, name: str) -> None:
        """Let the user delete a pod of the group, which may be gone by then."""
        self.history.home.delete(POD, f"{BAD}-{name}")

    def group_deleted(self) -> None:
        """Let the user delete all of the group."""
        for each in self.history.home.all(POD):
            if is_bad(each["metadata"]["name"]):
                self.history.home.delete(POD, each["metadata"]["name"])
        self.passes(LIFE_SECONDS)

    def pushed_out(self) -> None:
        """Let somebody of more importance take nearly all of `travels` and `stays` for a while."""
        self.history.home.create(WORKLOAD_PRIORITY_CLASS, {"metadata": {"name": "boss"}, "value": 100})
        for queue in ("travels", "stays"):
            preempts = {"spec": {"preemption": {"withinClusterQueue": "LowerPriority"}}}
            self.history.edit("home", CLUSTER_QUEUE, queue, preempts)
            document = a_pod(f"boss-{queue}").asking(cpu="1800m").document()
            document["metadata"] |= {"namespace": TEAM, "annotations": told(10.0, 0.0)}
            document["metadata"]["labels"] |= {markers.QUEUE_NAME: queue, markers.PRIORITY_CLASS: "boss"}
            del document["status"]
            self.history.home.create(POD, document)
        self.passes(LIFE_SECONDS)
        for queue in ("travels", "stays"):  # who preempts what its worker does not stop waits, and all behind him
            self.history.home.delete(POD, f"boss-{queue}")


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


def group_finish(play: Play) -> str:
    """Let a group come to its own end at a worker."""
    play.group(seconds=10.0)
    play.passes(LIFE_SECONDS)
    return "finished"


def group_finish_home(play: Play) -> str:
    """Let a group come to its own end at home."""
    play.group("stays", seconds=10.0)
    play.passes(LIFE_SECONDS)
    return "finished"


def group_delete(play: Play) -> str:
    """Delete a group that runs at a worker."""
    play.group()
    play.group_deleted()
    return "gone"


def group_delete_home(play: Play) -> str:
    """Delete a group that runs at home."""
    play.group("stays")
    play.group_deleted()
    return "gone"


def group_workload_deleted(play: Play) -> str:
    """Delete the Workload of a group that runs at home, and then what is left."""
    play.group("stays")
    play.history.home.delete(WORKLOAD, BAD)
    play.passes(LIFE_SECONDS)
    play.group_deleted()
    return "gone"


def group_replaced(play: Play) -> str:
    """Replace a pod of a group at a worker before it has stopped, with one too many; delete all."""
    play.group(stops_in=5.0)
    play.member_deleted("b")
    play.member("d")
    play.member("e")
    play.passes(20)
    play.group_deleted()
    return "gone"


def group_failed(play: Play) -> str:
    """Let a pod of a group fail at a worker, and another one take its place and succeed as the others do."""
    return _failed(play, "travels")


def group_failed_home(play: Play) -> str:
    """Let a pod of a group fail at home, and another one take its place and succeed as the others do."""
    return _failed(play, "stays")


def _failed(play: Play, queue: str) -> str:
    for name in ABC:
        play.member(name, queue, seconds=4.0 if name == "b" else 20.0, fails=name == "b")
    play.passes(20)
    play.replaces("b", "d", queue)
    play.passes(LIFE_SECONDS)
    return "finished"


def group_evicted(play: Play) -> str:
    """Preempt a group that runs at a worker: it comes back once there is room."""
    play.group(stops_in=3.0)
    play.pushed_out()
    play.group_deleted()
    return "gone"


def group_evicted_home(play: Play) -> str:
    """Preempt a group that runs at home: its pods are made anew. What was stopped keeps its place with its Workload."""
    play.group("stays", stops_in=3.0)
    play.pushed_out()
    for name in ("d", "e", "f"):
        play.member(name, "stays")
    play.passes(20)
    play.history.home.delete(WORKLOAD, BAD)
    play.group_deleted()
    return "gone"


def group_leader_killed(play: Play) -> str:
    """Kill the leader while one of a group at a worker is replaced."""
    play.group(stops_in=5.0)
    play.member_deleted("b")
    play.member("d")
    play.history.kill_leader()
    play.passes(45)
    play.group_deleted()
    return "gone"


def group_leader_killed_home(play: Play) -> str:
    """Kill the leader while a group at home is let go, and again while one of it is replaced."""
    for name in ABC:
        play.member(name, "stays", stops_in=5.0)
    play.history.passes(1.2)
    play.history.kill_leader()
    play.passes(45)
    play.member_deleted("b")
    play.member("d", "stays")
    play.history.kill_leader()
    play.passes(45)
    play.group_deleted()
    return "gone"


def group_agents_killed(play: Play) -> str:
    """Kill all agents while one of a group at a worker is replaced and another one has failed."""
    for name in ABC:
        play.member(name, seconds=8.0 if name == "a" else 0.0, fails=name == "a", stops_in=5.0)
    play.passes(15)
    play.member_deleted("b")
    play.member("d")
    for cluster in list(play.history.workers):
        play.history.kill_agent(cluster)
    play.passes(45)
    play.group_deleted()
    return "gone"


def group_driven(play: Play) -> str:
    """Let a driver declare its group, whose workers come later."""
    sets = [
        {"name": DRIVER, "count": 1},
        {
            "name": WORKER,
            "count": 2,
            "template": {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "500m"}}}]}},
        },
    ]
    play.member("a", notes={markers.POD_GROUP_SETS: json.dumps(sets)}, seconds=30.0)
    play.passes(10)
    for name in ("b", "c"):
        play.member(name, role=WORKER, notes={}, seconds=5.0)
    play.passes(LIFE_SECONDS)
    return "finished"


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
        group_finish,
        group_finish_home,
        group_delete,
        group_delete_home,
        group_workload_deleted,
        group_replaced,
        group_failed,
        group_failed_home,
        group_evicted,
        group_evicted_home,
        group_leader_killed,
        group_leader_killed_home,
        group_agents_killed,
        group_driven,
    )
}
