"""The table of attempts: total for messages, strict for ourselves, and the way it may go."""

from __future__ import annotations

import itertools

import pytest

from gatelift.core.records.attempt_states import LIVE, TABLE, AttemptState, IllegalTransition, Internal, Wire, follow
from gatelift.core.records.attempts import Attempt
from gatelift_kube.values.resources import ObjectKey

S = AttemptState


def an_attempt(state: AttemptState) -> Attempt:
    return Attempt(uid="u", workload=ObjectKey("team", "w"), epoch=1, state=state, cluster="a")


@pytest.mark.parametrize(("state", "event"), list(itertools.product(AttemptState, Wire)))
def test_a_message_from_the_wire_never_raises(state: AttemptState, event: Wire) -> None:
    attempt = an_attempt(state)
    changed = attempt.follow(event)
    assert changed == (event in TABLE[state])
    assert attempt.state is TABLE[state].get(event, state)


@pytest.mark.parametrize(("state", "event"), list(itertools.product(AttemptState, Internal)))
def test_an_internal_event_without_an_entry_raises_and_changes_nothing(state: AttemptState, event: Internal) -> None:
    attempt = an_attempt(state)
    if event in TABLE[state]:
        assert attempt.follow(event)
        return
    with pytest.raises(IllegalTransition, match=event.value):
        attempt.follow(event)
    assert attempt.state is state


def test_every_state_has_a_row_and_every_state_but_the_first_can_be_reached() -> None:
    assert set(TABLE) == set(AttemptState)
    reached = {target for row in TABLE.values() for target in row.values()}
    assert reached == set(AttemptState)


def test_live_is_what_may_exist_somewhere() -> None:
    assert {S.CHOSEN, S.PLACED, S.RUNNING, S.ENDING, S.LOST} == LIVE


def test_an_ended_attempt_stays_ended() -> None:
    assert TABLE[S.ENDED] == {}


@pytest.mark.parametrize("state", [S.CHOSEN, S.PLACED, S.RUNNING, S.ENDING, S.LOST])
@pytest.mark.parametrize("word", [Wire.FINISHED, Wire.STOPPED, Wire.REFUSED, Wire.EVICTED, Wire.ABSENT])
def test_a_clusters_negative_statement_ends_every_live_placement(state: AttemptState, word: Wire) -> None:
    assert follow(state, word) is S.ENDED


@pytest.mark.parametrize("state", [S.CHOSEN, S.PLACED, S.RUNNING, S.ENDING])
def test_every_live_placement_can_be_lost_and_only_a_lost_one_can_be_fenced(state: AttemptState) -> None:
    assert follow(state, Internal.LOSE) is S.LOST
    with pytest.raises(IllegalTransition):
        follow(state, Internal.FENCE)


@pytest.mark.parametrize("state", [S.PENDING, S.RESERVED])
@pytest.mark.parametrize("event", list(Wire))
def test_nothing_a_cluster_says_moves_an_attempt_that_was_offered_to_nobody(state: AttemptState, event: Wire) -> None:
    assert follow(state, event) is None


def test_only_a_written_winner_leads_out_of_the_offers_to_a_live_placement() -> None:
    ways = {event for event, target in TABLE[S.OFFERED].items() if target in LIVE}
    assert ways == {Internal.WRITTEN}
