"""What goes wrong: a cut, an agent that dies, another leader, and writes that land late."""

from __future__ import annotations

from support.sizes_model.home import followed, landed
from support.sizes_model.state import QUIET, ModelState, Rules, SizeRule, Steps
from support.sizes_model.worker import apply


def steps(state: ModelState, rules: Rules) -> Steps:
    """Return each of them that can come next."""
    yield from late_writes(state)
    budget = state.budget
    if state.wire.is_open and budget.cuts:
        yield "cut", closed(state)._replace(budget=budget._replace(cuts=0))
    if not state.wire.is_open and state.agent.is_up:
        yield "the agent connects", state._replace(wire=QUIET._replace(is_open=True))
    if state.agent.is_up and budget.crashes:
        down = state.agent._replace(is_up=False, size=0, counts=(0, 0), confirmed=False, stopping=False)
        job, edit = state.job, state.job.edit
        job = job if edit is None else job._replace(edit=edit._replace(mine=False))
        dead = state._replace(agent=down, wire=QUIET, job=job, budget=budget._replace(crashes=0))
        yield "the agent dies", dead
    if not state.agent.is_up and (state.job.edit is None or SizeRule.REPLICA_WAITS not in rules):
        job = state.job
        found = state.agent._replace(is_up=True, size=job.size, counts=job.counts, stopping=job.suspended)
        yield "another replica begins", state._replace(agent=found)
    if budget.takeovers:
        yield "another manager leads", led_by_another(state, rules)


def closed(state: ModelState) -> ModelState:
    """Return a state without a session: what was said in it is dropped, and nothing is confirmed (R1, R6)."""
    return state._replace(wire=QUIET, agent=state.agent._replace(confirmed=False))


def led_by_another(state: ModelState, rules: Rules) -> ModelState:
    """Return a state with a new leader, which has written the record before it does anything (R3)."""
    home = state.home
    late = None if home.late is None else home.late._replace(mine=False)
    after = closed(state)._replace(home=home._replace(late=late), budget=state.budget._replace(takeovers=0))
    found = followed(home, rules)
    return after if found is None else landed(after, *found)


def late_writes(state: ModelState) -> Steps:
    """Return what becomes of writes that are on their way; one that never lands is as one that was not begun."""
    late, edit = state.home.late, state.job.edit
    if late is not None:
        gone = state._replace(home=state.home._replace(late=None))
        yield "the late write at home lands", landed(gone, late.place, late.value)
    if edit is not None:
        without = state.job._replace(edit=None)
        yield "the late write at the worker lands", state._replace(job=apply(without, edit))
