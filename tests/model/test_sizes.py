"""Sizes of elastic work under every history of a bounded space (SL-82), and what each rule is for (SL-40 to SL-48).

Taking one rule out, while all others hold, gives the shortest history in which more may run than is charged, or in
which there is not one record. Counts are of the two pod sets, `2+1`; a command is said as soon as the record says it.
`(slow)` is a write that is on its way until it lands. docs/protocol.md has the rules.
"""

from __future__ import annotations

import pytest

from support.sizes_model.checker import check
from support.sizes_model.needed import NEEDED, NOTHING
from support.sizes_model.rest import stuck
from support.sizes_model.state import ALL_RULES, NONE, Budget, ModelState, Rules, SizeRule, record_of, running

SPACES = {
    "one change of size, and one of each fault": (Budget(wishes=1), 100_000),
    "three changes of size": (NOTHING._replace(wishes=3), 20_000),
    "two changes, another manager, a slow write at home": (
        NOTHING._replace(wishes=2, takeovers=1, slow_home=1),
        20_000,
    ),
    "two changes, a cut, another replica, a slow write at the worker": (
        NOTHING._replace(wishes=2, cuts=1, crashes=1, slow_worker=1),
        100_000,
    ),
    "two changes, an eviction, another manager": (NOTHING._replace(wishes=2, evictions=1, takeovers=1), 20_000),
    "a change that other checks are asked about, an eviction, another manager, a slow write at home": (
        NOTHING._replace(wishes=1, asked=1, verdicts=1, evictions=1, takeovers=1, slow_home=1),
        2_000,
    ),
    "two changes that other checks are asked about": (NOTHING._replace(wishes=2, asked=1, verdicts=1), 10_000),
}


@pytest.mark.parametrize("space", SPACES)
def test_sl_82_with_all_rules_no_more_may_run_than_is_charged_and_there_is_one_record(space: str) -> None:
    budget, at_least = SPACES[space]
    checked = check(budget)
    print(f"{space}: {checked.states} states")  # noqa: T201 - how much was looked at is what a reader asks first
    assert checked.trace == ()
    assert checked.states > at_least, "a space that shrank says less than it did"


@pytest.mark.parametrize(
    "budget",
    [
        pytest.param(NOTHING._replace(wishes=2), id="two changes of size"),
        pytest.param(NOTHING._replace(wishes=1, cuts=1, slow_home=1), id="a cut and a slow write at home"),
        pytest.param(NOTHING._replace(wishes=1, evictions=1, takeovers=1), id="an eviction and another manager"),
        pytest.param(NOTHING._replace(wishes=1, crashes=1, slow_worker=1), id="another replica and a slow write"),
        pytest.param(
            NOTHING._replace(wishes=1, asked=1, verdicts=1, evictions=1, takeovers=1),
            id="other checks, an eviction and another manager",
        ),
    ],
)
def test_sl_82_nothing_waits_for_what_can_never_come(budget: Budget) -> None:
    assert stuck(budget) == []


def grown_and_shrunk(state: ModelState) -> str:
    """Say that 1+1 has grown, shrunk to 1+0, and given back all that it does not need."""
    found = record_of(state.home)
    at_rest = found is not None and found[1].size == 3 and found[1].charged == (1, 0) and None in state.home.slices
    return "there" if at_rest and running(state.job) == (1, 0) and state.job.gated == NONE else ""


def evicted_with_a_target(state: ModelState) -> str:
    """Say that nothing runs or is charged, and both slices wait."""
    return "there" if record_of(state.home) is None and None not in state.home.slices else ""


def test_sl_82_what_is_meant_to_happen_can_happen() -> None:
    assert check(NOTHING._replace(wishes=2), looked_for=grown_and_shrunk).trace[-1:] == ("there",)
    evicted = check(NOTHING._replace(wishes=1, evictions=1), looked_for=evicted_with_a_target)
    assert evicted.trace[-2:] == ("manager releases all and raises the epoch", "there")
    asked = NOTHING._replace(wishes=2, asked=1, verdicts=1)
    assert check(asked, looked_for=grown_and_shrunk).trace[-1:] == ("there",)


@pytest.mark.parametrize("name", NEEDED)
def test_sl_82_without_one_rule_a_promise_is_broken_in_this_way(name: str) -> None:
    """SL-40, SL-41, SL-42, SL-43, SL-44, SL-45, SL-46, SL-47, SL-48: `support.sizes_model.needed` has the histories."""
    needed = NEEDED[name]
    rules: Rules = ALL_RULES - {needed.rule}
    assert check(needed.budget, rules).trace == needed.lines()


def test_sl_82_each_of_the_nine_rules_is_taken_out_alone() -> None:
    assert {needed.rule for needed in NEEDED.values()} == set(SizeRule)
    assert {rule.value[0] for rule in SizeRule} == set("123456789")
