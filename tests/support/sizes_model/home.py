"""What happens in the management cluster: the user's wishes, and the manager that writes before it tells.

A manager reads what is there; that it may be behind is a write of it that lands late, once another one leads. While a
write of its own is on its way it does nothing else to the chain.
"""

from __future__ import annotations

from support.sizes_model.state import (
    NONE,
    Command,
    Counts,
    Home,
    LateWrite,
    ModelState,
    Rules,
    SizeRule,
    SliceRecord,
    Steps,
    higher_of,
    is_within,
    lower_of,
    record_of,
    shown,
)

STOP = Command(0, NONE)
WISHES: tuple[Counts, ...] = ((1, 0), (2, 0), (2, 1))
"""What the user asks for besides what is there: to shrink, both at once, and to grow."""


def steps(state: ModelState, rules: Rules) -> Steps:
    """Return each step that can come next there."""
    found = record_of(state.home)
    if found is None:
        return
    if not (found[1].ending or state.home.fenced):
        yield from wishes(state)
    late = state.home.late
    if late is None or not late.mine:
        yield from writes(state, found[0], found[1], rules)


def wishes(state: ModelState) -> Steps:
    """Return what the user may ask for next."""
    if state.budget.wishes == 0:
        return
    budget = state.budget._replace(wishes=state.budget.wishes - 1)
    for wish in WISHES:
        if wish != state.home.wish:
            yield f"user asks for {shown(wish)}", state._replace(home=state.home._replace(wish=wish), budget=budget)


def said(home: Home) -> Command:
    """Return the command that says what the record says: its size, or that the placement is to stop."""
    found = record_of(home)
    if found is None or found[1].ending or home.fenced:
        return STOP
    return Command(found[1].size, found[1].spec)


def writes(state: ModelState, place: int, record: SliceRecord, rules: Rules) -> Steps:
    """Return each write that the manager may decide on."""
    other = state.home.slices[1 - place]
    if other is not None and other.reserved:
        yield from write(state, 1 - place, None, f"manager finishes the slice of size {other.size}")
        if SizeRule.NO_DEADLINE not in rules and state.home.late is None:
            yield from write(state, place, None, f"a deadline takes back the slice of size {record.size}")
        return
    if record.ending or state.home.fenced:
        if other is not None and other.asks:
            yield from write(state, 1 - place, other._replace(asks=False), "manager gives back what target reserves")
        elif 0 in state.wire.answers or state.home.fenced:
            text = "manager releases all and raises the epoch"
            yield from write(touched(state, 1 - place, rules), place, released(record), text)
        return
    yield from asked(state, place, record, rules)
    if other is not None and other.asks:
        yield from write(state, 1 - place, other._replace(asks=False), "a check says Retry: it is given back")
    elif other is not None and state.budget.checks and is_within(record.spec, other.spec):
        yield from write(state, 1 - place, other._replace(asks=True), "manager reserves for target, and asks")
    if other is not None and is_within(record.spec, other.spec) and other.asks == bool(state.budget.checks):
        bigger = record._replace(size=record.size + 1, spec=other.spec, charged=higher_of(record.charged, other.spec))
        text = f"manager makes target the record: size {bigger.size}, {shown(bigger.charged)} charged"
        yield from write(state, 1 - place, bigger, text)
    yield from lowered(state, place, record, rules)
    if state.budget.evictions:
        spent = state._replace(budget=state.budget._replace(evictions=0))
        yield from write(touched(spent, 1 - place, rules), place, record._replace(ending=True), "manager evicts")
    if not state.wire.is_open and state.job.let_go == NONE and state.job.edit is None:
        yield "a person sees no pod and says fenced", state._replace(home=state.home._replace(fenced=True))


def asked(state: ModelState, place: int, record: SliceRecord, rules: Rules) -> Steps:
    """Return what makes the chain ask for what the user does: target first, then the record."""
    other, wish = state.home.slices[1 - place], state.home.wish
    smaller = lower_of(record.spec, wish)
    if wish == smaller:
        if other is not None:
            yield "manager ends target", landed(state, 1 - place, None)
    elif other is not None and other.spec != wish and other.asks:
        yield "manager gives back what target reserves", landed(state, 1 - place, other._replace(asks=False))
    elif other is None or other.spec != wish:
        target = SliceRecord(reserved=False, size=0, spec=wish, charged=NONE, epoch=record.epoch, ending=False)
        yield f"manager has target ask for {shown(wish)}", landed(state, 1 - place, target)
    if record.spec != smaller:
        kept = record.charged if SizeRule.CHARGE_FOLLOWS_ANSWER in rules else lower_of(record.charged, smaller)
        value = record._replace(size=record.size + 1, spec=smaller, charged=kept)
        text = f"manager lowers the record: size {value.size}, {shown(smaller)} wanted, {shown(kept)} charged"
        yield from write(touched(state, 1 - place, rules), place, value, text)


def lowered(state: ModelState, place: int, record: SliceRecord, rules: Rules) -> Steps:
    """Return the write that gives quota back after an answer."""
    if record.charged == record.spec:
        return
    for size in sorted(state.wire.answers):
        if size == record.size or (size and SizeRule.ANSWER_NAMES_SIZE not in rules):
            text = f"manager takes the answer of size {size}: {shown(record.spec)} charged"
            yield from write(state, place, record._replace(charged=record.spec), text)


def released(record: SliceRecord) -> SliceRecord:
    """Return a slice that is back in its queue."""
    return SliceRecord(reserved=False, size=0, spec=record.spec, charged=NONE, epoch=record.epoch + 1, ending=False)


def write(state: ModelState, place: int, value: SliceRecord | None, text: str) -> Steps:
    """Return the write that lands at once, and the one that is on its way for a while."""
    yield text, landed(state, place, value)
    if state.budget.slow_home and state.home.late is None:
        home = state.home._replace(late=LateWrite(place, value, mine=True))
        yield f"{text} (slow)", state._replace(home=home, budget=state.budget._replace(slow_home=0))


def touched(state: ModelState, place: int, rules: Rules) -> ModelState:
    """Return a state in which the other slice was written to first, so that a late write to it fails."""
    if SizeRule.ONE_RECORD not in rules or state.home.slices[place] is None:
        return state
    return landed(state, place, state.home.slices[place])


def landed(state: ModelState, place: int, value: SliceRecord | None) -> ModelState:
    """Return a state in which a write has landed; a late one to the same object fails by that."""
    first, second = state.home.slices
    late = state.home.late
    kept = None if late is not None and late.place == place else late
    slices = (value, second) if place == 0 else (first, value)
    return state._replace(home=Home(state.home.wish, slices, kept, state.home.fenced))
