"""Sizes under random words and faults, with the agent's own core; and rules that are missed when they are taken out.

`python -m support.agent.size_walks --first 1000 --count 10000` walks many more.
"""

from __future__ import annotations

import pytest

from support.agent import size_rules
from support.agent.size_account import SizeTruthError
from support.agent.size_walks import SizeWalk

SEEDS = tuple(range(60))
TRIES = 60
"""Walks that a removed rule may hide in."""


@pytest.mark.parametrize("seeds", [SEEDS[first::4] for first in range(4)], ids=repr)
def test_sl_83_no_more_may_run_than_is_granted_and_each_answer_is_true(seeds: tuple[int, ...]) -> None:
    """SL-08 at one worker, SL-55: and with all trouble over the last size runs, and is answered."""
    walks = [SizeWalk(seed).live() for seed in seeds]
    assert sum(walk.account.checks for walk in walks) > 500
    assert sum(walk.number for walk in walks) > 100


@pytest.mark.parametrize(
    "take",
    [
        pytest.param(size_rules.numbers_are_not_compared, id="Size 4"),
        pytest.param(size_rules.answered_at_once, id="Size 6, surplus"),
        pytest.param(size_rules.answered_with_lifts_in_doubt, id="Size 6, lifts"),
        pytest.param(size_rules.answered_before_the_mark, id="Size 6, mark"),
        pytest.param(size_rules.lifts_in_flight_do_not_count, id="Size 7, in flight"),
        pytest.param(size_rules.who_stops_has_no_slot, id="Size 7, who stops"),
        pytest.param(size_rules.a_new_replica_starts_at_once, id="Size 8"),
        pytest.param(size_rules.slots_are_opened_without_a_word, id="Size 9"),
        pytest.param(size_rules.charged_by_the_wish, id="Size 2"),
        pytest.param(size_rules.any_answer_counts, id="Size 5"),
    ],
)
def test_sl_83_a_rule_of_sizes_that_is_removed_is_missed(
    take: size_rules.Take, monkeypatch: pytest.MonkeyPatch
) -> None:
    take(monkeypatch)
    assert any(map(_breaks, range(TRIES)))


def _breaks(seed: int) -> bool:
    try:
        SizeWalk(seed).live()
    except SizeTruthError:
        return True
    return False
