"""What happens at the worker: the agent, its writes to the Job and to gates, the Job controller and the kubelets."""

from __future__ import annotations

from collections.abc import Iterator

from support.sizes_model.state import (
    LET_GO_MAX,
    NONE,
    POD_SETS,
    Agent,
    Command,
    Counts,
    Edit,
    ModelState,
    Rules,
    SizeRule,
    Steps,
    WorkerJob,
    changed,
    is_within,
    lower_of,
    shown,
)


def steps(state: ModelState, rules: Rules) -> Steps:
    """Return each step that can come next there."""
    if state.agent.is_up:
        if state.wire.is_open:
            yield from takes(state, rules)
            yield from answers(state, rules)
        yield from edits_job(state)
        if not state.agent.stopping:
            yield from lifts(state, rules)
    yield from pods(state)


def takes(state: ModelState, rules: Rules) -> Steps:
    """Return what becomes of each command when it is delivered, also again."""
    agent = state.agent
    for command in sorted(state.wire.commands):
        after = taken(agent, command, rules)
        if after != agent:
            said = "stop" if command.size == 0 else f"size {command.size}"
            yield f"agent takes {said}", state._replace(agent=after)


def taken(agent: Agent, command: Command, rules: Rules) -> Agent:
    """Return what an agent knows after a command: a size above its own is taken, its own is confirmed."""
    if command.size == 0:
        return agent._replace(stopping=True)
    if agent.stopping:
        return agent
    if command.size == agent.size:
        return agent._replace(confirmed=True)
    if command.size > agent.size or SizeRule.SIZES_GO_UP not in rules:
        return agent._replace(size=command.size, counts=command.counts, confirmed=True)
    return agent


def answers(state: ModelState, rules: Rules) -> Steps:
    """Return the word that no more than this size can run, or that nothing can."""
    agent, job = state.agent, state.job
    if agent.stopping:
        empty = job.gated == job.lifted == job.terminating == NONE
        if job.suspended and empty and not _writes(state) and 0 not in state.wire.answers:
            yield "agent says stopped", _answered(state, 0)
        return
    if not agent.confirmed or agent.size in state.wire.answers:
        return
    if SizeRule.ANSWER_WAITS_FOR_WRITES in rules and (job.size != agent.size or _writes(state)):
        return
    if SizeRule.ANSWER_WAITS_FOR_PODS in rules and not is_within(_taken_slots(state, ALL_SLOTS), agent.counts):
        return
    yield f"agent answers size {agent.size}", _answered(state, agent.size)


def _answered(state: ModelState, size: int) -> ModelState:
    return state._replace(wire=state.wire._replace(answers=state.wire.answers | {size}))


def edits_job(state: ModelState) -> Steps:
    """Return the patch of the Job that carries size, counts and mark, or that suspends it."""
    agent, job = state.agent, state.job
    if job.edit is not None and job.edit.mine and job.edit.pod_set < 0:
        return
    if agent.stopping:
        if not job.suspended:
            yield from _edit(state, Edit(-1, agent.size, NONE, mine=True), "agent suspends the Job")
        return
    allowed = is_within(agent.counts, job.counts) or (agent.confirmed and state.wire.is_open)
    if job.size != agent.size and allowed:
        text = f"agent sets the Job to size {agent.size}, {shown(agent.counts)}"
        yield from _edit(state, Edit(-1, agent.size, agent.counts, mine=True), text)


def lifts(state: ModelState, rules: Rules) -> Steps:
    """Return each gate that may be taken off: as many as there are slots, by count."""
    agent, job = state.agent, state.job
    limit = lower_of(agent.counts, job.counts)
    if SizeRule.OPENING_IS_CONFIRMED in rules and not (agent.confirmed and state.wire.is_open):
        limit = lower_of(limit, job.let_go)
    slots = _taken_slots(state, rules)
    for pod_set in POD_SETS:
        if untouched(job, pod_set) and slots[pod_set] < limit[pod_set]:
            yield from _edit(state, Edit(pod_set, 0, NONE, mine=True), f"agent lifts a pod of set {pod_set}")


ALL_SLOTS: Rules = frozenset({SizeRule.LIFTS_IN_FLIGHT_COUNT, SizeRule.TERMINATING_COUNTS})


def _taken_slots(state: ModelState, rules: Rules) -> Counts:
    job = state.job
    slots = job.lifted
    if SizeRule.TERMINATING_COUNTS in rules:
        slots = (slots[0] + job.terminating[0], slots[1] + job.terminating[1])
    edit = job.edit
    if edit is not None and edit.mine and edit.pod_set >= 0 and SizeRule.LIFTS_IN_FLIGHT_COUNT in rules:
        slots = changed(slots, edit.pod_set, 1)
    return slots


def _writes(state: ModelState) -> bool:
    """Say whether a write is in flight or in doubt, a predecessor's as well."""
    return state.job.edit is not None


def _edit(state: ModelState, edit: Edit, text: str) -> Steps:
    yield text, state._replace(job=apply(state.job, edit))
    if state.budget.slow_worker and state.job.edit is None:
        spent = state.budget._replace(slow_worker=0)
        yield f"{text} (slow)", state._replace(job=state.job._replace(edit=edit), budget=spent)


def untouched(job: WorkerJob, pod_set: int) -> int:
    """Return how many pods wait at their gate that no lift is on its way to; one pod let go twice is one pod."""
    return job.gated[pod_set] - (job.edit is not None and job.edit.pod_set == pod_set)


def apply(job: WorkerJob, edit: Edit) -> WorkerJob:
    """Return the worker after a write has landed."""
    if edit.pod_set < 0:
        kept = None if job.edit is not None and job.edit.pod_set < 0 else job.edit
        return job._replace(size=edit.size, counts=edit.counts, suspended=edit.counts == NONE, edit=kept)
    return job._replace(
        gated=changed(job.gated, edit.pod_set, -1),
        lifted=changed(job.lifted, edit.pod_set, 1),
        let_go=lower_of(changed(job.let_go, edit.pod_set, 1), (LET_GO_MAX, LET_GO_MAX)),
    )


def pods(state: ModelState) -> Steps:
    """Return what the Job controller and the kubelets do by themselves."""
    job = state.job
    for pod_set in POD_SETS:
        if job.gated[pod_set] + job.lifted[pod_set] > job.counts[pod_set]:
            for what, fewer in _deleted(job, pod_set):
                yield f"a {what} pod of set {pod_set} is deleted", state._replace(job=fewer)
        if job.lifted[pod_set]:
            ended = job._replace(lifted=changed(job.lifted, pod_set, -1))
            yield f"a pod of set {pod_set} fails", state._replace(job=ended)
        if job.terminating[pod_set]:
            gone = job._replace(terminating=changed(job.terminating, pod_set, -1))
            yield f"a terminating pod of set {pod_set} has stopped", state._replace(job=gone)


def _deleted(job: WorkerJob, pod_set: int) -> Iterator[tuple[str, WorkerJob]]:
    """Return which pod a Job controller takes that has one too many: those at their gate before those that run."""
    fewer = job._replace(gated=changed(job.gated, pod_set, -1))
    if untouched(job, pod_set):
        yield "gated", fewer
    if job.edit is not None and job.edit.pod_set == pod_set:
        yield "gated", fewer._replace(edit=None)
    if not job.gated[pod_set]:
        yield "running", _terminated(job, pod_set)


def _terminated(job: WorkerJob, pod_set: int) -> WorkerJob:
    return job._replace(lifted=changed(job.lifted, pod_set, -1), terminating=changed(job.terminating, pod_set, 1))
