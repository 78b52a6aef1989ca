"""Groups among all else that a simulated installation lives through (PG-32), and rules of them that are missed (PG-33).

`python -m support.sim.many --first 1000000` lives through many more: seeds from there on have groups.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gatelift.core.dispatching import endings, placing
from gatelift.core.records.attempt_states import Wire
from gatelift.core.records.attempts import Attempt, Ending, Outcome
from gatelift.core.rules import shares
from gatelift.core.state.core import Core
from gatelift_agent.core.advancing import room
from gatelift_agent.core.placement.placements import Placement
from gatelift_agent.core.state.world import World
from gatelift_kinds.pod_group import slots
from gatelift_kinds.pod_group.elsewhere import RunsElsewhere
from gatelift_kinds.pod_group.kind import PodGroupKind
from gatelift_kinds.pod_group.member import MemberState
from support.sim.faults import Faults
from support.sim.truth import TruthError
from support.sim.world import GROUPS_FROM, PLANS, Plan, SimWorld

SEEDS = tuple(range(17))
TRIES = 24
"""Histories that a removed rule may hide in, from the one on that is named: there are rules that few of them need."""
MANY = 4096

Take = Callable[[pytest.MonkeyPatch], None]


def lived(seed: int) -> SimWorld:
    """Live through a history with groups, without attacks."""
    return SimWorld(GROUPS_FROM + seed, PLANS[seed % len(PLANS)]).run()


@pytest.mark.parametrize("seeds", [SEEDS[first::4] for first in range(4)], ids=repr)
def test_pg_32_re_1_qr_11_groups_run_once_within_their_grant_and_all_of_them_end(seeds: tuple[int, ...]) -> None:
    """Per user's pod, per pod set, charged; each group ends, or stands where the rules say."""
    worlds = [lived(seed) for seed in seeds]
    assert sum(world.members.checks for world in worlds) > 100
    assert sum(world.counts["groups_plain"] for world in worlds)


def test_hd_389_what_stops_at_a_worker_is_charged_when_its_group_is_gone_at_home() -> None:
    """The drawn history that has shown it."""
    SimWorld(GROUPS_FROM + 39, Plan(faults=Faults(), break_every=0.0)).run()


def succeeded_runs_again(patch: pytest.MonkeyPatch) -> None:
    """Take all that a Workload names for what may run, also what was over before."""
    placed = RunsElsewhere.placed
    patch.setattr(RunsElsewhere, "placed", lambda self, key, over: placed(self, key, dict.fromkeys(over, False)))


def leaving_gives_its_slot_up(patch: pytest.MonkeyPatch) -> None:
    """Count a slot as free while its pod leaves, at both ends."""
    before = slots.places

    def places(role: Any, granted: int) -> Any:
        return before(role, granted + role.counts[MemberState.LEAVING])

    def free(world: World, placement: Placement, now: float) -> dict[str, int]:
        going = [each for each in placement.objects.values() if each.object and each.object.metadata.deletion_timestamp]
        left = room.__dict__["whole"](world, placement, now)
        for each in going:
            left[each.pod_set] = left.get(each.pod_set, 0) + 1
        return dict(left)

    patch.setattr(slots, "places", places)
    patch.setitem(room.__dict__, "whole", room.free)
    patch.setattr(room, "free", free)


def surplus_is_let_go(patch: pytest.MonkeyPatch) -> None:
    """Let go whoever waits, at both ends."""
    patch.setattr(slots, "surplus", lambda *_: ())
    patch.setattr(slots, "surplus_of_all", lambda *_: ())
    patch.setattr(slots, "to_fill", lambda role, *_: tuple(rank[-1] for rank in role.waiting.between(0, MANY)))
    patch.setattr(room, "free", lambda _world, placement, _now: {one.name: MANY for one in placement.pod_sets})


def stopped_while_a_member_runs(patch: pytest.MonkeyPatch) -> None:
    """Take a pod for stopped once it is deleted."""
    patch.setattr(PodGroupKind, "stopped", lambda _, obj, *__: obj.metadata.deletion_timestamp is not None)


def the_next_epoch_does_not_wait(patch: pytest.MonkeyPatch) -> None:
    """Go on to the next epoch of a group without its cluster's word."""
    stop = placing.stop

    def at_once(core: Core, attempt: Attempt, ending: Ending, now: float) -> None:
        known = core.knowledge.workloads.get(attempt.workload)
        if known is None or core.knowledge.work_of(known).gathered is None:
            stop(core, attempt, ending, now)
            return
        endings.end(core, attempt, Wire.STOPPED, Outcome(how=Wire.STOPPED, cluster=attempt.cluster))

    patch.setattr(placing, "stop", at_once)


def more_is_given_back_than_is_over(patch: pytest.MonkeyPatch) -> None:
    """Give back the quota of one member more than are over."""
    before = shares.over

    def over(*args: Any) -> dict[str, int]:
        return {name: count + 1 for name, count in before(*args).items()}

    patch.setattr(shares, "over", over)


@pytest.mark.parametrize(
    ("take", "first"),
    [
        pytest.param(succeeded_runs_again, 26, id="a member that succeeded is let go again"),
        pytest.param(leaving_gives_its_slot_up, 88, id="a slot is free while its pod leaves"),
        pytest.param(surplus_is_let_go, 0, id="a surplus member is let go"),
        pytest.param(stopped_while_a_member_runs, 0, id="stopped is said while a member runs"),
        pytest.param(the_next_epoch_does_not_wait, 0, id="the next epoch does not wait for the one before"),
        pytest.param(more_is_given_back_than_is_over, 0, id="a running member's quota is given back"),
    ],
)
def test_pg_33_a_rule_of_groups_that_is_removed_is_missed(
    take: Take, first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    take(monkeypatch)
    assert any(_breaks(seed) for seed in range(first, first + TRIES))


def _breaks(seed: int) -> bool:
    try:
        lived(seed)
    except TruthError:
        return True
    return False
