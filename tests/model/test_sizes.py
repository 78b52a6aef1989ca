"""Sizes of elastic work under every history of a bounded space (SL-82), and what each rule is for (SL-40 to SL-48).

Taking one rule out, while all others hold, gives the shortest history in which more may run than is charged, or in
which there is not one record. Counts are of the two pod sets, `2+1`; a command is said as soon as the record says it.
`(slow)` is a write that is on its way until it lands. docs/protocol.md has the rules.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from support.sizes_model.checker import check
from support.sizes_model.rest import stuck
from support.sizes_model.state import ALL_RULES, NONE, Budget, ModelState, Rules, SizeRule, record_of, running

NOTHING = Budget(wishes=0, evictions=0, cuts=0, crashes=0, takeovers=0, slow_home=0, slow_worker=0)
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
    "SL-33: a change about which checks are asked, an eviction, another manager, a slow write": (
        NOTHING._replace(wishes=1, evictions=1, takeovers=1, slow_home=1, checks=1),
        1_000,
    ),
    "two changes, an eviction, another manager": (NOTHING._replace(wishes=2, evictions=1, takeovers=1), 20_000),
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
        pytest.param(NOTHING._replace(wishes=1, evictions=1, takeovers=1, checks=1), id="SL-33: checks are asked"),
        pytest.param(NOTHING._replace(wishes=1, crashes=1, slow_worker=1), id="another replica and a slow write"),
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


@dataclass(frozen=True)
class Needed:
    """A rule, or half of one, and the shortest history without it."""

    rule: SizeRule
    budget: Budget
    transcript: str

    def lines(self) -> tuple[str, ...]:
        return tuple(line.strip() for line in self.transcript.strip().splitlines())


NEEDED = {
    "SL-40": Needed(
        SizeRule.ONE_RECORD,
        NOTHING._replace(wishes=2, takeovers=1, slow_home=1),
        """
        user asks for 2+1
        manager has target ask for 2+1
        user asks for 1+0
        manager makes target the record: size 2, 2+1 charged (slow)
        another manager leads
        manager lowers the record: size 2, 1+0 wanted, 1+1 charged
        the late write at home lands
        !! two records of size 2
        """,
    ),
    "SL-40 eviction": Needed(
        SizeRule.ONE_RECORD,
        NOTHING._replace(wishes=1, evictions=1, takeovers=1, slow_home=1),
        """
        user asks for 2+1
        manager has target ask for 2+1
        manager makes target the record: size 2, 2+1 charged (slow)
        another manager leads
        a person sees no pod and says fenced
        manager releases all and raises the epoch
        the late write at home lands
        !! a record of epoch 1, which has ended
        """,
    ),
    "SL-41": Needed(
        SizeRule.CHARGE_FOLLOWS_ANSWER,
        NOTHING._replace(wishes=1),
        """
        user asks for 1+0
        manager lowers the record: size 2, 1+0 wanted, 1+0 charged
        agent lifts a pod of set 1
        !! 0+1 may run, 1+0 charged
        """,
    ),
    "SL-42": Needed(
        SizeRule.NO_DEADLINE,
        NOTHING._replace(wishes=1),
        """
        user asks for 2+1
        manager has target ask for 2+1
        manager makes target the record: size 2, 2+1 charged
        a deadline takes back the slice of size 2
        agent takes size 2
        agent sets the Job to size 2, 2+1
        agent lifts a pod of set 0
        agent lifts a pod of set 0
        !! 2+0 may run, 1+1 charged
        """,
    ),
    "SL-43": Needed(
        SizeRule.SIZES_GO_UP,
        NOTHING._replace(wishes=1),
        """
        user asks for 1+0
        manager lowers the record: size 2, 1+0 wanted, 1+1 charged
        agent takes size 2
        agent sets the Job to size 2, 1+0
        agent answers size 2
        manager takes the answer of size 2: 1+0 charged
        agent takes size 1
        agent sets the Job to size 1, 1+1
        agent lifts a pod of set 1
        !! 0+1 may run, 1+0 charged
        """,
    ),
    "SL-44": Needed(
        SizeRule.ANSWER_NAMES_SIZE,
        NOTHING._replace(wishes=1),
        """
        user asks for 1+0
        manager lowers the record: size 2, 1+0 wanted, 1+1 charged
        agent answers size 1
        manager takes the answer of size 1: 1+0 charged
        agent lifts a pod of set 1
        !! 0+1 may run, 1+0 charged
        """,
    ),
    "SL-45 pods": Needed(
        SizeRule.ANSWER_WAITS_FOR_PODS,
        NOTHING._replace(wishes=1),
        """
        user asks for 1+0
        manager lowers the record: size 2, 1+0 wanted, 1+1 charged
        agent lifts a pod of set 1
        agent takes size 2
        agent sets the Job to size 2, 1+0
        agent answers size 2
        manager takes the answer of size 2: 1+0 charged
        !! 0+1 may run, 1+0 charged
        """,
    ),
    "SL-45 writes": Needed(
        SizeRule.ANSWER_WAITS_FOR_WRITES,
        NOTHING._replace(wishes=1, crashes=1),
        """
        user asks for 1+0
        manager lowers the record: size 2, 1+0 wanted, 1+1 charged
        agent lifts a pod of set 1
        agent takes size 2
        a pod of set 1 fails
        agent answers size 2
        manager takes the answer of size 2: 1+0 charged
        the agent dies
        another replica begins
        agent lifts a pod of set 1
        !! 0+1 may run, 1+0 charged
        """,
    ),
    "SL-46 in flight": Needed(
        SizeRule.LIFTS_IN_FLIGHT_COUNT,
        NOTHING._replace(wishes=2, slow_worker=1),
        """
        user asks for 2+1
        manager has target ask for 2+1
        user asks for 1+0
        manager makes target the record: size 2, 2+1 charged
        manager finishes the slice of size 1
        manager lowers the record: size 3, 1+0 wanted, 2+1 charged
        agent takes size 2
        agent sets the Job to size 2, 2+1
        agent takes size 3
        agent sets the Job to size 3, 1+0
        agent answers size 3
        manager takes the answer of size 3: 1+0 charged
        agent lifts a pod of set 0 (slow)
        agent lifts a pod of set 0
        !! 2+0 may run, 1+0 charged
        """,
    ),
    "SL-46 terminating": Needed(
        SizeRule.TERMINATING_COUNTS,
        NOTHING._replace(wishes=2),
        """
        user asks for 1+0
        manager lowers the record: size 2, 1+0 wanted, 1+1 charged
        user asks for 2+1
        manager has target ask for 2+1
        manager makes target the record: size 3, 2+1 charged
        agent lifts a pod of set 1
        agent takes size 2
        agent sets the Job to size 2, 1+0
        agent takes size 3
        a running pod of set 1 is deleted
        agent sets the Job to size 3, 2+1
        agent lifts a pod of set 1
        !! 0+2 may run, 2+1 charged
        """,
    ),
    "SL-47": Needed(
        SizeRule.REPLICA_WAITS,
        NOTHING._replace(wishes=2, crashes=1, slow_worker=1),
        """
        user asks for 2+1
        manager has target ask for 2+1
        user asks for 1+0
        manager makes target the record: size 2, 2+1 charged
        manager finishes the slice of size 1
        manager lowers the record: size 3, 1+0 wanted, 2+1 charged
        agent takes size 2
        agent sets the Job to size 2, 2+1
        agent takes size 3
        agent sets the Job to size 3, 1+0
        agent answers size 3
        manager takes the answer of size 3: 1+0 charged
        agent lifts a pod of set 0 (slow)
        the agent dies
        another replica begins
        the agent connects
        agent takes size 3
        agent lifts a pod of set 0
        !! 2+0 may run, 1+0 charged
        """,
    ),
    "SL-48": Needed(
        SizeRule.OPENING_IS_CONFIRMED,
        NOTHING._replace(cuts=1),
        """
        cut
        a person sees no pod and says fenced
        manager releases all and raises the epoch
        agent lifts a pod of set 0
        !! 1+0 may run, 0+0 charged
        """,
    ),
}


@pytest.mark.parametrize("name", NEEDED)
def test_sl_82_without_one_rule_a_promise_is_broken_in_this_way(name: str) -> None:
    needed = NEEDED[name]
    rules: Rules = ALL_RULES - {needed.rule}
    assert check(needed.budget, rules).trace == needed.lines()


def test_sl_82_each_of_the_nine_rules_is_taken_out_alone() -> None:
    assert {needed.rule for needed in NEEDED.values()} == set(SizeRule)
    assert {rule.value[0] for rule in SizeRule} == set("123456789")
