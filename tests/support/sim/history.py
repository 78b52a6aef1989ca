"""A scripted history on the real cores: a quiet simulated installation in which only the script does anything.

`History()` is connected and at rest. What it does returns at once; `passes` and `until` let time go on. The outside
check (`truth`) judges each write on the way: two runs of one object raise TruthError by themselves, so a script
that ends has had no overlap.

    history = History()
    history.pod("one")
    cluster = history.until_runs("one")
    history.cut(cluster)
    history.until_lost(cluster)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import msgspec

from gatelift_agent.core.values.settings import KeepFinished
from gatelift_kube.values.resources import JOB, POD, WORKLOAD, Resource
from support.manager.builders import a_job
from support.sim.agent import SimAgent
from support.sim.attribution import Work
from support.sim.cluster import TEAM, Doc, SimCluster
from support.sim.faults import Faults
from support.sim.manager import SimManager
from support.sim.objects import holds
from support.sim.persons import is_lost, say_fenced, status_of
from support.sim.world import EXIT_CODE, RUN_SECONDS, STOP_SECONDS, WORKERS, Plan, SimWorld

QUIET = Plan(faults=Faults(), break_every=0.0, user_every=0.0, workloads=0)
"""Nobody but the script does anything, and nothing breaks."""
ON_TERMINAL = "gatelift: {release: {strategies: {Pod: OnTerminal, Job: OnTerminal}}}"
"""The manager's file where what is evicted keeps its quota until it has stopped."""
CONNECT_SECONDS = 60.0
UNTIL_SECONDS = 300.0
"""Longer than any pause of a world without faults: LOST and a redial behind it."""


class History:
    """One world and what can be done to it; `world` has the rest."""

    def __init__(
        self,
        seed: int = 3,
        *,
        shown: bool = True,
        keep: KeepFinished | None = None,
        file: str = "",
        agents: Mapping[str, Any] | None = None,
        workers: tuple[str, ...] = WORKERS,
    ) -> None:
        """Begin. `shown` False: what people are shown need not be what the engine has, after edits by hand.

        `keep`: what workers keep of what has ended; None: nothing. `file`: the manager's configuration; `agents`: what
        workers' agents are told besides.
        """
        plan = replace(QUIET, keep=keep or KeepFinished(), manager_file=file, agents=agents or {}, workers=workers)
        self.world = SimWorld(seed, plan)
        self.world.judges_shown = shown
        self.home = self.world.home
        self.workers = self.world.workers
        self.until("all workers are connected", lambda: all(map(self.connected, self.workers)), CONNECT_SECONDS)

    # --- time -----------------------------------------------------------------------------------------------------

    def passes(self, seconds: float) -> None:
        """Let time pass."""
        self.world.pass_seconds(seconds)

    def until(self, what: str, met: Callable[[], bool], seconds: float = UNTIL_SECONDS) -> None:
        """Let time pass until it is so; AssertionError when it does not come."""
        if not (met() or self.world.pass_seconds(seconds, met)):
            trace = "\n".join(list(self.world.time.trace)[-40:])
            raise AssertionError(f"not within {seconds:g} s: {what}\n{trace}")

    # --- what users make --------------------------------------------------------------------------------------------

    def pod(
        self,
        name: str,
        queue: str = "travels",
        cpu: str = "500m",
        *,
        seconds: float = 0.0,
        stops_in: float = 0.0,
        exit_code: int = 0,
        grace_seconds: int | None = None,
    ) -> None:
        """Let a user create a pod that runs for `seconds` (0: until it is stopped)."""
        self.world.make_pod(name, queue, cpu, _told(seconds, stops_in, exit_code), grace_seconds)

    def job(
        self,
        name: str,
        queue: str = "travels",
        cpu: str = "500m",
        *,
        pods: int = 1,
        completions: int | None = None,
        seconds: float = 0.0,
        stops_in: float = 0.0,
        exit_code: int = 0,
    ) -> None:
        """Let a user create a suspended Job of that many pods at once; in `stays` it runs at home.

        With an exit code its first pod that ends is the end of it.
        """
        document = a_job(name, parallelism=pods, completions=completions, cpu=cpu)
        document["metadata"]["namespace"] = TEAM
        document["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = queue
        document["spec"]["template"]["metadata"]["annotations"] = _told(seconds, stops_in, exit_code)
        if exit_code:
            document["spec"]["backoffLimit"] = 0
        if queue == "stays":
            del document["spec"]["managedBy"]
        del document["status"]
        self.home.create(JOB, document)

    # --- what is ---------------------------------------------------------------------------------------------------

    def cluster(self, name: str) -> SimCluster:
        """Return a cluster; `home` and `local` are the management cluster."""
        return self.home if name in {"home", "local"} else self.workers[name]

    def workload(self, name: str, kind: str = "Pod") -> Doc | None:
        """Return the newest Workload of a user's object, None while there is none."""
        found = [
            each
            for each in self.home.all(WORKLOAD)
            if any((own["kind"], own["name"]) == (kind, name) for own in each["metadata"].get("ownerReferences", []))
        ]
        return max(found, key=_made_last, default=None)

    def shows(self, name: str, condition: str, kind: str = "Pod") -> bool:
        """Say whether a condition of the Workload of a user's object is True."""
        found = self.workload(name, kind)
        return found is not None and holds(found, condition)

    def runs(self, name: str, kind: str = "Pod") -> set[str]:
        """Return the clusters in which containers of a user's object run, or may run (`local`: at home)."""
        return {each.cluster for each in self.world.truth.lives(Work(kind, TEAM, name))}

    def containers(self, name: str, kind: str = "Pod") -> int:
        """Return how many pods of a user's object have containers that run at this moment."""
        return self.world.truth.containers(Work(kind, TEAM, name))

    def until_runs(self, name: str, kind: str = "Pod") -> str:
        """Wait until containers of it run; return the cluster."""
        self.until(f"{kind} {name} runs", lambda: self.containers(name, kind) > 0)
        (cluster,) = self.runs(name, kind)
        return cluster

    def status(self, cluster: str) -> Doc:
        """Return the status of a WorkerCluster."""
        return status_of(self.world, cluster)

    def connected(self, cluster: str) -> bool:
        """Say whether a WorkerCluster is shown as connected."""
        return holds({"status": self.status(cluster)}, "Connected")

    def lost(self, cluster: str) -> bool:
        """Say whether a WorkerCluster is shown as lost."""
        return is_lost(self.status(cluster))

    @property
    def leader(self) -> SimManager:
        """Return the manager that leads."""
        return next(each for each in self.world.managers if each.elector.leads())

    def leads(self) -> bool:
        """Say whether a manager leads: it holds the Lease, and has listed all since it took it."""
        managers = self.world.managers
        return any(each.elector.leads() and each.machine.core.leads(each.process.now) for each in managers)

    def agent(self, cluster: str) -> SimAgent:
        """Return the agent of a worker: its leading replica where there are more."""
        alive = self.world.alive(cluster)
        return next((each for each in alive if each.elector is not None and each.elector.leads()), alive[0])

    # --- what breaks -----------------------------------------------------------------------------------------------

    def cut(self, cluster: str) -> None:
        """Cut a worker off the manager; what runs there runs on."""
        self.world.net.partition(cluster)

    def mend(self, cluster: str) -> None:
        """Mend it."""
        self.world.net.mend(cluster)

    def until_lost(self, cluster: str) -> None:
        """Wait until a worker is shown as lost."""
        self.until(f"{cluster} is lost", lambda: self.lost(cluster))

    def until_connected(self, cluster: str) -> None:
        """Wait until a worker is shown as connected."""
        self.until(f"{cluster} is connected", lambda: self.connected(cluster))

    def kill_leader(self) -> None:
        """Kill the manager that leads; another one takes over (a standby, or one that its Deployment starts)."""
        self.leader.kill()

    def kill_agent(self, cluster: str, *, again: bool = True) -> None:
        """Kill an agent; start another one unless told not to."""
        self.agent(cluster).kill()
        if again:
            self.world.start_agent(cluster)

    # --- what people do -----------------------------------------------------------------------------------------------

    def say_fenced(self, cluster: str, session: int | None = None) -> None:
        """Let a person say that a worker is fenced, through the session shown or a given one. Nobody asks if it is."""
        number = self.status(cluster).get("session", 0) if session is None else session
        say_fenced(self.world, cluster, number)

    def edit(self, cluster: str, resource: Resource, name: str, patch: Doc, subresource: str = "") -> None:
        """Let a person change an object by a merge patch, around all policies; AssertionError when it is refused."""
        assert self.cluster(cluster).change(resource, name, patch, subresource) is not None, (resource.kind, name)

    def delete(self, cluster: str, resource: Resource, name: str, *, propagation: str = "Background") -> None:
        """Let a person delete an object."""
        self.cluster(cluster).delete(resource, name, propagation=propagation)

    def objects(self, cluster: str, resource: Resource = POD) -> list[Doc]:
        """Return all objects of a kind in a cluster."""
        return self.cluster(cluster).all(resource)


def _made_last(document: Doc) -> tuple[str, int]:
    """Order objects by when they were made; within a second, by their last write."""
    meta = document["metadata"]
    return meta["creationTimestamp"], int(meta["resourceVersion"])


def _told(seconds: float, stops_in: float, exit_code: int = 0) -> dict[str, str]:
    told = {RUN_SECONDS: f"{seconds:g}"} if seconds else {}
    told |= {EXIT_CODE: str(exit_code)} if exit_code else {}
    return {**told, STOP_SECONDS: f"{stops_in:g}"} if stops_in else told


def as_a_process_of_ours(cluster: SimCluster, resource: Resource, name: str, patch: Doc, subresource: str = "") -> None:
    """Write as one of our own processes does: not by hand, and without its core."""
    store, now = cluster.store, cluster.timeline.wall
    media, body = "application/merge-patch+json", msgspec.json.encode(patch)
    store.patch(store.kinds.of(resource), TEAM, name, body, media, now, subresource=subresource)
