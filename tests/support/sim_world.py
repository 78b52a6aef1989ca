"""A whole installation in simulated time: management cluster, two workers, managers, agents, users, and what breaks.

`SimWorld(seed).run()` lives through a troubled time, then a calm one in which everything has to come to its end, then
users delete everything and nothing may be left. The seed decides all of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gatelift_kube.resources import (
    ADMISSION_CHECK,
    CLUSTER_QUEUE,
    JOB,
    LOCAL_QUEUE,
    MULTIKUEUE_CONFIG,
    NAMESPACE,
    POD,
    RESOURCE_FLAVOR,
    WORKER_CLUSTER,
    WORKLOAD,
)
from gatelift_sandbox.records import Record
from support.builders_manager import a_job, a_pod, kueue_object
from support.sim_agent import SimAgent
from support.sim_clock import Timeline
from support.sim_cluster import ACCEPT, TEAM, Doc, SimCluster
from support.sim_election import SimLease
from support.sim_faults import Faults, drawn
from support.sim_manager import SimManager
from support.sim_net import SimNet
from support.sim_shown import Shown, idle_leader
from support.sim_switchboard import KEY_DIGEST, Switchboard
from support.sim_truth import Truth, TruthError, holds, is_over, names, wanted

WORKERS = ("a", "b")
QUEUES = {"travels": 3000, "stays": 2000}
RUN_SECONDS = "sandbox.gatelift.dev/run-seconds"
STOP_SECONDS = "sandbox.gatelift.dev/stop-seconds"
EXIT_CODE = "sandbox.gatelift.dev/exit-code"
CALM_SECONDS_MAX = 1200.0
"""Longer than the longest pause that anything may make: LOST, a hopeless redial, a backoff, all behind each other."""
STEPS_MAX = 400_000
"""More than any run needs; a run that needs more is a loop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How long the trouble lasts, and how often something is done or breaks (per second)."""

    trouble_seconds: float = 90.0
    user_every: float = 4.0
    break_every: float = 8.0
    workloads: int = 8
    strike: float = 0.0
    """Probability that something breaks at a moment at which it hurts most (`Timeline.moment`)."""
    strand: float = 0.0
    """Probability that a worker is cut off for long, its agent struck, just after a command to it."""
    faults: Faults | None = None


STEADY = Plan()
STORM = Plan(trouble_seconds=60.0, user_every=1.0, break_every=1.5, workloads=12)
SNIPER = Plan(trouble_seconds=90.0, user_every=2.0, break_every=0.0, workloads=12, strike=0.1)
SIEGE = Plan(trouble_seconds=300.0, user_every=6.0, break_every=60.0, workloads=12, strike=0.01, strand=0.3)
PLANS = (STEADY, STORM, SNIPER, SIEGE)
"""Kinds of trouble; a seed draws one."""


class SimWorld:
    """One run."""

    def __init__(self, seed: int, plan: Plan | None = None) -> None:
        self.time = Timeline(seed)
        self.plan = plan or self.time.rng.choice(PLANS)
        self.faults = self.plan.faults or drawn(self.time.rng)
        self.truth = Truth()
        self.net = SimNet(self.time, self.faults)
        self.board = Switchboard(self.time, self.faults, self.net)
        self.home = SimCluster(self.time, self.faults, "home", management=True, noted=self._noted)
        self.workers = {name: SimCluster(self.time, self.faults, name, noted=self._noted) for name in WORKERS}
        self.shown = Shown(self.home, self.truth)
        self.truth.follow(self.home, management=True)
        for worker in self.workers.values():
            self.truth.follow(worker, management=False)
        self.manager_lease = SimLease()
        self.leases = {name: SimLease() for name in WORKERS}
        self.agents: dict[str, list[SimAgent]] = {name: [] for name in WORKERS}
        self.troubled = True
        self.judges_shown = True
        """Whether what people are shown is compared with what the engine has."""
        self.made = 0
        self._processes = 0
        self._last_version = 0
        self._set_up()
        self.start_manager()
        for name in WORKERS:
            self.start_agent(name)

    def _noted(self, cluster: str, record: Record) -> None:
        where = "local" if cluster == "home" else cluster
        self.time.say(cluster, f"pod {record.name} {'runs' if record.stopped is None else 'stopped'}")
        self.truth.noted(where, record)

    def _set_up(self) -> None:
        home = self.home
        home.create(RESOURCE_FLAVOR, kueue_object("ResourceFlavor", "default", {}))
        for name, amount in QUEUES.items():
            cpu = [{"name": "cpu", "nominalQuota": f"{amount}m"}]
            groups = [{"coveredResources": ["cpu"], "flavors": [{"name": "default", "resources": cpu}]}]
            spec: Doc = {"namespaceSelector": {}, "resourceGroups": groups}
            if name == "travels":
                spec["admissionChecksStrategy"] = {"admissionChecks": [{"name": "dispatch"}]}
            home.create(CLUSTER_QUEUE, kueue_object("ClusterQueue", name, spec))
            home.create(LOCAL_QUEUE, kueue_object("LocalQueue", name, {"clusterQueue": name}, namespace=TEAM))
        parameters = {"apiGroup": "kueue.x-k8s.io", "kind": "MultiKueueConfig", "name": "all"}
        check = {"controllerName": "kueue.x-k8s.io/multikueue", "parameters": parameters}
        home.create(ADMISSION_CHECK, kueue_object("AdmissionCheck", "dispatch", check))
        home.create(MULTIKUEUE_CONFIG, kueue_object("MultiKueueConfig", "all", {"clusters": list(WORKERS)}))
        for name in WORKERS:
            home.create(WORKER_CLUSTER, {"metadata": {"name": name}, "spec": {}})
            home.change(WORKER_CLUSTER, name, {"status": {"keyDigest": KEY_DIGEST}}, "status")

    # --- processes ----------------------------------------------------------------------------------------------

    @property
    def managers(self) -> list[SimManager]:
        """Return the managers that live."""
        found: list[SimManager] = [each for each in self.board.managers if not each.process.dead]
        self.board.managers = list(found)
        return found

    def start_manager(self) -> SimManager:
        self._processes += 1
        manager = SimManager(self.home, f"m{self._processes}", self.board, self.manager_lease, "origin-1")
        self.board.managers = [*self.managers, manager]
        return manager

    def start_agent(self, cluster: str) -> SimAgent:
        self._processes += 1
        agent = SimAgent(self.workers[cluster], f"{cluster}{self._processes}", self.board)
        agent.stand(self.leases[cluster])
        self.agents[cluster] = [*self.alive(cluster), agent]
        return agent

    def alive(self, cluster: str) -> list[SimAgent]:
        """Return the replicas of an agent that live."""
        return [each for each in self.agents[cluster] if not each.process.dead]

    # --- running --------------------------------------------------------------------------------------------------

    def pass_seconds(self, seconds: float, until: Callable[[], bool] | None = None) -> bool:
        """Let time pass; stop early when `until` holds (asked once a second)."""
        end = self.time.now + seconds
        while self.time.now < end:
            second = min(end, self.time.now + 1.0)
            while self.time.step(second):
                self._check()
            if not self.managers:
                self.start_manager()  # its Deployment sees to that
            self._check_shown()
            if until is not None and until():
                return True
        return until is None

    def _check(self) -> None:
        if self.time.steps > STEPS_MAX:
            raise TruthError(f"not at its end after {STEPS_MAX} steps")
        if self.home.store.version != self._last_version:
            self._last_version = self.home.store.version
            self.truth.check_quota(QUEUES)

    def _check_shown(self) -> None:
        if not self.judges_shown:
            return
        wrong = self.shown.wrong(idle_leader(self.managers, self.time.now))
        if wrong:
            raise TruthError(f"shown for ever: {'; '.join(wrong)}")

    def at_rest(self) -> bool:
        """Say whether everything that people are shown is what it will stay, if nobody does anything."""
        return not self.shown.moving(idle_leader(self.managers, self.time.now))

    def run(self) -> SimWorld:
        """Live through trouble, calm and the end."""
        self._begin_trouble()
        self.pass_seconds(self.plan.trouble_seconds)
        self.calm()
        if not self.pass_seconds(CALM_SECONDS_MAX, lambda: not self.unsettled()):
            raise TruthError(f"not settled after {CALM_SECONDS_MAX:g} s of calm: {self.unsettled()}")
        self.rest()
        self.delete_all()
        if not self.pass_seconds(CALM_SECONDS_MAX, lambda: not self.left_over()):
            raise TruthError(f"left after {CALM_SECONDS_MAX:g} s: {self.left_over()}")
        self.rest()
        return self

    def rest(self) -> None:
        """Go on until all that people are shown stays as it is, which then has been compared with what is."""
        if not self.pass_seconds(CALM_SECONDS_MAX, self.at_rest):
            moving = self.shown.moving(idle_leader(self.managers, self.time.now))
            raise TruthError(f"not at rest after {CALM_SECONDS_MAX:g} s: {moving}")

    def _begin_trouble(self) -> None:
        from support.sim_trouble import Trouble  # noqa: PLC0415 (it drives a world, which it has to know)

        Trouble(self).begin()

    def calm(self) -> None:
        """End all trouble."""
        self.troubled = False
        self.time.say("world", "calm")
        for name in self.faults.__slots__:
            setattr(self.faults, name, 0.0)
        for name in WORKERS:
            self.home.change(WORKER_CLUSTER, name, {"spec": {"cordoned": False}})
            self.workers[name].change(NAMESPACE, TEAM, {"metadata": {"labels": {ACCEPT: "true"}}})
            self.net.mend(name)
            if not self.alive(name):
                self.start_agent(name)
        for process in [*self.managers, *(each for name in WORKERS for each in self.alive(name))]:
            self.restore(process)
        for name in QUEUES:
            self.home.change(CLUSTER_QUEUE, name, {"spec": {"stopPolicy": "None"}})
        for each in self.home.all(WORKLOAD):
            self.home.change(WORKLOAD, each["metadata"]["name"], {"spec": {"active": True}})

    def restore(self, process: Any) -> None:
        """Undo pauses and cuts of a process."""
        if process.process.dead:
            return
        if isinstance(process, SimAgent):
            process.reach(reachable=True)
        else:
            process.port.down = process.local.port.down = False
        if process.process.paused:
            process.wake()

    def delete_all(self) -> None:
        """Delete all that users made."""
        self.time.say("world", "users delete everything")
        for resource in (POD, JOB):
            for each in self.home.all(resource):
                self.home.delete(resource, each["metadata"]["name"])

    # --- what has to be in the end ----------------------------------------------------------------------------------

    def unsettled(self) -> list[str]:
        """Return what is neither finished nor running where its record says."""
        problems = []
        live, used = self.truth.all_live(), self.truth.used()
        for uid, document in self.truth.workloads.items():
            name = document["metadata"]["name"]
            if holds(document, "Finished"):
                if live.get(uid):
                    problems.append(f"{name} is finished and runs: {live[uid]}")
            elif not live.get(uid):
                reserved, queue = holds(document, "QuotaReserved"), document["spec"]["queueName"]
                if not reserved and wanted(document) > QUEUES[queue] - used[queue]:
                    continue  # it waits for others, which run
                problems.append(f"{name} waits (reserved {reserved}, {document.get('status', {}).get('clusterName')})")
        owned = {
            owner["uid"]
            for each in self.truth.workloads.values()
            for owner in each["metadata"].get("ownerReferences", [])
        }
        problems += [
            f"{resource.kind} {each['metadata']['name']} has no workload"
            for resource in (POD, JOB)
            for each in self.home.all(resource)
            if "kueue.x-k8s.io/queue-name" in each["metadata"]["labels"]
            and each["metadata"]["uid"] not in owned
            and not is_over(each)
        ]
        return [*problems, *self._strays(live)]

    def _strays(self, live: dict[str, Any]) -> list[str]:
        """Return objects on workers that belong to no workload that runs there."""
        problems = []
        for name, worker in self.workers.items():
            for resource in (POD, JOB):
                for each in worker.all(resource):
                    belongs = self.truth.whose.of(name, each["metadata"]["uid"])
                    if belongs is None:
                        continue  # a tenant's own
                    if not any(cluster == name for _, cluster in live.get(belongs.workload, ())):
                        text = f"{resource.kind} {each['metadata']['name']} of {belongs.workload} is left on {name}"
                        problems.append(text)
        return problems

    def left_over(self) -> list[str]:
        """Return what is left after everything was deleted."""
        left = [
            f"{resource.kind}s at home: {names(self.home.all(resource))}"
            for resource in (POD, JOB, WORKLOAD)
            if self.home.all(resource)
        ]
        left += [f"{uid} runs: {live}" for uid, live in self.truth.all_live().items()]
        left += self._strays({})
        for manager in self.managers:
            core = manager.machine.core
            if not core.stepped_down and manager.elector.leads() and (core.attempts or core.ledger.charges):
                left.append(f"{manager.name} remembers {sorted(core.attempts)} charges {sorted(core.ledger.charges)}")
        for name in WORKERS:
            for agent in self.alive(name):
                if agent.machine.world.ready and agent.machine.world.placements:
                    left.append(f"{agent.name} remembers {[str(key) for key in agent.machine.world.placements]}")
        return left

    # --- users ------------------------------------------------------------------------------------------------------

    def make(self) -> None:
        """Let a user create a pod or a Job."""
        if self.made >= self.plan.workloads:
            return
        self.made += 1
        rng = self.time.rng
        queue = rng.choice(("travels", "travels", "travels", "stays"))
        cpu = rng.choice(("500m", "1", "1500m"))
        told = {RUN_SECONDS: f"{rng.choice((0.5, 3, 20, 60)):g}"} if rng.random() < 0.8 else {}
        if rng.random() < 0.3:
            told[STOP_SECONDS] = f"{rng.choice((1, 5, 20)):g}"
        if rng.random() < 0.1:
            told[EXIT_CODE] = "1"
        if rng.random() < 0.5:
            self.make_pod(f"pod-{self.made}", queue, cpu, told)
        else:
            self._make_job(f"job-{self.made}", queue, cpu, told)

    def make_pod(self, name: str, queue: str, cpu: str, told: dict[str, str]) -> None:
        document = a_pod(name).asking(cpu=cpu).document()
        document["metadata"]["namespace"] = TEAM
        document["metadata"]["annotations"] = told
        document["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = queue
        del document["status"]
        self.home.create(POD, document)
        self.time.say("user", f"creates {name} in {queue}")

    def _make_job(self, name: str, queue: str, cpu: str, told: dict[str, str]) -> None:
        document = a_job(name, parallelism=self.time.rng.choice((1, 2)), cpu=cpu)
        document["metadata"]["namespace"] = TEAM
        document["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = queue
        document["spec"]["template"]["metadata"]["annotations"] = told
        document["spec"]["backoffLimit"] = 0
        if queue == "stays":
            del document["spec"]["managedBy"]
        del document["status"]
        self.home.create(JOB, document)
        self.time.say("user", f"creates {name} in {queue}")
