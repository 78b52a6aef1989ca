"""Rules of chains taken out of the manager's own core, one at a time: walks and drawn histories miss each (SL-83)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gatelift.core.records import chain as chains
from gatelift.core.records.record import Record
from gatelift.core.records.size_states import PlacedSize
from gatelift.core.state.core import Core
from gatelift.core.state.sessions import Sessions
from gatelift.core.works import past_slices, resizing
from gatelift_kube.objects.kueue import Workload

Take = Callable[[pytest.MonkeyPatch], None]


def released_at_the_change_of_a_count(patch: pytest.MonkeyPatch) -> None:
    """Lower the charge with the count (without Size 2): whether that was answered, and when, is asked of both."""
    patch.setattr(PlacedSize, "is_answered", lambda *_: True)
    patch.setattr(Sessions, "keeps", lambda *_: True)


def an_answer_to_any_size(patch: pytest.MonkeyPatch) -> None:
    """Take what was answered of one size for an answer to the next (without Size 5)."""

    def is_answered(size: PlacedSize, _number: int, session: int) -> bool:
        return session > 0 and size.answered_in > 0

    def follows(size: PlacedSize, number: int, *, lowers: bool) -> None:
        size.number = max(number, size.number) if lowers else number

    patch.setattr(PlacedSize, "follows", follows)
    patch.setattr(PlacedSize, "is_answered", is_answered)


def a_number_twice(patch: pytest.MonkeyPatch) -> None:
    """Edit a record without another number (without Size 4)."""
    before = resizing._resize

    def edit(wish: Any, known: Workload, number: int, counts: Any) -> bool:
        same = wish.chain.current.number if known.metadata.uid == wish.chain.current.uid else number
        return before(wish, known, same, counts)

    patch.setattr(resizing, "_resize", edit)


def the_lower_one_counts(patch: pytest.MonkeyPatch) -> None:
    """Follow the first of two slices that have quota (without Size 1)."""

    def record(found: tuple[chains.Slice, ...]) -> chains.Slice | None:
        return next((each for each in found if each.open and each.reserved), None)

    patch.setattr(chains, "_record", record)


def a_past_slice_ends_the_run(patch: pytest.MonkeyPatch) -> None:
    """Take the end of a slice for the end of what runs (without SL-13)."""

    def look(_core: Core, _rec: Record, _now: float) -> bool:
        return False

    patch.setattr(past_slices, "look", look)


def a_slice_beside_one_that_is_not_over(patch: pytest.MonkeyPatch) -> None:
    """Make the next slice at once (without what HD-560 mends)."""
    patch.setattr("gatelift.core.records.chains.SliceIndex.standing", lambda *_: ())


def a_slice_beside_one_that_is_made(patch: pytest.MonkeyPatch) -> None:
    """Make one for each name (without what HD-561 mends)."""
    patch.setattr(resizing, "is_being_made", lambda *_: False)
