"""Which addresses are known, and whose handshake begins next: a crowd of strangers keeps nobody out who was here."""

from __future__ import annotations

import heapq

import pytest

from gatelift.adapters.handshake_turns import HandshakeTurns
from gatelift.adapters.known_addresses import KNOWN_EACH_MAX, KNOWN_MAX, KNOWN_SECONDS, KnownAddresses
from gatelift_kube.deciding.places import Guest, Places


def test_is_12_an_address_is_known_for_a_day_after_its_last_proof() -> None:
    known = KnownAddresses()
    known.remember("a", "w1", 0.0)
    assert [known.knows("a", now) for now in (0.0, KNOWN_SECONDS - 1, KNOWN_SECONDS)] == [True, True, False]
    known.remember("a", "w2", 10.0)
    assert known.knows("a", KNOWN_SECONDS)
    assert not known.knows("b", 0.0)


def test_is_12_what_is_known_is_bounded_and_one_name_makes_no_other_one_forgotten() -> None:
    known = KnownAddresses()
    for number in range(KNOWN_MAX):
        known.remember(f"fleet-{number}", f"w{number}", 1.0)
    for number in range(10 * KNOWN_MAX):
        known.remember(f"evil-{number}", "evil", 2.0)
    assert len(known) <= KNOWN_MAX
    assert sum(known.knows(f"fleet-{number}", 3.0) for number in range(KNOWN_MAX)) >= KNOWN_MAX - KNOWN_EACH_MAX
    assert known.knows(f"evil-{10 * KNOWN_MAX - 1}", 3.0)
    for number in range(2 * KNOWN_MAX):
        known.remember(f"new-{number}", f"n{number}", 4.0)
    assert len(known) == KNOWN_MAX


def taken(turns: HandshakeTurns) -> list[str]:
    return [guest.address for guest in iter(turns.next, None)]


def test_is_12_known_addresses_have_every_second_turn_so_that_a_flood_from_one_of_them_starves_nobody() -> None:
    turns = HandshakeTurns(crowd=10)
    for number in range(3):
        turns.wait(Guest(f"other-{number}", 0.0))
    for _ in range(4):
        turns.wait(Guest("known", 0.0, known=True))
    assert len(turns) == 4
    assert taken(turns) == ["known", "other-0", "known", "other-1", "known", "other-2", "known"]
    assert not turns


def test_is_12_who_has_left_has_no_turn_and_takes_no_room() -> None:
    turns = HandshakeTurns(crowd=2)
    guests = [Guest(f"a{number % 3}", 0.0) for number in range(9)]
    for guest in guests:
        turns.wait(guest)
    for guest in (*guests[:-1], guests[0]):
        turns.leave(guest)
    assert (len(turns), turns.next(), turns.next()) == (1, guests[-1], None)


def tries(rate: float, pace: float, places_max: int) -> list[bool]:
    """Return whether each of the tries of an honest address got through, one every 0.7 s beside a crowd.

    Each stranger has an address of his own, says his first bytes, and goes no further. An honest one needs 0.4 s.
    """
    places, turns, found = Places(places_max, 0), HandshakeTurns(crowd=2 * pace), list[bool]()
    events = [*((number / rate, 1, "") for number in range(round(14 * rate)))]
    events += [(number / pace, 2, "turn") for number in range(round(20 * pace))]
    events += [(4.0 + 0.7 * number + 0.0003, 1, "honest") for number in range(12)]
    heapq.heapify(events)
    honest: dict[Guest, float | None] = {}
    while events:
        now, _, what = heapq.heappop(events)
        for guest, done in tuple(honest.items()):
            if done is not None and now >= done:
                del honest[guest]
                places.leave(guest)
                found.append(True)
        if what == "turn":
            if (begins := turns.next()) is not None:
                begins.turn(now)
                if begins in honest:
                    honest[begins] = now + 0.4
            continue
        guest, displaced = places.come(what or f"stranger-{now}", now, known=what == "honest")
        if displaced is not None:
            turns.leave(displaced)
            if honest.pop(displaced, 0.0) != 0.0 or displaced.address == "honest":
                found.append(False)
        guest.waits()
        turns.wait(guest)
        if what == "honest":
            honest[guest] = None
        assert places.count <= places_max
        assert len(turns) <= places_max
    return found


@pytest.mark.parametrize(("pace", "places_max"), [(100.0, 512), (400.0, 1024)], ids=["enrolment", "sessions"])
@pytest.mark.parametrize("rate", [300.0, 1500.0])
def test_is_12_who_was_here_gets_in_at_the_first_try_however_many_addresses_crowd_a_port(
    rate: float, pace: float, places_max: int
) -> None:
    found = tries(rate, pace, places_max)
    assert found == [True] * 12
