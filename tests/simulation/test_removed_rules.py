"""Rules that are removed are missed: without this the promise of all other runs would say little.

Each case takes one rule of docs/protocol.md out of the cores that ship; some seed has to show that a promise breaks.
Rules whose counterexample needs a rarer meeting of faults are held by the replayed counterexamples instead.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gatelift.core.dispatching import endings, placing
from gatelift.core.records.attempt_states import Wire
from gatelift.core.records.attempts import Attempt, Ending, Outcome
from gatelift.core.state.core import Core
from gatelift_agent.core.leaving import draining
from gatelift_agent.core.placement.placements import Placement
from gatelift_agent.core.refusing import starting
from gatelift_agent.core.seeing import orphans
from gatelift_agent.core.state.world import World
from support.sim.truth import TruthError
from support.sim.world import PLANS, SIEGE, Plan, SimWorld

TRIES = 40
"""Seeds that a removed rule may hide in; most are missed in the first ten."""

Take = Callable[[pytest.MonkeyPatch], None]


def no_confirmation(patch: pytest.MonkeyPatch) -> None:
    """Start without a session and a confirmation."""

    def why_not(world: World, _placement: Placement, now: float) -> str:
        return "" if world.leadership.acts(now) else "not leading"

    patch.setattr(starting, "why_not", why_not)


def pods_are_not_waited_for(patch: pytest.MonkeyPatch) -> None:
    """Say stopped of a Job while pods of it run."""
    patch.setattr(orphans, "left_run", lambda *_: False)
    patch.setattr(draining, "_no_pod_unseen", lambda *_: True)


def released_is_fenced(patch: pytest.MonkeyPatch) -> None:
    """Go on to the next epoch without the cluster's word."""

    def stop(core: Core, attempt: Attempt, _ending: Ending, _now: float) -> None:
        endings.end(core, attempt, Wire.STOPPED, Outcome(how=Wire.STOPPED, cluster=attempt.cluster))

    patch.setattr(placing, "stop", stop)


@pytest.mark.parametrize(
    ("take", "plan"),
    [
        pytest.param(no_confirmation, SIEGE, id="R1, start without session and confirmation"),
        pytest.param(pods_are_not_waited_for, None, id="R7, a Job's pods are not waited for"),
        pytest.param(released_is_fenced, None, id="P1, released counts as fenced"),
    ],
)
def test_a_rule_that_is_removed_is_missed(take: Take, plan: Plan | None, monkeypatch: pytest.MonkeyPatch) -> None:
    take(monkeypatch)
    assert any(_breaks(seed, plan) for seed in range(TRIES))


def _breaks(seed: int, plan: Plan | None) -> bool:
    try:
        SimWorld(seed, plan or PLANS[seed % len(PLANS)]).run()
    except TruthError:
        return True
    return False
