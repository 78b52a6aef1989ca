"""The counts of a group are what counting anew finds, after each of many random changes, and cost little."""

from __future__ import annotations

import contextlib
import random
from collections import Counter
from dataclasses import replace
from functools import total_ordering
from typing import Any

import pytest

from gatelift_kinds.pod_group.member import MemberState
from gatelift_kinds.pod_group.members import PRESENT, Agreement, GroupMember, GroupMembers, RoleMembers
from gatelift_kinds.pod_group.ordered import Ordered
from gatelift_kinds.pod_group.tally import ValueTally
from support.kinds.groups import a_group, a_member, at, of_size
from support.on_purpose import OnPurposeError

ROLES = ("driver", "worker", "")


def a_random_member(chance: random.Random, number: int) -> GroupMember:
    state = chance.choice(list(MemberState))
    said: list[tuple[Agreement | str, str]] = [(Agreement.COUNT, chance.choice("33334"))]
    if chance.random() < 0.3:
        said.append(("team", chance.choice("ab")))
    return a_member(
        number,
        state,
        chance.choice(ROLES),
        shape=chance.choice(("s", "s", "t", "")),
        finalizer=chance.random() < 0.8,
        since=at(chance.randrange(20)) if state is MemberState.FAILED else "",
        ready=chance.random() < 0.5,
        retriable=chance.random() < 0.9,
        deleted=chance.random() < 0.2,
        said=tuple(said),
    )


def counted(known: dict[str, GroupMember]) -> dict[str, Any]:
    """Count all over again, slowly."""
    fitting = [each for each in known.values() if each.role]
    present = [each for each in fitting if each.state in PRESENT]
    roles = sorted({each.role for each in fitting})
    return {
        "counts": Counter(each.state for each in fitting),
        "ages": sorted(each.named for each in present),
        "ranked": sorted(each.rank for each in present),
        "unfit": sorted(each.named for each in known.values() if not each.role),
        "present roles": sorted({each.role for each in present}),
        "unlike": [name for name in roles if len({each.shape for each in present if each.role == name} - {""}) > 1],
        "ready": sum(each.ready or each.state is MemberState.SUCCEEDED for each in present),
        "deleted": sum(each.deleted for each in known.values()),
        "unretriable": sum(
            not each.retriable and each.state in {MemberState.SUCCEEDED, MemberState.FAILED} for each in fitting
        ),
        "sizes": Counter(value for each in present for subject, value in each.said if subject is Agreement.COUNT),
        "teams": Counter(value for each in present for subject, value in each.said if subject == "team"),
        "roles": {
            name: (
                Counter(each.state for each in fitting if each.role == name),
                sorted(each.rank for each in fitting if (each.role, each.state) == (name, MemberState.WAITING)),
                sorted(each.failed for each in fitting if (each.role, each.state) == (name, MemberState.FAILED)),
            )
            for name in roles
        },
    }


def kept(group: GroupMembers) -> dict[str, Any]:
    """Return the same as the group keeps it."""
    return {
        "counts": +Counter(group.counts),
        "ages": list(group.ages),
        "ranked": list(group.ranked),
        "unfit": list(group.unfit),
        "present roles": [name for (name,) in group.present_roles],
        "unlike": [name for (name,) in group.unlike],
        "ready": group.ready,
        "deleted": group.deleted,
        "unretriable": group.unretriable,
        "sizes": said_of(group.tally(Agreement.COUNT)),
        "teams": said_of(group.tally("team")),
        "roles": {
            name: (+Counter(role.counts), list(role.waiting), list(role.failed))
            for name, role in sorted(group.roles.items())
        },
    }


def said_of(tally: ValueTally) -> Counter[str]:
    return Counter({value: len(sayers) for value, sayers in tally._sayers.items()})


@pytest.mark.parametrize("seed", range(12))
def test_the_counts_are_those_of_a_naive_recount_after_each_change(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311
    group, known = GroupMembers(), dict[str, GroupMember]()
    for step in range(300):
        number = chance.randrange(14)
        if chance.random() < 0.25:
            known.pop(f"u{number}", None)
            group.drop(f"u{number}")
        else:
            member = a_random_member(chance, number)
            known[member.uid] = member
            group.put(member)
        assert kept(group) == counted(known), f"seed {seed}, step {step}, member {number}"


def test_a_change_that_comes_twice_changes_nothing() -> None:
    group = a_group(a_member(0), a_member(1, MemberState.FAILED))
    before = kept(group)
    group.put(a_member(0))
    group.drop("nobody")
    group.drop("u1")
    group.drop("u1")
    group.put(a_member(1, MemberState.FAILED))
    assert kept(group) == before


@total_ordering
class CountedText(str):
    """A text that counts how often it is compared."""

    __slots__ = ()
    comparisons = 0

    def __lt__(self, other: str) -> bool:
        CountedText.comparisons += 1
        return str.__lt__(self, other)

    def __eq__(self, other: object) -> bool:
        CountedText.comparisons += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_one_of_4096_members_changes_by_halving_and_nothing_walks_them_all() -> None:
    group = a_group(*(a_member(n, created=CountedText(at(n)), **of_size(4096)) for n in range(4096)))
    member = group.get("u2048")
    assert member is not None
    CountedText.comparisons = 0
    group.put(replace(member, state=MemberState.ACTIVE, lifted=True))
    group.put(replace(member, state=MemberState.FAILED, since=at(9999)))
    group.drop("u2048")
    assert 0 < CountedText.comparisons < 3 * 12 * 60
    assert group.present == 4095


def test_a_list_in_order_has_each_key_once() -> None:
    keys: Ordered[tuple[int]] = Ordered()
    for number in (3, 1, 2, 1):
        keys.add((number,))
    keys.remove((9,))
    assert list(keys) == [(1,), (2,), (3,)]
    assert keys.first(0) == ()
    assert keys.between(-2, 2) == ((1,), (2,))


def test_a_tally_says_who_says_what_and_is_short() -> None:
    tally = ValueTally()
    for number in range(6):
        tally.add("3" if number < 5 else "4", (at(number), f"p{number}", f"u{number}"))
    assert tally.agreed is None
    assert tally.said() == "5 pods say 3 (p0, p1, p2, and 2 more), 1 says 4 (p5)"
    for value in "abc":
        tally.add(value, (at(9), value, value))
    assert tally.said().endswith("1 says a (a), and 2 more values")


INNER = [
    (GroupMembers, "_join"),
    (GroupMembers, "_leave"),
    (GroupMembers, "_look_again"),
    (GroupMembers, "_take_back"),
    (RoleMembers, "join"),
    (RoleMembers, "leave"),
]


@pytest.mark.parametrize(("where", "name"), INNER, ids=[name for _, name in INNER])
@pytest.mark.parametrize("times", [1, 3])
def test_hd_511_a_change_that_comes_to_no_end_leaves_the_counts_whole(
    monkeypatch: pytest.MonkeyPatch, where: type, name: str, times: int
) -> None:
    """What had been counted by then stayed counted, and what is taken again was counted twice: for ever."""
    chance = random.Random(511)  # noqa: S311
    for _ in range(40):
        known = {each.uid: each for each in (a_random_member(chance, number) for number in range(5))}
        group = a_group(*known.values())
        changed = replace(a_random_member(chance, 2), uid="u2")
        with monkeypatch.context() as broken:
            broken.setattr(where, name, _behind(getattr(where, name)))
            for _ in range(times):
                with contextlib.suppress(OnPurposeError):
                    group.whole().put(changed)
        known["u2"] = changed
        assert kept(group.whole()) == counted(known)
        group.whole().put(changed)
        group.whole().drop("u4")
        del known["u4"]
        assert kept(group.whole()) == counted(known)


def _behind(inner: Any) -> Any:
    """Return what raises once it has done its part."""

    def raises(*args: Any, **named: Any) -> None:
        inner(*args, **named)
        raise OnPurposeError("on purpose")

    return raises
