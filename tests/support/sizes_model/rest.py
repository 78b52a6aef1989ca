"""Looks for states of the model from which it can come to no rest any more, whatever happens next.

At rest the chain has what its user asks for, is charged for just that and runs it, or nothing of it is left at the
worker. It is not said that it comes to rest by itself, but that nothing waits for what can never come.
"""

from __future__ import annotations

from collections import defaultdict, deque

from support.sizes_model.checker import steps_of
from support.sizes_model.settled import settled
from support.sizes_model.state import ALL_RULES, NONE, Budget, ModelState, begin, record_of, running


def stuck(budget: Budget) -> list[ModelState]:
    """Return each state within a budget from which no rest can be reached."""
    first = settled(begin(budget), ALL_RULES)
    before: dict[ModelState, list[ModelState]] = defaultdict(list)
    seen, waiting = {first}, deque([first])
    while waiting:
        state = waiting.popleft()
        for _, step in steps_of(state, ALL_RULES):
            after = settled(step, ALL_RULES)
            before[after].append(state)
            if after not in seen:
                seen.add(after)
                waiting.append(after)
    good = {state for state in seen if at_rest(state)}
    waiting = deque(good)
    while waiting:
        for state in before[waiting.popleft()]:
            if state not in good:
                good.add(state)
                waiting.append(state)
    return [state for state in seen if state not in good]


def at_rest(state: ModelState) -> bool:
    """Say whether all that was asked for is so, or nothing is left."""
    home, job = state.home, state.job
    if home.late is not None or job.edit is not None:
        return False
    found = record_of(home)
    if found is None:
        reserved = any(each is not None and each.reserved for each in home.slices)
        return not reserved and job.gated == job.lifted == job.terminating == NONE
    record = found[1]
    wanted = home.wish == record.spec == record.charged and None in home.slices and not record.ending
    return wanted and job.counts == running(job) == record.spec and job.gated == NONE
