"""Where a waiting workload stands: the table of moves, and that nothing moves by another way."""

from __future__ import annotations

import ast
import itertools
from collections import Counter
from pathlib import Path

import pytest

import gatelift_admission
from gatelift_admission.engine import Engine
from gatelift_admission.entries.standings import (
    OF_CLASSES,
    TABLE,
    IllegalQueueMoveError,
    QueueMove,
    QueueStanding,
    Stander,
)
from gatelift_admission.values.model import EngineSettings
from support.twin.cohort_engine import arrive, cohort_engine, moves
from support.twin.engine_trace import trace

SOURCES = Path(gatelift_admission.__file__).parent
PLAYED = 150
"""Instances of the twin in which every move but those after an exception happens."""
OF_EXCEPTIONS = {
    *((one, move) for one in QueueStanding for move in (QueueMove.RAISE, QueueMove.ANEW)),
    *((QueueStanding.FAULTY, move) for move in QueueMove),
}
RARE = {
    # Turns among those who wait for what came free: `test_turns`, `test_nobody_is_preempted_again_and_again`.
    (QueueStanding.ACTIVE, QueueMove.DEFER),
    (QueueStanding.DEFERRED, QueueMove.WAKE),
    (QueueStanding.DEFERRED, QueueMove.PARK),
    (QueueStanding.DEFERRED, QueueMove.LOOK),
    (QueueStanding.RECALLED, QueueMove.PARK),
    (QueueStanding.RECALLED, QueueMove.SLEEP),
    (QueueStanding.RECALLED, QueueMove.LOOK),
    # Somebody arrives among equals while their head is looked at in a round that was cut, and has to wait with them.
    (QueueStanding.PARKED, QueueMove.PARK),
    # A head that all wait behind is looked at for the room that it keeps, and something of its own has changed.
    (QueueStanding.BLOCKED, QueueMove.RESERVE),
    (QueueStanding.BLOCKED, QueueMove.BAR),
    (QueueStanding.RESERVING, QueueMove.BAR),
}
"""What instances this small do not come to."""
BEGINNINGS = {QueueStanding.OUT, QueueStanding.ACTIVE}


def ways() -> set[tuple[QueueStanding, QueueMove]]:
    """Return all that the table allows."""
    return {(standing, move) for standing, found in TABLE.items() for move in found}


def test_the_table_is_of_all_standings_and_leaves_those_of_workloads_and_of_classes_apart() -> None:
    assert set(TABLE) == set(QueueStanding)
    for standing, found in TABLE.items():
        assert {(one in OF_CLASSES) for one in found.values()} == {standing in OF_CLASSES}, standing
    reached = BEGINNINGS | set(itertools.chain.from_iterable(found.values() for found in TABLE.values()))
    assert reached == set(QueueStanding)
    assert {move for _, move in ways()} == set(QueueMove)


def test_whatever_the_table_does_not_allow_raises_and_changes_nothing() -> None:
    for standing, move in itertools.product(QueueStanding, QueueMove):
        one = Stander()
        one.standing = standing
        if (standing, move) in ways():
            one.move(move)
            assert one.standing is TABLE[standing][move]
        else:
            with pytest.raises(IllegalQueueMoveError, match=f"who stands {standing.name} cannot {move.name}"):
                one.move(move)
            assert one.standing is standing


def assignments(tree: ast.AST) -> list[ast.Attribute]:
    """Return where an attribute `standing` is set."""
    stored: list[ast.expr] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            stored += node.targets
        elif isinstance(node, ast.AugAssign):
            stored.append(node.target)
    inside = (one for target in stored for one in ast.walk(target))
    return [one for one in inside if isinstance(one, ast.Attribute) and one.attr == "standing"]


def test_every_move_goes_by_the_one_method_that_checks_the_table() -> None:
    """A standing is set by who stands alone: as it is made, and in `move`."""
    assert len(assignments(ast.parse("a.standing = b\nc, d.standing = e"))) == 2
    setting = Counter(
        str(path.relative_to(SOURCES))
        for path in sorted(SOURCES.rglob("*.py"))
        for _ in assignments(ast.parse(path.read_text()))
    )
    assert setting == {"entries/entry.py": 1, "entries/standings.py": 1, "waking/equals.py": 1}


@pytest.mark.interpreted
def test_whatever_the_table_allows_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry that nothing needs would be a hole. Random instances use each but for the rare ones, and no other."""
    seen: set[tuple[QueueStanding, QueueMove]] = set()
    real = Stander.move

    def noted(one: Stander, move: QueueMove) -> None:
        seen.add((one.standing, move))
        real(one, move)

    monkeypatch.setattr(Stander, "move", noted)
    for seed in range(1, PLAYED + 1):
        trace(seed)
    assert sorted(f"{one.name} {move.name}" for one, move in ways() - seen - OF_EXCEPTIONS - RARE) == []
    assert seen.isdisjoint(OF_EXCEPTIONS)


def stands(engine: Engine, uid: str) -> tuple[QueueStanding, QueueStanding | None]:
    """Return where a workload stands, and its class, if it is in the order of a queue."""
    state = engine.state
    entry = state.entries[uid]
    queue = state.queues.get(entry.queue)
    known = queue.pending.classes.get(entry.shape) if queue is not None else None
    return entry.standing, known.standing if known is not None else None


def test_a_life_in_standings() -> None:
    engine = cohort_engine(EngineSettings(preemption_patience=0.0, wake_period=0.0), "a", cpu="4")
    arrive(engine, "a-first", 3, 0.0)
    assert stands(engine, "a-first") == (QueueStanding.OUT, None)
    assert moves(engine, 0.0) == ["a-first"]
    assert stands(engine, "a-first") == (QueueStanding.OUT, None)
    arrive(engine, "a-next", 3, 0.0)
    assert moves(engine, 0.0) == []
    assert stands(engine, "a-next") == (QueueStanding.QUEUED, QueueStanding.PARKED)
    engine.block("a-next")
    moves(engine, 0.0)
    assert stands(engine, "a-next") == (QueueStanding.INADMISSIBLE, None)
    engine.unblock("a-next")
    moves(engine, 0.0)
    assert stands(engine, "a-next") == (QueueStanding.QUEUED, QueueStanding.PARKED)
    arrive(engine, "a-high", 3, 0.0, priority=9)
    assert moves(engine, 0.0) == ["!a-first"]
    assert stands(engine, "a-high") == (QueueStanding.RESERVING, QueueStanding.ACTIVE)
    engine.set_aside("a-high", ValueError("x"))
    assert stands(engine, "a-high") == (QueueStanding.FAULTY, None)
    engine.look_again("a-high")
    assert stands(engine, "a-high") == (QueueStanding.OUT, None)
