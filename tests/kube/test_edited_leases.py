"""HD-200, HD-207, HD-208: numbers in a Lease that somebody has edited: what is believed, put back, and told."""

from __future__ import annotations

import pytest

from gatelift_kube.deciding.election import (
    ANNOTATION_COUNTER,
    ANNOTATION_HOLDERS,
    ANNOTATION_TERM,
    BELIEVED_MAX,
    TERM_BELIEVED_MAX,
    TERM_MAX,
    ElectionStep,
    counter_of,
    holder_digest,
)
from gatelift_kube.objects.core import Lease
from support.servers.stored_leases import Stored, candidate, held_by_another, leading, renew, take

# --- edited by a person (HD-200) -----------------------------------------------------------------------------------

EDITED = 999_999_999_999_999_990
"""The largest numbers of 18 digits: ten renewals later there are 19."""


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
        body = election.body(ElectionStep.RENEW, 0.0, 2.0 + second / 10)
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
    assert election.step(2.0) is ElectionStep.RENEW
    stored.take(election.body(ElectionStep.RENEW, 0.0, 2.0))
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
