"""Groups at home under random hands (PG-31, PG-32): evicted, replaced, deleted, their leader killed.

Seeded. The outside check of each world judges every write; beside it: what runs is charged or released, and with its
Workload and its pods deleted nothing of a group is left.
"""

from __future__ import annotations

import os
from random import Random

import pytest

from gatelift_kinds.registry import WITH_GROUPS
from gatelift_kube.values.resources import POD, WORKLOAD
from support.manager.group_world import GROUP
from support.sim import groups_at_home as groups
from support.sim.agent import SimAgent
from support.sim.groups_at_home import make, names, running, theirs
from support.sim.history import History
from support.sim.manager import SimManager
from support.sim.objects import is_released

RUNS = int(os.environ.get("GATELIFT_GROUP_RUNS", "12"))
STEPS = 8


@pytest.fixture(autouse=True)
def with_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have managers and agents serve groups."""
    monkeypatch.setattr(SimManager, "kinds", WITH_GROUPS)
    monkeypatch.setattr(SimAgent, "registry", WITH_GROUPS)


class Hands:
    """What a user, a person and bad luck do to one group."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)  # noqa: S311 (a simulation's chance, no secret)
        self.history, self.made = History(seed, shown=False), 0

    def member(self) -> None:
        self.made += 1
        runs, stops = self.random.choice((0.0, 5.0, 30.0)), self.random.choice((0.0, 0.0, 8.0))
        fails = self.random.choice((0, 0, 1))
        make(self.history, f"m{self.made:03}", seconds=runs, stops_in=stops, exit_code=fails, at_once=True)

    def replace(self) -> None:
        for _ in range(self.random.choice((1, 2, 3))):
            self.member()

    def activate(self) -> None:
        if theirs(self.history) is not None:
            self.history.edit("home", WORKLOAD, GROUP, {"spec": {"active": self.random.random() < 0.6}})

    def delete_some(self) -> None:
        for name in names(self.history):
            if self.random.random() < 0.4:
                self.history.delete("home", POD, name)

    def delete_workload(self) -> None:
        if theirs(self.history) is not None and self.random.random() < 0.4:
            self.history.delete("home", WORKLOAD, GROUP)

    def kill(self) -> None:
        if self.history.leads():
            self.history.kill_leader()

    def step(self) -> None:
        one = self.random.choice(
            (
                self.replace,
                self.replace,
                self.activate,
                self.activate,
                self.delete_some,
                self.delete_workload,
                self.kill,
            )
        )
        one()
        self.history.passes(self.random.choice((0.02, 0.3, 2.0, 15.0)))
        self.check()

    def check(self) -> None:
        """Check that what runs is charged, or was released while it stops."""
        found = theirs(self.history)
        if not self.history.leads() or (found is not None and is_released(found)):
            return
        assert self.history.leader.charges("stays") >= 500 * len(running(self.history))

    def delete_all(self) -> bool:
        for name in names(self.history):
            self.history.delete("home", POD, name)
        if theirs(self.history) is not None:
            self.history.delete("home", WORKLOAD, GROUP)
        self.history.passes(5.0)
        return not names(self.history) and theirs(self.history) is None


@pytest.mark.parametrize("seed", range(RUNS))
def test_pg_32_a_group_under_random_hands_is_charged_while_it_runs_and_leaves_nothing(seed: int) -> None:
    hands = Hands(seed)
    for _ in range(3):
        hands.member()
    hands.history.passes(3.0)
    for _ in range(STEPS):
        hands.step()
    hands.history.until("a manager leads", hands.history.leads, 120.0)
    assert any(hands.delete_all() for _ in range(60)), (names(hands.history), groups.held(hands.history))
    assert hands.history.leader.charges("stays") == 0
