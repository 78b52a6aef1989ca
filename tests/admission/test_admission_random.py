"""Random instances: whatever happens in whatever order, the engine's promises hold."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from gatelift_admission.engine import Engine
from gatelift_admission.entries.entry import RESERVING
from gatelift_admission.entries.ordering import pending_key
from gatelift_admission.quota.tree import Tree
from gatelift_admission.values.model import Decision, EngineSettings, Preempt, Reserve
from gatelift_kube.objects.kueue import (
    BorrowWithinCohort,
    ClusterQueue,
    Cohort,
    CohortSpec,
    FlavorQuotas,
    FlavorResource,
    PodSet,
    Preemption,
    ReclaimablePod,
    ResourceGroup,
    Workload,
)
from gatelift_kube.objects.meta import ObjectMeta
from support.twin.admission_objects import (
    cluster_queue,
    engine_with,
    flavor,
    local_queue,
    pod_set,
    reserved_status,
    workload,
)

FLAVORS = ("red", "blue")
RESOURCES = ("cpu", "memory")
LIMIT = st.one_of(st.none(), st.integers(0, 6))
STEPS_MAX = 500
"""Calls of `cycle` within which an instance this small has to come to rest."""


@st.composite
def groups(draw: st.DrawFn, limits: bool) -> ResourceGroup:
    resources = RESOURCES[: draw(st.integers(1, 2))]
    names = draw(st.permutations(FLAVORS))[: draw(st.integers(1, 2))]
    borrow, lend = (LIMIT, LIMIT) if limits else (st.none(), st.none())
    return ResourceGroup(
        resources,
        tuple(
            FlavorQuotas(
                name,
                tuple(FlavorResource(one, draw(st.integers(0, 8)), draw(borrow), draw(lend)) for one in resources),
            )
            for name in names
        ),
    )


WITHIN = ["Never", "LowerPriority", "LowerOrNewerEqualPriority"]
RECLAIM = ["Never", "LowerPriority", "Any"]


@st.composite
def policies(draw: st.DrawFn) -> Preemption:
    reclaim = draw(st.sampled_from(RECLAIM))
    borrow = draw(st.sampled_from(["Never", "LowerPriority"])) if reclaim != "Never" else "Never"
    threshold = draw(st.one_of(st.none(), st.integers(0, 2)))
    return Preemption(draw(st.sampled_from(WITHIN)), reclaim, BorrowWithinCohort(borrow, threshold))


@st.composite
def queues(draw: st.DrawFn, index: int, *, preempts: bool = False) -> ClusterQueue:
    cohort = draw(st.sampled_from(["", "c0", "c1"] if not preempts else ["c0", "c1"]))
    spec = {
        "cohort_name": cohort,
        "queueing_strategy": draw(st.sampled_from(["StrictFIFO", "BestEffortFIFO"])),
        "preemption": draw(policies()) if preempts else Preemption(),
    }
    return cluster_queue(f"q{index}", draw(groups(limits=bool(cohort))), **spec)


@st.composite
def jobs(draw: st.DrawFn) -> tuple[tuple[PodSet, ...], int]:
    sets = tuple(
        pod_set(
            f"s{index}",
            draw(st.integers(0, 3)),
            {name: draw(st.integers(0, 4)) for name in RESOURCES[: draw(st.integers(1, 2))]},
        )
        for index in range(draw(st.integers(1, 2)))
    )
    return sets, draw(st.integers(0, 2))


TO_HOLDERS = ("finish", "forget", "confirm", "reclaim", "requeue", "promote")
OPERATIONS = ("submit", "submit", "submit", "cycle", "wait", "touch", *TO_HOLDERS)
WAIT_S = 0.3
"""Less than a preemptor's patience, more than a period of wake-ups."""


@dataclass(slots=True)
class World:
    """The engine, and the objects as an API server would hold them."""

    engine: Engine
    objects: dict[str, Workload]
    reserves: dict[str, Reserve]
    queues: list[ClusterQueue]
    version: int = 1
    now: float = 0.0
    leaving: set[str] = field(default_factory=set)

    def feed(self, uid: str, status: object = None, priority: int | None = None) -> None:
        self.version += 1
        old = self.objects[uid]
        new = workload(
            uid,
            *old.spec.pod_sets,
            queue=old.spec.queue_name,
            priority=old.spec.priority if priority is None else priority,
            version=self.version,
            status=status,  # type: ignore[arg-type]  # a status or none
        )
        self.objects[uid] = new
        self.engine.workload_changed(new, self.now)

    def take(self, decisions: tuple[Decision, ...]) -> None:
        for one in decisions:
            if isinstance(one, Reserve):
                assert one.uid not in self.reserves
                self.reserves[one.uid] = one
            elif isinstance(one, Preempt):
                assert one.uid in self.reserves
                assert one.uid not in self.leaving, "nobody is asked to leave twice"
                assert one.preemptor_uid not in self.reserves
                self.leaving.add(one.uid)

    def rest(self, budget: int) -> None:
        for _ in range(STEPS_MAX):
            result = self.engine.cycle(self.now, budget)
            self.take(result.decisions)
            state = self.engine.state
            due = [one for one in (state.wakes.next_time(), state.postponed.next_time()) if one is not None]
            if not result.more and not due:
                return
            if not result.more:
                self.now = max(self.now, min(due))
        raise AssertionError("the engine does not come to rest")


def build(data: st.DataObject, *, preempts: bool = False) -> World:
    listed = [data.draw(queues(index, preempts=preempts)) for index in range(data.draw(st.integers(1, 4)))]
    engine = engine_with(
        *(flavor(name) for name in FLAVORS),
        *listed,
        *(local_queue(f"l{index}", f"q{index}") for index in range(len(listed))),
    )
    if data.draw(st.booleans()):
        parent = Cohort(ObjectMeta(name="c1"), CohortSpec("c0", (data.draw(groups(limits=True)),)))
        engine.cohort_changed(parent)
    return World(engine, {}, {}, listed)


def step(world: World, data: st.DataObject, number: int) -> None:
    what = data.draw(st.sampled_from(OPERATIONS))
    holders = sorted(world.reserves)
    if what == "submit":
        sets, priority = data.draw(jobs())
        uid = f"w{number}"
        queue = data.draw(st.integers(0, len(world.queues) - 1))
        world.version += 1
        created = data.draw(st.integers(0, 3))
        world.objects[uid] = workload(
            uid, *sets, queue=f"l{queue}", priority=priority, created=created, version=world.version
        )
        world.engine.workload_changed(world.objects[uid], world.now)
    elif what == "cycle":
        world.take(world.engine.cycle(world.now, data.draw(st.integers(1, 4))).decisions)
    elif what == "wait":
        world.now += WAIT_S
    elif what == "touch":
        index = data.draw(st.integers(0, len(world.queues) - 1))
        strict = data.draw(st.sampled_from(["StrictFIFO", "BestEffortFIFO"]))
        old = world.queues[index].spec
        world.queues[index] = cluster_queue(
            f"q{index}",
            *old.resource_groups,
            cohort_name=old.cohort_name,
            queueing_strategy=strict,
            preemption=old.preemption,
        )
        world.engine.cluster_queue_changed(world.queues[index])
    elif holders:
        _to_holder(world, data, what, data.draw(st.sampled_from(holders)))


def stop(world: World, uid: str) -> None:
    """End an eviction: the workload waits again."""
    world.feed(uid, reserved_status(world.reserves[uid].admission))
    world.feed(uid)
    del world.reserves[uid]
    world.leaving.discard(uid)


def _to_holder(world: World, data: st.DataObject, what: str, uid: str) -> None:
    admission = world.reserves[uid].admission
    if what == "finish":
        world.engine.workload_removed(uid)
        del world.objects[uid], world.reserves[uid]
        world.leaving.discard(uid)
    elif what == "forget":
        world.engine.forget(uid)
        if world.engine.state.entries[uid].phase not in RESERVING:
            del world.reserves[uid]
            world.leaving.discard(uid)
    elif what == "requeue":
        stop(world, uid)
    elif what == "confirm":
        world.feed(uid, reserved_status(admission))
    elif what == "promote":
        world.feed(uid, reserved_status(admission), data.draw(st.integers(0, 9)))
    elif what == "reclaim":
        world.feed(
            uid, reserved_status(admission, reclaimable_pods=(ReclaimablePod("s0", data.draw(st.integers(0, 3))),))
        )


def check_charges(engine: Engine) -> None:
    """Assert that the tree holds exactly what the entries are charged."""
    tree = engine.state.ensure()
    specs = engine.state.tree_specs()
    fresh = Tree(*specs)
    for entry in engine.state.entries.values():
        if entry.charged:
            fresh.add_usage(fresh.queues[entry.charged_queue], entry.charged)
    assert {name: one.usage for name, one in fresh.queues.items()} == {n: one.usage for n, one in tree.queues.items()}
    assert {name: one.usage for name, one in fresh.cohorts.items()} == {n: one.usage for n, one in tree.cohorts.items()}


def check_order(engine: Engine) -> None:
    """Assert that a StrictFIFO queue is blocked behind its first member only."""
    for queue in engine.state.queues.values():
        pending = queue.pending
        if queue.spec.queueing_strategy != "StrictFIFO" or pending.blocked is None:
            continue
        order = [one for one in pending.in_order() if one.uid not in pending.aside]
        head = pending.blocked
        assert order[0] is head
        keys = [pending_key(one.priority, one.timestamp, one.uid) for one in order]
        assert keys == sorted(keys)


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_the_wake_up_index_loses_nobody_and_charges_are_exact(data: st.DataObject) -> None:
    world = build(data)
    for number in range(data.draw(st.integers(1, 20))):
        step(world, data, number)
    world.rest(data.draw(st.integers(1, 50)))
    check_charges(world.engine)
    check_order(world.engine)
    held = set(world.reserves)
    waiting = {uid for uid, one in world.engine.state.entries.items() if one.phase not in RESERVING}
    assert held | waiting == set(world.objects)
    world.engine.state.restructure()
    world.rest(50)
    assert set(world.reserves) == held


STRATEGIES = [(), ("LessThanOrEqualToFinalShare",), ("LessThanInitialShare",)]
STRATEGIES.append(STRATEGIES[1] + STRATEGIES[2])
PERIODS = [(0.0, 0.0), (0.2, 1.0), (0.2, 0.0)]
"""Of wake-ups: none, Kueue's at the most, a fixed one."""


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_with_preemption_the_index_loses_nobody_and_charges_are_exact(data: st.DataObject) -> None:
    world = build(data, preempts=True)
    period, most = data.draw(st.sampled_from(PERIODS))
    strategies = data.draw(st.sampled_from(STRATEGIES))
    world.engine.state.settings = EngineSettings(
        fair_sharing=strategies,
        wake_period=period,
        wake_period_max=most,
        preemption_patience=data.draw(st.sampled_from([0.0, 1.0])),
    )
    for number in range(data.draw(st.integers(1, 20))):
        step(world, data, number)
    budget = data.draw(st.integers(1, 50))
    for _ in range(STEPS_MAX):
        world.rest(budget)
        check_charges(world.engine)
        if not world.leaving:
            break
        stop(world, min(world.leaving))
    else:
        raise AssertionError("preemption goes in circles")
    check_holders(world.engine)
    held = set(world.reserves)
    world.engine.state.restructure()
    world.rest(50)
    assert set(world.reserves) == held
    assert not world.leaving


def check_holders(engine: Engine) -> None:
    """Assert that the index of holders shows what the entries are charged, in order."""
    holders = engine.state.holders
    entries = engine.state.entries.values()
    reserving = {one.uid for one in entries if one.phase in RESERVING and one.held_counts is None}
    assert set(holders.holds) == reserving | {one.uid for one in entries if one.charged}
    for known in holders.queues.values():
        assert known.running == sorted(known.running)
        assert known.leaving == sorted(known.leaving)
        total: dict[tuple[str, str], int] = {}
        for entry in known.entries.values():
            for cell, amount in entry.charged.items():
                total[cell] = total.get(cell, 0) + amount
        assert {cell: known.total(cell) for cell in total} == total


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_decisions_do_not_depend_on_how_often_a_round_is_cut(data: st.DataObject) -> None:
    world = build(data)
    for number in range(data.draw(st.integers(1, 12))):
        sets, priority = data.draw(jobs())
        queue = data.draw(st.integers(0, len(world.queues) - 1))
        world.objects[f"w{number}"] = workload(f"w{number}", *sets, queue=f"l{queue}", priority=priority)
    outcomes = []
    for budget in (1, 3, 100):
        other = World(Engine(), dict(world.objects), {}, world.queues)
        known = world.engine.state
        other.engine.namespace_changed("ns", {})
        for rf in known.flavors.values():
            other.engine.flavor_changed(rf)
        for cohort in known.cohorts.values():
            other.engine.cohort_changed(cohort)
        for cq in world.queues:
            other.engine.cluster_queue_changed(cq)
        for local in known.local_queues.values():
            other.engine.local_queue_changed(local.object)
        for one in world.objects.values():
            other.engine.workload_changed(one, 0.0)
        other.rest(budget)
        outcomes.append({uid: one.admission for uid, one in other.reserves.items()})
    assert outcomes[0] == outcomes[1] == outcomes[2]


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_an_engine_fed_the_written_objects_again_has_the_same_charges(data: st.DataObject) -> None:
    world = build(data)
    for number in range(data.draw(st.integers(1, 12))):
        step(world, data, number)
    world.rest(100)
    for uid, one in sorted(world.reserves.items()):
        if world.objects[uid].status.admission is None:
            world.feed(uid, reserved_status(one.admission))
    again = Engine()
    again.namespace_changed("ns", {})
    for uid in sorted(world.objects, reverse=True):
        again.workload_changed(world.objects[uid], 0.0)
    for name in FLAVORS:
        again.flavor_changed(flavor(name))
    for index, cq in enumerate(world.queues):
        again.local_queue_changed(local_queue(f"l{index}", f"q{index}"))
        again.cluster_queue_changed(cq)
    for cohort in world.engine.state.cohorts.values():
        again.cohort_changed(cohort)
    fresh = World(again, dict(world.objects), dict(world.reserves), world.queues)
    fresh.rest(100)
    assert {uid: again.charged(uid) for uid in world.objects} == {
        uid: world.engine.charged(uid) for uid in world.objects
    }
    assert [again.cluster_queue_status(cq.metadata.name) for cq in world.queues] == [
        world.engine.cluster_queue_status(cq.metadata.name) for cq in world.queues
    ]
