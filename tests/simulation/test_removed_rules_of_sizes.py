"""Rules of sizes that are taken out are missed by drawn histories with users that resize (SL-83).

Each case takes one rule out of the cores that ship, of manager or agent; some seed has to show that more may run than
is charged, or that one run is charged twice. `support.sim.size_bugs` has them, and finds the seeds. Walks of one chain
and of one placement have their own: `tests/manager/test_chain_walks.py`, `tests/agent/test_agent_size_walks.py`.
"""

from __future__ import annotations

import pytest

from support.sim.size_bugs import BUGS, FOUND, MOST, what_breaks

TRIES = 12
"""Histories from the one on that is pinned: others are drawn alike when something else of the cores changes."""


@pytest.mark.parametrize("name", FOUND)
def test_sl_83_a_rule_of_sizes_that_is_removed_is_missed(name: str) -> None:
    first = FOUND[name]
    assert any(what_breaks(name, seed) for seed in range(first, first + TRIES))


def test_sl_83_at_least_ten_are_found_within_two_thousand_histories() -> None:
    assert len(FOUND) >= 10
    assert FOUND.keys() <= BUGS.keys()
    assert max(FOUND.values()) < MOST
