"""A whole installation in simulated time: management cluster, two workers, managers, agents, users, and what breaks.

`SimWorld(seed).run()` lives through a troubled time, then a calm one in which everything has to come to its end, then
users delete everything and nothing may be left. The seed decides all of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gatelift_agent.core.values.settings import KeepFinished
from gatelift_kinds.registry import WITH_GROUPS, WITH_SLICES
from gatelift_kube.values.resources import (
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
from gatelift_sandbox.embedded.watches import StoreChange
from gatelift_sandbox.records import RunRecord
from support.manager.builders import a_job, a_pod, kueue_object
from support.sim.account import Account
from support.sim.agent import SimAgent
from support.sim.asked import Asked
from support.sim.attacks import begin, drawn_attacks
from support.sim.booked import Booked
from support.sim.clock import Timeline
from support.sim.cluster import ACCEPT, TEAM, Doc, SimCluster
from support.sim.crews import Crews
from support.sim.doubts import attend
from support.sim.election import SimLease
from support.sim.endings import KEPT_SECONDS, left_over, unsettled
from support.sim.faults import Faults, drawn
from support.sim.manager import SimManager
from support.sim.members import Members
from support.sim.net import SimNet
from support.sim.persons import fence
from support.sim.resizers import Resizers
from support.sim.shown import Shown, idle_leader
from support.sim.switchboard import KEY_DIGEST, Switchboard
from support.sim.truth import Truth, TruthError
from support.sim.wishes import Wishes

WORKERS = ("a", "b")
QUEUES = {"travels": 3000, "stays": 2000}
RUN_SECONDS = "sandbox.gatelift.dev/run-seconds"
STOP_SECONDS = "sandbox.gatelift.dev/stop-seconds"
EXIT_CODE = "sandbox.gatelift.dev/exit-code"
CALM_SECONDS_MAX = 1200.0
"""Longer than the longest pause that anything may make: LOST, a hopeless redial, a backoff, all behind each other."""
UNJUDGED_SECONDS = 300.0
"""Of a calm in which only safety is judged: a loss, a redial, and a second run if there is one."""
FENCE_AGAIN_SECONDS = 30.0
GROUPS_FROM = 1_000_000
"""Seeds from here on are histories with pod groups."""
SIZES_FROM = 100_000_000
"""Seeds from here on are histories with pod groups and elastic Jobs, until these are served: then others have them."""
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
    workers: tuple[str, ...] = WORKERS
    attacks: tuple[str, ...] = ()
    """What else is done to it (`attacks`); a seed without a plan draws."""
    attack_every: float = 20.0
    keep: KeepFinished = field(default_factory=KeepFinished)
    """What workers keep of what has ended, to be looked at; a seed without a plan, and a long one, says it itself."""

    manager_file: str = ""
    """What the manager's configuration file says."""
    agents: Mapping[str, Any] = field(default_factory=dict)
    """What workers' agents are told besides."""


STEADY = Plan()
STORM = Plan(trouble_seconds=60.0, user_every=1.0, break_every=1.5, workloads=12)
SNIPER = Plan(trouble_seconds=90.0, user_every=2.0, break_every=0.0, workloads=12, strike=0.1)
SIEGE = Plan(trouble_seconds=300.0, user_every=6.0, break_every=60.0, workloads=12, strike=0.01, strand=0.3)
LONG = Plan(trouble_seconds=400.0, user_every=6.0, break_every=12.0, workloads=30)
DRAWN_WORKERS = (WORKERS, WORKERS, ("a", "b", "c"), ("a", "b", "c", "d"))
PLANS = (STEADY, STORM, SNIPER, SIEGE)
"""Kinds of trouble; a seed draws one."""


KEEPS = (
    KeepFinished(),
    KeepFinished(failed_seconds=120.0, succeeded_seconds=60.0, objects_max=3),
    KeepFinished(),
    KeepFinished(failed_seconds=KEPT_SECONDS, succeeded_seconds=KEPT_SECONDS),
)
"""By the seed, and not drawn, so that nothing else of a history changes with it."""


class SimWorld:
    """One run."""

    def __init__(self, seed: int, plan: Plan | None = None) -> None:
        self.time = Timeline(seed)
        self.plan = plan or self.time.rng.choice(PLANS)
        self.names = self.plan.workers if plan is not None else self.time.rng.choice(DRAWN_WORKERS)
        """What the workers are called; `workers` has the cluster that is found under each name now."""
        self.attacks = self.plan.attacks if plan is not None else drawn_attacks(self.time.rng)
        self.keep = KEEPS[seed % len(KEEPS)] if plan in (None, LONG) else self.plan.keep
        self.wishes = Wishes(self, drawn=plan in (None, LONG))
        self.kinds = (WITH_SLICES if seed >= SIZES_FROM else WITH_GROUPS) if seed >= GROUPS_FROM else None
        """What managers and agents serve; None: what they serve by themselves."""
        self.queues = QUEUES
        self.faults = replace(self.plan.faults, counts=Counter()) if self.plan.faults else drawn(self.time.rng)
        self.counts = self.faults.counts
        """How often each thing was done to it: breakages, faults and attacks."""
        self.truth, self.booked = Truth(), Booked()
        self.account = Account(
            self.truth.whose,
            is_unrecorded=self.truth.is_unrecorded,
            is_by_hand=self.truth.hands.__contains__,
            is_brought_back=self.truth.is_brought_back,
        )
        self.net = SimNet(self.time, self.faults)
        self.board = Switchboard(self.time, self.faults, self.net)
        self.home = SimCluster(self.time, self.faults, "home", management=True, noted=self.noted)
        self.home.manager_file = self.plan.manager_file
        self.workers = {name: SimCluster(self.time, self.faults, name, noted=self.noted) for name in self.names}
        self.lost_for_good: set[str] = set()
        """Clusters of which nothing is left: their machines are gone, and all that ran on them."""
        self.former: dict[str, list[SimAgent]] = {}
        """Agents of clusters whose names others have now."""
        self.unjudged: set[str] = set()
        """Attacks after which a person has to say more than a simulation does: only safety is judged from then on."""
        self.is_being_recovered = False
        """Whether the management cluster was restored, and a person looks what became of it."""
        self.shown = Shown(self.home, self.truth)
        self.truth.follow(self.home, management=True)
        self.members = Members(self.truth)
        self.members.follow(self.home, management=True)
        self.asked = Asked(self.home)
        self._keep_books(self.home)
        for worker in self.workers.values():
            self.follow(worker)
        self.manager_lease = SimLease()
        self.leases = {name: SimLease() for name in self.names}
        self.agents: dict[str, list[SimAgent]] = {name: [] for name in self.names}
        self.troubled = True
        self.leaving = False
        """Whether users delete all that they have made, and make nothing any more."""
        beside = self.kinds is not WITH_SLICES or seed % 2 == 0  # else groups would have nearly all there is
        self.crews = Crews(self) if self.kinds is not None and beside else None
        self.resizers = Resizers(self) if self.kinds is WITH_SLICES else None
        self.judges_shown = True
        """Whether what people are shown is compared with what the engine has."""
        self.made = 0
        self._processes = 0
        self._last_version = 0
        self._last_checks = 0
        self._set_up()
        self.start_manager()
        for name in self.names:
            self.start_agent(name)

    def noted(self, cluster: str, record: RunRecord) -> None:
        where = "local" if cluster == "home" else cluster
        self.time.say(cluster, f"pod {record.name} {'runs' if record.stopped is None else 'stopped'}")
        self.truth.noted(where, record)
        self.members.noted(where, record)
        self.account.container(where, record.pod_uid, self.time.now, runs=record.stopped is None)

    def follow(self, worker: SimCluster) -> None:
        """Judge what happens in a worker from now on."""
        self.truth.follow(worker, management=False)
        self.members.follow(worker, management=False)
        self._keep_books(worker)

    def _keep_books(self, cluster: SimCluster) -> None:
        """Tell the account of each write of a cluster."""
        account, name = self.account, "local" if cluster is self.home else cluster.name

        def changed(storage: tuple[str, str], change: StoreChange) -> None:
            if cluster.ended:
                return
            told = {"removed": change.removed, "by_hand": cluster.by_hand}
            if storage == (WORKLOAD.group, WORKLOAD.plural) and cluster is self.home:
                account.workload(change.after.view(), self.time.now, **told)
            elif storage in ((POD.group, POD.plural), (JOB.group, JOB.plural)):
                kind = POD if storage == (POD.group, POD.plural) else JOB
                account.object(name, kind.kind, change.after.view(), self.time.now, **told)

        cluster.store.listen(changed)

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
        home.create(MULTIKUEUE_CONFIG, kueue_object("MultiKueueConfig", "all", {"clusters": list(self.names)}))
        for name in self.names:
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
        name = f"m{self._processes}"
        manager = SimManager(self.home, name, self.board, self.manager_lease, "origin-1", kinds=self.kinds)
        self.board.managers = [*self.managers, manager]
        return manager

    def start_agent(self, cluster: str, lease: SimLease | None = None) -> SimAgent:
        self._processes += 1
        lease = lease or self.leases[cluster]
        name = f"{cluster}{self._processes}"
        agent = SimAgent(
            self.workers[cluster],
            name,
            self.board,
            lease=lease.name,
            keep=self.keep,
            told=self.plan.agents,
            registry=self.kinds,
        )
        agent.stand(lease)
        self.agents[cluster] = [*self.alive(cluster), agent]
        if agent.cluster.name in self.lost_for_good:
            agent.kill()  # there is no machine left that it could run on
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
            able = any(map(self._could_put_back, self.managers))
            self.truth.look_at_hands(self.time.now, able=able, unheard=self.home.unheard.__getitem__)
            if until is not None and until():
                return True
        return until is None

    def _check(self) -> None:
        if self.time.steps > STEPS_MAX:
            raise TruthError(f"not at its end after {STEPS_MAX} steps")
        if self.home.store.version != self._last_version:
            self._last_version = self.home.store.version
            self.truth.check_quota(QUEUES, self.booked.look(each.machine.core for each in self.managers))
        if self.account.checks != self._last_checks:
            self._last_checks = self.account.checks
            self._compare()

    def _compare(self) -> None:
        """Compare what runs with what the leading manager charges by its own word, once it has taken over."""
        for manager in self.managers:
            core = manager.machine.core
            if manager.outlives_a_restore:
                continue  # it has yet to notice, and then it ends
            if manager.elector.leads() and core.leads(manager.process.now) and core.rebuilt:
                outstanding = {each.uid for each in core.inflight.by_id.values()}
                self.account.compare(manager.charges, outstanding.__contains__)

    def _could_put_back(self, manager: SimManager) -> bool:
        """Say whether a manager leads, knows its lists, sees, and neither stands still nor has lost its API server."""
        core = manager.machine.core
        leads = manager.elector.leads() and core.leads(manager.process.now) and core.rebuilt
        still = manager.process.paused or manager.is_stalled
        return leads and not (still or manager.port.down or core.caution.halted)

    def _check_shown(self) -> None:
        if not self.judges_shown:
            return
        leader = idle_leader(self.managers)
        if leader is not None and leader.outlives_a_restore:
            return  # it has yet to notice, and then it ends
        wrong = self.shown.wrong(leader)
        if wrong:
            raise TruthError(f"shown for ever: {'; '.join(wrong)}")

    def at_rest(self) -> bool:
        """Say whether everything that people are shown is what it will stay, if nobody does anything."""
        return not self.shown.moving(idle_leader(self.managers))

    def run(self) -> SimWorld:
        """Live through trouble, calm and the end."""
        self.begin_trouble()
        self.pass_seconds(self.plan.trouble_seconds)
        self.calm()
        if self.unjudged:
            self.pass_seconds(UNJUDGED_SECONDS)
            return self
        if not self.pass_seconds(CALM_SECONDS_MAX, lambda: not unsettled(self)):
            raise TruthError(f"not settled after {CALM_SECONDS_MAX:g} s of calm: {unsettled(self)}")
        self.rest()
        self.delete_all()
        if not self.pass_seconds(CALM_SECONDS_MAX, lambda: not left_over(self)):
            raise TruthError(f"left after {CALM_SECONDS_MAX:g} s: {left_over(self)}")
        self.rest()
        return self

    def rest(self) -> None:
        """Go on until all that people are shown stays as it is, which then has been compared with what is."""
        if not self.pass_seconds(CALM_SECONDS_MAX, self.at_rest):
            moving = self.shown.moving(idle_leader(self.managers))
            raise TruthError(f"not at rest after {CALM_SECONDS_MAX:g} s: {moving}")

    def begin_trouble(self) -> None:
        """Let users and trouble begin."""
        from support.sim.trouble import Trouble  # noqa: PLC0415 (it drives a world, which it has to know)

        Trouble(self).begin()
        begin(self, self.attacks, self.plan.attack_every)
        for name in self.names:
            attend(self, name)

    def calm(self) -> None:
        """End all trouble."""
        self.troubled = False
        self.time.say("world", "calm")
        self.faults.end()
        for name in self.names:
            self.home.change(WORKER_CLUSTER, name, {"spec": {"cordoned": False}})
            worker = self.workers[name]
            if worker.name in self.lost_for_good:
                self._fence_for_good(name)
                continue
            worker.change(NAMESPACE, TEAM, {"metadata": {"labels": {ACCEPT: "true"}}})
            self.net.mend(worker.name)
            if not self.alive(name):
                self.start_agent(name)
        for process in [*self.managers, *(each for name in self.names for each in self.alive(name))]:
            self.restore(process)
        for name in QUEUES:
            self.home.change(CLUSTER_QUEUE, name, {"spec": {"stopPolicy": "None"}})
        for each in self.home.all(WORKLOAD):
            self.home.change(WORKLOAD, each["metadata"]["name"], {"spec": {"active": True}})

    def _fence_for_good(self, name: str) -> None:
        """Let a person say of a cluster that is no more, again and again, that it is fenced, as soon as it is lost."""
        fence(self, name)
        self.time.after(FENCE_AGAIN_SECONDS, lambda: self._fence_for_good(name))

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
        self.leaving = True
        self.time.say("world", "users delete everything")
        for resource in (POD, JOB):
            for each in self.home.all(resource):
                self.home.delete(resource, each["metadata"]["name"])
        if self.crews is not None:
            self.crews.end()

    # --- users ------------------------------------------------------------------------------------------------------

    def make(self, queue: str = "", *, job: bool = False) -> None:
        """Let a user create a pod or a Job, where nothing is said as chance will have it."""
        if self.made >= self.plan.workloads:
            return
        self.made += 1
        rng = self.time.rng
        queue = queue or rng.choice(("travels", "travels", "travels", "stays"))
        cpu = rng.choice(("500m", "1", "1500m"))
        told = {RUN_SECONDS: f"{rng.choice((0.5, 3, 20, 60)):g}"} if rng.random() < 0.8 else {}
        if rng.random() < 0.3:
            told[STOP_SECONDS] = f"{rng.choice((1, 5, 20)):g}"
        if rng.random() < 0.1:
            told[EXIT_CODE] = "1"
        if not job and rng.random() < 0.5:
            self.make_pod(f"pod-{self.made}", queue, cpu, told)
        else:
            self._make_job(f"job-{self.made}", queue, cpu, told)

    def make_pod(self, name: str, queue: str, cpu: str, told: dict[str, str], grace_seconds: int | None = None) -> None:
        document = a_pod(name).asking(cpu=cpu).document()
        document["metadata"]["namespace"] = TEAM
        document["metadata"]["annotations"] = told
        document["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = queue
        if grace_seconds is not None:
            document["spec"]["terminationGracePeriodSeconds"] = grace_seconds
        self.wishes.on_pod(document)
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
        self.wishes.on_job(document)
        del document["status"]
        self.home.create(JOB, document)
        self.time.say("user", f"creates {name} in {queue}")
