"""Rules of sizes taken out, one at a time: of the agent's own core, or of the manager that the account plays (SL-83).

Walks and traces of the model have to miss each of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from gatelift_agent.core.advancing import gates, sizing
from gatelift_agent.core.leaving import surplus
from gatelift_agent.core.placement.placements import Placement
from gatelift_agent.core.placement.sizes import SizeState, Sizing
from gatelift_agent.core.seeing import let_go
from gatelift_agent.core.session import sizes
from gatelift_agent.core.state.world import World
from gatelift_wire.values.sizes import Resize
from support.agent.late_stage import LateStage
from support.agent.size_account import SizeAccount

Take = Callable[[pytest.MonkeyPatch], None]


def numbers_are_not_compared(patch: pytest.MonkeyPatch) -> None:
    """Take whatever size is said (without Size 4); a number below the first is one that could not be read."""
    before, why_not = sizes.resize, sizes._why_not

    def resize(world: World, order: Resize, now: float) -> sizes.Resized:
        found = world.placements.get(order.key)
        if found is not None and found.sizing is not None and order.number < found.sizing.number:
            found.sizing.number = order.number - 1
        return before(world, order, now)

    patch.setattr(sizes, "resize", resize)
    patch.setattr(sizes, "_why_not", lambda *of: why_not(*of) if of[2].number else None)


def answered_at_once(patch: pytest.MonkeyPatch) -> None:
    """Answer while the surplus runs (without Size 6)."""
    patch.setattr(surplus, "in_the_way", lambda *_: {})


def answered_with_lifts_in_doubt(patch: pytest.MonkeyPatch) -> None:
    """Answer while lifts may land (without Size 6)."""
    before = sizing._answer

    def answer(world: World, placement: Placement, size: Sizing, now: float) -> None:
        kept, size.lifts = size.lifts, {}
        before(world, placement, size, now)
        size.lifts = kept

    patch.setattr(sizing, "_answer", answer)


def answered_before_the_mark(patch: pytest.MonkeyPatch) -> None:
    """Answer a lower size whose mark has not landed (without Size 6)."""
    before = sizing.advance

    def advance(world: World, placement: Placement, now: float) -> None:
        size = placement.sizing
        if size is not None and size.state is SizeState.SETTING and world.standing.open:
            size.state = SizeState.SET
            sizing._answer(world, placement, size, now)
            size.state = SizeState.SETTING
        before(world, placement, now)

    patch.setattr(sizing, "advance", advance)


def lifts_in_flight_do_not_count(patch: pytest.MonkeyPatch) -> None:
    """Count what is seen let go alone (without Size 7)."""
    before = let_go.count

    def count(world: World, placement: Placement, now: float) -> let_go.LetGoCounts:
        size = placement.sizing
        kept = size.lifts if size is not None else {}
        if size is not None:
            size.lifts = {}
        found = before(world, placement, now)
        if size is not None:
            size.lifts = kept
        return found

    patch.setattr(let_go, "count", count)


def who_stops_has_no_slot(patch: pytest.MonkeyPatch) -> None:
    """Fill the slot of a pod that terminates (without Size 7)."""
    before = let_go.count

    def count(world: World, placement: Placement, now: float) -> let_go.LetGoCounts:
        found = before(world, placement, now)
        return replace(found, holding=dict(found.going_on))

    patch.setattr(let_go, "count", count)


def a_new_replica_starts_at_once(patch: pytest.MonkeyPatch) -> None:
    """List while writes of the one before may land (without Size 8)."""
    patch.setattr(LateStage, "settle_seconds_of_start", 0.0, raising=False)


def slots_are_opened_without_a_word(patch: pytest.MonkeyPatch) -> None:
    """Open slots whatever was confirmed (without Size 9)."""
    patch.setattr(gates, "_may_open", lambda *_: True)


def charged_by_the_wish(patch: pytest.MonkeyPatch) -> None:
    """Lower the charge with the word that lowers the size (without Size 2)."""

    def granted(account: SizeAccount) -> dict[str, int]:
        return dict(account.said[max(account.said)])

    patch.setattr(SizeAccount, "granted", granted)


def any_answer_counts(patch: pytest.MonkeyPatch) -> None:
    """Take each answer for one to the last size that was said (without Size 5)."""

    def hears(account: SizeAccount, _number: int) -> None:
        account.answered = max(account.said)

    patch.setattr(SizeAccount, "hears", hears)


def a_deadline_takes_back(patch: pytest.MonkeyPatch) -> None:
    """Count what a deadline has taken back as charged no more (without Size 3)."""

    def takes_back(account: SizeAccount, number: int) -> None:
        account.said.pop(number)

    patch.setattr(SizeAccount, "deadline", takes_back)
