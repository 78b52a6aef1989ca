"""Whose place is whose in a role, and that nothing is let go beyond what was granted."""

from __future__ import annotations

import random

import pytest

from gatelift_kinds.pod_group import slots
from gatelift_kinds.pod_group.member import MemberState
from gatelift_kinds.pod_group.members import GroupMembers, RoleMembers
from support.kinds.groups import a_group, a_member, at

W, A, L, S, X = (
    MemberState.WAITING,
    MemberState.ACTIVE,
    MemberState.LEAVING,
    MemberState.SUCCEEDED,
    MemberState.FAILED,
)


def a_role(*states: MemberState) -> RoleMembers:
    """Return the role of pods in these states, made in this order; a failed one failed then."""
    found = [a_member(n, state, since=at(n) if state is X else "") for n, state in enumerate(states)]
    return a_group(*found).roles["r"]


ROWS = [
    ("PG-1 all wait and are let go", 3, (W, W, W), ("u0", "u1", "u2"), (), (), ()),
    ("all run", 2, (A, A), (), (), (), ()),
    ("PG-6 beyond the count: the youngest", 2, (A, A, W), (), (), ("u2",), ()),
    ("PG-7 a failed one is replaced", 2, (A, X, W), ("u2",), (), (), ("u1",)),
    ("PG-8 the one that failed first is replaced first", 3, (A, X, X, W), ("u3",), (), (), ("u1",)),
    ("a failed one that nobody replaces stays", 2, (A, X), (), (), (), ()),
    ("PG-9 who replaces a leaving one waits and is not too many", 1, (L, W), (), ("u1",), (), ()),
    ("PG-9 a second one is too many", 1, (L, W, W), (), ("u1",), ("u2",), ()),
    ("a free slot is taken before that of a leaving one", 2, (L, X, W), ("u2",), (), (), ("u1",)),
    ("what succeeded keeps its slot", 1, (S, W), (), (), ("u1",), ()),
    ("DW-2 more workers than were declared", 2, (W, W, W, W), ("u0", "u1"), (), ("u2", "u3"), ()),
    ("more run than were granted: the youngest goes", 1, (A, A), (), (), ("u1",), ()),
    ("nothing was granted", 0, (W,), (), (), ("u0",), ()),
]  # fmt: skip


@pytest.mark.parametrize(
    ("granted", "states", "fill", "heirs", "surplus", "replaced"), [pytest.param(*row[1:], id=row[0]) for row in ROWS]
)
def test_the_places_of_a_role(
    granted: int,
    states: tuple[MemberState, ...],
    fill: tuple[str, ...],
    heirs: tuple[str, ...],
    surplus: tuple[str, ...],
    replaced: tuple[str, ...],
) -> None:
    role = a_role(*states)
    found = slots.places(role, granted)
    assert slots.to_fill(role, found) == fill
    assert slots.heirs(role, found) == heirs
    assert slots.surplus(role, found) == surplus
    assert slots.replaced(role, found) == replaced


def test_pg_5_before_admission_the_tail_goes_with_finalizer_let_go_and_oldest_first() -> None:
    bare = a_member(0, finalizer=False)
    group = a_group(bare, a_member(1), a_member(2), a_member(3, A), a_member(4, S))
    assert slots.surplus_of_all(group, 3) == ("u2", "u0")
    assert slots.surplus_of_all(group, 5) == ()


def test_before_admission_who_replaces_a_leaving_one_is_not_too_many() -> None:
    assert slots.surplus_of_all(a_group(a_member(0, L), a_member(1), a_member(2)), 2) == ()


def test_a_role_that_the_workload_does_not_have_is_named() -> None:
    group = a_group(a_member(0), a_member(1, role="other"))
    assert slots.unknown_roles(group, frozenset({"r"})) == ("other",)


def test_dw_3_who_fits_no_role_has_no_slot() -> None:
    group = a_group(a_member(0), a_member(1, role=""))
    assert slots.to_fill(group.roles["r"], slots.places(group.roles["r"], 2)) == ("u0",)
    assert (group.present, len(group)) == (1, 2)


def test_what_is_asked_for_is_cut_to_what_is_wanted_at_once() -> None:
    role = a_role(*[W] * 10)
    found = slots.places(role, 4)
    assert slots.to_fill(role, found, 2) == ("u0", "u1")
    assert slots.surplus(role, found, 3) == ("u4", "u5", "u6")


def test_hd_421_who_was_let_go_by_us_is_never_one_too_many() -> None:
    """HD-421: what its user made without our gate is, also if it is older."""
    role = a_role(A, A, A, W)
    found = slots.places(role, 2)
    assert slots.surplus(role, found) == ("u3", "u2")
    assert slots.surplus(role, found, stays=lambda uid: uid in {"u1", "u2"}) == ("u3", "u0")
    assert slots.surplus(role, found, stays=lambda _: True) == ()


@pytest.mark.parametrize("seed", range(40))
def test_pg_32_nothing_is_let_go_beyond_the_grant_and_each_pod_has_one_answer(seed: int) -> None:
    """At any counts: let go and not stopped never exceeds what was granted but for what ran beyond it before."""
    chance = random.Random(seed)  # noqa: S311
    for _ in range(200):
        granted = chance.randrange(6)
        states = [chance.choice((W, W, A, L, S, X)) for _ in range(chance.randrange(9))]
        group: GroupMembers = a_group(
            *(a_member(n, state, since=at(chance.randrange(50))) for n, state in enumerate(states))
        )
        role = group.roles.get("r", RoleMembers())
        found = slots.places(role, granted)
        told = f"seed {seed}: granted {granted}, {[each.value for each in states]}: {found}"
        fill, heirs, surplus = slots.to_fill(role, found), slots.heirs(role, found), slots.surplus(role, found)
        held = states.count(A) + states.count(L) + states.count(S)
        assert len(fill) <= max(0, granted - held), told
        assert len(heirs) <= states.count(L), told
        gated_surplus = [uid for uid in surplus if states[[f"u{n}" for n in range(len(states))].index(uid)] is W]
        assert len({*fill, *heirs, *gated_surplus}) == states.count(W) == len(fill) + len(heirs) + len(gated_surplus), (
            told
        )
        assert found.replaced + min(found.empty, states.count(X)) == states.count(X), told
        assert len(slots.replaced(role, found)) == found.replaced, told
        assert found.beyond_active == min(states.count(A), max(0, states.count(A) + states.count(S) - granted)), told
