"""A chain of slices is read as one value (KEP-77): which slice is the record, which waits to grow it, which are over.

Kueue sorts slices by the time of their creation and then by UID; here a number decides.
Where its list is by "newest", it is by "highest" here.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest

from gatelift.core.records.chain import UNREADABLE, Chain, Role, Slice, assess
from gatelift.core.records.chains import SliceIndex
from gatelift_kube.values.resources import JOB, ObjectKey

OWNER = (JOB, "team", "work", "job-uid")
ANOTHER = (JOB, "team", "other", "other-uid")
C, T, S, O, P = Role.CURRENT, Role.TARGET, Role.SUPERSEDED, Role.OUT_OF_SYNC, Role.PAST  # noqa: E741 - a table


def key(name: str) -> ObjectKey:
    return ObjectKey("team", name)


def a_slice(
    name: str,
    number: int = 1,
    on: str = "",
    *,
    reserved: bool = False,
    asks: bool = False,
    epoch: int = 1,
    is_unused: bool | None = None,
    finished: bool = False,
    past: bool = False,
    said: str = "a",
    owner: tuple[object, ...] = OWNER,
) -> Slice:
    """Return a slice; `on`: the name of the one whose place it takes."""
    return Slice(
        key=key(name),
        uid=name,
        owner=owner,  # type: ignore[arg-type]
        said=said,
        names=key(on) if on else None,
        number=number,
        epoch=epoch,
        is_unused=not reserved if is_unused is None else is_unused,
        reserved=reserved,
        asks=asks,
        placed=reserved,
        finished=finished or past,
        past=past,
        created="2026-11-21T00:00:00Z",
    )


def chain(*slices: Slice) -> Chain:
    return assess("a", slices)


def roles(*slices: Slice) -> dict[str, Role]:
    return chain(*slices).roles


def names(*slices: Slice) -> tuple[str, str, str]:
    """Return record, current and target by name."""
    found = chain(*slices)
    return tuple(one.uid if one is not None else "" for one in (found.record, found.current, found.target))  # type: ignore[return-value]


def test_ws_023_without_slices_nothing_is_current() -> None:
    assert names() == ("", "", "")


def test_ws_024_the_one_with_quota_is_the_record() -> None:
    assert names(a_slice("a", reserved=True)) == ("a", "a", "")


def test_ws_025_of_several_with_quota_the_highest_number_is_the_record() -> None:
    assert names(a_slice("a", reserved=True), a_slice("b", 2, "a", reserved=True)) == ("b", "b", "")


def test_ws_026_quota_alone_makes_the_record_not_the_admission() -> None:
    """WS-026: a slice whose checks are pending has quota, which is all that is read here."""
    assert names(a_slice("a", reserved=True, is_unused=False)) == ("a", "a", "")


def test_ws_027_the_highest_that_has_quota_still_is_the_record() -> None:
    """WS-027: an eviction that is over has taken the quota; one that is not over is still the record, and leaves."""
    evicted = a_slice("b", 2, "a", is_unused=False)
    assert names(a_slice("a", reserved=True), evicted) == ("a", "a", "b")


def test_ws_028_where_none_has_quota_the_lowest_goes_first_and_the_other_waits_behind_it() -> None:
    """WS-028: Kueue has none then, and finishes them."""
    assert names(a_slice("a", is_unused=False), a_slice("b", 2, "a")) == ("", "a", "b")


def test_ws_030_ws_031_what_is_finished_is_past_and_stands_in_no_ones_way() -> None:
    assert roles(a_slice("a", past=True), a_slice("b", 2, "a", reserved=True)) == {"a": P, "b": C}


def test_ws_032_ws_033_ws_034_they_are_in_order_by_number_then_by_uid() -> None:
    found = chain(a_slice("c", 3), a_slice("b", 2), a_slice("a", 2), a_slice("d"))
    assert [one.uid for one in found.slices] == ["d", "a", "b", "c"]
    assert found.highest == 3


NORMALIZED = {
    "WS-055": ((a_slice("a", reserved=True), a_slice("b", 2, "a", reserved=True)), {"a": S, "b": C}),
    "WS-058": ((a_slice("a", reserved=True), a_slice("b", 2, "a")), {"a": C, "b": T}),
    "WS-059 current that was evicted is kept (Kueue finishes it)": (
        (a_slice("a", is_unused=False), a_slice("b", 2, "a")),
        {"a": C, "b": T},
    ),
    "WS-060": (
        (a_slice("a", past=True), a_slice("b", 2, "a", reserved=True), a_slice("c", 3, "a", reserved=True)),
        {"a": P, "b": S, "c": C},
    ),
    "WS-062 where all are evicted they are kept (Kueue finishes them)": (
        (a_slice("a", is_unused=False), a_slice("b", 2, "a", is_unused=False)),
        {"a": C, "b": T},
    ),
    "WS-063": ((a_slice("a", reserved=True), a_slice("b", 2)), {"a": C, "b": O}),
    "WS-064": (
        (a_slice("a", reserved=True), a_slice("b", 2, "gone"), a_slice("c", 3, "a")),
        {"a": C, "b": O, "c": T},
    ),
    "WS-065 WS-066": (
        (
            a_slice("a", reserved=True),
            a_slice("b", 2, "a"),
            a_slice("c", 3, "a", reserved=True),
            a_slice("d", 4, "c"),
        ),
        {"a": S, "b": O, "c": C, "d": T},
    ),
    "two that wait on one": (
        (a_slice("a", reserved=True), a_slice("b", 2, "a"), a_slice("c", 3, "a")),
        {"a": C, "b": O, "c": T},
    ),
    "WS-067": ((a_slice("a", reserved=True), a_slice("b", 2, "a"), a_slice("c", 2, "a")), {"a": C, "b": O, "c": T}),
    "a chain that is over has nobody behind it": (
        (a_slice("a", finished=True), a_slice("b", 2, "a")),
        {"a": C, "b": O},
    ),
    "a chain that is over goes on with none that had quota before": (
        (a_slice("a", finished=True), a_slice("b", 2, "a", is_unused=False), a_slice("c", 3)),
        {"a": C, "b": O, "c": O},
    ),
    "EJ-019 what waits on a record that was deleted is not the next one": ((a_slice("b", 2, "a"),), {"b": O}),
    "SL-13 a record whose past slices are gone is queued again": ((a_slice("b", 2, "a", is_unused=False),), {"b": C}),
    "SL-40 a reservation of an epoch that has ended is never followed": (
        (a_slice("a", epoch=2, is_unused=False), a_slice("b", 2, "a", reserved=True, epoch=1)),
        {"a": C, "b": O},
    ),
    "SL-40 nor beside a record of a later one": (
        (a_slice("a", reserved=True, epoch=2), a_slice("b", 2, "a", reserved=True, epoch=1)),
        {"a": C, "b": O},
    ),
}


@pytest.mark.parametrize("case", NORMALIZED)
def test_each_slice_has_one_role_in_whatever_order_they_come(case: str) -> None:
    """WS-055, WS-058, WS-059, WS-060, WS-062, WS-063, WS-064, WS-065, WS-066, WS-067, EJ-019, SL-13, SL-40."""
    slices, wanted = NORMALIZED[case]
    for order in permutations(slices):
        assert roles(*order) == wanted
        assert sum(role is C for role in wanted.values()) <= 1


def test_a_number_that_nobody_can_read_holds_the_chain_and_ends_nothing() -> None:
    found = chain(a_slice("a", UNREADABLE, reserved=True), a_slice("b", 2, "a"))
    assert found.is_held
    assert found.roles == {"a": C, "b": T}
    assert not chain(a_slice("a", UNREADABLE, past=True), a_slice("b", 2, "a", reserved=True)).is_held


# --- which marks are believed --------------------------------------------------------------------------------------


def index(*slices: Slice) -> SliceIndex:
    found = SliceIndex()
    for one in slices:
        found.put(one, b"{}")
    return found


def test_sl_49_a_slice_of_another_object_is_of_no_chain_and_gets_no_quota() -> None:
    found = index(a_slice("a", reserved=True), a_slice("x", 9, "a", owner=ANOTHER))
    assert found.is_believed("a")
    assert not found.is_believed("x")
    assert found.of("a").roles == {"a": C}  # type: ignore[union-attr]
    assert found.of("x").roles == {"x": O}  # type: ignore[union-attr]
    found.put(a_slice("y", 8, owner=ANOTHER), b"{}")
    assert found.of("y").roles == {"y": O}, "nor where it says that it takes nobody's place"  # type: ignore[union-attr]
    assert (found.chain_uid("x"), found.holder("a")) == ("x", "a")


def test_sl_49_of_another_namespace_neither() -> None:
    elsewhere = (JOB, "other", "work", "job-uid")
    found = index(a_slice("a", reserved=True), a_slice("x", 9, "a", owner=elsewhere))
    assert not found.is_believed("x")


def test_sl_49_whose_chain_it_is_stays_known_when_its_first_slice_is_gone() -> None:
    found = index(a_slice("a", past=True), a_slice("b", 2, "a", reserved=True), a_slice("x", 9, "a", owner=ANOTHER))
    assert found.of("b") is not None
    found.drop("a")
    found.put(a_slice("x", 9, "a", owner=ANOTHER, reserved=True), b"{}")
    assert (found.is_believed("b"), found.is_believed("x")) == (True, False)
    assert found.holder("a") == "b"


def test_sl_49_after_a_start_without_the_first_slice_who_has_quota_by_it_is_believed() -> None:
    found = index(a_slice("x", 9, owner=ANOTHER), a_slice("b", 2, "a", reserved=True))
    assert (found.is_believed("b"), found.is_believed("x")) == (True, False)


def test_sl_49_one_that_may_hold_quota_by_mistake_is_no_next_one_of_anybody() -> None:
    found = index(a_slice("b", 2, "a", reserved=True), a_slice("x", 9, owner=ANOTHER, reserved=True))
    assert [found.of(uid).roles for uid in ("b", "x")] == [{"b": C}, {"x": C}]  # type: ignore[union-attr]
    assert [found.chain_uid(uid) for uid in ("b", "x")] == ["b", "x"]


def test_sl_49_who_names_a_chain_before_its_first_slice_is_seen_does_not_get_it() -> None:
    found = index(a_slice("x", 9, "a", owner=ANOTHER))
    assert found.is_believed("x")
    found.put(a_slice("a", reserved=True), b"{}")
    assert (found.is_believed("a"), found.is_believed("x")) == (True, False)
    assert found.chosen(OWNER) is found.of("a")
    assert found.chosen(ANOTHER).roles == {"x": O}  # type: ignore[union-attr]


def test_sl_14_of_several_chains_of_one_object_the_placed_one_counts_whatever_its_number() -> None:
    found = index(a_slice("a", reserved=True), a_slice("x", 9, said="x"), a_slice("y", 3, said="y"))
    assert found.chosen(OWNER).uid == "a"  # type: ignore[union-attr]
    found.drop("a")
    assert found.chosen(OWNER).uid == "x"  # type: ignore[union-attr]
    found.drop("x")
    found.drop("y")
    assert found.chosen(OWNER) is None


def test_sl_34_a_chain_is_as_old_as_its_first_slice_also_when_that_is_gone() -> None:
    found = index(a_slice("a", past=True), replace(a_slice("b", 2, "a", reserved=True), created="2030-01-01T00:00:00Z"))
    found.drop("a")
    assert found.began("a") == "2026-11-21T00:00:00Z"
    found.drop("b")
    assert found.began("a") == ""


def test_sl_13_what_is_placed_stands_on_the_record_whatever_becomes_of_the_first_slice() -> None:
    found = index(a_slice("a", reserved=True))
    assert found.holder("a") == "a"
    found.put(a_slice("b", 2, "a", reserved=True), b"{}")
    assert (found.holder("a"), found.chain_uid("b")) == ("b", "a")
    found.put(a_slice("a", past=True), b"")
    found.drop("a")
    assert (found.holder("a"), found.chain_uid("b")) == ("b", "a")
    found.drop("b")
    assert (found.holder("a"), found.of("b")) == ("a", None)


def test_the_json_of_a_slice_is_kept_until_it_is_finished() -> None:
    found = index(a_slice("a", reserved=True))
    assert found.raw("a") == b"{}"
    found.put(a_slice("a", past=True), b"{}")
    assert found.raw("a") == b""
