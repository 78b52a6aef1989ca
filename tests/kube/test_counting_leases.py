"""HD-31: a Lease that counts: what each write raises, who is listed, and who saw it grow a moment before taking it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from gatelift_kube.election import (
    ANNOTATION_COUNTER,
    ANNOTATION_HOLDERS,
    ANNOTATION_SETTLED,
    ANNOTATION_TERM,
    BELIEVED_MAX,
    TENURES_MAX,
    TERM_BELIEVED_MAX,
    TERM_MAX,
    UNSEEN_WRITES,
    Election,
    ElectionTimes,
    Step,
    counter_of,
    holder_digest,
    is_settled,
    tenures_of,
)
from gatelift_kube.objects.core import Lease
from gatelift_kube.resources import ObjectKey

TIMES = ElectionTimes()
KEY = ObjectKey("gatelift-system", "manager")


class Stored:
    """The Lease as an API server keeps it."""

    def __init__(self) -> None:
        self.version = 0
        self.metadata: dict[str, Any] = {"name": KEY.name, "namespace": KEY.namespace, "annotations": {}}
        self.spec: dict[str, Any] = {}

    def take(self, body: dict[str, Any]) -> Lease:
        self.version += 1
        self.metadata["annotations"] |= body["metadata"].get("annotations", {})
        self.spec |= body["spec"]
        return self.lease()

    def lease(self) -> Lease:
        metadata = {**self.metadata, "resourceVersion": str(self.version)}
        return msgspec.convert({"metadata": metadata, "spec": self.spec}, Lease)

    def count(self, number: int) -> Lease:
        """Let its holder renew it, up to a number."""
        return self.take({"metadata": {"annotations": {ANNOTATION_COUNTER: str(number)}}, "spec": {}})


def candidate(identity: str = "me") -> Election:
    return Election(KEY, identity, TIMES, counts=True)


def take(election: Election, stored: Stored, now: float) -> None:
    step = election.step(now)
    assert step in {Step.CREATE, Step.TAKE}
    election.acquired(stored.take(election.body(step, 0.0, now)), now, now)


def renew(election: Election, stored: Stored, now: float) -> None:
    assert election.step(now) is Step.RENEW
    election.renewed(stored.take(election.body(Step.RENEW, 0.0, now)), now, now)


def held_by_another(counter: int = 40, *, settled: bool = True) -> Stored:
    stored = Stored()
    other = candidate("other")
    other.observe(None, -15.0)
    take(other, stored, 0.0)
    other.settle(1, settled=settled)
    renew(other, stored, 2.0)
    stored.count(counter)
    return stored


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
    assert election.step(5.0) is Step.WAIT


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
    assert "annotations" not in election.body(Step.CREATE, 0.0, 0.0)["metadata"]


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


# --- edited by a person (HD-200) -----------------------------------------------------------------------------------

EDITED = 999_999_999_999_999_990
"""The largest numbers of 18 digits: ten renewals later there are 19."""


def leading(counter: int) -> tuple[Stored, Election]:
    stored, election = Stored(), candidate()
    election.observe(None, -15.0)
    take(election, stored, 0.0)
    while election.standing.counter < counter:
        renew(election, stored, 1.0)
    return stored, election


def test_hd_200_a_number_that_nobody_has_counted_to_is_put_back_by_the_holder_and_told() -> None:
    """The symptom: ten renewals later it was written with 19 digits, read as 0, and nobody noticed."""
    stored, election = leading(5)
    election.observe(stored.count(EDITED), 2.0)
    for second in range(3, 30):
        renew(election, stored, float(second))
        assert 5 < election.standing.counter == counter_of(stored.lease()) < 1000
    assert not election.lost(29.0)
    assert str(EDITED) in election.take_edited()
    assert not election.take_edited(), "told once"


def test_hd_200_what_was_written_and_never_answered_is_no_edit() -> None:
    stored, election = leading(5)
    for second in range(10):
        body = election.body(Step.RENEW, 0.0, 2.0 + second / 10)
        election.observe(stored.take(body), 2.0 + second / 10)
    renew(election, stored, 4.0)
    assert election.standing.counter == 16
    assert not election.take_edited()


def test_hd_200_who_takes_over_believes_no_number_that_nobody_can_have_come_to() -> None:
    stored, election = held_by_another(40), candidate()
    stored.count(EDITED)
    election.observe(stored.lease(), 0.0)
    take(election, stored, 15.0)
    assert election.standing.counter == 1, "agents bring later ones, and a person is asked"
    assert str(EDITED) in election.take_edited()


def test_hd_200_a_recovery_from_such_a_number_comes_to_rest() -> None:
    """The symptom: `recover --go-on` raised it to 19 digits, which read as 0, and all was halted anew."""
    stored, election = held_by_another(40), candidate()
    stored.count(EDITED)
    floor = EDITED + 10**9
    election.raise_counter(floor)
    election.observe(stored.lease(), 0.0)
    take(election, stored, 15.0)
    renew(election, stored, 17.0)
    assert election.standing.counter == counter_of(stored.lease()) == floor + 2
    after = candidate("after")
    after.observe(stored.lease(), 100.0)
    take(after, stored, 115.0)
    assert after.standing.counter == floor + 3
    assert [each.found for each in after.standing.tenures] == [floor, floor + 2]


def test_hd_200_a_renewal_that_is_answered_with_a_lower_number_extends_nothing() -> None:
    stored, election = leading(5)
    until = election.standing.valid_until
    assert election.step(2.0) is Step.RENEW
    stored.take(election.body(Step.RENEW, 0.0, 2.0))
    election.renewed(stored.count(3), 2.0, 2.0)
    assert (election.standing.counter, election.standing.valid_until) == (5, until)
    assert election.lost(2.0) == "the Lease counts 3, we wrote 5: was it restored?"


# --- numbers that nobody can have come to (HD-207, HD-208) -----------------------------------------------------------


def edit(stored: Stored, **annotations: str) -> Lease:
    names = {"counter": ANNOTATION_COUNTER, "holders": ANNOTATION_HOLDERS, "term": ANNOTATION_TERM}
    return stored.take(
        {"metadata": {"annotations": {names[key]: text for key, text in annotations.items()}}, "spec": {}}
    )


def edit_term(stored: Stored, term: int) -> Lease:
    return stored.take({"metadata": {}, "spec": {"leaseTransitions": term}})


@pytest.mark.parametrize("term", [TERM_MAX, TERM_MAX - 1, TERM_BELIEVED_MAX + 1])
def test_hd_207_a_term_that_nobody_can_have_come_to_is_not_counted_on(term: int) -> None:
    """The symptom: the next take wrote 2147483648, which no API server takes, so nobody led any more."""
    stored, election = held_by_another(), candidate()
    stored.spec["leaseTransitions"] = 6
    stored.metadata["annotations"][ANNOTATION_TERM] = "6"
    edit_term(stored, term)
    election.observe(stored.lease(), 100.0)
    take(election, stored, 115.0)
    assert election.standing.term == 7, "above the last one that a holder has marked"
    assert election.standing.leads(116.0)
    assert not election.standing.warm
    assert str(term) in election.take_edited()


def test_hd_207_the_same_where_no_holder_has_marked_its_term() -> None:
    stored, election = held_by_another(), candidate()
    del stored.metadata["annotations"][ANNOTATION_TERM]
    election.observe(stored.lease(), 100.0)
    edit_term(stored, TERM_MAX)
    election.observe(stored.lease(), 102.0)
    take(election, stored, 117.0)
    assert election.standing.term == 2, "above what this candidate has seen"


def test_hd_207_a_term_at_the_bound_is_counted_on_by_whoever_follows() -> None:
    stored = held_by_another()
    edit_term(stored, TERM_BELIEVED_MAX)
    for number in range(1, 4):
        election = candidate(f"later-{number}")
        election.observe(stored.lease(), 100.0 * number)
        take(election, stored, 100.0 * number + 15.0)
        assert election.standing.term == TERM_BELIEVED_MAX + number
        assert not election.take_edited()


def test_hd_207_no_term_is_ever_written_that_the_field_does_not_take() -> None:
    stored = held_by_another()
    for number, marked in enumerate((TERM_MAX - 1, TERM_MAX, 2**62)):
        edit_term(stored, TERM_MAX)
        edit(stored, term=str(marked))
        election = candidate(f"later-{number}")
        election.observe(stored.lease(), 100.0 * number)
        take(election, stored, 100.0 * number + 15.0)
        assert 0 < election.standing.term <= TERM_MAX


@pytest.mark.parametrize("term", [TERM_BELIEVED_MAX + 1, 2**31 - 1, 2**62])
def test_hd_207_a_floor_that_nobody_can_have_come_to_is_none(term: int) -> None:
    stored, election = held_by_another(), candidate()
    election.raise_floor(term)
    election.observe(stored.lease(), 100.0)
    take(election, stored, 115.0)
    assert election.standing.term == 2


def test_hd_207_who_leads_says_why_it_ends_when_its_term_is_edited() -> None:
    stored, election = leading(5)
    election.observe(edit_term(stored, 1000), 2.0)
    assert election.lost(2.0) == "the Lease is in term 1000, we took it in 1: was it edited, or restored?"


JUNK = [str(2**62 + 1), str(2**63), "9" * 40, "-1", "abc", "", " 5", "007", "+7", "\u0663", "7\n"]


@pytest.mark.parametrize("junk", JUNK)
def test_hd_208_a_number_that_cannot_be_read_is_put_back_by_the_holder_and_told(junk: str) -> None:
    """The symptom: it read as 0, the leader ended its lead as for a restore, and dispatch was halted."""
    stored, election = leading(5)
    election.observe(edit(stored, counter=junk), 2.0)
    assert not election.lost(2.0)
    renew(election, stored, 3.0)
    assert 5 < election.standing.counter == counter_of(stored.lease()) < 1000
    assert not election.lost(3.0)
    told = election.take_edited()
    assert "which no holder wrote" in told
    assert "counts 0" not in told
    renew(election, stored, 4.0)
    assert not election.take_edited(), "told once"


def test_hd_208_what_stands_there_is_said() -> None:
    stored, election = leading(5)
    election.observe(edit(stored, counter=str(2**63)), 2.0)
    renew(election, stored, 3.0)
    assert f'the Lease counts "{2**63}", which no holder wrote' in election.take_edited()


@pytest.mark.parametrize("text", ["3", "0", None])
def test_hd_208_a_lower_number_or_none_at_all_ends_the_lead_as_a_restore_does(text: str | None) -> None:
    stored, election = leading(5)
    if text is None:
        del stored.metadata["annotations"][ANNOTATION_COUNTER]
        stored.version += 1
    else:
        edit(stored, counter=text)
    election.observe(stored.lease(), 2.0)
    assert election.lost(2.0) == f"the Lease counts {text or 'nothing'}, we wrote 5: was it restored?"


def test_hd_208_a_lease_of_a_lower_version_is_restored_whatever_stands_in_it() -> None:
    stored, election = leading(5)
    edit(stored, counter="abc")
    stored.version = 2
    election.observe(stored.lease(), 2.0)
    assert election.lost(2.0) == 'the Lease counts "abc", we wrote 5: was it restored?'
    stored.version = 3
    election.observe(stored.lease(), 3.0)
    assert "was it restored?" in election.lost(3.0), "also after the next look"


def test_hd_208_a_standby_that_sees_a_lower_version_has_outlived_a_restore() -> None:
    stored, election = held_by_another(40), candidate()
    election.observe(stored.lease(), 100.0)
    stored.version = 1
    stored.metadata["annotations"][ANNOTATION_COUNTER] = "abc"
    election.observe(stored.lease(), 102.0)
    assert election.went_back() == 'the Lease counts "abc", it counted 40: was it restored?'


@pytest.mark.parametrize("text", [*JUNK, str(EDITED)])
def test_hd_208_a_standby_outlives_a_number_that_was_edited_and_put_back(text: str) -> None:
    stored, election = held_by_another(40), candidate()
    election.observe(stored.lease(), 100.0)
    election.observe(edit(stored, counter=text), 102.0)
    election.observe(stored.count(141), 104.0)
    assert not election.went_back()
    election.observe(stored.count(39), 106.0)
    assert election.went_back() == "the Lease counts 39, it counted 141: was it restored?"


def test_hd_208_a_number_edited_between_two_looks_hides_no_restore() -> None:
    stored, election = held_by_another(40), candidate()
    election.observe(stored.lease(), 100.0)
    election.observe(edit(stored, counter="abc"), 102.0)
    election.observe(stored.count(39), 104.0)
    assert election.went_back() == "the Lease counts 39, it counted 40: was it restored?"


def test_hd_208_who_takes_over_an_edited_number_needs_no_exit_for_it() -> None:
    """The symptom: "counts 1, it counted 9007200254744429: was it restored?", of what it had just written itself."""
    for text in ("abc", str(2**53 + 50), str(2**62 - 1)):
        stored, election = held_by_another(40), candidate()
        election.observe(stored.lease(), 100.0)
        edit(stored, counter=text)
        election.observe(stored.lease(), 102.0)
        take(election, stored, 120.0)
        assert not election.went_back()
        assert election.standing.counter == 1
        renew(election, stored, 122.0)
        assert not election.went_back()
        assert not election.lost(122.0)
        assert text in election.take_edited()


def test_hd_208_a_restore_seen_just_before_it_takes_over_is_not_forgotten() -> None:
    stored, election = held_by_another(40), candidate()
    election.observe(stored.lease(), 100.0)
    stored.take({"metadata": {"annotations": {ANNOTATION_COUNTER: "7"}}, "spec": {"holderIdentity": ""}})
    election.observe(stored.lease(), 102.0)
    take(election, stored, 102.0)
    assert election.went_back() == "the Lease counts 7, it counted 40: was it restored?"


def edited_together(number: int, *, alone: bool) -> Stored:
    stored, other = held_by_another(40), holder_digest("other")
    before = "" if alone else f"{holder_digest('first')}:3 "
    edit(stored, holders=f"{before}{other}:{number}", counter=str(number + 1))
    return stored


@pytest.mark.parametrize(("number", "alone"), [(2**62 - 6, True), (2**62 - 6, False), (2**60, False)])
def test_hd_208_a_holders_number_that_nobody_can_have_found_is_not_believed_either(number: int, *, alone: bool) -> None:
    """The symptom: after four renewals it was above what is read, read as 0, and the lead was lost."""
    stored, election = edited_together(number, alone=alone), candidate()
    election.observe(stored.lease(), 100.0)
    take(election, stored, 115.0)
    assert election.standing.counter == 1
    assert str(number + 1) in election.take_edited()
    for second in range(20):
        renew(election, stored, 116.0 + second)
    assert not election.lost(135.0)


def test_hd_208_what_is_counted_on_from_the_last_number_that_is_believed_can_be_read() -> None:
    stored, election = edited_together(BELIEVED_MAX - 6, alone=True), candidate()
    election.observe(stored.lease(), 100.0)
    take(election, stored, 115.0)
    for second in range(20):
        renew(election, stored, 116.0 + second)
        assert election.standing.counter == counter_of(stored.lease()) > BELIEVED_MAX - 6
    assert not election.lost(135.0)


@pytest.mark.parametrize("floor", [2**61, 2**62, 2**62 + 10**9, 2**63])
def test_hd_208_a_recoverys_number_can_be_read_back_whatever_it_was_raised_from(floor: int) -> None:
    """The symptom: it was written, and read as 0."""
    stored, election = held_by_another(40), candidate()
    election.raise_counter(floor)
    election.observe(stored.lease(), 100.0)
    take(election, stored, 115.0)
    for second in range(20):
        renew(election, stored, 116.0 + second)
        assert election.standing.counter == counter_of(stored.lease()) >= 2**61
    assert not election.lost(135.0)
