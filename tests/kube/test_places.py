"""Places and bytes of a port: never more than there are, and taken from who has been unfinished for longest."""

from __future__ import annotations

import pytest

from gatelift_kube.deciding.places import STALE_SECONDS, TURN_SECONDS, FullError, Guest, Places

API, STRANGER = "10.0.0.1", "10.244.0.9"


def come(places: Places, address: str, now: float, times: int = 1) -> list[Guest]:
    return [places.come(address, now)[0] for _ in range(times)]


def serve(guest: Guest, now: float) -> None:
    guest.began(now)
    guest.whole()
    guest.done(now)


def test_hd_115_there_are_never_more_than_there_are_places() -> None:
    places = Places(4, 100)
    for turn in range(50):
        come(places, f"10.0.0.{turn % 7}", turn)
        assert places.count <= 4


def test_hd_115_what_trickles_goes_before_what_was_answered_and_waits() -> None:
    places = Places(3, 100)
    (idle,) = come(places, API, 0.0)
    serve(idle, 0.0)
    slow, slower = come(places, API, 1.0) + come(places, API, 0.9)
    assert places.come(API, 1.0 + STALE_SECONDS)[1] is slower
    assert places.come(API, 1.1 + STALE_SECONDS)[1] is slow


def test_hd_115_among_the_fresh_and_the_idle_the_address_that_holds_most_gives_way() -> None:
    places = Places(10, 100)
    idle = come(places, API, 0.0, 3)
    for guest in idle:
        serve(guest, 0.0)
    strangers = come(places, STRANGER, 5.0, 7)
    for guest in strangers:
        serve(guest, 5.0)
    fresh, displaced = places.come(API, 6.0)
    assert displaced in strangers
    assert places.come(STRANGER, 6.0)[1] in strangers
    assert places.come(STRANGER, 6.1)[1] not in [*idle, fresh]


def test_is_12_who_has_his_turn_and_does_not_go_on_goes_before_who_waits_for_his_and_who_goes_on_after_him() -> None:
    places = Places(4, 0)
    begins, waits, waits_longer, stays = (come(places, f"10.0.0.{each}", 0.0)[0] for each in range(4))
    for guest in (begins, waits, waits_longer, stays):
        guest.waits()
    waits_longer.since = -1.0
    stays.turn(9.0)
    begins.turn(9.0 + TURN_SECONDS)
    assert places.come("10.0.1.1", 9.0 + TURN_SECONDS)[1] is stays, "it is he who is late"
    assert [places.come(f"10.0.1.{each}", 9.0 + TURN_SECONDS)[1] for each in (2, 3)] == [waits_longer, waits]
    assert places.count == 4


def test_is_12_known_addresses_go_last_as_long_as_they_hold_no_more_than_half() -> None:
    places = Places(4, 0)
    known = [places.come(API, 0.0, known=True)[0] for _ in range(2)]
    first, second = come(places, "10.0.0.2", 1.0) + come(places, "10.0.0.3", 2.0)
    assert places.come("10.0.0.4", 9.0)[1] is first
    assert places.come(API, 9.0, known=True)[1] is second
    assert places.come("10.0.0.5", 9.0)[1] in known, "three of one known address are like any other's"
    assert places.come("10.0.0.6", 9.0)[1] not in known


def test_hd_115_nobody_who_is_being_answered_is_displaced() -> None:
    places = Places(2, 100)
    for guest in come(places, API, 0.0, 2):
        guest.whole()
    with pytest.raises(FullError, match="2 connections"):
        places.come(STRANGER, 9.0)
    assert places.count == 2


def test_hd_116_there_are_never_more_bytes_than_may_be_held() -> None:
    places = Places(100, 1000)
    guests = come(places, STRANGER, 0.0, 50)
    for turn in range(40):
        for guest in guests:
            places.hold(guest, 13 + turn)
            assert places.bytes_held <= 1000


def test_hd_116_the_address_that_holds_most_gives_up_the_body_that_it_began_first() -> None:
    places = Places(10, 100)
    (api,) = come(places, API, 0.0)
    api.began(0.0)
    assert places.hold(api, 20) == []
    first, second = come(places, STRANGER, 1.0, 2)
    second.began(1.0)
    first.began(2.0)
    places.hold(first, 40)
    places.hold(second, 40)
    assert places.hold(api, 30) == [second]
    assert (places.bytes_held, places.count) == (90, 2)


def test_hd_116_who_asks_for_too_much_gives_way_itself() -> None:
    places = Places(10, 100)
    (api, stranger) = come(places, API, 0.0) + come(places, STRANGER, 0.0)
    places.hold(api, 60)
    assert places.hold(stranger, 90) == [stranger]
    assert places.hold(stranger, 1) == [stranger], "it has left"
    assert places.bytes_held == 60


def test_hd_116_bytes_of_what_is_being_answered_are_not_taken() -> None:
    places = Places(10, 100)
    (answering, asking) = come(places, API, 0.0, 2)
    places.hold(answering, 90)
    answering.whole()
    assert places.hold(asking, 20) == [asking]
    (late,) = come(places, API, 0.0)
    late.whole()
    with pytest.raises(FullError, match="100 bytes"):
        places.hold(late, 20)
    places.release(answering)
    places.leave(answering)
    places.leave(answering)
    assert places.hold(late, 20) == []
    assert places.bytes_held == 20
