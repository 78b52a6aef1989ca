"""Fewer states for the same histories: what only allows more is done at once, what has no effect is left out.

- Pods are made at once: that a gated pod is there only allows more. So what the Job controller is slow in is deleting.
- What the record says is said at once: delivery is what may be late, or never come.
- A message that can have no effect any more is forgotten; only where the rule is in force by which it has none.
"""

from __future__ import annotations

from functools import lru_cache

from support.sizes_model.home import followed, said
from support.sizes_model.state import (
    POD_SETS,
    QUIET,
    Agent,
    Home,
    ModelState,
    Rules,
    SizeRule,
    Wire,
    WorkerJob,
    changed,
)
from support.sizes_model.worker import taken

NOTHING: frozenset[int] = frozenset()


def settled(state: ModelState, rules: Rules) -> ModelState:
    """Return the state that stands for this one."""
    return state._replace(job=_made(state.job), wire=_heard(state.home, state.wire, state.agent, rules))


def _made(job: WorkerJob) -> WorkerJob:
    gated = job.gated
    for pod_set in POD_SETS:
        missing = job.counts[pod_set] - gated[pod_set] - job.lifted[pod_set]
        if missing > 0:
            gated = changed(gated, pod_set, missing)
    return job if gated == job.gated else job._replace(gated=gated)


@lru_cache(maxsize=1 << 16)
def _heard(home: Home, wire: Wire, agent: Agent, rules: Rules) -> Wire:
    if not wire.is_open:
        return QUIET
    commands = wire.commands | {said(home, rules)}
    if SizeRule.SIZES_GO_UP in rules:
        commands = frozenset(each for each in commands if taken(agent, each, rules) != agent)
    answers = wire.answers
    found = followed(home, rules)
    if found is None:
        answers = NOTHING
    elif answers and SizeRule.ANSWER_NAMES_SIZE in rules:
        answers = frozenset(each for each in answers if each in {0, found[1].size})
    return Wire(is_open=True, commands=commands, answers=answers)
