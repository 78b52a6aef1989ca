"""What is done to a simulated world besides breakages: each attack of the table is lived through, counted and told."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from gatelift_kube.values.resources import JOB, NODE
from gatelift_sandbox.behaviour import LOST as NODE_LOST
from support.sim import disasters
from support.sim.attacks import ATTACKS, DRAWN, DRAWN_AT_ONCE_MAX, drawn_attacks
from support.sim.clock import ProcessClock, Timeline
from support.sim.disasters import put_back
from support.sim.faults import CLOCK_DRIFT_MAX, Faults
from support.sim.history import History
from support.sim.many import Lived, live_some, table
from support.sim.world import STEADY, SimWorld

SEEDS = (1, 2)
TRIES = 12
"""Seeds in which each attack has to find something to be done to."""


@pytest.mark.parametrize("name", DRAWN)
def test_hd_52_a_world_lives_through_each_attack(name: str) -> None:
    for seed in SEEDS:
        SimWorld(seed, replace(STEADY, attacks=(name,), attack_every=15.0)).run()


@pytest.mark.parametrize("name", DRAWN)
def test_hd_52_each_attack_finds_something_to_be_done_to(name: str) -> None:
    def done(seed: int) -> int:
        world = SimWorld(seed, replace(STEADY, attacks=(name,), attack_every=8.0))
        world.begin_trouble()
        world.pass_seconds(90.0, lambda: world.counts[name] > 0)
        return world.counts[name]

    assert any(done(seed) for seed in range(TRIES))


@pytest.mark.parametrize("lost_in_the_copy", [True, False])
def test_hd_135_which_nodes_are_cut_off_does_not_come_back_with_a_backup(lost_in_the_copy: bool) -> None:
    """Nobody would mend it a second time: pods there would never stop, and stay charged until the end."""
    history = History(shown=False)
    worker = history.workers["a"]

    def cut(*, lost: bool) -> None:
        annotations = {NODE_LOST: "true" if lost else None}
        worker.change(NODE, "a-node", {"metadata": {"annotations": annotations}})
        history.passes(1.0)

    cut(lost=lost_in_the_copy)
    copy = worker.store.copy()
    cut(lost=not lost_in_the_copy)
    put_back(history.world, worker, copy, "worker a")
    history.passes(1.0)
    assert worker._kubelet.lost == (frozenset() if lost_in_the_copy else {"a-node"})


def test_hd_243_no_restore_makes_a_persons_word_untrue_while_it_is_carried_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawn seed 8812657: *fenced* promises that nothing of before runs again; what a copy then ran was uncharged."""
    history = History(shown=False)
    history.job("one")
    name = history.until_runs("one", "Job")
    worker, due = history.workers[name], list[Callable[[], object]]()
    monkeypatch.setattr(disasters, "a_worker", lambda _: (name, worker))
    monkeypatch.setattr(disasters, "later", lambda _world, act, *_: due.append(act))
    assert disasters.worker_restored(history.world)
    history.cut(name)
    history.until_lost(name)
    for agent in history.world.alive(name):
        agent.kill()
    history.edit(name, JOB, "one", {"metadata": {"finalizers": None}})
    history.delete(name, JOB, "one")
    history.until("nothing runs there", lambda: not history.runs("one", "Job"))
    history.say_fenced(name)
    due.pop(0)()
    assert worker.restores == 0, "its copy runs what a person has said will not run"
    history.until("it runs elsewhere by that word", lambda: history.containers("one", "Job") > 0)
    due.pop(0)()
    assert worker.restores == 1, "it is only put off"
    history.passes(30.0)


@pytest.mark.parametrize("replaced", [True, False])
def test_hd_244_who_restores_says_so_where_another_cluster_has_a_name_since(
    monkeypatch: pytest.MonkeyPatch, *, replaced: bool
) -> None:
    """Drawn seed 8916198: it was connected, and could prove nothing of what had run under its name."""
    history = History(shown=False)
    world, due, said = history.world, list[Callable[[], object]](), list[object]()
    for name in world.names:
        history.until_connected(name)
    monkeypatch.setattr(disasters, "later", lambda _world, act, *_: due.append(act))
    monkeypatch.setattr(disasters, "say_restored", said.append)
    monkeypatch.setattr(disasters, "status_of", lambda *_: {"session": 1, "connected": True})
    assert disasters.home_restored(world)
    if replaced:
        world.workers["a"] = world.workers["b"]
    due.pop(0)()
    assert bool(said) is replaced


def test_hd_52_a_seed_draws_a_few_attacks_and_each_has_its_share() -> None:
    rng = random.Random(0)  # noqa: S311 (a simulation's chance, no secret)
    drawn = [drawn_attacks(rng) for _ in range(2000)]
    assert {name for names in drawn for name in names} == {*DRAWN}
    assert {len(names) for names in drawn} == {*range(DRAWN_AT_ONCE_MAX + 1)}


def test_hd_52_an_attack_that_no_seed_draws_says_why() -> None:
    assert {*DRAWN} == {name for name, each in ATTACKS.items() if not each.off}
    assert all(len(each.off) > 10 for each in ATTACKS.values() if each.off)


def test_hd_51_processes_have_clocks_of_their_own_that_drift() -> None:
    world = SimWorld(1, replace(STEADY, faults=Faults(clock_drift=CLOCK_DRIFT_MAX)))
    agents = [each for name in world.names for each in world.alive(name)]
    clocks = [each.process.clock for each in world.managers] + [each.process.clock for each in agents]
    assert len({clock.offset for clock in clocks}) == len(clocks)
    assert len({clock.rate for clock in clocks}) == len(clocks)
    assert all(abs(clock.rate - 1.0) <= CLOCK_DRIFT_MAX for clock in clocks)
    assert world.managers[0].local.process.clock is world.managers[0].process.clock, "one process, one clock"


def test_hd_51_a_second_of_a_fast_clock_is_shorter() -> None:
    fast = ProcessClock(offset=7.0, rate=1.01)
    assert fast.at(100.0) == pytest.approx(108.0)
    assert fast.lasts(10.1) == pytest.approx(10.0)
    assert Timeline(0).clock(0.0) == ProcessClock()


def test_hd_56_what_was_lived_through_is_counted_by_what_was_done() -> None:
    lived = Lived()
    lived.add(live_some(range(3)))
    assert lived.histories == 3
    assert not lived.failed
    assert lived.counts.total() > lived.within.total() > 0
    told = table(lived, 0, 1.0)
    assert "3 histories, seeds 0 to 2" in told
    assert all(name in told for name in ATTACKS)
