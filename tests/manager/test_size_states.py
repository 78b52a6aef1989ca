"""The state table of a size at the manager (KEP-77): what follows what, and which answers count (Size 4, Size 5)."""

from __future__ import annotations

import pytest

from gatelift.core.records.size_states import TABLE, ChainSizeState, PlacedSize, SizeEvent

WIRE = SizeEvent.ANSWERED


def a_size(state: ChainSizeState, number: int = 2) -> PlacedSize:
    return PlacedSize(state=state, number=number)


@pytest.mark.parametrize("state", ChainSizeState)
def test_what_a_cluster_says_never_raises_whatever_the_state(state: ChainSizeState) -> None:
    """P8."""
    for number in (-1, 0, 1, 2, 3, 2**63):
        for session in (0, 1):
            a_size(state).answer(number, session)


@pytest.mark.parametrize("state", [ChainSizeState.SETTLED, ChainSizeState.GROWING, ChainSizeState.LOWERING])
def test_a_later_number_grows_or_lowers_and_waits_for_its_answer(state: ChainSizeState) -> None:
    for lowers, after in ((False, ChainSizeState.GROWING), (True, ChainSizeState.LOWERING)):
        size = a_size(state)
        size.answer(2, 7)
        size.follows(3, lowers=lowers)
        assert (size.state, size.number, size.is_answered(3, 7)) == (after, 3, False)
        assert size.answer(3, 7)
        assert (size.state, size.is_answered(3, 7), size.is_answered(3, 8)) == (ChainSizeState.SETTLED, True, False)


def test_sl_43_a_number_at_or_below_the_one_that_is_known_changes_nothing() -> None:
    size = a_size(ChainSizeState.GROWING, 5)
    assert size.answer(5, 1)
    for number in (5, 4, 1):
        size.follows(number, lowers=True)
        assert (size.state, size.number, size.is_answered(5, 1)) == (ChainSizeState.SETTLED, 5, True)


def test_sl_44_an_answer_about_another_number_changes_nothing() -> None:
    size = a_size(ChainSizeState.LOWERING, 5)
    assert not size.answer(4, 1)
    assert not size.answer(6, 1)
    assert (size.state, size.is_answered(5, 1)) == (ChainSizeState.LOWERING, False)


def test_an_answer_is_news_once_in_a_session() -> None:
    size = a_size(ChainSizeState.LOWERING, 5)
    assert size.answer(5, 3)
    assert not size.answer(5, 3)
    assert not size.answer(5, 2)
    assert size.answer(5, 4)
    assert (size.is_answered(5, 3), size.is_answered(5, 4)) == (False, True)


def test_what_ends_takes_no_size_and_no_answer() -> None:
    for state in ChainSizeState:
        size = a_size(state)
        size.ends()
        size.follows(9, lowers=False)
        assert not size.answer(2, 1)
        assert (size.state, size.number) == (ChainSizeState.ENDING, 2)
    assert TABLE[ChainSizeState.ENDING] == {}
