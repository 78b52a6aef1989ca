"""HD-31: a Lease that counts: what each write raises, who is listed, and who saw it grow a moment before taking it."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift_kube.deciding.election import (
    ANNOTATION_COUNTER,
    ANNOTATION_HOLDERS,
    ANNOTATION_SETTLED,
    TENURES_MAX,
    UNSEEN_WRITES,
    Election,
    ElectionStep,
    counter_of,
    holder_digest,
    is_settled,
    tenures_of,
)
from support.servers.stored_leases import KEY, TIMES, Stored, candidate, held_by_another, renew, take


def test_hd_31_each_write_of_the_holder_raises_the_number_by_one() -> None:
    stored, election = Stored(), candidate()
    election.observe(None, -15.0)
    take(election, stored, 0.0)
    renew(election, stored, 2.0)
    renew(election, stored, 4.0)
    assert counter_of(stored.lease()) == election.standing.counter == 3
    assert [(each.holder, each.found) for each in tenures_of(stored.lease())] == [(holder_digest("me"), 0)]


def test_hd_31_who_takes_over_is_listed_with_the_number_that_it_found() -> None:
    stored, election = held_by_another(), candidate()
    election.observe(stored.lease(), 0.0)
    take(election, stored, 15.0)
    assert [(each.holder, each.found) for each in election.standing.tenures] == [
        (holder_digest("other"), 0),
        (holder_digest("me"), 40),
    ]
    assert election.standing.counter == 41


def test_hd_31_the_list_of_holders_is_bounded_and_what_is_none_of_it_is_left_out() -> None:
    stored = Stored()
    for number in range(TENURES_MAX + 3):
        election = candidate(f"holder-{number}")
        election.observe(stored.lease() if number else None, 20.0 * number - (0.0 if number else 15.0))
        take(election, stored, 20.0 * number + 15.0 if number else 0.0)
    assert len(tenures_of(stored.lease())) == TENURES_MAX
    stored.metadata["annotations"] |= {ANNOTATION_HOLDERS: "x:1 0123456789abcdef:7", ANNOTATION_COUNTER: "9" * 19}
    assert [each.found for each in tenures_of(stored.lease())] == [7]
    assert counter_of(stored.lease()) == 0


def test_hd_31_who_saw_the_lease_move_within_its_time_is_warm() -> None:
    stored, election = held_by_another(40), candidate()
    election.observe(stored.lease(), 100.0)
    election.observe(stored.count(41), 102.0)
    take(election, stored, 117.0)
    assert election.standing.warm


def seen_once(election: Election, stored: Stored) -> float:
    election.observe(stored.lease(), 100.0)
    return 115.0


def given_back(election: Election, stored: Stored) -> float:
    election.observe(stored.take({"metadata": {}, "spec": {"holderIdentity": ""}}), 100.0)
    return 100.0


def looked_away(election: Election, stored: Stored) -> float:
    """See that it grew between two looks, nobody knows when: the first was long ago."""
    election.observe(stored.lease(), 100.0)
    election.observe(stored.count(90), 4000.0)
    return 4015.0


def went_back(election: Election, stored: Stored) -> float:
    election.observe(stored.lease(), 100.0)
    election.observe(stored.count(30), 102.0)
    return 117.0


def restored_on_the_way(election: Election, stored: Stored) -> float:
    election.observe(stored.lease(), 100.0)
    election.observe(stored.count(41), 102.0)
    election.observe(stored.count(12), 104.0)
    return 119.0


@pytest.mark.parametrize("story", [seen_once, given_back, looked_away, went_back, restored_on_the_way])
def test_hd_31_whatever_else_it_saw_the_lease_counts_as_old(story: Any) -> None:
    stored, election = held_by_another(40), candidate()
    take(election, stored, story(election, stored))
    assert not election.standing.warm


def test_hd_31_a_holder_that_finds_its_own_lease_set_back_leads_no_more() -> None:
    stored, election = Stored(), candidate()
    election.observe(None, -15.0)
    take(election, stored, 0.0)
    renew(election, stored, 2.0)
    renew(election, stored, 4.0)
    election.observe(stored.count(2), 5.0)
    assert election.lost(5.0) == "the Lease counts 2, we wrote 3: was it restored?"
    assert election.step(5.0) is ElectionStep.WAIT


def test_hd_77_a_candidate_that_sees_the_lease_count_less_than_it_did_has_outlived_a_restore() -> None:
    stored, election = held_by_another(40), candidate()
    election.observe(stored.lease(), 0.0)
    election.observe(stored.count(41), 2.0)
    assert not election.went_back()
    election.observe(stored.count(12), 4.0)
    assert election.went_back() == "the Lease counts 12, it counted 41: was it restored?"
    election.resigned()
    assert not election.went_back(), "told once"


def test_hd_77_a_lease_that_is_gone_since_a_look_long_ago_may_have_been_restored_to_before_it_was() -> None:
    stored, election = held_by_another(40), candidate()
    election.observe(stored.lease(), 0.0)
    election.observe(None, 60.0)
    assert election.went_back() == "the Lease counts nothing, it counted 40: was it restored?"


def test_hd_191_a_lease_that_was_deleted_a_moment_ago_ends_no_standby_that_saw_it() -> None:
    """HD-191: it ended, so that nobody counted on, and the next greeting read as a restore (HD-67)."""
    stored, election = held_by_another(40), candidate()
    election.observe(stored.lease(), 100.0)
    for now in (102.0, 104.0, 106.0):
        election.observe(None, now)
        assert not election.went_back()
    take(election, Stored(), looks(election, 117.0, 106.0))
    assert election.standing.counter > 40 + UNSEEN_WRITES


def test_hd_31_a_recovery_goes_on_above_what_was_shown_and_lists_nobody_from_before() -> None:
    stored, election = held_by_another(40), candidate()
    election.raise_counter(1000)
    election.observe(stored.lease(), 0.0)
    take(election, stored, 15.0)
    assert (election.standing.counter, [each.found for each in election.standing.tenures]) == (1001, [1000])


def test_hd_31_a_lease_that_does_not_count_is_written_as_ever() -> None:
    election = Election(KEY, "me", TIMES)
    election.observe(None, -15.0)
    assert "annotations" not in election.body(ElectionStep.CREATE, 0.0, 0.0)["metadata"]


# --- what a lead hands on (HD-177) ---------------------------------------------------------------------------------


def sees_it_move(election: Election, stored: Stored, now: float) -> None:
    """Look until just before the Lease is free, then take it."""
    election.observe(stored.lease(), now)
    election.observe(stored.count(counter_of(stored.lease()) + 1), now + 2.0)
    take(election, stored, now + 17.0)


def settles(election: Election, stored: Stored, now: float, *, settled: bool = True) -> None:
    election.settle(election.standing.term, settled=settled)
    renew(election, stored, now)


def test_hd_177_who_follows_a_lead_that_was_not_settled_is_cold_though_it_saw_the_lease_move() -> None:
    stored, election = held_by_another(settled=False), candidate()
    sees_it_move(election, stored, 100.0)
    assert not election.standing.warm
    settles(election, stored, 119.0)
    third = candidate("third")
    sees_it_move(third, stored, 200.0)
    assert third.standing.warm


def test_hd_177_a_lease_that_says_nothing_of_it_is_that_of_an_unsettled_lead() -> None:
    stored, election = held_by_another(), candidate()
    del stored.metadata["annotations"][ANNOTATION_SETTLED]
    sees_it_move(election, stored, 100.0)
    assert not election.standing.warm


def test_hd_177_what_was_said_of_another_term_counts_for_nobody() -> None:
    """HD-177: a manager of a version that does not know of it has taken over meanwhile, and left the annotation."""
    stored, election = held_by_another(), candidate()
    stored.spec["leaseTransitions"] = 2
    sees_it_move(election, stored, 100.0)
    assert not election.standing.warm


def test_hd_177_a_settled_lead_is_handed_on_with_the_very_write_that_takes_it() -> None:
    stored = held_by_another()
    for number in (1, 2, 3):
        election = candidate(f"holder-{number}")
        sees_it_move(election, stored, 100.0 * number)
        assert election.standing.warm
        assert is_settled(stored.lease())


def test_hd_177_a_lead_that_finds_out_that_it_is_not_settled_says_so_at_its_next_renewal() -> None:
    stored, election = held_by_another(), candidate()
    sees_it_move(election, stored, 100.0)
    settles(election, stored, 119.0, settled=False)
    assert not is_settled(stored.lease())
    renew(election, stored, 121.0)
    third = candidate("third")
    sees_it_move(third, stored, 200.0)
    assert not third.standing.warm


def test_hd_177_what_was_said_in_an_earlier_term_of_the_same_candidate_is_forgotten() -> None:
    stored, election = Stored(), candidate()
    election.observe(None, -15.0)
    take(election, stored, 0.0)
    settles(election, stored, 2.0)
    election.resigned()
    take(election, stored, 20.0)
    renew(election, stored, 22.0)
    assert not is_settled(stored.lease())


def test_hd_177_the_word_of_a_restored_lease_makes_nobody_warm_who_did_not_see_it_move() -> None:
    """HD-177: the backup says *settled* of its own term; whoever takes that Lease takes the word back."""
    stored, first, standby = held_by_another(), candidate("first"), candidate("standby")
    first.observe(stored.lease(), 100.0)
    standby.observe(stored.lease(), 101.0)
    take(first, stored, 115.0)
    assert not first.standing.warm
    standby.observe(stored.lease(), 116.0)
    take(standby, stored, 131.0)
    assert not standby.standing.warm


def test_hd_177_a_lease_whose_holder_has_nothing_to_say_of_it_is_written_as_ever() -> None:
    stored, election = Stored(), candidate()
    election.observe(None, -15.0)
    take(election, stored, 0.0)
    renew(election, stored, 2.0)
    assert ANNOTATION_SETTLED not in stored.metadata["annotations"]


# --- deleted by a person (HD-67) -----------------------------------------------------------------------------------


def looks(election: Election, until: float, since: float) -> float:
    """Look for a Lease that is not there, at the usual pace; return the time of the last look."""
    now = since
    while now < until:
        now += TIMES.retry_seconds
        election.observe(None, now)
    return now


def test_hd_67_the_holder_of_a_lease_that_was_deleted_makes_it_anew_and_counts_on() -> None:
    stored, election = Stored(), candidate()
    election.observe(None, -15.0)
    take(election, stored, 0.0)
    for second in (2.0, 4.0, 6.0):
        renew(election, stored, second)
    election.observe(None, 8.0)
    assert election.lost(8.0) == "the Lease was deleted"
    election.resigned()
    anew = Stored()
    take(election, anew, looks(election, 24.0, 8.0))
    assert [(each.holder, each.found) for each in election.standing.tenures] == [
        (holder_digest("me"), 0),
        (holder_digest("me"), 4 + UNSEEN_WRITES),
    ]
    assert election.standing.counter == 4 + UNSEEN_WRITES + 1
    assert not election.standing.warm


def test_hd_67_a_standby_that_saw_the_lease_a_moment_before_goes_on_above_what_it_cannot_have_seen() -> None:
    stored, election = held_by_another(40), candidate()
    election.observe(stored.lease(), 100.0)
    stored.count(43)
    take(election, Stored(), looks(election, 117.0, 100.0))
    assert election.standing.counter == 40 + UNSEEN_WRITES + 1 > 43


def never_saw_it(election: Election, _stored: Stored) -> float:
    return looks(election, 117.0, 100.0)


def looked_away_as_it_went(election: Election, stored: Stored) -> float:
    """HD-22: as long as a cluster takes to be stopped, put back and started."""
    election.observe(stored.lease(), 90.0)
    return looks(election, 117.0, 100.0)


def looked_away_since(election: Election, stored: Stored) -> float:
    election.observe(stored.lease(), 100.0)
    return looks(election, 140.0, looks(election, 106.0, 100.0) + 10.0)


def looked_away_at_last(election: Election, stored: Stored) -> float:
    election.observe(stored.lease(), 100.0)
    return looks(election, 117.0, 100.0) + 10.0


def found_another_since(election: Election, stored: Stored) -> float:
    election.observe(stored.lease(), 100.0)
    now = looks(election, 106.0, 100.0)
    anew = Stored()
    other = candidate("third")
    other.observe(None, now - 15.0)
    take(other, anew, now)
    election.observe(anew.lease(), now + 1.0)
    return now + 20.0


@pytest.mark.parametrize(
    "story", [never_saw_it, looked_away_as_it_went, looked_away_since, looked_away_at_last, found_another_since]
)
def test_hd_67_whoever_cannot_know_that_it_was_deleted_begins_from_what_is_there(story: Any) -> None:
    stored, election = held_by_another(40), candidate()
    now = story(election, stored)
    left = Stored() if election._lease is None else stored
    if left is stored:
        stored.metadata["annotations"] = {ANNOTATION_COUNTER: "1"}
    take(election, left, now)
    assert election.standing.counter <= 2
