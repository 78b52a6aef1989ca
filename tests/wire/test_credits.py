from hypothesis import given
from hypothesis import strategies as st

from gatelift_wire.credits import CreditWindow
from gatelift_wire.keys import PlacementKey


def key(epoch: int) -> PlacementKey:
    return PlacementKey("u", epoch)


def test_no_more_is_taken_than_granted() -> None:
    window = CreditWindow(10)
    window.grant(2)
    assert [window.take(key(n)) for n in range(4)] == [True, True, False, False]
    assert (window.free, window.outstanding) == (0, 2)


def test_the_same_placement_takes_one_credit() -> None:
    window = CreditWindow(10)
    window.grant(1)
    assert window.take(key(1))
    assert window.take(key(1))
    assert window.outstanding == 1


def test_what_is_applied_gives_its_credit_back_once() -> None:
    window = CreditWindow(10)
    window.grant(1)
    window.take(key(1))
    window.settle(key(1))
    window.settle(key(1))
    assert window.free == 1


def test_a_lower_grant_takes_nothing_back_and_stops_new_ones() -> None:
    window = CreditWindow(10)
    window.grant(3)
    for number in range(3):
        window.take(key(number))
    window.grant(1)
    assert (window.free, window.outstanding) == (0, 3)
    window.settle(key(0))
    window.settle(key(1))
    assert window.free == 0
    window.settle(key(2))
    assert window.free == 1


def test_the_own_window_bounds_any_grant() -> None:
    window = CreditWindow(2)
    window.grant(1000)
    assert window.free == 2
    window.grant(-5)
    assert window.free == 0


def test_a_resync_starts_anew() -> None:
    window = CreditWindow(5)
    window.grant(2)
    window.take(key(1))
    window.reset(4)
    assert (window.free, window.outstanding) == (4, 0)


@given(st.lists(st.tuples(st.sampled_from(["grant", "take", "settle"]), st.integers(0, 6)), max_size=40))
def test_new_ones_never_exceed_the_grant_whatever_happens(steps: list[tuple[str, int]]) -> None:
    window = CreditWindow(5)
    for what, number in steps:
        before = window.outstanding
        if what == "grant":
            window.grant(number)
        elif what == "settle":
            window.settle(key(number))
        elif window.take(key(number)) and window.outstanding > before:
            assert window.outstanding <= min(window.granted, window.window)
        assert window.free >= 0
