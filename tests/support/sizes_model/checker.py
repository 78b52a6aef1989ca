"""Looks at every state that can be reached, breadth first, so that the first violation has the shortest trace."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from support.sizes_model import faults, home, worker
from support.sizes_model.settled import settled
from support.sizes_model.state import (
    ALL_RULES,
    Budget,
    ModelState,
    Rules,
    Steps,
    begin,
    charged,
    is_within,
    running,
    shown,
)

Reached = dict[ModelState, tuple[ModelState, str] | None]
"""Each state that was looked at, and the step by which it was reached first."""

LookedFor = Callable[[ModelState], str]


@dataclass(frozen=True, slots=True)
class Checked:
    """What a search came to: how many states, and the trace to what was looked for, empty without it."""

    states: int
    trace: tuple[str, ...]


def check(budget: Budget, rules: Rules = ALL_RULES, looked_for: LookedFor | None = None) -> Checked:
    """Look at all that can happen within a budget while these rules hold, for a violation or what else is looked for.

    A state is left out where one with the same in it and no less of the budget was reached: all that follows from the
    one follows from the other, which is no further from the beginning.
    """
    first = settled(begin(budget), rules)
    reached: Reached = {first: None}
    budgets = {first[:-1]: [first.budget]}
    waiting = deque([first])
    while waiting:
        state = waiting.popleft()
        for text, step in steps_of(state, rules):
            after = settled(step, rules)
            known = budgets.setdefault(after[:-1], [])
            if any(_covers(one, after.budget) for one in known):
                continue
            known.append(after.budget)
            reached[after] = (state, text)
            found = (looked_for or violation)(after)
            if found:
                return Checked(len(reached), (*_trace(reached, after), found))
            waiting.append(after)
    return Checked(len(reached), ())


def steps_of(state: ModelState, rules: Rules) -> Steps:
    """Return each step that can come next, anywhere."""
    yield from home.steps(state, rules)
    yield from worker.steps(state, rules)
    yield from faults.steps(state, rules)


def _covers(one: Budget, other: Budget) -> bool:
    return all(mine >= theirs for mine, theirs in zip(one, other, strict=True))


def violation(state: ModelState) -> str:
    """Name what must not be: more may run than is charged, or not one record."""
    may_run, paid = running(state.job), charged(state.home)
    if not is_within(may_run, paid):
        return f"!! {shown(may_run)} may run, {shown(paid)} charged"
    slices = [each for each in state.home.slices if each is not None]
    placed = [each for each in slices if each.placed]
    epoch = max((each.epoch for each in slices), default=0)
    if any(each.epoch < epoch for each in placed):
        return f"!! a record of epoch {placed[0].epoch}, which has ended"
    if len({each.size for each in placed}) < len(placed):
        return f"!! two records of size {placed[0].size}"
    return ""


def _trace(reached: Reached, last: ModelState) -> list[str]:
    texts: list[str] = []
    step = reached[last]
    while step is not None:
        texts.append(step[1])
        step = reached[step[0]]
    return texts[::-1]
